// SPDX-License-Identifier: Apache-2.0
//! Reading what clients did.

use super::{
    ALL, CHANGES, CLIENTS, COUNT, COUNTS, Count, HEADER, LEVEL, LEVELS, Level, MAGIC, NAME, NUMBER,
    PROCESS, PROGRAM, RECORD, SERVICE, SERVICES, SINCE, USER, User, VERSION,
};
use crate::directory;
use crate::raw::words;
use crate::read::text;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A process that serves others.
#[derive(Clone, Debug)]
pub struct Server {
    /// The process.
    pub pid: u32,
    /// Its clients' users and services, by name and user.
    pub services: Vec<Served>,
    /// Those that are connected, by number.
    pub clients: Vec<Client>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts([u64; COUNT]);

/// One service of one user, since the process began.
#[derive(Clone, Debug)]
pub struct Served {
    /// The user.
    pub user: User,
    /// Its name; empty where it is not known.
    pub service: String,
    /// Clients that there were.
    pub connections: u64,
    /// Clients that have a record now.
    pub connected: u64,
    /// What all of them did.
    pub counts: Counts,
    levels: [u64; LEVEL],
}

/// One client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its number: no other has had it.
    pub number: u64,
    /// The user.
    pub user: User,
    /// Its process.
    pub process: u32,
    /// What its program is called.
    pub program: String,
    /// Its service; empty where it is not known.
    pub service: String,
    /// When it came, in seconds since 1970.
    pub since: u64,
    /// What it did.
    pub counts: Counts,
    levels: [u64; LEVEL],
}

impl Counts {
    /// How often.
    #[must_use]
    pub const fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(count);
        }
    }
}

impl Client {
    /// What it has now.
    #[must_use]
    pub const fn level(&self, level: Level) -> u64 {
        self.levels[level as usize]
    }
}

impl Served {
    /// What its clients have now: sessions and objects together, memory as its user has it.
    #[must_use]
    pub const fn level(&self, level: Level) -> u64 {
        self.levels[level as usize]
    }
}

/// Those that live and whose files in these directories this user may read.
#[must_use]
pub fn served(directories: &[PathBuf]) -> Vec<Server> {
    let mut found = Vec::new();
    for entry in directories.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten()
    {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "clients")
            && let Some((pid, true)) =
                path.with_extension("counters").file_name().and_then(directory::owner)
        {
            found.extend(server(&path, pid).ok());
        }
    }
    found.sort_by_key(|server| server.pid);
    found
}

/// So often a file is read while clients go.
const LOOKS: usize = 8;

fn server(path: &Path, pid: u32) -> io::Result<Server> {
    let file = directory::open_of_length(path, ALL)?;
    // As of the page: one that root made may be of a process that has another user since.
    let made_by = file.metadata()?.uid();
    let is_theirs =
        made_by == 0 || directory::users(pid).is_some_and(|users| users.contains(&made_by));
    let mut all = words(&file, 0, ALL)?;
    let expected =
        [MAGIC, VERSION, u64::from(pid), all[3], all[4], SERVICES as u64, CLIENTS as u64];
    if !is_theirs || all[..7] != expected {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for _ in 1..LOOKS {
        let after = words(&file, CHANGES, 1)?;
        if after[0] == all[CHANGES] && after[0].is_multiple_of(2) {
            break;
        }
        all = words(&file, 0, ALL)?;
    }
    Ok(of_words(pid, &all[HEADER..]))
}

fn of_words(pid: u32, all: &[u64]) -> Server {
    let (services, clients) = all.split_at(SERVICES * RECORD);
    let user = |record: &[u64]| User::of_word(record[USER]);
    let name = |record: &[u64]| text(&record[NAME..][..16]);
    let mut known = Vec::from_iter(services.chunks_exact(RECORD).map(|record| Served {
        user: user(record),
        service: name(record),
        connections: record[NUMBER],
        connected: 0,
        counts: counts(record),
        levels: [0; LEVEL],
    }));
    let mut connected = Vec::new();
    for record in clients.chunks_exact(RECORD).filter(|record| record[NUMBER] > 0) {
        let client = Client {
            number: record[NUMBER],
            user: user(record),
            process: u32::try_from(record[PROCESS]).unwrap_or(0),
            program: text(&record[PROGRAM..][..2]),
            service: name(record),
            since: record[SINCE],
            counts: counts(record),
            levels: std::array::from_fn(|level| record[LEVELS + level]),
        };
        let service = usize::try_from(record[SERVICE]).unwrap_or(SERVICES).min(SERVICES - 1);
        known[service].join(&client);
        connected.push(client);
    }
    connected.sort_by_key(|client| client.number);
    let used = services.chunks_exact(RECORD).map(|record| record[SINCE] > 0);
    let mut services =
        Vec::from_iter(known.into_iter().zip(used).filter_map(|(one, used)| used.then_some(one)));
    services.sort_by(|one, other| (&one.service, one.user).cmp(&(&other.service, other.user)));
    Server { pid, services, clients: connected }
}

impl Served {
    fn join(&mut self, client: &Client) {
        self.connected += 1;
        self.counts.add(&client.counts);
        for level in [Level::Sessions, Level::Objects] {
            let sum = &mut self.levels[level as usize];
            *sum = sum.saturating_add(client.level(level));
        }
        for level in [Level::Memory, Level::Allowed] {
            let most = &mut self.levels[level as usize];
            *most = (*most).max(client.level(level));
        }
    }
}

fn counts(record: &[u64]) -> Counts {
    Counts(std::array::from_fn(|count| record[COUNTS + count]))
}
