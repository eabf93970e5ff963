// SPDX-License-Identifier: Apache-2.0
//! A server of PostgreSQL in a directory of its own, with TLS, and short words for what every test does.
#![allow(dead_code, reason = "each test file uses its own part")]

use metaslot_ck::{CKA_CLASS, CKA_ID, CKA_LABEL};
use metaslot_keystore::{Cost, Kdf};
use metaslot_memory::Secret;
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Change, Examination, Examined, Record, Remark, Role, Scope, Store};
use metaslot_testkit::{Program, Server, find_program, free_port, not_run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const SO: &[u8] = b"so-pin-1";
pub(crate) const USER: &[u8] = b"user-pin-1";
pub(crate) const PASSWORD: &str = "password of the role";

/// Cheap enough for a test that logs in often.
pub(crate) const CHEAP: Cost = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });

/// A server that ends with its test.
#[derive(Debug)]
pub(crate) struct Place {
    home: PathBuf,
    machine: Machine,
    port: u16,
    server: Option<Server>,
    /// Whether what is committed is on the disk: tests need it in the kernel only.
    syncs: bool,
}

/// A machine that a server is on.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The name of its network, where that is not the test's.
    pub(crate) network: Option<String>,
    pub(crate) address: String,
}

impl Machine {
    fn this() -> Self {
        Self { network: None, address: String::from("127.0.0.1") }
    }

    /// Where a server may listen; always the same where it has its network to itself.
    fn port(&self) -> u16 {
        self.network.as_ref().map_or_else(|| free_port().unwrap(), |_| 5432)
    }

    /// A program on it.
    pub(crate) fn program(&self, program: &str) -> Program {
        match &self.network {
            None => Program::new(program),
            Some(name) => {
                Program::new("nsenter").args([&format!("--net=/run/netns/{name}"), program])
            }
        }
    }
}

/// Where Debian keeps the newest server.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.flatten().map(|version| version.path().join("bin"));
    found.filter(|bin| bin.join("postgres").exists()).max()
}

impl Place {
    /// `None` where there is no PostgreSQL.
    pub(crate) fn new(name: &str) -> Option<Self> {
        Self::on(Machine::this(), name)
    }

    pub(crate) fn on(machine: Machine, name: &str) -> Option<Self> {
        if programs().is_none() || find_program("openssl").is_none() {
            not_run("metaslot-postgres", name, "postgresql or openssl is not installed");
            return None;
        }
        let home =
            std::env::temp_dir().join(format!("metaslot-postgres-{}-{name}", std::process::id()));
        fs::remove_dir_all(&home).unwrap_or_default();
        fs::create_dir(&home).unwrap();
        let port = machine.port();
        let mut place = Self { home, machine, port, server: None, syncs: false };
        place.certify("");
        fs::write(place.path("password"), PASSWORD).unwrap();
        if is_root() {
            let all = ["-R", "postgres:postgres", place.home.to_str().unwrap()];
            Program::new("chown").args(all).run().unwrap();
        }
        let initdb = place.postgres("initdb").args(["--pwfile", place.file("password").as_str()]);
        let rules = "-A scram-sha-256 -U postgres --no-sync --locale=C -E UTF8";
        initdb.line(rules).args(["-D", &place.file("data")]).run().unwrap();
        let only_tls = "hostssl all,replication all samenet scram-sha-256\n";
        let or_here = "local all all scram-sha-256\n";
        fs::write(place.path("data/pg_hba.conf"), [only_tls, or_here].concat()).unwrap();
        place.start();
        Some(place)
    }

    pub(crate) const fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A certificate of the server by an authority of its own.
    pub(crate) fn certify(&self, prefix: &str) {
        let name = |end: &str| self.file(&format!("{prefix}{end}"));
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3";
        let openssl = || Program::new("openssl").env("OPENSSL_CONF", "/etc/ssl/openssl.cnf");
        let authority = openssl().line("req -x509 -subj /CN=authority").line(key);
        authority.args(["-keyout", &name("ca.key"), "-out", &name("ca.pem")]).run().unwrap();
        let server = openssl().line("req -x509 -subj /CN=localhost").line(key);
        let server = server.args(["-CA", &name("ca.pem"), "-CAkey", &name("ca.key")]);
        let server = server.line("-addext subjectAltName=DNS:localhost");
        let server = server.line("-addext basicConstraints=critical,CA:FALSE");
        server.args(["-keyout", &name("server.key"), "-out", &name("server.pem")]).run().unwrap();
        fs::set_permissions(name("server.key"), Permissions::from_mode(0o600)).unwrap();
    }

    /// A standby of this server, with the same certificate.
    pub(crate) fn standby(&self) -> Self {
        self.standby_on(Machine::this(), "standby")
    }

    pub(crate) fn standby_on(&self, machine: Machine, name: &str) -> Self {
        let home = self.home.with_extension(name);
        fs::remove_dir_all(&home).unwrap_or_default();
        fs::create_dir(&home).unwrap();
        let port = machine.port();
        let mut standby = Self { home, port, machine, server: None, syncs: false };
        for name in ["ca.pem", "server.pem", "server.key"] {
            fs::copy(self.path(name), standby.path(name)).unwrap();
        }
        if is_root() {
            let all = ["-R", "postgres:postgres", standby.home.to_str().unwrap()];
            Program::new("chown").args(all).run().unwrap();
        }
        let copy = standby.postgres("pg_basebackup").env("PGPASSWORD", PASSWORD);
        let copy = copy.line("-R -X stream -c fast -N").args(["-D", &standby.file("data")]);
        copy.args(["-d", &self.here()]).run().unwrap();
        standby.start();
        standby
    }

    /// Where it is, for the server's own programs.
    fn here(&self) -> String {
        format!(
            "host=localhost hostaddr={} port={} user=postgres sslmode=verify-full sslrootcert={}",
            self.machine.address,
            self.port,
            self.file("ca.pem")
        )
    }

    /// The token behind these, in whichever is the first now.
    pub(crate) fn url_of(places: [&Self; 2]) -> String {
        let [first, second] = places.map(|place| format!("localhost:{}", place.port));
        places[0].url().replacen(&first, &format!("{first},{second}"), 1)
    }

    /// A program of the server's: it does not run as root.
    fn postgres(&self, program: &str) -> Program {
        let path = programs().unwrap().join(program);
        let launched = match is_root() {
            true => (self.machine.program("setpriv"))
                .line("--reuid postgres --regid postgres --clear-groups")
                .arg(path),
            false => Program::new(path),
        };
        launched.env("OPENSSL_CONF", "/dev/null").directory(&self.home)
    }

    pub(crate) fn start(&mut self) {
        let server = self
            .postgres("postgres")
            .args(["-D", &self.file("data"), "-c", &format!("port={}", self.port)])
            .args(["-c", &format!("unix_socket_directories={}", self.home.display())])
            .args(["-c", if self.syncs { "fsync=on" } else { "fsync=off" }])
            .args(["-c", &format!("listen_addresses={}", self.machine.address)])
            .args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={}", self.file("server.pem"))])
            .args(["-c", &format!("ssl_key_file={}", self.file("server.key"))]);
        let (home, pid) = (&self.home, self.path("data/postmaster.pid"));
        let served = match &self.machine.network {
            None => server.serve(self.port, home),
            Some(_) => server.serve_socket(&pid, home),
        };
        self.server = Some(served.unwrap());
        // It listens before it serves.
        until("it serves", || self.psql("SELECT 1").output().is_ok_and(|out| out.status == 0));
    }

    /// From now on what is committed is on the disk.
    pub(crate) fn sync(&mut self) {
        self.stop();
        self.syncs = true;
        self.start();
    }

    /// Ends the server and all of its connections.
    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.signal("INT").unwrap();
            drop(server);
        }
    }

    /// Ends the server and its processes without a word, as a loss of power does.
    pub(crate) fn kill(&mut self) {
        let Some(server) = self.server.take() else { return };
        let pid = server.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let all = children.split_whitespace();
        // They end by themselves, too, when they see that the first of them has.
        Program::new("kill").args(["-s", "KILL", &pid.to_string()]).args(all).output().unwrap();
        drop(server);
    }

    /// What the server has written.
    pub(crate) fn log(&self) -> String {
        self.server.as_ref().unwrap().log()
    }

    /// The processes that serve the connections of stores.
    pub(crate) fn backends(&self) -> String {
        self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'metaslot'")
    }

    /// Sends a signal to the server and to these of its processes.
    pub(crate) fn signal(&self, name: &str, backends: &str) {
        let server = self.server.as_ref().unwrap().pid().to_string();
        let all = backends.split_whitespace().chain([server.as_str()]);
        Program::new("kill").args(["-s", name]).args(all).run().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        let roots = self.file("ca.pem");
        format!(
            "postgresql://postgres@localhost:{}/postgres?token=test&sslrootcert={roots}",
            self.port
        )
    }

    /// The same by a socket of this machine.
    pub(crate) fn url_here(&self) -> String {
        let (home, port) = (self.home.display(), self.port);
        format!("postgresql:///postgres?host={home}&port={port}&user=postgres&token=test")
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            kdf: CHEAP,
            password: Some(Arc::new(|| Ok(Secret::copy_of(PASSWORD.as_bytes())))),
            ..Config::new(self.url().parse().unwrap())
        }
    }

    /// As another machine has it.
    pub(crate) fn store(&self) -> PostgresStore {
        PostgresStore::new(self.config())
    }

    /// Initialised, with a user PIN; not logged in.
    pub(crate) fn token(&self) -> PostgresStore {
        let store = self.store();
        store.initialize(SO, "test token").unwrap_or_else(|error| panic!("{error:?}: {}", told()));
        store.login(Role::So, SO).unwrap();
        store.init_pin(USER).unwrap();
        store.logout();
        store
    }

    /// Initialised, and the user is logged in.
    pub(crate) fn user(&self) -> PostgresStore {
        let store = self.token();
        store.login(Role::User, USER).unwrap();
        store
    }

    /// What the database's administrator sees.
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.psql(statement).run().unwrap().text().trim_end().to_owned()
    }

    /// How long one transaction of a script takes, of so many that each of the clients makes at once.
    pub(crate) fn pgbench(&self, script: &str, clients: usize, each: usize) -> Duration {
        self.benched(script, &format!("-M prepared -c {clients} -t {each}"), "latency average = ")
    }

    /// How long it takes to be connected.
    pub(crate) fn connected(&self, times: usize) -> Duration {
        let words = format!("-C -c 1 -t {times}");
        self.benched("SELECT 1;\n", &words, "average connection time = ")
    }

    fn benched(&self, script: &str, words: &str, what: &str) -> Duration {
        fs::write(self.path("script"), script).unwrap();
        let words = format!("-n -f script {words}");
        let pgbench = Program::new(programs().unwrap().join("pgbench")).directory(&self.home);
        let pgbench = pgbench.env("PGPASSWORD", PASSWORD).env("OPENSSL_CONF", "/dev/null");
        let told = pgbench.line(&words).arg(self.here()).run().unwrap().text();
        let (_, time) = told.split_once(what).unwrap();
        let milliseconds = time.split_once(" ms").unwrap().0.parse::<f64>().unwrap();
        Duration::from_secs_f64(milliseconds / 1000.0)
    }

    fn psql(&self, statement: &str) -> Program {
        let psql = self.machine.program("psql");
        let psql = psql.env("PGPASSWORD", PASSWORD).env("OPENSSL_CONF", "/dev/null");
        psql.args(["-v", "ON_ERROR_STOP=1", "-Atq", "-c", statement, &self.here()])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop();
        fs::remove_dir_all(&self.home).unwrap_or_default();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A private key object called `label`, with a secret.
pub(crate) fn private(label: &str) -> Record {
    Record {
        private: true,
        attributes: format!("attributes of {label}").into_bytes(),
        secrets: Some(Secret::copy_of(format!("secret of {label}").as_bytes())),
        terms: vec![(CKA_CLASS, vec![3]), (CKA_LABEL, label.into()), (CKA_ID, label.into())],
    }
}

/// A public object without secrets.
pub(crate) fn public(label: &str) -> Record {
    Record { private: false, secrets: None, ..private(label) }
}

pub(crate) fn insert(store: &PostgresStore, record: Record) -> u64 {
    store.write(vec![Change::Insert(record)]).unwrap()[0]
}

pub(crate) fn find(store: &PostgresStore, label: &str) -> Vec<u64> {
    let query = [(CKA_LABEL, label.as_bytes().to_vec())];
    let found = store.search(&query, Scope::Both, 0, 100).unwrap();
    found.iter().map(|row| row.id).collect()
}

/// The text of the last error of this thread.
pub(crate) fn told() -> String {
    metaslot_spi::detail::with(str::to_owned)
}

/// The whole of a check, with what is wrong as text.
pub(crate) fn examine(store: &PostgresStore) -> (Examined, Vec<(Option<u64>, String)>) {
    let mut findings = Vec::new();
    let examined = store.examine(Role::User, USER, Examination::Look, &mut |remark| {
        if let Remark::Finding { id, what } = remark {
            findings.push((id, what.to_owned()));
        }
        true
    });
    let examined = examined.unwrap_or_else(|error| panic!("{error:?}: {}", told()));
    assert_eq!(examined.findings, findings.len() as u64);
    (examined, findings)
}

/// Waits until it is so, ten seconds at most.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes an empty file.
pub(crate) fn touch(path: &Path) -> PathBuf {
    fs::write(path, "").unwrap();
    path.to_owned()
}
