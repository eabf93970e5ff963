// SPDX-License-Identifier: Apache-2.0
//! A server that was there before: a connection to it, and the memory that it is offered beside that.

use super::failure::Failure;
use metaslot_client::Lanes;
use metaslot_memory::Offered;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// A connection to a server. One whose queue is full counts as one that is not there.
pub(super) fn connected(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Greets a server, and sends the memory with that. The client makes it: the server then needs no more than to map it, and what it takes
/// is the client's. A server that does not know of it reads the greeting, and the kernel closes the file. One that does has mapped it
/// when it answers. `None` where nothing was sent.
pub(super) fn offer(socket: &OwnedFd, version: u8) -> Option<Offered> {
    let file = made().ok()?;
    let offered = Lanes::offered(file.try_clone().ok()?).ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    let fits = control.push(SendAncillaryMessage::ScmRights(&files));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = fits && sendmsg(socket, &[IoSlice::new(&[version])], &mut control, flags) == Ok(1);
    sent.then_some(offered)
}

/// It keeps its length.
fn made() -> rustix::io::Result<File> {
    let made = |flags| memfd_create(c"metaslot", MemfdFlags::CLOEXEC | flags);
    let file = match made(MemfdFlags::NOEXEC_SEAL) {
        // Before Linux 6.3.
        Err(Errno::INVAL) => made(MemfdFlags::ALLOW_SEALING)?,
        file => file?,
    };
    ftruncate(&file, Lanes::LENGTH)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::super::{Isolated, Isolation};
    use super::*;
    use metaslot_ck::Error;
    use metaslot_client::{Carrier as _, Found, Message};
    use metaslot_memory::SharedWords;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::io::{IoSliceMut, Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::atomic::Ordering;
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    /// What a server does with its connection and the memory that it was sent.
    type Serves = fn(UnixStream, Lanes, SharedWords);

    fn served(name: &str, serves: Serves) -> (Isolated, JoinHandle<()>) {
        let path = std::env::temp_dir().join(format!("metaslot-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket is made");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut version = [0];
            let mut room = [IoSliceMut::new(&mut version)];
            recvmsg(&stream, &mut room, &mut control, RecvFlags::empty()).expect("it greets");
            let Some(RecvAncillaryMessage::ScmRights(mut files)) = control.drain().next() else {
                panic!("it brings memory");
            };
            let file = File::from(files.next().expect("one"));
            let count = usize::try_from(Lanes::LENGTH / 8).expect("small");
            let words = Offered::map(file.try_clone().expect("it is open"), count);
            let lanes = Lanes::offered(file).and_then(Lanes::keep).expect("it keeps its length");
            let words = words.and_then(Offered::keep).expect("it was mapped before");
            stream.write_all(&version).expect("it reads");
            serves(stream, lanes, words);
        });
        let isolation = Isolation { program: None, limit: Duration::from_secs(20) };
        let isolated = Isolated::new(&isolation, path.clone()).expect("it is there");
        isolated.start().expect("it greets");
        std::fs::remove_file(path).expect("it was there");
        (isolated, server)
    }

    fn asked(isolated: &Isolated) -> Result<Vec<Vec<u8>>, Error> {
        let requests = [b"one", b"two"].map(|text| Message::copy_of(text));
        let answers = isolated.exchange_all(&requests)?;
        Ok(answers.iter().map(|answer| answer.as_ref().to_vec()).collect())
    }

    /// What it asks through the memory.
    fn taken(lanes: &Lanes) -> Vec<u8> {
        let mut room = [0; 4096];
        loop {
            match lanes.requests().look(&mut room) {
                Found::Nothing => thread::yield_now(),
                found => {
                    let Found::Bytes(length) = found else { panic!("{found:?}") };
                    return room[..length].to_vec();
                }
            }
        }
    }

    /// Reads a request without a body from the socket, looks at the memory from then on, and says so by the answer.
    fn looks(stream: &mut UnixStream, lanes: &Lanes) {
        let mut empty = [0; 12];
        stream.read_exact(&mut empty).expect("a request");
        lanes.requests().open();
        stream.write_all(&empty).expect("it reads");
    }

    #[test]
    fn what_is_asked_through_the_memory_is_answered_there_or_through_the_socket() {
        let (isolated, server) = served("lanes", |mut stream, lanes, _| {
            for _ in 0..50 {
                looks(&mut stream, &lanes);
                let asked = taken(&lanes);
                // It gives back what it gets, the second half through the socket.
                if !lanes.answers().put(&asked[..15]) {
                    stream.write_all(&asked[..15]).expect("it reads");
                }
                stream.write_all(&asked[15..]).expect("it reads");
            }
        });
        for _ in 0..50 {
            isolated.exchange(b"").expect("it answers");
            assert_eq!(asked(&isolated), Ok(vec![b"one".to_vec(), b"two".to_vec()]));
        }
        server.join().expect("no panic");
    }

    #[test]
    fn a_pin_and_what_is_long_go_through_the_socket() {
        let (isolated, server) = served("long", |mut stream, lanes, _| {
            for length in [12 + 3, 2 * (12 + 5000)] {
                looks(&mut stream, &lanes);
                let mut request = vec![0; length];
                stream.read_exact(&mut request).expect("a request");
                assert_eq!(lanes.requests().look(&mut []), Found::Socket, "it was told so");
                stream.write_all(&request).expect("it reads");
            }
        });
        isolated.exchange(b"").expect("it answers");
        assert!(isolated.exchange(b"PIN").is_ok_and(|answer| answer.as_ref() == b"PIN"));
        isolated.exchange(b"").expect("it answers");
        let long = [(); 2].map(|()| Message::copy_of(&[7; 5000]));
        let answers = isolated.exchange_all(&long).expect("it answers");
        assert!(answers.iter().all(|answer| answer.as_ref() == [7; 5000]));
        server.join().expect("no panic");
    }

    #[test]
    fn a_server_that_ends_or_says_nonsense_is_found_out() {
        let ends: Serves = |mut stream, lanes, _| looks(&mut stream, &lanes);
        let nonsense: Serves = |mut stream, lanes, words| {
            looks(&mut stream, &lanes);
            taken(&lanes);
            words.words()[words.words().len() / 2].store(u64::MAX, Ordering::Release);
            // Whether it looks there still or sleeps: then the end wakes it.
        };
        for (name, serves, why) in [
            ("ends", ends, [Error::CRYPTOKI_NOT_INITIALIZED; 2]),
            ("nonsense", nonsense, [Error::DEVICE_ERROR, Error::CRYPTOKI_NOT_INITIALIZED]),
        ] {
            let (isolated, server) = served(name, serves);
            isolated.exchange(b"").expect("it answers");
            let failed = asked(&isolated).expect_err("it has gone");
            assert!(why.contains(&failed), "{name}: {failed:?}");
            server.join().expect("no panic");
            assert!(isolated.link().is_none());
        }
    }
}
