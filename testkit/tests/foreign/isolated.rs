// SPDX-License-Identifier: Apache-2.0
//! Modules in processes of their own, which crash and hang there.

use super::*;
use std::time::{Duration, Instant};

/// How long a call of the fake module may take here.
const LIMIT: Duration = Duration::from_secs(1);

/// The fake module, isolated, and a token of SoftHSM beside it.
fn prepared(token: &mut TestToken) -> Result<()> {
    compiled(token, "fake.c", "fake.so", "-shared -fPIC -ldl")?;
    token.set("FAKE", "nothing");
    let module = token.path("fake.so").display().to_string();
    configure(
        token,
        &format!("name = \"fake\"\nmodule = \"{module}\"\nisolated = true\nlimit = \"1s\""),
    )?;
    with_softhsm(token, "")
}

fn order(what: &str) -> Result<()> {
    let home = std::env::var("HOME").context("no home")?;
    Ok(std::fs::write(format!("{home}/strike"), what)?)
}

fn fake_key(module: &Module) -> Result<(Session, ObjectHandle)> {
    let session = module.open_session(slot(module, "fake")?, Access::ReadOnly)?;
    session.login(User::User, b"1234")?;
    let found = session.find(&Template::new())?;
    let [key] = found[..] else { anyhow::bail!("{} keys", found.len()) };
    Ok((session, key))
}

#[test]
fn isolated_module_that_crashes_is_started_again_by_the_call_that_it_crashed_in() {
    let name =
        "isolated::isolated_module_that_crashes_is_started_again_by_the_call_that_it_crashed_in";
    apart(CLIENT, "an isolated module that crashes", name, prepared, || {
        let module = started()?;
        let (session, key) = fake_key(&module)?;
        let soft = logged_in(&module)?;
        let (_, private) = rsa_pair(&soft, "rsa")?;
        let mechanism = &CKM_SHA256_HMAC.into();
        for _ in 0..3 {
            order("crash")?;
            ensure!(session.sign(mechanism, key, b"x")?.len() == 32, "the signature");
            soft.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"x")?;
        }
        // One that is in the middle is lost with the process, and the next works.
        session.sign_init(mechanism, key)?;
        session.sign_update(b"x")?;
        order("crash")?;
        ensure!(session.sign_final().is_err(), "continued in another process");
        ensure!(session.sign(mechanism, key, b"x")?.len() == 32, "the next one");
        let (_, failed) = behaviour::counted("fake")?;
        ensure!(failed > 0, "no failure was counted");
        Ok(())
    });
}

#[test]
fn isolated_module_that_hangs_is_given_up_and_started_again() {
    let name = "isolated::isolated_module_that_hangs_is_given_up_and_started_again";
    apart(CLIENT, "an isolated module that hangs", name, prepared, || {
        let module = started()?;
        let (session, key) = fake_key(&module)?;
        let soft = logged_in(&module)?;
        let (_, private) = rsa_pair(&soft, "rsa")?;
        let mechanism = &CKM_SHA256_HMAC.into();
        for _ in 0..2 {
            order("hang")?;
            let begin = Instant::now();
            std::thread::scope(|scope| {
                let hangs = scope.spawn(|| session.sign(mechanism, key, b"x"));
                // Another token goes on meanwhile.
                while !hangs.is_finished() {
                    soft.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"x")?;
                }
                fails_with(hangs.join().expect("no panic"), Error::DEVICE_ERROR)
            })?;
            ensure!(begin.elapsed() >= LIMIT, "it was not waited for");
            ensure!(session.sign(mechanism, key, b"x")?.len() == 32, "the next one");
        }
        let (_, failed) = behaviour::counted("fake")?;
        ensure!(failed == 2, "{failed} failures were counted");
        Ok(())
    });
}

/// Whether the fake module is in this process.
fn is_here() -> Result<bool> {
    Ok(std::fs::read_to_string("/proc/self/maps")?.contains("fake.so"))
}

#[test]
fn isolated_module_is_not_in_the_host_until_it_is_configured_so() {
    let name = "isolated::isolated_module_is_not_in_the_host_until_it_is_configured_so";
    apart(CLIENT, "where an isolated module is", name, prepared, || {
        let module = started()?;
        let sign = || -> Result<()> {
            let (session, key) = fake_key(&module)?;
            ensure!(session.sign(&CKM_SHA256_HMAC.into(), key, b"x")?.len() == 32, "a signature");
            Ok(())
        };
        sign()?;
        ensure!(!is_here()?, "it is in the host");
        module.finalize()?;
        let file = std::env::var_os("METASLOT_CONF").context("no configuration")?;
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, text.replace("isolated = true\nlimit = \"1s\"", ""))?;
        module.initialize()?;
        sign()?;
        ensure!(is_here()?, "it is not in the host");
        Ok(())
    });
}

#[test]
fn isolated_module_verifies_what_it_has_signed() {
    let name = "isolated::isolated_module_verifies_what_it_has_signed";
    softhsm("an isolated module that verifies", name, "isolated = true", |module| {
        let session = logged_in(module)?;
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32).label("mac");
        let template = template.bool(CKA_SIGN, true).bool(CKA_VERIFY, true);
        let key = session.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &template)?;
        let mechanism = &CKM_SHA256_HMAC.into();
        let mac = session.sign(mechanism, key, b"x")?;
        session.verify(mechanism, key, b"x", &mac)?;
        fails_with(session.verify(mechanism, key, b"y", &mac), Error::SIGNATURE_INVALID)?;
        session.verify_init(mechanism, key)?;
        session.verify_update(b"x")?;
        session.verify_final(&mac)?;
        Ok(())
    });
}
