//! Access without a check of bounds.

/// Returns an element of a slice.
#[inline(always)]
#[allow(unsafe_code)]
pub fn nth<T>(slice: &[T], n: usize) -> &T {
    debug_assert!(n < slice.len());
    // SAFETY: numbers of links, places, nodes and wakers come from `nodes::Windows::new`, which has made the
    // slices that they index. `Agenda::take` checks the length of its argument.
    unsafe { slice.get_unchecked(n) }
}
/// Returns an element of a slice, for changes.
#[inline(always)]
#[allow(unsafe_code)]
pub fn nth_mut<T>(slice: &mut [T], n: usize) -> &mut T {
    debug_assert!(n < slice.len());
    // SAFETY: see `nth`.
    unsafe { slice.get_unchecked_mut(n) }
}
