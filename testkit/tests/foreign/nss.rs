// SPDX-License-Identifier: Apache-2.0
//! NSS's softoken, which wants parameters: a database of its own, made here.

use super::*;
use metaslot_client::{Initialize, Mechanism, Params};
use std::ffi::CString;

const SOFTOKEN: &str = "/usr/lib/x86_64-linux-gnu/libsoftokn3.so";
/// What NSS calls the token of a database.
const TOKEN: &str = "NSS Certificate DB";

fn parameters(directory: &Path) -> String {
    let directory = directory.display();
    format!("configdir='sql:{directory}' certPrefix='' keyPrefix='' secmod='secmod.db' flags=")
}

/// A database with a PIN: softoken makes it, by calls that only its own tools make.
fn prepared(token: &mut TestToken) -> Result<()> {
    let directory = token.path("nss");
    std::fs::create_dir_all(&directory)?;
    let parameters = parameters(&directory);
    let softoken = Module::load(SOFTOKEN)?;
    let reserved = CString::new(parameters.clone())?;
    softoken.initialize_with(Initialize::Flags(CKF_OS_LOCKING_OK, Some(&reserved)))?;
    let slot = *softoken.slots(true)?.last().context("no slot")?;
    let session = softoken.open_session(slot, Access::ReadWrite)?;
    session.login(User::SecurityOfficer, b"")?;
    session.init_pin(USER_PIN.as_bytes())?;
    session.close()?;
    softoken.finalize()?;
    configure(
        token,
        &format!("name = \"nss\"\nmodule = \"{SOFTOKEN}\"\nparameters = \"{parameters}\""),
    )
}

#[test]
fn softoken_of_nss_signs_and_encrypts() {
    if !Path::new(SOFTOKEN).exists() {
        println!("{CLIENT}, NSS: not run: softoken is not installed");
        return;
    }
    apart(CLIENT, "NSS", "nss::softoken_of_nss_signs_and_encrypts", prepared, || {
        let module = started()?;
        let slot = slot(&module, TOKEN)?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        fails_with(session.login(User::User, b"wrong-pin"), Error::PIN_INCORRECT)?;
        session.login(User::User, USER_PIN.as_bytes())?;
        let (public, private) = rsa_pair(&session, "nss")?;
        let signature = session.sign(&CKM_SHA256_RSA_PKCS.into(), private, b"message")?;
        session.verify(&CKM_SHA256_RSA_PKCS.into(), public, b"message", &signature)?;
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32);
        let aes = session.generate_key(&CKM_AES_KEY_GEN.into(), &template)?;
        let cbc = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[3; 16]));
        let sealed = session.encrypt(&cbc, aes, b"some text")?;
        ensure!(session.decrypt(&cbc, aes, &sealed)? == b"some text", "decryption");
        let found = session.find(&Template::new().class(CKO_PRIVATE_KEY))?;
        ensure!(found == [private], "{found:?}");
        Ok(session.destroy(private)?)
    });
}
