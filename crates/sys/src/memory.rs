//! Memory files and their shared mappings.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of a page. By the C library: tools such as valgrind hide the auxiliary vector, where it
/// could be read without.
fn page_size() -> usize {
    // SAFETY: asks for a constant.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Makes an anonymous memory file of `len` zero bytes, for its owner alone. Its length is final:
/// no process that maps it can cut it short under the others, whose next access would end them.
pub fn memory_file(name: &str, len: usize) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL).or_else(|_| {
        // Kernels before 6.3 do not know files that can never be executed.
        memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
    })?;
    fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    ftruncate(&fd, len as u64)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
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

    #[inline]
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
    #[inline]
    pub fn atomic_u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: in bounds, aligned, mapped as long as `self`; all access is atomic.
        unsafe { AtomicU64::from_ptr(self.check(offset, 8, 8).cast()) }
    }

    /// `N` double words from `offset` on, shared with other processes.
    #[inline]
    pub fn atomic_u64s<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        // SAFETY: in bounds, aligned, mapped as long as `self`; all access is atomic.
        unsafe { &*self.check(offset, 8 * N, 8).cast() }
    }

    /// Copies `bytes` to `offset`. The caller's protocol says that nobody else
    /// uses that range now.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.check(offset, bytes.len(), 1);
        // SAFETY: in bounds; a mapping never overlaps a Rust slice of other memory.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    /// Like [`Self::write`], past the caches: for more bytes than they hold. Its
    /// speed does not depend on how the two addresses lie to each other, as that
    /// of a plain copy does (by a factor of three to four, where both have nearly
    /// the same place in their pages).
    pub fn write_streaming(&self, offset: usize, bytes: &[u8]) {
        let target = self.check(offset, bytes.len(), 1);
        // SAFETY: in bounds; a mapping never overlaps a Rust slice of other memory.
        unsafe { stream(target, bytes) };
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

    /// Makes the pages of a range this process's own, with the bytes that they have
    /// now: what others write to the file later does not show. Whoever reads them
    /// meanwhile notices nothing.
    pub fn keep_own(&self, file: impl AsFd, offset: usize, len: usize) -> io::Result<()> {
        let begin = offset - offset % page_size();
        let len = (offset + len).min(self.len).saturating_sub(begin);
        if len == 0 {
            return Ok(());
        }
        let start = self.check(begin, len, page_size());
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the range is within our own mapping and stays mapped: the same file
        // pages take the place of themselves, so that every pointer into it stays good.
        unsafe {
            mmap(start.cast(), len, ProtFlags::READ | ProtFlags::WRITE, flags, file, begin as u64)?;
        }
        for at in (0..len).step_by(page_size()) {
            // SAFETY: in bounds. Writing a byte that is there makes the page our own.
            unsafe {
                let byte = start.add(at);
                byte.write_volatile(byte.read_volatile());
            }
        }
        Ok(())
    }

    /// Gives whole pages within a range back to the system, for everyone who maps
    /// the file: they read as zero afterwards. The caller's protocol says that
    /// nobody needs those bytes.
    pub fn discard(&self, offset: usize, len: usize) {
        let begin = offset.next_multiple_of(page_size());
        let end = (offset + len).min(self.len);
        self.advise(begin, end - end % page_size(), Advice::LinuxRemove);
    }

    /// Asks the kernel to back a range with pages now, in bulk. Only a hint.
    pub fn populate(&self, offset: usize, len: usize) {
        let begin = offset - offset % page_size();
        self.advise(begin, (offset + len).min(self.len), Advice::LinuxPopulateWrite);
    }

    fn advise(&self, begin: usize, end: usize, advice: Advice) {
        if begin >= end {
            return;
        }
        let start = self.check(begin, end - begin, 1).cast::<c_void>();
        // SAFETY: the range lies within this mapping. Of the advices given here, one
        // changes no bytes, the other those that by its caller's word nobody needs.
        let _ = unsafe { madvise(start, end - begin, advice) };
    }
}

/// Part of a file, to read where it is and to write to in private: the file, and
/// whoever else maps it, never sees what is written. Pages that were not written
/// to still show the file.
#[derive(Debug)]
pub struct PrivateMapping {
    mapping: Mapping,
    skip: usize,
    len: usize,
}

impl PrivateMapping {
    /// Maps `len` bytes at `offset` of `file`.
    pub fn new(file: impl AsFd, offset: usize, len: usize) -> io::Result<Self> {
        let skip = offset % page_size();
        let begin = offset - skip;
        let end = offset.checked_add(len).filter(|_| len > 0);
        if end
            .is_none_or(|end| rustix::fs::fstat(&file).map_or(0, |file| file.st_size) < end as i64)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the memory file is shorter than the mapping",
            ));
        }
        // SAFETY: a fresh address chosen by the kernel; nothing else is mapped there.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                skip + len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
                file,
                begin as u64,
            )
        }?;
        let start = NonNull::new(start.cast()).expect("mmap never returns null");
        Ok(Self { mapping: Mapping { start, len: skip + len }, skip, len })
    }

    /// First byte.
    pub fn start(&self) -> *mut u8 {
        self.mapping.check(self.skip, self.len, 1)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: it has at least one byte. Here for completeness beside `len`.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// # Safety
/// `target` is valid for writes of `bytes.len()` bytes that do not overlap `bytes`.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(target: *mut u8, bytes: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LANE: usize = size_of::<__m128i>();
    const STEP: usize = 4 * LANE;
    let head = target.align_offset(STEP).min(bytes.len());
    let (first, rest) = bytes.split_at(head);
    let (middle, last) = rest.split_at(rest.len() / STEP * STEP);
    // SAFETY: the three parts are those of `bytes`, at the same places of `target`;
    // after the head, `target` is aligned for whole lanes.
    unsafe {
        ptr::copy_nonoverlapping(first.as_ptr(), target, first.len());
        let to = target.add(head);
        for at in (0..middle.len()).step_by(STEP) {
            let from: *const __m128i = middle.as_ptr().add(at).cast();
            let to: *mut __m128i = to.add(at).cast();
            let lanes: [__m128i; 4] = std::array::from_fn(|lane| _mm_loadu_si128(from.add(lane)));
            for (lane, value) in lanes.into_iter().enumerate() {
                _mm_stream_si128(to.add(lane), value);
            }
        }
        ptr::copy_nonoverlapping(last.as_ptr(), to.add(middle.len()), last.len());
        // Streamed stores are ordered by nothing else.
        _mm_sfence();
    }
}

/// # Safety
/// `target` is valid for writes of `bytes.len()` bytes that do not overlap `bytes`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(target: *mut u8, bytes: &[u8]) {
    // SAFETY: the caller's.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours alone and nobody uses it after drop.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_file_is_private_and_keeps_its_length() {
        let file = memory_file("test", 8192).unwrap();
        let about = rustix::fs::fstat(&file).unwrap();
        assert_eq!((about.st_mode & 0o777, about.st_size), (0o600, 8192));
        for len in [0, 4096, 16384] {
            assert!(ftruncate(&file, len).is_err(), "{len}");
        }
        let mapping = Mapping::new(&file, 8192).unwrap();
        mapping.write(0, &[5; 8192]);
        mapping.discard(0, 8192);
        assert_eq!(mapping.bytes(0, 8192), vec![0; 8192], "its memory can still be given back");
    }

    #[test]
    fn what_is_discarded_reads_as_zero_and_no_more_than_that() {
        let (file, page) = (memory_file("test", 1 << 18).unwrap(), page_size());
        let mapping = Mapping::new(&file, 1 << 18).unwrap();
        mapping.populate(10, 1 << 18);
        mapping.write(0, &[5; 1 << 18]);
        // Only whole pages go.
        mapping.discard(1, 3 * page);
        assert_eq!(mapping.bytes(0, page), vec![5; page]);
        assert_eq!(mapping.bytes(page, 2 * page), vec![0; 2 * page]);
        assert_eq!(mapping.bytes(3 * page, 1), [5]);
        mapping.discard((1 << 18) - 1, 100);
        assert_eq!(mapping.bytes((1 << 18) - 1, 1), [5]);
    }

    #[test]
    fn what_is_written_in_private_stays_there() {
        let file = memory_file("test", 1 << 16).unwrap();
        let shared = Mapping::new(&file, 1 << 16).unwrap();
        shared.write(5000, &[7; 100]);
        let private = PrivateMapping::new(&file, 5000, 100).unwrap();
        // SAFETY: the mapping has a hundred bytes, and only this test uses them.
        let bytes = unsafe { std::slice::from_raw_parts_mut(private.start(), private.len()) };
        assert_eq!(bytes, [7; 100]);
        bytes.fill(9);
        assert_eq!(shared.bytes(5000, 100), [7; 100]);
        assert!(PrivateMapping::new(&file, 1 << 16, 1).is_err());
        assert!(PrivateMapping::new(&file, usize::MAX, 2).is_err());
    }

    #[test]
    fn a_streamed_copy_is_a_copy_at_any_place() {
        let file = memory_file("test", 1 << 16).unwrap();
        let mapping = Mapping::new(&file, 1 << 16).unwrap();
        let source: Vec<u8> = (0..10_000u32).map(|number| (number % 251) as u8).collect();
        for (offset, from, len) in
            [(0, 0, 10_000), (1, 3, 9_000), (63, 0, 1), (64, 1, 64), (17, 5, 130), (5, 0, 0)]
        {
            mapping.write(0, &[0; 11_000]);
            mapping.write_streaming(offset, &source[from..from + len]);
            assert_eq!(mapping.bytes(offset, len), &source[from..from + len]);
            assert!(mapping.bytes(0, offset).iter().all(|byte| *byte == 0));
            assert!(mapping.bytes(offset + len, 100).iter().all(|byte| *byte == 0));
        }
    }
}
