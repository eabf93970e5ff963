// SPDX-License-Identifier: Apache-2.0
//! The version of the protocol that is our own: who speaks it, and what it carries that p11-kit's does not.

use crate::common::{Place, USER, configured, initialized, started, write_own};
use crate::itself::{self, Itself};
use metaslot_ck::*;
use metaslot_client::protocol::{OWN, VERSION};
use metaslot_client::{
    Access, KdfParam, Mechanism, MessageParams, Module, Params, Session, Template, User, Value, Way,
};
use metaslot_spi::RawValue;
use metaslot_testkit::{module_path, not_run};
use std::thread::sleep;
use std::time::Duration;

/// The object identifiers of P-256 and of the curves of Edwards and Montgomery.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ED25519: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x70];
pub(crate) const X25519: [u8; 5] = [0x06, 0x03, 0x2b, 0x65, 0x6e];
pub(crate) const SLOT: SlotId = SlotId(0);

/// A server and a client, by no newer versions than these; the user has logged in.
pub(crate) fn logged_in(client: u8, server: u8) -> (Place, Module, Session) {
    let place = Place::new();
    initialized(&place);
    place.serve_to(server);
    let module = place.module_that_offers(VERSION, client);
    module.initialize().expect("it begins");
    let session = module.open_session(SLOT, Access::ReadWrite).expect("a session opens");
    session.login(User::User, USER).expect("the user logs in");
    (place, module, session)
}

fn secret(kind: CK_KEY_TYPE, length: u64) -> Template {
    Template::new().class(CKO_SECRET_KEY).key_type(kind).ulong(CKA_VALUE_LEN, length)
}

/// The same, which may be read.
pub(crate) fn readable(length: u64) -> Template {
    let template = secret(CKK_GENERIC_SECRET, length).bool(CKA_SENSITIVE, false);
    template.bool(CKA_EXTRACTABLE, true)
}

fn key(session: &Session, kind: CK_KEY_TYPE, usages: &[CK_ATTRIBUTE_TYPE]) -> ObjectHandle {
    let generate = match kind {
        CKK_AES => CKM_AES_KEY_GEN,
        CKK_CHACHA20 => CKM_CHACHA20_KEY_GEN,
        _ => CKM_GENERIC_SECRET_KEY_GEN,
    };
    let mut template = Template::new();
    if kind != CKK_CHACHA20 {
        template = template.ulong(CKA_VALUE_LEN, 32);
    }
    let usages = usages.iter().map(|usage| (*usage, Value::Bool(true)));
    template.extend(usages.chain([(CKA_EXTRACTABLE, Value::Bool(true))]));
    session.generate_key(&generate.into(), &template).expect("a key is made")
}

fn pair(
    session: &Session,
    generate: CK_MECHANISM_TYPE,
    public: Template,
    usage: CK_ATTRIBUTE_TYPE,
) -> (ObjectHandle, ObjectHandle) {
    let private = Template::new().bool(usage, true);
    session.generate_key_pair(&generate.into(), &public, &private).expect("a pair is made")
}

pub(crate) fn code<T>(told: metaslot_client::Result<T>) -> Option<Error> {
    told.map_err(|failed| failed.code).err()
}

#[test]
fn both_sides_speak_our_version_or_p11_kits() {
    for (client, server) in [
        (OWN, OWN),
        (OWN + 1, OWN),
        (OWN, OWN + 1),
        (OWN, VERSION),
        (VERSION, OWN),
        (VERSION, VERSION),
    ] {
        let ours = client.min(server) >= OWN;
        let (_place, module, session) = logged_in(client, server);
        for begun in 0..2 {
            let mechanisms = module.mechanisms(SLOT).expect("a list");
            for (mechanism, carried) in [
                (CKM_ECDSA, true),
                (CKM_EDDSA, true),
                (CKM_AES_GCM, ours),
                (CKM_ECDH1_DERIVE, ours),
                (CKM_ML_DSA, ours),
                (CKM_ML_KEM, ours),
                (CKM_AES_KEY_WRAP_KWP, ours),
                // Whether its parameter can be said is told where one is given.
                (CKM_RSA_AES_KEY_WRAP, ours),
            ] {
                let told = mechanisms.contains(&mechanism);
                assert_eq!(told, carried, "{client} {server} {begun}: {mechanism:#x}");
            }
            if begun == 0 {
                let aes = key(&session, CKK_AES, &[CKA_ENCRYPT, CKA_WRAP]);
                let gcm = Params::Gcm { iv: &[1; 12], aad: b"", tag_bits: 128 };
                let sealed = session.encrypt(&Mechanism::with(CKM_AES_GCM, gcm), aes, b"words");
                let refused = (!ours).then_some(Error::MECHANISM_PARAM_INVALID);
                assert_eq!(code(sealed), refused);
                let wrapped = session.wrap(&CKM_AES_KEY_WRAP_KWP.into(), aes, aes);
                let refused = (!ours).then_some(Error::FUNCTION_NOT_SUPPORTED);
                assert_eq!(code(wrapped), refused);
                let cbc = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[9; 16]));
                session.encrypt(&cbc, aes, b"words").expect("it is as it was");
                // What was agreed on ends with the connection, and is agreed on again.
                module.finalize().expect("it ends");
                module.initialize().expect("it begins");
            }
        }
    }
}

#[test]
fn ciphers_with_parameters_of_each_kind_are_carried() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let usages = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY];
    let aes = key(&session, CKK_AES, &usages);
    let data = [7; 1000];
    let length = data.len() as u64;
    let (nonce, aad) = (&[3; 12][..], &b"beside"[..]);
    let gcm = |aad| Params::Gcm { iv: &[1; 12], aad, tag_bits: 128 };
    let ccm = |aad| Params::Ccm { data_length: length, nonce, aad, mac_length: 16 };
    let mut both = vec![
        (CKM_AES_GCM, aes, gcm(aad), Some(gcm(b"other"))),
        (CKM_AES_CCM, aes, ccm(aad), Some(ccm(b"other"))),
        (CKM_AES_CTR, aes, Params::Ctr { bits: 64, block: [5; 16] }, None),
    ];
    let chacha = key(&session, CKK_CHACHA20, &usages);
    let poly = |aad| Params::ChaCha20Poly1305 { nonce, aad };
    both.push((CKM_CHACHA20_POLY1305, chacha, poly(aad), Some(poly(b"other"))));
    for (number, key, params, other) in both {
        let mechanism = Mechanism::with(number, params);
        let sealed = session.encrypt(&mechanism, key, &data).expect("it is encrypted");
        assert_eq!(sealed.len(), data.len() + if other.is_some() { 16 } else { 0 });
        // CCM is told the length of the text, not of what it has become.
        assert_eq!(session.decrypt(&mechanism, key, &sealed).expect("it is decrypted"), data);
        if let Some(other) = other {
            let wrong = session.decrypt(&Mechanism::with(number, other), key, &sealed);
            let codes = [Error::ENCRYPTED_DATA_INVALID, Error::AEAD_DECRYPT_FAILED];
            assert!(code(wrong).is_some_and(|code| codes.contains(&code)), "{number:#x}");
        }
    }
    let general = Mechanism::with(CKM_AES_CMAC_GENERAL, Params::Ulong(9));
    assert_eq!(session.sign(&general, aes, &data).expect("it is signed").len(), 9);
    let gmac = Mechanism::with(CKM_AES_GMAC, Params::Bytes(nonce));
    let tag = session.sign(&gmac, aes, &data).expect("it is signed");
    session.verify(&gmac, aes, &data, &tag).expect("it is right");
    let wrong = Mechanism::with(CKM_AES_CTR, gcm(aad));
    assert_eq!(code(session.encrypt(&wrong, aes, &data)), Some(Error::MECHANISM_PARAM_INVALID));
}

#[test]
fn signatures_with_contexts_are_carried() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let context = &b"context"[..];
    let (other, none) = (&b"other"[..], &b""[..]);
    let ed = Template::new().bytes(CKA_EC_PARAMS, ED25519);
    let eddsa = pair(&session, CKM_EC_EDWARDS_KEY_PAIR_GEN, ed, CKA_SIGN);
    let of_set = |set| Template::new().ulong(CKA_PARAMETER_SET, set).bool(CKA_VERIFY, true);
    let ml = pair(&session, CKM_ML_DSA_KEY_PAIR_GEN, of_set(CKP_ML_DSA_65), CKA_SIGN);
    let set = session.attributes(ml.1, &[CKA_PARAMETER_SET]).expect("an attribute");
    assert_eq!(set[0], Some(CKP_ML_DSA_65.to_ne_bytes().to_vec()));
    let hedge = CKH_HEDGE_PREFERRED;
    let with = |context| Params::SignContext { hedge, context };
    let hashed = |context| Params::HashSignContext { hedge, context, hash: CKM_SHA256 };
    let digest = [8; 32];
    let all = [
        (eddsa, CKM_EDDSA, Params::EdDsa { prehash: true, context: none }, Params::None),
        (ml, CKM_ML_DSA, with(context), with(other)),
        (ml, CKM_HASH_ML_DSA_SHA256, with(context), with(none)),
        (ml, CKM_HASH_ML_DSA, hashed(context), hashed(other)),
    ];
    for ((public, private), number, params, wrong) in all {
        let (right, wrong) = (Mechanism::with(number, params), Mechanism::with(number, wrong));
        let signature = session.sign(&right, private, &digest).expect("a signature");
        session.verify(&right, public, &digest, &signature).expect("it is right");
        let told = session.verify(&wrong, public, &digest, &signature);
        assert_eq!(code(told), Some(Error::SIGNATURE_INVALID), "{number:#x}");
    }
}

#[test]
fn keys_are_derived_and_agreed_on() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let value = |key| session.attribute(key, CKA_VALUE).expect("it may be read");
    let curves = [(CKM_EC_KEY_PAIR_GEN, &P256[..]), (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, &X25519[..])];
    for (generate, curve) in curves {
        let pair =
            || pair(&session, generate, Template::new().bytes(CKA_EC_PARAMS, curve), CKA_DERIVE);
        let (one, other) = (pair(), pair());
        let agreed = |private, public| {
            let public = session.attribute(public, CKA_EC_POINT).expect("a point");
            let params = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: &public };
            let ecdh = Mechanism::with(CKM_ECDH1_DERIVE, params);
            value(session.derive(&ecdh, private, &readable(32)).expect("it is agreed on"))
        };
        assert_eq!(agreed(one.1, other.0), agreed(other.1, one.0));
    }
    let base = key(&session, CKK_GENERIC_SECRET, &[CKA_DERIVE]);
    let hkdf = |salt| Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_DATA,
        salt,
        salt_key: ObjectHandle(0),
        info: b"info",
    };
    let by = |number, params, template: &Template| {
        let derived = session.derive(&Mechanism::with(number, params), base, template);
        value(derived.expect("it is derived"))
    };
    let first = by(CKM_HKDF_DERIVE, hkdf(b"salt"), &readable(40));
    assert_eq!(by(CKM_HKDF_DERIVE, hkdf(b"salt"), &readable(40)), first);
    assert_ne!(by(CKM_HKDF_DERIVE, hkdf(b"other"), &readable(40)), first);
    let steps = |label| {
        [
            KdfParam::Iteration { little_endian: false, bits: 32 },
            KdfParam::Bytes(label),
            KdfParam::DkmLength { sum_of_segments: false, little_endian: false, bits: 32 },
        ]
    };
    let (one, other) = (steps(b"label"), steps(b"other"));
    let counter = |data| Params::Sp800108 { prf: CKM_SHA256_HMAC, data };
    let first = by(CKM_SP800_108_COUNTER_KDF, counter(&one), &readable(40));
    assert_eq!(by(CKM_SP800_108_COUNTER_KDF, counter(&one), &readable(40)), first);
    assert_ne!(by(CKM_SP800_108_COUNTER_KDF, counter(&other), &readable(40)), first);
    let previous = [KdfParam::Previous, KdfParam::Bytes(b"label")];
    let feedback = |iv| Params::Sp800108Feedback { prf: CKM_SHA256_HMAC, data: &previous, iv };
    let first = by(CKM_SP800_108_FEEDBACK_KDF, feedback(&[1; 32]), &readable(40));
    assert_ne!(by(CKM_SP800_108_FEEDBACK_KDF, feedback(&[2; 32]), &readable(40)), first);
    let handle = Params::Ulong(key(&session, CKK_GENERIC_SECRET, &[CKA_DERIVE]).0);
    assert_eq!(by(CKM_CONCATENATE_BASE_AND_KEY, handle, &readable(64)).len(), 64);
    let pbkd2 = |password| Params::Pbkd2 {
        prf: CKP_PKCS5_PBKD2_HMAC_SHA256,
        salt: b"salt",
        iterations: 1000,
        password,
    };
    let of_password = |password| {
        let mechanism = Mechanism::with(CKM_PKCS5_PBKD2, pbkd2(password));
        value(session.generate_key(&mechanism, &readable(32)).expect("a key is made"))
    };
    assert_eq!(of_password(b"one"), of_password(b"one"));
    assert_ne!(of_password(b"one"), of_password(b"other"));
}

#[test]
fn keys_are_wrapped_and_unwrapped() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let wrapping = key(&session, CKK_AES, &[CKA_WRAP, CKA_UNWRAP, CKA_ENCRYPT]);
    let public = Template::new().ulong(CKA_MODULUS_BITS, 2048).bool(CKA_WRAP, true);
    let (sealing, opening) = pair(&session, CKM_RSA_PKCS_KEY_PAIR_GEN, public, CKA_UNWRAP);
    let plain = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let plain = plain.bool(CKA_SIGN, true);
    let wrapped = plain.clone().bytes(CKA_VALUE, [6; 32]).bool(CKA_EXTRACTABLE, true);
    let wrapped = session.create(&wrapped).expect("it is created");
    let mac = |key| session.sign(&CKM_SHA256_HMAC.into(), key, b"words").expect("it is signed");
    let (hash, mgf, label) = (CKM_SHA256, CKG_MGF1_SHA256, &b"label"[..]);
    let on_curve = |generate, curve: &[u8]| {
        let public = Template::new().bytes(CKA_EC_PARAMS, curve).bool(CKA_WRAP, true);
        let (public, private) = pair(&session, generate, public, CKA_UNWRAP);
        [public, private]
    };
    let p256 = on_curve(CKM_EC_KEY_PAIR_GEN, &P256);
    let x25519 = on_curve(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, &X25519);
    let rsa = [sealing, opening];
    // A key that opens by OAEP as well would give the AES key away, which goes along.
    let public = Template::new().ulong(CKA_MODULUS_BITS, 2048).bool(CKA_WRAP, true);
    let only = Value::Mechanisms(vec![CKM_RSA_AES_KEY_WRAP]);
    let private = Template::new().bool(CKA_UNWRAP, true).with(CKA_ALLOWED_MECHANISMS, only);
    let carrying = session.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private);
    let carrying = carrying.map(|(public, private)| [public, private]).expect("a pair is made");
    let agreed = |shared| Params::EcdhAes { bits: 256, kdf: CKD_SHA256_KDF, shared };
    let all = [
        (CKM_AES_KEY_WRAP_KWP, Params::None, [wrapping; 2]),
        (CKM_AES_KEY_WRAP_PAD, Params::None, [wrapping; 2]),
        (CKM_AES_KEY_WRAP_PKCS7, Params::None, [wrapping; 2]),
        (CKM_AES_KEY_WRAP, Params::Bytes(&[7; 8]), [wrapping; 2]),
        (CKM_RSA_PKCS_OAEP, Params::Oaep { hash, mgf, label }, rsa),
        (CKM_RSA_AES_KEY_WRAP, Params::RsaAes { bits: 256, hash, mgf, label }, carrying),
        (CKM_ECDH_AES_KEY_WRAP, agreed(b"shared"), p256),
        (CKM_ECDH_COF_AES_KEY_WRAP, agreed(b""), p256),
        (CKM_ECDH_X_AES_KEY_WRAP, agreed(b"shared"), x25519),
    ];
    for (number, params, [seals, opens]) in all {
        let mechanism = Mechanism::with(number, params);
        let bytes = session.wrap(&mechanism, seals, wrapped).expect("it is wrapped");
        let unwrapped = session.unwrap(&mechanism, opens, &bytes, &plain);
        let unwrapped = unwrapped.unwrap_or_else(|error| panic!("{number:#x}: {error}"));
        assert_ne!(unwrapped, wrapped);
        assert_eq!(mac(unwrapped), mac(wrapped));
        let wrong = [&bytes[..bytes.len() - 1], &[!bytes[bytes.len() - 1]]].concat();
        assert!(session.unwrap(&mechanism, opens, &wrong, &plain).is_err());
        // What it is bound to is carried whole, and no parameter of another mechanism is taken.
        let other = match params {
            Params::Oaep { .. } => Params::Oaep { hash, mgf, label: b"other" },
            Params::RsaAes { bits, .. } => Params::RsaAes { bits, hash, mgf, label: b"other" },
            Params::EcdhAes { .. } => agreed(b"other"),
            _ => continue,
        };
        let told = session.unwrap(&Mechanism::with(number, other), opens, &bytes, &plain);
        assert_eq!(code(told), Some(Error::WRAPPED_KEY_INVALID), "{number:#x}");
        for (other, params, _) in all.into_iter().filter(|(_, params, _)| carries_another(params)) {
            let told = session.wrap(&Mechanism::with(number, params), seals, wrapped);
            let is_its_own = other == number || matches!(params, Params::EcdhAes { .. });
            let refused = Some(Error::MECHANISM_PARAM_INVALID);
            assert!(is_its_own || code(told) == refused, "{number:#x} by {params:?}");
        }
        let told = session.wrap(&Mechanism::new(number), seals, wrapped);
        assert_eq!(code(told), Some(Error::MECHANISM_PARAM_INVALID), "{number:#x}");
    }
    for bits in [0, 127, 512, u64::MAX] {
        let wrong = Params::RsaAes { bits, hash, mgf, label };
        let told = session.wrap(&Mechanism::with(CKM_RSA_AES_KEY_WRAP, wrong), sealing, wrapped);
        assert_eq!(code(told), Some(Error::MECHANISM_PARAM_INVALID), "{bits}");
    }
    // A value that is longer than what is asked for first.
    let long = plain.bytes(CKA_VALUE, vec![5; 5000]).bool(CKA_EXTRACTABLE, true);
    let long = session.create(&long).expect("it is created");
    let cbc = Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(&[9; 16]));
    assert_eq!(session.wrap(&cbc, wrapping, long).expect("it is wrapped").len(), 5008);
    let kept = session.generate_key(&CKM_AES_KEY_GEN.into(), &secret(CKK_AES, 32));
    let told = session.wrap(&CKM_AES_KEY_WRAP_KWP.into(), wrapping, kept.expect("a key is made"));
    assert_eq!(code(told), Some(Error::KEY_UNEXTRACTABLE));
}

fn carries_another(params: &Params<'_>) -> bool {
    matches!(params, Params::Oaep { .. } | Params::RsaAes { .. } | Params::EcdhAes { .. })
}

#[test]
fn secrets_are_encapsulated_and_decapsulated() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let public =
        Template::new().ulong(CKA_PARAMETER_SET, CKP_ML_KEM_768).bool(CKA_ENCAPSULATE, true);
    let (public, private) = pair(&session, CKM_ML_KEM_KEY_PAIR_GEN, public, CKA_DECAPSULATE);
    let kem = Mechanism::new(CKM_ML_KEM);
    let (ciphertext, one) = session.encapsulate(&kem, public, &readable(32)).expect("a secret");
    assert_eq!(ciphertext.len(), 1088);
    let other = session.decapsulate(&kem, private, &ciphertext, &readable(32)).expect("a secret");
    let value = |key| session.attribute(key, CKA_VALUE).expect("it may be read");
    assert_eq!(value(one), value(other));
    let short = session.decapsulate(&kem, private, &ciphertext[1..], &readable(32));
    assert_eq!(code(short), Some(Error::WRAPPED_KEY_LEN_RANGE));
    let wrong = session.encapsulate(&kem, private, &readable(32));
    assert_eq!(code(wrong), Some(Error::KEY_FUNCTION_NOT_PERMITTED));
}

#[test]
fn attributes_of_the_whole_vocabulary_are_carried() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let inner = Template::new().class(CKO_SECRET_KEY).bool(CKA_EXTRACTABLE, false);
    let template = Template::new()
        .ulong(CKA_VALUE_LEN, 32)
        .bool(CKA_UNWRAP, true)
        .bool(CKA_WRAP, true)
        .bool(CKA_DESTROYABLE, false)
        .with(CKA_UNWRAP_TEMPLATE, Value::Template(inner));
    let key = session.generate_key(&CKM_AES_KEY_GEN.into(), &template).expect("a key is made");
    let wanted = [CKA_UNIQUE_ID, CKA_DESTROYABLE, CKA_UNWRAP_TEMPLATE, CKA_OBJECT_VALIDATION_FLAGS];
    let values = session.attributes(key, &wanted).expect("attributes");
    let [Some(_), Some(destroyable), None, Some(flags)] = &values[..] else { panic!("{values:?}") };
    assert_eq!((&destroyable[..], flags.len()), (&[0][..], 8));
    assert_eq!(code(session.destroy(key)), Some(Error::ACTION_PROHIBITED));
    // What the template of the wrapping key says is so.
    let plain = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES);
    let other = plain.clone().bytes(CKA_VALUE, [1; 16]).bool(CKA_EXTRACTABLE, true);
    let other = session.create(&other).expect("it is created");
    let kwp = Mechanism::new(CKM_AES_KEY_WRAP_KWP);
    let wrapped = session.wrap(&kwp, key, other).expect("it is wrapped");
    let unwrapped = session.unwrap(&kwp, key, &wrapped, &plain).expect("it is unwrapped");
    assert_eq!(session.attribute(unwrapped, CKA_EXTRACTABLE), Ok(vec![0]));
    let against = plain.bool(CKA_EXTRACTABLE, true);
    let told = session.unwrap(&kwp, key, &wrapped, &against);
    assert_eq!(code(told), Some(Error::TEMPLATE_INCONSISTENT));
}

#[test]
fn states_sizes_recovery_and_ends_of_operations_are_carried() {
    let (_place, _module, session) = logged_in(OWN, OWN);
    let key = key(&session, CKK_GENERIC_SECRET, &[CKA_SIGN]);
    assert!(session.object_size(key).expect("a size").is_some_and(|size| size > 32));
    session.digest_init(&CKM_SHA256.into()).expect("a digest begins");
    session.digest_update(b"ab").expect("data is taken");
    let state = session.operation_state().expect("a state");
    session.digest_update(b"c").expect("data is taken");
    let first = session.digest_final().expect("a digest");
    let none = ObjectHandle(CK_INVALID_HANDLE);
    session.set_operation_state(&state, none, none).expect("it is restored");
    session.digest_update(b"c").expect("data is taken");
    assert_eq!(session.digest_final().expect("a digest"), first);
    session.digest_init(&CKM_SHA256.into()).expect("a digest begins");
    session.digest_key(key).expect("its value is taken");
    session.cancel(CKF_DIGEST).expect("it ends");
    assert_eq!(code(session.digest_final()), Some(Error::OPERATION_NOT_INITIALIZED));
    let public = Template::new().ulong(CKA_MODULUS_BITS, 2048).bool(CKA_VERIFY_RECOVER, true);
    let (public, private) = pair(&session, CKM_RSA_PKCS_KEY_PAIR_GEN, public, CKA_SIGN_RECOVER);
    let signature = session.sign_recover(&CKM_RSA_PKCS.into(), private, b"words");
    let signature = signature.expect("a signature");
    let recovered = session.verify_recover(&CKM_RSA_PKCS.into(), public, &signature);
    assert_eq!(recovered.expect("it is right"), b"words");
}

/// Uses the token's keys by `libmetaslot.so`.
#[test]
fn client() {
    let Some((_module, session)) = itself::logged_in() else { return };
    let find = |class, label| {
        let wanted = Template::new().class(class).label(label);
        session.find_one(&wanted).expect("a search").expect("it is there")
    };
    let aes = find(CKO_SECRET_KEY, "aes");
    let (nonce, aad, data) = (&[3; 12][..], &b"beside"[..], [7; 100]);
    for (number, params) in [
        (CKM_AES_GCM, Params::Gcm { iv: nonce, aad, tag_bits: 128 }),
        (CKM_AES_CTR, Params::Ctr { bits: 32, block: [5; 16] }),
        (CKM_AES_CCM, Params::Ccm { data_length: 100, nonce, aad, mac_length: 16 }),
    ] {
        let mechanism = Mechanism::with(number, params);
        let sealed = session.encrypt(&mechanism, aes, &data).expect("it is encrypted");
        assert_eq!(session.decrypt(&mechanism, aes, &sealed).expect("it is decrypted"), data);
        session.encrypt_init(&mechanism, aes).expect("it begins");
        let mut parts = session.encrypt_update(&data).expect("a part");
        parts.extend(session.encrypt_final().expect("the last part"));
        assert_eq!(parts, sealed);
    }
    messages(&session, aes);
    let (public, private) = (find(CKO_PUBLIC_KEY, "ed25519"), find(CKO_PRIVATE_KEY, "ed25519"));
    let prehash = Params::EdDsa { prehash: true, context: b"" };
    let prehash = Mechanism::with(CKM_EDDSA, prehash);
    let signature = session.sign(&prehash, private, &data).expect("a signature");
    session.verify(&prehash, public, &data, &signature).expect("it is right");
    assert!(session.verify(&CKM_EDDSA.into(), public, &data, &signature).is_err());
    let (public, private) = (find(CKO_PUBLIC_KEY, "ml-dsa"), find(CKO_PRIVATE_KEY, "ml-dsa"));
    let hedge = CKH_HEDGE_PREFERRED;
    for (number, params) in [
        (CKM_ML_DSA, Params::None),
        (CKM_ML_DSA, Params::SignContext { hedge, context: b"context" }),
        (CKM_HASH_ML_DSA_SHA256, Params::SignContext { hedge, context: b"context" }),
        (CKM_HASH_ML_DSA, Params::HashSignContext { hedge, context: b"", hash: CKM_SHA512 }),
    ] {
        let (mechanism, data) = (Mechanism::with(number, params), [7; 64]);
        let signature = session.sign(&mechanism, private, &data).expect("a signature");
        session.verify(&mechanism, public, &data, &signature).expect("it is right");
        assert!(session.verify(&mechanism, public, &[8; 64], &signature).is_err());
    }
    let kem = Mechanism::new(CKM_ML_KEM);
    let (public, private) = (find(CKO_PUBLIC_KEY, "ml-kem"), find(CKO_PRIVATE_KEY, "ml-kem"));
    let value = |key| session.attribute(key, CKA_VALUE).expect("it may be read");
    let (ciphertext, one) = session.encapsulate(&kem, public, &readable(32)).expect("a secret");
    let other = session.decapsulate(&kem, private, &ciphertext, &readable(32)).expect("a secret");
    assert_eq!(value(one), value(other));
    stays(&session, public, private);
    let pair = pair(
        &session,
        CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
        Template::new().bytes(CKA_EC_PARAMS, X25519),
        CKA_DERIVE,
    );
    let agreed = |private, public| {
        let public = session.attribute(public, CKA_EC_POINT).expect("a point");
        let params = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: &public };
        let ecdh = Mechanism::with(CKM_ECDH1_DERIVE, params);
        value(session.derive(&ecdh, private, &readable(32)).expect("it is agreed on"))
    };
    let (public, private) = (find(CKO_PUBLIC_KEY, "x25519"), find(CKO_PRIVATE_KEY, "x25519"));
    assert_eq!(agreed(private, pair.0), agreed(pair.1, public));
    let kek = find(CKO_SECRET_KEY, "kek");
    wraps(&session, kek, aes);
    let private = ["ml-dsa", "ml-kem", "x25519"].map(|label| find(CKO_PRIVATE_KEY, label));
    let public = session.attribute(pair.0, CKA_EC_POINT).expect("a point");
    while itself::heard().is_some() {
        repeated(&session, [aes, kek], private, &public);
        itself::say("done");
    }
}

fn gcm<'a>(iv: &'a mut [u8], tag: &'a mut [u8], generator: CK_ULONG) -> MessageParams<'a> {
    MessageParams::Gcm { iv, fixed_bits: 0, generator, tag }
}

/// The library does ciphers of messages one by one, with each key: it makes IVs at random, and counts none of a key that is elsewhere.
fn messages(session: &Session, aes: ObjectHandle) {
    let (data, random) = ([7; 100], CKG_GENERATE_RANDOM);
    session.message_init(Way::Encrypt, &CKM_AES_GCM.into(), aes).expect("it begins");
    session.message_init(Way::Decrypt, &CKM_AES_GCM.into(), aes).expect("it begins");
    let mut ivs = Vec::new();
    for generator in [random, random, CKG_NO_GENERATE] {
        let (mut iv, mut tag) = ([3; 12], [0; 16]);
        let mut params = gcm(&mut iv, &mut tag, generator);
        let sealed = session.message(Way::Encrypt, &mut params, b"beside", &data);
        let sealed = sealed.expect("it is encrypted");
        let mut params = gcm(&mut iv, &mut tag, CKG_NO_GENERATE);
        let opened = session.message(Way::Decrypt, &mut params, b"beside", &sealed);
        assert_eq!(opened.expect("it is decrypted"), data);
        let mut params = gcm(&mut iv, &mut tag, CKG_NO_GENERATE);
        let wrong = session.message(Way::Decrypt, &mut params, b"other", &sealed);
        assert_eq!(code(wrong), Some(Error::AEAD_DECRYPT_FAILED));
        // In parts it is the same.
        let mut again = [0; 16];
        let mut params = gcm(&mut iv, &mut again, CKG_NO_GENERATE);
        session.message_begin(Way::Encrypt, &mut params, b"beside").expect("it begins");
        let parts = [(&data[..33], 0), (&data[33..], CKF_END_OF_MESSAGE)].map(|(part, flags)| {
            session.message_next(Way::Encrypt, &mut params, part, flags).expect("a part")
        });
        assert_eq!((parts.concat(), again), (sealed, tag));
        ivs.push(iv);
    }
    assert!(ivs[0] != ivs[1] && ivs[2] == [3; 12]);
    let (mut iv, mut tag) = ([0; 12], [0; 16]);
    let mut params = gcm(&mut iv, &mut tag, CKG_GENERATE_COUNTER);
    let counted = session.message(Way::Encrypt, &mut params, b"", &data);
    assert_eq!(code(counted), Some(Error::MECHANISM_PARAM_INVALID));
    for way in [Way::Encrypt, Way::Decrypt] {
        session.message_final(way).expect("it ends");
    }
}

/// One that is encapsulated into the token is made there, and its value stays there.
fn stays(session: &Session, public: ObjectHandle, private: ObjectHandle) {
    let kem = Mechanism::new(CKM_ML_KEM);
    let kept = secret(CKK_GENERIC_SECRET, 32).bool(CKA_SIGN, true).bool(CKA_PRIVATE, true);
    let stays = kept.clone().token(true).label("encapsulated");
    let (ciphertext, one) = session.encapsulate(&kem, public, &stays).expect("a secret");
    let found = session.find(&Template::new().label("encapsulated"));
    assert_eq!(found.expect("a search"), [one]);
    assert!(session.attribute(one, CKA_VALUE).is_err());
    let other = session.decapsulate(&kem, private, &ciphertext, &kept).expect("a secret");
    let mac = |key| session.sign(&CKM_SHA256_HMAC.into(), key, b"words").expect("it is signed");
    assert_eq!(mac(one), mac(other));
    session.destroy(one).expect("it is destroyed");
}

/// What fails by no daemon that goes away meanwhile.
fn repeated(
    session: &Session,
    [aes, kek]: [ObjectHandle; 2],
    [dsa, kem, x25519]: [ObjectHandle; 3],
    public: &[u8],
) {
    let gcm = Params::Gcm { iv: &[3; 12], aad: b"beside", tag_bits: 128 };
    let ecdh = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public };
    let (gcm, ecdh) = (Mechanism::with(CKM_AES_GCM, gcm), Mechanism::with(CKM_ECDH1_DERIVE, ecdh));
    let (kwp, template) = (Mechanism::new(CKM_AES_KEY_WRAP_KWP), readable(32));
    for _ in 0..100 {
        let sealed = session.encrypt(&gcm, aes, b"words").expect("it is encrypted");
        assert_eq!(session.decrypt(&gcm, aes, &sealed).expect("it is decrypted"), b"words");
        session.sign(&CKM_ML_DSA.into(), dsa, b"words").expect("a signature");
        let secrets = [
            session.decapsulate(&CKM_ML_KEM.into(), kem, &[1; 1088], &template),
            session.derive(&ecdh, x25519, &template),
        ];
        for secret in secrets {
            session.destroy(secret.expect("a secret")).expect("it is destroyed");
        }
        session.wrap(&kwp, kek, aes).expect("it is wrapped");
    }
}

/// Keys of the session and of the token under one of the token.
fn wraps(session: &Session, kek: ObjectHandle, of_token: ObjectHandle) {
    let kwp = Mechanism::new(CKM_AES_KEY_WRAP_KWP);
    let ecb = Mechanism::new(CKM_AES_ECB);
    let own = key(session, CKK_AES, &[CKA_ENCRYPT]);
    let plain = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).bool(CKA_ENCRYPT, true);
    let data = |key| session.encrypt(&ecb, key, &[1; 16]).expect("it is encrypted");
    let wrapped = [own, of_token].map(|key| session.wrap(&kwp, kek, key).expect("it is wrapped"));
    // What becomes a key of the session is read for that, which the daemon's policy refuses for a key that only wraps.
    let told = session.unwrap(&kwp, kek, &wrapped[0], &plain);
    assert_eq!(code(told), Some(Error::TEMPLATE_INCONSISTENT));
    let plain = plain.token(true).bool(CKA_EXTRACTABLE, false);
    for (key, wrapped) in [own, of_token].into_iter().zip(&wrapped) {
        let unwrapped = session.unwrap(&kwp, kek, wrapped, &plain).expect("it is unwrapped");
        assert_eq!(data(unwrapped), data(key));
    }
}

#[test]
fn keys_of_the_daemon_are_used_by_the_library_with_parameters_of_ours() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "parameters", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    let engine = place.engine();
    let session = engine.open_session(SLOT, CKF_SERIAL_SESSION | CKF_RW_SESSION);
    let session = session.expect("a session opens");
    engine.login(session, CKU_USER, USER).expect("the user logs in");
    let named = |label: &str, attribute, value: &[u8]| {
        let all = [(CKA_LABEL, label.as_bytes()), (CKA_TOKEN, &[1]), (attribute, value)];
        Vec::from(all.map(|(attribute, value)| (attribute, RawValue::Bytes(value.to_vec()))))
    };
    let none = || metaslot_spi::Params::None;
    for (label, usages) in [("aes", &[CKA_EXTRACTABLE][..]), ("kek", &[CKA_WRAP, CKA_UNWRAP])] {
        let mut aes = named(label, CKA_VALUE_LEN, &32_u64.to_ne_bytes());
        aes.extend(usages.iter().map(|usage| (*usage, RawValue::Bytes(vec![1]))));
        engine.generate_key(session, CKM_AES_KEY_GEN, none(), aes).expect("a key is made");
    }
    let set = |set: u64| set.to_ne_bytes();
    let (dsa, kem) = (set(CKP_ML_DSA_44), set(CKP_ML_KEM_768));
    let (edwards, montgomery) = (CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EC_MONTGOMERY_KEY_PAIR_GEN);
    for (label, generate, (attribute, value), [of_public, of_private]) in [
        ("ed25519", edwards, (CKA_EC_PARAMS, &ED25519[..]), [CKA_VERIFY, CKA_SIGN]),
        ("x25519", montgomery, (CKA_EC_PARAMS, &X25519), [CKA_DERIVE; 2]),
        ("ml-dsa", CKM_ML_DSA_KEY_PAIR_GEN, (CKA_PARAMETER_SET, &dsa), [CKA_VERIFY, CKA_SIGN]),
        (
            "ml-kem",
            CKM_ML_KEM_KEY_PAIR_GEN,
            (CKA_PARAMETER_SET, &kem),
            [CKA_ENCAPSULATE, CKA_DECAPSULATE],
        ),
    ] {
        let mut public = named(label, attribute, value);
        public.push((of_public, RawValue::Bytes(vec![1])));
        let private = named(label, of_private, &[1]);
        let made = engine.generate_key_pair(session, generate, none(), public, private);
        made.expect("a pair is made");
    }
    configured(&place);
    let mut server = started(&place);
    let mut client = Itself::started(&place, "ours::client", &module);
    for kill in 0..10 {
        client.tell("");
        if kill > 0 {
            sleep(Duration::from_millis(5 * kill));
            drop(server);
            server = started(&place);
        }
        assert!(client.answer().is_some(), "what can be repeated failed");
    }
    client.rest();
}

/// Of a token: one of AES for wrapping, one more, and pairs to agree and to decapsulate with.
fn make_keys(session: &Session) {
    let named = |label| Template::new().label(label).token(true);
    let aes = |label| named(label).ulong(CKA_VALUE_LEN, 32).bool(CKA_EXTRACTABLE, true);
    for template in [aes("kek").bool(CKA_WRAP, true).bool(CKA_UNWRAP, true), aes("data")] {
        session.generate_key(&CKM_AES_KEY_GEN.into(), &template).expect("a key is made");
    }
    let kem = named("kem").ulong(CKA_PARAMETER_SET, CKP_ML_KEM_768).bool(CKA_ENCAPSULATE, true);
    for (generate, public, private) in [
        (CKM_ML_KEM_KEY_PAIR_GEN, kem, named("kem").bool(CKA_DECAPSULATE, true)),
        (
            CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
            named("agree").bytes(CKA_EC_PARAMS, X25519),
            named("agree").bool(CKA_DERIVE, true),
        ),
    ] {
        session.generate_key_pair(&generate.into(), &public, &private).expect("a pair is made");
    }
}

#[test]
fn a_service_derives_and_wraps_by_what_it_is_given_and_takes_no_key_out() {
    let (place, _module, session) = logged_in(OWN, OWN);
    make_keys(&session);
    configured(&place);
    let at = place.path().display();
    write_own(place.path().join("pin"), USER);
    let user = rustix::process::geteuid().as_raw();
    let section = |keys: &str, operation: &str| {
        format!(
            "[[client]]\nservices = [\"user:{user}\"]\ntoken = \"door\"\nkeys = {keys}\n\
             operations = [\"{operation}\"]\n"
        )
    };
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         pin-source = \"file:{at}/pin\"\n[daemon]\nsocket = \"{at}/socket\"\n{}{}{}",
        section("[\"kek\", \"data\"]", "wrap"),
        section("[\"kem\"]", "decrypt"),
        section("[\"agree\"]", "derive"),
    );
    std::fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let _server = started(&place);
    let module = place.module_of_program();
    module.initialize().expect("it begins");
    let session = module.open_session(SLOT, Access::ReadWrite).expect("a session opens");
    let find = |class, label| {
        let wanted = Template::new().class(class).label(label);
        session.find_one(&wanted).expect("a search").expect("it is there")
    };
    let refused = Some(Error::KEY_FUNCTION_NOT_PERMITTED);
    let (kek, kwp) = (find(CKO_SECRET_KEY, "kek"), Mechanism::new(CKM_AES_KEY_WRAP_KWP));
    let taken_out = session.wrap(&kwp, kek, find(CKO_SECRET_KEY, "data"));
    assert_eq!(code(taken_out), Some(Error::KEY_UNEXTRACTABLE));
    let own = key(&session, CKK_AES, &[]);
    let wrapped = session.wrap(&kwp, kek, own).expect("it is its own");
    let plain = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES);
    assert_eq!(code(session.unwrap(&kwp, kek, &wrapped, &plain)), refused);
    let (public, private) = (find(CKO_PUBLIC_KEY, "kem"), find(CKO_PRIVATE_KEY, "kem"));
    let kem = Mechanism::new(CKM_ML_KEM);
    assert_eq!(code(session.encapsulate(&kem, public, &readable(32))), refused);
    session.decapsulate(&kem, private, &[1; 1088], &readable(32)).expect("a secret");
    let (public, private) = (find(CKO_PUBLIC_KEY, "agree"), find(CKO_PRIVATE_KEY, "agree"));
    let public = session.attribute(public, CKA_EC_POINT).expect("a point");
    let params = Params::Ecdh1 { kdf: CKD_NULL, shared: b"", public: &public };
    let ecdh = Mechanism::with(CKM_ECDH1_DERIVE, params);
    session.derive(&ecdh, private, &readable(32)).expect("a secret");
    let stays = [
        session.derive(&ecdh, private, &readable(32).token(true)),
        session.decapsulate(&kem, private, &[1; 1088], &readable(32).token(true)),
        session.unwrap(&kwp, kek, &wrapped, &plain.token(true)),
    ];
    for told in stays {
        assert_eq!(code(told), Some(Error::USER_NOT_LOGGED_IN));
    }
    let hkdf = Params::Sp800108 { prf: CKM_AES_CMAC, data: &[] };
    let hkdf = Mechanism::with(CKM_SP800_108_COUNTER_KDF, hkdf);
    assert_eq!(code(session.derive(&hkdf, kek, &readable(32))), refused);
}
