// SPDX-License-Identifier: Apache-2.0
//! Words that several processes see, and words that a forked child does not; a lock that a child shares.

use crate::os;
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The permissions of group and others; an access control list shows in the group's.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The beginning of a file as atomic words, shared with every process that maps it.
///
/// The file must not be cut while it is mapped: anyone who touches a word behind its end gets
/// `SIGBUS`. So only a file that no other user may write is mapped, and both users (counters, a
/// store's generation) only ever lengthen it: this user and root can end the process anyway. Or one
/// is mapped that is sealed: [`Offered`].
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: what is shared is atomic words; the mapping belongs to no thread.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Opens a file and maps its first `count` words; makes it with permissions `mode` where it is
    /// missing, and longer where it is too short. Links are not followed.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidInput`] when it is no regular file.
    pub fn create(path: &Path, count: usize, mode: u32) -> io::Result<Self> {
        // The standard library sets O_CLOEXEC itself. O_NONBLOCK: a FIFO in the file's place must
        // not hold the caller up.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).mode(mode).custom_flags(flags);
        let file = options.open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if metadata.len() < (count * 8) as u64 {
            file.set_len((count * 8) as u64)?;
        }
        Self::map(&file, count)
    }

    /// Writes zeros to words of a file that were never written: in a hole the first store to the mapping
    /// needs space, and where there is none the process gets `SIGBUS`.
    ///
    /// # Errors
    /// What the system says, above all that there is no space.
    pub fn reserve(path: &Path, words: Range<usize>) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.open(path)?.write_all_at(&vec![0; words.len() * 8], (words.start * 8) as u64)
    }

    /// Maps the first `count` words of a file that is open for reading and writing and at least so
    /// long, and that only this user may write.
    ///
    /// # Errors
    /// What `mmap` says; [`io::ErrorKind::UnexpectedEof`] when the file is shorter,
    /// [`io::ErrorKind::PermissionDenied`] when others may cut it.
    pub fn map(file: &File, count: usize) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.len() < (count * 8) as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let user = rustix::process::geteuid().as_raw();
        if metadata.uid() != user || metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let start = os::map(count * 8, os::ACCESS, libc::MAP_SHARED, file.as_raw_fd())?;
        Ok(Self { start: start.cast(), count })
    }

    /// The words.
    #[must_use]
    pub const fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words, is aligned to a page, and lives as long as `self`;
        // anyone who else has it may only read and write it, which atomics allow.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * 8) };
    }
}

/// The mapping of a memfd that another process has, too, which is not touched yet: a page that this process takes away is one that the
/// next touch has to make anew, and where there is no memory for it, that is `SIGBUS`.
#[derive(Debug)]
pub struct Offered {
    words: SharedWords,
    file: File,
}

/// What its maker sets: with these its length stays.
const LENGTH: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// Without writable mappings of later, nor `write`, no hole is punched either; and with the last one no seal is set later.
const CONTENT: SealFlags = SealFlags::FUTURE_WRITE.union(SealFlags::SEAL);

impl Offered {
    /// Maps all `count` words of a file of exactly this length, which is sealed against a change of it.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidInput`] when it is another length,
    /// [`io::ErrorKind::PermissionDenied`] when its length could be changed.
    pub fn map(file: File, count: usize) -> io::Result<Self> {
        // Before it is mapped: no file but a memfd has these seals.
        sealed(&file, LENGTH)?;
        if file.metadata()?.len() != (count * 8) as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = os::map(count * 8, os::ACCESS, libc::MAP_SHARED, file.as_raw_fd())?;
        // A forked child would ask in the name of its parent, and read what that is answered.
        for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
            // SAFETY: the mapping is new, and nothing in it changes.
            unsafe { libc::madvise(start.as_ptr().cast(), count * 8, advice) };
        }
        Ok(Self { words: SharedWords { start: start.cast(), count }, file })
    }

    /// Seals the file, and has all of its pages there: no process can take one away from then on, so that no touch is `SIGBUS`. Who has it
    /// mapped by now can write to it, and later mappings are for reading only. Either process may seal it, or both.
    ///
    /// # Errors
    /// What the system says: before Linux 5.1 there is no such seal, or there is no memory;
    /// [`io::ErrorKind::PermissionDenied`] when another process has sealed it in another way.
    pub fn keep(self) -> io::Result<SharedWords> {
        // It fails where the other process was first.
        if fcntl_add_seals(&self.file, LENGTH | CONTENT).is_err() {
            sealed(&self.file, LENGTH | CONTENT)?;
        }
        // After the seals: what was punched before is there again.
        fallocate(&self.file, FallocateFlags::empty(), 0, (self.words.count * 8) as u64)?;
        Ok(self.words)
    }
}

/// Whether it has all of these seals.
fn sealed(file: &File, wanted: SealFlags) -> io::Result<()> {
    let has_all = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(wanted));
    has_all.then_some(()).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

/// How many words [`wiped_on_fork`] gives.
pub const WIPED_WORDS: usize = 8;

/// Words that are zero at first and zero again in a forked child, also in one that was made without
/// the C library's knowledge: how a call notices the fork without asking the kernel. They are never
/// given back.
///
/// # Errors
/// What `mmap` or `madvise` says (Linux before 4.14 cannot do this).
pub fn wiped_on_fork() -> io::Result<&'static [AtomicU64; WIPED_WORDS]> {
    /// Most of a process are in one page: a child has one fault for all of them.
    static FIRST: OnceLock<&'static WipedPage> = OnceLock::new();
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    let first = match FIRST.get() {
        Some(first) => first,
        None => {
            let new = wiped_page()?;
            FIRST.get_or_init(|| new)
        }
    };
    match first.get(GIVEN.fetch_add(1, Ordering::Relaxed)) {
        Some(words) => Ok(words),
        None => Ok(&wiped_page()?[0]),
    }
}

/// Cache lines of words.
type WipedPage = [[AtomicU64; WIPED_WORDS]; 64];

fn wiped_page() -> io::Result<&'static WipedPage> {
    let length = size_of::<WipedPage>();
    let start = os::map_anonymous(length, os::ACCESS, 0)?;
    // SAFETY: the mapping was made above and no other code knows its address.
    let wiped = unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_WIPEONFORK) };
    if wiped != 0 {
        let error = io::Error::last_os_error();
        // SAFETY: as above.
        unsafe { libc::munmap(start.as_ptr().cast(), length) };
        return Err(error);
    }
    // SAFETY: the mapping is as large as the page, aligned to one, zero, and stays for ever.
    Ok(unsafe { start.cast().as_ref() })
}

/// Takes a shared lock of one byte for as long as the file is open, here or in a child that has inherited it. Says whether
/// that worked; it waits for no one.
pub fn share_byte(file: impl AsFd, at: i64) -> bool {
    lock(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, libc::F_RDLCK, at, 1).is_ok()
}

/// Takes an exclusive lock of a whole file for as long as this file is open, here or in a child that has inherited it, whatever else the
/// process opens and closes by the same name. It waits for no one.
///
/// # Errors
/// `EAGAIN` where another process, or another open file of this one, has it; `EINVAL` where there are no such locks.
pub fn lock_whole(file: impl AsFd) -> io::Result<()> {
    lock(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, 0, 0).map(drop)
}

/// Gives up what [`lock_whole`] took, for a child that has inherited the file as well.
///
/// # Errors
/// What the system says.
pub fn unlock_whole(file: impl AsFd) -> io::Result<()> {
    lock(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, libc::F_UNLCK, 0, 0).map(drop)
}

/// Whether any process, this one included, has an exclusive lock on one of so many bytes of the file that is open by this number. Where
/// the system does not say, none has.
#[must_use]
pub fn has_locked(number: RawFd, at: i64, length: i64) -> bool {
    let found = lock(number, libc::F_OFD_GETLK, libc::F_RDLCK, at, length);
    found.is_ok_and(|found| libc::c_int::from(found.l_type) != libc::F_UNLCK)
}

/// Sets a lock of an open file description, or finds what would be in its way; a length of 0 reaches to the end.
fn lock(
    number: RawFd,
    command: libc::c_int,
    kind: libc::c_int,
    start: i64,
    length: i64,
) -> io::Result<libc::flock> {
    let small = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    let mut lock = libc::flock {
        l_type: small(kind),
        l_whence: small(libc::SEEK_SET),
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: reads the structure, or writes it too.
    match unsafe { libc::fcntl(number, command, &raw mut lock) } {
        0 => Ok(lock),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Device and inode of the file that is open by this number, ours or not.
#[must_use]
pub fn file_at(number: RawFd) -> Option<(u64, u64)> {
    if number < 0 {
        return None;
    }
    // SAFETY: it is never closed by this; that another thread may close it makes the look fail, or look at another file.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
    file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::per_process::tests::is_so_in_a_child;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_forked_child_finds_the_words_wiped() {
        let words = wiped_on_fork().expect("this kernel wipes on fork");
        words[3].store(7, Ordering::SeqCst);
        assert!(is_so_in_a_child(|| words[3].load(Ordering::SeqCst) == 0));
        assert_eq!(words[3].load(Ordering::SeqCst), 7);
    }

    #[test]
    fn a_number_tells_what_is_open_by_it() {
        let path = std::env::current_exe().expect("it has a path");
        let file = File::open(&path).expect("it opens");
        let metadata = std::fs::metadata(&path).expect("it is there");
        assert_eq!(file_at(file.as_raw_fd()), Some((metadata.dev(), metadata.ino())));
        assert_eq!((file_at(-1), file_at(RawFd::MAX)), (None, None));
    }

    #[test]
    fn what_another_process_offered_has_no_forked_child_and_no_core_dump() {
        let file =
            memfd_create(c"metaslot-offered", MemfdFlags::ALLOW_SEALING).expect("it is made");
        ftruncate(&file, 4096).expect("it grows");
        fcntl_add_seals(&file, LENGTH).expect("it takes seals");
        let _offered = Offered::map(file.into(), 512).expect("it keeps its length");
        let mappings = std::fs::read_to_string("/proc/self/smaps").expect("the kernel tells");
        let (_, ours) = mappings.split_once("metaslot-offered").expect("it is mapped");
        let flags = ours.lines().find_map(|line| line.strip_prefix("VmFlags:"));
        let flags = Vec::from_iter(flags.expect("it has some").split_whitespace());
        assert!(["dc", "dd"].iter().all(|flag| flags.contains(flag)), "{flags:?}");
    }

    #[test]
    fn two_mappings_of_one_file_are_the_same_words() {
        let path = std::env::temp_dir().join(format!("metaslot-words-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .expect("a file can be made");
        assert!(SharedWords::map(&file, 4).is_err(), "an empty file has no words");
        file.set_len(32).expect("the file can grow");
        let one = SharedWords::map(&file, 4).expect("it maps");
        let other = SharedWords::map(&file, 4).expect("it maps twice");
        one.words()[2].store(9, Ordering::SeqCst);
        assert_eq!(other.words()[2].load(Ordering::SeqCst), 9);
        let third = SharedWords::create(&path, 8, 0o600).expect("it grows");
        assert_eq!(third.words()[2].load(Ordering::SeqCst), 9);
        std::fs::remove_file(&path).expect("the file goes");
    }

    #[test]
    fn a_file_that_others_may_cut_is_not_mapped() {
        let path = std::env::temp_dir().join(format!("metaslot-cut-{}", std::process::id()));
        drop(SharedWords::create(&path, 4, 0o600).expect("it is ours alone"));
        let file = File::options().read(true).write(true).open(&path).expect("it opens");
        for (mode, refused) in [(0o660, true), (0o602, true), (0o644, false)] {
            file.set_permissions(Permissions::from_mode(mode)).expect("it is ours");
            let mapped = SharedWords::map(&file, 4).map(drop).map_err(|error| error.kind());
            let wanted = if refused { Err(io::ErrorKind::PermissionDenied) } else { Ok(()) };
            assert_eq!(mapped, wanted, "{mode:o}");
        }
        std::fs::remove_file(&path).expect("the file goes");
    }

    #[test]
    fn what_is_reserved_is_no_hole() {
        let path = std::env::temp_dir().join(format!("metaslot-hole-{}", std::process::id()));
        let words = SharedWords::create(&path, 4096, 0o600).expect("it is made");
        let blocks = || std::fs::metadata(&path).expect("it is there").blocks() * 512;
        assert_eq!(blocks(), 0);
        SharedWords::reserve(&path, 1024..2048).expect("there is space");
        assert!(blocks() >= 8192);
        words.words()[2047].store(9, Ordering::SeqCst);
        std::fs::remove_file(&path).expect("the file goes");
        assert!(SharedWords::reserve(&path, 0..1).is_err(), "none is made");
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_refused() {
        let path = std::env::temp_dir().join(format!("metaslot-link-{}", std::process::id()));
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link can be made");
        assert!(SharedWords::create(&path, 1, 0o600).is_err());
        std::fs::remove_file(&path).expect("the link goes");
    }
}
