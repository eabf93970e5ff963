// SPDX-License-Identifier: Apache-2.0
//! The policy `fips`: what FIPS 140-3 does not approve of is refused wherever a mechanism is named.

use metaslot_ck::mechanism::APPROVED;
use metaslot_ck::*;
use metaslot_engine::{Engine, Policy};
use metaslot_models::{collect, engine, open, row};
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::{Bytes, Params, Template};

fn under(policy: Policy) -> (Engine, SessionHandle) {
    let engine = engine(policy);
    let session = open(&engine);
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    (engine, session)
}

const MESSAGES: [(CK_FLAGS, CK_FLAGS); 4] = [
    (CKF_MESSAGE_ENCRYPT | CKF_MULTI_MESSAGE, CKF_ENCRYPT),
    (CKF_MESSAGE_DECRYPT | CKF_MULTI_MESSAGE, CKF_DECRYPT),
    (CKF_MESSAGE_SIGN | CKF_MULTI_MESSAGE, CKF_SIGN),
    (CKF_MESSAGE_VERIFY | CKF_MULTI_MESSAGE, CKF_VERIFY),
];

#[test]
fn what_is_not_approved_is_not_listed() {
    for (policy, limited) in [(Policy::DEFAULT, false), (Policy::FIPS, true)] {
        let (engine, _) = under(policy);
        let list = engine.mechanism_list(SlotId(0)).expect("there is a slot");
        for (mechanism, approved, _) in APPROVED {
            let info = engine.mechanism_info(SlotId(0), *mechanism);
            let is_there = !limited || *approved != 0;
            let name = mechanism_name(*mechanism);
            assert_eq!((list.contains(mechanism), info.is_ok()), (is_there, is_there), "{name:?}");
            if let (Ok((_, _, flags)), true) = (info, limited) {
                // What is done with several messages is as approved as what is done with one.
                let several = MESSAGES.iter().filter(|(_, one)| approved & one != 0);
                let approved = several.fold(*approved, |all, (several, _)| all | several);
                assert!(flags != 0 && flags & !approved == 0, "{name:?}: {flags:x}");
            }
        }
        assert!(list.contains(&CKM_SHA256) && list.contains(&CKM_AES_GCM));
    }
}

#[test]
fn digests_that_are_not_approved_are_refused_also_as_saved_states() {
    let (anything, there) = under(Policy::DEFAULT);
    anything.digest_init(there, CKM_MD5).expect("it begins");
    anything.digest_update(there, b"abc").expect("it goes on");
    let state = anything.operation_state(there).expect("it is saved");
    let (engine, session) = under(Policy::FIPS);
    assert_eq!(engine.digest_init(session, CKM_MD5), Err(Error::MECHANISM_INVALID));
    let none = ObjectHandle(0);
    let brought = engine.set_operation_state(session, state.expose(), none, none);
    assert_eq!(brought, Err(Error::SAVED_STATE_INVALID));
    assert_eq!(anything.set_operation_state(there, state.expose(), none, none), Ok(()));
    assert_eq!(engine.digest_init(session, CKM_SHA256), Ok(()));
}

#[test]
fn a_digest_in_one_call_is_as_approved_as_one_in_two() {
    let (engine, session) = under(Policy::FIPS);
    let other = open(&engine);
    let whole = || collect(|out| engine.digest_whole(session, CKM_SHA256, b"abc", out)).map(drop);
    let in_two = || {
        engine.digest_init(session, CKM_SHA256)?;
        collect(|out| engine.digest(session, b"abc", out)).map(drop)
    };
    let approved = || engine.last_was_approved(session);
    let under = |policy| engine.set_policy(SlotId(0), policy).expect("there is a slot");
    for [first, second] in [[&whole as &dyn Fn() -> Result<()>, &in_two], [&in_two, &whole]] {
        for (policy, is) in [(Policy::FIPS, true), (Policy::DEFAULT, false)] {
            under(Policy::DEFAULT);
            assert_eq!((first(), approved()), (Ok(()), Ok(false)));
            under(policy);
            assert_eq!((second(), approved()), (Ok(()), Ok(is)));
            assert_eq!(approved(), Ok(is), "it stays so");
            // The length is asked for, or it is refused: that is no operation.
            let mut ask = metaslot_engine::Output::ask();
            assert_eq!(engine.digest_whole(session, CKM_SHA256, b"abc", &mut ask), Ok(()));
            assert_eq!(approved(), Ok(is));
        }
    }
    under(Policy::FIPS);
    assert_eq!((whole(), engine.last_was_approved(other)), (Ok(()), Ok(false)));
    engine.close_session(session).expect("it is there");
    assert_eq!(engine.last_was_approved(open(&engine)), Ok(false), "in its place");
}

fn secret(key_type: u64, value: &[u8]) -> Template {
    vec![
        row(CKA_CLASS, CKO_SECRET_KEY),
        row(CKA_KEY_TYPE, key_type),
        row(CKA_VALUE, value),
        row(CKA_ENCRYPT, true),
        row(CKA_DECRYPT, true),
        row(CKA_SIGN, true),
        row(CKA_VERIFY, true),
    ]
}

#[test]
fn old_data_is_opened_and_nothing_is_sealed() {
    let (engine, session) = under(Policy::FIPS);
    let refused = Err(Error::MECHANISM_INVALID);
    let des: Vec<u8> = [[0x01_u8; 8], [0x02; 8], [0x04; 8]].concat();
    let des = engine.create_object(session, secret(CKK_DES3, &des)).expect("a key is brought");
    let init = |direction| {
        let iv = Params::Iv(Bytes::from_elem(0, 8));
        engine.cipher_init(direction, session, CKM_DES3_CBC, iv, des)
    };
    assert_eq!((init(Forward), init(Backward)), (refused, Ok(())));
    let mac = engine.create_object(session, secret(CKK_GENERIC_SECRET, &[7; 32])).expect("a key");
    let sign = |mechanism| engine.sign_init(session, mechanism, Params::None, mac);
    assert_eq!((sign(CKM_MD5_HMAC), sign(CKM_SHA256_HMAC)), (refused, Ok(())));
    assert_eq!(engine.verify_init(session, CKM_MD5_HMAC, Params::None, mac), refused);
    let generated = |mechanism| {
        let template = vec![row(CKA_VALUE_LEN, 32)];
        engine.generate_key(session, mechanism, Params::None, template).map(drop)
    };
    assert_eq!((generated(CKM_CHACHA20_KEY_GEN), generated(CKM_AES_KEY_GEN)), (refused, Ok(())));
}

#[test]
fn rsa_signs_by_pkcs1_and_does_not_encrypt_and_sha1_is_verified_only() {
    let (engine, session) = under(Policy::FIPS);
    let refused = Err(Error::MECHANISM_INVALID);
    let public = vec![
        row(CKA_MODULUS_BITS, 2048),
        row(CKA_ENCRYPT, true),
        row(CKA_VERIFY, true),
        row(CKA_WRAP, true),
    ];
    let private = vec![row(CKA_SIGN, true), row(CKA_DECRYPT, true), row(CKA_UNWRAP, true)];
    let generation = CKM_RSA_PKCS_KEY_PAIR_GEN;
    let (public, private) = engine
        .generate_key_pair(session, generation, Params::None, public, private)
        .expect("a pair is made");
    let sign = |mechanism| engine.sign_init(session, mechanism, Params::None, private);
    let verify = |mechanism| engine.verify_init(session, mechanism, Params::None, public);
    let cipher =
        |direction, key| engine.cipher_init(direction, session, CKM_RSA_PKCS, Params::None, key);
    assert_eq!((sign(CKM_RSA_PKCS), verify(CKM_RSA_PKCS)), (Ok(()), Ok(())));
    assert_eq!((cipher(Forward, public), cipher(Backward, private)), (refused, refused));
    for operation in [CKF_SIGN, CKF_VERIFY] {
        assert_eq!(engine.session_cancel(session, operation), Ok(()));
    }
    assert_eq!((sign(CKM_SHA1_RSA_PKCS), verify(CKM_SHA1_RSA_PKCS)), (refused, Ok(())));
    let template = vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_AES)];
    let unwrapped =
        engine.unwrap_key(session, CKM_RSA_PKCS, Params::None, private, &[1; 256], template);
    assert_eq!(unwrapped.map(drop), refused);
    let readable = secret(CKK_GENERIC_SECRET, &[7; 32]);
    let readable = engine.create_object(session, readable).expect("a key is brought");
    let wrapped =
        collect(|out| engine.wrap_key(session, CKM_RSA_PKCS, Params::None, public, readable, out));
    assert_eq!(wrapped.map(drop), refused);
}

#[test]
fn keys_of_montgomery_curves_agree_on_nothing() {
    let (engine, session) = under(Policy::FIPS);
    let refused = Err(Error::MECHANISM_INVALID);
    let curve = &[6, 3, 0x2b, 0x65, 0x6e][..];
    let template = vec![
        row(CKA_CLASS, CKO_PRIVATE_KEY),
        row(CKA_KEY_TYPE, CKK_EC_MONTGOMERY),
        row(CKA_EC_PARAMS, curve),
        row(CKA_VALUE, &[9; 32][..]),
        row(CKA_DERIVE, true),
    ];
    let key = engine.create_object(session, template).expect("a key is brought");
    let params =
        Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public: Bytes::from_elem(9, 32) };
    let template = vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, CKK_GENERIC_SECRET)];
    let derived = engine.derive_key(session, CKM_ECDH1_DERIVE, params, key, template);
    assert_eq!(derived.map(drop), refused);
    let template = || vec![row(CKA_EC_PARAMS, curve)];
    let mechanism = CKM_EC_MONTGOMERY_KEY_PAIR_GEN;
    let made = engine.generate_key_pair(session, mechanism, Params::None, template(), vec![]);
    assert_eq!(made.map(drop), refused);
}
