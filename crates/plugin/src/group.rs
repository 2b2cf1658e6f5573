//! Groups of machines: those of a part of a run, which is on one thread at a time.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    /// What the machines share that are created on this thread now. `None`: they are not in a group.
    static SHARED: RefCell<Option<Option<Rc<dyn Any>>>> = const { RefCell::new(None) };
}

/// Runs `build`. The machines that it creates on this thread are a group.
///
/// # Safety
///
/// The machines of a group are called and dropped on one thread at a time: they move to another thread together.
pub unsafe fn together<T>(build: impl FnOnce() -> T) -> T {
    struct Restore(Option<Option<Rc<dyn Any>>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SHARED.replace(self.0.take());
        }
    }
    let _restore = Restore(SHARED.replace(Some(None)));
    build()
}

/// Returns what a machine that is created now shares with the others of its group. `make` makes it for the first one, and for a machine
/// that is in no group.
pub fn shared<S: 'static>(make: impl FnOnce() -> S) -> Rc<S> {
    SHARED.with_borrow_mut(|shared| {
        let known = shared.as_ref().and_then(Option::as_ref).and_then(|known| Rc::clone(known).downcast().ok());
        known.unwrap_or_else(|| {
            let made = Rc::new(make());
            if let Some(shared) = shared {
                *shared = Some(Rc::clone(&made) as Rc<dyn Any>);
            }
            made
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether two machines share what they have.
    fn same(one: &Rc<u32>, other: &Rc<u32>) -> bool {
        Rc::ptr_eq(one, other)
    }

    #[test]
    fn machines_share_within_their_group_only() {
        let made = || shared(|| 7_u32);
        let group = || unsafe { together(|| [made(), made()]) };
        let ([one, two], [other, _]) = (group(), group());
        assert!(same(&one, &two) && !same(&one, &other));
        assert!(!same(&made(), &made()), "machines in no group are alone");
        // A group in a group, and what is made after a failure in it.
        let outer = unsafe {
            together(|| {
                let first = made();
                let inner = std::panic::catch_unwind(|| {
                    together(|| {
                        if *made() == 7 {
                            panic!("as a machine that fails")
                        }
                    })
                });
                assert!(inner.is_err());
                [first, made()]
            })
        };
        assert!(same(&outer[0], &outer[1]));
        // The group keeps nothing.
        let [last, _] = group();
        assert_eq!(Rc::strong_count(&last), 1);
    }
}
