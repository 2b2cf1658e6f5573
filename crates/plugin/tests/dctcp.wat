;; DCTCP (RFC 8257 section 3) in the text format of WebAssembly, written by hand for the tests: the same arithmetic as crates/plugin/new/transport/c/mine.c.
;;
;; The layout is that of include/flowloom.h compiled for wasm32: pointers and functions are words of 32 bits. All numbers are whole: alpha is in
;; parts per billion, the window in bytes, both rounded down. Products are below 2^64 for windows and bytes per round trip below 9 GB.
(module
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 7 funcref)
  (elem (i32.const 1) $create $open $on_ack $on_loss $on_mark $inherit)

  ;; The controller: smss 0, g 8, alpha 16, min_cwnd 24. The state: owed 0, alpha 8, window_end 16, acked 24, marked 32.

  (func $create (param $context i32) (param $own i32) (param $host i32) (param $values i32) (result i32)
    (i64.store (local.get $own) (i64.load (local.get $host)))
    (i64.store offset=8 (local.get $own) (i64.load (local.get $values)))
    (i64.store offset=16 (local.get $own) (i64.load offset=8 (local.get $values)))
    (i64.store offset=24 (local.get $own) (i64.mul (i64.load offset=16 (local.get $values)) (i64.load (local.get $host))))
    (i32.const 0))

  (func $open (param $own i32) (param $state i32) (param $flow i32) (result i32)
    (i64.store offset=8 (local.get $state) (i64.load offset=16 (local.get $own)))
    (i32.const 0))

  (func $inherit (param $own i32) (param $state i32) (param $before i32) (result i32)
    (i64.store offset=8 (local.get $state) (i64.load offset=8 (local.get $before)))
    (i32.const 0))

  ;; The acknowledgment: acked 8, slow_start 16, snd_una 24, snd_nxt 32, and the bytes ece 64, window_limited 65, may_change 66. The
  ;; window: cwnd 0, ssthresh 8.
  (func $on_ack (param $own i32) (param $state i32) (param $window i32) (param $ack i32) (result i32)
    (local $new i64) (local $acked i64) (local $marked i64) (local $cwnd i64) (local $owed i64) (local $more i64) (local $flags i32)
    (local.set $new (i64.load offset=8 (local.get $ack)))
    (local.set $flags (i32.load offset=64 (local.get $ack)))
    ;; RFC 8257 section 3.3, steps 1 to 3.
    (local.set $acked (i64.add (i64.load offset=24 (local.get $state)) (local.get $new)))
    (local.set $marked (i64.load offset=32 (local.get $state)))
    (if (i32.and (local.get $flags) (i32.const 0xff))
      (then (local.set $marked (i64.add (local.get $marked) (local.get $new)))))
    ;; Steps 4 to 8.
    (if (i64.gt_u (i64.load offset=24 (local.get $ack)) (i64.load offset=16 (local.get $state)))
      (then
        (i64.store offset=8 (local.get $state)
          (i64.div_u
            (i64.add
              (i64.mul (i64.load offset=8 (local.get $state)) (i64.sub (i64.const 1000000000) (i64.load offset=8 (local.get $own))))
              (i64.mul
                (i64.div_u (i64.mul (local.get $marked) (i64.const 1000000000)) (local.get $acked))
                (i64.load offset=8 (local.get $own))))
            (i64.const 1000000000)))
        (i64.store offset=16 (local.get $state) (i64.load offset=32 (local.get $ack)))
        (local.set $acked (i64.const 0))
        (local.set $marked (i64.const 0))))
    (i64.store offset=24 (local.get $state) (local.get $acked))
    (i64.store offset=32 (local.get $state) (local.get $marked))
    ;; The window grows if it may, and if it limits the sender.
    (if (i32.ne (i32.and (local.get $flags) (i32.const 0x010100)) (i32.const 0x010100)) (then (return (i32.const 0))))
    (local.set $cwnd (i64.load (local.get $window)))
    (if (i64.lt_u (local.get $cwnd) (i64.load offset=8 (local.get $window)))
      (then
        (i64.store (local.get $window) (i64.add (local.get $cwnd) (i64.load offset=16 (local.get $ack))))
        (return (i32.const 0))))
    ;; One segment per window of bytes acknowledged.
    (local.set $owed (i64.add (i64.load (local.get $state)) (i64.mul (i64.load (local.get $own)) (local.get $new))))
    (local.set $more (i64.div_u (local.get $owed) (local.get $cwnd)))
    (i64.store (local.get $window) (i64.add (local.get $cwnd) (local.get $more)))
    (i64.store (local.get $state) (i64.sub (local.get $owed) (i64.mul (local.get $more) (local.get $cwnd))))
    (i32.const 0))

  (func $most_of (param $a i64) (param $b i64) (result i64)
    (select (local.get $a) (local.get $b) (i64.gt_u (local.get $a) (local.get $b))))

  (func $on_mark (param $own i32) (param $state i32) (param $window i32) (param $ack i32) (param $cwnd i32) (result i32)
    ;; Step 9.
    (i64.store (local.get $cwnd)
      (call $most_of
        (i64.div_u
          (i64.mul (i64.load (local.get $window)) (i64.sub (i64.const 2000000000) (i64.load offset=8 (local.get $state))))
          (i64.const 2000000000))
        (i64.load offset=24 (local.get $own))))
    (i32.const 0))

  (func $on_loss (param $own i32) (param $state i32) (param $window i32) (param $loss i32) (param $ssthresh i32) (result i32)
    ;; RFC 5681 eq. 4.
    (i64.store (local.get $ssthresh)
      (call $most_of
        (i64.shr_u (i64.load (local.get $loss)) (i64.const 1))
        (i64.shl (i64.load (local.get $own)) (i64.const 1))))
    (i32.const 0))

  (func (export "flowloom_plugin") (result i32) (i32.const 1024))

  ;; The head: version, room, size of the table; sizes of flowloom_parameter and flowloom_counter, knows; sizes of the structures; name,
  ;; summary, source; parameters, counters; own_size, state_size; context, close, destroy, failure.
  (data (i32.const 1024)
    "\01\00\00\00" "\01\00\00\00" "\b8\00\00\00"
    "\20\00\00\00" "\0c\00\00\00" "\00\00\00\00"
    "\28\00\00\00" "\20\00\00\00" "\10\00\00\00" "\48\00\00\00" "\10\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00"
    "\00\08\00\00" "\10\08\00\00" "\30\08\00\00"
    "\00\05\00\00" "\03\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\20\00\00\00\00\00\00\00" "\28\00\00\00\00\00\00\00"
    "\00\00\00\00" "\00\00\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; The rest: ecn, shares; the functions from create to on_mark, inherit. The others do not exist.
  (data (i32.const 1152)
    "\02\00\00\00" "\01\00\00\00"
    "\01\00\00\00" "\02\00\00\00" "\03\00\00\00" "\04\00\00\00" "\05\00\00\00")
  (data (i32.const 1196) "\06\00\00\00")

  ;; The parameters g, alpha and min_cwnd: name, default, lowest, highest, source, description, type.
  (data (i32.const 1280)
    "\40\08\00\00" "\50\08\00\00" "\58\08\00\00" "\68\08\00\00" "\30\08\00\00" "\70\08\00\00" "\02\00\00\00" "\00\00\00\00"
    "\b0\08\00\00" "\68\08\00\00" "\6c\08\00\00" "\68\08\00\00" "\30\08\00\00" "\c0\08\00\00" "\02\00\00\00" "\00\00\00\00"
    "\e0\08\00\00" "\68\08\00\00" "\68\08\00\00" "\f0\08\00\00" "\30\08\00\00" "\00\09\00\00" "\00\00\00\00" "\00\00\00\00")

  ;; Texts end with a zero byte, which the memory has.
  (data (i32.const 0x800) "dctcp_wat")
  (data (i32.const 0x810) "DCTCP in WebAssembly, by hand")
  (data (i32.const 0x830) "RFC 8257")
  (data (i32.const 0x840) "g")
  (data (i32.const 0x850) "0.0625")
  (data (i32.const 0x858) "0.000000001")
  (data (i32.const 0x868) "1")
  (data (i32.const 0x86c) "0")
  (data (i32.const 0x870) "Gain: the weight of one window of observation in alpha.")
  (data (i32.const 0x8b0) "alpha")
  (data (i32.const 0x8c0) "Initial value of alpha.")
  (data (i32.const 0x8e0) "min_cwnd")
  (data (i32.const 0x8f0) "2")
  (data (i32.const 0x900) "Smallest window in segments after a mark."))
