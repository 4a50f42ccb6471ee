//! Memory files and their shared mappings.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Makes an anonymous memory file of `len` zero bytes.
pub fn memory_file(name: &str, len: usize) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)?;
    ftruncate(&fd, len as u64)?;
    Ok(fd)
}

/// A shared, writable mapping of a whole file, unmapped on drop.
///
/// Other processes write to the same bytes, so no Rust reference to plain data
/// may be formed from it: read and write through atomics or raw copies.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is only an address range; every access through it is by
// atomics or raw copies whose rules the user of the mapping states.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`.
    pub fn new(file: impl AsFd, len: usize) -> io::Result<Self> {
        // A mapping past the end of its file faults on use: refuse it here.
        if rustix::fs::fstat(&file)?.st_size < len as i64 || len == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the memory file is shorter than the mapping",
            ));
        }
        // SAFETY: a fresh address chosen by the kernel; nothing else is mapped there.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).expect("mmap never returns null");
        Ok(Self { start, len })
    }

    /// First byte of the mapping.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a mapping has at least one byte. Here for completeness beside `len`.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn check(&self, offset: usize, len: usize, align: usize) -> *mut u8 {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len)
                && offset.is_multiple_of(align),
            "access outside of a mapping"
        );
        // SAFETY: just checked to lie within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// The word at `offset`, shared with other processes.
    pub fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: in bounds, aligned, mapped as long as `self`; all access is atomic.
        unsafe { AtomicU32::from_ptr(self.check(offset, 4, 4).cast()) }
    }

    /// The double word at `offset`, shared with other processes.
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: in bounds, aligned, mapped as long as `self`; all access is atomic.
        unsafe { AtomicU64::from_ptr(self.check(offset, 8, 8).cast()) }
    }

    /// Copies `bytes` to `offset`. The caller's protocol says that nobody else
    /// uses that range now.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.check(offset, bytes.len(), 1);
        // SAFETY: in bounds; a mapping never overlaps a Rust slice of other memory.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    /// Looks at bytes that the caller's protocol says nobody changes meanwhile:
    /// a published frame of a ring, a sealed object.
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let start = self.check(offset, len, 1);
        // SAFETY: in bounds, mapped as long as `self`, not written meanwhile.
        unsafe { std::slice::from_raw_parts(start, len) }
    }

    /// Lets `fill` write to a range that the caller's protocol says nobody else uses now: an
    /// extent given out and not yet sealed.
    pub fn fill<R>(&self, offset: usize, len: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let start = self.check(offset, len, 1);
        // SAFETY: in bounds, mapped as long as `self`, and used by nobody else meanwhile.
        fill(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Asks the kernel to back `range` with pages now, in bulk. Only a hint.
    pub fn populate(&self, offset: usize, len: usize) {
        const PAGE: usize = 4096;
        let begin = offset & !(PAGE - 1);
        let end = (offset + len).min(self.len);
        if begin >= end {
            return;
        }
        // SAFETY: the range lies within this mapping, and populating changes no bytes.
        let _ = unsafe {
            madvise(
                self.start.as_ptr().add(begin).cast::<c_void>(),
                end - begin,
                Advice::LinuxPopulateWrite,
            )
        };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours alone and nobody uses it after drop.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
