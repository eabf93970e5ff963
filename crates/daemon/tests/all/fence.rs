// SPDX-License-Identifier: Apache-2.0
//! What a thread behind the fence cannot do, and what it can.

use crate::common::{Place, fence};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::thread;

/// Whether it was refused, rather than impossible.
fn is_refused<T>(result: io::Result<T>) -> bool {
    result.err().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// By a thread of its own. The directories go away in the test's, which no fence keeps from it.
fn joined(behind: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(behind).join()).expect("it is as it should be");
}

#[test]
fn behind_it_there_are_the_own_files_and_no_others() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let (own, other) = (place.path().join("file"), elsewhere.path().join("file"));
    fs::write(&other, "another's").expect("it is written");
    let behind = || {
        if !fence(place.path()) {
            return;
        }
        fs::write(&own, "its own").expect("it is its own");
        fs::rename(&own, own.with_extension("new")).expect("it is its own");
        fs::remove_file(own.with_extension("new")).expect("it is its own");
        assert!(is_refused(File::open(&other)), "another's file is read");
        assert!(is_refused(fs::write(&other, "")), "another's file is written");
        assert!(is_refused(fs::remove_file(&other)), "another's file is removed");
        assert!(is_refused(fs::write(other.with_extension("new"), "")), "a file is made elsewhere");
        assert!(is_refused(File::open("/etc/shadow").or_else(|_| File::open("/etc/fstab"))));
        // What tells the group and the state of a client.
        fs::read("/proc/1/cgroup").expect("it is everybody's");
        fs::read("/etc/passwd").expect("it is everybody's");
    };
    joined(behind);
    assert_eq!(fs::read(elsewhere.path().join("file")).expect("it is there"), b"another's");
}

#[test]
fn behind_it_no_program_is_started_and_no_network_reached() {
    let place = Place::new();
    let behind = || {
        if !fence(place.path()) {
            return;
        }
        assert!(is_refused(Command::new("/bin/true").status()), "a program is started");
        assert!(is_refused(TcpListener::bind("127.0.0.1:0")), "it listens");
        assert!(is_refused(UdpSocket::bind("127.0.0.1:0")), "it sends");
        // A thread there is behind it, too.
        let inner = thread::spawn(|| is_refused(File::open("/bin/true")));
        assert!(inner.join().expect("it ends"), "another thread is not behind it");
    };
    joined(behind);
}
