;; Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) in the text format of WebAssembly, written by hand for the tests: DRR of
;; crates/plugin/new/qdisc/c/mine.c. In addition, packets are marked that leave more than `mark` others behind, and packets that do not wait count as turns.
;;
;; The layout is that of include/flowloom.h compiled for wasm32: pointers and functions are words of 32 bits.
(module
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 8 funcref)
  (elem (i32.const 1) $create $enqueue $dequeue $evict $on_dequeue $on_pass $count)

  ;; The discipline: limit_packets 0, limit_bytes 8, quantum 16, turns 24, deficit[8] 32, turn 96, begun 100, mark 104.

  (func $create (param $context i32) (param $own i32) (param $port i32) (param $values i32) (result i32)
    (i64.store (local.get $own) (i64.load offset=24 (local.get $port)))
    (i64.store offset=8 (local.get $own) (i64.load offset=32 (local.get $port)))
    (i64.store offset=16 (local.get $own) (i64.load (local.get $values)))
    (i64.store offset=104 (local.get $own) (i64.load offset=8 (local.get $values)))
    (i32.const 0))

  ;; The packet: prio 55. The place: rank 0, queue 8, trim_to 12, mark 16.
  (func $enqueue (param $own i32) (param $now i64) (param $view i32) (param $packet i32) (param $place i32) (result i32)
    (local $queue i32)
    (local.set $queue (i32.load8_u offset=55 (local.get $packet)))
    (i32.store offset=8 (local.get $place)
      (select (local.get $queue) (i32.const 7) (i32.lt_u (local.get $queue) (i32.const 8))))
    (i32.const 0))

  ;; The view: packets 0, bytes 8, queues 16. A queue: bytes 0, packets 8, first 12.
  (func $evict (param $own i32) (param $now i64) (param $view i32) (param $queue i32) (result i32)
    (local $i i32) (local $longest i32) (local $queues i32)
    (if (i32.and
          (i64.le_u (i64.load (local.get $view)) (i64.load (local.get $own)))
          (i64.le_u (i64.load offset=8 (local.get $view)) (i64.load offset=8 (local.get $own))))
      (then (return (i32.const 4))))
    (local.set $queues (i32.load offset=16 (local.get $view)))
    (local.set $i (i32.const 1))
    (loop $next
      (if (i64.gt_u
            (i64.load (i32.add (local.get $queues) (i32.shl (local.get $i) (i32.const 4))))
            (i64.load (i32.add (local.get $queues) (i32.shl (local.get $longest) (i32.const 4)))))
        (then (local.set $longest (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 8))))
    (i32.store (local.get $queue) (local.get $longest))
    (i32.const 0))

  (func $next_turn (param $own i32)
    (i32.store offset=96 (local.get $own)
      (i32.and (i32.add (i32.load offset=96 (local.get $own)) (i32.const 1)) (i32.const 7)))
    (i32.store offset=100 (local.get $own) (i32.const 0)))

  (func $one_turn (param $own i32)
    (i64.store offset=24 (local.get $own) (i64.add (i64.load offset=24 (local.get $own)) (i64.const 1))))

  (func $dequeue (param $own i32) (param $now i64) (param $view i32) (param $queue i32) (result i32)
    (local $turn i32) (local $at i32) (local $deficit i32) (local $packets i32) (local $first i64)
    (loop $next
      (local.set $turn (i32.load offset=96 (local.get $own)))
      (local.set $at (i32.add (i32.load offset=16 (local.get $view)) (i32.shl (local.get $turn) (i32.const 4))))
      (local.set $packets (i32.load offset=8 (local.get $at)))
      (local.set $first (i64.load32_u offset=12 (local.get $at)))
      ;; The address of the queue's deficit.
      (local.set $deficit (i32.add (i32.add (local.get $own) (i32.const 32)) (i32.shl (local.get $turn) (i32.const 3))))
      (if (i32.and (i32.ne (local.get $packets) (i32.const 0)) (i32.eqz (i32.load offset=100 (local.get $own))))
        (then
          (i64.store (local.get $deficit) (i64.add (i64.load (local.get $deficit)) (i64.load offset=16 (local.get $own))))
          (i32.store offset=100 (local.get $own) (i32.const 1))
          (call $one_turn (local.get $own))))
      (if (i32.and
            (i32.ne (local.get $packets) (i32.const 0))
            (i64.le_u (local.get $first) (i64.load (local.get $deficit))))
        (then
          (i64.store (local.get $deficit) (i64.sub (i64.load (local.get $deficit)) (local.get $first)))
          (i32.store (local.get $queue) (local.get $turn))
          ;; An empty queue keeps no deficit.
          (if (i32.eq (local.get $packets) (i32.const 1))
            (then
              (i64.store (local.get $deficit) (i64.const 0))
              (call $next_turn (local.get $own))))
          (return (i32.const 0))))
      (if (i32.eqz (local.get $packets)) (then (i64.store (local.get $deficit) (i64.const 0))))
      (call $next_turn (local.get $own))
      (br $next))
    unreachable)

  (func $on_dequeue (param $own i32) (param $now i64) (param $view i32) (param $packet i32) (result i32)
    (select (i32.const 5) (i32.const 0)
      (i64.gt_u (i64.load (local.get $view)) (i64.load offset=104 (local.get $own)))))

  (func $on_pass (param $own i32) (param $now i64) (param $packet i32) (result i32)
    (call $one_turn (local.get $own))
    (i32.const 0))

  (func $count (param $own i32) (result i32)
    (i32.add (local.get $own) (i32.const 24)))

  (func (export "flowloom_plugin") (result i32) (i32.const 1024))

  ;; The head: version, room, size of the table; sizes of flowloom_parameter and flowloom_counter, knows; sizes of the structures; name,
  ;; summary, source; parameters, counters; own_size, state_size; context, close, destroy, failure.
  (data (i32.const 1024)
    "\01\00\00\00" "\03\00\00\00" "\a8\00\00\00"
    "\20\00\00\00" "\0c\00\00\00" "\00\00\00\00"
    "\40\00\00\00" "\10\00\00\00" "\18\00\00\00" "\18\00\00\00" "\40\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00"
    "\00\08\00\00" "\10\08\00\00" "\50\08\00\00"
    "\00\05\00\00" "\02\00\00\00\00\00\00\00"
    "\00\07\00\00" "\00\00\00\00" "\01\00\00\00\00\00\00\00"
    "\70\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The rest: queues, marks; the functions from create to count.
  (data (i32.const 1152)
    "\08\00\00\00" "\01\00\00\00"
    "\01\00\00\00" "\02\00\00\00" "\03\00\00\00" "\04\00\00\00" "\05\00\00\00" "\06\00\00\00" "\07\00\00\00")

  ;; The parameters quantum and mark: name, default, lowest, highest, source, description, type.
  (data (i32.const 1280)
    "\80\08\00\00" "\90\08\00\00" "\98\08\00\00" "\a0\08\00\00" "\50\08\00\00" "\b0\08\00\00" "\04\00\00\00" "\00\00\00\00"
    "\e0\08\00\00" "\e8\08\00\00" "\f0\08\00\00" "\f8\08\00\00" "\50\08\00\00" "\00\09\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The counter turns: name, unit, description.
  (data (i32.const 1792) "\40\09\00\00" "\40\09\00\00" "\50\09\00\00")

  ;; Texts end with a zero byte, which the memory has.
  (data (i32.const 0x800) "drr_wat")
  (data (i32.const 0x810) "Deficit round robin in WebAssembly, by hand")
  (data (i32.const 0x850) "Shreedhar and Varghese, SIGCOMM 1995")
  (data (i32.const 0x880) "quantum")
  (data (i32.const 0x890) "1500B")
  (data (i32.const 0x898) "64B")
  (data (i32.const 0x8a0) "1MB")
  (data (i32.const 0x8b0) "Bytes that a queue may send in its turn.")
  (data (i32.const 0x8e0) "mark")
  (data (i32.const 0x8e8) "20")
  (data (i32.const 0x8f0) "0")
  (data (i32.const 0x8f8) "10000")
  (data (i32.const 0x900) "Packets left behind above which packets are marked.")
  (data (i32.const 0x940) "turns")
  (data (i32.const 0x950) "Turns of queues with packets."))
