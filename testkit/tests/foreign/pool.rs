// SPDX-License-Identifier: Apache-2.0
//! One key in several tokens.

use super::*;
use metaslot_client::{Mechanism, Params};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOKENS: [&str; 3] = ["a", "b", "c"];
/// Threads that sign meanwhile.
const THREADS: u64 = 4;
/// How a token dies: removed, not present, an error of the device.
const WAYS: [&str; 3] = ["removed", "present", "error"];
/// By then each step of a test is over, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn prepared(token: &mut TestToken) -> Result<()> {
    compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
    let home = token.home().display().to_string();
    token.set("FAKE_ORDERS", &home);
    configure(token, &format!("name = \"fake\"\nmodule = \"{home}/tokens.so\""))?;
    let text = std::fs::read_to_string(token.path("metaslot.toml"))?;
    let pool = format!("[[pool]]\nname = \"web\"\ntokens = {TOKENS:?}\n");
    token.write("metaslot.toml", format!("{text}\n{pool}")).map(|_| ())
}

/// The file that says that a token is dead.
fn sign_of_death(token: usize) -> Result<std::path::PathBuf> {
    let home = std::env::var_os("FAKE_ORDERS").context("no directory")?;
    Ok(Path::new(&home).join(format!("dead-{token}")))
}

fn web_key(module: &Module) -> Result<(Session, ObjectHandle)> {
    let session = module.open_session(slot(module, "web")?, Access::ReadOnly)?;
    let other = session.login(User::User, b"1234");
    ensure!(other.is_ok() || fails_with(other, Error::USER_ALREADY_LOGGED_IN).is_ok(), "login");
    let found = session.find(&Template::new().class(CKO_PRIVATE_KEY).label("web"))?;
    let [key] = found[..] else { anyhow::bail!("{} keys", found.len()) };
    Ok((session, key))
}

/// Which token signed.
fn signed_by(session: &Session, key: ObjectHandle, data: &[u8]) -> Result<usize> {
    let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), key, data)?;
    ensure!(signature.len() == 256 && signature[1..=data.len()] == *data, "a wrong signature");
    Ok(usize::from(signature[0]))
}

#[test]
fn key_in_three_tokens_is_one_and_each_has_its_turn() {
    let name = "pool::key_in_three_tokens_is_one_and_each_has_its_turn";
    apart(CLIENT, "one key in three tokens", name, prepared, || {
        let module = started()?;
        ensure!(module.slots(true)?.len() == 2, "its tokens are no slots of their own");
        let candidates = module.candidates(CKM_SHA256_RSA_PKCS).context("it says")?;
        let remark = |name: &str| {
            candidates.iter().find(|one| one.provider == name).map(|one| one.remark.as_str())
        };
        ensure!(remark("fake") == Some("it serves the pool web"), "{candidates:?}");
        ensure!(remark("web") == Some("keys of slot 1 only"), "{candidates:?}");
        let wrong = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        fails_with(wrong.login(User::User, b"4321"), Error::PIN_INCORRECT)?;
        ensure!(wrong.find(&Template::new())?.is_empty(), "seen without a login");
        let (session, key) = web_key(&module)?;
        let mut turns = [0; TOKENS.len()];
        for round in 0..30_u8 {
            turns[signed_by(&session, key, &[round])?] += 1;
        }
        ensure!(turns == [10; 3], "{turns:?}");
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
        ensure!(session.generate_key(&CKM_AES_KEY_GEN.into(), &template).is_err(), "made");
        ensure!(session.attribute(key, CKA_PRIME_1).is_err(), "shown");
        session.logout()?;
        let dead = session.sign_init(&CKM_SHA256_RSA_PKCS.into(), key);
        fails_with(dead, Error::KEY_HANDLE_INVALID)?;
        let (_session, _) = web_key(&module)?;
        module.finalize()?;
        module.initialize()?;
        let (session, key) = web_key(&module)?;
        signed_by(&session, key, b"anew").map(drop)
    });
}

#[test]
fn tokens_that_die_and_come_back_fail_no_operation() {
    let name = "pool::tokens_that_die_and_come_back_fail_no_operation";
    apart(CLIENT, "tokens that die", name, prepared, || {
        if std::env::var_os(WORKER).is_some() {
            return signs_until_the_end();
        }
        let mut others = [worker(name)?, worker(name)?];
        let module = started()?;
        // One is dead before the login, and no search comes when it is back.
        module.slots(true)?;
        std::fs::write(sign_of_death(0)?, WAYS[0])?;
        let (_session, key) = web_key(&module)?;
        let signed = [const { AtomicU64::new(0) }; TOKENS.len()];
        let over = AtomicBool::new(false);
        let work = |thread: u64| -> Result<()> {
            let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
            for round in 0_u64.. {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let data = [thread.to_le_bytes(), round.to_le_bytes()].concat();
                signed[signed_by(&session, key, &data)?].fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
            let told = die_and_come_back(&signed);
            over.store(true, Ordering::SeqCst);
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
            told
        })?;
        println!("    {signed:?} signatures, none failed");
        std::fs::write(sign_of_death(0)?.with_file_name("over"), "")?;
        for other in &mut others {
            ensure!(other.0.wait()?.success(), "another process failed");
        }
        Ok(())
    });
}

/// Set in processes that sign beside the test's own.
const WORKER: &str = "FAKE_WORKER";

/// A process that signs beside the test's own, until that has failed at the latest.
struct Worker(std::process::Child);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn worker(name: &str) -> Result<Worker> {
    let mut worker = std::process::Command::new(std::env::current_exe()?);
    Ok(Worker(worker.args(["--exact", name, "--nocapture"]).env(WORKER, "1").spawn()?))
}

/// Logs in anew now and then, whoever is dead.
fn signs_until_the_end() -> Result<()> {
    let (module, over) = (started()?, sign_of_death(0)?.with_file_name("over"));
    while !over.exists() {
        let (session, key) = web_key(&module)?;
        for round in 0..100_u8 {
            signed_by(&session, key, &[round])?;
        }
        session.logout()?;
    }
    Ok(())
}

/// Lets one token after another die in each way and come back, and waits until the others have gone on and it signs
/// again.
fn die_and_come_back(signed: &[AtomicU64; TOKENS.len()]) -> Result<()> {
    let wait = |what: &str, tokens: &[usize]| -> Result<()> {
        let count = |token: &usize| signed[*token].load(Ordering::SeqCst);
        let before: Vec<_> = tokens.iter().map(count).collect();
        let start = Instant::now();
        while tokens.iter().zip(&before).any(|(token, before)| count(token) < before + 50) {
            ensure!(start.elapsed() < PATIENCE, "{what}: {signed:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    for round in 0..4 * WAYS.len() {
        let (dead, way) = (round % TOKENS.len(), WAYS[round / 4]);
        std::fs::write(sign_of_death(dead)?, way)?;
        let others: Vec<_> = (0..TOKENS.len()).filter(|token| *token != dead).collect();
        wait(&format!("{dead} is dead ({way})"), &others)?;
        std::fs::remove_file(sign_of_death(dead)?)?;
        wait(&format!("{dead} is back ({way})"), &[0, 1, 2])?;
    }
    Ok(())
}

#[test]
fn last_token_that_is_left_does_everything_and_none_is_an_error() {
    let name = "pool::last_token_that_is_left_does_everything_and_none_is_an_error";
    apart(CLIENT, "one token of three", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        for (token, way) in WAYS.iter().enumerate().take(2) {
            std::fs::write(sign_of_death(token)?, way)?;
        }
        for round in 0..20_u8 {
            ensure!(signed_by(&session, key, &[round])? == 2, "a dead token signed");
        }
        std::fs::write(sign_of_death(2)?, WAYS[2])?;
        let none = session.sign(&CKM_SHA256_RSA_PKCS.into(), key, b"x");
        ensure!(none.is_err(), "no token is left");
        (0..3).try_for_each(|token| anyhow::Ok(std::fs::remove_file(sign_of_death(token)?)?))?;
        // Those that rest are asked when no other is left: nothing has to be waited for.
        signed_by(&session, key, b"y").map(drop)
    });
}

/// While one fails the others die, and it comes back: one works at any time.
#[test]
fn tokens_that_die_in_turn_during_a_call_do_not_fail_it() {
    let name = "pool::tokens_that_die_in_turn_during_a_call_do_not_fail_it";
    apart(CLIENT, "tokens that die in turn", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        (0..3).try_for_each(|token| {
            let signed = signed_by(&session, key, b"x")?;
            ensure!(signed == token, "{signed} before {token}");
            Ok(())
        })?;
        let file = |what: &str| anyhow::Ok(sign_of_death(0)?.with_file_name(what));
        let (stall, stalled) = (file("stall-failure")?, file("stalled-failure")?);
        std::fs::write(sign_of_death(0)?, WAYS[2])?;
        std::fs::write(stall, "")?;
        std::thread::scope(|scope| {
            let sign = scope.spawn(|| signed_by(&session, key, b"y"));
            let start = Instant::now();
            while !stalled.exists() && !sign.is_finished() {
                ensure!(start.elapsed() < PATIENCE, "no failure");
                std::thread::sleep(Duration::from_millis(1));
            }
            (1..3).try_for_each(|token| {
                anyhow::Ok(std::fs::write(sign_of_death(token)?, WAYS[2])?)
            })?;
            std::fs::remove_file(sign_of_death(0)?)?;
            std::fs::remove_file(&stalled)?;
            ensure!(sign.join().expect("no panic")? == 0, "a dead token signed");
            Ok(())
        })
    });
}

/// It has no random numbers, and the other two say no more of themselves: the module is not started again for it.
#[test]
fn token_that_fails_ends_no_session_of_another() {
    let name = "pool::token_that_fails_ends_no_session_of_another";
    apart(CLIENT, "a token that fails by itself", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        let direct = Module::load(std::env::var("FAKE_ORDERS")? + "/tokens.so")?;
        let host = direct.open_session(SlotId(1), Access::ReadOnly)?;
        std::fs::write(sign_of_death(0)?, WAYS[2])?;
        for round in 0..6_u8 {
            ensure!(signed_by(&session, key, &[round])? != 0, "a dead token signed");
        }
        host.info().context("a session of another token")?;
        // Where none works the module is what fails.
        (1..3).try_for_each(|token| anyhow::Ok(std::fs::write(sign_of_death(token)?, WAYS[2])?))?;
        ensure!(signed_by(&session, key, b"x").is_err(), "no token is left");
        (0..3).try_for_each(|token| anyhow::Ok(std::fs::remove_file(sign_of_death(token)?)?))?;
        signed_by(&session, key, b"y")?;
        fails_with(host.info(), Error::SESSION_HANDLE_INVALID)
    });
}

#[test]
fn key_that_a_token_gets_back_is_used_there_again() {
    let name = "pool::key_that_a_token_gets_back_is_used_there_again";
    apart(CLIENT, "a key that comes back", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        let lost = sign_of_death(0)?.with_file_name("lost-0");
        // The second time the token has been looked at meanwhile.
        for absence in [0, 500].map(Duration::from_millis) {
            std::fs::write(&lost, "")?;
            let start = Instant::now();
            for round in 0_u8.. {
                ensure!(signed_by(&session, key, &[round])? != 0, "it does not have the key");
                if round > 20 && start.elapsed() > absence {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            std::fs::remove_file(&lost)?;
            let start = Instant::now();
            while signed_by(&session, key, b"x")? != 0 {
                ensure!(start.elapsed() < PATIENCE, "it is not used any more");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
}

/// It says so, or not, and does not show the key to sessions from before: it is looked for in a login.
#[test]
fn token_that_forgets_its_login_is_used_again_soon() {
    let name = "pool::token_that_forgets_its_login_is_used_again_soon";
    apart(CLIENT, "a token that forgets its login", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        for how in ["reset-0", "forget-0"] {
            std::fs::write(sign_of_death(0)?.with_file_name(how), "")?;
            for round in 0..3_u8 {
                signed_by(&session, key, &[round])?;
            }
            let start = Instant::now();
            while signed_by(&session, key, b"x")? != 0 {
                ensure!(start.elapsed() < Duration::from_secs(4), "{how}: its key is gone");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
}

/// All of its tokens are behind a server that dies and comes back: then the first call of each thread succeeds.
#[test]
fn server_that_comes_back_is_found_by_the_first_call() {
    let name = "pool::server_that_comes_back_is_found_by_the_first_call";
    apart(CLIENT, "a server that comes back", name, prepared, || {
        let module = started()?;
        let (session, key) = web_key(&module)?;
        let server = sign_of_death(0)?.with_file_name("no-server");
        for round in 0..3_u8 {
            std::fs::write(&server, "")?;
            ensure!(signed_by(&session, key, &[round]).is_err(), "there is no server");
            std::fs::remove_file(&server)?;
            signed_by(&session, key, &[round])?;
        }
        Ok(())
    });
}

#[test]
fn logouts_under_busy_threads_leave_no_login() {
    let name = "pool::logouts_under_busy_threads_leave_no_login";
    apart(CLIENT, "logouts meanwhile", name, prepared, || {
        let module = started()?;
        let over = AtomicBool::new(false);
        let work = || -> Result<()> {
            while !over.load(Ordering::SeqCst) {
                // Whatever comes of it: another thread logs out.
                drop(web_key(&module).and_then(|(session, key)| signed_by(&session, key, b"x")));
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
            for round in 0..200 {
                if round % 50 == 25 {
                    std::fs::write(sign_of_death(round % 3)?, WAYS[round % 3])?;
                }
                if round % 50 == 45 {
                    std::fs::remove_file(sign_of_death((round - 20) % 3)?)?;
                }
                session.login(User::User, b"1234").ok();
                session.logout().ok();
            }
            over.store(true, Ordering::SeqCst);
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        session.logout().ok();
        ensure!(session.find(&Template::new())?.is_empty(), "seen after the logout");
        fails_with(session.login(User::User, b"4321"), Error::PIN_INCORRECT)?;
        ensure!(session.find(&Template::new())?.is_empty(), "seen after a wrong PIN");
        // And the other module's tokens do not think otherwise.
        module.finalize()?;
        let direct = Module::load(std::env::var("FAKE_ORDERS")? + "/tokens.so")?;
        direct.initialize()?;
        for slot in direct.slots(true)? {
            let session = direct.open_session(slot, Access::ReadOnly)?;
            ensure!(session.find(&Template::new())?.is_empty(), "logged in to {slot}");
        }
        Ok(())
    });
}

/// Lets one token stay in its next search, and does something meanwhile.
fn during_a_search(module: &Module, token: usize, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let file = |what: &str| anyhow::Ok(sign_of_death(token)?.with_file_name(what));
    let (stall, stalled) =
        (file(&format!("stall-find-{token}"))?, file(&format!("stalled-find-{token}"))?);
    std::fs::write(stall, "")?;
    let session = module.open_session(slot(module, "web")?, Access::ReadOnly)?;
    std::thread::scope(|scope| {
        let search = scope.spawn(move || session.find(&Template::new()));
        let start = Instant::now();
        while !stalled.exists() {
            ensure!(start.elapsed() < PATIENCE, "no search");
            std::thread::sleep(Duration::from_millis(1));
        }
        let done = work();
        std::fs::remove_file(&stalled)?;
        search.join().expect("no panic")?;
        done
    })
}

/// How many threads are in other modules' code, as this process's page of counters says (docs/format-counters.md).
fn threads_outside(run: &Path) -> Result<usize> {
    let name = |page: &Path| page.extension().is_some_and(|ending| ending == "counters");
    let pages = std::fs::read_dir(run)?.map(|page| page.map(|page| page.path()));
    let pages = pages.collect::<std::io::Result<Vec<_>>>()?;
    let page = std::fs::read(pages.iter().find(|page| name(page)).context("no page")?)?;
    let words = page.as_chunks::<8>().0;
    let since = (0..31).map(|shard| u64::from_le_bytes(words[512 + 8192 * shard + 287]));
    Ok(since.filter(|since| *since > 0).count())
}

#[test]
fn call_that_lasts_is_seen_before_it_ends() {
    let name = "pool::call_that_lasts_is_seen_before_it_ends";
    apart(CLIENT, "a call in flight", name, prepared, || {
        let module = started()?;
        let run = sign_of_death(0)?.with_file_name("run");
        web_key(&module)?;
        ensure!(threads_outside(&run)? == 0, "a thread is outside that is not");
        let mut seen = 0;
        during_a_search(&module, 0, || {
            seen = threads_outside(&run)?;
            Ok(())
        })?;
        ensure!(seen == 1, "{seen} threads outside");
        ensure!(threads_outside(&run)? == 0, "it is still outside");
        Ok(())
    });
}

#[test]
fn search_from_before_a_login_hides_no_key_after_it() {
    let name = "pool::search_from_before_a_login_hides_no_key_after_it";
    apart(CLIENT, "a login during a search", name, prepared, || {
        let module = started()?;
        let mut found = None;
        during_a_search(&module, 0, || {
            found = Some(web_key(&module)?);
            Ok(())
        })?;
        let (session, key) = found.context("no key")?;
        let mut turns = [0; TOKENS.len()];
        for round in 0..30_u8 {
            turns[signed_by(&session, key, &[round])?] += 1;
        }
        ensure!(turns == [10; 3], "{turns:?}");
        Ok(())
    });
}

#[test]
fn tokens_that_are_not_there_at_the_beginning_join_when_they_come() {
    let name = "pool::tokens_that_are_not_there_at_the_beginning_join_when_they_come";
    apart(CLIENT, "tokens that come late", name, prepared, || {
        let module = Module::load(module_path().context("no module")?)?;
        for late in [&[0, 1][..], &[0, 1, 2]] {
            late.iter().try_for_each(|token| {
                std::fs::write(sign_of_death(*token)?, WAYS[0]).map_err(anyhow::Error::from)
            })?;
            module.initialize()?;
            let all_came = || {
                late.iter()
                    .try_for_each(|token| anyhow::Ok(std::fs::remove_file(sign_of_death(*token)?)?))
            };
            if late.len() == TOKENS.len() {
                let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
                ensure!(session.login(User::User, b"1234").is_err(), "nobody is there");
                all_came()?;
            }
            let (session, key) = web_key(&module)?;
            if late.len() < TOKENS.len() {
                ensure!(signed_by(&session, key, b"x")? == 2, "a dead token signed");
                all_came()?;
            }
            let (start, mut signed) = (Instant::now(), [false; TOKENS.len()]);
            while signed != [true; TOKENS.len()] {
                signed[signed_by(&session, key, b"y")?] = true;
                ensure!(start.elapsed() < PATIENCE, "{signed:?}");
            }
            let there = module.slots(true)?;
            ensure!(there == [SlotId(0), slot(&module, "web")?], "{there:?}: slots of their own");
            session.logout()?;
            ensure!(session.find(&Template::new())?.is_empty(), "seen after the logout");
            drop(session);
            module.finalize()?;
        }
        Ok(())
    });
}

fn all_but_one_go_on(signed: &[AtomicU64]) -> Result<()> {
    // By then each would have asked the one that hangs.
    std::thread::sleep(Duration::from_millis(1500));
    let count = || signed.iter().map(|signed| signed.load(Ordering::SeqCst));
    let start = Instant::now();
    loop {
        let before: Vec<_> = count().collect();
        std::thread::sleep(Duration::from_millis(200));
        let waiting = count().zip(&before).filter(|(now, before)| now == *before).count();
        if waiting == 1 {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE / 6, "{waiting} wait");
    }
}

/// One caller waits for it, and the others go on.
#[test]
fn late_token_that_hangs_keeps_one_caller_waiting() {
    let name = "pool::late_token_that_hangs_keeps_one_caller_waiting";
    apart(CLIENT, "a late token that hangs", name, prepared, || {
        let module = Module::load(module_path().context("no module")?)?;
        let dead = sign_of_death(0)?;
        // What it is called, and what it has.
        for what in ["info", "find"] {
            let hangs = dead.with_file_name(format!("hang-{what}-0"));
            std::fs::write(&dead, WAYS[0])?;
            module.initialize()?;
            let (session, key) = web_key(&module)?;
            let web = slot(&module, "web")?;
            let open = |_| module.open_session(web, Access::ReadOnly);
            let sessions = (0..THREADS).map(open).collect::<Result<Vec<_>, _>>()?;
            let signed: Vec<_> = sessions.iter().map(|_| AtomicU64::new(0)).collect();
            let over = AtomicBool::new(false);
            let work = |session: Session, signed: &AtomicU64| -> Result<()> {
                while !over.load(Ordering::SeqCst) {
                    signed_by(&session, key, b"x")?;
                    signed.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            };
            std::fs::write(&hangs, "")?;
            std::fs::remove_file(&dead)?;
            std::thread::scope(|scope| {
                let threads = sessions.into_iter().zip(&signed);
                let threads: Vec<_> = threads
                    .map(|(session, signed)| scope.spawn(|| work(session, signed)))
                    .collect();
                let told = all_but_one_go_on(&signed).and_then(|()| {
                    ensure!(session.find(&Template::new())?.len() == 1, "the key is not found");
                    Ok(())
                });
                over.store(true, Ordering::SeqCst);
                std::fs::remove_file(&hangs)?;
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
                told.context(what)
            })?;
            let start = Instant::now();
            while signed_by(&session, key, b"y")? != 0 {
                ensure!(start.elapsed() < PATIENCE, "it is not used");
            }
            drop(session);
            module.finalize()?;
        }
        Ok(())
    });
}

/// The host has the same module, and has logged in to one of its tokens.
#[test]
fn login_of_the_host_stays_when_ours_fails_or_ends() {
    let name = "pool::login_of_the_host_stays_when_ours_fails_or_ends";
    apart(CLIENT, "a login of the host", name, prepared, || {
        let module = started()?;
        let web = slot(&module, "web")?;
        let direct = Module::load(std::env::var("FAKE_ORDERS")? + "/tokens.so")?;
        let host = direct.open_session(SlotId(0), Access::ReadOnly)?;
        host.login(User::User, b"1234")?;
        let is_logged_in = |when: &str| -> Result<()> {
            ensure!(host.find(&Template::new())?.len() == 1, "the host is logged out {when}");
            Ok(())
        };
        let session = module.open_session(web, Access::ReadOnly)?;
        fails_with(session.login(User::User, b"4321"), Error::PIN_INCORRECT)?;
        is_logged_in("by a wrong PIN")?;
        let (_session, key) = web_key(&module)?;
        signed_by(&session, key, b"x")?;
        session.logout()?;
        is_logged_in("by our logout")?;
        let other = direct.open_session(SlotId(1), Access::ReadOnly)?;
        ensure!(other.find(&Template::new())?.is_empty(), "our login stays");
        ensure!(session.find(&Template::new())?.is_empty(), "seen after our logout");
        Ok(())
    });
}

#[test]
fn token_whose_pin_is_locked_keeps_no_other_out() {
    let name = "pool::token_whose_pin_is_locked_keeps_no_other_out";
    apart(CLIENT, "a locked PIN", name, prepared, || {
        let module = started()?;
        let locked = |token: usize| {
            Ok::<_, anyhow::Error>(sign_of_death(0)?.with_file_name(format!("locked-{token}")))
        };
        std::fs::write(locked(1)?, "")?;
        let wrong = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        fails_with(wrong.login(User::User, b"4321"), Error::PIN_INCORRECT)?;
        let (session, key) = web_key(&module)?;
        for round in 0..20_u8 {
            ensure!(signed_by(&session, key, &[round])? != 1, "a locked token signed");
        }
        session.logout()?;
        std::fs::write(locked(0)?, "")?;
        std::fs::write(locked(2)?, "")?;
        fails_with(session.login(User::User, b"1234"), Error::PIN_LOCKED)
    });
}

/// Two modules whose tokens have the same labels.
fn two_of_each(token: &mut TestToken) -> Result<()> {
    prepared(token)?;
    compiled(token, "tokens.c", "others.so", "-shared -fPIC -lpthread")?;
    let file = token.path("others.so").display().to_string();
    configure(token, &format!("name = \"others\"\nmodule = \"{file}\""))
}

#[test]
fn of_two_late_tokens_with_one_label_none_gets_the_pin() {
    let name = "pool::of_two_late_tokens_with_one_label_none_gets_the_pin";
    apart(CLIENT, "two late tokens with one label", name, two_of_each, || {
        let dead: Vec<_> = (0..3).map(sign_of_death).collect::<Result<_>>()?;
        dead.iter().try_for_each(|file| std::fs::write(file, WAYS[0]))?;
        let module = started()?;
        let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        dead.iter().try_for_each(std::fs::remove_file)?;
        fails_with(session.login(User::User, b"1234"), Error::TOKEN_NOT_RECOGNIZED)
    });
}

#[test]
fn two_tokens_with_one_label_make_no_pool() {
    let name = "pool::two_tokens_with_one_label_make_no_pool";
    apart(CLIENT, "two tokens with one label", name, two_of_each, || {
        let module = started()?;
        ensure!(module.slots(true)? == [SlotId(0)], "{:?}", module.slots(true)?);
        fails_with(module.open_session(SlotId(1), Access::ReadOnly), Error::SLOT_ID_INVALID)?;
        says(&module, "web has no slot: it finds two tokens with the label")
    });
}

/// Two tokens of SoftHSM with the same key, in a pool.
fn two_of_softhsm(token: &mut TestToken) -> Result<()> {
    for label in ["one", "two"] {
        token
            .program("softhsm2-util")
            .args(["--init-token", "--free", "--label", label])
            .args(["--pin", USER_PIN, "--so-pin", SO_PIN])
            .run()?;
        let key = token.path("key.pem");
        if label == "one" {
            token
                .program("openssl")
                .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
                .arg("-out")
                .arg(&key)
                .run()?;
        }
        token
            .program("softhsm2-util")
            .arg("--import")
            .arg(&key)
            .args(["--token", label, "--label", "web", "--id", "01", "--pin", USER_PIN])
            .run()?;
    }
    configure(token, &format!("name = \"softhsm\"\nmodule = \"{SOFTHSM}\""))?;
    let text = std::fs::read_to_string(token.path("metaslot.toml"))?;
    let pool = "[[pool]]\nname = \"web\"\ntokens = [\"one\", \"two\"]\n";
    token.write("metaslot.toml", format!("{text}\n{pool}")).map(|_| ())
}

/// The same key brought to two tokens of SoftHSM: what they do is right.
#[test]
fn softhsm_tokens_with_the_same_key_are_one() {
    let name = "pool::softhsm_tokens_with_the_same_key_are_one";
    if !Path::new(SOFTHSM).exists() && !is_inside() {
        println!("{CLIENT}, a pool: not run: SoftHSM is not installed");
        return;
    }
    apart(CLIENT, "a pool over SoftHSM", name, two_of_softhsm, || {
        let module = started()?;
        let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let one = |class| -> Result<ObjectHandle> {
            let found = session.find(&Template::new().class(class))?;
            ensure!(found.len() == 1, "{} of class {class}", found.len());
            Ok(found[0])
        };
        let (public, private) = (one(CKO_PUBLIC_KEY)?, one(CKO_PRIVATE_KEY)?);
        for round in 0..6_u8 {
            let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), private, &[round])?;
            session.verify(&CKM_SHA256_RSA_PKCS.into(), public, &[round], &signature)?;
            let sealed = session.encrypt(&CKM_RSA_PKCS.into(), public, &[round])?;
            ensure!(session.decrypt(&CKM_RSA_PKCS.into(), private, &sealed)? == [round], "opened");
        }
        let mechanism = Mechanism::new(CKM_SHA256_RSA_PKCS);
        session.sign_init(&mechanism, private)?;
        session.sign_update(b"in ")?;
        session.sign_update(b"parts")?;
        let signature = session.sign_final()?;
        session.verify(&mechanism, public, b"in parts", &signature)?;
        ensure!(session.destroy(private).is_err(), "destroyed");
        // Session keys are opened by whichever has its turn.
        let pkcs = Mechanism::new(CKM_RSA_PKCS);
        let oaep = Params::Oaep { hash: CKM_SHA_1, mgf: CKG_MGF1_SHA1, label: b"" };
        let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(false);
        for mechanism in [pkcs, Mechanism::with(CKM_RSA_PKCS_OAEP, oaep)] {
            let sealed = session.encrypt(&mechanism, public, &[7; 24])?;
            for _ in 0..4 {
                let opened = session.unwrap(&mechanism, private, &sealed, &key)?;
                let mac = session.sign(&CKM_SHA256_HMAC.into(), opened, b"message")?;
                let known = key.clone().bytes(CKA_VALUE, [7; 24]);
                let known = session.create(&known)?;
                session.verify(&CKM_SHA256_HMAC.into(), known, b"message", &mac)?;
            }
        }
        Ok(())
    });
}

/// What another process does to one of SoftHSM's tokens meanwhile.
fn tool(label: &str, pin: &str, what: &[&str]) -> Result<()> {
    let conf = std::env::var("SOFTHSM2_CONF")?;
    let tool = Program::new("pkcs11-tool").env("SOFTHSM2_CONF", conf);
    let tool = tool.args(["--module", SOFTHSM, "--token-label", label, "--login", "--pin", pin]);
    tool.args(what).run().map(drop)
}

#[test]
fn key_that_one_token_loses_is_used_in_the_other() {
    let name = "pool::key_that_one_token_loses_is_used_in_the_other";
    if !Path::new(SOFTHSM).exists() && !is_inside() {
        println!("{CLIENT}, a lost key: not run: SoftHSM is not installed");
        return;
    }
    apart(CLIENT, "a key that one token loses", name, two_of_softhsm, || {
        let module = started()?;
        let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let find = || session.find(&Template::new().class(CKO_PRIVATE_KEY));
        let [key] = find()?[..] else { anyhow::bail!("no key") };
        let sign = || session.sign(&CKM_SHA256_RSA_PKCS.into(), key, b"message");
        let right = sign()?;
        let delete = ["--delete-object", "--type", "privkey", "--id", "01"];
        tool("one", USER_PIN, &delete)?;
        for _ in 0..6 {
            ensure!(sign()? == right, "another signature");
        }
        ensure!(find()? == [key], "another handle");
        // Its PIN changes in one token, under the login.
        tool("two", USER_PIN, &["--change-pin", "--new-pin", "another"])?;
        ensure!(sign()? == right, "another signature");
        tool("two", "another", &delete)?;
        fails_with(sign(), Error::KEY_HANDLE_INVALID)?;
        ensure!(find()?.is_empty(), "found");
        // One PIN is for all: a token that has another ends the login everywhere. (In a process SoftHSM knows its old one.)
        module.finalize()?;
        module.initialize()?;
        let session = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        fails_with(session.login(User::User, USER_PIN.as_bytes()), Error::PIN_INCORRECT)?;
        fails_with(session.logout(), Error::USER_NOT_LOGGED_IN)
    });
}

#[test]
fn forked_child_has_a_pool_of_its_own() {
    metaslot_testkit::check(CLIENT, "fork with a pool", &["gcc", "softhsm2-util"], |token| {
        two_of_softhsm(token)?;
        compiled(token, "fork.c", "fork", "-ldl")?;
        let program = token.program("./fork").arg(token.module()).args(["web", USER_PIN]);
        program.run()?.with(&["parent and child have signed"]).map(|_| ())
    });
}
