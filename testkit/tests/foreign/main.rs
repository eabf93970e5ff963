// SPDX-License-Identifier: Apache-2.0
//! Tokens of other modules behind ours: SoftHSM, and modules of the test's own that fail and lie.
#![forbid(unsafe_code)]

mod attacks;
mod behaviour;
mod failures;
mod faults;
mod import;
mod isolated;
mod keyless;
mod modules;
mod nss;
mod pool;
mod server;
mod soak;
mod softhsm;
mod steps;
mod transport;
mod twin;
mod view;

use anyhow::{Context, Result, ensure};
use metaslot_ck::*;
use metaslot_client::{Access, Error as Failure, Module, Session, Template, User};
use metaslot_testkit::{
    Program, SO_PIN, TestToken, USER_PIN, apart, find_program, is_inside, module_path,
};
use std::path::Path;

const CLIENT: &str = "Foreign tokens";
const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";
/// The label of SoftHSM's token; ours has another.
const LABEL: &str = "soft";

/// Adds a section for another module.
fn configure(token: &TestToken, section: &str) -> Result<()> {
    let text = std::fs::read_to_string(token.path("metaslot.toml"))?;
    token.write("metaslot.toml", format!("{text}\n[[foreign]]\n{section}\n")).map(|_| ())
}

/// A token of SoftHSM behind ours. `more`: further settings.
fn with_softhsm(token: &TestToken, more: &str) -> Result<()> {
    token
        .program("softhsm2-util")
        .args(["--init-token", "--free", "--label", LABEL])
        .args(["--pin", USER_PIN, "--so-pin", SO_PIN])
        .run()?;
    configure(token, &format!("name = \"softhsm\"\nmodule = \"{SOFTHSM}\"\n{more}"))
}

/// Runs `work` in a process of its own, with a token of SoftHSM behind ours.
fn softhsm(what: &str, name: &str, more: &str, work: impl FnOnce(&Module) -> Result<()>) {
    let missing = find_program("softhsm2-util").is_none() || !Path::new(SOFTHSM).exists();
    if missing && !is_inside() {
        assert!(std::env::var_os("CI").is_none(), "SoftHSM is not installed");
        println!("{CLIENT}, {what}: not run: SoftHSM is not installed");
        return;
    }
    let prepare = |token: &mut TestToken| with_softhsm(token, more);
    apart(CLIENT, what, name, prepare, || work(&started()?));
}

/// Our module, initialised.
fn started() -> Result<Module> {
    let module = Module::load(module_path().context("no module")?)?;
    module.initialize()?;
    Ok(module)
}

/// The slot of the token with this label.
fn slot(module: &Module, label: &str) -> Result<SlotId> {
    for slot in module.slots(true)? {
        if module.token_info(slot).is_ok_and(|info| info.label == label) {
            return Ok(slot);
        }
    }
    anyhow::bail!("no slot with a token {label}")
}

/// The user in SoftHSM's token, through us.
fn logged_in(module: &Module) -> Result<Session> {
    let session = module.open_session(slot(module, LABEL)?, Access::ReadWrite)?;
    session.login(User::User, USER_PIN.as_bytes())?;
    Ok(session)
}

/// A key pair in the token.
fn rsa_pair(session: &Session, label: &str) -> Result<(ObjectHandle, ObjectHandle)> {
    let common = || Template::new().token(true).label(label).bytes(CKA_ID, [7]);
    let public = common().ulong(CKA_MODULUS_BITS, 2048).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    Ok(session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &common())?)
}

/// That a call failed so.
fn fails_with<T>(answer: Result<T, Failure>, code: Error) -> Result<()> {
    match answer {
        Ok(_) => anyhow::bail!("succeeded instead of {code}"),
        Err(failure) => {
            ensure!(failure.code == code, "{failure} instead of {code}");
            Ok(())
        }
    }
}

/// That the module's own words about its last failure are these.
fn says(module: &Module, words: &str) -> Result<()> {
    let detail = module.detail().unwrap_or_default();
    ensure!(detail.contains(words), "{detail:?} does not say {words:?}");
    Ok(())
}

/// Compiles a C file that lies beside this one.
fn compiled(token: &TestToken, name: &str, out: &str, more: &str) -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Program::new("gcc")
        .directory(token.home())
        .line("-std=gnu11 -Wall -Wextra -Werror -I")
        .arg(here.join("../include"))
        .args(["-o", out])
        .arg(here.join("tests/foreign").join(name))
        .line(more)
        .run()
        .map(|_| ())
}
