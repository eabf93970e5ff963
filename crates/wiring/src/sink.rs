// SPDX-License-Identifier: Apache-2.0
//! Where lines of logs go: a file, the journal, standard error.

use crate::signal::Unbroken;
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// Appended to a file.
    File(PathBuf),
    /// To the journal's socket, by its native protocol.
    Journal(PathBuf),
    /// To the host's standard error.
    Stderr,
}

impl Sink {
    pub(crate) fn journal() -> Self {
        Self::Journal(PathBuf::from("/run/systemd/journal/socket"))
    }

    /// One line, with this priority (RFC 5424 §6.2.1) where the sink has such.
    ///
    /// # Errors
    /// Where it is not written whole.
    pub(crate) fn write(&self, line: &str, priority: u8) -> io::Result<()> {
        match self {
            Self::File(path) => append(path, line),
            Self::Journal(path) => {
                let socket = UnixDatagram::unbound()?;
                // A journal that does not read keeps no call waiting.
                socket.set_nonblocking(true)?;
                let fields =
                    format!("MESSAGE={line}\nPRIORITY={priority}\nSYSLOG_IDENTIFIER=metaslot\n");
                socket.send_to(fields.as_bytes(), path).map(drop)
            }
            Self::Stderr => {
                // Not the standard library's, whose lock a fork may leave taken.
                let _unbroken = Unbroken::begin();
                let line = format!("{line}\n");
                Ok(rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).map(drop)?)
            }
        }
    }
}

/// Opened for each line: a file that was moved away is not written any longer, and a forked child inherits
/// nothing. One write with `O_APPEND`: lines of several processes do not mix.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    let options = options.append(true).create(true).mode(0o600).custom_flags(flags);
    // It may be one that this user cannot read.
    let file = options.clone().read(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path)?,
        file => file?,
    };
    let metadata = file.metadata()?;
    // One with several names could be a file of this user's that a stranger has linked there.
    if !metadata.is_file() || metadata.nlink() > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let line = format!("{}{line}\n", if is_cut(&file)? { "\n" } else { "" });
    if file.metadata()?.len().saturating_add(line.len() as u64) > most_bytes() {
        // Else the line would be cut.
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Another process may write meanwhile.
    let _unbroken = Unbroken::begin();
    match file.write(line.as_bytes())? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Whether a process that was killed, or a disk that was full, has left a line without its end. A line that another
/// process is writing looks the same for a moment, where it crosses a page, and is given time: else an empty line came
/// after it.
fn is_cut(file: &File) -> io::Result<bool> {
    for _ in 0..LOOKS {
        let length = file.metadata()?.len();
        let mut last = [0];
        if length == 0 || file.read_exact_at(&mut last, length - 1).is_err() || last == *b"\n" {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// At the end of a log, a millisecond each.
const LOOKS: usize = 20;

/// Of a file, for this process.
fn most_bytes() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Seconds since 1970, with microseconds.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:06}", since.as_secs(), since.subsec_micros())
}

/// What the kernel calls a process: this one, or another.
pub(crate) fn program(id: Option<u32>) -> String {
    let own = id.map_or_else(|| String::from("self"), |id| id.to_string());
    let name = fs::read(format!("/proc/{own}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// Whether a character may stand in a line as it is: none that a terminal obeys, or that reverses the text of a line.
pub(crate) fn is_plain(character: char) -> bool {
    let odd = character.is_control() || ('\u{200b}'..='\u{206f}').contains(&character);
    !odd && (' '..='\u{2fff}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("metaslot-audit-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = directory("kinds");
        let pipe = directory.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/null", directory.join("link")).unwrap();
        let _socket = UnixDatagram::bind(directory.join("socket")).unwrap();
        fs::write(directory.join("other"), "").unwrap();
        fs::hard_link(directory.join("other"), directory.join("hard")).unwrap();
        for name in ["pipe", "link", "hard", "socket", "none/audit", "."] {
            let sink = Sink::File(directory.join(name));
            assert!(sink.write("{}", 5).is_err(), "{name}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_line_that_was_cut_spoils_no_other() {
        let directory = directory("cut");
        let path = directory.join("log");
        fs::write(&path, "{\"whole\":1}\n{\"cut\":").unwrap();
        let sink = Sink::File(path.clone());
        sink.write("{\"next\":2}", 5).unwrap();
        sink.write("{\"last\":3}", 5).unwrap();
        let wanted = "{\"whole\":1}\n{\"cut\":\n{\"next\":2}\n{\"last\":3}\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
        fs::remove_dir_all(directory).unwrap();
    }

    /// A stress: each line crosses a page.
    #[test]
    fn a_line_that_is_being_written_is_not_taken_for_one_that_was_cut() {
        let directory = directory("crowd");
        let path = directory.join("log");
        let line = "x".repeat(5000);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (sink, line) = (Sink::File(path.clone()), &line);
                scope.spawn(move || (0..1000).for_each(|_| sink.write(line, 5).unwrap()));
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() == 4000 && text.lines().all(|found| found == line));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_journal_that_does_not_read_keeps_nothing_waiting() {
        let directory = directory("journal");
        let path = directory.join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        let sink = Sink::Journal(path);
        sink.write("{\"event\":\"login\"}", 5).unwrap();
        let mut datagram = [0; 100];
        let length = journal.recv(&mut datagram).unwrap();
        let wanted = "MESSAGE={\"event\":\"login\"}\nPRIORITY=5\nSYSLOG_IDENTIFIER=metaslot\n";
        assert_eq!(&datagram[..length], wanted.as_bytes());
        // The socket's queue is full before long; then it is an error at once.
        assert!((0..100_000).any(|_| sink.write("{}", 5).is_err()));
        fs::remove_dir_all(directory).unwrap();
    }
}
