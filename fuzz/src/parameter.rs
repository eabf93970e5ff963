// SPDX-License-Identifier: Apache-2.0
//! Parameters of mechanisms: every operation with whatever parameter of its shape, or of another. With the lanes and without,
//! the codes are the same, and the results where an operation has one result.

use crate::input::{Input, Seen, code};
use crate::tokens::{Answers, filled, pair, same, value};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_engine::Engine;
use metaslot_memory::Secret;
use metaslot_models::row;
use metaslot_spi::der::Reader;
use metaslot_spi::key_info::PrivateKeyInfo;
use metaslot_spi::provider::Direction::{Backward, Forward};
use metaslot_spi::{Beside, Bytes, DsaSeed, KdfParam, Otp, Params, Template, Tls};
use std::sync::{Arc, OnceLock};

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    let [lanes, plain] = pair(0).map(|(engine, session)| {
        let answers = operate(&mut Input(bytes), engine, session);
        engine.close_session(session).expect("it was open");
        answers
    });
    let mechanism = mechanism(&mut Input(bytes));
    let random = RANDOM.contains(&mechanism);
    let compared = |answers: &Answers| -> Answers {
        let code_alone = |answer: &(u64, Vec<u8>)| (answer.0, Vec::new());
        if random { answers.iter().map(code_alone).collect() } else { answers.clone() }
    };
    if !MechanismRow::find(mechanism).is_some_and(is_of_lanes) {
        same(mechanism_name(mechanism), &compared(&lanes), &compared(&plain));
    }
    seen.note(mechanism);
    lanes.iter().for_each(|answer| seen.note(answer.0));
    seen.finish()
}

/// Types of keys that the lanes alone have, and the other engine does not.
const OF_LANES: [CK_KEY_TYPE; 4] = [CKK_SLH_DSA, CKK_HSS, CKK_XMSS, CKK_XMSSMT];

/// Whether a mechanism has no keys but theirs.
fn is_of_lanes(row: &MechanismRow) -> bool {
    !row.keys.is_empty() && row.keys.iter().all(|key| OF_LANES.contains(key))
}

/// What gives another result each time; that of HOTP has addresses in it.
const RANDOM: [CK_MECHANISM_TYPE; 5] =
    [CKM_RSA_PKCS, CKM_RSA_PKCS_OAEP, CKM_AES_KEY_GEN, CKM_GENERIC_SECRET_KEY_GEN, CKM_HOTP];

fn mechanism(input: &mut Input<'_>) -> CK_MECHANISM_TYPE {
    match input.mechanism() {
        // A key takes too long to be found.
        CKM_RSA_PKCS_KEY_PAIR_GEN => CKM_SHA256,
        mechanism => mechanism,
    }
}

fn operate(input: &mut Input<'_>, engine: &Engine, session: SessionHandle) -> Answers {
    let mechanism = mechanism(input);
    let rows = MechanismRow::find(mechanism);
    let shape = rows.map_or(Shape::None, |row| row.shape);
    if let Shape::DsaSeed { .. } = shape {
        let mut params = params(input, shape, ObjectHandle(0));
        let generated = engine.generate_key(session, mechanism, params(), group(input));
        return vec![(code(&generated), Vec::new())];
    }
    let mut types = rows.map_or(&[][..], |row| row.keys).to_vec();
    if !rows.is_some_and(is_of_lanes) {
        types.retain(|key| !OF_LANES.contains(key));
    }
    let key_type = if types.is_empty() { CKK_AES } else { input.one_of(&types) };
    let mut key_of = |class| engine.create_object(session, key(input, class, key_type));
    let secret = if key_type == CKK_HOTP { CKO_OTP_KEY } else { CKO_SECRET_KEY };
    let keys = [key_of(secret), key_of(CKO_PRIVATE_KEY), key_of(CKO_PUBLIC_KEY)];
    let mut answers: Answers = keys.iter().map(|key| (code(key), Vec::new())).collect();
    let keys: Vec<ObjectHandle> = keys.into_iter().flatten().collect();
    let Some(first) = keys.first().copied() else { return answers };
    let last = keys.last().copied().unwrap_or(first);
    let mut params = params(input, shape, first);
    let mut data = input.bytes().to_vec();
    // What signs without a random number says the same on both sides.
    let once = !is_random_signature(mechanism);
    match input.byte() % 8 {
        0 => answers.extend(ciphers(engine, session, mechanism, &mut params, [first, last], &data)),
        1 | 2 => {
            let signed = sign(engine, session, mechanism, params(), first, &data);
            let verified = engine.verify_init(session, mechanism, params(), last);
            let verified = verified.and_then(|()| engine.verify(session, &data, &signed.1));
            answers.push((code(&verified), Vec::new()));
            answers.push(if once { signed } else { (signed.0, Vec::new()) });
            // A signature by whatever.
            let verified = engine.verify_init(session, mechanism, params(), last);
            data.reverse();
            let verified = verified.and_then(|()| engine.verify(session, b"data", &data));
            answers.push((code(&verified), Vec::new()));
        }
        3 => {
            let init = engine.digest_init(session, mechanism);
            answers.push(after(&init, || filled(|out| engine.digest(session, &data, out))));
        }
        4 => {
            let derived = engine.derive_key(session, mechanism, params(), first, made(input));
            answers.push((code(&derived), Vec::new()));
            let all = derived.map(|(key, more)| [vec![key], more].concat()).unwrap_or_default();
            answers.extend(
                all.iter().map(|key| (0, value(engine, session, *key).unwrap_or_default())),
            );
        }
        5 => {
            let wrapped =
                filled(|out| engine.wrap_key(session, mechanism, params(), last, first, out));
            let template = made(input);
            let unwrapped =
                engine.unwrap_key(session, mechanism, params(), first, &wrapped.1, template);
            answers.push((wrapped.0, Vec::new()));
            answers.push((code(&unwrapped), Vec::new()));
        }
        6 => {
            let template = made(input);
            let unwrapped = engine.unwrap_key(session, mechanism, params(), first, &data, template);
            answers.push((code(&unwrapped), Vec::new()));
        }
        _ => {
            let generated = engine.generate_key(session, mechanism, params(), made(input));
            answers.push((code(&generated), Vec::new()));
        }
    }
    answers
}

fn is_random_signature(mechanism: CK_MECHANISM_TYPE) -> bool {
    let shape = MechanismRow::find(mechanism).map(|row| (row.shape, row.keys));
    shape.is_some_and(|(shape, keys)| {
        let random = [CKK_EC, CKK_DSA, CKK_ML_DSA].map(|key| [key]);
        shape == Shape::Pss || mechanism == CKM_XEDDSA || random.iter().any(|key| keys == key)
    })
}

fn after(init: &Result<()>, call: impl FnOnce() -> (u64, Vec<u8>)) -> (u64, Vec<u8>) {
    match init {
        Ok(()) => call(),
        Err(error) => (error.rv(), Vec::new()),
    }
}

fn sign(
    engine: &Engine,
    session: SessionHandle,
    mechanism: CK_MECHANISM_TYPE,
    params: Params,
    key: ObjectHandle,
    data: &[u8],
) -> (u64, Vec<u8>) {
    let init = engine.sign_init(session, mechanism, params, key);
    after(&init, || filled(|out| engine.sign(session, data, out)))
}

/// In one part and in two, and back; back alone.
fn ciphers(
    engine: &Engine,
    session: SessionHandle,
    mechanism: CK_MECHANISM_TYPE,
    params: &mut impl FnMut() -> Params,
    [first, last]: [ObjectHandle; 2],
    data: &[u8],
) -> Answers {
    let mut answers = Vec::new();
    let init = engine.cipher_init(Forward, session, mechanism, params(), last);
    let whole = after(&init, || filled(|out| engine.cipher(Forward, session, data, out)));
    for input in [&whole.1[..], data] {
        let init = engine.cipher_init(Backward, session, mechanism, params(), first);
        let back = after(&init, || filled(|out| engine.cipher(Backward, session, input, out)));
        answers.push(back);
    }
    answers.push(whole);
    for direction in [Forward, Backward] {
        let key = if direction == Forward { last } else { first };
        let init = engine.cipher_init(direction, session, mechanism, params(), key);
        answers.push((code(&init), Vec::new()));
        let (one, other) = data.split_at(data.len() / 3);
        for part in [one, other] {
            let update = || filled(|out| engine.cipher_update(direction, session, part, out));
            answers.push(after(&init, update));
        }
        answers.push(after(&init, || filled(|out| engine.cipher_final(direction, session, out))));
    }
    answers
}

/// A key that can do everything.
fn key(input: &mut Input<'_>, class: CK_OBJECT_CLASS, key_type: CK_KEY_TYPE) -> Template {
    let usages: &[CK_ATTRIBUTE_TYPE] = match class {
        CKO_PUBLIC_KEY => &[CKA_ENCRYPT, CKA_VERIFY, CKA_VERIFY_RECOVER, CKA_WRAP],
        CKO_OTP_KEY => &[CKA_SIGN, CKA_VERIFY],
        CKO_PRIVATE_KEY => &[CKA_DECRYPT, CKA_SIGN, CKA_SIGN_RECOVER, CKA_UNWRAP, CKA_DERIVE],
        _ => &[CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE],
    };
    let mut template = vec![row(CKA_CLASS, class), row(CKA_KEY_TYPE, key_type)];
    template.extend(usages.iter().map(|usage| row(*usage, true)));
    if class != CKO_PUBLIC_KEY {
        template.extend([row(CKA_EXTRACTABLE, true), row(CKA_SENSITIVE, false)]);
    }
    let bytes = [0x5b; 64];
    match (class, key_type) {
        (CKO_SECRET_KEY, CKK_RSA | CKK_EC | CKK_EC_EDWARDS | CKK_EC_MONTGOMERY) => {}
        (CKO_SECRET_KEY | CKO_OTP_KEY, _) => {
            let length = match key_type {
                CKK_DES3 => 24,
                CKK_DES2 => 16,
                CKK_CHACHA20 => 32,
                CKK_DES => 8,
                CKK_SEED | CKK_IDEA | CKK_CAST5 => 16,
                _ => input.one_of(&[16, 24, 32, 64, 20]),
            };
            template.push(row(CKA_VALUE, &bytes[..length]));
            if class == CKO_OTP_KEY {
                // One that counts is a key of a token, for a user.
                let counts =
                    if input.is(8) { CK_OTP_PARAM_OPTIONAL } else { CK_OTP_PARAM_MANDATORY };
                template.push(row(CKA_OTP_COUNTER_REQUIREMENT, counts));
                template.push(row(CKA_OTP_LENGTH, input.constant(&[6, 7, 8, 9])));
            }
        }
        (_, CKK_RSA) => template.extend(rsa(class)),
        (_, CKK_EC) => {
            template.push(row(CKA_EC_PARAMS, P256));
            let half =
                if class == CKO_PUBLIC_KEY { row(CKA_EC_POINT, G) } else { row(CKA_VALUE, ONE) };
            template.push(half);
        }
        (_, CKK_EC_EDWARDS | CKK_EC_MONTGOMERY) => {
            let last = if key_type == CKK_EC_EDWARDS { 0x70 } else { 0x6e };
            template.push(row(CKA_EC_PARAMS, &[6, 3, 0x2b, 0x65, last][..]));
            let half = if class == CKO_PUBLIC_KEY { CKA_EC_POINT } else { CKA_VALUE };
            template.push(row(half, BASE));
        }
        _ => {}
    }
    template
}

/// The scalar 1 and its point.
const ONE: &[u8] = &{
    let mut one = [0; 32];
    one[31] = 1;
    one
};
const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const G: &[u8] = &[
    4, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40,
    0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2,
    0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e,
    0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51,
    0xf5,
];
/// The base point of Ed25519, and a scalar as well as any.
const BASE: &[u8] = &{
    let mut base = [0x66; 32];
    base[0] = 0x58;
    base
};

fn rsa(class: CK_OBJECT_CLASS) -> Template {
    let der = include_bytes!("../../testdata/fuzz/der/rsa-1024");
    let numbers = PrivateKeyInfo::parse(der).map(|info| info.private);
    let mut numbers = numbers.and_then(|mut outer| outer.sequence()).expect("it is a key");
    let number = |reader: &mut Reader<'_>| reader.integer().map(<[u8]>::to_vec).expect("a number");
    number(&mut numbers);
    let mut template = Template::new();
    let count = if class == CKO_PUBLIC_KEY { 2 } else { 8 };
    let all = [
        CKA_MODULUS,
        CKA_PUBLIC_EXPONENT,
        CKA_PRIVATE_EXPONENT,
        CKA_PRIME_1,
        CKA_PRIME_2,
        CKA_EXPONENT_1,
        CKA_EXPONENT_2,
        CKA_COEFFICIENT,
    ];
    for attribute in &all[..count] {
        template.push(row(*attribute, &number(&mut numbers)[..]));
    }
    template
}

/// A key that arrives, readable.
fn made(input: &mut Input<'_>) -> Template {
    let length = input.one_of(&[16, 32, 24, 1, 0, 64, 100_000]);
    let mut template = vec![
        row(CKA_CLASS, CKO_SECRET_KEY),
        row(CKA_KEY_TYPE, input.one_of(&[CKK_GENERIC_SECRET, CKK_AES, CKK_HKDF])),
        row(CKA_SENSITIVE, false),
        row(CKA_EXTRACTABLE, true),
    ];
    if !input.is(4) {
        template.push(row(CKA_VALUE_LEN, length));
    }
    if input.is(8) { input.like(template) } else { template }
}

/// A group of DSA that is asked for: numbers of bits, small enough to be found soon, or numbers to find a base for.
fn group(input: &mut Input<'_>) -> Template {
    let mut template = vec![
        row(CKA_CLASS, CKO_DOMAIN_PARAMETERS),
        row(CKA_KEY_TYPE, input.one_of(&[CKK_DSA, CKK_DH])),
    ];
    if input.is(2) {
        template.extend([row(CKA_PRIME, input.bytes()), row(CKA_SUBPRIME, input.bytes())]);
    } else {
        template.push(row(CKA_PRIME_BITS, input.one_of(&[512, 0, 513, 160, u64::MAX])));
    }
    if input.is(4) {
        template.push(row(CKA_SUBPRIME_BITS, input.one_of(&[160, 0, 224, u64::MAX])));
    }
    if input.is(8) { input.like(template) } else { template }
}

const HASHES: [u64; 5] = [CKM_SHA256, CKM_SHA_1, CKM_SHA512, CKM_SHA3_256, CKM_AES_CMAC];

/// Parameters of this shape, the same each time.
fn params(
    input: &mut Input<'_>,
    shape: Shape,
    key: ObjectHandle,
) -> impl FnMut() -> Params + use<> {
    let start = input.0.to_vec();
    // The rest of the input is behind them.
    drop(one(input, shape, key));
    move || one(&mut Input(&start), shape, key)
}

fn one(input: &mut Input<'_>, shape: Shape, key: ObjectHandle) -> Params {
    let owned = |bytes: &[u8]| Bytes::from_slice(bytes);
    let sized = |input: &mut Input<'_>, length: usize| {
        if input.is(8) { owned(input.bytes()) } else { owned(&[9; 64][..length.min(64)]) }
    };
    match shape {
        Shape::None => Params::None,
        Shape::Iv(length) | Shape::OptionalIv(length) => Params::Iv(sized(input, length)),
        Shape::Ulong => Params::Ulong(input.number()),
        Shape::Ctr => Params::Ctr { bits: input.number(), block: [0xff; 16] },
        Shape::Nonce => Params::Iv(sized(input, 12)),
        Shape::Gcm => {
            let iv = sized(input, 12);
            let tag_bits = input.constant(&[128, 96, 0, 32, 64]);
            Params::Gcm { iv, aad: owned(input.bytes()), tag_bits }
        }
        Shape::Ccm => {
            let (data_length, nonce) = (input.number(), sized(input, 13));
            let mac_length = input.constant(&[16, 4, 8, 0]);
            Params::Ccm { data_length, nonce, aad: owned(input.bytes()), mac_length }
        }
        Shape::ChaCha20Poly1305 => {
            Params::ChaCha20Poly1305 { nonce: sized(input, 12), aad: owned(input.bytes()) }
        }
        Shape::Oaep => {
            let (hash, mgf) = (input.constant(&HASHES), input.constant(&[1, 2, 3, 4, 5]));
            Params::Oaep { hash, mgf, label: owned(input.bytes()) }
        }
        Shape::Pss => {
            let (hash, mgf) = (input.constant(&HASHES), input.constant(&[1, 2, 3, 4, 5]));
            Params::Pss { hash, mgf, salt_length: input.number() }
        }
        Shape::Ecdh1 | Shape::PublicValue | Shape::X942 => {
            let public =
                if input.is(3) { owned(input.bytes()) } else { owned(input.one_of(&[G, BASE])) };
            let kdf = input.constant(&[CKD_NULL, CKD_SHA1_KDF, CKD_SHA256_KDF]);
            Params::Ecdh1 { kdf, shared: owned(input.bytes()), public }
        }
        Shape::EdDsa => Params::EdDsa { prehash: input.is(2), context: owned(input.bytes()) },
        Shape::XEdDsa => Params::XEdDsa { hash: input.constant(&HASHES) },
        Shape::SignContext => {
            let hedge = input.constant(&[0, 1, 2]);
            Params::SignContext { hedge, context: owned(input.bytes()) }
        }
        Shape::HashSignContext => {
            let (hedge, hash) = (input.constant(&[0, 1, 2]), input.constant(&HASHES));
            Params::HashSignContext { hedge, context: owned(input.bytes()), hash }
        }
        Shape::Hkdf => {
            let (extract, expand) = (!input.is(3), !input.is(4));
            let prf = input.constant(&HASHES);
            let salts = [CKF_HKDF_SALT_NULL, CKF_HKDF_SALT_DATA, CKF_HKDF_SALT_KEY];
            let (salt_type, salt) = (input.constant(&salts), owned(input.bytes()));
            let info = owned(input.bytes());
            Params::Hkdf { extract, expand, prf, salt_type, salt, salt_key: key, info }
        }
        Shape::Pbkd2 => {
            let prf = input.constant(&[1, 3, 4, 5, 6, 7, 8]);
            // More is a caller's own choice, however long it takes.
            let iterations = input.number() % 1000;
            let password = Secret::copy_of(input.bytes());
            Params::Pbkd2 { prf, salt: owned(input.bytes()), iterations, password }
        }
        Shape::Sp800108Counter | Shape::Sp800108Feedback | Shape::Sp800108DoublePipeline => {
            let prf = input.constant(&[CKM_SHA256_HMAC, CKM_SHA_1_HMAC, CKM_AES_CMAC]);
            let data = (0..input.byte() % 5).map(|_| datum(input)).collect();
            let iv = owned(input.bytes());
            let additional = (0..input.byte() % 3).map(|_| made(input)).collect();
            Params::Sp800108 { prf, data, iv, additional }
        }
        _ => classic(input, shape, key),
    }
}

fn classic(input: &mut Input<'_>, shape: Shape, key: ObjectHandle) -> Params {
    let owned = |bytes: &[u8]| Bytes::from_slice(bytes);
    match shape {
        Shape::RsaAes | Shape::EcdhAes => {
            let bits = input.constant(&[256, 128, 192, 0, 64]);
            let inner = if shape == Shape::RsaAes { Shape::Oaep } else { Shape::Ecdh1 };
            Params::Transport { bits, by: Box::new(one(input, inner, key)) }
        }
        Shape::StringData => Params::Data { iv: Bytes::new(), data: owned(input.bytes()) },
        Shape::CbcData(length) => Params::Data {
            iv: owned(&[9; 16][..if input.is(8) { 3 } else { length.min(16) }]),
            data: owned(input.bytes()),
        },
        Shape::Handle => Params::Key(key),
        Shape::Salsa20 => {
            let nonce = owned(&[9; 24][..input.one_of(&[8, 24, 12, 0])]);
            Params::Salsa20 { counter: input.number(), nonce }
        }
        Shape::Pbe { .. } => {
            let (password, salt) = (Secret::copy_of(input.bytes()), owned(input.bytes()));
            Params::Pbe {
                password,
                salt,
                iterations: input.number() % 1000,
                beside: Arc::default(),
            }
        }
        Shape::Rc2 | Shape::Rc2Cbc | Shape::Rc2Mac => {
            let by = [input.constant(&[128, 64, 1, 1024, 1025, 0]), 0];
            let iv = if shape == Shape::Rc2Cbc { owned(&[9; 8]) } else { Bytes::new() };
            Params::Tuned { by, iv, mac: input.constant(&[0, 4, 8, 9]) }
        }
        Shape::Rc5 | Shape::Rc5Cbc | Shape::Rc5Mac => {
            let by = [input.constant(&[2, 4, 8, 1, 0]), input.constant(&[0, 12, 255, 256])];
            let length = input.one_of(&[8, 4, 16, 0, 3]);
            let iv = if shape == Shape::Rc5Cbc { owned(&[9; 16][..length]) } else { Bytes::new() };
            Params::Tuned { by, iv, mac: input.constant(&[0, 4, 8, 9]) }
        }
        Shape::TlsMaster
        | Shape::Tls12Master
        | Shape::Tls12Extended
        | Shape::TlsKeys
        | Shape::Tls12Keys
        | Shape::TlsKdf
        | Shape::TlsMac
        | Shape::Tls10Mac => {
            let old = [CKM_TLS_PRF, CKM_SSL3_MASTER_KEY_DERIVE];
            let prf = if input.is(3) { input.constant(&old) } else { input.constant(&HASHES) };
            let (label, seed) = (owned(input.bytes()), owned(input.bytes()));
            let mac_length = usize::from(input.byte());
            let further = (0..input.byte() % 3).map(|_| made(input)).collect();
            let beside = Beside { length: usize::from(input.byte()), told: OnceLock::new() };
            let beside = input.is(2).then(|| Arc::new(beside));
            Params::Tls(Box::new(Tls { prf, label, seed, mac_length, further, beside }))
        }
        Shape::Otp => {
            let mut said = |known: &[u64]| input.is(2).then(|| input.constant(known));
            let (counter, length) = (said(&[0, 1, u64::MAX]), said(&[6, 8, 9, 5, 10]));
            let format = said(&[CK_OTP_FORMAT_DECIMAL, CK_OTP_FORMAT_BINARY]);
            let flags = said(&[0, CKF_EXCLUDE_TIME, CKF_NEXT_OTP, CKF_USER_FRIENDLY_OTP]);
            Params::Otp(Otp { counter, length, format, flags })
        }
        Shape::DsaSeed { .. } => {
            let (hash, seed) = (input.constant(&HASHES), owned(input.bytes()));
            let length = input.one_of(&[20, 60, 32, 0, 19]);
            let beside = Arc::new(Beside { length, told: OnceLock::new() });
            Params::DsaSeed(Box::new(DsaSeed { hash, seed, index: input.number(), beside }))
        }
        Shape::ChaCha20 => {
            let nonce =
                owned([[0xff; 24].as_slice(), &[7; 12], &[7; 8]][usize::from(input.byte()) % 3]);
            Params::ChaCha20 { counter: u64::from(u32::MAX), nonce }
        }
        _ => {
            let prf =
                input.constant(&[CKM_SHA256_HMAC, CKM_AES_XCBC_MAC, CKM_AES_CMAC, CKM_SHA256]);
            let before = (0..input.byte() % 3).map(|_| key).collect();
            Params::Ike { prf, data: owned(input.bytes()), data_as_key: input.is(2), before }
        }
    }
}

fn datum(input: &mut Input<'_>) -> KdfParam {
    let little_endian = input.is(2);
    let bits = input.constant(&[8, 16, 24, 32, 64, 0]);
    match input.byte() % 4 {
        0 => KdfParam::Iteration { little_endian, bits },
        1 => KdfParam::Counter { little_endian, bits },
        2 => KdfParam::DkmLength { sum_of_segments: input.is(2), little_endian, bits },
        _ => KdfParam::Bytes(Bytes::from_slice(input.bytes())),
    }
}
