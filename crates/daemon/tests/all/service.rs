// SPDX-License-Identifier: Apache-2.0
//! The program: its configuration, its sockets, its ends.

use crate::common::{Place, Raw, SO, USER, initialized, write_own};
use metaslot_ck::*;
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store};
use metaslot_spi::{Params, RawValue};
use metaslot_testkit::{left_out, module_path, not_run};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const CLIENT: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";

/// A daemon that runs. It ends with its test.
pub(crate) struct Daemon {
    process: Child,
    directory: PathBuf,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metaslotd"));
    command.arg("--config").arg(directory.join("metaslotd.toml")).stderr(Stdio::piped());
    command
}

impl Daemon {
    /// It serves when it says so.
    pub(crate) fn start(directory: &Path) -> Self {
        Self::started(directory, &mut command(directory))
    }

    fn started(directory: &Path, command: &mut Command) -> Self {
        let mut process = command.spawn().expect("it is built");
        let told = BufReader::new(process.stderr.take().expect("it is a pipe"));
        // From here on it ends with its test, however that ends.
        let daemon = Self { process, directory: directory.to_owned() };
        let told = told.lines().map(|line| line.expect("a line"));
        // What of the fence is not there comes first.
        let mut told = told.skip_while(|line| line.starts_with("metaslotd: not fenced"));
        let told: Vec<_> = told.by_ref().take(2).collect();
        assert!(told.iter().all(|line| line.starts_with("metaslotd: serves ")), "{told:?}");
        daemon
    }

    /// What a program says that is a client of p11-kit's protocol, or OpenSSH's.
    fn client(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        let address = format!("unix:path={}", self.directory.join("socket").display());
        command.env("P11_KIT_SERVER_ADDRESS", address);
        command.env("SSH_AUTH_SOCK", self.directory.join("agent")).env("OPENSSL_CONF", "/dev/null");
        command.current_dir(&self.directory).args(arguments).output().expect("it is installed")
    }

    /// Their directories in `/proc`.
    fn threads(&self) -> Vec<PathBuf> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id()));
        threads.expect("it runs").map(|thread| thread.expect("a thread").path()).collect()
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("/bin/kill").args([signal, &id]).status().expect("it is installed");
        assert!(sent.success());
    }
}

/// A token with two keys, `site` and `other`, of which this user's programs may sign with the first.
pub(crate) fn place() -> Place {
    let place = Place::new();
    initialized(&place);
    let engine = place.engine();
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    for label in ["site", "other"] {
        let bytes = |attribute, value: &[u8]| (attribute, RawValue::Bytes(value.to_vec()));
        let name = [(CKA_LABEL, label.as_bytes()), (CKA_ID, label.as_bytes()), (CKA_TOKEN, &[1])];
        let named = || name.iter().map(|(attribute, value)| bytes(*attribute, value));
        let p256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        let public = named().chain([bytes(CKA_EC_PARAMS, &p256)]).collect();
        let private = named().collect();
        engine
            .generate_key_pair(session, CKM_EC_KEY_PAIR_GEN, Params::None, public, private)
            .expect("a pair is made");
    }
    configure(&place, "[\"sign\"]");
    place
}

fn configure(place: &Place, operations: &str) {
    let user = rustix::process::geteuid().as_raw();
    configure_for(place, &format!("user:{user}"), operations);
}

fn configure_for(place: &Place, service: &str, operations: &str) {
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let text = format!(
        "counters = false\naudit = \"{at}/audit\"\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/socket\"\nagent = \"{at}/agent\"\n\
         [[client]]\nservices = [\"{service}\"]\ntoken = \"door\"\nkeys = [\"site\"]\noperations = {operations}\n"
    );
    fs::write(place.path().join("metaslotd.toml"), text).expect("it is written");
}

fn is_installed() -> bool {
    let programs = ["/usr/bin/pkcs11-tool", "/usr/bin/ssh-add", CLIENT];
    let missing = programs.iter().find(|file| !Path::new(file).exists());
    let told =
        |file: &&&str| not_run("metaslotd", "programs of others", &format!("there is no {file}"));
    missing.inspect(told).is_none()
}

#[test]
fn a_service_signs_without_a_pin_and_ssh_finds_its_key() {
    if !is_installed() {
        return;
    }
    let place = place();
    let mut daemon = Daemon::start(place.path());
    fs::write(place.path().join("hash"), [1; 32]).expect("it is written");
    let sign = ["--module", CLIENT, "--sign", "-m", "ECDSA", "-i", "hash", "-o", "sig"];
    let signed = daemon.client("/usr/bin/pkcs11-tool", &[&sign[..], &["--label", "site"]].concat());
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    assert_eq!(fs::metadata(place.path().join("sig")).expect("it is there").len(), 64);
    let list = ["--module", CLIENT, "--list-objects"];
    let listed = daemon.client("/usr/bin/pkcs11-tool", &list);
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.contains("site") && !listed.contains("other"), "{listed}");
    let more = ["--keypairgen", "--key-type", "EC:prime256v1", "--label", "new"];
    let login = ["--module", CLIENT, "--login", "--pin", "user-pin-1"];
    let made = daemon.client("/usr/bin/pkcs11-tool", &[&login[..], &more].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let log = fs::read_to_string(place.path().join("audit")).expect("there are lines");
    let lines: Vec<_> = log.lines().filter(|line| !line.contains("\"refused\"")).collect();
    let has = |line: &str, words: &[&str]| words.iter().all(|word| line.contains(word));
    let by = ["\"program\":\"pkcs11-tool\"", "\"token\":\"door\"", "\"result\":\"CKR_OK\""];
    let [opened, login, generated] = &lines[..3] else { panic!("three lines") };
    assert!(
        has(login, &["\"event\":\"login\"", "\"user\":\"user\""]) && has(login, &by),
        "{login}"
    );
    let words = ["\"event\":\"generated\"", "CKM_EC_KEY_PAIR_GEN", "\"label\":\"new\""];
    assert!(has(generated, &words) && has(generated, &by), "{generated}");
    let own = format!("\"pid\":{},", daemon.process.id());
    let words = [&*own, "\"event\":\"opened\",\"token\":\"door\",\"result\":\"CKR_OK\"}"];
    assert!(has(opened, &words), "{opened}");
    assert!(log.matches(&own).count() == 1 && !log.contains("user-pin-1"), "{log}");
    let keys = daemon.client("/usr/bin/ssh-add", &["-L"]);
    let keys = String::from_utf8_lossy(&keys.stdout);
    assert!(keys.starts_with("ecdsa-sha2-nistp256 ") && keys.ends_with(" site\n"), "{keys}");
    let tested = daemon.client("/usr/bin/ssh-add", &["-T", "key.pub"]);
    assert!(!tested.status.success(), "there is no such file yet");
    fs::write(place.path().join("key.pub"), &*keys).expect("it is written");
    let tested = daemon.client("/usr/bin/ssh-add", &["-T", "key.pub"]);
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    daemon.signal("-TERM");
    assert!(daemon.process.wait().expect("it ends").success());
    assert!(!place.path().join("socket").exists() && !place.path().join("agent").exists());
}

#[test]
fn a_service_manager_is_told_when_it_serves() {
    let place = place();
    let manager = UnixDatagram::bind(place.path().join("notify")).expect("a socket is made");
    let mut started = command(place.path());
    started.env("NOTIFY_SOCKET", place.path().join("notify")).stderr(Stdio::null());
    let process = started.spawn().expect("it is built");
    let mut daemon = Daemon { process, directory: place.path().to_owned() };
    let mut told = [0; 64];
    let mut next = || {
        let length = manager.recv(&mut told).expect("it tells");
        String::from_utf8_lossy(&told[..length]).into_owned()
    };
    assert_eq!(next(), "READY=1");
    UnixStream::connect(place.path().join("socket")).expect("it listens");
    daemon.signal("-TERM");
    assert_eq!(next(), "STOPPING=1");
    assert!(daemon.process.wait().expect("it ends").success());
}

#[test]
fn one_that_was_killed_leaves_nothing_in_the_way_of_the_next() {
    let place = place();
    let mut daemon = Daemon::start(place.path());
    let mut second = command(place.path()).spawn().expect("it is built");
    assert!(!second.wait().expect("it ends").success(), "two at one socket");
    let mut client = UnixStream::connect(place.path().join("socket")).expect("it listens");
    std::io::Write::write_all(&mut client, &[1]).expect("it reads");
    daemon.signal("-KILL");
    assert_eq!(daemon.process.wait().expect("it ends").signal(), Some(9));
    assert!(place.path().join("socket").exists());
    Daemon::start(place.path());
}

#[test]
fn each_of_its_threads_is_behind_the_fence() {
    let place = place();
    let daemon = Daemon::start(place.path());
    // A client has a thread, too.
    let mut client = UnixStream::connect(place.path().join("socket")).expect("it listens");
    std::io::Write::write_all(&mut client, &[1]).expect("it reads");
    std::io::Read::read_exact(&mut client, &mut [0]).expect("it answers");
    let threads = daemon.threads();
    assert!(threads.len() >= 4, "{threads:?}");
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).expect("it runs");
        assert!(status.contains("\nNoNewPrivs:\t1\nSeccomp:\t2\n"), "{status}");
    }
}

#[test]
fn its_memory_is_written_nowhere() {
    let place = place();
    let daemon = Daemon::start(place.path());
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.process.id()));
    let limits = limits.expect("it runs");
    let core = limits.lines().find(|line| line.starts_with("Max core file size"));
    let core: Vec<_> = core.expect("the kernel has it").split_whitespace().skip(4).collect();
    assert_eq!(core, ["0", "0", "bytes"]);
}

#[test]
fn no_debugger_of_its_own_user_reads_its_memory() {
    let (gcore, place) = ("/usr/bin/gcore", place());
    let told = |reason| not_run("metaslotd", "its memory, read by a debugger", reason);
    if !Path::new(gcore).exists() {
        return told("there is no gcore");
    }
    // Root reads everything: both run as another user, whom the files are given.
    let user = if rustix::process::geteuid().is_root() {
        65534
    } else {
        rustix::process::geteuid().as_raw()
    };
    let group = rustix::process::getegid().as_raw();
    let mut give = Command::new("/bin/chown");
    give.arg("-R").arg(format!("{user}:{group}")).arg(place.path());
    assert!(give.status().expect("it is installed").success());
    let cored = |process: &Child| {
        let mut command = Command::new(gcore);
        command.uid(user).current_dir(place.path()).args(["-o", "core", &process.id().to_string()]);
        let output = command.output().expect("it is installed");
        output.status.success() && place.path().join(format!("core.{}", process.id())).exists()
    };
    let mut other =
        Command::new("/bin/sleep").arg("60").uid(user).spawn().expect("it is installed");
    let possible = cored(&other);
    other.kill().and_then(|()| other.wait()).expect("it runs");
    if !possible {
        return told("no process is shown to a debugger here");
    }
    let program = place.path().join("metaslotd");
    fs::copy(env!("CARGO_BIN_EXE_metaslotd"), &program).expect("it is built");
    let mut started = Command::new(program);
    started.arg("--config").arg(place.path().join("metaslotd.toml")).uid(user);
    let daemon = Daemon::started(place.path(), started.stderr(Stdio::piped()));
    assert!(!cored(&daemon.process));
    // Whose memory is closed belongs to root in each of its threads.
    for thread in daemon.threads() {
        assert_eq!(fs::metadata(thread.join("mem")).expect("it runs").uid(), 0);
    }
}

#[test]
fn what_cannot_be_served_is_told_with_its_reason() {
    let place = place();
    let told = |place: &Place, status| {
        let output = command(place.path()).output().expect("it is built");
        assert_eq!(output.status.code(), Some(status));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let file = place.path().join("metaslotd.toml");
    configure(&place, "[\"all\"]");
    let said = told(&place, 78);
    assert!(said.contains("metaslotd.toml: line 14: an operation is one of sign"), "{said}");
    fs::write(&file, "[[token]]\npath = \"/nowhere/token.db\"\n").expect("it is written");
    let said = told(&place, 78);
    assert!(said.contains("[daemon] has neither socket, agent nor listen"), "{said}");
    fs::remove_file(&file).expect("it was there");
    let said = told(&place, 78);
    assert!(said.starts_with("metaslotd: ") && said.contains("cannot be read"), "{said}");
    configure(&place, "[\"sign\"]");
    write_own(place.path().join("pin"), "another");
    let said = told(&place, 77);
    assert!(said.contains("token.db\" is not opened: CKR_PIN_INCORRECT"), "{said}");
    write_own(place.path().join("pin"), USER);
    let good = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, good.replace("/socket\"", "/pin/socket\"")).expect("it is written");
    let said = told(&place, 1);
    assert!(said.ends_with("/pin/socket: Not a directory\n"), "{said}");
    configure(&place, "[\"sign\"]");
    let checked = command(place.path()).arg("--check").output().expect("it is built");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.is_empty(), "{said}");
    assert!(!place.path().join("socket").exists());
    let mut unfenced = fs::read_to_string(&file).expect("it is there");
    unfenced = unfenced.replace("[daemon]\n", "[daemon]\nfence = false\n");
    fs::write(&file, unfenced).expect("it is written");
    let checked = command(place.path()).arg("--check").output().expect("it is built");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(said, "metaslotd: not fenced: the configuration says so\n");
}

#[test]
fn a_check_says_what_is_named_and_not_there() {
    let place = place();
    let file = place.path().join("metaslotd.toml");
    let good = fs::read_to_string(&file).expect("it is there");
    let told = |wrong: &str, status| {
        fs::write(&file, wrong).expect("it is written");
        let output = command(place.path()).arg("--check").output().expect("it is built");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        said
    };
    let lack = |what: &str| format!("metaslotd: [[client]]: {what}\n");
    let users = good.replace("[\"user:", "[\"user:no-such-user\", \"user:");
    assert_eq!(told(&users, 0), lack("there is no user \"no-such-user\""));
    let token = good.replace("\"door\"", "\"dour\"");
    assert_eq!(told(&token, 0), lack("there is no token \"dour\""));
    let key = good.replace("[\"site\"]", "[\"site\", \"sight\"]");
    assert_eq!(told(&key, 0), lack("the token \"door\" has no object \"sight\""));
    let pin = good.replace("pin-source", "description");
    let closed = "services have nothing of \"door\": it is no [[token]] with a pin-source";
    assert_eq!(told(&pin, 0), lack(closed));
    let group = told(&good.replace("[daemon]\n", "[daemon]\ngroup = \"no such group\"\n"), 78);
    assert!(
        group.contains("metaslotd.toml: [daemon] group: there is no group \"no such group\""),
        "{group}"
    );
    let away = told(&good.replace("/socket\"", "/away/socket\""), 0);
    assert!(away.ends_with("/away/socket: its directory is not there yet\n"), "{away}");
    let one = told(&good.replace("/agent\"", "/socket\""), 78);
    assert!(one.contains("[daemon] has one path for both socket and agent"), "{one}");
}

#[test]
fn the_command_uses_what_a_service_has_without_asking_for_a_pin() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "the command", "there is no libmetaslot.so");
    };
    let module = fs::canonicalize(module).expect("it is there");
    let program = module.with_file_name("metaslot");
    if !program.exists() {
        return not_run("metaslotd", "the command", "there is none beside libmetaslot.so");
    }
    let place = place();
    let client = format!(
        "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{}/socket\"\n",
        place.path().display()
    );
    fs::write(place.path().join("metaslot.toml"), client).expect("it is written");
    let _daemon = Daemon::start(place.path());
    let said = |line: &str, status| {
        let mut command = Command::new(&program);
        command.current_dir(place.path()).stdin(Stdio::null()).args(line.split(' '));
        command
            .env("METASLOT_CONF", place.path().join("metaslot.toml"))
            .env_remove("METASLOT_PIN_SOURCE");
        let output = command.arg("--module").arg(&module).output().expect("it is built");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        said
    };
    said("sign --key site --in pin --out pin.sig", 0);
    let listed = said("key list", 0);
    assert!(listed.contains("site") && !listed.contains("other"), "{listed}");
    let hint = "hint: not logged in, so only what needs no PIN is shown: give --pin-source";
    assert!(listed.contains(hint), "{listed}");
    said("sign --key other --in pin --out pin.sig", 3);
    said("sign --key other --in pin --out pin.sig --pin-source pin", 0);
    let asks = said("key generate --label new", 4);
    assert!(asks.contains("no user PIN given"), "{asks}");
    // An identity of the daemon's token logs in by our module, which passes its name on.
    let web = Name::new(b"web").expect("a name");
    let added = Examination::Identities(Identities::Add(web, NewPin(b"web-pin-1")));
    let officer = place.store().examine(Role::So, SO, added, &mut |_| true);
    officer.expect("the officer's PIN");
    for (file, pin) in [("web", "web-pin-1"), ("new", "another-pin"), ("so", "so-pin-1")] {
        fs::write(place.path().join(file), pin).expect("it is written");
    }
    said("token identity pin web --pin-source web --new-pin-source new", 0);
    said("token identity pin web --pin-source web --new-pin-source new", 4);
    said("sign --key other --in pin --out pin.sig --identity web --pin-source new", 0);
    let wrong = said("sign --key other --in pin --out pin.sig --identity web --pin-source web", 4);
    assert!(wrong.contains("token 'door' has no identity 'web' with this PIN"), "{wrong}");
    // Who there is and who is revoked is the business of where the token is.
    let listed = said("token identity list --so-pin-source so", 1);
    assert!(listed.contains("hint: of a token that metaslotd holds, name its file"), "{listed}");
    // How many tries are left the protocol does not say.
    let wrong = said("sign --key other --in pin --out pin.sig --pin-source new", 4);
    assert!(wrong.contains("hint: there were wrong PINs before"), "{wrong}");
    assert!(said("token list --json", 0).contains("\"user_tries_left\": null"));
}

#[test]
fn a_user_who_may_not_connect_is_told_so() {
    let not_run = |lack| not_run("metaslotd", "the command of another user", lack);
    let Some(module) = module_path() else { return not_run("there is no libmetaslot.so") };
    if !rustix::process::geteuid().is_root() {
        return not_run("it needs root");
    }
    let module = fs::canonicalize(module).expect("it is there");
    let place = place();
    let (socket, file) = (place.path().join("socket"), place.path().join("metaslot.toml"));
    let client = "counters = false\n[[foreign]]\nname = \"held\"\nsocket = ";
    fs::write(&file, format!("{client}\"{}\"\n", socket.display())).expect("it is written");
    // Whatever root's mask is.
    for (path, mode) in [(place.path(), 0o755), (&*file, 0o644)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is readable");
    }
    let _daemon = Daemon::start(place.path());
    let mut command = Command::new(module.with_file_name("metaslot"));
    command.args(["token", "list", "--module"]).arg(&module).env("METASLOT_CONF", &file);
    let Ok(output) = command.current_dir("/").uid(65534).gid(65534).output() else {
        return not_run("there is no command that others may run");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let why = format!("held: the server at {} does not let this user connect", socket.display());
    assert!(said.contains(&why), "{said}");
}

/// A program in namespaces of its own, if there are such here.
fn unshared(arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new("/usr/bin/unshare");
    command.args(arguments);
    let tried = Command::new("/usr/bin/unshare").args(arguments).arg("/bin/true").output();
    if tried.is_ok_and(|tried| tried.status.success()) {
        return Some(command);
    }
    left_out("metaslotd", "namespaces", "unshare makes none here");
    None
}

#[test]
fn a_program_is_a_file_and_not_a_name_that_a_client_can_give_to_another() {
    let Some(mut forged) = unshared(&["-Urm"]).filter(|_| is_installed()) else { return };
    let place = place();
    let program = place.path().join("program");
    fs::copy("/usr/bin/pkcs11-tool", &program).expect("it is copied");
    configure_for(&place, &format!("program:{}", program.display()), "[\"sign\"]");
    let daemon = Daemon::start(place.path());
    let list = ["--module", CLIENT, "--list-objects", "--type", "privkey"];
    let has_key = |output: Output| String::from_utf8_lossy(&output.stdout).contains("site");
    assert!(has_key(daemon.client(program.to_str().expect("UTF-8"), &list)));
    // Replaced by an update while it runs, say.
    let copy = place.path().join("copy");
    fs::copy(&program, &copy).expect("it is copied");
    fs::rename(&copy, &program).expect("it is replaced");
    assert!(has_key(daemon.client(program.to_str().expect("UTF-8"), &list)));
    assert!(!has_key(daemon.client("/usr/bin/pkcs11-tool", &list)));
    let script = "mount --bind /usr/bin/pkcs11-tool \"$0\" && exec \"$0\" \"$@\"";
    forged.args(["/bin/sh", "-c", script]).arg(&program).args(list);
    let address = format!("unix:path={}", place.path().join("socket").display());
    let forged = forged.env("P11_KIT_SERVER_ADDRESS", address).output().expect("it runs");
    assert!(forged.status.success(), "{}", String::from_utf8_lossy(&forged.stderr));
    assert!(!has_key(forged), "another program under its name");
}

#[test]
fn a_client_whose_number_the_daemon_does_not_see_is_its_user() {
    let arguments = ["-Urpf", "--mount-proc", "--kill-child"];
    if unshared(&arguments).is_none() || !is_installed() {
        return;
    }
    let place = place();
    let list = ["--module", CLIENT, "--list-objects", "--type", "privkey"];
    for (service, has) in
        [("user:0", true), ("cgroup:/", false), ("program:/usr/bin/pkcs11-tool", false)]
    {
        configure_for(&place, service, "[\"sign\"]");
        let mut apart = unshared(&arguments).expect("it was one");
        let daemon = env!("CARGO_BIN_EXE_metaslotd");
        apart.args([daemon, "--config"]).arg(place.path().join("metaslotd.toml"));
        let daemon = Daemon::started(place.path(), apart.stderr(Stdio::piped()));
        let listed = daemon.client("/usr/bin/pkcs11-tool", &list);
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        assert_eq!(String::from_utf8_lossy(&listed.stdout).contains("site"), has, "{service}");
    }
}

/// A session of a new client of the daemon.
pub(crate) fn opened(place: &Place, slot: u64) -> (Raw, u64) {
    let stream = UnixStream::connect(place.path().join("socket")).expect("it listens");
    let mut raw = Raw::over(stream, 2);
    let session = session_of(&mut raw, slot);
    (raw, session)
}

pub(crate) fn session_of(raw: &mut Raw, slot: u64) -> u64 {
    let session = raw.number(10, |request| {
        request.number(slot);
        request.number(CKF_SERIAL_SESSION | CKF_RW_SESSION);
    });
    session.expect("a session opens")
}

/// The handles of what is there of a class.
pub(crate) fn found(raw: &mut Raw, session: u64, class: u64) -> Vec<u64> {
    let class = class.to_ne_bytes();
    raw.call(26, |request| {
        request.number(session);
        request.count(1);
        request.available(CKA_CLASS, class.len()).expect("a number of the standard");
        request.value(metaslot_client::protocol::kind(CKA_CLASS), &class).expect("a number");
    })
    .expect("a search begins");
    let found = raw.call(27, |request| {
        request.number(session);
        request.count(100);
    });
    raw.call(28, |request| request.number(session)).expect("it ends");
    let found = found.expect("a list");
    found[5..].as_chunks().0.iter().map(|handle| u64::from_be_bytes(*handle)).collect()
}

#[test]
fn a_key_that_a_service_may_not_use_is_not_digested_either() {
    let place = place();
    let engine = place.engine();
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let bytes = |attribute, value: &[u8]| (attribute, RawValue::Bytes(value.to_vec()));
    let length = bytes(CKA_VALUE_LEN, &16_u64.to_ne_bytes());
    let template = vec![length, bytes(CKA_LABEL, b"site"), bytes(CKA_TOKEN, &[1])];
    let made = engine.generate_key(session, CKM_AES_KEY_GEN, Params::None, template);
    made.expect("a key is made");
    configure(&place, "[]");
    let _daemon = Daemon::start(place.path());
    let (mut raw, session) = opened(&place, 0);
    let [key] = found(&mut raw, session, CKO_SECRET_KEY)[..] else { panic!("one key") };
    let digest = |raw: &mut Raw| {
        raw.call(37, |request| {
            request.number(session);
            request.half(u32::try_from(CKM_SHA256).expect("it is short"));
        })
        .expect("a digest begins");
        let digested = raw.call(40, |request| {
            request.number(session);
            request.number(key);
        });
        let made = raw.bytes(41, |request| {
            request.number(session);
            request.half(32);
        });
        (digested.err(), made.err())
    };
    let refused = (Some(Error::KEY_INDIGESTIBLE), Some(Error::OPERATION_NOT_INITIALIZED));
    assert_eq!(digest(&mut raw), refused);
}

#[test]
fn a_user_has_as_many_connections_as_the_daemon_is_told() {
    let place = place();
    let file = place.path().join("metaslotd.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, text.replace("[daemon]\n", "[daemon]\nconnections = 2\n"))
        .expect("it is written");
    let _daemon = Daemon::start(place.path());
    let connect = || {
        let mut client = UnixStream::connect(place.path().join("socket")).expect("it listens");
        // It may be closed already.
        std::io::Write::write_all(&mut client, &[2]).ok();
        let mut version = [0];
        let read = std::io::Read::read(&mut client, &mut version);
        read.is_ok_and(|read| read == 1).then_some(client)
    };
    let [one, two] = [connect(), connect()];
    assert!(one.is_some() && two.is_some());
    assert!(connect().is_none(), "the third");
    drop(one);
    while connect().is_none() {}
}

const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";

/// A token of SoftHSM with a pair `site`, beside the daemon's own, which is configured with its PIN.
fn with_other_module(place: &Place) -> Command {
    let at = place.path().display();
    fs::create_dir(place.path().join("hsm")).expect("it is made");
    let configuration = place.path().join("softhsm2.conf");
    fs::write(&configuration, format!("directories.tokendir = {at}/hsm\n")).expect("it is written");
    let steps = [
        "--init-token --slot-index 0 --label hsm --so-pin 12345678",
        "--token-label hsm --init-pin --login --login-type so --so-pin 12345678 --pin user-pin-1",
        "--token-label hsm --login --pin user-pin-1 --keypairgen --key-type EC:prime256v1 --label site",
    ];
    for step in steps {
        let mut tool = Command::new("/usr/bin/pkcs11-tool");
        tool.env("SOFTHSM2_CONF", &configuration).args(["--module", SOFTHSM]).args(step.split(' '));
        let made = tool.output().expect("it is installed");
        assert!(made.status.success(), "{step}: {}", String::from_utf8_lossy(&made.stderr));
    }
    let file = place.path().join("metaslotd.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let other = format!(
        "[[foreign]]\nname = \"softhsm\"\nmodule = \"{SOFTHSM}\"\npin-source = \"file:{at}/pin\"\n"
    );
    fs::write(&file, text + &other).expect("it is written");
    let mut command = command(place.path());
    command.env("SOFTHSM2_CONF", configuration);
    command
}

fn login(raw: &mut Raw, session: u64, pin: Option<&[u8]>) -> Option<Error> {
    let tried = raw.call(18, |request| {
        request.number(session);
        request.number(CKU_USER);
        match pin {
            None => request.absent(0),
            pin => request.bytes(pin),
        }
    });
    tried.err()
}

#[test]
fn a_token_of_another_module_is_that_of_the_client_that_logs_in() {
    if !is_installed() || !Path::new(SOFTHSM).exists() {
        not_run("metaslotd", "another module", &format!("there is no {SOFTHSM}"));
        return;
    }
    let place = place();
    let _daemon = Daemon::started(place.path(), &mut with_other_module(&place));
    let ([mut one, mut other], [mine, theirs]) = {
        let [one, other] = [opened(&place, 1), opened(&place, 1)];
        ([one.0, other.0], [one.1, other.1])
    };
    assert_eq!(login(&mut one, mine, None), Some(Error::ARGUMENTS_BAD), "by the daemon's PIN");
    let no = login(&mut one, mine, Some(b"")).expect("nor so");
    assert_eq!(no, Error::PIN_INCORRECT);
    assert!(found(&mut one, mine, CKO_PRIVATE_KEY).is_empty());
    assert_eq!(login(&mut other, theirs, Some(USER)), None);
    assert_eq!(found(&mut other, theirs, CKO_PRIVATE_KEY).len(), 1);
    assert!(found(&mut one, mine, CKO_PRIVATE_KEY).is_empty(), "by another's login");
    let refused = login(&mut one, mine, Some(USER));
    assert_eq!(refused, Some(Error::USER_ANOTHER_ALREADY_LOGGED_IN));
    let class = CKO_DATA.to_ne_bytes();
    let made = one.number(20, |request| {
        request.number(mine);
        let public: [(u64, &[u8]); 3] =
            [(CKA_CLASS, &class), (CKA_TOKEN, &[1]), (CKA_PRIVATE, &[0])];
        request.count(public.len());
        for (attribute, value) in public {
            request.available(attribute, value.len()).expect("a number of the standard");
            let kind = metaslot_client::protocol::kind(attribute);
            request.value(kind, value).expect("a value of this kind");
        }
    });
    assert_eq!(made, Err(Error::USER_NOT_LOGGED_IN), "what stays in the token");
    // Slot 0 shows it, too: the rights are of the daemon's own token.
    let (mut service, session) = opened(&place, 0);
    assert_eq!(found(&mut service, session, CKO_PRIVATE_KEY).len(), 1);
}
