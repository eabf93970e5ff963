// SPDX-License-Identifier: Apache-2.0
//! What each client of a process that serves others did: a file beside the process's page, `PID-START.clients`.
//! `docs/format-counters.md` has its layout.
//!
//! A client has a record of its own while it is connected, which only its thread writes, by plain stores. When it goes, what it
//! counted stays in the record of its user and service.

mod read;

pub use read::{Client, Counts, Served, Server, served};

use crate::directory::started;
use metaslot_memory::SharedWords;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// `MTSLTCLI` in the order of bytes.
const MAGIC: u64 = u64::from_le_bytes(*b"MTSLTCLI");
const VERSION: u64 = 1;
/// Words of the header: magic, version, process, its start, when this was made, services, clients, changes.
const HEADER: usize = 64;
const CHANGES: usize = 7;
/// Users with their services; the last one is of all beyond.
const SERVICES: usize = 64;
/// Clients that have a record at a time; the last one is of all beyond.
const CLIENTS: usize = 512;
/// Words of a record.
const RECORD: usize = 64;
const ALL: usize = HEADER + (SERVICES + CLIENTS) * RECORD;

/// Of a client its number, from 1; of a service how many clients it had. 0 in a record that is free.
const NUMBER: usize = 0;
const USER: usize = 1;
const PROCESS: usize = 2;
/// The record of its service.
const SERVICE: usize = 3;
const SINCE: usize = 4;
/// 16 bytes.
const PROGRAM: usize = 5;
/// 128 bytes.
const NAME: usize = 8;
const COUNTS: usize = 24;
const LEVELS: usize = 40;
/// The user of what has no record of its own.
const OTHERS: u64 = u64::MAX;
/// The user of clients of other machines: no user of this one has it.
const REMOTE: u64 = 1 << 32;

/// What is counted of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Count {
    /// Requests.
    Calls,
    /// Those that did not answer `CKR_OK`.
    Errors,
    /// Those that ended an operation, or used a key otherwise.
    Operations,
    /// Bytes of requests.
    Received,
    /// Bytes of answers.
    Sent,
    /// Requests for which the user had no memory left.
    NoMemory,
    /// Connections that ended because the client stopped in the middle of a message, or said what is none.
    GivenUp,
    /// Connections that were refused, as the user had enough. No client has any: a service has.
    Refused,
    /// Requests that tried a PIN which was not right.
    WrongPins,
}

const COUNT: usize = Count::WrongPins as usize + 1;

/// What a client has now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Level {
    /// Sessions.
    Sessions,
    /// Objects of sessions.
    Objects,
    /// Bytes that all clients of its user take.
    Memory,
    /// Bytes that they may take.
    Allowed,
}

const LEVEL: usize = Level::Allowed as usize + 1;

/// Where clients are counted; nowhere where the process has no page.
#[derive(Clone, Debug, Default)]
pub struct Clients(Option<Arc<Page>>);

#[derive(Debug)]
struct Page {
    words: SharedWords,
    /// Held while records are given and taken.
    given: Mutex<Given>,
}

#[derive(Debug)]
struct Given {
    /// The number of the next client.
    next: u64,
    /// Clients that share the last record.
    beyond: usize,
}

/// Who a client is.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// Its user.
    pub user: User,
    /// Its process; 0 where that is not known.
    pub process: u32,
    /// What its program is called.
    pub program: String,
    /// The service that it belongs to; of another machine, the name in its certificate.
    pub service: String,
}

/// Whose client one is.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum User {
    /// A user of this machine.
    Local(u32),
    /// On another machine, and known by a certificate.
    Remote,
    /// Unknown: a record of all that had none of their own.
    #[default]
    Others,
}

impl User {
    fn word(self) -> u64 {
        match self {
            Self::Local(user) => user.into(),
            Self::Remote => REMOTE,
            Self::Others => OTHERS,
        }
    }

    fn of_word(word: u64) -> Self {
        let other = if word == REMOTE { Self::Remote } else { Self::Others };
        u32::try_from(word).map_or(other, Self::Local)
    }
}

/// The record of one client, as long as it is connected.
#[derive(Debug, Default)]
pub struct Seat(Option<Place>);

#[derive(Debug)]
struct Place {
    page: Arc<Page>,
    /// Where the record begins.
    at: usize,
    /// Others count there, too.
    shared: bool,
}

impl Clients {
    /// Beside the page that this process has.
    ///
    /// # Errors
    /// What the file system says. Nothing is counted then.
    pub fn open() -> io::Result<Self> {
        crate::path().map_or(Ok(Self::default()), Self::beside)
    }

    fn beside(page: &Path) -> io::Result<Self> {
        let path = page.with_extension("clients");
        drop(fs::remove_file(&path));
        let made = SharedWords::create(&path, ALL, 0o600)
            .and_then(|words| SharedWords::reserve(&path, 0..ALL).map(|()| words));
        let words = made.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let pid = std::process::id();
        let header = [
            (1, VERSION),
            (2, u64::from(pid)),
            (3, started(pid).unwrap_or(0)),
            (4, now()),
            (5, SERVICES as u64),
            (6, CLIENTS as u64),
        ];
        let set = |(at, value): (usize, u64)| words.words()[at].store(value, Ordering::Relaxed);
        header.into_iter().for_each(set);
        words.words()[0].store(MAGIC, Ordering::Release);
        let given = Mutex::new(Given { next: 1, beyond: 0 });
        Ok(Self(Some(Arc::new(Page { words, given }))))
    }

    /// Whether anything is counted.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// A client comes.
    #[must_use]
    pub fn seat(&self, who: &Who) -> Seat {
        let Some(page) = &self.0 else { return Seat::default() };
        let mut given = page.given();
        let service = page.service(who);
        page.add(service, NUMBER, 1);
        let free = (0..CLIENTS - 1).map(client).find(|at| page.word(*at, NUMBER) == 0);
        let (at, shared) = free.map_or((client(CLIENTS - 1), true), |at| (at, false));
        let others = &Who::default();
        let (who, service) = match shared {
            true => (others, SERVICES - 1),
            false => (who, (service - HEADER) / RECORD),
        };
        if page.word(at, NUMBER) == 0 {
            page.describe(at, who);
            page.set(at, SERVICE, service as u64);
            page.set(at, NUMBER, given.next);
        }
        given.next += 1;
        given.beyond += usize::from(shared);
        Seat(Some(Place { page: Arc::clone(page), at, shared }))
    }

    /// One is refused, as its user has enough.
    pub fn refused(&self, who: &Who) {
        if let Some(page) = &self.0 {
            let _held = page.given();
            page.add(page.service(who), COUNTS + Count::Refused as usize, 1);
        }
    }
}

const fn client(at: usize) -> usize {
    HEADER + (SERVICES + at) * RECORD
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Page {
    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn word(&self, at: usize, word: usize) -> u64 {
        self.words.words()[at + word].load(Ordering::Relaxed)
    }

    fn set(&self, at: usize, word: usize, value: u64) {
        self.words.words()[at + word].store(value, Ordering::Relaxed);
    }

    fn add(&self, at: usize, word: usize, amount: u64) {
        self.words.words()[at + word].fetch_add(amount, Ordering::Relaxed);
    }

    /// The record of a user's service, a new one where there is none yet.
    fn service(&self, who: &Who) -> usize {
        let user = who.user.word();
        let name = packed::<16>(&who.service);
        let all = (0..SERVICES - 1).map(|at| HEADER + at * RECORD);
        let is_it = |at: &usize| {
            let same =
                || name.iter().enumerate().all(|(word, name)| self.word(*at, NAME + word) == *name);
            self.word(*at, SINCE) != 0 && self.word(*at, USER) == user && same()
        };
        if let Some(known) = all.clone().find(is_it) {
            return known;
        }
        let free = all.into_iter().find(|at| self.word(*at, SINCE) == 0);
        let free = free.or_else(|| self.freed());
        let known = |at| (at, Who { process: 0, program: String::new(), ..who.clone() });
        let others = || (HEADER + (SERVICES - 1) * RECORD, Who::default());
        let (at, who) = free.map_or_else(others, known);
        if self.word(at, SINCE) == 0 {
            self.describe(at, &who);
        }
        at
    }

    /// The record of the service without clients that had fewest, whose counts are the others' from now on.
    fn freed(&self) -> Option<usize> {
        let connected = (0..CLIENTS).map(client).filter(|at| self.word(*at, NUMBER) != 0);
        let connected: Vec<_> = connected.map(|at| self.word(at, SERVICE)).collect();
        let idle = (0..SERVICES - 1).filter(|service| !connected.contains(&(*service as u64)));
        let idle = idle.map(|service| HEADER + service * RECORD);
        let at = idle.min_by_key(|at| self.word(*at, NUMBER))?;
        let others = HEADER + (SERVICES - 1) * RECORD;
        let changes = &self.words.words()[CHANGES];
        changes.fetch_add(1, Ordering::SeqCst);
        if self.word(others, SINCE) == 0 {
            self.describe(others, &Who::default());
        }
        for word in (COUNTS..COUNTS + COUNT).chain([NUMBER]) {
            self.add(others, word, self.word(at, word));
        }
        (0..RECORD).for_each(|word| self.set(at, word, 0));
        changes.fetch_add(1, Ordering::SeqCst);
        Some(at)
    }

    fn describe(&self, at: usize, who: &Who) {
        self.set(at, USER, who.user.word());
        self.set(at, PROCESS, u64::from(who.process));
        let texts =
            [(PROGRAM, &packed::<2>(&who.program)[..]), (NAME, &packed::<16>(&who.service))];
        for (place, text) in texts {
            text.iter().enumerate().for_each(|(word, text)| self.set(at, place + word, *text));
        }
        self.set(at, SINCE, now());
    }
}

/// As much of a text as so many words hold.
fn packed<const N: usize>(text: &str) -> [u64; N] {
    let mut bytes = text.bytes();
    std::array::from_fn(|_| u64::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0))))
}

impl Seat {
    /// Adds to a count.
    pub fn add(&self, count: Count, amount: u64) {
        let Some(Place { page, at, shared }) = &self.0 else { return };
        let word = COUNTS + count as usize;
        if *shared {
            page.add(*at, word, amount);
        } else {
            // One thread writes.
            page.set(*at, word, page.word(*at, word).wrapping_add(amount));
        }
    }

    /// Sets a level.
    pub fn set(&self, level: Level, value: usize) {
        if let Some(Place { page, at, shared: false }) = &self.0 {
            page.set(*at, LEVELS + level as usize, value as u64);
        }
    }
}

/// What it counted is its service's from now on; of those that share a record, when the last one goes. A reader that sees the number of changes odd, or another one afterwards, reads
/// again.
impl Drop for Seat {
    fn drop(&mut self) {
        let Some(Place { page, at, shared }) = &self.0 else { return };
        let mut given = page.given();
        given.beyond -= usize::from(*shared);
        if *shared && given.beyond > 0 {
            return;
        }
        let changes = &page.words.words()[CHANGES];
        changes.fetch_add(1, Ordering::SeqCst);
        let service = usize::try_from(page.word(*at, SERVICE)).unwrap_or(SERVICES);
        let service = HEADER + service.min(SERVICES - 1) * RECORD;
        for word in COUNTS..COUNTS + COUNT {
            page.add(service, word, page.word(*at, word));
        }
        (0..RECORD).for_each(|word| page.set(*at, word, 0));
        changes.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::thread;

    fn directory(name: &str) -> PathBuf {
        let name = format!("metaslot-clients-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn open(directory: &Path) -> Clients {
        let id = std::process::id();
        let page = crate::directory::file_name(id, started(id).unwrap());
        Clients::beside(&directory.join(page)).expect("it can be made")
    }

    fn read(directory: &Path) -> Server {
        let [server] = &served(&[directory.to_owned()])[..] else { panic!("one serves") };
        server.clone()
    }

    fn who(user: u32, service: &str) -> Who {
        let user = User::Local(user);
        Who { user, process: 7, program: "nginx\u{1b}".into(), service: service.into() }
    }

    #[test]
    fn what_a_client_did_stays_with_its_service_when_it_goes() {
        let directory = directory("goes");
        let clients = open(&directory);
        let seats = [who(33, "nginx.service"), who(33, "nginx.service"), who(0, "")];
        let mut seats = Vec::from(seats.map(|who| clients.seat(&who)));
        for (seat, calls) in seats.iter().zip([5, 7, 9]) {
            seat.add(Count::Calls, calls);
            seat.set(Level::Sessions, 2);
        }
        clients.refused(&who(33, "nginx.service"));
        let server = read(&directory);
        assert_eq!((server.pid, server.clients.len()), (std::process::id(), 3));
        let first = &server.clients[0];
        assert_eq!((first.number, first.user, first.process), (1, User::Local(33), 7));
        assert_eq!((&*first.program, &*first.service), ("nginx\\u{1b}", "nginx.service"));
        assert_eq!((first.counts.of(Count::Calls), first.level(Level::Sessions)), (5, 2));
        let calls = |server: &Server| {
            let of = |one: &Served| {
                (one.service.clone(), one.connected, one.connections, one.counts.of(Count::Calls))
            };
            Vec::from_iter(server.services.iter().map(of))
        };
        let nginx = || String::from("nginx.service");
        assert_eq!(calls(&server), [(String::new(), 1, 1, 9), (nginx(), 2, 2, 12)]);
        drop(seats.remove(0));
        let server = read(&directory);
        assert_eq!(calls(&server), [(String::new(), 1, 1, 9), (nginx(), 1, 2, 12)]);
        assert_eq!(server.services[1].counts.of(Count::Refused), 1);
        let numbers = Vec::from_iter(server.clients.iter().map(|client| client.number));
        assert_eq!(numbers, [2, 3]);
        let far = Who { user: User::Remote, service: "web1.example".into(), ..Who::default() };
        let far = clients.seat(&far);
        let server = read(&directory);
        let last = server.clients.last().map(|client| (client.number, client.user));
        assert_eq!(last, Some((4, User::Remote)));
        let names = server.services.iter().map(|one| (one.user, &*one.service));
        assert!(Vec::from_iter(names).contains(&(User::Remote, "web1.example")));
        drop((far, seats));
        assert!(read(&directory).clients.is_empty());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn clients_and_services_beyond_the_page_are_counted_together() {
        let directory = directory("many");
        let clients = open(&directory);
        let seats = (0..600_u32).map(|at| clients.seat(&who(at % 100, "x"))).collect::<Vec<_>>();
        thread::scope(|scope| {
            for seat in &seats {
                scope.spawn(|| (0..100).for_each(|_| seat.add(Count::Calls, 1)));
            }
        });
        let calls = |server: &Server| -> u64 {
            server.services.iter().map(|one| one.counts.of(Count::Calls)).sum()
        };
        let server = read(&directory);
        assert_eq!(
            (server.services.len(), server.clients.len(), calls(&server)),
            (64, 512, 60_000)
        );
        assert_eq!(server.services.iter().map(|one| one.connections).sum::<u64>(), 600);
        drop(seats);
        let server = read(&directory);
        assert_eq!((server.clients.len(), calls(&server)), (0, 60_000));
        assert!(server.services.iter().all(|one| one.connected == 0));
        let again = [0; 600].map(|_| clients.seat(&who(0, "x")));
        again[599].add(Count::Calls, 1);
        let last =
            read(&directory).clients.last().map(|one| (one.number, one.counts.of(Count::Calls)));
        assert_eq!(last, Some((600 + 512, 1)));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_record_of_a_service_without_clients_is_given_to_another() {
        let directory = directory("services");
        let clients = open(&directory);
        let stays = clients.seat(&who(1, "stays"));
        for user in 100..200 {
            let seat = clients.seat(&who(user, "goes"));
            seat.add(Count::Calls, 1);
        }
        let comes = clients.seat(&who(2, "comes"));
        comes.add(Count::Calls, 7);
        let server = read(&directory);
        let calls = |service: &str| {
            let of = server.services.iter().find(|one| one.service == service);
            of.map(|one| (one.connected, one.counts.of(Count::Calls)))
        };
        assert_eq!((calls("stays"), calls("comes")), (Some((1, 0)), Some((1, 7))));
        let sum = |of: &dyn Fn(&Served) -> u64| server.services.iter().map(of).sum::<u64>();
        assert_eq!(sum(&|one| one.connections), 102);
        assert_eq!(sum(&|one| one.counts.of(Count::Calls)), 107);
        drop((stays, comes));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_clients_of_a_dead_process_did_goes_with_its_page() {
        let directory = directory("dead");
        for name in ["1-1.counters", "1-1.clients"] {
            fs::write(directory.join(name), "").unwrap();
        }
        assert!(served(std::slice::from_ref(&directory)).is_empty());
        drop(crate::read::processes(std::slice::from_ref(&directory)));
        assert!(
            !directory.join("1-1.counters").exists() && !directory.join("1-1.clients").exists()
        );
        fs::remove_dir_all(directory).unwrap();
    }

    /// The rows of the book's table of a record, and what it says of counts and levels.
    #[test]
    fn the_book_has_the_record_of_a_client() {
        let book = include_str!("../../../../docs/format-counters.md");
        let (_, book) = book.split_once("## Clients of a daemon").expect("a section");
        let places = [NUMBER, USER, PROCESS, SERVICE, SINCE].map(|at| at.to_string());
        let ranges = [(PROGRAM, 2), (NAME, 16), (COUNTS, COUNT), (LEVELS, LEVEL)];
        let ranges = ranges.map(|(at, words)| format!("{at}–{}", at + words - 1));
        for row in places.iter().chain(&ranges) {
            assert!(book.contains(&format!("\n| {row} |")), "{row}");
        }
        let sizes = [SERVICES, CLIENTS, RECORD, HEADER].map(|size| size.to_string());
        assert!(sizes.iter().all(|size| book.contains(size)));
    }

    #[test]
    fn what_is_no_such_file_is_not_read() {
        let directory = directory("wrong");
        drop(open(&directory));
        let path = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&path).unwrap();
        let reads = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            served(std::slice::from_ref(&directory)).len()
        };
        assert_eq!((reads(&whole), reads(&whole[1..]), reads(b"")), (1, 0, 0));
        for at in [0, 8, 16, 40] {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert_eq!(reads(&other), 0, "{at}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
