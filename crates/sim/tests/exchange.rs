//! The exchange between the threads of a run, tested under every order in which the threads can act.
#![cfg(feature = "model")]

#[path = "../src/parallel/barrier.rs"]
mod barrier;
#[path = "../src/parallel/exchange.rs"]
#[allow(dead_code, missing_docs)]
mod exchange;

/// The synchronisation primitives of the model checker.
mod sync {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub use loom::sync::{Condvar, Mutex};

    /// Enough for a thread to find a result by polling instead of sleeping.
    pub const SPINS: u32 = 3;
}

use exchange::{Exchange, PartStatus};
use loom::sync::Arc;

/// Runs a part that meets the other parts `times` times, and checks what it receives each time.
fn meet(exchange: &Exchange<Vec<u64>>, part: usize, times: u64) {
    for time in 0..times {
        let turn = (time % 2) as usize;
        for to in (0..exchange.parts()).filter(|to| *to != part) {
            let mut message = vec![100 * time + part as u64];
            exchange.leave(turn, [part, to], &mut message);
            assert!(message.is_empty(), "the message of two meetings before was not read");
        }
        exchange.publish(turn, part, PartStatus { next: 10 * time + part as u64, ..PartStatus::default() });
        assert_eq!(exchange.wait(), Some(()));
        // Read the statuses before anything is locked, since a lock would order the threads by itself.
        let statuses: Vec<u64> = exchange.statuses(turn).map(|status| status.next).collect();
        assert_eq!(statuses, (0..exchange.parts()).map(|from| 10 * time + from as u64).collect::<Vec<_>>());
        let mut received = Vec::new();
        exchange.take(turn, part, |message| received.append(message));
        let others = (0..exchange.parts()).filter(|from| *from != part).map(|from| 100 * time + from as u64);
        assert_eq!(received, others.collect::<Vec<_>>());
    }
}

fn explore(parts: usize, times: u64, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let exchange = Arc::new(Exchange::new(parts, parts));
        let others: Vec<_> = (1..parts)
            .map(|part| {
                let exchange = Arc::clone(&exchange);
                loom::thread::spawn(move || meet(&exchange, part, times))
            })
            .collect();
        meet(&exchange, 0, times);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn two_parts_get_each_others_messages_in_every_order() {
    explore(2, 3, Some(3));
}

#[test]
fn three_parts_get_each_others_messages_in_every_order() {
    explore(3, 2, Some(2));
}

/// A part fails before it arrives at the barrier: the other part does not wait.
#[test]
fn no_part_waits_for_a_part_that_has_failed() {
    loom::model(|| {
        let exchange = Arc::new(Exchange::<Vec<u64>>::new(2, 2));
        let other = {
            let exchange = Arc::clone(&exchange);
            loom::thread::spawn(move || {
                let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    exchange.guard(|| std::panic::resume_unwind(Box::new("fails")));
                }));
                assert!(failed.is_err());
            })
        };
        assert_eq!(exchange.guard(|| exchange.wait()), None);
        other.join().unwrap();
    });
}
