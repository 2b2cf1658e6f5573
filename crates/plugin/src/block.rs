//! Blocks of bytes of plug-ins.

use std::cell::UnsafeCell;
use std::ffi::c_void;

/// Sixteen bytes of a block.
#[repr(C, align(16))]
struct Chunk(UnsafeCell<[u8; 16]>);

impl Chunk {
    const fn zero() -> Chunk {
        Chunk(UnsafeCell::new([0; 16]))
    }
}

/// A block of bytes of a plug-in: a machine, or a state. `NEAR` chunks need no memory of their own: the states
/// of most protocols fit in three.
pub struct Block<const NEAR: usize = 3> {
    near: [Chunk; NEAR],
    /// Larger blocks. Boxed twice, so that the block of a flow is one cache line.
    far: Option<Box<Box<[Chunk]>>>,
    end: Option<unsafe extern "C" fn(*mut c_void)>,
}

// Safety: a plug-in may be called on any thread, for one machine on one thread at a time.
unsafe impl<const NEAR: usize> Send for Block<NEAR> {}

impl<const NEAR: usize> Block<NEAR> {
    /// Creates a block of zeros.
    pub(crate) fn new(bytes: u64) -> Self {
        let chunks = bytes.div_ceil(16) as usize;
        let far = (chunks > NEAR).then(|| Box::new((0..chunks).map(|_| Chunk::zero()).collect()));
        Block { near: [const { Chunk::zero() }; NEAR], far, end: None }
    }
    /// Sets the function that ends the block when it is dropped: call it after the block is filled.
    pub(crate) fn ends_with(&mut self, end: Option<unsafe extern "C" fn(*mut c_void)>) {
        self.end = end;
    }
    /// Returns its address, which is valid while the block does not move.
    #[inline(always)]
    pub(crate) fn at(&self) -> *mut c_void {
        match &self.far {
            None => self.near.as_ptr().cast_mut().cast(),
            Some(far) => far.as_ptr().cast_mut().cast(),
        }
    }
}

impl<const NEAR: usize> Drop for Block<NEAR> {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // Safety: the block is filled.
            unsafe { end(self.at()) }
        }
    }
}
