// SPDX-License-Identifier: Apache-2.0
//! A token in a directory of its own, a server of it, and clients.

use metaslot_ck::*;
use metaslot_client::protocol::{Call, OWN, Reader, VERSION, Writer};
use metaslot_client::{Carrier, Message, Module};
use metaslot_counters::clients::Seat;
use metaslot_daemon::fence::put_up;
use metaslot_daemon::{Allowances, Client, p11kit};
use metaslot_engine::{Config, Engine, Policy, SlotConfig};
use metaslot_keystore::{Config as StoreConfig, Cost, Kdf, SqliteStore};
use metaslot_spi::provider::Provider;
use metaslot_spi::{Params, RawValue};
use metaslot_testkit::not_run;
use metaslot_wiring::config::Reach;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const SO: &[u8] = b"so-pin-1";
pub(crate) const USER: &[u8] = b"user-pin-1";

/// A directory that goes away with its test; the token and the socket are in it.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// On no disk, where the machine has such a directory: what is written waits for none.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        Self::within(if memory.is_dir() { memory } else { Path::new("/tmp") })
    }

    fn within(directory: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("metaslot-door-{}-{number}", std::process::id());
        let path = directory.join(name);
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a directory is made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("door")
    }

    /// The token, as a process of its own has it.
    pub(crate) fn store(&self) -> SqliteStore {
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
        let config = StoreConfig { kdf, ..StoreConfig::new(self.0.join("token/token.db")) };
        SqliteStore::new(config)
    }

    /// An application of its own, over the same token as the others.
    pub(crate) fn engine(&self) -> Engine {
        static PROVIDERS: &[&dyn Provider] = &[&metaslot_awslc::AWSLC];
        let store = Box::new(self.store());
        let slot = SlotConfig { description: "door".into(), store, policy: Policy::DEFAULT };
        Engine::new(Config { slots: vec![slot], providers: PROVIDERS })
    }

    /// Serves each client with an engine of its own, for as long as the process lives.
    pub(crate) fn serve(&self) {
        self.serve_to(OWN);
    }

    /// The same, by no newer version of the protocol than this.
    pub(crate) fn serve_to(&self, newest: u8) {
        let listener = UnixListener::bind(self.socket()).expect("a socket is made");
        let place = Self(self.0.clone());
        thread::spawn(move || {
            let place = std::mem::ManuallyDrop::new(place);
            fence(place.path());
            for stream in listener.incoming().flatten() {
                let engine = place.engine();
                thread::spawn(move || p11kit::serve_to(newest, stream, &unlimited(engine)));
            }
        });
    }

    /// Serves one client, with no more memory than this.
    pub(crate) fn raw_within(&self, memory: usize) -> Raw {
        let [raw] = self.raws_within(memory);
        raw
    }

    /// Serves clients of one user, which have no more memory than this together.
    pub(crate) fn raws_within<const N: usize>(&self, memory: usize) -> [Raw; N] {
        let allowances = Allowances::new(N, memory);
        std::array::from_fn(|_| {
            let (near, far) = UnixStream::pair().expect("a pair of sockets");
            let client = client_of(self.engine(), &allowances);
            thread::spawn(move || p11kit::serve(far, &client));
            Raw::over(near, 2)
        })
    }

    pub(crate) fn served() -> Self {
        let place = Self::new();
        place.serve();
        place
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).expect("a server is there")
    }

    /// Our own client, which knows this version of p11-kit's protocol, and no other.
    pub(crate) fn module(&self, version: u8) -> Module {
        self.module_that_offers(version, version)
    }

    /// The same, which offers a newer version.
    pub(crate) fn module_that_offers(&self, version: u8, newest: u8) -> Module {
        module_at(self.socket(), version, newest)
    }

    /// A client of the program, by the newest version.
    pub(crate) fn module_of_program(&self) -> Module {
        module_at(self.0.join("socket"), VERSION, OWN)
    }

    /// A client that writes its requests itself, initialised.
    pub(crate) fn raw(&self, version: u8) -> Raw {
        Raw::over(self.connect(), version)
    }
}

/// Writes a file that only its owner reads, as one with a PIN is.
pub(crate) fn write_own(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    fs::write(&path, content).expect("it is written");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
}

fn module_at(path: PathBuf, version: u8, newest: u8) -> Module {
    let (stream, at) = (Mutex::default(), path.clone());
    Module::remote(at, Arc::new(Socket { path, version, newest, stream }))
}

/// Leaves this thread, and those that it starts, what the daemon has behind its fence: all that is served here is served so.
pub(crate) fn fence(directory: &Path) -> bool {
    let directories = vec![directory.to_owned(), PathBuf::from("/dev/shm")];
    let reach = Reach { directories, ..Reach::default() };
    let lacks = put_up(&reach, &[]);
    lacks.iter().for_each(|lack| not_run("metaslotd", "the fence", lack));
    lacks.is_empty()
}

/// A client that is believed.
pub(crate) fn unlimited(engine: Engine) -> Client {
    client_of(engine, &Allowances::new(1, usize::MAX))
}

fn client_of(engine: Engine, allowances: &Allowances) -> Client {
    let allowance = allowances.admit(0).expect("there are not too many");
    let (patience, seat) = (Duration::from_secs(30), Seat::default());
    Client { engine, log: None, allowance, seat, patience, granted: None }
}

fn greet(stream: &mut UnixStream, version: u8) -> std::io::Result<u8> {
    let mut agreed = [0];
    stream.write_all(&[version])?;
    stream.read_exact(&mut agreed)?;
    Ok(agreed[0])
}

pub(crate) fn exchange(stream: &mut UnixStream, request: &[u8]) -> std::io::Result<Message> {
    let length = u32::try_from(request.len()).expect("short");
    stream.write_all([7, 0, length].map(u32::to_be_bytes).as_flattened())?;
    stream.write_all(request)?;
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let [code, options, length] = header.as_chunks::<4>().0 else { unreachable!() };
    assert_eq!((u32::from_be_bytes(*code), u32::from_be_bytes(*options)), (7, 0));
    let length = u32::from_be_bytes(*length) as usize;
    let mut answer = Message::zeroed(length).expect("there is memory");
    stream.read_exact(answer.as_mut())?;
    Ok(answer)
}

#[derive(Debug)]
struct Socket {
    path: PathBuf,
    version: u8,
    newest: u8,
    stream: Mutex<Option<UnixStream>>,
}

impl Carrier for Socket {
    fn start(&self) -> Result<u8> {
        let mut stream = UnixStream::connect(&self.path).map_err(|_| Error::DEVICE_REMOVED)?;
        let version = greet(&mut stream, self.version).map_err(|_| Error::DEVICE_REMOVED)?;
        *self.stream.lock().expect("no panic") = Some(stream);
        Ok(version)
    }

    fn offers(&self) -> u8 {
        self.newest
    }

    fn end(&self) {
        self.stream.lock().expect("no panic").take();
    }

    fn exchange(&self, request: &[u8]) -> Result<Message> {
        let mut stream = self.stream.lock().expect("no panic");
        let stream = stream.as_mut().ok_or(Error::CRYPTOKI_NOT_INITIALIZED)?;
        exchange(stream, request).map_err(|_| Error::DEVICE_REMOVED)
    }
}

/// A client that writes its requests itself.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
}

impl Raw {
    pub(crate) fn over(mut stream: UnixStream, version: u8) -> Self {
        greet(&mut stream, version).expect("the version is answered");
        let mut raw = Self { stream };
        raw.call(1, |request| {
            request.bytes(Some(metaslot_client::protocol::GREETING));
            request.byte(0);
            request.bytes(Some(&[0]));
        })
        .expect("it begins");
        raw
    }

    /// What the call of this number gives, behind its signature.
    pub(crate) fn call(&mut self, number: u32, parts: impl FnOnce(&mut Writer)) -> Result<Vec<u8>> {
        let call = Call::numbered(number).expect("there is this call");
        let mut request = Writer::default();
        request.begin(number, call.request);
        parts(&mut request);
        let answer = exchange(&mut self.stream, request.finish().as_ref()).expect("an answer");
        Reader::answer(&answer, call)?;
        Ok(answer.as_ref()[8 + call.answer.len()..].to_vec())
    }

    /// A call that gives one number.
    pub(crate) fn number(&mut self, number: u32, parts: impl FnOnce(&mut Writer)) -> Result<u64> {
        let answer = self.call(number, parts)?;
        Ok(u64::from_be_bytes(answer.try_into().expect("a number")))
    }

    /// A call that gives bytes, or how many they would be.
    pub(crate) fn bytes(
        &mut self,
        number: u32,
        parts: impl FnOnce(&mut Writer),
    ) -> Result<std::result::Result<Vec<u8>, usize>> {
        let answer = self.call(number, parts)?;
        let mut reader = Reader::new(&answer);
        let bytes = reader.bytes()?.map(<[u8]>::to_vec);
        reader.end()?;
        Ok(bytes)
    }
}

/// The slot's token, with both PINs; another client has gone again.
pub(crate) fn initialized(place: &Place) {
    let engine = place.engine();
    let slot = SlotId(0);
    engine.init_token(slot, SO, "door").expect("a token is made");
    let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
    let session = engine.open_session(slot, flags).expect("a session opens");
    engine.login(session, CKU_SO, SO).expect("the officer logs in");
    engine.init_pin(session, USER).expect("the PIN is set");
}

/// A child that ends with its test.
#[derive(Debug)]
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The program, or the one that `METASLOT_DAEMON` names, which serves by then.
pub(crate) fn started(place: &Place) -> Killed {
    started_by(Command::new(program()), place)
}

/// What configures a daemon with the place's token, and a client that has it by the daemon alone.
pub(crate) fn configured(place: &Place) {
    let at = place.path().display();
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         [daemon]\nsocket = \"{at}/socket\"\n"
    );
    fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let client =
        format!("counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{at}/socket\"\n");
    fs::write(place.path().join("metaslot.toml"), client).expect("it is written");
}

pub(crate) fn program() -> OsString {
    let named = std::env::var_os("METASLOT_DAEMON");
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_metaslotd").into())
}

/// The same by a command that has everything but what belongs to the place.
pub(crate) fn started_by(mut command: Command, place: &Place) -> Killed {
    command.arg("--config").arg(place.path().join("metaslotd.toml")).stderr(Stdio::piped());
    let mut process = Killed(command.spawn().expect("it is built"));
    let mut told = String::new();
    let errors = process.0.stderr.take().expect("it is a pipe");
    BufReader::new(errors).read_line(&mut told).expect("a line");
    assert!(told.starts_with("metaslotd: serves "), "{told}");
    process
}

/// Two pairs, without a PIN for this user's programs where the configuration says so: `site` on P-256, to sign with, and `seal` of
/// RSA-2048.
pub(crate) fn pairs(place: &Place, usage: CK_ATTRIBUTE_TYPE) {
    let engine = place.engine();
    let session = engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let bytes = |attribute, value: &[u8]| (attribute, RawValue::Bytes(value.to_vec()));
    let p256 = bytes(CKA_EC_PARAMS, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let bits = bytes(CKA_MODULUS_BITS, &2048_u64.to_ne_bytes());
    for (label, mechanism, more, usage) in [
        ("site", CKM_EC_KEY_PAIR_GEN, p256, CKA_SIGN),
        ("seal", CKM_RSA_PKCS_KEY_PAIR_GEN, bits, usage),
    ] {
        let named = || [bytes(CKA_LABEL, label.as_bytes()), bytes(CKA_TOKEN, &[1])];
        let private = named().into_iter().chain([bytes(usage, &[1])]).collect();
        let public = named().into_iter().chain([more]).collect();
        engine
            .generate_key_pair(session, mechanism, Params::None, public, private)
            .expect("a pair is made");
    }
}

/// A program in C that is there beside the tests.
pub(crate) fn compiled(place: &Place, name: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]);
    gcc.arg(here.join("../../include")).arg(here.join("tests/all").join(format!("{name}.c")));
    let built = gcc.arg("-o").arg(place.path().join(name)).args(["-ldl", "-lpthread"]).status();
    assert!(built.expect("it is installed").success());
}
