// SPDX-License-Identifier: Apache-2.0
//! Logins, losses and forks.

use super::*;
use metaslot_testkit::check;

#[test]
fn wrong_pin_is_wrong_and_a_logout_ends_what_a_login_began() {
    let name = "behaviour::wrong_pin_is_wrong_and_a_logout_ends_what_a_login_began";
    softhsm("login", name, "", |module| {
        let session = module.open_session(slot(module, LABEL)?, Access::ReadWrite)?;
        fails_with(session.login(User::User, b"9999"), Error::PIN_INCORRECT)?;
        says(module, "softhsm: C_Login: CKR_PIN_INCORRECT")?;
        ensure!(module.token_info(slot(module, LABEL)?)?.has(CKF_USER_PIN_COUNT_LOW), "it counts");
        fails_with(session.login(User::User, b""), Error::PIN_INCORRECT)?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        session.logout()?;
        fails_with(session.sign_init(&CKM_RSA_PKCS.into(), private), Error::KEY_HANDLE_INVALID)?;
        ensure!(session.find(&Template::new().label("rsa"))? == [public], "the public half only");
        session.login(User::User, USER_PIN.as_bytes())?;
        let found = session.find(&Template::new().class(CKO_PRIVATE_KEY))?;
        ensure!(found.len() == 1 && found[0] != private, "a new handle for a new login");
        session.sign(&CKM_RSA_PKCS.into(), found[0], b"message")?;
        session.set_pin(USER_PIN.as_bytes(), b"another")?;
        session.logout()?;
        fails_with(session.login(User::User, USER_PIN.as_bytes()), Error::PIN_INCORRECT)?;
        Ok(session.login(User::User, b"another")?)
    });
}

#[test]
fn other_modules_are_enough_of_a_configuration() {
    let name = "behaviour::other_modules_are_enough_of_a_configuration";
    let prepare = |token: &mut TestToken| {
        with_softhsm(token, "")?;
        let text = std::fs::read_to_string(token.path("metaslot.toml"))?;
        let (_, others) = text.split_once("[[foreign]]").context("it was configured")?;
        token.write("metaslot.toml", format!("[[foreign]]{others}")).map(|_| ())
    };
    if find_program("softhsm2-util").is_none() && !is_inside() {
        return metaslot_testkit::not_run(CLIENT, "no token of ours", "SoftHSM is not installed");
    }
    apart(CLIENT, "no token of ours", name, prepare, || {
        let module = started()?;
        let slot = slot(&module, LABEL)?;
        ensure!(slot == SlotId(0), "the first slot is its own");
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let (_, private) = rsa_pair(&session, "rsa")?;
        session.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"message")?;
        Ok(())
    });
}

#[test]
fn token_is_made_anew_and_gets_its_pin() {
    softhsm("InitToken", "behaviour::token_is_made_anew_and_gets_its_pin", "", |module| {
        let slot = slot(module, LABEL)?;
        fails_with(module.init_token(slot, b"wrong-so", "x"), Error::PIN_INCORRECT)?;
        module.init_token(slot, SO_PIN.as_bytes(), LABEL)?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login(User::SecurityOfficer, SO_PIN.as_bytes())?;
        session.init_pin(b"fresh-pin")?;
        session.logout()?;
        Ok(session.login(User::User, b"fresh-pin")?)
    });
}

/// What is private is looked for in a login, though the sessions are still there.
#[test]
fn token_that_forgets_its_login_hides_no_key() {
    let name = "behaviour::token_that_forgets_its_login_hides_no_key";
    let prepare = |token: &mut TestToken| view::three_tokens(token, "");
    apart(CLIENT, "a forgotten login", name, prepare, || {
        let module = started()?;
        let session = module.open_session(slot(&module, "a")?, Access::ReadOnly)?;
        session.login_protected(User::User)?;
        let find = || session.find(&Template::new().class(CKO_PRIVATE_KEY));
        let [key] = find()?[..] else { anyhow::bail!("no key") };
        let sign = || session.sign(&CKM_SHA256_RSA_PKCS.into(), key, b"message").map(drop);
        sign()?;
        let order = |how| anyhow::Ok(Path::new(&std::env::var("FAKE_ORDERS")?).join(how));
        std::fs::write(order("forget-0")?, "")?;
        ensure!(find()?.len() == 1, "hidden from a search");
        std::fs::write(order("reset-0")?, "")?;
        fails_with(find(), Error::DEVICE_ERROR)?;
        sign()?;
        ensure!(find()?.len() == 1, "hidden from a search after a failure");
        Ok(())
    });
}

/// It is the user's, and a try at the identity's, which would lock it in the end.
#[test]
fn configured_pin_is_not_tried_for_an_identity() {
    let name = "behaviour::configured_pin_is_not_tried_for_an_identity";
    let prepare = |token: &mut TestToken| view::three_tokens(token, "");
    apart(CLIENT, "an identity's login that is lost", name, prepare, || {
        let module = started()?;
        let session = module.open_session(slot(&module, "a")?, Access::ReadOnly)?;
        session.login_user("web", b"5678")?;
        let order = |how| anyhow::Ok(Path::new(&std::env::var("FAKE_ORDERS")?).join(how));
        let find = || session.find(&Template::new().class(CKO_PRIVATE_KEY));
        ensure!(find()?.len() == 1, "no key");
        for way in ["forget-0", "reset-0"] {
            std::fs::write(order(way)?, "")?;
            // The first one may be what finds out.
            for _ in 0..2 {
                let found = find().map_or(0, |found| found.len());
                ensure!(found == 0, "{way}: found without a login");
            }
            ensure!(!order("guessed")?.exists(), "{way}: the configured PIN is tried");
        }
        session.logout()?;
        Ok(session.login_user("web", b"5678")?)
    });
}

/// The configuration that logs in by a file.
const BY_FILE: &str = "pin-source = \"file:/dev/stdin\"";

#[test]
fn login_without_a_pin_uses_the_configured_one() {
    let name = "behaviour::login_without_a_pin_uses_the_configured_one";
    by_file("pin-source", name, |module| {
        let slot = slot(module, LABEL)?;
        let flags = module.token_info(slot)?;
        ensure!(flags.has(CKF_PROTECTED_AUTHENTICATION_PATH), "programs are told");
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login_protected(User::User)?;
        let (_, private) = rsa_pair(&session, "rsa")?;
        session.sign(&CKM_RSA_PKCS.into(), private, b"message")?;
        Ok(())
    });
}

#[test]
fn configured_pin_is_the_users_and_nobody_elses() {
    let name = "behaviour::configured_pin_is_the_users_and_nobody_elses";
    by_file("pin-source and the officer", name, |module| {
        let session = module.open_session(slot(module, LABEL)?, Access::ReadWrite)?;
        session.login(User::SecurityOfficer, SO_PIN.as_bytes())?;
        session.set_pin(SO_PIN.as_bytes(), USER_PIN.as_bytes())?;
        session.logout()?;
        ensure!(session.login_protected(User::SecurityOfficer).is_err(), "the user is the officer");
        Ok(session.login_protected(User::User)?)
    });
}

#[test]
fn configured_pin_that_is_wrong_is_tried_once() {
    let name = "behaviour::configured_pin_that_is_wrong_is_tried_once";
    by_file("a stale pin-source", name, |module| {
        let slot = slot(module, LABEL)?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login_protected(User::User)?;
        let (_, private) = rsa_pair(&session, "rsa")?;
        session.set_pin(USER_PIN.as_bytes(), b"another")?;
        let direct = Module::load(SOFTHSM)?;
        let count_is_low = || anyhow::Ok(module.token_info(slot)?.has(CKF_USER_PIN_COUNT_LOW));
        for round in 0..3 {
            direct.finalize()?;
            direct.initialize()?;
            ensure!(session.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"x").is_err(), "signed");
            ensure!(count_is_low()? == (round == 0), "tried again in round {round}");
            // The count begins anew with a right PIN.
            let other = direct.open_session(super::slot(&direct, LABEL)?, Access::ReadOnly)?;
            other.login(User::User, b"another")?;
            other.logout()?;
        }
        Ok(())
    });
}

#[test]
fn file_that_is_no_pin_is_none() {
    let name = "behaviour::file_that_is_no_pin_is_none";
    for file in ["/dev/zero", "fifo"] {
        let prepare = |token: &mut TestToken| {
            let fifo = token.path("fifo");
            token.program("mkfifo").arg(&fifo).run()?;
            let file = if file == "fifo" { fifo.display().to_string() } else { file.to_owned() };
            with_softhsm(token, &BY_FILE.replace("/dev/stdin", &file))
        };
        apart(CLIENT, &format!("{file} as pin-source"), name, prepare, || {
            let module = started()?;
            let session = module.open_session(slot(&module, LABEL)?, Access::ReadWrite)?;
            fails_with(session.login_protected(User::User), Error::PIN_INCORRECT)?;
            says(&module, " is not a file")
        });
        if is_inside() {
            return;
        }
    }
}

#[test]
fn login_ends_with_us_where_the_host_goes_on() {
    let name = "behaviour::login_ends_with_us_where_the_host_goes_on";
    softhsm("a login beside the host", name, "", |module| {
        module.finalize()?;
        let direct = Module::load(SOFTHSM)?;
        direct.initialize()?;
        let host = direct.open_session(slot(&direct, LABEL)?, Access::ReadOnly)?;
        module.initialize()?;
        let session = logged_in(module)?;
        ensure!(host.info()?.state == CKS_RO_USER_FUNCTIONS, "one login for all");
        module.finalize()?;
        drop(session);
        ensure!(host.info()?.state == CKS_RO_PUBLIC_SESSION, "the host is logged in by us");
        Ok(direct.finalize()?)
    });
}

#[test]
fn lost_sessions_and_logins_come_back() {
    by_file("losses", "behaviour::lost_sessions_and_logins_come_back", |module| {
        let slot = slot(module, LABEL)?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login_protected(User::User)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        let direct = Module::load(SOFTHSM)?;
        for round in 0..3_u8 {
            // The host, who has the same module, ends everything under us.
            direct.finalize()?;
            if round == 1 {
                direct.initialize()?;
            }
            let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), private, &[round])?;
            session.verify(&CKM_SHA256_RSA_PKCS.into(), public, &[round], &signature)?;
            let found = session.find(&Template::new().class(CKO_PRIVATE_KEY))?;
            ensure!(found.len() == 1, "{} found", found.len());
        }
        Ok(())
    });
}

#[test]
fn module_that_the_host_uses_too_stays_initialised() {
    let name = "behaviour::module_that_the_host_uses_too_stays_initialised";
    softhsm("shared with the host", name, "", |module| {
        module.finalize()?;
        let direct = Module::load(SOFTHSM)?;
        direct.initialize()?;
        module.initialize()?;
        logged_in(module)?;
        module.finalize()?;
        ensure!(!direct.slots(true)?.is_empty(), "the host's is finalised");
        direct.finalize()?;
        // And one that is ours alone ends with us.
        module.initialize()?;
        logged_in(module)?;
        module.finalize()?;
        fails_with(direct.slots(true), Error::CRYPTOKI_NOT_INITIALIZED)
    });
}

/// As [`softhsm`], with the PIN in a file.
fn by_file(what: &str, name: &str, work: impl FnOnce(&Module) -> Result<()>) {
    if is_inside() {
        return softhsm(what, name, "", work);
    }
    let prepare = |token: &mut TestToken| {
        let pin = token.write("foreign-pin", format!("{USER_PIN}\n"))?;
        with_softhsm(token, &BY_FILE.replace("/dev/stdin", &pin.display().to_string()))
    };
    apart(CLIENT, what, name, prepare, || Ok(()));
}

#[test]
fn forked_child_begins_anew() {
    check(CLIENT, "fork", &["gcc", "softhsm2-util"], |token| {
        with_softhsm(token, &format!("serves = [\"digest\"]\n{}", keyless::none_of_ours()))?;
        compiled(token, "fork.c", "fork", "-ldl")?;
        let program = token.program("./fork").arg(token.module()).args([LABEL, USER_PIN]);
        program.run()?.with(&["parent and child have signed"]).map(|_| ())
    });
}

/// Threads that sign, each in a session of its own, and how often each does.
const THREADS: u64 = 8;
const ROUNDS: u64 = 40;

#[test]
fn every_operation_of_many_threads_is_right_and_counted() {
    let name = "behaviour::every_operation_of_many_threads_is_right_and_counted";
    softhsm("counters", name, "", |module| {
        let session = logged_in(module)?;
        let (public, private) = rsa_pair(&session, "rsa")?;
        let slot = slot(module, LABEL)?;
        std::thread::scope(|scope| {
            let work = |thread: u64| -> Result<()> {
                let session = module.open_session(slot, Access::ReadWrite)?;
                for round in 0..ROUNDS {
                    let data = [thread.to_le_bytes(), round.to_le_bytes()].concat();
                    let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), private, &data)?;
                    session.verify(&CKM_SHA256_RSA_PKCS.into(), public, &data, &signature)?;
                    let wrong = session.sign(&CKM_RSA_PKCS.into(), private, &[0; 300]);
                    ensure!(wrong.is_err(), "300 bytes were signed");
                }
                Ok(())
            };
            let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        let counted = counted("softhsm")?;
        ensure!(counted == (2 * THREADS * ROUNDS + 1, THREADS * ROUNDS), "{counted:?}");
        Ok(())
    });
}

/// Operations and failures under a provider's name, in the page of this process.
pub(super) fn counted(name: &str) -> Result<(u64, u64)> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").context("no directory for counters")?;
    let mut sums = (0, 0);
    for entry in std::fs::read_dir(directory)? {
        let Ok(page) = metaslot_counters::read::process(&entry?.path()) else { continue };
        let ours = page.operations.iter().filter(|_| page.pid == std::process::id());
        for (_, cell) in ours.filter(|(kind, _)| kind.provider == name) {
            sums = (sums.0 + cell.operations, sums.1 + cell.errors);
        }
    }
    Ok(sums)
}

#[test]
fn tokens_of_one_module_are_not_mixed_up_after_a_loss() {
    let name = "behaviour::tokens_of_one_module_are_not_mixed_up_after_a_loss";
    let prepare = |token: &mut TestToken| {
        let pin = token.write("foreign-pin", USER_PIN)?.display().to_string();
        let two = ["--init-token", "--free", "--label", "two"];
        let two = token.program("softhsm2-util").args(two);
        two.args(["--pin", USER_PIN, "--so-pin", SO_PIN]).run()?;
        with_softhsm(token, &BY_FILE.replace("/dev/stdin", &pin))
    };
    apart(CLIENT, "two tokens of one module", name, prepare, || {
        let module = started()?;
        let begin = |label: &str| -> Result<(Session, ObjectHandle)> {
            let session = module.open_session(slot(&module, label)?, Access::ReadWrite)?;
            session.login_protected(User::User)?;
            let key = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            let key = key.token(true).bool(CKA_SIGN, true).bytes(CKA_VALUE, label.repeat(20));
            let key = session.create(&key)?;
            Ok((session, key))
        };
        let tokens = [begin(LABEL)?, begin("two")?];
        let sign = |at: usize| {
            let (session, key) = &tokens[at];
            session.sign(&CKM_SHA256_HMAC.into(), *key, b"message")
        };
        let right = [sign(0)?, sign(1)?];
        let direct = Module::load(SOFTHSM)?;
        for first in [0, 1, 0, 1] {
            direct.finalize()?;
            for at in [first, 1 - first, first] {
                ensure!(sign(at)? == right[at], "token {at} after {first} came back");
            }
        }
        Ok(())
    });
}

/// A token that is taken out ends its sessions, and another one's have their numbers.
#[test]
fn token_that_goes_takes_no_other_with_it() {
    let name = "behaviour::token_that_goes_takes_no_other_with_it";
    let prepare = |token: &mut TestToken| {
        compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
        let home = token.home().display().to_string();
        token.set("FAKE_ORDERS", &home);
        configure(token, &format!("name = \"fake\"\nmodule = \"{home}/tokens.so\""))
    };
    apart(CLIENT, "a token that is taken out beside another", name, prepare, || {
        let module = started()?;
        let out = Path::new(&std::env::var_os("FAKE_ORDERS").context("no orders")?).join("out-1");
        let key = |session: &Session| -> Result<ObjectHandle> {
            session.login(User::User, b"1234")?;
            Ok(session.find(&Template::new().class(CKO_PRIVATE_KEY))?[0])
        };
        let open = |label: &str| -> Result<Session> {
            Ok(module.open_session(slot(&module, label)?, Access::ReadOnly)?)
        };
        // The first byte says which token has signed.
        let signed_by = |session: &Session, key: ObjectHandle| {
            session.sign(&CKM_SHA256_RSA_PKCS.into(), key, b"message").map(|signed| signed[0])
        };
        for way in ["a list of slots", "a call", "nothing"] {
            let (stays, goes) = (open("a")?, open("b")?);
            let gone = key(&goes)?;
            ensure!(signed_by(&goes, gone)? == 1, "{way}: another token has signed");
            std::fs::write(&out, "")?;
            let other = key(&stays)?;
            match way {
                "a list of slots" => ensure!(module.slots(true)?.len() == 3, "it is still there"),
                "a call" => ensure!(signed_by(&goes, gone).is_err(), "who has signed?"),
                _ => {}
            }
            ensure!(signed_by(&stays, other)? == 0, "noticed by {way}: another token has signed");
            std::fs::remove_file(&out)?;
            ensure!(signed_by(&goes, gone).is_err(), "noticed by {way}: its login is over");
            module.slots(true)?;
            let back = open("b")?;
            back.logout().ok();
            let again = key(&back)?;
            ensure!(signed_by(&back, again)? == 1, "noticed by {way}: it does not come back");
            ensure!(signed_by(&stays, other)? == 0, "noticed by {way}: the other one went with it");
            [stays, back].into_iter().try_for_each(Session::close)?;
        }
        Ok(())
    });
}

/// A token that goes while its mechanisms are read has all of them when it is back.
#[test]
fn mechanisms_that_were_not_told_are_asked_for_again() {
    let name = "behaviour::mechanisms_that_were_not_told_are_asked_for_again";
    let prepare = |token: &mut TestToken| {
        compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
        let home = token.home().display().to_string();
        token.set("FAKE_ORDERS", &home);
        token.write("no-mechanism", "p")?;
        configure(token, &format!("name = \"fake\"\nmodule = \"{home}/tokens.so\""))
    };
    apart(CLIENT, "mechanisms that are half told", name, prepare, || {
        let module = started()?;
        let order =
            Path::new(&std::env::var_os("FAKE_ORDERS").context("no orders")?).join("no-mechanism");
        let session = module.open_session(slot(&module, "a")?, Access::ReadOnly)?;
        session.login(User::User, b"1234")?;
        let key = session.find(&Template::new().class(CKO_PRIVATE_KEY))?[0];
        ensure!(session.sign(&CKM_SHA512_RSA_PKCS.into(), key, b"message").is_err(), "it is told");
        std::fs::remove_file(&order)?;
        for mechanism in [CKM_SHA256_RSA_PKCS, CKM_SHA512_RSA_PKCS] {
            session.sign(&mechanism.into(), key, b"message")?;
        }
        Ok(())
    });
}

/// One thread is between two calls of an operation while the module is initialised again by another one, whose session has its number.
#[test]
fn session_of_before_is_none_of_a_module_that_began_anew() {
    let name = "behaviour::session_of_before_is_none_of_a_module_that_began_anew";
    let prepare = |token: &mut TestToken| {
        compiled(token, "anew.c", "anew.so", "-shared -fPIC -lpthread")?;
        let home = token.home().display().to_string();
        token.set("FAKE_ORDERS", &home);
        configure(token, &format!("name = \"fake\"\nmodule = \"{home}/anew.so\""))
    };
    apart(CLIENT, "a module that begins anew under two threads", name, prepare, || {
        let module = started()?;
        let order = Path::new(&std::env::var_os("FAKE_ORDERS").context("no orders")?).join("anew");
        let key = |label: &str| -> Result<(Session, ObjectHandle)> {
            let session = module.open_session(slot(&module, "a")?, Access::ReadOnly)?;
            let key = session.find(&Template::new().label(label))?[0];
            Ok((session, key))
        };
        let (one, two) = (key("one")?, key("two")?);
        let signed_by = |(session, key): &(Session, ObjectHandle)| {
            session.sign(&CKM_SHA256_RSA_PKCS.into(), *key, b"message").map(|signed| signed[0])
        };
        ensure!((signed_by(&one)?, signed_by(&two)?) == (1, 2), "other keys have signed");
        for _ in 0..3 {
            std::fs::write(&order, "")?;
            let (first, second) = std::thread::scope(|scope| {
                let first = scope.spawn(|| signed_by(&one));
                while order.exists() {
                    std::thread::yield_now();
                }
                let second = signed_by(&two);
                (first.join(), second)
            });
            let first = first.map_err(|_| anyhow::anyhow!("it panicked"))?;
            ensure!((first?, second?) == (1, 2), "another caller's key has signed");
        }
        Ok(())
    });
}
