// SPDX-License-Identifier: Apache-2.0
//! Sockets that a service manager has made before: who comes early waits.

use crate::common::Place;
use crate::service::{command, place};
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A daemon that is passed this socket, as the third descriptor; `$$` is what its number will be.
fn passed(place: &Place, socket: impl Into<OwnedFd>, process: &str) -> Command {
    let own = command(place.path());
    let mut shell = Command::new("/bin/sh");
    let script = format!("exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID={process} exec \"$@\"");
    shell.args(["-c", &script, "sh"]).arg(own.get_program()).args(own.get_args());
    shell.stdin(Stdio::from(socket.into())).stdout(Stdio::null()).stderr(Stdio::piped());
    shell
}

fn listener(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).expect("it is made");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is one's own");
    listener
}

/// A client that says its version and nothing yet.
fn connected(path: &Path) -> UnixStream {
    let mut client = UnixStream::connect(path).expect("it listens");
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    client.write_all(&[1]).expect("it waits");
    client
}

fn answer(mut client: UnixStream) -> io::Result<[u8; 1]> {
    let mut version = [0];
    client.read_exact(&mut version).map(|()| version)
}

fn end(mut daemon: Child) {
    let id = daemon.id().to_string();
    Command::new("/bin/kill").args(["-TERM", &id]).status().expect("it is installed");
    assert!(daemon.wait().expect("it ends").success());
}

#[test]
fn clients_wait_for_the_daemon_and_for_the_one_after_it() {
    let place = place();
    let path = place.path().join("socket");
    let listener = listener(&path);
    let start = || {
        let socket = listener.try_clone().expect("there are descriptors");
        passed(&place, socket, "$$").stderr(Stdio::null()).spawn().expect("it is built")
    };
    for _ in 0..2 {
        let early = connected(&path);
        // As a manager has it that waits by itself; the flag is of both ends of what is passed.
        listener.set_nonblocking(true).expect("it is ours");
        let daemon = start();
        assert_eq!(answer(early).expect("it is served"), [1]);
        let flags = fcntl_getfl(&listener).expect("it is ours");
        assert!(!flags.contains(OFlags::NONBLOCK), "who waits asks again and again");
        assert!(place.path().join("agent").exists(), "the other one it makes itself");
        end(daemon);
        assert!(path.exists() && !place.path().join("agent").exists());
    }
}

#[test]
fn one_path_may_lead_to_it_by_a_link() {
    let place = place();
    let link = place.path().join("link");
    symlink(place.path(), &link).expect("it is made");
    // As /var/run and /run.
    let listener = listener(&link.join("socket"));
    let early = connected(&link.join("socket"));
    let daemon = passed(&place, listener, "$$").stderr(Stdio::null()).spawn();
    assert_eq!(answer(early).expect("it is served"), [1]);
    end(daemon.expect("it is built"));
}

#[test]
fn what_is_passed_and_cannot_be_served_is_a_wrong_configuration() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let told = |socket: OwnedFd| {
        let output = passed(&place, socket, "$$").output().expect("it is built");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let away = |(status, said): (Option<i32>, String), reason: &str| {
        assert_eq!(status, Some(78), "{said}");
        assert!(said.starts_with("metaslotd: ") && said.contains(reason), "{said}");
    };
    let (end, _other) = UnixStream::pair().expect("a pair of sockets");
    away(told(end.into()), "socket 0 of the service manager: has no path");
    let served = listener(&at("served"));
    let client = UnixStream::connect(at("served")).expect("it listens");
    let (connection, _) = served.accept().expect("one has connected");
    drop(client);
    away(told(connection.into()), "/served: does not listen");
    away(told(served.into()), "/served: the service manager listens there, and [daemon] does not");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    away(told(tcp.into()), "is not a valid unix stream socket");
    let file = fs::File::open(at("pin")).expect("it is there");
    away(told(file.into()), "is not a socket");
}

#[test]
fn what_is_passed_to_another_process_is_not_taken() {
    let place = place();
    let socket = listener(&place.path().join("socket"));
    let output: Output = passed(&place, socket, "1").output().expect("it is built");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/socket: is served by another process"), "{said}");
}
