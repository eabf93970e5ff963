// SPDX-License-Identifier: Apache-2.0
//! The daemon is killed and started again under programs that use its keys by `libmetaslot.so`.

use crate::common::{Killed, Place, USER, compiled, initialized, pairs, started, write_own};
use metaslot_ck::*;
use metaslot_spi::store::{Role, Scope, Store as _};
use metaslot_testkit::{copies, module_path, not_run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What each process does, as restart.c has it.
const ROLES: [&str; 8] = ["s", "l", "s", "f", "t", "l", "s", "t"];
/// How often the daemon is killed; `METASLOT_KILLS` has another number for a longer run.
const KILLS: u32 = 40;
/// What may fail where the daemon goes: it may have been done, or not.
const ONCE: [&str; 1] = ["generate"];
const PATIENCE: Duration = Duration::from_secs(20);
/// Within this each client has done something again, on a machine that is not busy otherwise.
const AGAIN: Duration = Duration::from_millis(200);

/// A token with a pair to sign with and one to decrypt with, that this user's programs may use without a PIN.
fn place() -> Place {
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    configure(&place);
    place
}

fn configure(place: &Place) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    fs::write(place.path().join("progress"), [0; 4096]).expect("it is written");
    let user = rustix::process::geteuid().as_raw();
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/socket\"\n[[client]]\n\
         services = [\"user:{user}\"]\ntoken = \"door\"\nkeys = [\"site\", \"seal\"]\n\
         operations = [\"sign\", \"verify\", \"encrypt\", \"decrypt\"]\n"
    );
    fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let client = format!(
        "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{at}/socket\"\nserves = [\"digest\"]\n"
    );
    fs::write(place.path().join("metaslot.toml"), client).expect("it is written");
}

pub(crate) fn client(place: &Place, module: &Path, number: usize) -> Killed {
    let mut command = Command::new(place.path().join("restart"));
    command.arg(module).arg(ROLES[number]).arg(place.path().join("progress"));
    command.arg(number.to_string()).arg(std::str::from_utf8(USER).expect("it is text"));
    command.env("METASLOT_CONF", place.path().join("metaslot.toml")).env("HOME", place.path());
    Killed(command.stdout(Stdio::piped()).spawn().expect("it was built"))
}

/// When each client last did something.
fn progress(file: &File) -> [u64; ROLES.len()] {
    let mut bytes = [0; ROLES.len() * 8];
    file.read_exact_at(&mut bytes, 0).expect("it is there");
    std::array::from_fn(|at| u64::from_ne_bytes(bytes.as_chunks().0[at]))
}

/// Until each client has done something since: how long that took.
pub(crate) fn wait(file: &File, clients: &mut [Killed]) -> Duration {
    let (start, before) = (Instant::now(), progress(file));
    while progress(file).iter().zip(before).take(clients.len()).any(|(now, before)| *now == before)
    {
        assert!(start.elapsed() < PATIENCE, "{before:?} is the same after {PATIENCE:?}");
        let ended =
            clients.iter_mut().any(|client| client.0.try_wait().is_ok_and(|it| it.is_some()));
        assert!(!ended, "a client has ended");
        sleep(Duration::from_millis(1));
    }
    start.elapsed()
}

/// Clients that end in the middle of a request, send rubbish, and read nothing.
fn rude(place: &Place) -> Option<UnixStream> {
    let connect = || UnixStream::connect(place.path().join("socket"));
    let mut half = connect().ok()?;
    half.write_all(&[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1]).ok()?;
    connect().ok()?.write_all(&[0xff; 4096]).ok();
    let mut silent = connect().ok()?;
    silent.set_nonblocking(true).ok()?;
    silent.write_all(&[2]).ok()?;
    while silent.write(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]).is_ok() {}
    Some(silent)
}

fn told_to_end(process: &mut Killed) {
    let id = process.0.id().to_string();
    Command::new("/bin/kill").args(["-TERM", &id]).status().expect("it is installed");
    let status = process.0.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

/// How often each call of all the clients had which code.
pub(crate) fn counted(clients: Vec<Killed>) -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    for mut client in clients {
        let mut output = client.0.stdout.take().expect("a pipe");
        told_to_end(&mut client);
        let mut told = String::new();
        output.read_to_string(&mut told).expect("it tells");
        for line in told.lines() {
            let [call, code, count] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let count: u64 = count.parse().expect("a number");
            *all.entry((call.to_owned(), code.to_owned())).or_insert(0) += count;
        }
    }
    all
}

/// What of the two private keys is in the store: each sixteen bytes of it that are no text or zeros, as they are and from behind, as
/// numbers are in memory.
fn parts(place: &Place) -> Vec<[u8; 16]> {
    let store = place.store();
    store.login(Role::User, USER).expect("the user logs in");
    let private = |label: &str| {
        [(CKA_CLASS, CKO_PRIVATE_KEY.to_ne_bytes().to_vec()), (CKA_LABEL, label.into())]
    };
    let found = ["site", "seal"].map(|label| {
        let found = store.search(&private(label), Scope::Both, 0, 1).expect("it is read");
        store.secrets(found[0].id, 1).expect("it opens")
    });
    let pieces = found.iter().flat_map(|secret| secret.expose().as_chunks().0.to_vec());
    let random = pieces.filter(|piece: &[u8; 16]| {
        piece.iter().collect::<BTreeSet<_>>().len() > 12 && !piece.is_ascii()
    });
    random.flat_map(|piece| [piece, reversed(piece)]).collect()
}

fn reversed(mut piece: [u8; 16]) -> [u8; 16] {
    piece.reverse();
    piece
}

/// The memory of clients, which have signed and decrypted, has no part of the keys; that of this process does.
fn no_key_is_in(clients: &[Killed], place: &Place) {
    let parts = parts(place);
    let seen =
        |process: u32| copies(process, &parts).iter().filter(|found| **found != [0, 0]).count();
    assert!(parts.len() > 20 && seen(std::process::id()) == parts.len());
    assert_eq!(clients.iter().map(|client| seen(client.0.id())).sum::<usize>(), 0);
}

#[test]
fn a_daemon_that_is_killed_under_load_fails_nothing_that_can_be_repeated() {
    let Some(module) = module_path().filter(|_| Path::new("/usr/bin/gcc").exists()) else {
        return not_run("metaslotd", "kills under load", "there is no libmetaslot.so, or no gcc");
    };
    let module = fs::canonicalize(module).expect("it is there");
    let kills = std::env::var("METASLOT_KILLS").ok().and_then(|number| number.parse().ok());
    let kills = kills.unwrap_or(KILLS);
    let place = place();
    compiled(&place, "restart");
    let file = File::open(place.path().join("progress")).expect("it is there");
    let mut clients = vec![client(&place, &module, 0)];
    // It looks for the token by then, and the daemon comes later.
    sleep(Duration::from_millis(100));
    let mut server = started(&place);
    clients.extend((1..ROLES.len()).map(|number| client(&place, &module, number)));
    wait(&file, &mut clients);
    let mut again = Vec::new();
    for kill in 0..kills {
        let silent = rude(&place);
        // At another moment each time.
        sleep(Duration::from_micros(u64::from(kill) * 7919 % 50_000));
        if kill % 4 == 3 {
            // As for an upgrade.
            told_to_end(&mut server);
        }
        drop(server);
        server = started(&place);
        again.push(wait(&file, &mut clients));
        drop(silent);
    }
    no_key_is_in(&clients, &place);
    let counts = counted(clients);
    again.sort_unstable();
    let slow = again.iter().filter(|time| **time > AGAIN).count();
    println!(
        "{kills} kills; served again after {:?} (median), {:?} (longest), {slow} times more than {AGAIN:?}",
        again[again.len() / 2],
        again[again.len() - 1]
    );
    counts.iter().for_each(|((call, code), count)| println!("{call} {code} {count}"));
    let wrong = counts.keys().filter(|(call, code)| {
        code != "0x0" && !(ONCE.contains(&&**call) && *code == format!("0x{:x}", CKR_DEVICE_ERROR))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let undone = |call: &&str| !counts.contains_key(&((*call).to_owned(), String::from("0x0")));
    let all =
        ["sign", "verify", "decrypt", "digest", "find", "read", "generate", "destroy", "child"];
    assert_eq!(all.iter().find(|call| undone(call)), None);
}
