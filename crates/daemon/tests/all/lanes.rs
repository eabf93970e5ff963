// SPDX-License-Identifier: Apache-2.0
//! Requests and answers through memory that a client sent with its greeting.

use crate::common::{Place, Raw, exchange, initialized};
use crate::protocol::numbers;
use metaslot_client::protocol::{Call, GREETING, Reader, Writer};
use metaslot_client::{Found, Lanes};
use metaslot_memory::{Offered, SharedWords};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn memory(length: u64, seals: SealFlags) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"lanes", flags).expect("there is memory");
    ftruncate(&file, length).expect("it grows");
    fcntl_add_seals(&file, seals).expect("it is not sealed");
    file.into()
}

const LENGTH: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// As our client makes it.
fn sealed() -> File {
    memory(Lanes::LENGTH, LENGTH)
}

/// A connection with memory beside it.
pub(crate) struct Beside {
    stream: UnixStream,
    lanes: Lanes,
    /// The same.
    words: SharedWords,
    file: File,
}

impl Beside {
    fn new(place: &Place) -> Self {
        Self::over(place.connect())
    }

    pub(crate) fn over(stream: UnixStream) -> Self {
        Self::offering(&[], stream)
    }

    /// The same, by the version that is offered in this way.
    pub(crate) fn offering(offer: &[u8], stream: UnixStream) -> Self {
        let file = sealed();
        let count = usize::try_from(Lanes::LENGTH / 8).expect("small");
        let again = || file.try_clone().expect("it is open");
        let (lanes, words) = (Lanes::offered(again()), Offered::map(again(), count));
        let stream = greeted_over(stream, &file, offer);
        let lanes = lanes.and_then(Lanes::keep).expect("it keeps its length");
        let words = words.and_then(Offered::keep).expect("it was mapped before");
        Self { stream, lanes, words, file }
    }

    /// The same connection, through its socket.
    pub(crate) fn raw(&self) -> Raw {
        Raw { stream: self.stream.try_clone().expect("it is open") }
    }

    /// Asks this through the memory before the daemon can see that nothing is there, until `asks` says no. Each time it was answered
    /// there is one more in `answered`.
    pub(crate) fn ask_without_end(
        mut self,
        request: &[u8],
        asks: impl Fn() -> bool,
        answered: &AtomicU64,
    ) {
        self.stream.set_nonblocking(true).expect("it is a socket");
        let mut woken = Instant::now();
        while asks() {
            let [requests, answers] = [0, 512].map(|at| &self.words.words()[at]);
            if requests.load(Ordering::SeqCst) < 2 {
                self.fill(request);
                self.write(0, 2 + request.len() as u64);
            }
            match answers.load(Ordering::SeqCst) {
                0 => answers.store(1, Ordering::SeqCst),
                1 => {}
                _ => {
                    answered.fetch_add(1, Ordering::SeqCst);
                    answers.store(1, Ordering::SeqCst);
                }
            }
            // It may be asleep.
            if woken.elapsed() > Duration::from_millis(1) {
                self.stream.write_all(&framed(1, &slot_info())).ok();
                self.stream.read_to_end(&mut Vec::new()).ok();
                woken = Instant::now();
            }
        }
    }

    /// Writes these into the requests, and no state.
    pub(crate) fn fill(&self, bytes: &[u8]) {
        for (part, at) in bytes.chunks(8).zip(8..) {
            let mut all = [0; 8];
            all[..part.len()].copy_from_slice(part);
            self.write(at, u64::from_ne_bytes(all));
        }
    }

    /// Writes a word, whatever the other side does.
    pub(crate) fn write(&self, at: usize, value: u64) {
        self.words.words()[at].store(value, Ordering::SeqCst);
    }

    pub(crate) fn read(&self, at: usize) -> u64 {
        self.words.words()[at].load(Ordering::SeqCst)
    }
}

/// A connection that has this file with its greeting, initialised.
fn greeted(place: &Place, file: &File) -> UnixStream {
    greeted_over(place.connect(), file, &[])
}

fn greeted_over(mut stream: UnixStream, file: &File, offer: &[u8]) -> UnixStream {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(&stream, &[IoSlice::new(&[2])], &mut control, SendFlags::NOSIGNAL).expect("it is sent");
    let mut version = [0];
    stream.read_exact(&mut version).expect("it greets");
    let begin = message(1, |request| {
        request.bytes(Some(GREETING));
        request.byte(0);
        request.bytes(Some(offer));
    });
    assert_eq!(answered(&exchange(&mut stream, &begin).expect("it answers")), 1);
    stream
}

pub(crate) fn message(number: u32, parts: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut request = Writer::default();
    request.begin(number, Call::numbered(number).expect("there is this call").request);
    parts(&mut request);
    request.finish().as_ref().to_vec()
}

fn answered(message: &metaslot_client::Message) -> u32 {
    Reader::new(message.as_ref()).begin().expect("an answer").0
}

pub(crate) fn framed(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short");
    [[code, 0, length].map(u32::to_be_bytes).as_flattened(), body].concat()
}

/// `C_GetSlotInfo` of slot 0.
fn slot_info() -> Vec<u8> {
    message(5, |request| numbers(request, &[0]))
}

#[test]
fn requests_and_answers_go_through_the_memory() {
    let place = Place::served();
    initialized(&place);
    let mut beside = Beside::new(&place);
    let expected = exchange(&mut beside.stream, &slot_info()).expect("it answers");
    let expected = [1, 2, 7].map(|code| framed(code, expected.as_ref()));
    let two = [framed(1, &slot_info()), framed(2, &slot_info())].concat();
    beside.fill(&two);
    beside.write(0, 2 + two.len() as u64);
    let Beside { mut stream, lanes, file, .. } = beside;
    // It finds them before or after this, as it looks or sleeps. No answer is looked for in the memory.
    stream.write_all(&framed(7, &slot_info())).expect("it reads");
    let mut answers = vec![0; expected.iter().map(Vec::len).sum()];
    stream.read_exact(&mut answers).expect("it answers");
    let [first, second, other] = &expected;
    let orders =
        [[first, second, other], [other, first, second]].map(|all| all.map(Vec::as_slice).concat());
    assert!(orders.contains(&answers));
    let mut left = vec![1; two.len()];
    file.read_exact_at(&mut left, 64).expect("it is as long");
    assert!(left.iter().all(|byte| *byte == 0), "what was taken is wiped");
    // One that is looked for there is there.
    lanes.answers().open();
    lanes.requests().divert();
    stream.write_all(&framed(1, &slot_info())).expect("it is sent");
    let until = Instant::now() + Duration::from_secs(20);
    let found = loop {
        match lanes.answers().look(&mut answers) {
            Found::Nothing => assert!(Instant::now() < until, "it answers"),
            found => break found,
        }
    };
    assert_eq!(found, Found::Bytes(expected[0].len()));
    assert_eq!(answers[..expected[0].len()], expected[0]);
    assert_eq!(answered(&exchange(&mut stream, &slot_info()).expect("it answers")), 5);
}

#[test]
fn memory_that_could_become_shorter_or_is_none_is_left_alone() {
    let place = Place::served();
    initialized(&place);
    let files = [
        memory(Lanes::LENGTH, SealFlags::GROW),
        memory(Lanes::LENGTH, SealFlags::SHRINK),
        // Holes could be punched.
        memory(Lanes::LENGTH, LENGTH | SealFlags::SEAL),
        // It cannot be mapped.
        memory(Lanes::LENGTH, LENGTH | SealFlags::WRITE),
        memory(Lanes::LENGTH, LENGTH | SealFlags::FUTURE_WRITE),
        memory(4096, LENGTH),
        memory(0, LENGTH),
        File::open("/dev/zero").expect("it is there"),
    ];
    for file in files {
        let mut stream = greeted(&place, &file);
        for _ in 0..100 {
            assert_eq!(answered(&exchange(&mut stream, &slot_info()).expect("it answers")), 5);
        }
        let mut state = [0; 8];
        if file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            file.read_exact_at(&mut state, 0).expect("it is as long");
        }
        assert_eq!(state, [0; 8], "nobody looks there");
    }
}

/// Whether its pages can be taken away.
fn punched(file: &File) -> bool {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, hole, 0, Lanes::LENGTH).is_ok()
}

/// With a page that is not there the next touch ends the daemon where there is no memory for another.
#[test]
fn no_page_can_be_taken_away_that_the_daemon_touches() {
    let place = Place::served();
    initialized(&place);
    for _ in 0..100 {
        let file = sealed();
        let begun = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                let until = Instant::now() + Duration::from_secs(2);
                while punched(&file) && Instant::now() < until {}
            });
            begun.wait();
            let mut stream = greeted(&place, &file);
            let blocks = || file.metadata().expect("it is open").blocks() * 512;
            assert_eq!(blocks(), Lanes::LENGTH, "all of it is there");
            assert!(!punched(&file), "it could be taken away");
            assert!(ftruncate(&file, 0).is_err() && file.write_at(b"x", 0).is_err());
            let number = format!("/proc/self/fd/{}", file.as_raw_fd());
            let again = File::options().read(true).write(true).open(number).expect("it is ours");
            assert!(Lanes::offered(again).is_err(), "it is written to by who had it at first");
            assert_eq!(answered(&exchange(&mut stream, &slot_info()).expect("it answers")), 5);
            assert_eq!(blocks(), Lanes::LENGTH);
        });
    }
}

#[test]
fn what_is_in_the_memory_is_not_believed() {
    let place = Place::served();
    initialized(&place);
    // More bytes than the lane has, of a request that ends in the middle, of a frame that cannot be.
    let states = [2 + 4033_u64, u64::MAX, 1 << 40, 2 + 3, 2, 2 + 12];
    for state in states {
        let mut beside = Beside::new(&place);
        let begun = Instant::now();
        let ended = loop {
            beside.write(0, state);
            match exchange(&mut beside.stream, &slot_info()) {
                Err(error) => break error.kind(),
                Ok(_) => assert!(begun.elapsed() < Duration::from_secs(10), "{state}"),
            }
        };
        assert!(
            [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe]
                .contains(&ended),
            "{state}: {ended}"
        );
        let mut other = greeted(&place, &sealed());
        assert_eq!(answered(&exchange(&mut other, &slot_info()).expect("it answers")), 5);
    }
}

#[test]
fn a_request_that_changes_while_it_is_read_harms_no_other_client() {
    let place = Place::served();
    initialized(&place);
    let until = Instant::now() + Duration::from_millis(500);
    let mut other = greeted(&place, &sealed());
    while Instant::now() < until {
        let mut beside = Beside::new(&place);
        beside.stream.set_read_timeout(Some(Duration::from_millis(5))).expect("it can");
        for round in 0_u64..2000 {
            // The state, its bytes, and the state of the answers, in any order.
            let at = [0, 8, 9, 512, 9, 10][usize::try_from(round % 6).expect("small")];
            let value = round.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                >> [0, 52, 60, 63][(round / 6 % 4) as usize];
            beside.write(at, value);
        }
        beside.stream.write_all(&framed(7, &slot_info())).ok();
        // An answer, its end, or none in time.
        beside.stream.read_exact(&mut [0; 12]).ok();
        assert_eq!(answered(&exchange(&mut other, &slot_info()).expect("it answers")), 5);
    }
}
