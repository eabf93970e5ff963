// SPDX-License-Identifier: Apache-2.0
//! The lifecycle of operations, results of variable length, and login.

use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind, Output, Policy};
use metaslot_models::{MemoryStore, aes, collect, engine, engine_over, logged_in, open, row};
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::{Bytes, Params};

fn gcm(tag_bits: u64) -> Params {
    Params::Gcm { iv: Bytes::from_slice(&[7; 12]), aad: Bytes::new(), tag_bits }
}

#[test]
fn a_short_buffer_keeps_the_operation() {
    let (engine, session) = logged_in();
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    let again = engine.digest_init(session, CKM_SHA256);
    assert_eq!(again, Err(Error::OPERATION_ACTIVE));
    let mut ask = Output::ask();
    engine.digest(session, b"abc", &mut ask).expect("the length is told");
    assert_eq!(ask.length(), 32);
    let mut short = [0; 31];
    let mut out = Output::buffer(&mut short);
    assert_eq!(engine.digest(session, b"abc", &mut out), Err(Error::BUFFER_TOO_SMALL));
    assert_eq!(out.length(), 32);
    let mut enough = [0; 40];
    let mut out = Output::buffer(&mut enough);
    engine.digest(session, b"abc", &mut out).expect("it fits");
    assert_eq!(out.length(), 32);
    assert_eq!(enough[..4], [0xba, 0x78, 0x16, 0xbf]);
    let after = collect(|out| engine.digest(session, b"abc", out));
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn one_shot_after_update_is_out_of_turn_and_ends_the_operation() {
    let (engine, session) = logged_in();
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    engine.digest_update(session, b"ab").expect("data is taken");
    let single = collect(|out| engine.digest(session, b"abc", out));
    assert_eq!(single, Err(Error::OPERATION_ACTIVE));
    let after = engine.digest_update(session, b"c");
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn restoring_a_state_cancels_what_was_active() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    let state = engine.operation_state(session).expect("a digest can be saved");
    engine.cipher_init(Forward, session, CKM_AES_GCM, gcm(128), key).expect("an encryption begins");
    engine.find_init(session, vec![]).expect("a search begins");
    let none = ObjectHandle(0);
    engine.set_operation_state(session, state.expose(), none, none).expect("it is restored");
    let sealed = collect(|out| engine.cipher(Forward, session, b"hello", out));
    assert_eq!(sealed, Err(Error::OPERATION_NOT_INITIALIZED));
    assert_eq!(engine.find(session, 1).err(), Some(Error::OPERATION_NOT_INITIALIZED));
    let digest = collect(|out| engine.digest_final(session, out)).expect("a digest");
    assert_eq!(digest[..4], [0xe3, 0xb0, 0xc4, 0x42]);
}

#[test]
fn a_digest_that_holds_a_sensitive_key_is_not_saved() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    engine.digest_key(session, key).expect("a key is digested");
    assert_eq!(engine.operation_state(session).err(), Some(Error::STATE_UNSAVEABLE));
}

#[test]
fn what_fails_in_two_operations_ends_both_and_writes_nothing() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let ctr = || Params::Ctr { bits: 128, block: [0; 16] };
    let public = vec![row(CKA_MODULUS_BITS, 2048)];
    let pair =
        engine.generate_key_pair(session, CKM_RSA_PKCS_KEY_PAIR_GEN, Params::None, public, vec![]);
    let (_, signer) = pair.expect("a pair is made");
    engine.cipher_init(Forward, session, CKM_AES_CTR, ctr(), key).expect("an encryption begins");
    engine.sign_init(session, CKM_RSA_PKCS, Params::None, signer).expect("a signature begins");
    let mut room = [0xee; 16];
    let out = &mut Output::buffer(&mut room);
    // CKM_RSA_PKCS has no parts.
    assert!(engine.update_both(Function::SignEncryptUpdate, session, &[0; 16], out).is_err());
    assert_eq!(room, [0xee; 16], "nothing was written");
    let after = collect(|out| engine.cipher(Forward, session, &[0; 16], out));
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
    // Nothing is digested beside it.
    engine.cipher_init(Backward, session, CKM_AES_CTR, ctr(), key).expect("a decryption begins");
    let out = &mut Output::buffer(&mut room);
    let alone = engine.update_both(Function::DecryptDigestUpdate, session, &[0; 16], out);
    assert_eq!(alone, Err(Error::OPERATION_NOT_INITIALIZED));
    let after = collect(|out| engine.cipher(Backward, session, &[0; 16], out));
    assert_eq!(after, Err(Error::OPERATION_NOT_INITIALIZED));
}

fn decrypting_and_digesting() -> (Engine, SessionHandle) {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    let ctr = Params::Ctr { bits: 128, block: [0; 16] };
    engine.cipher_init(Backward, session, CKM_AES_CTR, ctr, key).expect("a decryption begins");
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    (engine, session)
}

#[test]
fn a_short_buffer_keeps_two_operations() {
    let (engine, session) = decrypting_and_digesting();
    let mut room = [0; 16];
    for (length, expected) in [(15, Err(Error::BUFFER_TOO_SMALL)), (16, Ok(()))] {
        let out = &mut Output::buffer(&mut room[..length]);
        let both = engine.update_both(Function::DecryptDigestUpdate, session, &[0; 16], out);
        assert_eq!(both, expected);
    }
    let digest = collect(|out| engine.digest_final(session, out)).expect("a digest");
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    let once = collect(|out| engine.digest(session, &room, out)).expect("a digest");
    assert_eq!(digest, once);
}

#[test]
fn a_question_for_the_length_leaves_the_digest_beside_a_decryption_as_it_is() {
    let (engine, session) = decrypting_and_digesting();
    let mut ask = Output::ask();
    engine
        .update_both(Function::DecryptDigestUpdate, session, &[0; 16], &mut ask)
        .expect("a length");
    assert_eq!(ask.length(), 16);
    collect(|out| engine.digest(session, b"abc", out)).expect("the digest has not begun its parts");
}

#[test]
fn each_kind_has_an_operation_of_its_own() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    engine.cipher_init(Forward, session, CKM_AES_GCM, gcm(128), key).expect("an encryption begins");
    engine.cipher_init(Backward, session, CKM_AES_GCM, gcm(128), key).expect("a decryption begins");
    engine.find_init(session, vec![]).expect("a search begins");
    engine.digest_update(session, b"x").expect("all go on");
    let sealed = collect(|out| engine.cipher(Forward, session, b"hello", out)).expect("sealed");
    assert_eq!(sealed.len(), 21);
    let plain = collect(|out| engine.cipher(Backward, session, &sealed, out)).expect("opened");
    assert_eq!(plain, b"hello");
    engine.session_cancel(session, CKF_DIGEST | CKF_FIND_OBJECTS).expect("they are cancelled");
    let digest = collect(|out| engine.digest_final(session, out));
    assert_eq!(digest, Err(Error::OPERATION_NOT_INITIALIZED));
    assert_eq!(engine.find_final(session), Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn a_changed_ciphertext_fails_and_ends_the_operation() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![]).expect("a key is made");
    engine.cipher_init(Forward, session, CKM_AES_GCM, gcm(128), key).expect("it begins");
    let mut sealed = collect(|out| engine.cipher(Forward, session, b"hello", out)).expect("sealed");
    sealed[0] ^= 1;
    engine.cipher_init(Backward, session, CKM_AES_GCM, gcm(128), key).expect("it begins");
    let mut room = [0xaa; 32];
    let opened = engine.cipher(Backward, session, &sealed, &mut Output::buffer(&mut room));
    assert_eq!(opened, Err(Error::ENCRYPTED_DATA_INVALID));
    assert!(!room.starts_with(b"hello"), "nothing of a forged message is released");
    let opened = engine.cipher(Backward, session, &sealed, &mut Output::buffer(&mut room));
    assert_eq!(opened, Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn usage_and_type_are_checked_at_init() {
    let (engine, session) = logged_in();
    let key = aes(&engine, session, vec![row(CKA_ENCRYPT, false)]).expect("a key is made");
    let init = |mechanism, params| engine.cipher_init(Forward, session, mechanism, params, key);
    assert_eq!(init(CKM_AES_GCM, gcm(128)), Err(Error::KEY_FUNCTION_NOT_PERMITTED));
    let unknown = engine.digest_init(session, 0x7fff_0000);
    assert_eq!(unknown, Err(Error::MECHANISM_INVALID));
    let sign = engine.sign_init(session, CKM_SHA256_RSA_PKCS, Params::None, key);
    assert_eq!(sign, Err(Error::KEY_TYPE_INCONSISTENT));
    let nothing = engine.sign_init(session, CKM_SHA256_HMAC, Params::None, ObjectHandle(12345));
    assert_eq!(nothing, Err(Error::KEY_HANDLE_INVALID));
    let short = engine.cipher_init(Backward, session, CKM_AES_GCM, gcm(64), key);
    assert_eq!(short, Err(Error::MECHANISM_PARAM_INVALID));
}

#[test]
fn allowed_mechanisms_are_the_only_ones() {
    let (engine, session) = logged_in();
    let allowed = CKM_AES_GCM.to_ne_bytes();
    let more = vec![row(CKA_ALLOWED_MECHANISMS, &allowed[..])];
    let key = aes(&engine, session, more).expect("a key is made");
    assert_eq!(engine.cipher_init(Forward, session, CKM_AES_GCM, gcm(128), key), Ok(()));
    let iv = Params::Iv(Bytes::from_slice(&[0; 16]));
    let other = engine.cipher_init(Backward, session, CKM_AES_CBC, iv, key);
    assert!(matches!(other, Err(Error::MECHANISM_INVALID)));
}

#[test]
fn login_states_follow_the_standard() {
    let engine = engine(Policy::DEFAULT);
    let session = open(&engine);
    let state = |session| engine.session_info(session).map(|info| info.state);
    assert_eq!(state(session), Ok(CKS_RW_PUBLIC_SESSION));
    assert_eq!(engine.login(session, CKU_USER, b"wrong"), Err(Error::PIN_INCORRECT));
    assert_eq!(engine.login(session, CKU_USER, b""), Err(Error::PIN_INCORRECT));
    assert_eq!(engine.login(session, 17, b"user-pin"), Err(Error::USER_TYPE_INVALID));
    assert_eq!(engine.login(session, CKU_USER, b"user-pin"), Ok(()));
    assert_eq!(engine.login(session, CKU_USER, b"user-pin"), Err(Error::USER_ALREADY_LOGGED_IN));
    let so = engine.login(session, CKU_SO, b"so-pin");
    assert_eq!(so, Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN));
    let read_only = engine.open_session(SlotId(0), CKF_SERIAL_SESSION).expect("it opens");
    assert_eq!(state(read_only), Ok(CKS_RO_USER_FUNCTIONS));
    engine.logout(read_only).expect("any session logs out");
    assert_eq!(state(session), Ok(CKS_RW_PUBLIC_SESSION));
    assert_eq!(engine.login(session, CKU_SO, b"so-pin"), Err(Error::SESSION_READ_ONLY_EXISTS));
    engine.close_session(read_only).expect("it closes");
    assert_eq!(engine.login(session, CKU_SO, b"so-pin"), Ok(()));
    assert_eq!(state(session), Ok(CKS_RW_SO_FUNCTIONS));
    let read_only = engine.open_session(SlotId(0), CKF_SERIAL_SESSION);
    assert_eq!(read_only, Err(Error::SESSION_READ_WRITE_SO_EXISTS));
    let parallel = engine.open_session(SlotId(0), CKF_RW_SESSION);
    assert_eq!(parallel, Err(Error::SESSION_PARALLEL_NOT_SUPPORTED));
}

#[test]
fn closing_the_last_session_logs_out() {
    let (engine, first) = logged_in();
    let second = open(&engine);
    engine.close_session(first).expect("it closes");
    let info = engine.session_info(second).expect("it is open");
    assert_eq!(info.state, CKS_RW_USER_FUNCTIONS, "another session is still open");
    engine.close_session(second).expect("it closes");
    assert_eq!(engine.session_info(second).err(), Some(Error::SESSION_HANDLE_INVALID));
    let third = open(&engine);
    assert_ne!(third, first, "no handle comes back");
    assert_eq!(engine.session_info(third).map(|info| info.state), Ok(CKS_RW_PUBLIC_SESSION));
}

/// A key that wants the PIN for each use.
fn asking(engine: &Engine, session: SessionHandle, token: bool) -> ObjectHandle {
    let public = vec![row(CKA_MODULUS_BITS, 2048)];
    let private = vec![row(CKA_ALWAYS_AUTHENTICATE, true), row(CKA_TOKEN, token)];
    let pair = CKM_RSA_PKCS_KEY_PAIR_GEN;
    engine.generate_key_pair(session, pair, Params::None, public, private).expect("it is made").1
}

#[test]
fn always_authenticate_asks_before_each_use() {
    let (engine, session) = logged_in();
    let key = asking(&engine, session, true);
    for _ in 0..2 {
        engine.sign_init(session, CKM_SHA256_RSA_PKCS, Params::None, key).expect("it begins");
        let early = engine.sign(session, b"data", &mut Output::buffer(&mut [0; 256]));
        assert_eq!(early, Err(Error::USER_NOT_LOGGED_IN));
        // PKCS#11 3.2 §5.13.2: C_Sign always ends the operation, except for a length or a short buffer.
        let ended = engine.login(session, CKU_CONTEXT_SPECIFIC, b"user-pin");
        assert_eq!(ended, Err(Error::OPERATION_NOT_INITIALIZED));
        engine.sign_init(session, CKM_SHA256_RSA_PKCS, Params::None, key).expect("it begins");
        engine.sign(session, b"data", &mut Output::ask()).expect("a length needs no PIN");
        let wrong = engine.login(session, CKU_CONTEXT_SPECIFIC, b"wrong");
        assert_eq!(wrong, Err(Error::PIN_INCORRECT));
        engine.login(session, CKU_CONTEXT_SPECIFIC, b"user-pin").expect("the PIN is right");
        engine.sign(session, b"data", &mut Output::buffer(&mut [0; 256])).expect("it signs");
    }
    let none = engine.login(session, CKU_CONTEXT_SPECIFIC, b"user-pin");
    assert_eq!(none, Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn one_login_is_for_the_operation_that_began_last() {
    let (engine, session) = logged_in();
    let key = asking(&engine, session, false);
    let sign = || engine.sign_update(session, b"data");
    let recover = || engine.sign_recover(session, b"data", &mut Output::buffer(&mut [0; 256]));
    let log_in = || engine.login(session, CKU_CONTEXT_SPECIFIC, b"user-pin");
    engine.sign_recover_init(session, CKM_RSA_PKCS, Params::None, key).expect("it begins");
    engine.sign_init(session, CKM_SHA256_RSA_PKCS, Params::None, key).expect("it begins");
    log_in().expect("the PIN is right");
    sign().expect("it signs");
    assert_eq!(recover(), Err(Error::USER_NOT_LOGGED_IN));
    engine.sign_recover_init(session, CKM_RSA_PKCS, Params::None, key).expect("it begins");
    log_in().expect("the PIN is right");
    recover().expect("it signs");
    // What is whole is no operation, and the login is not for it.
    engine.cipher_init(Backward, session, CKM_RSA_PKCS, Params::None, key).expect("it begins");
    engine.sign_recover_init(session, CKM_RSA_PKCS, Params::None, key).expect("it begins");
    let with = (CKM_RSA_PKCS, &mut Params::None, key);
    let whole =
        engine.keyed_whole(OperationKind::Decrypt, session, with, &[1; 256], &mut Output::ask());
    assert_eq!(whole, Ok(()));
    log_in().expect("the PIN is right");
    recover().expect("it signs");
}

/// PKCS#11 3.2 §4.9
#[test]
fn a_pin_that_is_locked_for_good_logs_out_and_one_in_a_pause_is_denied() {
    let (engine, session) = logged_in();
    let key = asking(&engine, session, true);
    engine.sign_init(session, CKM_SHA256_RSA_PKCS, Params::None, key).expect("it begins");
    let state = || engine.session_info(session).map(|info| info.state);
    let tried = |pin: &[u8]| engine.login(session, CKU_CONTEXT_SPECIFIC, pin);
    assert_eq!(tried(b"too-soon"), Err(Error::PIN_INCORRECT));
    assert_eq!(state(), Ok(CKS_RW_USER_FUNCTIONS));
    for _ in 0..10 {
        assert_eq!(tried(b"wrong"), Err(Error::PIN_INCORRECT));
        assert_eq!(state(), Ok(CKS_RW_USER_FUNCTIONS));
    }
    assert_eq!(tried(b"user-pin"), Err(Error::PIN_LOCKED));
    assert_eq!(state(), Ok(CKS_RW_PUBLIC_SESSION));
    let dead = engine.sign(session, b"data", &mut Output::buffer(&mut [0; 256]));
    assert_eq!(dead, Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn a_digest_goes_on_in_another_session() {
    let (engine, session) = logged_in();
    let other = open(&engine);
    engine.digest_init(session, CKM_SHA256).expect("a digest begins");
    engine.digest_update(session, b"ab").expect("data is taken");
    let state = engine.operation_state(session).expect("a digest can be saved");
    let none = ObjectHandle(0);
    engine.set_operation_state(other, state.expose(), none, none).expect("and restored");
    for session in [session, other] {
        engine.digest_update(session, b"c").expect("data is taken");
        let digest = collect(|out| engine.digest_final(session, out)).expect("a digest");
        assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
    let broken = engine.set_operation_state(other, &state.expose()[..state.len() - 1], none, none);
    assert_eq!(broken, Err(Error::SAVED_STATE_INVALID));
}

#[test]
fn a_key_that_cannot_be_digested_ends_the_digest() {
    let (engine, session) = logged_in();
    engine.digest_init(session, CKM_SHA256).expect("it begins");
    assert_eq!(engine.digest_key(session, ObjectHandle(77)), Err(Error::KEY_HANDLE_INVALID));
    let ended = collect(|out| engine.digest_final(session, out));
    assert_eq!(ended, Err(Error::OPERATION_NOT_INITIALIZED));
}

/// Two engines over one store are two processes.
#[test]
fn an_operation_ends_with_a_key_that_another_process_destroyed() {
    let store = MemoryStore::default();
    let engines = [(); 2].map(|()| engine_over(store.clone(), Policy::DEFAULT));
    let [mine, other] = engines.each_ref().map(|engine| (engine, open(engine)));
    let find = |(engine, session): (&Engine, _), label: &str| {
        engine.find_init(session, vec![row(CKA_LABEL, label)]).expect("a search begins");
        let found = engine.find(session, 1).expect("it finds");
        engine.find_final(session).expect("it ends");
        found[0]
    };
    let begin = |key| mine.0.cipher_init(Forward, mine.1, CKM_AES_GCM, gcm(128), key);
    let goes_on = || {
        let out = &mut Output::ask();
        mine.0.cipher(Forward, mine.1, b"data", out)
    };
    for (engine, session) in [mine, other] {
        engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    }
    for label in ["this one", "another"] {
        let more = vec![row(CKA_TOKEN, true), row(CKA_LABEL, label)];
        aes(mine.0, mine.1, more).expect("a key is made");
    }
    begin(find(mine, "this one")).expect("an encryption begins");
    goes_on().expect("nothing has changed");
    other.0.destroy_object(other.1, find(other, "another")).expect("it is destroyed");
    goes_on().expect("its key is there");
    let label = vec![row(CKA_ID, "new")];
    other.0.set_attributes(other.1, find(other, "this one"), label).expect("it is changed");
    goes_on().expect("its key is there");
    other.0.destroy_object(other.1, find(other, "this one")).expect("it is destroyed");
    assert_eq!(goes_on(), Err(Error::OPERATION_NOT_INITIALIZED));
}

#[test]
fn a_login_ends_when_another_process_makes_the_token_anew() {
    let store = MemoryStore::default();
    let engines = [(); 2].map(|()| engine_over(store.clone(), Policy::DEFAULT));
    let [mine, other] = &engines;
    let session = open(mine);
    mine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    let more = vec![row(CKA_PRIVATE, true)];
    let key = aes(mine, session, more).expect("a key is made");
    let state = || mine.session_info(session).map(|info| info.state);
    assert_eq!(state(), Ok(CKS_RW_USER_FUNCTIONS));
    other.init_token(SlotId(0), b"so-pin", "anew").expect("it is made anew");
    assert_eq!(state(), Ok(CKS_RW_PUBLIC_SESSION));
    let used = mine.cipher_init(Forward, session, CKM_AES_GCM, gcm(128), key);
    assert_eq!(used, Err(Error::KEY_HANDLE_INVALID), "it was the old user's");
    mine.login(session, CKU_USER, b"user-pin").expect("no login yet");
    other.init_token(SlotId(0), b"so-pin", "anew").expect("it is made anew");
    mine.login(session, CKU_USER, b"user-pin").expect("without a question in between");
}
