// SPDX-License-Identifier: Apache-2.0
//! The client against a module of another maker (SoftHSM, where it is installed): what is safe here
//! must be safe with any module.
#![expect(clippy::unwrap_used, reason = "a test")]

use metaslot_ck::*;
use metaslot_client::{Access, Error, Mechanism, Module, Params, Session, Template, User};
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const SO_PIN: &[u8] = b"1357-so";
const PIN: &[u8] = b"2468-user";
const MARK: &str = "METASLOT_CLIENT_TEST";

/// SoftHSM finds its configuration through the environment, and an environment is a process's own:
/// so the test starts itself again with the one it needs.
#[test]
fn another_makers_module_is_used_through_every_kind_of_call() {
    if !Path::new(MODULE).exists() {
        eprintln!("SoftHSM is not installed");
        return;
    }
    if std::env::var_os(MARK).is_some() {
        return all_calls();
    }
    let directory = Scratch::make();
    let configuration = directory.0.join("softhsm2.conf");
    let tokens = directory.0.display();
    std::fs::write(&configuration, format!("directories.tokendir = {tokens}\n")).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "another_makers_module_is_used_through_every_kind_of_call"])
        .args(["--nocapture", "--test-threads=1"])
        .env("SOFTHSM2_CONF", &configuration)
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success());
}

struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Self {
        let path = std::env::temp_dir().join(format!("metaslot-client-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn all_calls() {
    let module = Module::load(MODULE).unwrap();
    module.initialize().unwrap();
    assert_eq!(
        module.initialize(),
        Err(Error::new(Function::Initialize, metaslot_ck::Error::CRYPTOKI_ALREADY_INITIALIZED))
    );
    assert!(module.info().unwrap().manufacturer.contains("SoftHSM"));
    assert_eq!(module.detail(), None);
    let slot = module.slots(false).unwrap()[0];
    module.init_token(slot, SO_PIN, "another").unwrap();
    let is_ours = |slot: &SlotId| module.token_info(*slot).unwrap().label == "another";
    let slot = module.slots(true).unwrap().into_iter().find(is_ours).unwrap();
    assert!(module.mechanisms(slot).unwrap().contains(&CKM_AES_GCM));
    assert!(module.mechanism_info(slot, CKM_SHA256).unwrap().flags & CKF_DIGEST != 0);
    let session = module.open_session(slot, Access::ReadWrite).unwrap();
    session.login(User::SecurityOfficer, SO_PIN).unwrap();
    session.init_pin(PIN).unwrap();
    session.logout().unwrap();
    let wrong = session.login(User::User, b"wrong").unwrap_err();
    assert_eq!(wrong.to_string(), "C_Login: CKR_PIN_INCORRECT");
    session.login(User::User, PIN).unwrap();
    assert_eq!(session.info().unwrap().state, CKS_RW_USER_FUNCTIONS);
    signatures(&session);
    ciphers_and_digests(&session);
    objects(&session);
    session.close().unwrap();
    module.finalize().unwrap();
}

fn signatures(session: &Session) {
    let public = Template::new()
        .token(false)
        .bytes(CKA_EC_PARAMS, [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7]);
    let private = Template::new().token(false).bool(CKA_SIGN, true).bool(CKA_SENSITIVE, true);
    let (public, private) =
        session.generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private).unwrap();
    let ecdsa = Mechanism::new(CKM_ECDSA);
    let signature = session.sign(&ecdsa, private, &[7; 32]).unwrap();
    assert_eq!(signature.len(), 64);
    session.verify(&ecdsa, public, &[7; 32], &signature).unwrap();
    let wrong = session.verify(&ecdsa, public, &[8; 32], &signature).unwrap_err();
    assert_eq!(wrong, Error::new(Function::Verify, metaslot_ck::Error::SIGNATURE_INVALID));
    let hidden = session.attributes(private, &[CKA_VALUE, CKA_KEY_TYPE]).unwrap();
    assert_eq!(hidden, [None, Some(CKK_EC.to_ne_bytes().to_vec())]);
}

fn ciphers_and_digests(session: &Session) {
    let template = Template::new().token(false).ulong(CKA_VALUE_LEN, 32);
    let key = session.generate_key(&CKM_AES_KEY_GEN.into(), &template).unwrap();
    let iv = [3; 12];
    let gcm = Mechanism::with(CKM_AES_GCM, Params::Gcm { iv: &iv, aad: b"header", tag_bits: 128 });
    let sealed = session.encrypt(&gcm, key, b"a short text").unwrap();
    assert_eq!(sealed.len(), 12 + 16);
    assert_eq!(session.decrypt(&gcm, key, &sealed).unwrap(), b"a short text");
    let sha256 = Mechanism::new(CKM_SHA256);
    let at_once = session.digest(&sha256, b"two parts").unwrap();
    session.digest_init(&sha256).unwrap();
    session.digest_update(b"two ").unwrap();
    session.digest_update(b"parts").unwrap();
    assert_eq!(session.digest_final().unwrap(), at_once);
    session.digest_init(&sha256).unwrap();
    let mut short = [0; 31];
    let error = session.digest_into(b"two parts", &mut short).unwrap_err();
    assert_eq!(error.code, metaslot_ck::Error::BUFFER_TOO_SMALL);
    let mut right = [0; 32];
    assert_eq!(session.digest_into(b"two parts", &mut right), Ok(32));
    assert_eq!(right, at_once.as_slice());
    let mut random = [0; 24];
    session.random(&mut random).unwrap();
    assert_ne!(random, [0; 24]);
}

fn objects(session: &Session) {
    for number in 0..5_u8 {
        let data =
            Template::new().class(CKO_DATA).token(true).label("data").bytes(CKA_VALUE, [number]);
        session.create(&data).unwrap();
    }
    let template = Template::new().class(CKO_DATA).label("data");
    let found = session.find(&template).unwrap();
    assert_eq!(found.len(), 5);
    let mut search = session.search(&template).unwrap();
    let mut two = [ObjectHandle(0); 2];
    assert_eq!(search.read(&mut two), Ok(2));
    // An abandoned search must not keep the session busy.
    drop(search);
    assert!(session.find_one(&template).unwrap().is_some());
    let value = session.attribute(found[0], CKA_VALUE).unwrap();
    assert_eq!(value.len(), 1);
    assert_eq!(session.attribute_text(found[0], CKA_LABEL).unwrap(), "data");
    for object in found {
        session.destroy(object).unwrap();
    }
    assert_eq!(session.find_one(&template), Ok(None));
}
