// SPDX-License-Identifier: Apache-2.0
//! Clients of another machine: a daemon that listens, and `metaslotd connect`, with real certificates and real sockets.

use crate::common::{Killed, Place, Raw, SO, USER, compiled, initialized, pairs, write_own};
use crate::counted::said;
use crate::protocol::{begin, mechanism, transform};
use crate::restart::{client, counted, wait};
use crate::service::{found, opened};
use metaslot_ck::*;
use metaslot_counters::clients::{Count, User};
use metaslot_daemon::Tokens;
use metaslot_testkit::{module_path, not_run};
use metaslot_wiring::config::DaemonConfig;
use metaslot_wiring::config::source::Source;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const SIGN: &str = "keys = [\"site\"]\noperations = [\"sign\"]";

/// Two authorities; certificates of the first: the daemon's, and of clients. Keys on P-256 are made in no time.
fn certificates(place: &Place) {
    let at = |name: &str| place.path().join(name);
    fs::write(
        at("openssl.cnf"),
        "[req]\ndistinguished_name = dn\n[dn]\n[ca]\nbasicConstraints = critical, CA:TRUE\n",
    )
    .expect("it is written");
    for name in ["ca", "other-ca"] {
        certificate(place, name, &["-extensions", "ca"]);
    }
    for (ca, name, names) in [
        ("ca", "daemon", "DNS:localhost"),
        ("ca", "web1", "DNS:web1.example"),
        ("ca", "spiffe", "URI:spiffe://example/web"),
        ("ca", "two", "URI:spiffe://example/web,URI:spiffe://example/mail"),
        ("ca", "unnamed", "DNS:*.web.example,URI:web1.example"),
        ("other-ca", "stranger", "DNS:web1.example"),
    ] {
        issued(place, ca, name, names);
    }
}

fn issued(place: &Place, ca: &str, name: &str, names: &str) {
    let [file, key] = ["pem", "key"].map(|kind| format!("{ca}.{kind}"));
    let names = format!("subjectAltName = {names}");
    certificate(place, name, &["-CA", &file, "-CAkey", &key, "-addext", &names]);
}

fn certificate(place: &Place, name: &str, more: &[&str]) {
    let [file, key, subject] =
        [format!("{name}.pem"), format!("{name}.key"), format!("/CN={name}")];
    let mut command = Command::new("/usr/bin/openssl");
    command.args([
        "req",
        "-x509",
        "-config",
        "openssl.cnf",
        "-newkey",
        "ec",
        "-nodes",
        "-days",
        "2",
    ]);
    command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", &key, "-out", &file]);
    let made = command.args(["-subj", &subject]).args(more).current_dir(place.path()).output();
    let made = made.expect("it is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// What a process says, in a file.
pub(crate) struct Said {
    pub(crate) process: Killed,
    file: PathBuf,
}

impl Said {
    pub(crate) fn by(place: &Place, name: &str, arguments: &[&str]) -> Self {
        Self::with(place, name, |command| command.args(arguments))
    }

    /// What else the program is started with.
    pub(crate) fn with(
        place: &Place,
        name: &str,
        how: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let file = place.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_metaslotd"));
        how(&mut command).current_dir(place.path());
        let process = command.stderr(File::create(&file).expect("it is made")).spawn();
        Self { process: Killed(process.expect("it is built")), file }
    }

    /// The rest of the first line that has this in it, when it has been said.
    pub(crate) fn line(&self, part: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = fs::read_to_string(&self.file).expect("it is there");
            if let Some(line) = said.lines().find_map(|line| Some(line.split_once(part)?.1)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{part:?} is not said: {said}");
            sleep(Duration::from_millis(5));
        }
    }

    fn reload(&self) {
        kill_process(Pid::from_child(&self.process.0), Signal::HUP).expect("it runs");
    }
}

/// A token with two pairs, and who has what of them over there.
fn place(clients: &str) -> Place {
    let place = Place::in_memory();
    initialized(&place);
    pairs(&place, CKA_DECRYPT);
    certificates(&place);
    configure(&place, "127.0.0.1:0", clients);
    place
}

fn configure(place: &Place, address: &str, clients: &str) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let text = format!(
        "counters = false\naudit = \"{at}/token/audit\"\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nlisten = \"{address}\"\ncertificate = \"{at}/daemon.pem\"\n\
         key = \"{at}/daemon.key\"\nclient-ca = \"{at}/ca.pem\"\n{clients}\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

/// Where it is to count what clients do.
fn counters_of(place: &Place) -> PathBuf {
    let counters = place.path().join("counters");
    fs::create_dir(&counters).expect("it is made");
    let file = place.path().join("metaslotd.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let there = format!("counters = {counters:?}");
    fs::write(file, text.replace("counters = false", &there)).expect("it is written");
    counters
}

fn section(name: &str, rest: &str) -> String {
    format!("[[client]]\nservices = [\"tls:{name}\"]\ntoken = \"door\"\n{rest}\n")
}

/// The daemon, and its port.
fn daemon(place: &Place) -> (Said, u16) {
    let daemon = Said::by(place, "daemon", &["--config", "metaslotd.toml"]);
    let port = daemon.line("serves 127.0.0.1:").parse().expect("a port");
    (daemon, port)
}

/// What brings it to a socket here.
fn connect(place: &Place, port: u16, certificate: &str, more: &[&str]) -> Said {
    let said = format!("{certificate}{}", more.concat().replace('/', ""));
    let [far, file, key] =
        [format!("localhost:{port}"), format!("{certificate}.pem"), format!("{certificate}.key")];
    let socket = place.path().join("socket");
    let socket = socket.to_str().expect("it is text");
    let usual = ["connect", &far, "--socket", socket, "--certificate", &file, "--key", &key];
    let authority = if more.contains(&"--ca") { &[][..] } else { &["--ca", "ca.pem"] };
    Said::by(place, &said, &[&usual[..], authority, more].concat())
}

fn connected(place: &Place, port: u16, certificate: &str) -> Said {
    let connect = connect(place, port, certificate, &[]);
    connect.line(" by localhost:");
    connect
}

/// Signs, or says why not.
fn sign(raw: &mut Raw, session: u64, key: u64) -> Result<usize> {
    begin(raw, 42, session, CKM_ECDSA, None, key)?;
    let signature = transform(raw, 43, session, &[1; 32], 1 << 10)?;
    Ok(signature.map_or_else(|length| length, |signature| signature.len()))
}

#[test]
fn a_name_of_a_certificate_has_what_its_sections_give_it() {
    let other = Place::in_memory();
    other.engine().init_token(SlotId(0), SO, "other").expect("a token is made");
    let more = format!("[[token]]\npath = \"{}/token/token.db\"\n", other.path().display());
    let clients =
        [section("WEB1.example", SIGN), section("spiffe://example/web", "operations = []")];
    let place = place(&format!("{}{more}", clients.concat()));
    let counters = counters_of(&place);
    let (_daemon, port) = daemon(&place);
    let near = connected(&place, port, "web1");
    let (mut raw, session) = opened(&place, 0);
    let keys = found(&mut raw, session, CKO_PRIVATE_KEY);
    assert_eq!(keys.len(), 1, "of both keys it has one");
    assert_eq!(sign(&mut raw, session, keys[0]), Ok(64));
    let second = raw.number(10, |request| {
        request.number(1);
        request.number(CKF_SERIAL_SESSION);
    });
    assert_eq!(second, Err(Error::SLOT_ID_INVALID), "of both tokens it is shown one");
    let refused = raw.call(18, |request| {
        request.number(session);
        request.number(CKU_USER);
        request.bytes(Some(b"wrong-pin"));
    });
    assert_eq!(refused, Err(Error::PIN_INCORRECT));
    let line = fs::read_to_string(place.path().join("token/audit")).expect("a line");
    assert!(line.contains(",\"tls\":\"WEB1.example\",\"event\":\"login\","), "{line}");
    let server = said(&counters, |server| !server.clients.is_empty());
    let client = &server.clients[0];
    let counts = [Count::Operations, Count::Errors, Count::WrongPins];
    let counts = counts.map(|one| client.counts.of(one));
    assert_eq!((client.user, &*client.service, client.process), (User::Remote, "WEB1.example", 0));
    assert_eq!(counts, [1, 2, 1]);
    // More than is on its way at once, in both directions.
    let long = raw.bytes(64, |request| {
        request.number(session);
        request.half(1 << 21);
    });
    let long = long.expect("random bytes").expect("they fit");
    raw.call(37, |request| {
        request.number(session);
        mechanism(request, CKM_SHA256, None);
    })
    .expect("a digest begins");
    let digest = transform(&mut raw, 38, session, &long, 64).expect("it is digested");
    assert_eq!((long.len(), digest.map(|digest| digest.len())), (1 << 21, Ok(32)));
    drop((raw, near));
    let _near = connected(&place, port, "spiffe");
    let (mut raw, session) = opened(&place, 0);
    let keys = found(&mut raw, session, CKO_PRIVATE_KEY);
    assert_eq!(keys.len(), 2);
    assert_eq!(sign(&mut raw, session, keys[0]), Err(Error::KEY_FUNCTION_NOT_PERMITTED));
}

#[test]
fn who_is_refused_is_told_why_and_so_is_the_daemon() {
    let clients = [section("web1.example", SIGN), section("spiffe://example/web", SIGN)];
    let place = place(&clients.concat());
    // Valid for a second at most.
    let expired = place.path().join("expired.pem");
    fs::copy(place.path().join("web1.key"), expired.with_extension("key")).expect("it is there");
    for arguments in [
        "req -new -config openssl.cnf -key web1.key -subj /CN=a -addext subjectAltName=DNS:web1.example -out csr",
        "x509 -req -in csr -CA ca.pem -CAkey ca.key -copy_extensions copy -days 0 -out expired.pem",
    ] {
        let made = Command::new("/usr/bin/openssl")
            .args(arguments.split(' '))
            .current_dir(place.path())
            .output();
        assert!(made.expect("it is installed").status.success(), "{arguments}");
    }
    let (daemon, port) = daemon(&place);
    let check = |certificate: &str, more: &[&str]| {
        let mut near = connect(&place, port, certificate, &[more, &["--check"]].concat());
        let status = near.process.0.wait().expect("it ends");
        (status.code(), fs::read_to_string(&near.file).expect("it is there"))
    };
    for certificate in ["web1", "spiffe"] {
        let (status, said) = check(certificate, &[]);
        assert_eq!(
            (status, said),
            (Some(0), format!("metaslotd: is served by localhost:{port}\n"))
        );
    }
    for (certificate, more, near, there) in [
        (
            "unnamed",
            &[][..],
            "no [[client]] there names",
            "[\"*.web.example\"]: no [[client]] names",
        ),
        ("two", &[], "no [[client]] there names", "[]: no [[client]] names"),
        ("stranger", &[], "none of the authorities there", "none of the authorities here"),
        (
            "web1",
            &["--ca", "other-ca.pem"],
            "none of the authorities here",
            "none of the authorities there",
        ),
        (
            "web1",
            &["--name", "vault.example"],
            "it is another host's",
            "there the certificate of here",
        ),
    ] {
        let (status, said) = check(certificate, more);
        let near = near.replace("it is another", "its certificate is another");
        assert!(status == Some(1) && said.contains(&near), "{certificate}: {said}");
        if there != "[]: no [[client]] names" {
            daemon.line(there);
        }
    }
    issued(&place, "ca", "wild", "DNS:*.web.example");
    let (_, said) = check("wild", &[]);
    let lack = "metaslotd: wild.pem: the certificate names hosts by a wildcard alone";
    assert!(said.starts_with(lack), "{said}");
    sleep(Duration::from_millis(1100));
    let (_, said) = check("expired", &[]);
    assert!(said.starts_with("metaslotd: expired.pem: the certificate has expired\n"), "{said}");
    assert!(said.contains("there the certificate of here has expired"), "{said}");
    daemon.line("its certificate has expired");
    for (file, mode, reason) in
        [("web1.key", 0o644, "others may read"), ("spiffe.key", 0o600, "another certificate's key")]
    {
        let (key, own) = (place.path().join(file), place.path().join("web1.key"));
        let kept = fs::read(&own).expect("it is there");
        fs::copy(&key, &own).expect("it is there");
        fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .expect("it is ours");
        let (status, said) = check("web1", &[]);
        assert!(status == Some(1) && said.contains(reason), "{said}");
        fs::write(&own, kept).expect("it is ours");
    }
}

#[test]
fn a_certificate_that_cannot_serve_is_named_before_it_is_shown() {
    let place = place(&section("web1.example", SIGN));
    let only = "extendedKeyUsage = clientAuth";
    let names = "subjectAltName = DNS:localhost";
    let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext"];
    for (more, lack) in [
        (&["-extensions", "ca"][..], "is an authority's (CA:TRUE)"),
        (&[&signed[..], &["keyUsage = digitalSignature"]].concat(), "names no host and no URI"),
        (&[&signed[..], &[only, "-addext", names]].concat(), "is for another use"),
        (&[&signed[..], &["subjectAltName = URI:a://b,URI:a://c"]].concat(), "names several URIs"),
        (&[&signed[..], &[names]].concat(), ""),
        (&[&signed[..], &["subjectAltName = DNS:*.web.example"]].concat(), ""),
        (&[&signed[..], &["subjectAltName = IP:127.0.0.1"]].concat(), ""),
    ] {
        certificate(&place, "daemon", more);
        let mut check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
        assert!(check.process.0.wait().expect("it ends").success());
        let said = fs::read_to_string(&check.file).expect("it is there");
        let named =
            format!("metaslotd: {}/daemon.pem: the certificate {lack}", place.path().display());
        assert_eq!(said.contains(&named), !lack.is_empty(), "{said}");
        assert_eq!(said.contains("the certificate"), !lack.is_empty(), "{said}");
    }
    // A key that cannot be used is not the certificate's lack.
    certificate(&place, "daemon", &["-extensions", "ca"]);
    let curve = "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out daemon.key";
    let mut openssl = Command::new("/usr/bin/openssl");
    let made = openssl.args(curve.split(' ')).current_dir(place.path()).output();
    assert!(made.expect("it is installed").status.success());
    let arguments = ["--certificate", "daemon.pem", "--key", "daemon.key", "--ca", "ca.pem"];
    let near = ["connect", "localhost:1", "--socket", "/near", "--check"];
    for (arguments, file) in [
        (&["--config", "metaslotd.toml", "--check"][..], format!("{}/", place.path().display())),
        (&[&near[..], &arguments].concat(), String::new()),
    ] {
        let mut check = Said::by(&place, "check", arguments);
        assert!(!check.process.0.wait().expect("it ends").success());
        let said = fs::read_to_string(&check.file).expect("it is there");
        assert!(said.starts_with(&format!("metaslotd: {file}daemon.key: ")), "{said}");
        assert!(said.contains("private key") && !said.contains("CA:TRUE"), "{said}");
    }
    // What no lack is said of is served by.
    for (name, by) in [("DNS:*.web.example", "a.web.example"), ("IP:127.0.0.1", "127.0.0.1")] {
        issued(&place, "ca", "daemon", name);
        let (_daemon, port) = daemon(&place);
        let mut near = connect(&place, port, "web1", &["--name", by, "--check"]);
        let served = near.process.0.wait().expect("it ends").success();
        assert!(served, "{name}: {}", fs::read_to_string(&near.file).expect("it is there"));
    }
}

#[test]
fn what_cannot_be_connected_by_is_named() {
    let place = place("");
    let said_of = |arguments: &[&str]| {
        let usual = ["connect", "--certificate", "web1.pem", "--key", "web1.key", "--ca", "ca.pem"];
        let mut check = Said::by(&place, "check", &[&usual, arguments, &["--check"]].concat());
        let status = check.process.0.wait().expect("it ends").code();
        (status, fs::read_to_string(&check.file).expect("it is there"))
    };
    let (status, said) = said_of(&["localhost:1", "--socket", "near"]);
    assert_eq!(status, Some(78));
    assert_eq!(said, "metaslotd: --socket must be an absolute path, not \"near\"\n");
    for far in ["localhost", "localhost:no", "localhost:65536", "[::1]"] {
        let (status, said) = said_of(&[far, "--socket", "/near"]);
        assert_eq!(status, Some(78));
        let hint = "write HOST:PORT, such as vault.example:7443";
        assert_eq!(said, format!("metaslotd: {far}: no port; {hint}\n"));
    }
    for (far, host) in [(":7443", ""), ("two words:7443", "two words"), ("a..b:7443", "a..b")] {
        let (status, said) = said_of(&[far, "--socket", "/near"]);
        assert_eq!(status, Some(78), "{said}");
        assert_eq!(said, format!("metaslotd: {far}: {host:?} is no host's name or address\n"));
    }
    // It may be known when it is started again.
    let (status, said) = said_of(&["nowhere.invalid:7443", "--socket", "/near"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.starts_with("metaslotd: nowhere.invalid:7443: "), "{said}");
    // As 'openssl x509 -req' makes one without extensions; newer ones make it of version 3.
    for arguments in [
        "req -new -config openssl.cnf -key web1.key -subj /CN=a -out csr",
        "x509 -req -in csr -CA ca.pem -CAkey ca.key -days 2 -out web1.pem",
    ] {
        let made = Command::new("/usr/bin/openssl")
            .args(arguments.split(' '))
            .current_dir(place.path())
            .output();
        assert!(made.expect("it is installed").status.success(), "{arguments}");
    }
    let (_, said) = said_of(&["localhost:1", "--socket", "/near"]);
    let reasons = ["is of version 1, which has no names", "names no host and no URI"];
    let named = reasons.map(|reason| format!("metaslotd: web1.pem: the certificate {reason}"));
    assert!(named.iter().any(|reason| said.starts_with(reason)), "{said}");
}

#[test]
fn rubbish_and_silence_cost_nobody_else() {
    let place = place(&section("web1.example", SIGN));
    let (daemon, port) = daemon(&place);
    let _near = connected(&place, port, "web1");
    let (mut raw, session) = opened(&place, 0);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let stranger = || TcpStream::connect(address).expect("it listens");
    stranger().write_all(&[0x42; 4096]).expect("it is sent");
    daemon.line("it does not speak TLS");
    // The beginning of a record, of a length that never comes, as often as somebody of one address may.
    let mut silent: Vec<_> = (0..80).map(|_| stranger()).collect();
    silent.iter_mut().for_each(|one| one.write_all(&[22, 3, 1, 2, 0, 1]).unwrap_or(()));
    let last = silent.last_mut().expect("there is one");
    last.set_read_timeout(Some(PATIENCE)).expect("a time");
    assert!(!last.read(&mut [0]).is_ok_and(|read| read > 0), "it is closed at once");
    let key = found(&mut raw, session, CKO_PRIVATE_KEY)[0];
    assert_eq!(sign(&mut raw, session, key), Ok(64));
    drop(silent);
    let begun = Instant::now();
    while UnixStream::connect(place.path().join("socket"))
        .and_then(|mut near| {
            near.write_all(&[2])?;
            near.read_exact(&mut [0])
        })
        .is_err()
    {
        assert!(begun.elapsed() < PATIENCE, "who comes after them is served");
    }
}

#[test]
fn who_has_enough_connections_sees_that_one_more_ends() {
    let place = place(&format!("connections = 1\n{}", section("web1.example", SIGN)));
    let (daemon, port) = daemon(&place);
    let near = connected(&place, port, "web1");
    let (mut raw, session) = opened(&place, 0);
    let mut other = UnixStream::connect(place.path().join("socket")).expect("it listens");
    other.write_all(&[2]).expect("it waits");
    other.set_read_timeout(Some(PATIENCE)).expect("a time");
    assert!(!other.read(&mut [0]).is_ok_and(|read| read > 0), "it is served");
    near.line(": it has ended the connection");
    daemon.line("its name has enough connections");
    assert_eq!(found(&mut raw, session, CKO_PRIVATE_KEY).len(), 1);
}

#[test]
fn renewed_certificates_are_shown_and_a_name_that_is_taken_away_ends() {
    let place = place(&section("web1.example", SIGN));
    let (daemon, port) = daemon(&place);
    let near = connected(&place, port, "web1");
    let (mut old, session) = opened(&place, 0);
    // As editors and renewals do it, under the names and of another authority, and from behind the fence.
    for (ca, name, names) in
        [("other-ca", "new-daemon", "DNS:localhost"), ("other-ca", "new-web1", "DNS:web1.example")]
    {
        issued(&place, ca, name, names);
    }
    let rename = |from: &str, to: &str| {
        fs::rename(place.path().join(from), place.path().join(to)).expect("it is there")
    };
    rename("daemon.key", "kept.key");
    daemon.reload();
    let missing = daemon.line("serves by the configuration as it was: ");
    assert!(missing.contains("daemon.key: "), "{missing}");
    let check = Said::by(&place, "check", &["--config", "metaslotd.toml", "--check"]);
    check.line("daemon.key: ");
    assert_eq!(found(&mut old, session, CKO_PRIVATE_KEY).len(), 1);
    rename("other-ca.pem", "ca.pem");
    for one in ["daemon", "web1"] {
        for kind in ["pem", "key"] {
            rename(&format!("new-{one}.{kind}"), &format!("{one}.{kind}"));
        }
    }
    daemon.reload();
    daemon.line("serves by the configuration as it is now");
    near.reload();
    near.line("shows the certificate as it is now");
    let (mut new, session) = opened(&place, 0);
    assert_eq!(found(&mut new, session, CKO_PRIVATE_KEY).len(), 1);
    configure(&place, &format!("127.0.0.1:{port}"), &section("web2.example", SIGN));
    daemon.reload();
    daemon.line("; after a restart: listen");
    for raw in [&mut old, &mut new] {
        raw.stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        assert!(matches!(raw.stream.read(&mut [0]), Ok(0)), "what it had is not given any more");
    }
    let mut refused = UnixStream::connect(place.path().join("socket")).expect("it listens");
    refused.write_all(&[2]).ok();
    assert!(!refused.read(&mut [0]).is_ok_and(|read| read > 0));
    near.line("no [[client]] there names the certificate");
}

#[test]
fn a_name_that_is_taken_away_before_it_is_served_is_not_served() {
    let place = place(&section("web1.example", SIGN));
    let read = Source::of_file(place.path().join("metaslotd.toml")).read();
    let config = read.expect("it is right").0;
    let tokens = Tokens::of(config.clone()).expect("they open");
    let names = || vec![String::from("web1.example")];
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    let ours = Arc::new(ours);
    let admitted = tokens.admit_named(names(), &ours).expect("it is named");
    tokens.change(&DaemonConfig { clients: Vec::new(), ..config.daemon });
    let _client = tokens.client(admitted);
    theirs.set_read_timeout(Some(PATIENCE)).expect("a time");
    assert!(matches!(theirs.read(&mut [0]), Ok(0)), "it is served");
    assert!(tokens.admit_named(names(), &ours).is_err());
}

#[test]
fn a_daemon_that_comes_back_is_reached_again_by_the_library() {
    let Some(module) = module_path().filter(|_| Path::new("/usr/bin/gcc").exists()) else {
        return not_run("metaslotd", "its end far away", "there is no libmetaslot.so, or no gcc");
    };
    let rights = "keys = [\"site\", \"seal\"]\noperations = [\"sign\", \"verify\", \"encrypt\", \"decrypt\"]";
    let clients = section("web1.example", rights);
    let place = place(&clients);
    compiled(&place, "restart");
    fs::write(place.path().join("progress"), [0; 4096]).expect("it is written");
    let text = format!(
        "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{}/socket\"\n",
        place.path().display()
    );
    fs::write(place.path().join("metaslot.toml"), text).expect("it is written");
    let file = File::open(place.path().join("progress")).expect("it is there");
    let (mut there, port) = daemon(&place);
    let near = connected(&place, port, "web1");
    assert_eq!(
        fs::metadata(place.path().join("socket")).expect("it is there").mode() & 0o777,
        0o600
    );
    let module = fs::canonicalize(module).expect("it is there");
    let mut clients = vec![client(&place, &module, 0), client(&place, &module, 1)];
    wait(&file, &mut clients);
    configure(&place, &format!("127.0.0.1:{port}"), &section("web1.example", rights));
    for _ in 0..3 {
        drop(there);
        near.line("Connection refused");
        there = daemon(&place).0;
        wait(&file, &mut clients);
    }
    near.line("serves again");
    let counts = counted(clients);
    let failed: Vec<_> =
        counts.iter().filter(|((call, code), _)| code != "0x0" && call != "generate").collect();
    assert!(
        failed.is_empty() && counts.contains_key(&(String::from("sign"), String::from("0x0"))),
        "{counts:?}"
    );
}
