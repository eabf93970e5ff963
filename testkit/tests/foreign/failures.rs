// SPDX-License-Identifier: Apache-2.0
//! Modules that are not there, do not start, fail and lie.

use super::*;

/// What the fake module does wrong, in its own words.
const FAKE: &str = "FAKE";

/// Runs `work` for each way in which the fake module can be wrong, each in a process of its own.
fn fake(name: &str, modes: &[&'static str], work: impl Fn(&Module, &str) -> Result<()>) {
    let inside = || {
        let module = started()?;
        work(&module, &std::env::var(FAKE)?)
    };
    if is_inside() {
        return apart(CLIENT, "", name, |_| Ok(()), inside);
    }
    for mode in modes {
        let prepare = |token: &mut TestToken| {
            token.set(FAKE, mode);
            compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
            let file = token.path("fake.so").display().to_string();
            token.set("FAKE_MODULE", &file);
            configure(token, &format!("name = \"fake\"\nmodule = \"{file}\""))
        };
        apart(CLIENT, &format!("a module that does: {mode}"), name, prepare, || Ok(()));
    }
}

#[test]
fn two_threads_begin_a_module_once() {
    let name = "failures::two_threads_begin_a_module_once";
    fake(name, &["begun-by-two"], |module, _| {
        let slot = slot(module, "fake")?;
        let file = std::env::var_os("FAKE_MODULE").context("no module")?;
        Module::load(file)?.finalize()?;
        let told = std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| module.token_info(slot)));
            threads.map(|thread| thread.join().expect("no panic"))
        });
        for info in told {
            ensure!(info?.label == "fake", "another token");
        }
        Ok(())
    });
}

/// A section for a module that cannot be used, and what is said about it.
fn absent(what: &str, name: &str, section: &str, says_so: &str) {
    let prepare = |token: &mut TestToken| configure(token, section);
    apart(CLIENT, what, name, prepare, || {
        let module = started()?;
        without_it(&module)?;
        let other = module.open_session(SlotId(1), Access::ReadOnly);
        fails_with(other.map(drop), Error::SLOT_ID_INVALID)?;
        says(&module, says_so)
    });
}

/// Our own token is there and works, and nothing else.
fn without_it(module: &Module) -> Result<()> {
    ensure!(module.slots(true)? == [SlotId(0)], "{:?}", module.slots(true)?);
    let session = module.open_session(SlotId(0), Access::ReadWrite)?;
    session.login(User::User, USER_PIN.as_bytes())?;
    rsa_pair(&session, "ours").map(drop)
}

#[test]
fn missing_module_costs_its_own_slots_only() {
    let section = "name = \"lost\"\nmodule = \"/no/such/module.so\"";
    let name = "failures::missing_module_costs_its_own_slots_only";
    absent(
        "a module that is not there",
        name,
        section,
        "lost has no slot: it cannot load /no/such",
    );
}

#[test]
fn library_that_is_no_module_is_left_alone() {
    let section = "name = \"libc\"\nmodule = \"/usr/lib/x86_64-linux-gnu/libm.so.6\"";
    let name = "failures::library_that_is_no_module_is_left_alone";
    absent("a library that is no module", name, section, "not a PKCS#11 module");
}

#[test]
fn collection_of_all_modules_is_refused() {
    let section = "name = \"all\"\nmodule = \"/usr/lib/x86_64-linux-gnu/p11-kit-proxy.so\"";
    let name = "failures::collection_of_all_modules_is_refused";
    absent("p11-kit's proxy", name, section, "hands out this module in turn");
}

#[test]
fn this_module_is_refused() {
    let file = module_path().map(|path| path.display().to_string()).unwrap_or_default();
    let section = format!("name = \"me\"\nmodule = \"{file}\"");
    absent(
        "this module itself",
        "failures::this_module_is_refused",
        &section,
        "is this module itself",
    );
}

#[test]
fn one_module_by_two_paths_is_refused() {
    let prepare = |token: &mut TestToken| {
        compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
        let (file, link) = (token.path("fake.so"), token.path("link.so"));
        std::os::unix::fs::symlink(&file, &link)?;
        configure(token, &format!("name = \"one\"\nmodule = \"{}\"", file.display()))?;
        configure(token, &format!("name = \"two\"\nmodule = \"{}\"", link.display()))
    };
    let name = "failures::one_module_by_two_paths_is_refused";
    apart(CLIENT, "one module by two paths", name, prepare, || {
        let module = started()?;
        ensure!(module.slots(true)?.len() == 2, "{:?}", module.slots(true)?);
        fails_with(module.open_session(SlotId(2), Access::ReadOnly), Error::SLOT_ID_INVALID)?;
        says(&module, "two has no slot: it is the module of another section")
    });
}

#[test]
fn module_that_does_not_start_costs_its_own_slots_only() {
    let name = "failures::module_that_does_not_start_costs_its_own_slots_only";
    let modes = [
        "does-not-start",
        "no-slots",
        "slots-without-end",
        "slots-that-grow",
        "mechanisms-without-end",
    ];
    fake(name, &modes, |module, _| without_it(module));
}

#[test]
fn lies_are_errors_and_the_next_call_works() {
    let name = "failures::lies_are_errors_and_the_next_call_works";
    let modes = [
        "nothing-wrong",
        "longer-signature",
        "shorter-signature",
        "asks-for-more-room",
        "final-without-end",
        "final-beyond-its-room",
        "label-without-end",
        "privacy-without-end",
        "short-numbers",
        "more-objects-than-room",
        "objects-twice",
        "objects-without-end",
        "slots-twice",
        "sizes",
        "pins",
        "no-logout",
        "breaks-once",
        "breaks-wholly",
        "calls-back",
        "forks",
        "closed-pipe",
        "short-files",
    ];
    fake(name, &modes, |module, mode| {
        let slot = slot(module, "fake")?;
        let model = module.token_info(slot)?.model;
        ensure!(model == "?[31mred??", "{model:?} is told to the terminal");
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login(User::User, b"1234")?;
        ensure!(module.slots(true)?.len() == 2, "{:?}", module.slots(true)?);
        let found = session.find(&Template::new().class(CKO_SECRET_KEY));
        if mode == "objects-without-end" {
            fails_with(found, Error::DEVICE_ERROR)?;
            return says(module, "C_FindObjects: CKR_HOST_MEMORY");
        }
        let keys = found?;
        if mode == "privacy-without-end" {
            ensure!(keys.is_empty(), "who may see it is not known");
            return without_its_help(module);
        }
        let [key] = keys[..] else { anyhow::bail!("{} keys", keys.len()) };
        if matches!(mode, "label-without-end" | "short-numbers") {
            // Nothing can be known of such an object.
            return fails_with(
                session.sign(&CKM_SHA256_HMAC.into(), key, b"x"),
                Error::DEVICE_ERROR,
            );
        }
        for _ in 0..2 {
            let signature = session.sign(&CKM_SHA256_HMAC.into(), key, b"x");
            match mode {
                "longer-signature" | "shorter-signature" | "asks-for-more-room" => {
                    fails_with(signature, Error::DEVICE_ERROR)?;
                }
                _ => ensure!(signature?.len() == 32, "the signature's length"),
            }
            session.sign_init(&CKM_SHA256_HMAC.into(), key)?;
            session.sign_update(b"x")?;
            let signature = session.sign_final();
            match mode {
                "longer-signature"
                | "shorter-signature"
                | "asks-for-more-room"
                | "final-without-end"
                | "final-beyond-its-room" => fails_with(signature, Error::DEVICE_ERROR)?,
                _ => ensure!(signature?.len() == 32, "the signature's length"),
            }
        }
        session.logout()?;
        without_its_help(module)
    });
}

/// Our own token works beside it.
fn without_its_help(module: &Module) -> Result<()> {
    let session = module.open_session(SlotId(0), Access::ReadWrite)?;
    session.login(User::User, USER_PIN.as_bytes())?;
    rsa_pair(&session, "ours").map(drop)
}

#[test]
fn token_that_goes_and_comes_is_told() {
    let inside = || {
        let module = started()?;
        let sign = std::env::var("FAKE_GONE")?;
        let (ours, theirs) = (SlotId(0), SlotId(1));
        let begin = || -> Result<Session> {
            let session = module.open_session(theirs, Access::ReadWrite)?;
            session.login(User::User, b"1234")?;
            let key = session.find(&Template::new().class(CKO_SECRET_KEY))?[0];
            session.sign(&CKM_SHA256_HMAC.into(), key, b"x")?;
            Ok(session)
        };
        let session = begin()?;
        fails_with(module.slot_event(false), Error::NO_EVENT)?;
        std::fs::write(&sign, "")?;
        ensure!(module.slot_event(false)? == theirs, "it has gone");
        fails_with(module.slot_event(false), Error::NO_EVENT)?;
        ensure!(module.slots(true)? == [ours] && module.slots(false)? == [ours, theirs], "slots");
        ensure!(module.slot_info(theirs)?.flags & CKF_TOKEN_PRESENT == 0, "the slot is empty");
        fails_with(session.info(), Error::SESSION_HANDLE_INVALID)?;
        let none = module.open_session(theirs, Access::ReadWrite);
        fails_with(none.map(drop), Error::TOKEN_NOT_PRESENT)?;
        fails_with(module.token_info(theirs), Error::TOKEN_NOT_PRESENT)?;
        without_its_help(&module)?;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| module.slot_event(true));
            std::fs::remove_file(&sign)?;
            let told = waiting.join().expect("no panic")?;
            ensure!(told == theirs && module.slots(true)? == [ours, theirs], "it has come");
            begin()?;
            let waiting = scope.spawn(|| module.slot_event(true));
            module.finalize()?;
            fails_with(waiting.join().expect("no panic"), Error::CRYPTOKI_NOT_INITIALIZED)
        })
    };
    let prepare = |token: &mut TestToken| {
        let sign = token.path("gone").display().to_string();
        token.set("FAKE_GONE", &sign);
        token.set(FAKE, "nothing-wrong");
        compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
        let file = token.path("fake.so").display().to_string();
        configure(token, &format!("name = \"fake\"\nmodule = \"{file}\""))
    };
    let name = "failures::token_that_goes_and_comes_is_told";
    apart(CLIENT, "a token that goes and comes", name, prepare, inside);
}

#[test]
fn module_that_starts_late_is_tried_again() {
    let inside = || {
        let module = started()?;
        without_it(&module)?;
        ensure!(module.slots(false)?.len() == 2, "a slot is kept for it");
        let reason = |module: &Module| -> Result<Vec<String>> {
            let rows = module.candidates(CKM_SHA256_HMAC).context("no candidates")?;
            Ok(rows
                .into_iter()
                .filter(|row| row.provider == "fake")
                .map(|row| row.remark)
                .collect())
        };
        let said = reason(&module)?;
        ensure!(said == ["it does not start: C_Initialize: CKR_DEVICE_ERROR"], "{said:?}");
        let none = module.open_session(SlotId(1), Access::ReadWrite);
        fails_with(none.map(drop), Error::TOKEN_NOT_PRESENT)?;
        std::fs::remove_file(std::env::var("FAKE_GONE")?)?;
        ensure!(module.slot_event(true)? == SlotId(1), "it has come");
        let said = reason(&module)?;
        ensure!(said == ["keys of slot 1 only"], "{said:?}");
        let session = module.open_session(slot(&module, "fake")?, Access::ReadWrite)?;
        session.login(User::User, b"1234")?;
        let key = session.find(&Template::new().class(CKO_SECRET_KEY))?[0];
        Ok(session.sign(&CKM_SHA256_HMAC.into(), key, b"x").map(drop)?)
    };
    let prepare = |token: &mut TestToken| {
        let sign = token.write("gone", "")?.display().to_string();
        token.set("FAKE_GONE", &sign);
        token.set(FAKE, "starts-late");
        compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
        let file = token.path("fake.so").display().to_string();
        configure(token, &format!("name = \"fake\"\nmodule = \"{file}\""))
    };
    let name = "failures::module_that_starts_late_is_tried_again";
    apart(CLIENT, "a module that starts late", name, prepare, inside);
}

#[test]
fn handle_never_means_another_object() {
    let name = "failures::handle_never_means_another_object";
    let modes = ["handle-again", "other-key-after-loss", "other-token-after-loss"];
    fake(name, &modes, |module, mode| {
        let session = module.open_session(slot(module, "fake")?, Access::ReadWrite)?;
        session.login(User::User, b"1234")?;
        let key = session.find(&Template::new().class(CKO_SECRET_KEY))?[0];
        let sign = || session.sign(&CKM_SHA256_HMAC.into(), key, b"x");
        match mode {
            "handle-again" => {
                sign()?;
                let again = || session.find(&Template::new().class(CKO_SECRET_KEY));
                again()?;
                fails_with(sign(), Error::KEY_HANDLE_INVALID)?;
                let found = again()?;
                ensure!(found.len() == 1 && found[0] != key, "{found:?} and {key}");
                Ok(())
            }
            "other-key-after-loss" => fails_with(sign(), Error::KEY_HANDLE_INVALID),
            _ => fails_with(sign(), Error::TOKEN_NOT_RECOGNIZED),
        }
    });
}

#[test]
fn failures_have_a_code_of_the_standard_and_name_their_module() {
    let name = "failures::failures_have_a_code_of_the_standard_and_name_their_module";
    let modes = ["code-of-its-own", "removed", "no-sessions", "login-of-its-own"];
    fake(name, &modes, |module, mode| {
        let session = module.open_session(slot(module, "fake")?, Access::ReadWrite)?;
        let login = session.login(User::User, b"1234");
        if matches!(mode, "no-sessions" | "login-of-its-own") {
            fails_with(login, Error::DEVICE_ERROR)?;
            let said = if mode == "no-sessions" { "CKR_SESSION_COUNT" } else { "0x80001234" };
            return says(module, said);
        }
        let key = session.find(&Template::new().class(CKO_SECRET_KEY))?[0];
        let signature = session.sign(&CKM_SHA256_HMAC.into(), key, b"x");
        if mode == "removed" {
            return fails_with(signature, Error::DEVICE_REMOVED);
        }
        fails_with(signature, Error::DEVICE_ERROR)?;
        says(module, "fake: C_SignInit: CKR_0x80001234")
    });
}

/// Of an object about whose privacy a module is silent it is known only that it was found, and by whom.
#[test]
fn object_that_was_found_in_a_login_is_not_seen_without() {
    let name = "failures::object_that_was_found_in_a_login_is_not_seen_without";
    fake(name, &["silent-about-privacy"], |module, _| {
        let keys = |session: &Session| session.find(&Template::new().class(CKO_SECRET_KEY));
        let here = module.open_session(SlotId(0), Access::ReadOnly)?;
        let there = module.open_session(slot(module, "fake")?, Access::ReadOnly)?;
        there.login(User::User, b"1234")?;
        ensure!(keys(&here)?.is_empty(), "slot 0 shows it without a login");
        let found = keys(&there)?;
        ensure!(found.len() == 1, "its own slot does not show it");
        there.logout()?;
        let signed = there.sign(&CKM_SHA256_HMAC.into(), found[0], b"x");
        fails_with(signed, Error::KEY_HANDLE_INVALID)?;
        ensure!(
            keys(&there)?.len() == 1 && keys(&here)?.len() == 1,
            "without a login it is public"
        );
        Ok(())
    });
}
