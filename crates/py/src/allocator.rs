//! The allocator of the extension module. In the command line, a failed allocation ends the process
//! with a message of one line and exit code 5, instead of an abort with a backtrace.
//!
//! The hook for failed allocations in the standard library is unstable, and an allocator can only
//! be replaced by unsafe code. Each function passes its arguments on to the system's allocator and
//! adds one branch that is taken only if an allocation fails.
//!
//! In Python programs that use flowloom as a library, the standard library aborts the process: a
//! library must not choose the exit code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Checked = Checked;

/// Whether this process is the command line.
static COMMAND_LINE: AtomicBool = AtomicBool::new(false);

/// Makes failed allocations end the process with exit code 5 from now on.
pub fn set_command_line() {
    COMMAND_LINE.store(true, Relaxed);
}

/// The system's allocator with a check of its result.
struct Checked;

// SAFETY: each function passes its arguments on to the system's allocator and returns what that returns.
unsafe impl GlobalAlloc for Checked {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is that of the system's allocator.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(old, layout, size) }, size)
    }
    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        failed(bytes);
    }
    memory
}

unsafe extern "C" {
    /// Ends the process immediately. No exit handler may run, because it could need memory or a
    /// lock that this thread holds.
    safe fn _exit(code: std::ffi::c_int) -> !;
}

#[cold]
#[inline(never)]
fn failed(bytes: usize) {
    if !COMMAND_LINE.load(Relaxed) {
        return;
    }
    // Nothing here allocates or locks.
    let mut line = [0; 160];
    let mut text = Cursor::new(&mut line[..]);
    let hint = "the run is too large for this machine, or for the memory limit of the process";
    let _ = writeln!(text, "error: no memory is left: {bytes} more bytes could not be allocated; {hint}");
    let length = text.position() as usize;
    write(&line[..length]);
    _exit(i32::from(cli::exit::STORAGE));
}

/// Writes to standard error. Takes no lock, because the thread that holds the lock may wait for
/// memory too.
#[cfg(unix)]
fn write(line: &[u8]) {
    use std::os::fd::FromRawFd as _;
    // SAFETY: the file is never dropped, so that the descriptor stays open.
    let mut err = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(2) });
    let _ = err.write_all(line);
}

/// Writes to standard error. Takes its lock, because only Unix has a descriptor 2 to write to.
#[cfg(not(unix))]
fn write(line: &[u8]) {
    let _ = std::io::stderr().write_all(line);
}
