;; PIAS (Bai et al., NSDI 2015, section 4) in the text format of WebAssembly, written by hand for the tests: crates/plugin/new/policy/c/mine.c. In
;; addition, it counts timeouts.
;;
;; The layout is that of include/flowloom.h compiled for wasm32: pointers and functions are words of 32 bits. The functions of the simulator are
;; in the structure whose address the context has.
(module
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 9 funcref)
  (elem (i32.const 1) $create $on_send $on_receive $on_open $on_timeout $on_finish $on_close $on_timer)

  ;; Functions of the simulator, after their handle: state, finished, terminate; disarm, view, sample; arm, count; random.
  (type $of_flow (func (param i32 i32) (result i32)))
  (type $of_two (func (param i32 i32 i32) (result i32)))
  (type $of_three (func (param i32 i32 i32 i64) (result i32)))
  (type $of_none (func (param i32) (result i64)))

  ;; The policy of a host: thresholds 0 and 8, sent 16, aging 24. The state of a flow: open 0, sent 8, from 16, acked 24, timeouts 32, end 40.

  (func $create (param $context i32) (param $own i32) (param $endpoint i32) (param $values i32) (result i32)
    (memory.copy (local.get $own) (local.get $values) (i32.const 32))
    (i32.const 0))

  ;; The context: now_ps 0, calls 8, handle 12, host 16. The calls: arm 0, disarm 4, terminate 8, finished 12, sample 16, count 20, random 24,
  ;; view 28, state 32.
  (func $flow_of (param $cx i32) (param $flow i32) (result i32)
    (call_indirect (type $of_flow) (i32.load offset=12 (local.get $cx)) (local.get $flow)
      (i32.load offset=32 (i32.load offset=8 (local.get $cx)))))

  (func $on_open (param $own i32) (param $cx i32) (param $flow i32) (result i32)
    (i64.store (call $flow_of (local.get $cx) (local.get $flow)) (i64.const 1))
    (i32.const 0))

  ;; The packet: offset 16, flow 40, payload 50, kind 54, prio 55.
  (func $on_send (param $own i32) (param $cx i32) (param $packet i32) (result i32)
    (local $flow i32) (local $before i64) (local $offset i64) (local $from i64) (local $end i64)
    (i32.store8 offset=55 (local.get $packet) (i32.const 0))
    ;; The calls of tests are here.
    (if (i32.eqz (i32.load16_u offset=50 (local.get $packet))) (then (return (i32.const 0))))
    (local.set $flow (call $flow_of (local.get $cx) (i32.load offset=40 (local.get $packet))))
    (local.set $offset (i64.load offset=16 (local.get $packet)))
    (local.set $from (i64.load offset=16 (local.get $flow)))
    (if (i64.gt_u (local.get $offset) (local.get $from))
      (then (local.set $before (i64.sub (local.get $offset) (local.get $from)))))
    (local.set $end (i64.add (local.get $offset) (i64.load16_u offset=50 (local.get $packet))))
    (if (i64.gt_u (local.get $end) (i64.load offset=40 (local.get $flow)))
      (then
        (i64.store offset=40 (local.get $flow) (local.get $end))
        (i64.store offset=8 (local.get $flow)
          (i64.add (i64.load offset=8 (local.get $flow)) (i64.load16_u offset=50 (local.get $packet))))))
    (if (i64.ne (i64.load offset=16 (local.get $own)) (i64.const 0))
      (then
        (local.set $before (i64.load offset=8 (local.get $flow)))
        (if (i64.ne (local.get $before) (i64.const 0))
          (then (local.set $before (i64.sub (local.get $before) (i64.const 1)))))))
    (i32.store8 offset=55 (local.get $packet)
      (i32.add
        (i64.le_u (i64.load (local.get $own)) (local.get $before))
        (i64.le_u (i64.load offset=8 (local.get $own)) (local.get $before))))
    (i32.const 0))

  (func $on_receive (param $own i32) (param $cx i32) (param $packet i32) (result i32)
    (local $flow i32)
    (local.set $flow (call $flow_of (local.get $cx) (i32.load offset=40 (local.get $packet))))
    (if (i64.eqz (i64.load (local.get $flow))) (then (return (i32.const 0))))
    (if (i32.ne (i32.load8_u offset=54 (local.get $packet)) (i32.const 1)) (then (return (i32.const 0))))
    (if (i64.le_u (i64.load offset=16 (local.get $packet)) (i64.load offset=24 (local.get $flow)))
      (then (return (i32.const 0))))
    (i64.store offset=24 (local.get $flow) (i64.load offset=16 (local.get $packet)))
    (i64.store offset=32 (local.get $flow) (i64.const 0))
    (i32.const 0))

  (func $on_timeout (param $own i32) (param $cx i32) (param $number i32) (result i32)
    (local $flow i32)
    (drop (call_indirect (type $of_three)
      (i32.load offset=12 (local.get $cx)) (local.get $number) (i32.const 0) (i64.const 1)
      (i32.load offset=20 (i32.load offset=8 (local.get $cx)))))
    (if (i64.eqz (i64.load offset=24 (local.get $own))) (then (return (i32.const 0))))
    (local.set $flow (call $flow_of (local.get $cx) (local.get $number)))
    (i64.store offset=32 (local.get $flow) (i64.add (i64.load offset=32 (local.get $flow)) (i64.const 1)))
    (if (i64.lt_u (i64.load offset=32 (local.get $flow)) (i64.load offset=24 (local.get $own)))
      (then (return (i32.const 0))))
    (i64.store offset=8 (local.get $flow) (i64.const 0))
    (i64.store offset=32 (local.get $flow) (i64.const 0))
    (i64.store offset=16 (local.get $flow) (i64.load offset=24 (local.get $flow)))
    (i32.const 0))

  (func $on_finish (param $own i32) (param $cx i32) (param $flow i32) (result i32)
    (i32.const 0))

  (func $on_close (param $own i32) (param $cx i32) (param $flow i32) (result i32)
    (i32.const 0))

  (func $on_timer (param $own i32) (param $cx i32) (param $kind i32) (param $flow i32) (result i32)
    (i64.store offset=8 (call $flow_of (local.get $cx) (local.get $flow)) (i64.const 0))
    (i32.const 0))

  (func (export "flowloom_plugin") (result i32) (i32.const 1024))

  ;; The head: version, room, size of the table; sizes of flowloom_parameter and flowloom_counter, knows; sizes of the structures; name,
  ;; summary, source; parameters, counters; own_size, state_size; context, close, destroy, failure.
  (data (i32.const 1024)
    "\01\00\00\00" "\05\00\00\00" "\a8\00\00\00"
    "\20\00\00\00" "\0c\00\00\00" "\01\00\00\00"
    "\30\00\00\00" "\28\00\00\00" "\40\00\00\00" "\28\00\00\00" "\18\00\00\00" "\24\00\00\00" "\00\00\00\00" "\00\00\00\00"
    "\00\08\00\00" "\10\08\00\00" "\40\08\00\00"
    "\00\05\00\00" "\04\00\00\00\00\00\00\00"
    "\00\07\00\00" "\00\00\00\00" "\01\00\00\00\00\00\00\00"
    "\20\00\00\00\00\00\00\00" "\30\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The rest: uses; the functions from create to on_timer.
  (data (i32.const 1152)
    "\02\00\00\00" "\00\00\00\00"
    "\01\00\00\00" "\02\00\00\00" "\03\00\00\00" "\04\00\00\00" "\05\00\00\00" "\06\00\00\00" "\07\00\00\00" "\08\00\00\00")

  ;; The parameters first, second, sent and aging: name, default, lowest, highest, source, description, type.
  (data (i32.const 1280)
    "\70\08\00\00" "\78\08\00\00" "\80\08\00\00" "\88\08\00\00" "\40\08\00\00" "\90\08\00\00" "\04\00\00\00" "\00\00\00\00"
    "\b0\08\00\00" "\b8\08\00\00" "\80\08\00\00" "\88\08\00\00" "\40\08\00\00" "\d0\08\00\00" "\04\00\00\00" "\00\00\00\00"
    "\f0\08\00\00" "\f8\08\00\00" "\00\00\00\00" "\00\00\00\00" "\40\08\00\00" "\00\09\00\00" "\06\00\00\00" "\00\00\00\00"
    "\30\09\00\00" "\38\09\00\00" "\38\09\00\00" "\40\09\00\00" "\40\08\00\00" "\50\09\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The counter expired: name, unit, description.
  (data (i32.const 1792) "\a0\09\00\00" "\a0\09\00\00" "\b0\09\00\00")

  ;; Texts end with a zero byte, which the memory has.
  (data (i32.const 0x800) "pias_wat")
  (data (i32.const 0x810) "PIAS in WebAssembly, by hand")
  (data (i32.const 0x840) "Bai et al., NSDI 2015, section 4")
  (data (i32.const 0x870) "first")
  (data (i32.const 0x878) "43800B")
  (data (i32.const 0x880) "1B")
  (data (i32.const 0x888) "1GB")
  (data (i32.const 0x890) "The first threshold.")
  (data (i32.const 0x8b0) "second")
  (data (i32.const 0x8b8) "438000B")
  (data (i32.const 0x8d0) "The second threshold.")
  (data (i32.const 0x8f0) "sent")
  (data (i32.const 0x8f8) "false")
  (data (i32.const 0x900) "Whether bytes sent count, not offsets.")
  (data (i32.const 0x930) "aging")
  (data (i32.const 0x938) "0")
  (data (i32.const 0x940) "100")
  (data (i32.const 0x950) "Consecutive timeouts that return a flow to the first class; 0: none.")
  (data (i32.const 0x9a0) "expired")
  (data (i32.const 0x9b0) "Retransmission timeouts."))
