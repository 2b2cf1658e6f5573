//! The exchange between the threads of a run, under every order in which they can act.
#![cfg(feature = "model")]

#[path = "../src/parallel/barrier.rs"]
mod barrier;
#[path = "../src/parallel/exchange.rs"]
#[allow(dead_code, missing_docs)]
mod exchange;

/// What threads meet by, of the model checker.
mod sync {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub use loom::sync::{Condvar, Mutex};

    /// Enough that a thread may find by a look what it would else sleep for.
    pub const SPINS: u32 = 3;
}

use exchange::{Exchange, Slate};
use loom::sync::Arc;

/// A part of two or three that meets with the others so many times: what it hears each time.
fn meet(exchange: &Exchange<Vec<u64>>, part: usize, times: u64) {
    for time in 0..times {
        let turn = (time % 2) as usize;
        for to in (0..exchange.parts()).filter(|to| *to != part) {
            let mut mail = vec![100 * time + part as u64];
            exchange.leave(turn, [part, to], &mut mail);
            assert!(mail.is_empty(), "mail of two meetings before has been read");
        }
        exchange.tell(turn, part, Slate { next: 10 * time + part as u64, ..Slate::default() });
        assert_eq!(exchange.wait(), Some(()));
        // Before anything is locked, which would be an order of its own.
        let told: Vec<u64> = exchange.slates(turn).map(|slate| slate.next).collect();
        assert_eq!(told, (0..exchange.parts()).map(|from| 10 * time + from as u64).collect::<Vec<_>>());
        let mut heard = Vec::new();
        exchange.take(turn, part, |mail| heard.append(mail));
        let others = (0..exchange.parts()).filter(|from| *from != part).map(|from| 100 * time + from as u64);
        assert_eq!(heard, others.collect::<Vec<_>>());
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
fn two_parts_hear_of_each_other_whatever_the_order() {
    explore(2, 3, Some(3));
}

#[test]
fn three_parts_hear_of_each_other_whatever_the_order() {
    explore(3, 2, Some(2));
}

/// A part fails before it comes to the meeting: the other does not wait.
#[test]
fn nobody_waits_for_a_part_that_has_failed() {
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
