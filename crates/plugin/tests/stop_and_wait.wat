;; Stop and wait (RFC 1350 section 2) in the text format of WebAssembly, written by hand for the tests: crates/plugin/new/whole_transport/c/mine.c.
;;
;; The layout is that of include/flowloom.h compiled for wasm32: pointers and functions are words of 32 bits. The functions of the simulator are
;; in the structure whose address the context has.
(module
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 8 funcref)
  (elem (i32.const 1) $create $on_flow $on_packet $on_timer $poll $give_up $sample)

  ;; Functions of the simulator, after their handle: state, close, timeout, control; disarm; arm, count; deliver; payload.
  (type $of_flow (func (param i32 i32) (result i32)))
  (type $of_two (func (param i32 i32 i32) (result i32)))
  (type $of_three (func (param i32 i32 i32 i64) (result i32)))
  (type $of_payload (func (param i32 i32 i64 i64 i32) (result i32)))
  (type $of_offset (func (param i32 i32 i64) (result i64)))

  ;; A host: header 0, rto 8, mss 16, and the first and the last flow that is ready to send, 24 and 28: one more than its number; 0: none.
  ;; A flow: acked 0, sent_at 8, rtt 16, in_flight 24, again 28, queued 32, next 36.

  ;; The context: now_ps 0, calls 8, handle 12. The calls: arm 0, disarm 4, control 8, deliver 12, close 20, timeout 28, count 36, payload 48,
  ;; state 52.
  (func $flow_of (param $cx i32) (param $flow i32) (result i32)
    (call_indirect (type $of_flow) (i32.load offset=12 (local.get $cx)) (local.get $flow)
      (i32.load offset=52 (i32.load offset=8 (local.get $cx)))))

  (func $payload (param $cx i32) (param $flow i32) (param $offset i64) (result i64)
    (call_indirect (type $of_offset) (i32.load offset=12 (local.get $cx)) (local.get $flow) (local.get $offset)
      (i32.load offset=48 (i32.load offset=8 (local.get $cx)))))

  (func $create (param $context i32) (param $own i32) (param $endpoint i32) (param $values i32) (result i32)
    (i64.store (local.get $own) (i64.load offset=8 (local.get $endpoint)))
    (i64.store offset=8 (local.get $own) (i64.load (local.get $values)))
    (i64.store offset=16 (local.get $own) (i64.sub (i64.load (local.get $endpoint)) (i64.load offset=8 (local.get $endpoint))))
    (i32.const 0))

  (func $make_ready (param $own i32) (param $cx i32) (param $number i32)
    (local $flow i32) (local $last i32)
    (local.set $flow (call $flow_of (local.get $cx) (local.get $number)))
    (if (i32.load offset=32 (local.get $flow)) (then (return)))
    (i32.store offset=32 (local.get $flow) (i32.const 1))
    (i32.store offset=36 (local.get $flow) (i32.const 0))
    (local.set $last (i32.load offset=28 (local.get $own)))
    (local.set $number (i32.add (local.get $number) (i32.const 1)))
    (if (local.get $last)
      (then (i32.store offset=36 (call $flow_of (local.get $cx) (i32.sub (local.get $last) (i32.const 1))) (local.get $number)))
      (else (i32.store offset=24 (local.get $own) (local.get $number))))
    (i32.store offset=28 (local.get $own) (local.get $number)))

  ;; Takes a flow out of the queue.
  (func $give_up (param $own i32) (param $cx i32) (param $number i32) (result i32)
    (local $link i32) (local $before i32) (local $one i32)
    (local.set $link (i32.add (local.get $own) (i32.const 24)))
    (local.set $one (i32.add (local.get $number) (i32.const 1)))
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load (local.get $link))))
        (br_if $end (i32.eq (i32.load (local.get $link)) (local.get $one)))
        (local.set $before (i32.load (local.get $link)))
        (local.set $link
          (i32.add (call $flow_of (local.get $cx) (i32.sub (local.get $before) (i32.const 1))) (i32.const 36)))
        (br $next)))
    (if (i32.load (local.get $link))
      (then
        (i32.store (local.get $link) (i32.load offset=36 (call $flow_of (local.get $cx) (local.get $number))))
        (if (i32.eq (i32.load offset=28 (local.get $own)) (local.get $one))
          (then (i32.store offset=28 (local.get $own) (local.get $before))))))
    (i32.const 0))

  (func $on_flow (param $own i32) (param $cx i32) (param $flow i32) (result i32)
    (call $make_ready (local.get $own) (local.get $cx) (local.get $flow))
    (i32.const 0))

  ;; The packet: offset 16, flow 40, wire_len 48, payload 50, kind 54, flags 56. The ACK is at 0x3000, the delivery at 0x3040.
  (func $on_packet (param $own i32) (param $cx i32) (param $packet i32) (result i32)
    (local $number i32) (local $flow i32) (local $calls i32) (local $handle i32)
    (local.set $number (i32.load offset=40 (local.get $packet)))
    (local.set $calls (i32.load offset=8 (local.get $cx)))
    (local.set $handle (i32.load offset=12 (local.get $cx)))
    ;; The calls of tests are here.
    (if (i32.eqz (i32.load8_u offset=54 (local.get $packet)))
      (then
        (drop (call_indirect (type $of_payload)
          (local.get $handle) (local.get $number) (i64.load offset=16 (local.get $packet)) (i64.load16_u offset=50 (local.get $packet))
          (i32.const 0x3040) (i32.load offset=12 (local.get $calls))))
        (memory.fill (i32.const 0x3000) (i32.const 0) (i32.const 64))
        (i64.store (i32.const 0x3010) (i64.load (i32.const 0x3040)))
        (i32.store (i32.const 0x3028) (local.get $number))
        (i32.store16 (i32.const 0x3030) (i32.load (local.get $own)))
        (i32.store8 (i32.const 0x3036) (i32.const 1))
        (return (call_indirect (type $of_flow) (local.get $handle) (i32.const 0x3000) (i32.load offset=8 (local.get $calls))))))
    (local.set $flow (call $flow_of (local.get $cx) (local.get $number)))
    ;; A late duplicate.
    (if (i64.le_u (i64.load offset=16 (local.get $packet)) (i64.load (local.get $flow))) (then (return (i32.const 0))))
    (if (i32.eqz (i32.load offset=28 (local.get $flow)))
      (then
        (i64.store offset=16 (local.get $flow) (i64.sub (i64.load (local.get $cx)) (i64.load offset=8 (local.get $flow))))))
    (i64.store (local.get $flow) (i64.load offset=16 (local.get $packet)))
    (i64.store offset=24 (local.get $flow) (i64.const 0))
    (if (i64.eqz (call $payload (local.get $cx) (local.get $number) (i64.load (local.get $flow))))
      (then
        (drop (call $give_up (local.get $own) (local.get $cx) (local.get $number)))
        (return (call_indirect (type $of_flow) (local.get $handle) (local.get $number) (i32.load offset=20 (local.get $calls))))))
    (drop (call_indirect (type $of_two)
      (local.get $handle) (local.get $number) (i32.const 0) (i32.load offset=4 (local.get $calls))))
    (call $make_ready (local.get $own) (local.get $cx) (local.get $number))
    (i32.const 0))

  (func $on_timer (param $own i32) (param $cx i32) (param $kind i32) (param $number i32) (result i32)
    (local $flow i32) (local $calls i32) (local $handle i32)
    (local.set $calls (i32.load offset=8 (local.get $cx)))
    (local.set $handle (i32.load offset=12 (local.get $cx)))
    (local.set $flow (call $flow_of (local.get $cx) (local.get $number)))
    (i32.store offset=24 (local.get $flow) (i32.const 0))
    (i32.store offset=28 (local.get $flow) (i32.const 1))
    (drop (call_indirect (type $of_flow) (local.get $handle) (local.get $number) (i32.load offset=28 (local.get $calls))))
    (drop (call_indirect (type $of_three)
      (local.get $handle) (local.get $number) (i32.const 0) (i64.const 1) (i32.load offset=36 (local.get $calls))))
    (call $make_ready (local.get $own) (local.get $cx) (local.get $number))
    (i32.const 0))

  (func $poll (param $own i32) (param $cx i32) (param $packet i32) (result i32)
    (local $number i32) (local $flow i32)
    (if (i32.eqz (i32.load offset=24 (local.get $own))) (then (return (i32.const 1))))
    (local.set $number (i32.sub (i32.load offset=24 (local.get $own)) (i32.const 1)))
    (local.set $flow (call $flow_of (local.get $cx) (local.get $number)))
    (i32.store offset=24 (local.get $own) (i32.load offset=36 (local.get $flow)))
    (if (i32.eqz (i32.load offset=24 (local.get $own))) (then (i32.store offset=28 (local.get $own) (i32.const 0))))
    (i32.store offset=32 (local.get $flow) (i32.const 0))
    (i32.store offset=24 (local.get $flow)
      (i32.wrap_i64 (call $payload (local.get $cx) (local.get $number) (i64.load (local.get $flow)))))
    (i64.store offset=8 (local.get $flow) (i64.load (local.get $cx)))
    (i32.store offset=40 (local.get $packet) (local.get $number))
    (i64.store offset=16 (local.get $packet) (i64.load (local.get $flow)))
    (i32.store16 offset=50 (local.get $packet) (i32.load offset=24 (local.get $flow)))
    (i32.store16 offset=48 (local.get $packet) (i32.add (i32.load offset=24 (local.get $flow)) (i32.load (local.get $own))))
    (i32.store16 offset=56 (local.get $packet) (select (i32.const 16) (i32.const 0) (i32.load offset=28 (local.get $flow))))
    (call_indirect (type $of_three)
      (i32.load offset=12 (local.get $cx)) (local.get $number) (i32.const 0)
      (i64.add (i64.load (local.get $cx)) (i64.load offset=8 (local.get $own)))
      (i32.load (i32.load offset=8 (local.get $cx)))))

  ;; The sample: cwnd 0, srtt_ps 16, in_flight 32.
  (func $sample (param $own i32) (param $flow i32) (param $number i32) (param $sample i32) (result i32)
    (i64.store (local.get $sample) (i64.load offset=16 (local.get $own)))
    (if (local.get $flow)
      (then
        (i64.store offset=16 (local.get $sample) (i64.load offset=16 (local.get $flow)))
        (i64.store offset=32 (local.get $sample) (i64.load32_u offset=24 (local.get $flow)))))
    (i32.const 0))

  (func (export "flowloom_plugin") (result i32) (i32.const 1024))

  ;; The head: version, room, size of the table; sizes of flowloom_parameter and flowloom_counter, knows; sizes of the structures; name,
  ;; summary, source; parameters, counters; own_size, state_size; context, close, destroy, failure.
  (data (i32.const 1024)
    "\01\00\00\00" "\02\00\00\00" "\a8\00\00\00"
    "\20\00\00\00" "\0c\00\00\00" "\00\00\00\00"
    "\30\00\00\00" "\28\00\00\00" "\40\00\00\00" "\20\00\00\00" "\28\00\00\00" "\18\00\00\00" "\38\00\00\00" "\00\00\00\00"
    "\00\08\00\00" "\20\08\00\00" "\50\08\00\00"
    "\00\05\00\00" "\01\00\00\00\00\00\00\00"
    "\00\07\00\00" "\00\00\00\00" "\01\00\00\00\00\00\00\00"
    "\20\00\00\00\00\00\00\00" "\28\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The rest: uses; the functions from create to sample.
  (data (i32.const 1152)
    "\00\00\00\00" "\00\00\00\00"
    "\01\00\00\00" "\02\00\00\00" "\03\00\00\00" "\04\00\00\00" "\05\00\00\00" "\06\00\00\00" "\07\00\00\00")

  ;; The parameter rto: name, default, lowest, highest, source, description, type.
  (data (i32.const 1280)
    "\60\08\00\00" "\68\08\00\00" "\70\08\00\00" "\78\08\00\00" "\50\08\00\00" "\80\08\00\00" "\03\00\00\00" "\00\00\00\00")

  ;; The counter repeats: name, unit, description.
  (data (i32.const 1792) "\a0\08\00\00" "\a8\08\00\00" "\b8\08\00\00")

  ;; Texts end with a zero byte, which the memory has.
  (data (i32.const 0x800) "stop_and_wait_wat")
  (data (i32.const 0x820) "Stop and wait in WebAssembly, by hand")
  (data (i32.const 0x850) "RFC 1350")
  (data (i32.const 0x860) "rto")
  (data (i32.const 0x868) "10ms")
  (data (i32.const 0x870) "1us")
  (data (i32.const 0x878) "60s")
  (data (i32.const 0x880) "Retransmission timeout.")
  (data (i32.const 0x8a0) "repeats")
  (data (i32.const 0x8a8) "packets")
  (data (i32.const 0x8b8) "Retransmitted packets."))
