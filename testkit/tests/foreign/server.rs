// SPDX-License-Identifier: Apache-2.0
//! A pool over two real tokens, of which one loses its process and the other its files.

use super::*;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENT_MODULE: &str = "/usr/lib/x86_64-linux-gnu/pkcs11/p11-kit-client.so";
/// p11-kit 0.24's client can keep a call waiting for ever when its server dies under another thread.
const THREADS: usize = 1;
/// How often the process goes and comes; `FAULTS` has another number for a longer run.
const CHANGES: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// One key in a token of SoftHSM and in one that `p11-kit server` serves, with files of its own.
fn prepared(token: &mut TestToken) -> Result<()> {
    let key = token.path("key.pem");
    let new = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"];
    token.program("openssl").args(new).arg(&key).run()?;
    std::fs::create_dir(token.path("other"))?;
    let other = format!("directories.tokendir = {}\n", token.path("other").display());
    let other = token.write("other.conf", other)?;
    for (label, conf) in [("one", None), ("two", Some(&other))] {
        let tool = || {
            let tool = token.program("softhsm2-util");
            if let Some(conf) = conf { tool.env("SOFTHSM2_CONF", conf) } else { tool }
        };
        let pins = ["--pin", USER_PIN, "--so-pin", SO_PIN];
        tool().args(["--init-token", "--free", "--label", label]).args(pins).run()?;
        let import = ["--token", label, "--label", "web", "--id", "01", "--pin", USER_PIN];
        tool().arg("--import").arg(&key).args(import).run()?;
    }
    let address = format!("unix:path={}", token.path("socket").display());
    token.set("P11_KIT_SERVER_ADDRESS", address);
    token.set("FAULTS", std::env::var("FAULTS").unwrap_or_default());
    configure(token, &format!("name = \"softhsm\"\nmodule = \"{SOFTHSM}\""))?;
    let pool = "[[pool]]\nname = \"web\"\ntokens = [\"one\", \"two\"]";
    configure(token, &format!("name = \"served\"\nmodule = \"{CLIENT_MODULE}\"\n{pool}"))
}

fn home() -> Result<PathBuf> {
    Ok(std::env::var_os("HOME").context("no home")?.into())
}

/// The server, and what it has forked for each connection.
struct Server(Child);

impl Server {
    fn start() -> Result<Self> {
        let socket = home()?.join("socket");
        std::fs::remove_file(&socket).ok();
        let mut server = Command::new("p11-kit");
        server.args(["server", "-f", "-n"]).arg(&socket).args(["-p", SOFTHSM, "pkcs11:token=two"]);
        server.env("SOFTHSM2_CONF", home()?.join("other.conf")).process_group(0);
        server.env_remove("P11_KIT_SERVER_ADDRESS").stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(server.spawn()?);
        let start = Instant::now();
        while !socket.exists() {
            ensure!(start.elapsed() < PATIENCE, "no server");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(server)
    }
}

/// Also where the test fails: it is killed.
impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        Command::new("kill").args(["-9", "--", &group]).status().ok();
        self.0.wait().ok();
    }
}

pub(super) fn key(module: &Module) -> Result<(Session, ObjectHandle)> {
    let session = module.open_session(slot(module, "web")?, Access::ReadOnly)?;
    session.login(User::User, USER_PIN.as_bytes()).or_else(|failure| match failure.code {
        Error::USER_ALREADY_LOGGED_IN => Ok(()),
        _ => Err(failure),
    })?;
    let found = session.find(&Template::new().class(CKO_PRIVATE_KEY))?;
    let [key] = found[..] else { anyhow::bail!("{} keys", found.len()) };
    Ok((session, key))
}

/// Until so many operations have been done meanwhile.
fn wait(done: &AtomicU64, over: &AtomicBool) -> Result<()> {
    let (start, before) = (Instant::now(), done.load(Ordering::SeqCst));
    while done.load(Ordering::SeqCst) < before + 100 && !over.load(Ordering::SeqCst) {
        ensure!(start.elapsed() < PATIENCE, "nothing is done any more");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The process of the one dies and begins anew, then the files of the other go.
fn disturb(mut server: Server, done: &AtomicU64, over: &AtomicBool) -> Result<Server> {
    let changes = std::env::var("FAULTS").ok().and_then(|number| number.parse().ok());
    for _ in 0..changes.unwrap_or(CHANGES) {
        drop(server);
        wait(done, over)?;
        server = Server::start()?;
        wait(done, over)?;
    }
    // SoftHSM does not find its objects again in this process.
    std::fs::rename(home()?.join("tokens"), home()?.join("away"))?;
    wait(done, over)?;
    Ok(server)
}

/// As p11-kit's client without its server: the module has no slot any more, and looks for one at its start only.
#[test]
fn slots_of_a_server_that_comes_back_are_there_again() {
    let prepare = |token: &mut TestToken| {
        compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
        let home = token.home().display().to_string();
        token.set("FAKE_ORDERS", &home);
        configure(token, &format!("name = \"fake\"\nmodule = \"{home}/tokens.so\""))
    };
    let name = "server::slots_of_a_server_that_comes_back_are_there_again";
    apart(CLIENT, "slots that come back", name, prepare, || {
        let module = started()?;
        let all = module.slots(true)?;
        ensure!(all.len() == 4, "{all:?}");
        let sign = home()?.join("no-server");
        std::fs::write(&sign, "")?;
        ensure!(module.slots(true)? == all[..1], "{:?}", module.slots(true)?);
        std::fs::remove_file(&sign)?;
        let start = Instant::now();
        while module.slots(true)? != all {
            ensure!(start.elapsed() < PATIENCE, "{:?}", module.slots(true)?);
            std::thread::sleep(Duration::from_millis(10));
        }
        let session = module.open_session(all[1], Access::ReadOnly)?;
        session.login(User::User, b"1234")?;
        ensure!(session.find(&Template::new())?.len() == 1, "no key");
        Ok(())
    });
}

#[test]
fn token_whose_process_or_files_go_is_noticed_by_no_caller() {
    let name = "server::token_whose_process_or_files_go_is_noticed_by_no_caller";
    let files = [SOFTHSM, CLIENT_MODULE].iter().all(|file| Path::new(file).exists());
    let there =
        files && find_program("p11-kit").is_some() && find_program("softhsm2-util").is_some();
    if !there && !is_inside() {
        println!("{CLIENT}, processes that die: not run: SoftHSM or p11-kit is not installed");
        return;
    }
    apart(CLIENT, "processes and files that go", name, prepared, || {
        let server = Server::start()?;
        let module = started()?;
        let (session, private) = key(&module)?;
        let mechanism = &CKM_SHA256_RSA_PKCS.into();
        let right = session.sign(mechanism, private, b"message")?;
        let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let work = || -> Result<()> {
            let (session, private) = key(&module)?;
            while !over.load(Ordering::SeqCst) {
                let made = session.sign(mechanism, private, b"message");
                let made = made.with_context(|| module.detail().unwrap_or_default());
                ensure!(made? == right, "a wrong signature");
                done.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        let work = || work().inspect_err(|_| over.store(true, Ordering::SeqCst));
        let server = std::thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| scope.spawn(work));
            let server = disturb(server, &done, &over);
            over.store(true, Ordering::SeqCst);
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
            server
        })?;
        println!("    {} signatures, none failed", done.into_inner());
        drop(server);
        Ok(())
    });
}
