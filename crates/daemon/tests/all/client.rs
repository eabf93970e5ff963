// SPDX-License-Identifier: Apache-2.0
//! Our own client through the door: each call that it asks for, in each version of the protocol.

use crate::common::{Place, SO, USER, initialized};
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Once, Params, Session, Template, User};
use metaslot_spi::store::{Examination, Identities, Name, NewPin, Role, Store};

/// The object identifier of P-256.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const VERSIONS: [u8; 3] = [0, 1, 2];

#[test]
fn a_token_is_made_through_the_door() {
    let place = Place::served();
    let module = place.module(2);
    module.initialize().expect("it begins");
    let [slot] = module.slots(false).expect("slots")[..] else { panic!("one slot") };
    assert_eq!(module.slot_info(slot).expect("a slot").description, "door");
    module.init_token(slot, SO, "made here").expect("a token is made");
    let officer = module.open_session(slot, Access::ReadWrite).expect("a session opens");
    officer.login(User::SecurityOfficer, SO).expect("the officer logs in");
    officer.init_pin(USER).expect("the PIN is set");
    officer.logout().expect("the officer logs out");
    officer.login(User::User, USER).expect("the user logs in");
    officer.set_pin(USER, b"another-pin").expect("the PIN is changed");
    let token = module.token_info(slot).expect("a token");
    assert_eq!(token.label, "made here");
    assert_eq!(token.flags & CKF_USER_PIN_INITIALIZED, CKF_USER_PIN_INITIALIZED);
    let info = officer.info().expect("a session");
    assert_eq!((info.slot, info.state), (slot, CKS_RW_USER_FUNCTIONS));
    drop(officer);
    module.finalize().expect("it ends");
    assert!(module.slots(false).is_err());
}

#[test]
fn each_call_of_ours_is_served_in_each_version() {
    for version in VERSIONS {
        let place = Place::served();
        initialized(&place);
        let module = place.module(version);
        module.initialize().expect("it begins");
        let slot = SlotId(0);
        let mechanisms = module.mechanisms(slot).expect("mechanisms");
        assert!(mechanisms.contains(&CKM_ECDSA) && mechanisms.contains(&CKM_RSA_PKCS_PSS));
        let rsa = module.mechanism_info(slot, CKM_RSA_PKCS).expect("a mechanism");
        assert_eq!(rsa.flags & CKF_SIGN, CKF_SIGN);
        let session = module.open_session(slot, Access::ReadWrite).expect("a session opens");
        let refused = session.login(User::User, b"wrong-pin-1").map_err(|error| error.code);
        assert_eq!(refused, Err(Error::PIN_INCORRECT));
        session.login(User::User, USER).expect("the user logs in");
        digests(&session);
        signatures(&session);
        ciphers(&session);
        objects(&session);
        session.logout().expect("the user logs out");
        session.close().expect("it is closed");
        module.finalize().expect("it ends");
    }
}

fn digests(session: &Session) {
    let whole = session.digest(&CKM_SHA256.into(), b"abc").expect("a digest");
    assert_eq!(whole[..4], [0xba, 0x78, 0x16, 0xbf]);
    session.digest_init(&CKM_SHA256.into()).expect("a digest begins");
    session.digest_update(b"a").expect("data is taken");
    session.digest_update(b"bc").expect("data is taken");
    assert_eq!(session.digest_final().expect("a digest"), whole);
    session.digest_init(&CKM_SHA256.into()).expect("a digest begins");
    let short = session.digest_into(b"abc", &mut [0; 31]).map_err(|error| error.code);
    assert_eq!(short, Err(Error::BUFFER_TOO_SMALL));
    let mut enough = [0; 40];
    assert_eq!(session.digest_into(b"abc", &mut enough), Ok(32));
    assert_eq!(enough[..32], whole);
    session.seed_random(b"seed").expect("it is taken");
    let mut long = vec![0; 1 << 17];
    session.random(&mut long).expect("random bytes");
    assert!(long[1 << 16..].iter().any(|byte| *byte != 0));
}

fn signatures(session: &Session) {
    let public = Template::new().bytes(CKA_EC_PARAMS, P256).bool(CKA_VERIFY, true);
    let private = Template::new().label("ec").token(true).bool(CKA_SIGN, true);
    let (public, private) = session
        .generate_key_pair(&CKM_EC_KEY_PAIR_GEN.into(), &public, &private)
        .expect("a pair is made");
    let mechanism: Mechanism<'_> = CKM_ECDSA.into();
    let signature = session.sign(&mechanism, private, &[7; 32]).expect("a signature");
    session.verify(&mechanism, public, &[7; 32], &signature).expect("it is right");
    let wrong = session.verify(&mechanism, public, &[8; 32], &signature);
    assert_eq!(wrong.map_err(|error| error.code), Err(Error::SIGNATURE_INVALID));
    let hashed: Mechanism<'_> = CKM_ECDSA_SHA256.into();
    session.sign_init(&hashed, private).expect("a signature begins");
    session.sign_update(b"some").expect("data is taken");
    session.sign_update(b" words").expect("data is taken");
    let signature = session.sign_final().expect("a signature");
    session.verify_init(&hashed, public).expect("a verification begins");
    session.verify_update(b"some words").expect("data is taken");
    session.verify_final(&signature).expect("it is right");
    let public =
        Template::new().ulong(CKA_MODULUS_BITS, 2048).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    let (public, private) = session
        .generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &Template::new())
        .expect("a pair is made");
    let pss = Params::Pss { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, salt_length: 32 };
    let pss = Mechanism::with(CKM_RSA_PKCS_PSS, pss);
    let signature = session.sign(&pss, private, &[7; 32]).expect("a signature");
    session.verify(&pss, public, &[7; 32], &signature).expect("it is right");
    let oaep = Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: b"label" };
    let oaep = Mechanism::with(CKM_RSA_PKCS_OAEP, oaep);
    let sealed = session.encrypt(&oaep, public, b"secret").expect("it is encrypted");
    assert_eq!(session.decrypt(&oaep, private, &sealed).expect("it is decrypted"), b"secret");
}

fn ciphers(session: &Session) {
    let template = Template::new().ulong(CKA_VALUE_LEN, 32).label("aes");
    let key = session.generate_key(&CKM_AES_KEY_GEN.into(), &template).expect("a key is made");
    let cbc = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[9; 16]));
    let sealed = session.encrypt(&cbc, key, &[1; 40_000]).expect("it is encrypted");
    assert_eq!(sealed.len(), 40_016 / 16 * 16);
    assert_eq!(session.decrypt(&cbc, key, &sealed).expect("it is decrypted"), [1; 40_000]);
    session.encrypt_init(&cbc, key).expect("an encryption begins");
    let mut parts = session.encrypt_update(&[1; 20_000]).expect("a part");
    parts.extend(session.encrypt_update(&[1; 20_000]).expect("a part"));
    parts.extend(session.encrypt_final().expect("the last part"));
    assert_eq!(parts, sealed);
    session.decrypt_init(&cbc, key).expect("a decryption begins");
    let mut opened = session.decrypt_update(&sealed).expect("a part");
    opened.extend(session.decrypt_final().expect("the last part"));
    assert_eq!(opened, [1; 40_000]);
    session.destroy(key).expect("it is destroyed");
    let gone = session.encrypt_init(&cbc, key).map_err(|error| error.code);
    assert_eq!(gone, Err(Error::KEY_HANDLE_INVALID));
}

fn objects(session: &Session) {
    let long = vec![5; 100_000];
    let template = Template::new().class(CKO_DATA).label("data").bytes(CKA_VALUE, &long[..]);
    let data = session.create(&template.token(true)).expect("it is created");
    assert_eq!(session.attribute(data, CKA_VALUE).expect("a value"), long);
    let copy = session.copy(data, &Template::new().label("copy")).expect("it is copied");
    assert_eq!(session.attribute(copy, CKA_LABEL).expect("a label"), b"copy");
    session.set_attributes(copy, &Template::new().label("renamed")).expect("it is renamed");
    let wanted = [CKA_CLASS, CKA_TOKEN, CKA_LABEL, CKA_MODULUS, CKA_APPLICATION];
    let values = session.attributes(copy, &wanted).expect("attributes");
    let class = CKO_DATA.to_ne_bytes().to_vec();
    assert_eq!(values[..3], [Some(class), Some(vec![1]), Some(b"renamed".to_vec())]);
    assert_eq!(values[3..], [None, Some(Vec::new())]);
    let found = session.find(&Template::new().class(CKO_DATA)).expect("objects");
    assert_eq!(found.len(), 2);
    let keys = session.find(&Template::new().label("ec").class(CKO_PRIVATE_KEY)).expect("objects");
    let [key] = keys[..] else { panic!("one key") };
    assert!(session.attribute(key, CKA_VALUE).is_err());
    session.destroy(data).expect("it is destroyed");
    session.destroy(copy).expect("it is destroyed");
}

#[test]
fn clients_have_their_own_logins_and_sessions() {
    let place = Place::served();
    initialized(&place);
    let (one, other) = (place.module(2), place.module(0));
    one.initialize().expect("it begins");
    other.initialize().expect("it begins");
    let first = one.open_session(SlotId(0), Access::ReadWrite).expect("a session opens");
    let second = other.open_session(SlotId(0), Access::ReadOnly).expect("a session opens");
    first.login(User::User, USER).expect("the user logs in");
    assert_eq!(first.info().expect("a session").state, CKS_RW_USER_FUNCTIONS);
    assert_eq!(second.info().expect("a session").state, CKS_RO_PUBLIC_SESSION);
    let data = Template::new().class(CKO_DATA).label("shared").token(true).bool(CKA_PRIVATE, false);
    first.create(&data).expect("it is created");
    assert_eq!(second.find(&Template::new().label("shared")).expect("objects").len(), 1);
    one.finalize().expect("it ends");
    assert_eq!(second.info().expect("a session").state, CKS_RO_PUBLIC_SESSION);
    std::mem::forget(first);
}

#[test]
fn several_clients_sign_at_once() {
    let place = Place::served();
    initialized(&place);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let module = place.module(number % 3);
            scope.spawn(move || {
                module.initialize().expect("it begins");
                let session = module.open_session(SlotId(0), Access::ReadWrite);
                let session = session.expect("a session opens");
                session.login(User::User, USER).expect("the user logs in");
                let public = Template::new().bytes(CKA_EC_PARAMS, P256);
                let (public, private) = session
                    .generate_key_pair(
                        &CKM_EC_KEY_PAIR_GEN.into(),
                        &public,
                        &Template::new().token(true),
                    )
                    .expect("a pair is made");
                for round in 0..50 {
                    let (mechanism, data) = (CKM_ECDSA.into(), [round; 32]);
                    let signature = session.sign(&mechanism, private, &data).expect("a signature");
                    session.verify(&mechanism, public, &data, &signature).expect("it is right");
                }
                session.destroy(private).expect("it is destroyed");
            });
        }
    });
}

#[test]
fn a_signature_over_the_socket_takes_little_longer_than_in_process() {
    let place = Place::served();
    initialized(&place);
    let module = place.module(2);
    module.initialize().expect("it begins");
    let session = module.open_session(SlotId(0), Access::ReadWrite).expect("a session opens");
    session.login(User::User, USER).expect("the user logs in");
    let public = Template::new().bytes(CKA_EC_PARAMS, P256);
    let (_, key) = session
        .generate_key_pair(
            &CKM_EC_KEY_PAIR_GEN.into(),
            &public,
            &Template::new().token(true).label("timed"),
        )
        .expect("a pair is made");
    let engine = place.engine();
    let here = engine.open_session(SlotId(0), CKF_SERIAL_SESSION).expect("a session opens");
    engine.login(here, CKU_USER, USER).expect("the user logs in");
    engine.find_init(here, Vec::new()).expect("a search begins");
    let found = engine.find(here, 10).expect("objects");
    engine.find_final(here).expect("it ends");
    let own = found.into_iter().find(|one| {
        engine.object(here, *one).is_ok_and(|object| object.class() == CKO_PRIVATE_KEY)
    });
    let own = own.expect("the key is there");
    const ROUNDS: u32 = 2_000;
    let mut signature = [0; 64];
    let time = |mut sign: Box<dyn FnMut() + '_>| {
        let begin = std::time::Instant::now();
        (0..ROUNDS).for_each(|_| sign());
        begin.elapsed() / ROUNDS
    };
    let over = time(Box::new(|| {
        session.sign(&CKM_ECDSA.into(), key, &[7; 32]).expect("a signature");
    }));
    let inside = time(Box::new(|| {
        engine.sign_init(here, CKM_ECDSA, metaslot_spi::Params::None, own).expect("it begins");
        let mut out = metaslot_engine::Output::buffer(&mut signature);
        engine.sign(here, &[7; 32], &mut out).expect("a signature");
    }));
    println!("P-256: {over:?} over the socket, {inside:?} in process");
    assert!(over < inside + std::time::Duration::from_millis(20));
}

#[test]
fn an_identity_logs_in_through_the_door() {
    for version in [1, 2] {
        let place = Place::served();
        initialized(&place);
        let web = Name::new(b"web").expect("a name");
        let added = Examination::Identities(Identities::Add(web, NewPin(USER)));
        place.store().examine(Role::So, SO, added, &mut |_| true).expect("the officer's PIN");
        let module = place.module(version);
        module.initialize().expect("it begins");
        let session = module.open_session(SlotId(0), Access::ReadWrite).expect("a session opens");
        for (name, pin) in [("web", &b"wrong-pin"[..]), ("mail", USER)] {
            let refused = session.login_user(name, pin).map_err(|error| error.code);
            assert_eq!(refused, Err(Error::PIN_INCORRECT));
        }
        session.login_user("web", USER).expect("its PIN");
        assert_eq!(session.info().expect("a session").state, CKS_RW_USER_FUNCTIONS);
        session.set_pin(USER, b"another-pin").expect("it is its own");
        session.logout().expect("it logs out");
        session.login(User::User, USER).expect("the user's is another");
        session.logout().expect("it logs out");
        let tried = |name| session.login_user(name, USER).map_err(|error| error.code);
        // Names that are not there cost the others as much as one that is, which is locked by wrong PINs.
        assert_eq!(["a", "b", "c"].map(tried), [Err(Error::PIN_INCORRECT); 3]);
        let begin = std::time::Instant::now();
        assert_eq!(tried("d"), Err(Error::PIN_INCORRECT));
        assert!(begin.elapsed() > std::time::Duration::from_millis(400), "without a pause");
        module.finalize().expect("it ends");
    }
}

/// A key of the session for AES, and one to sign with.
fn keys(session: &Session) -> [ObjectHandle; 2] {
    let aes = Template::new().ulong(CKA_VALUE_LEN, 32).bool(CKA_ENCRYPT, true);
    let mac = Template::new().ulong(CKA_VALUE_LEN, 32).bool(CKA_SIGN, true);
    let mac = mac.bool(CKA_VERIFY, true);
    let aes = session.generate_key(&CKM_AES_KEY_GEN.into(), &aes);
    let mac = session.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &mac);
    [aes, mac].map(|key| key.expect("a key is made"))
}

#[test]
fn what_an_operation_takes_is_asked_for_at_once() {
    use Function::{Digest, DigestInit, Encrypt, EncryptInit, Sign, SignInit, Verify, VerifyInit};
    for version in VERSIONS {
        let place = Place::served();
        initialized(&place);
        let module = place.module(version);
        module.initialize().expect("it begins");
        let session = module.open_session(SlotId(0), Access::ReadWrite).expect("a session opens");
        session.login(User::User, USER).expect("the user logs in");
        let [aes, mac] = keys(&session);
        let slot = Some(SlotId(0));
        let run = |once: Once<'_>, out: &mut [u8]| session.at_once(&once, out).expect("remote");
        let mut out = [0; 64];

        let hmac = CKM_SHA256_HMAC.into();
        let data = [&b"message"[..]];
        let sign =
            Once { calls: [SignInit, Sign], slot, mechanism: &hmac, key: Some(mac), data: &data };
        assert_eq!(run(sign, &mut out), Ok(32));
        let signature = session.sign(&hmac, mac, b"message").expect("a signature");
        assert_eq!(out[..32], signature);

        let both = [&b"message"[..], &signature];
        let verify = Once { calls: [VerifyInit, Verify], data: &both, ..sign };
        assert_eq!(run(verify, &mut []), Ok(0));
        let wrong = [&b"massage"[..], &signature];
        let wrong = Once { data: &wrong, ..verify };
        let failed = |function, code| Err(metaslot_client::Error::new(function, code));
        assert_eq!(run(wrong, &mut []), failed(Verify, Error::SIGNATURE_INVALID));

        let sha = CKM_SHA256.into();
        let digest = Once { calls: [DigestInit, Digest], mechanism: &sha, key: None, ..sign };
        assert_eq!(run(digest, &mut out), Ok(32));
        assert_eq!(out[..32], session.digest(&sha, b"message").expect("a digest"));

        let cbc = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[0; 16]));
        let calls = [EncryptInit, Encrypt];
        let encrypt = Once { calls, mechanism: &cbc, key: Some(aes), ..sign };
        assert_eq!(run(encrypt, &mut out), Ok(16));
        assert_eq!(out[..16], session.encrypt(&cbc, aes, b"message").expect("it is encrypted"));

        // The first failure is told, and no operation stays.
        let elsewhere = Once { slot: Some(SlotId(1)), ..sign };
        let gone = failed(Function::GetSessionInfo, Error::SESSION_HANDLE_INVALID);
        assert_eq!(run(elsewhere, &mut out), gone);
        let no_key = Once { key: Some(ObjectHandle(1 << 40)), ..sign };
        assert_eq!(run(no_key, &mut out), failed(SignInit, Error::KEY_HANDLE_INVALID));
        assert_eq!(run(sign, &mut out[..31]), failed(Sign, Error::BUFFER_TOO_SMALL));
        // As the standard says: it goes on.
        assert_eq!(session.sign_initialized(b"message"), Ok(signature));
    }
}
