//! Protocol headers: plain integers packed into the 16 bytes that every packet has for its protocol, or, when they need more,
//! into a block of the extension slab.

/// A protocol header as eight-byte words. Written by [`header!`](crate::header!).
pub trait Header: Copy {
    /// Words used.
    const WORDS: usize;
    /// Puts the header into words; those it does not use stay as they are.
    fn pack(self, words: &mut [u64]);
    /// Reads the header back.
    fn unpack(words: &[u64]) -> Self;
}

/// Declares a header: a `Copy` struct of integers, one word a field.
///
/// ```
/// base::header! {
///     /// An acknowledged block.
///     pub struct Block { start: u64, end: u64 }
/// }
/// use base::header::Header;
/// let mut words = [0; 2];
/// Block { start: 3, end: 9 }.pack(&mut words);
/// assert_eq!(Block::unpack(&words).end, 9);
/// ```
#[macro_export]
macro_rules! header {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),* }
        impl $crate::header::Header for $name {
            const WORDS: usize = [$(stringify!($field)),*].len();
            #[inline]
            fn pack(self, words: &mut [u64]) {
                let values = [$(self.$field as u64),*];
                words[..values.len()].copy_from_slice(&values);
            }
            #[inline]
            #[allow(clippy::unnecessary_cast)]
            fn unpack(words: &[u64]) -> Self {
                let mut words = words.iter();
                $(let $field = *words.next().expect("a header fits the words it was packed into") as $ty;)*
                $name { $($field),* }
            }
        }
    };
}
