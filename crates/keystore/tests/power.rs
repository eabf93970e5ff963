// SPDX-License-Identifier: Apache-2.0
//! Power cuts: what a writer wrote and synced is recorded with strace, and the disk is rebuilt as
//! a cut at any moment could have left it. What was acknowledged before must be there.
//!
//! After a cut, a file holds everything written before its last sync, and of what was written since
//! any part: each write whole, torn or not at all, in any order.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Sandbox, USER, find, insert, private};
use metaslot_keystore::{Config, SqliteStore};
use metaslot_spi::store::{Change, Role, Store};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Set for the child that is recorded.
const RECORDED: &str = "METASLOT_TEST_RECORDED";

/// The object of a number that only goes up.
const COUNTED: &str = "counted";

/// In a child: creates, changes and deletes until SQLite's log was checkpointed and begun again.
#[test]
fn child_that_is_recorded() {
    let Some(path) = std::env::var_os(RECORDED) else { return };
    let store = SqliteStore::new(Config::new(path));
    store.login(Role::User, USER).unwrap();
    let mut last = 0;
    let counted = insert(&store, private(COUNTED));
    for number in 0..70 {
        // As one-time keys of a signature are taken, and blocks of IVs.
        let mut record = private(COUNTED);
        record.attributes = vec![number];
        let version = store.read(counted).unwrap().unwrap().version;
        store.write(vec![Change::Update { id: counted, version, record }]).unwrap();
        println!("\ncounted {number}");
        let label = format!("key {number}");
        let mut record = private(&label);
        // Two writes in three are large, so that the log is full soon.
        if number % 3 != 0 {
            record.attributes = vec![number; 100_000];
        }
        let id = insert(&store, record);
        println!("\nacknowledged {id} {label}");
        if number % 7 == 3 {
            // What a login writes last is not synced, and may neither be missed nor take something with it.
            store.login(Role::User, USER).unwrap();
        }
        if number % 10 == 9 {
            println!("\nforgotten {last}");
            store.write(vec![Change::Delete { id: last, version: 1, unique_id: None }]).unwrap();
        }
        last = id;
    }
}

/// What the child did, in order.
enum Event {
    Write { file: String, offset: usize, bytes: Vec<u8> },
    Cut { file: String, length: usize },
    Sync { file: String },
    Said { line: String },
}

fn record(place: &Path, database: &Path) -> Option<Vec<Event>> {
    let log = place.join("strace");
    let status = Command::new("strace")
        .args(["-f", "-xx", "-s", "200000", "-o"])
        .arg(&log)
        .args(["-e", "trace=openat,close,write,pwrite64,ftruncate,fsync,fdatasync"])
        .arg(std::env::current_exe().unwrap())
        .args(["child_that_is_recorded", "--exact", "--nocapture", "--test-threads=1"])
        .env(RECORDED, database)
        .stdout(std::process::Stdio::null())
        .status();
    match status {
        Ok(status) => assert!(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    }
    Some(events(&fs::read_to_string(log).unwrap()))
}

/// The bytes of a string as `strace -xx` prints it.
fn unescape(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").skip(1);
    digits.map(|pair| u8::from_str_radix(&pair[..2], 16).unwrap()).collect()
}

fn events(log: &str) -> Vec<Event> {
    let mut files: HashMap<String, String> = HashMap::new();
    let mut events = Vec::new();
    for line in log.lines() {
        let Some((_, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let Some((name, rest)) = call.split_once('(') else { continue };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { continue };
        let Some(arguments) = arguments.trim_end().strip_suffix(')') else { continue };
        if result.starts_with('-') {
            continue;
        }
        let quoted = arguments.split('"').nth(1).map(unescape).unwrap_or_default();
        let descriptor = arguments.split(',').next().unwrap().to_owned();
        let last = arguments.rsplit(", ").next().unwrap();
        if name == "openat" {
            let path = String::from_utf8(quoted).unwrap();
            let file = path.rsplit('/').next().unwrap().to_owned();
            files.insert(result.to_owned(), file);
            continue;
        }
        if name == "close" {
            files.remove(&descriptor);
            continue;
        }
        if name == "write" && descriptor == "1" {
            let line = String::from_utf8_lossy(&quoted).trim().to_owned();
            events.push(Event::Said { line });
            continue;
        }
        let Some(file) = files.get(&descriptor).filter(|file| file.starts_with("token.db")) else {
            continue;
        };
        let file = file.clone();
        events.push(match name {
            "pwrite64" => Event::Write { file, offset: last.parse().unwrap(), bytes: quoted },
            "ftruncate" => Event::Cut { file, length: last.parse().unwrap() },
            "fsync" | "fdatasync" => Event::Sync { file },
            other => panic!("{other} on {file}"),
        });
    }
    events
}

/// The durable part of one file, and what may or may not have reached the disk.
#[derive(Clone, Default)]
struct Disk {
    durable: Vec<u8>,
    pending: Vec<(usize, Vec<u8>, bool)>,
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if file.len() < offset + bytes.len() {
        file.resize(offset + bytes.len(), 0);
    }
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Disk {
    /// Applies the pending changes that `keep` keeps, each as far as it says.
    fn after(&self, mut keep: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut file = self.durable.clone();
        for (offset, bytes, cut) in &self.pending {
            if *cut {
                if keep(1) > 0 {
                    file.resize(*offset, 0);
                }
                continue;
            }
            let length = keep(bytes.len());
            put(&mut file, *offset, &bytes[..length]);
        }
        file
    }
}

/// What must be there, and what was about to be deleted.
#[derive(Clone, Default)]
struct Promised {
    there: Vec<(u64, String)>,
    /// Where the number is at least.
    counted: Option<u8>,
}

impl Promised {
    fn hear(&mut self, line: &str) {
        for line in line.lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            match words[..] {
                ["acknowledged", id, label] => {
                    self.there.push((id.parse().unwrap(), label.to_owned()));
                }
                ["forgotten", id] => {
                    let id: u64 = id.parse().unwrap();
                    self.there.retain(|(other, _)| *other != id);
                }
                ["counted", number] => self.counted = Some(number.parse().unwrap()),
                _ => {}
            }
        }
    }
}

/// A store on the disk as it is after the cut.
fn check(disks: &HashMap<String, Vec<u8>>, promised: &Promised, moment: &str) {
    use std::os::unix::fs::PermissionsExt;
    let place = Sandbox::in_memory();
    fs::create_dir_all(place.path()).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    for (file, bytes) in disks {
        fs::write(place.path().join(file), bytes).unwrap();
    }
    let store = place.store();
    store.login(Role::User, USER).unwrap_or_else(|error| panic!("{moment}: {error}"));
    for (id, label) in &promised.there {
        assert_eq!(find(&store, label), [*id], "{moment}: {label}");
        let row = store.read(*id).unwrap().unwrap();
        let secrets = store.secrets(*id, row.version).unwrap();
        assert_eq!(secrets.expose(), format!("secret of {label}").as_bytes());
    }
    if let Some(counted) = promised.counted {
        let row = store.read(find(&store, COUNTED)[0]).unwrap().unwrap();
        // What was about to be counted may be there.
        assert!([counted, counted + 1].contains(&row.attributes[0]), "{moment}: {counted}");
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{moment}: {report:?}");
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_moment() {
    let place = Sandbox::new();
    drop(place.token());
    let mut disks: HashMap<String, Disk> = HashMap::new();
    for file in ["token.db", "token.db-wal"] {
        let durable = fs::read(place.path().join(file)).unwrap();
        disks.insert(file.to_owned(), Disk { durable, pending: Vec::new() });
    }
    let Some(events) = record(place.path(), &place.database()) else {
        return metaslot_testkit::not_run("keystore", "power cuts", "strace is not installed");
    };
    let step: usize = std::env::var("METASLOT_TEST_CUTS").map_or(200, |step| step.parse().unwrap());
    let mut promised = Promised::default();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap()
    };
    let (mut cuts, mut syncs, mut checkpoints) = (0, 0, 0);
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Said { line } => promised.hear(line),
            Event::Sync { file } => {
                let Some(disk) = disks.get_mut(file) else { continue };
                disk.durable = disk.after(|length| length);
                disk.pending.clear();
                syncs += 1;
                checkpoints += usize::from(file == "token.db");
            }
            Event::Cut { file, length } => {
                let Some(disk) = disks.get_mut(file) else { continue };
                disk.pending.push((*length, Vec::new(), true));
            }
            Event::Write { file, offset, bytes } => {
                let Some(disk) = disks.get_mut(file) else { continue };
                disk.pending.push((*offset, bytes.clone(), false));
            }
        }
        let checkpointing = match event {
            Event::Write { file, .. } => file == "token.db" && at % step.div_ceil(10) == 0,
            Event::Sync { file } => file == "token.db",
            _ => false,
        };
        if at % step != 0 && !checkpointing {
            continue;
        }
        for kind in 0..4 {
            let state = disks
                .iter()
                .map(|(file, disk)| {
                    let content = disk.after(|length| match (kind, next() % 3) {
                        // In order, nothing since the sync, and two of a random part of it.
                        (0, _) | (2 | 3, 0) => length,
                        (3, 1) => length.min(512 * (next() % 9)),
                        _ => 0,
                    });
                    (file.clone(), content)
                })
                .collect();
            check(&state, &promised, &format!("event {at}, kind {kind}"));
            cuts += 1;
        }
    }
    println!("{cuts} cuts, {syncs} syncs, {checkpoints} checkpoints");
    assert!(promised.there.len() > 50 && syncs > 140 && checkpoints > 0);
    assert_eq!(promised.counted, Some(69));
}
