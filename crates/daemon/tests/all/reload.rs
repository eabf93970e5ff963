// SPDX-License-Identifier: Apache-2.0
//! The configuration, changed while the daemon serves.

use crate::common::{Killed, Place, Raw};
use crate::lanes::{Beside, framed, message};
use crate::protocol::{mechanism, template};
use crate::service::{command, found, opened, place, session_of};
use metaslot_ck::*;
use rustix::process::{Pid, Signal, getegid, geteuid, kill_process};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A daemon, what it tells its service manager, and what it says.
struct Daemon {
    process: Killed,
    manager: UnixDatagram,
    place: Place,
    said: PathBuf,
}

impl Daemon {
    fn start(settings: &str, daemon: &str, client: &str) -> Self {
        let place = place();
        configure(&place, settings, daemon, client);
        let manager = UnixDatagram::bind(place.path().join("notify")).expect("a socket is made");
        manager.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        let said = place.path().join("said");
        let mut command = command(place.path());
        command.env("NOTIFY_SOCKET", place.path().join("notify"));
        let process = command.stderr(File::create(&said).expect("it is made")).spawn();
        let process = Killed(process.expect("it is built"));
        let daemon = Self { process, manager, place, said };
        assert_eq!(daemon.told(), "READY=1");
        daemon
    }

    fn told(&self) -> String {
        let mut told = [0; 128];
        let length = self.manager.recv(&mut told).expect("it tells");
        String::from_utf8_lossy(&told[..length]).into_owned()
    }

    /// What it says last when it has read the configuration again.
    fn reload(&self) -> String {
        let process = Pid::from_child(&self.process.0);
        kill_process(process, Signal::HUP).expect("it runs");
        let told = self.told();
        assert!(told.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{told}");
        assert_eq!(self.told(), "READY=1");
        let said = fs::read_to_string(&self.said).expect("it is there");
        said.lines().last().expect("a line").trim_start_matches("metaslotd: ").to_owned()
    }

    fn configure(&self, settings: &str, daemon: &str, client: &str) -> String {
        configure(&self.place, settings, daemon, client);
        self.reload()
    }
}

/// Without an audit log nothing but its own right to read lets it read its configuration from behind the fence.
fn configure(place: &Place, settings: &str, daemon: &str, client: &str) {
    let (at, user) = (place.path().display(), geteuid().as_raw());
    let text = format!(
        "{settings}\ncounters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/socket\"\n{daemon}\n\
         [[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\n{client}\n"
    );
    // As editors do it.
    fs::write(place.path().join("new"), text).expect("it is written");
    fs::rename(place.path().join("new"), place.path().join("metaslotd.toml")).expect("it is moved");
}

const SITE: &str = "keys = [\"site\"]\noperations = [\"sign\"]";
const ALL: &str = "operations = [\"sign\"]";
const NOW: &str = "serves by the configuration as it is now";

fn keys(raw: &mut Raw, session: u64) -> usize {
    found(raw, session, CKO_PRIVATE_KEY).len()
}

fn is_open(raw: &mut Raw) -> bool {
    let read = raw.stream.set_nonblocking(true).and_then(|()| raw.stream.read(&mut [0]));
    raw.stream.set_nonblocking(false).expect("it is a socket");
    read.is_err()
}

#[test]
fn who_has_what_changes_while_it_serves() {
    let daemon = Daemon::start("", "", ALL);
    let (mut old, session) = opened(&daemon.place, 0);
    assert_eq!(keys(&mut old, session), 2);
    assert_eq!(daemon.configure("", "connections = 9", ALL), NOW);
    assert!(is_open(&mut old), "it has what it had");
    assert_eq!(daemon.configure("", "", SITE), NOW);
    assert!(!is_open(&mut old), "what it had is not given any more");
    let (mut new, session) = opened(&daemon.place, 0);
    assert_eq!(keys(&mut new, session), 1);
    // One key more is no reason to go.
    let more = format!(
        "{SITE}\n[[client]]\nservices = [\"user:{}\"]\ntoken = \"door\"\n{ALL}",
        geteuid().as_raw()
    );
    assert_eq!(daemon.configure("", "", &more), NOW);
    assert!(is_open(&mut new) && keys(&mut new, session) == 1);
    let (mut newer, session) = opened(&daemon.place, 0);
    assert_eq!(keys(&mut newer, session), 2);
}

/// It sees the end of the socket only where it looks there.
#[test]
fn who_asks_through_its_memory_without_end_loses_what_it_had_too() {
    let daemon = Daemon::start("", "", ALL);
    let stream = UnixStream::connect(daemon.place.path().join("socket")).expect("it listens");
    let (busy, answered) = (Beside::over(stream), &AtomicU64::new(0));
    let mut raw = busy.raw();
    let session = session_of(&mut raw, 0);
    // It takes much longer than to ask again.
    let pair = message(59, |request| {
        request.number(session);
        mechanism(request, CKM_RSA_PKCS_KEY_PAIR_GEN, None);
        template(request, &[(CKA_MODULUS_BITS, &2048_u64.to_ne_bytes())]);
        template(request, &[(CKA_PRIVATE, &[0])]);
    });
    let pair = &framed(1, &pair);
    let (stop, until) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(20));
    let asks = || !stop.load(Ordering::SeqCst) && Instant::now() < until;
    let times = || answered.load(Ordering::SeqCst);
    let (before, after) = thread::scope(|scope| {
        scope.spawn(move || busy.ask_without_end(pair, asks, answered));
        while times() == 0 && asks() {
            thread::sleep(Duration::from_millis(1));
        }
        let said = daemon.configure("", "", SITE);
        let before = times();
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::SeqCst);
        assert_eq!(said, NOW);
        (before, times())
    });
    assert!(before > 0, "it was answered through the memory");
    assert!(after <= before + 1, "it was answered {} times more", after - before);
}

#[test]
fn a_wrong_configuration_changes_nothing() {
    let daemon = Daemon::start("", "", SITE);
    let (mut raw, session) = opened(&daemon.place, 0);
    for (settings, more, client, reason) in [
        ("", "", "keys = 1", "keys is a list of labels"),
        ("what = 1", "", SITE, "there is no setting"),
        ("", "group = \"no such group\"", ALL, "there is no group"),
        ("", "connections = 0", ALL, "must be a number"),
    ] {
        let said = daemon.configure(settings, more, client);
        assert!(said.starts_with("serves by the configuration as it was: "), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(is_open(&mut raw));
        assert_eq!(keys(&mut raw, session), 1);
        let (mut new, session) = opened(&daemon.place, 0);
        assert_eq!(keys(&mut new, session), 1, "{said}");
    }
    fs::remove_file(daemon.place.path().join("metaslotd.toml")).expect("it was there");
    assert!(daemon.reload().starts_with("serves by the configuration as it was: "));
}

#[test]
fn what_is_named_and_not_there_is_said_when_it_is_read_again() {
    let daemon = Daemon::start("", "", SITE);
    assert_eq!(daemon.configure("", "", "keys = [\"sight\"]\noperations = []"), NOW);
    let said = fs::read_to_string(&daemon.said).expect("it is there");
    let lack = "metaslotd: [[client]]: the token \"door\" has no object \"sight\"\n";
    assert!(said.contains(lack), "{said}");
}

#[test]
fn bounds_and_the_group_change_while_it_serves_and_what_cannot_is_named() {
    let daemon = Daemon::start("", "", SITE);
    let socket = daemon.place.path().join("socket");
    let mode = || fs::metadata(&socket).expect("it is there").mode() & 0o777;
    assert_eq!(mode(), 0o600);
    let group = format!("group = \"{}\"\nconnections = 1", getegid().as_raw());
    assert_eq!(daemon.configure("", &group, SITE), NOW);
    assert_eq!(mode(), 0o660);
    let (_one, _) = opened(&daemon.place, 0);
    let mut second = UnixStream::connect(&socket).expect("it listens");
    second.write_all(&[2]).ok();
    assert!(!second.read(&mut [0]).is_ok_and(|read| read == 1), "there may be one");
    assert_eq!(daemon.configure("", "", SITE), NOW);
    assert_eq!(mode(), 0o600);
    let said = daemon.configure("lanes = false", "fence = false", SITE);
    assert_eq!(said, format!("{NOW}; after a restart: fence, lanes"));
    let said = daemon.configure("lanes = false", "", SITE);
    assert_eq!(said, format!("{NOW}; after a restart: lanes"));
    assert_eq!(daemon.configure("", "", SITE), NOW);
}

#[test]
fn the_audit_log_changes_while_it_serves() {
    let at = |daemon: &Daemon, name: &str| daemon.place.path().join(name);
    let daemon = Daemon::start("", "", SITE);
    let log = |name: &str| format!("audit = \"{}\"", at(&daemon, name).display());
    // Its directory would have to be there behind the fence.
    let said = daemon.configure(&log("audit"), "", SITE);
    assert_eq!(said, format!("{NOW}; after a restart: audit"));
    assert!(!at(&daemon, "audit").exists());
    let beside = log("token/audit");
    assert_eq!(daemon.configure(&beside, "", SITE), NOW);
    let (mut raw, session) = opened(&daemon.place, 0);
    let refused = raw.call(18, |request| {
        request.number(session);
        request.number(CKU_USER);
        request.bytes(Some(b"wrong-pin"));
    });
    assert_eq!(refused, Err(Error::PIN_INCORRECT));
    let said = daemon.configure(&beside, "connections = 0", SITE);
    assert!(said.contains("must be a number"), "{said}");
    let lines = fs::read_to_string(at(&daemon, "token/audit")).expect("there are lines");
    let events: Vec<_> = lines.lines().map(|line| line.split('"').nth(13)).collect();
    let events = events.into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(events, ["configured", "login", "not-configured"], "{lines}");
}
