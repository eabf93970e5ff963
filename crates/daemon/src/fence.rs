// SPDX-License-Identifier: Apache-2.0
//! The fence: what this thread, and those that it starts, cannot do any more once everything is open. Landlock keeps files
//! away, seccomp system calls; a kernel that has neither is used without.

use crate::calls;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use metaslot_wiring::config::Reach;
use metaslot_wiring::text::words;
use std::path::PathBuf;

/// What the C library, the keystore and the look at a client's control group read.
const READ: [&str; 6] = [
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/etc/group",
    "/etc/passwd",
    "/dev/urandom",
];

/// Puts it up. Gives what of it is not there, and why; `sockets` are directories out of which sockets are removed.
#[must_use]
pub fn put_up(reach: &Reach, sockets: &[PathBuf]) -> Vec<String> {
    let mut lacks = Vec::new();
    if reach.modules {
        lacks.push(String::from(
            "not fenced: what a module of a [[foreign]] section needs is unknown",
        ));
        return lacks;
    }
    if reach.programs {
        // The kernel shows a process behind it the programs of no process outside.
        lacks.push(String::from("not fenced by Landlock: a [[client]] is known by its program"));
    } else if let Err(reason) = landlock(reach, sockets) {
        lacks.push(format!("not fenced by Landlock: {reason}"));
    }
    if let Err(reason) = calls::limit(reach) {
        lacks.push(format!("not fenced by seccomp: {reason}"));
    }
    lacks
}

fn landlock(reach: &Reach, sockets: &[PathBuf]) -> Result<(), String> {
    let status = rules(reach, sockets).and_then(RulesetCreated::restrict_self);
    let status = status.map_err(|error| words(&error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(String::from("the kernel does not have it")),
        // An older kernel fences fewer things.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// All of what is not named is closed, and TCP (but to databases) and signals to others, too.
fn rules(reach: &Reach, sockets: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let keep: BitFlags<AccessFs> = read
        | change
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(READ, read))?
        .add_rules(path_beneath_rules(["/dev/null"], change))?
        .add_rules(path_beneath_rules(&reach.read, read))?
        .add_rules(path_beneath_rules(&reach.changed, change))?
        .add_rules(path_beneath_rules(&reach.directories, keep))?
        .add_rules(path_beneath_rules(sockets, AccessFs::RemoveFile))?
        .add_rules(reach.ports.iter().map(|port| Ok(NetPort::new(*port, AccessNet::ConnectTcp))))
}

/// Each wall alone: what it keeps away, and that it is not the other one which does.
#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_testkit::not_run;
    use std::fs::{self, File};
    use std::io::{self, ErrorKind};
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::process::Command;
    use std::thread;

    /// By which errno Landlock refuses (`EACCES`), and by which seccomp (`EPERM`).
    fn refused<T>(result: io::Result<T>) -> Option<i32> {
        let error = result.err()?;
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        error.raw_os_error()
    }

    /// What a thread behind a wall does, in a directory of its own.
    fn behind(
        name: &str,
        wall: fn(&Reach) -> Result<(), String>,
        work: impl FnOnce(&Path) + Send + 'static,
    ) {
        let name = format!("metaslotd-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("own")).expect("a directory is made");
        fs::write(directory.join("other"), "another's").expect("it is written");
        let reach = Reach { directories: vec![directory.join("own")], ..Reach::default() };
        let at = directory.clone();
        let thread = thread::spawn(move || match wall(&reach) {
            Ok(()) => work(&at),
            Err(reason) => not_run("metaslotd", "a wall of its fence", &reason),
        });
        thread.join().expect("it is as it should be");
        fs::remove_dir_all(directory).expect("it was there");
    }

    #[test]
    fn landlock_keeps_files_away_and_no_calls() {
        let wall = |reach: &Reach| landlock(reach, &[]);
        behind("landlock", wall, |at| {
            let (own, other) = (at.join("own/file"), at.join("other"));
            fs::write(&own, "its own").expect("it is its own");
            assert_eq!(refused(File::open(&other)), Some(libc::EACCES));
            assert_eq!(refused(fs::write(&other, "")), Some(libc::EACCES));
            assert_eq!(refused(fs::remove_file(&other)), Some(libc::EACCES));
            assert_eq!(refused(fs::rename(&own, at.join("moved"))), Some(libc::EACCES));
            assert_eq!(refused(UnixListener::bind(at.join("own/socket"))), Some(libc::EACCES));
            assert_eq!(refused(Command::new("/bin/true").status()), Some(libc::EACCES));
            // Which the other wall refuses.
            UdpSocket::bind("127.0.0.1:0").expect("Landlock knows TCP");
        });
    }

    #[test]
    fn seccomp_keeps_calls_away_and_no_files() {
        behind("seccomp", calls::limit, |at| {
            assert_eq!(refused(TcpListener::bind("127.0.0.1:0")), Some(libc::EPERM));
            assert_eq!(refused(UdpSocket::bind("127.0.0.1:0")), Some(libc::EPERM));
            assert_eq!(refused(UnixListener::bind(at.join("own/socket"))), Some(libc::EPERM));
            assert_eq!(refused(Command::new("/bin/true").status()), Some(libc::EPERM));
            assert_eq!(
                refused(std::os::unix::fs::symlink("/", at.join("own/link"))),
                Some(libc::EPERM)
            );
            // Which the other wall refuses.
            fs::write(at.join("other"), "").expect("seccomp knows no names");
            File::open("/bin/true").expect("seccomp knows no names");
        });
    }
}
