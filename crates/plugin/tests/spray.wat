;; Packet spraying in turn, in the text format of WebAssembly, written by hand for the tests: src/router/example.rs, and paths that are planned
;; as by the router ecmp.
;;
;; The layout is that of include/flowloom.h compiled for wasm32: pointers and functions are words of 32 bits.
(module
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 5 funcref)
  (elem (i32.const 1) $create $choose $open $decide)

  ;; The router: nodes 0. The state of a switch: node 0, number of sets 8; from 16 on, a set of next hops: its first link 0, its turn 8.

  (func $create (param $context i32) (param $own i32) (param $network i32) (param $values i32) (result i32)
    (i64.store (local.get $own) (i64.load (local.get $network)))
    (i32.const 0))

  ;; The choice: now_ps 0, node 8, flow 16, src 24, dst 28, src_port 32, dst_port 36, protocol 40, hash 44.
  (func $choose (param $own i32) (param $hop i32) (param $candidates i32) (param $count i64) (param $index i32) (result i32)
    (local $x i32) (local $chosen i64)
    (local.set $x (i32.xor (i32.load offset=44 (local.get $hop)) (i32.wrap_i64 (i64.load offset=8 (local.get $hop)))))
    (local.set $x (i32.mul (local.get $x) (i32.const 0x9E3779B1)))
    (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 15))))
    (local.set $x (i32.mul (local.get $x) (i32.const 0x85EBCA77)))
    (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 13))))
    ;; Regions of equal size (RFC 2992).
    (local.set $chosen
      (i64.div_u (i64.extend_i32_u (local.get $x)) (i64.div_u (i64.const 0x100000000) (local.get $count))))
    (i64.store (local.get $index)
      (select (local.get $chosen) (i64.sub (local.get $count) (i64.const 1)) (i64.lt_u (local.get $chosen) (local.get $count))))
    (i32.const 0))

  (func $open (param $own i32) (param $state i32) (param $node i64) (result i32)
    (i64.store (local.get $state) (local.get $node))
    (i32.const 0))

  ;; A next hop: link 0, rate_bps 8, waiting 16, busy 24.
  (func $decide
    (param $own i32) (param $state i32) (param $hop i32) (param $packet i32) (param $candidates i32) (param $count i64) (param $index i32)
    (result i32)
    (local $at i32) (local $end i32) (local $chosen i64)
    ;; The state is that of this switch, and the switch is a node of the network.
    (if (i64.ne (i64.load (local.get $state)) (i64.load offset=8 (local.get $hop))) (then (return (i32.const -1))))
    (if (i64.ge_u (i64.load (local.get $state)) (i64.load (local.get $own))) (then (return (i32.const -1))))
    (local.set $at (i32.add (local.get $state) (i32.const 16)))
    (local.set $end (i32.add (local.get $at) (i32.shl (i32.load offset=8 (local.get $state)) (i32.const 4))))
    (block $found
      (loop $next
        (if (i32.eq (local.get $at) (local.get $end))
          (then
            (i64.store (local.get $at) (i64.load (local.get $candidates)))
            (i64.store offset=8 (local.get $state) (i64.add (i64.load offset=8 (local.get $state)) (i64.const 1)))
            (br $found)))
        (br_if $found (i64.eq (i64.load (local.get $at)) (i64.load (local.get $candidates))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))
    (local.set $chosen (i64.rem_u (i64.load offset=8 (local.get $at)) (local.get $count)))
    (i64.store offset=8 (local.get $at) (i64.add (local.get $chosen) (i64.const 1)))
    (i64.store (local.get $index) (local.get $chosen))
    (i32.const 0))

  (func (export "flowloom_plugin") (result i32) (i32.const 1024))

  ;; The head: version, room, size of the table; sizes of flowloom_parameter and flowloom_counter, knows; sizes of the structures; name,
  ;; summary, source; parameters, counters; own_size, state_size; context, close, destroy, failure.
  (data (i32.const 1024)
    "\01\00\00\00" "\04\00\00\00" "\98\00\00\00"
    "\20\00\00\00" "\0c\00\00\00" "\00\00\00\00"
    "\28\00\00\00" "\30\00\00\00" "\20\00\00\00" "\40\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00"
    "\00\08\00\00" "\10\08\00\00" "\40\08\00\00"
    "\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\08\00\00\00\00\00\00\00" "\10\04\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The rest: decides, loads; the functions from create to decide.
  (data (i32.const 1152)
    "\02\00\00\00" "\00\00\00\00"
    "\01\00\00\00" "\02\00\00\00" "\03\00\00\00" "\04\00\00\00")

  ;; Texts end with a zero byte, which the memory has.
  (data (i32.const 0x800) "spray_wat")
  (data (i32.const 0x810) "Packet spraying in WebAssembly, by hand")
  (data (i32.const 0x840) "Cao et al., CoNEXT 2013, section 3"))
