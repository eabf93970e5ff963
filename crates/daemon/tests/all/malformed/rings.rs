// SPDX-License-Identifier: Apache-2.0
//! Requests with changed bytes in the memory that is shared with the daemon, into which a third hand writes meanwhile.

use super::ours::{self, Keys};
use super::{
    Answered, Chance, SERVED, counted, frame, harms_no_other_client, login, message, mutated, open,
    requests, told,
};
use crate::lanes::Beside;
use crate::protocol::{self, numbers};
use metaslot_client::Lanes;
use metaslot_client::protocol::{OFFER, OWN};
use metaslot_daemon::{Client, p11kit};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// The words of both lanes; the second one has the answers.
const WORDS: usize = 1024;
const _: () = assert!(8 * WORDS as u64 == Lanes::LENGTH, "two lanes");
const ANSWERS: usize = WORDS / 2;
/// What a lane has room for, behind its state.
const ROOM: usize = 8 * (ANSWERS - 8);
const FULL: u64 = 2;

#[test]
fn mutated_requests_in_shared_memory_harm_no_other_client() {
    /// How often changed ones are put there and taken; `METASLOT_RINGS` has another number for a longer run.
    const TAKEN: usize = 5_000;
    let taken = told("METASLOT_RINGS").unwrap_or(TAKEN);
    harms_no_other_client(taken, |client, chance| served_rubbish(client, chance, 100));
}

/// A connection into whose memory so often something is put: how often that was taken, and by how many answers without an error.
fn served_rubbish(client: &Client, chance: &mut Chance, count: usize) -> Answered {
    thread::scope(|scope| {
        let (mine, theirs) = UnixStream::pair().expect("a pair");
        let serve = || p11kit::serve(theirs, client);
        let served = thread::Builder::new().name(SERVED.into()).spawn_scoped(scope, serve);
        let is_ours = chance.next(2) == 0;
        let offer = if is_ours { [OFFER, &[OWN]].concat() } else { Vec::new() };
        let mut ring = Ring { beside: Beside::offering(&offer, mine), answers: Vec::new() };
        let mut raw = ring.beside.raw();
        let session = open(&mut raw);
        login(&mut raw, session).expect("the user logs in");
        let requests = match is_ours {
            true => ours::requests(session, &Keys::made(&mut raw, session)),
            false => requests(session, protocol::aes(&mut raw, session, &[])),
        };
        let mut stream = raw.stream;
        stream.set_nonblocking(true).expect("it is a socket");
        let mut taken = Answered::default();
        for _ in 0..count {
            let (bytes, changed) = ring.put(chance, &requests);
            match ring.is_taken(chance, &mut stream, bytes) {
                true if changed => taken.changed += 1,
                true => taken.same += 1,
                false => break,
            }
        }
        stream.set_nonblocking(false).expect("it is a socket");
        stream.shutdown(Shutdown::Write).ok();
        stream.read_to_end(&mut ring.answers).ok();
        served.expect("a thread").join().expect("no panic").ok();
        taken.done = counted(&ring.answers).1;
        taken
    })
}

struct Ring {
    beside: Beside,
    /// Through the socket; those in the memory are not kept.
    answers: Vec<u8>,
}

impl Ring {
    /// A few requests, as many bytes as the state says or not; this state, and whether anything is changed.
    fn put(&self, chance: &mut Chance, requests: &[Vec<u8>]) -> (u64, bool) {
        let some = (0..=chance.next(3)).map(|_| mutated(chance, requests));
        let (frames, changed): (Vec<_>, Vec<_>) = some.unzip();
        let bytes = frames.concat();
        let bytes = &bytes[..bytes.len().min(ROOM)];
        self.beside.fill(bytes);
        let right = FULL + bytes.len() as u64;
        let state = match chance.next(256) {
            0 => FULL + chance.next(ROOM) as u64,
            1 => chance.next(usize::MAX) as u64,
            _ => right,
        };
        // Answers are looked for there, or not, or lie there already.
        let answers = [0, 1, 1, FULL, chance.next(1 << 13) as u64][chance.next(5)];
        self.beside.write(ANSWERS, answers);
        self.beside.write(0, state.max(FULL));
        (state.max(FULL), changed.contains(&true) || state != right)
    }

    /// Whether the daemon takes what was put there, before the connection ends; a third hand writes meanwhile.
    fn is_taken(&mut self, chance: &mut Chance, stream: &mut UnixStream, state: u64) -> bool {
        let begun = Instant::now();
        let hand = chance.next(4) == 0;
        let mut woken = false;
        while self.beside.read(0) == state {
            if hand {
                let at = 8 + chance.next(WORDS - 8);
                self.beside.write(at, chance.next(usize::MAX) as u64);
            }
            if !woken {
                // It may be asleep.
                let info = message(5, |request| numbers(request, &[0]));
                let length = u32::try_from(info.len()).expect("short");
                woken = stream.write(&frame(9, 0, length, &info)).is_ok();
            }
            // It waits for the rest of a message that is as long as no other here, or is given up.
            if !self.drains(stream) || begun.elapsed() > Duration::from_millis(20) {
                return false;
            }
            thread::yield_now();
        }
        if self.beside.read(ANSWERS) > FULL {
            self.beside.write(ANSWERS, 1);
        }
        self.drains(stream)
    }

    /// Reads what is there, and says whether the connection is.
    fn drains(&mut self, stream: &mut UnixStream) -> bool {
        let mut room = [0; 1 << 13];
        match stream.read(&mut room) {
            Ok(0) => false,
            Ok(read) => {
                self.answers.extend_from_slice(&room[..read]);
                true
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}
