// SPDX-License-Identifier: Apache-2.0
//! Three daemons on three machines, whose token is in a database with a synchronous standby on two more: the primary dies, and a
//! machine is cut off, while programs on all of them write and sign.

use crate::common::{Killed, Place, SO, USER, program, started_by, write_own};
use crate::databases::{fill, postgres};
use crate::networks::{Networks, on};
use metaslot_ck::*;
use metaslot_client::{Access, Error, Mechanism, Session, Template, User};
use metaslot_keystore::{Cost, Kdf};
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Role, Store as _};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const MACHINES: usize = 3;
const WRITERS: usize = 8;
/// How often the primary dies; `METASLOT_FAILOVERS` has another number for a longer run.
const FAILOVERS: u32 = 1;
/// How long a machine that is cut off may go on.
const AWAY: Duration = Duration::from_secs(11);
/// Until it may be noticed that a connection is none any more: it is looked at so often, and that may take as long.
const NOTICED: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
/// So that a machine can be cut off while it tries a PIN.
const SLOW: Cost = Cost::Fixed(Kdf::Pbkdf2HmacSha256 { iterations: 2_000_000 });

/// Declared in the order in which they end.
struct Fleet {
    primary: postgres::Place,
    standby: postgres::Place,
    url: String,
    networks: Networks,
}

impl Fleet {
    /// With the daemons, which end before their database.
    fn new() -> Option<(Self, Vec<(Killed, Place)>)> {
        let networks = Networks::new("a fleet", MACHINES + 2)?;
        let [first, second] = [0, 1].map(|at| networks.machines[MACHINES + at].clone());
        let hosts = format!("{},{}", first.address, second.address);
        let primary = postgres::Place::on(first, "fleet")?;
        let standby = primary.standby_on(second, "0");
        replicated(&primary);
        let mut fleet = Self { primary, standby, url: hosts, networks };
        let daemons = fleet.start();
        Some((fleet, daemons))
    }

    fn start(&mut self) -> Vec<(Killed, Place)> {
        let places = [(); MACHINES].map(|()| Place::new());
        let roots = places[0].path().join("ca.pem");
        fs::copy(self.primary.path("ca.pem"), &roots).expect("it is copied");
        self.url = format!(
            "postgresql://postgres@localhost:5432,localhost:5432/postgres?hostaddr={}&token=test&connect_timeout=1&sslrootcert={}",
            self.url,
            roots.display()
        );
        let [cheap, slow] = [postgres::CHEAP, SLOW].map(|kdf| self.store(kdf));
        on(&self.networks.machines[0], || {
            fill(cheap);
            slow.set_pin(Role::So, SO, SO).expect("the PIN takes long from now on");
        });
        let both = places.into_iter().zip(&self.networks.machines);
        let daemons = both.map(|(place, machine)| {
            configure(&place, &self.url);
            let mut command = Command::new("nsenter");
            let network = machine.network.as_ref().expect("it has one");
            command.arg(format!("--net=/run/netns/{network}")).arg(program());
            (started_by(command, &place), place)
        });
        daemons.collect()
    }

    /// The token, for a process that is on one of the machines.
    fn store(&self, kdf: Cost) -> PostgresStore {
        let address = self.url.parse().expect("it is right");
        PostgresStore::new(Config { address, kdf, ..self.primary.config() })
    }

    /// The primary dies, and the standby is the primary.
    fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.sql("SELECT pg_promote()");
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// Where the primary was that died there is a standby.
    fn replace(&mut self, number: u32) {
        let machine = self.standby.machine().clone();
        self.standby = self.primary.standby_on(machine, &format!("{}", number + 1));
        replicated(&self.primary);
    }
}

/// What is acknowledged from now on is on the standby, too, and so is what was.
fn replicated(primary: &postgres::Place) {
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.sql("SELECT pg_reload_conf()");
    let is_sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    postgres::until("the standby is synchronous", || primary.sql(is_sync) == "1");
    let now = primary.sql("SELECT pg_current_wal_lsn()");
    let sql = format!("SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '{now}'");
    postgres::until("the standby has everything", || primary.sql(&sql) == "1");
}

fn configure(place: &Place, url: &str) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    write_own(place.path().join("password"), postgres::PASSWORD);
    fs::write(place.path().join("anchor"), "").expect("it is made");
    let (user, away) = (rustix::process::geteuid().as_raw(), AWAY.as_secs());
    let text = format!(
        "counters = false\n[[token]]\nstore = \"{url}\"\nanchor = \"{at}/anchor\"\naway = \"{away}s\"\n\
         password-source = \"file:{at}/password\"\npin-source = \"file:{at}/pin\"\n\
         [daemon]\nsocket = \"{at}/door\"\n\
         [[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\noperations = [\"sign\"]\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

/// What the programs have seen.
#[derive(Default)]
struct Told {
    over: AtomicBool,
    created: Mutex<Vec<String>>,
    wrote: [AtomicU64; WRITERS],
    refused: Mutex<BTreeMap<String, u64>>,
    signed: [AtomicU64; MACHINES],
    signed_last: Mutex<[Option<Instant>; MACHINES]>,
    unsigned: Mutex<Vec<(usize, Instant, Error)>>,
}

impl Told {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// When the last signature was made there, once one has failed.
    fn ended_on(&self, machine: usize) -> Option<Instant> {
        let all = self.unsigned.lock().expect("no panic");
        let has_failed = all.iter().any(|one| one.0 == machine);
        self.signed_last.lock().expect("no panic")[machine].filter(|_| has_failed)
    }

    /// Until each of these writers has written again: how long that took.
    fn written(&self, writers: &[usize]) -> Duration {
        let now = || writers.iter().map(|at| self.wrote[*at].load(Ordering::Relaxed));
        let (begun, before) = (Instant::now(), now().collect::<Vec<_>>());
        while now().zip(&before).any(|(now, before)| now <= *before + 1) {
            assert!(begun.elapsed() < PATIENCE, "they do not write: {:?}", self.refused);
            sleep(Duration::from_millis(2));
        }
        begun.elapsed()
    }
}

fn session(place: &Place, access: Access) -> Session {
    let module = place.module(1);
    module.initialize().expect("it begins");
    module.open_session(SlotId(0), access).expect("a session opens")
}

fn write(place: &Place, writer: usize, told: &Told) {
    let session = session(place, Access::ReadWrite);
    session.login(User::User, USER).expect("the user logs in");
    for number in 0.. {
        if !told.goes_on() {
            return;
        }
        let label = format!("{writer}-{number}");
        let object = Template::new().class(CKO_DATA).label(&label).token(true);
        // No more than are found again in a short time.
        sleep(Duration::from_millis(8));
        match session.create(&object.bytes(CKA_VALUE, [7; 64])) {
            Ok(_) => {
                told.created.lock().expect("no panic").push(label);
                told.wrote[writer].fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                *told.refused.lock().expect("no panic").entry(error.to_string()).or_default() += 1;
                sleep(Duration::from_millis(20));
            }
        }
    }
}

fn sign(place: &Place, machine: usize, told: &Told) {
    let session = session(place, Access::ReadOnly);
    let template = Template::new().class(CKO_PRIVATE_KEY).label("site");
    let key = session.find_one(&template).expect("a search").expect("the key is there");
    while told.goes_on() {
        match session.sign(&Mechanism::new(CKM_ECDSA), key, &[1; 32]) {
            Ok(_) => {
                told.signed[machine].fetch_add(1, Ordering::Relaxed);
                told.signed_last.lock().expect("no panic")[machine] = Some(Instant::now());
            }
            Err(error) => {
                told.unsigned.lock().expect("no panic").push((machine, Instant::now(), error));
            }
        }
        sleep(Duration::from_millis(1));
    }
}

/// The last machine is cut off while it tries a PIN. Gives how long it went on, and after what time it was one of them again.
fn partition(fleet: &Fleet, place: &Place, told: &Told, is_long: bool) -> (Duration, Duration) {
    let cut = MACHINES - 1;
    let session_there = session(place, Access::ReadOnly);
    let tries = "SELECT so_failures FROM metaslot.token";
    let (first, machine) = (&fleet.networks.machines[0], &fleet.networks.machines[cut]);
    let (begun, said) = thread::scope(|scope| {
        let store = fleet.store(SLOW);
        let attempt = scope.spawn(|| {
            on(machine, move || store.check_pin(Role::So, SO).map_err(|_| postgres::told()))
        });
        // The server itself waits: a program that asked again and again could come too late.
        fleet.primary.sql(
            "DO $$ BEGIN FOR n IN 1..2000 LOOP
               EXIT WHEN (SELECT so_failures FROM metaslot.token) = 1; PERFORM pg_sleep(0.005);
             END LOOP; END $$",
        );
        assert!(fleet.networks.cut(MACHINES), "it is cut off");
        let begun = Instant::now();
        (begun, attempt.join().expect("it ends").expect_err("it was cut off before its end"))
    });
    assert!(said.contains("the database is away"), "{said}");
    assert_eq!(fleet.primary.sql(tries), "1", "the attempt stays counted");
    // Those on the other machines write as before.
    told.written(&[0, 1]);
    let mut ended = None;
    while ended.is_none() {
        assert!(begun.elapsed() < PATIENCE, "it signs for {PATIENCE:?}");
        ended = told.ended_on(cut);
        sleep(Duration::from_millis(2));
    }
    let lasted = ended.map_or(PATIENCE, |ended| ended - begun);
    let other = || fleet.store(postgres::CHEAP).check_pin(Role::So, SO).is_ok();
    if is_long {
        while !on(first, other) {
            assert!(begun.elapsed() < 2 * PATIENCE, "nobody else may try a PIN");
        }
        println!("another machine's PIN is tried after {:?}", begun.elapsed());
    }
    let late = told.created.lock().expect("no panic").last().cloned().expect("there is one");
    assert!(fleet.networks.join(MACHINES), "it is not cut off any more");
    let begun = Instant::now();
    let there = || session_there.find(&Template::new().label(&late)).is_ok_and(|it| it.len() == 1);
    postgres::until("it sees what was written meanwhile", there);
    let back = begun.elapsed();
    postgres::until("a PIN may be tried again", || on(first, other));
    assert_eq!(fleet.primary.sql(tries), "0");
    told.written(&[cut]);
    (lasted, back)
}

/// What was acknowledged is there once, and everything is sound.
fn verify(fleet: &Fleet, told: &Told) -> usize {
    let created = told.created.lock().expect("no panic");
    on(&fleet.networks.machines[0], || {
        let store = fleet.store(postgres::CHEAP);
        store.login(Role::User, USER).expect("the user logs in");
        let lost = created.iter().filter(|label| postgres::find(&store, label).len() != 1);
        assert_eq!(lost.collect::<Vec<_>>(), Vec::<&String>::new(), "they were acknowledged");
        assert_eq!(postgres::examine(&store).1, []);
    });
    created.len()
}

#[test]
fn a_fleet_loses_nothing_that_was_acknowledged_and_signs_while_its_database_dies() {
    let kills = std::env::var("METASLOT_FAILOVERS").ok().and_then(|number| number.parse().ok());
    let kills = kills.unwrap_or(FAILOVERS);
    let Some((mut fleet, daemons)) = Fleet::new() else { return };
    let told = Told::default();
    thread::scope(|scope| {
        let told = &told;
        let ended = Ended(told);
        for writer in 0..WRITERS {
            let place = &daemons[writer % MACHINES].1;
            scope.spawn(move || write(place, writer, told));
        }
        for (machine, (_, place)) in daemons.iter().enumerate() {
            scope.spawn(move || sign(place, machine, told));
        }
        let all: Vec<_> = (0..WRITERS).collect();
        told.written(&all);
        let mut again = Vec::new();
        for kill in 0..kills {
            sleep(Duration::from_millis(u64::from(kill) * 7919 % 300));
            fleet.fail_over();
            again.push(told.written(&all));
            if kill + 1 < kills {
                fleet.replace(kill);
            }
        }
        again.sort_unstable();
        assert_eq!(*told.unsigned.lock().expect("no panic"), [], "nothing fails in a failover");
        let (lasted, back) = partition(&fleet, &daemons[MACHINES - 1].1, told, kills > FAILOVERS);
        println!("{kills} failovers; all write again {again:?} after the standby was promoted");
        println!(
            "cut off, a machine signs for {lasted:?}; {back:?} later it sees the others' changes"
        );
        let soonest = AWAY.saturating_sub(NOTICED / 2);
        assert!((soonest..AWAY + NOTICED / 4).contains(&lasted), "{lasted:?} and not {AWAY:?}");
        drop(ended);
    });
    let count = verify(&fleet, &told);
    println!(
        "{count} objects acknowledged, all there; {:?} signatures; refused: {:?}",
        told.signed, told.refused
    );
    let cut = |one: &(usize, Instant, Error)| one.0 == MACHINES - 1;
    assert!(told.unsigned.lock().expect("no panic").iter().all(cut));
}

/// Ends what the programs do, also where the test fails.
struct Ended<'a>(&'a Told);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}
