// SPDX-License-Identifier: Apache-2.0
//! The socket that clients connect to.

use crate::manager::say;
use metaslot_wiring::text::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{geteuid, umask};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a killed daemon may still have its socket: the kernel closes a process's files after its memory is gone.
pub(crate) const DYING: Duration = Duration::from_secs(1);
/// How long another start of the same socket may take.
const TURN: Duration = Duration::from_secs(5);
/// After which it is tried again.
pub(crate) const AGAIN: Duration = Duration::from_millis(2);

/// A socket that listens. Its name goes with it, unless it is the service manager's.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    pub(crate) path: PathBuf,
    /// What the name leads to, its device and number, where it is to be taken away.
    file: Option<(u64, u64)>,
}

impl Socket {
    /// Makes it, for this user and root, and for the members of a group.
    ///
    /// # Errors
    /// Why it cannot be there.
    pub(crate) fn new(path: &Path, group: Option<u32>) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {}", path.display(), words(&error));
        checked(path, geteuid().as_raw())?;
        // Held until the socket is there: of two that found a dead one, the second would remove that of the first.
        let _turn = Turn::of(path, TURN).map_err(failed)?;
        remove_old(path).map_err(|reason| format!("{}: {reason}", path.display()))?;
        // Until it has its mode, no other user connects.
        let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(failed)?;
        let metadata = fs::symlink_metadata(path).map_err(failed)?;
        let socket =
            Self { listener, path: path.to_owned(), file: Some((metadata.dev(), metadata.ino())) };
        socket.give_to(group)?;
        Ok(socket)
    }

    /// One that the service manager has made there, and keeps.
    ///
    /// # Errors
    /// Why it cannot be there.
    pub(crate) fn passed(
        listener: UnixListener,
        path: &Path,
        group: Option<u32>,
    ) -> Result<Self, String> {
        checked(path, geteuid().as_raw())?;
        let socket = Self { listener, path: path.to_owned(), file: None };
        socket.give_to(group)?;
        Ok(socket)
    }

    /// Its members may connect, beside this user and root.
    ///
    /// # Errors
    /// Why not, and what helps.
    pub(crate) fn give_to(&self, group: Option<u32>) -> Result<(), String> {
        let path = self.path.display();
        let failed = |error: io::Error| format!("{path}: {}", words(&error));
        // Who makes it may have given it already, and be another user.
        let now = fs::symlink_metadata(&self.path).map_err(failed)?;
        if let Some(group) = group.filter(|group| now.gid() != *group) {
            chown(&self.path, None, Some(group)).map_err(|error| {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        ": make the daemon's user a member of it, and start the daemon again"
                    }
                    _ => "",
                };
                let reason = words(&error);
                format!("{path}: it cannot be given to the group {group} ({reason}){hint}")
            })?;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        if now.mode() & 0o777 == mode {
            return Ok(());
        }
        fs::set_permissions(&self.path, Permissions::from_mode(mode)).map_err(failed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another daemon may have taken the name, where somebody has taken it away.
        let is_own = |found: fs::Metadata| Some((found.dev(), found.ino())) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Whether it could be made, as far as that shows before and to another user: a service manager may make its directory later.
///
/// # Errors
/// Why it could not.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    match path.parent().map(fs::metadata) {
        Some(Ok(directory)) => checked(path, directory.uid()),
        _ => {
            say(&format!("{}: its directory is not there yet", path.display()));
            Ok(())
        }
    }
}

/// That the name is this user's only.
fn checked(path: &Path, user: u32) -> Result<(), String> {
    let unfit = |reason: &str| format!("{}: {reason}", path.display());
    let directory = path.parent().ok_or_else(|| unfit("is no file"))?;
    match is_open_to_others(directory, user) {
        Ok(false) => Ok(()),
        Ok(true) => Err(unfit("others may write its directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(unfit("its directory is not there"))
        }
        Err(error) => Err(unfit(&words(&error))),
    }
}

/// Whether the name could lead clients, and their PINs, to somebody else: by the directory, in which a name that is not there
/// yet is anyone's who may write, or by one above it, which could be replaced.
fn is_open_to_others(directory: &Path, user: u32) -> io::Result<bool> {
    let directory = fs::canonicalize(directory)?;
    for (above, directory) in directory.ancestors().enumerate() {
        let metadata = fs::metadata(directory)?;
        let trusted = [0, user].contains(&metadata.uid());
        let kept_apart = above > 0 && metadata.mode() & 0o1000 != 0;
        if !trusted || metadata.mode() & 0o022 != 0 && !kept_apart {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file beside the socket that one start at a time has locked. The directory itself all could lock who may read it.
struct Turn {
    path: PathBuf,
    _locked: File,
}

impl Turn {
    /// Waits for so long for another one.
    fn of(socket: &Path, patience: Duration) -> io::Result<Self> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let until = Instant::now() + patience;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR)?);
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, _locked: file }),
                // Who had it has removed it.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(AGAIN),
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another process is about to serve it"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Those that wait make another.
impl Drop for Turn {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// Whether a file has this name still.
fn is_at(file: &File, path: &Path) -> bool {
    let numbers = |found: fs::Metadata| (found.dev(), found.ino());
    let named = fs::symlink_metadata(path).map(numbers).ok();
    named.is_some() && named == file.metadata().map(numbers).ok()
}

/// One that a daemon has left which was killed. Of one that runs, and of what is no socket, nothing is taken away.
fn remove_old(path: &Path) -> Result<(), String> {
    match fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(String::from("is there, and is no socket"));
        }
        Ok(_) => {}
    }
    match is_served(path) {
        Ok(false) => match fs::remove_file(path) {
            // A daemon that was told to end has taken it away itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| words(&error)),
        },
        Ok(true) => Err(String::from("is served by another process")),
        Err(error) => Err(format!("is there, and may be served ({})", words(&error))),
    }
}

/// Whether a process listens there that goes on doing so.
fn is_served(path: &Path) -> io::Result<bool> {
    let until = Instant::now() + DYING;
    loop {
        match connected(path) {
            Ok(stream) if !ends(&stream, until) => return Ok(true),
            // A daemon at its limit closes connections, too, and is asked again.
            Ok(_) => thread::sleep(AGAIN),
            Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(false),
            // As many wait already as may: whether that process lives, this does not tell.
            Err(Errno::AGAIN) if Instant::now() >= until => return Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => thread::sleep(AGAIN),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A connection to the process that listens there, without waiting until it has room for one.
fn connected(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(path)?)?;
    Ok(stream)
}

/// Whether its other side ends a connection until then.
fn ends(stream: &OwnedFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Some(left) = Timespec::try_from(left).ok().filter(|_| !left.is_zero()) else {
            return false;
        };
        // That is told without being asked for.
        let mut hung_up = [PollFd::new(stream, PollFlags::empty())];
        match poll(&mut hung_up, Some(&left)) {
            Err(Errno::INTR) => {}
            ended => return ended.is_ok_and(|ended| ended > 0),
        }
    }
}

/// The number of a group, by name or number.
pub(crate) fn group_id(group: &str) -> Result<u32, String> {
    let groups = fs::read("/etc/group").unwrap_or_default();
    let groups = String::from_utf8_lossy(&groups);
    let mut named = groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    let found = named.next().or_else(|| group.parse().ok());
    found.ok_or_else(|| format!("there is no group {group:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_group_of_which_the_user_is_no_member_is_named_with_what_helps() {
        let directory =
            std::env::temp_dir().join(format!("metaslotd-group-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let socket = Socket::new(&path, None).expect("nothing is there");
        // Of this thread: root may give files to every group.
        let mut mine = capabilities(None).unwrap();
        mine.effective.remove(CapabilitySet::CHOWN);
        set_capabilities(None, mine).unwrap();
        let refused = socket.give_to(Some(4242)).expect_err("it is no member");
        let expected = format!(
            "{}: it cannot be given to the group 4242 (Operation not permitted): make the daemon's user a member of \
             it, and start the daemon again",
            path.display()
        );
        assert_eq!(refused, expected);
        drop(socket);
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn a_socket_takes_the_place_of_one_that_is_being_closed() {
        let directory =
            std::env::temp_dir().join(format!("metaslotd-dying-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        for has_accepted in [false, true] {
            let dying = UnixListener::bind(&path).unwrap();
            let ends = thread::spawn(move || {
                let accepted = has_accepted.then(|| dying.accept());
                thread::sleep(Duration::from_millis(50));
                drop((accepted, dying));
            });
            let begun = Instant::now();
            drop(Socket::new(&path, None).expect("it is dead soon"));
            assert!(begun.elapsed() < DYING, "no longer than until it was");
            ends.join().unwrap();
        }
        // One that is told to end takes its name away first.
        let ending = Socket::new(&path, None).expect("nothing is there");
        let ends = thread::spawn(move || {
            let accepted = ending.listener.accept();
            drop((ending, accepted));
        });
        drop(Socket::new(&path, None).expect("it has ended"));
        ends.join().unwrap();
        // One that takes no more connections is there all the same.
        let full = UnixListener::bind(&path).unwrap();
        let refuses = thread::spawn(move || full.incoming().take(3).for_each(drop));
        Socket::new(&path, None).expect("it is gone after three");
        refuses.join().unwrap();
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn of_many_that_find_a_dead_one_the_first_has_it() {
        let directory = std::env::temp_dir().join(format!("metaslotd-many-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        drop(UnixListener::bind(&path).unwrap());
        let all = thread::scope(|scope| {
            let all = [(); 3].map(|()| scope.spawn(|| Socket::new(&path, None)));
            all.map(|one| one.join().unwrap())
        });
        assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1, "{all:?}");
        fs::remove_dir_all(directory).unwrap();
    }

    /// Every user may lock a directory that all may read.
    #[test]
    fn a_lock_on_the_directory_keeps_no_socket_away() {
        let directory = std::env::temp_dir().join(format!("metaslotd-lock-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let locked = File::open(&directory).unwrap();
        flock(&locked, FlockOperation::LockExclusive).unwrap();
        drop(Socket::new(&path, None).expect("a lock on the directory is nothing"));
        fs::remove_dir(&directory).expect("nothing is left there");
    }

    #[test]
    fn one_start_at_a_time_has_a_sockets_name() {
        let directory = std::env::temp_dir().join(format!("metaslotd-turn-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let turn = Turn::of(&path, Duration::ZERO).unwrap();
        let refused = Turn::of(&path, Duration::ZERO).err().expect("another one starts");
        assert_eq!(refused.to_string(), "another process is about to serve it");
        drop(turn);
        drop(Socket::new(&path, None).expect("it has its turn"));
        fs::remove_dir(&directory).expect("nothing is left there");
    }

    /// A process that takes no connections may live: it is stopped, or at its limit.
    #[test]
    fn a_socket_whose_queue_is_full_is_served() {
        let directory = std::env::temp_dir().join(format!("metaslotd-full-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let _full = UnixListener::bind(&path).unwrap();
        let waiting = Vec::from_iter(std::iter::from_fn(|| connected(&path).ok()));
        assert!(!waiting.is_empty());
        let refused = Socket::new(&path, None).expect_err("it is served");
        assert!(refused.ends_with("is served by another process"), "{refused}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_socket_takes_the_place_of_a_dead_one_and_of_nothing_else() {
        let directory = std::env::temp_dir().join(format!("metaslotd-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        // Killed: its name is there still.
        drop(UnixListener::bind(&path).unwrap());
        let socket = Socket::new(&path, None).expect("nothing listens there");
        assert_eq!(mode(&path), 0o600);
        let refused = Socket::new(&path, None).expect_err("it is served");
        assert!(refused.ends_with("is served by another process"), "{refused}");
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        let refused = Socket::new(&path, None).expect_err("it is a file");
        assert!(refused.ends_with("is there, and is no socket"), "{refused}");
        fs::remove_file(&path).unwrap();
        symlink("/dev/null", &path).unwrap();
        assert!(Socket::new(&path, None).is_err());
        fs::remove_file(&path).unwrap();
        for open in [0o777, 0o1777] {
            fs::set_permissions(&directory, Permissions::from_mode(open)).unwrap();
            let refused = Socket::new(&path, None).expect_err("anyone may write there");
            assert!(refused.ends_with("others may write its directory"), "{refused}");
        }
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            group_id("no such group").err().as_deref(),
            Some("there is no group \"no such group\"")
        );
        // As in /tmp: the name could be another's before it is ours.
        fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
        let below = directory.join("below");
        fs::create_dir(&below).unwrap();
        let refused = Socket::new(&path, None).expect_err("anyone may write there");
        assert!(refused.ends_with("others may write its directory"), "{refused}");
        drop(Socket::new(&below.join("socket"), None).expect("nobody else may write there"));
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        Socket::new(&below.join("socket"), None).expect_err("its directory could be replaced");
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        // Two that came to have one name: the first leaves the second's.
        let first = Socket::new(&path, None).unwrap();
        fs::remove_file(&path).unwrap();
        let second = Socket::new(&path, None).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        let own = fs::metadata(&directory).unwrap().gid();
        let socket = Socket::new(&path, Some(own)).expect("it is one's own");
        assert_eq!(mode(&path), 0o660);
        drop(socket);
        fs::remove_dir_all(directory).unwrap();
    }
}
