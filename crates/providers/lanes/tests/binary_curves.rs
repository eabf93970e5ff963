// SPDX-License-Identifier: Apache-2.0
//! Keys on curves over GF(2^m) through the provider's traits, with and without vector registers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_ck::*;
use metaslot_lanes::binary::Curve;
use metaslot_lanes::provider::Lanes;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Direction, Keys, Provider};
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

/// Nothing is beneath: what is served here is served by this provider alone.
#[derive(Debug)]
struct Nothing;

impl Provider for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &[]
    }
}

static LANES: Lanes = Lanes::beside(&Nothing);

struct Pair {
    public: Arc<Key>,
    private: Arc<Key>,
}

fn algorithm(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    LANES.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap()
}

fn key(class: u64, object: NewObject) -> Arc<Key> {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_EC));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// What a key shows, in any order.
fn shown(key: &Key) -> BTreeMap<CK_ATTRIBUTE_TYPE, &Value> {
    key.attributes().iter().collect()
}

fn pair(params: &[u8]) -> Pair {
    let template: Attributes =
        [(CKA_EC_PARAMS, Value::Bytes(params.to_vec()))].into_iter().collect();
    let generate = algorithm(CKM_EC_KEY_PAIR_GEN).generate_pair.unwrap();
    assert!(generate.serves(&template));
    let (public, private) = generate.generate_pair(&Params::None, &template).unwrap();
    Pair { public: key(CKO_PUBLIC_KEY, public), private: key(CKO_PRIVATE_KEY, private) }
}

fn printable(name: &str) -> Vec<u8> {
    [&[0x13, name.len().to_le_bytes()[0]], name.as_bytes()].concat()
}

/// A key that the application brings.
fn imported(
    class: u64,
    curve: Curve,
    point: Option<&[u8]>,
    scalar: Option<&[u8]>,
) -> Result<Arc<Key>> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(class));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_EC));
    object.attributes.set(CKA_EC_PARAMS, Value::Bytes(curve.oid().to_vec()));
    if let Some(point) = point {
        object.attributes.set(CKA_EC_POINT, Value::Bytes(point.to_vec()));
    }
    if let Some(scalar) = scalar {
        object.secrets.set(CKA_VALUE, Secret::copy_of(scalar));
    }
    LANES.complete(&mut object)?;
    Ok(key(class, object))
}

fn sign(mechanism: CK_MECHANISM_TYPE, key: &Arc<Key>, data: &[u8]) -> Vec<u8> {
    let sign = algorithm(mechanism).sign.unwrap();
    assert!(sign.serves(key));
    sign.check(Direction::Forward, key, &Params::None).unwrap();
    let mut out = vec![0; sign.length(key, &Params::None)];
    let length = sign.sign(key, &Params::None, data, &mut out).unwrap();
    assert_eq!(length, out.len());
    out
}

fn verify(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    data: &[u8],
    signature: &[u8],
) -> Result<()> {
    let verify = algorithm(mechanism).verify.unwrap();
    verify.check(Direction::Backward, key, &Params::None).unwrap();
    verify.verify(key, &Params::None, data, signature)
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

fn agree(
    mechanism: CK_MECHANISM_TYPE,
    own: &Pair,
    peer: &[u8],
    kdf: u64,
    length: Option<usize>,
) -> Result<Vec<u8>> {
    let derive = algorithm(mechanism).derive.unwrap();
    let public = Bytes::from_slice(peer);
    let params = Params::Ecdh1 { kdf, shared: Bytes::new(), public };
    assert!(derive.serves(&own.private));
    derive.check(&own.private, &params)?;
    let length = length.or_else(|| derive.natural_length(&own.private, &params)).unwrap();
    let later = derive.derive_later(&own.private, &params, length);
    let now = derive.derive(&own.private, &params, &[length], &NoKeys);
    let now = now.map(|keys| keys[0].expose().to_vec());
    let later = later.and_then(|later| {
        let mut out = vec![0; length];
        later.unwrap().finish(&mut out).map(|_| out)
    });
    assert_eq!(later, now);
    now
}

const HASHED: [CK_MECHANISM_TYPE; 9] = [
    CKM_ECDSA_SHA1,
    CKM_ECDSA_SHA224,
    CKM_ECDSA_SHA256,
    CKM_ECDSA_SHA384,
    CKM_ECDSA_SHA512,
    CKM_ECDSA_SHA3_224,
    CKM_ECDSA_SHA3_256,
    CKM_ECDSA_SHA3_384,
    CKM_ECDSA_SHA3_512,
];

#[test]
fn rows_are_sorted_and_none_is_there_twice() {
    let rows = LANES.algorithms();
    assert!(rows.is_sorted_by(|a, b| a.mechanism < b.mechanism));
    for mechanism in HASHED {
        let row = algorithm(mechanism);
        assert_eq!(row.flags() & CKF_EC_F_2M, CKF_EC_F_2M);
        assert!(row.key_sizes.0 <= 163 && row.key_sizes.1 >= 571);
    }
}

#[test]
fn what_a_key_signs_its_public_half_verifies() {
    for curve in Curve::ALL {
        let keys = pair(curve.oid());
        for (at, mechanism) in HASHED.into_iter().enumerate() {
            let message = vec![at.to_le_bytes()[0]; 10 * at];
            let signature = sign(mechanism, &keys.private, &message);
            assert_eq!(signature.len(), 2 * curve.order_length());
            verify(mechanism, &keys.public, &message, &signature).unwrap();
            let other = verify(mechanism, &keys.public, b"other", &signature);
            assert_eq!(other, Err(Error::SIGNATURE_INVALID));
            let short = verify(mechanism, &keys.public, &message, &signature[1..]);
            assert_eq!(short, Err(Error::SIGNATURE_LEN_RANGE));
        }
    }
}

#[test]
fn messages_in_parts_are_the_messages() {
    let keys = pair(Curve::Sect283k1.oid());
    let (sign, check) = (algorithm(CKM_ECDSA_SHA256).sign.unwrap(), HASHED[2]);
    let mut stream = sign.start(Direction::Forward, &keys.private, &Params::None).unwrap();
    stream.update(b"in ").unwrap();
    stream.update(b"parts").unwrap();
    let mut signature = vec![0; sign.length(&keys.private, &Params::None)];
    stream.sign(&mut signature).unwrap();
    verify(check, &keys.public, b"in parts", &signature).unwrap();
    let mut stream = sign.start(Direction::Backward, &keys.public, &Params::None).unwrap();
    stream.update(b"in pa").unwrap();
    stream.update(b"rts").unwrap();
    stream.verify(&signature).unwrap();
    let bare = algorithm(CKM_ECDSA).sign.unwrap();
    let started = bare.start(Direction::Forward, &keys.private, &Params::None);
    assert_eq!(started.err(), Some(Error::FUNCTION_NOT_SUPPORTED));
}

#[test]
fn of_a_long_digest_the_leftmost_bits_count() {
    for curve in Curve::ALL {
        let keys = pair(curve.oid());
        let whole: Vec<u8> = (0..100).map(|byte: u8| byte.wrapping_mul(77)).collect();
        let signature = sign(CKM_ECDSA, &keys.private, &whole);
        for cut in [curve.order_length(), 80, 100] {
            verify(CKM_ECDSA, &keys.public, &whole[..cut], &signature).unwrap();
        }
        let shorter = &whole[..curve.order_length() - 1];
        assert!(verify(CKM_ECDSA, &keys.public, shorter, &signature).is_err());
        // Bits beyond those of the order do not count.
        let mut other = whole[..curve.order_length()].to_vec();
        let unused = 8 * curve.order_length() - curve.order_bits();
        if unused > 0 {
            *other.last_mut().unwrap() ^= 1;
            verify(CKM_ECDSA, &keys.public, &other, &signature).unwrap();
        }
        other[0] ^= 0x80;
        assert!(verify(CKM_ECDSA, &keys.public, &other, &signature).is_err());
        let nothing = verify(CKM_ECDSA, &keys.public, b"", &signature);
        assert_eq!(nothing, Err(Error::DATA_LEN_RANGE));
    }
}

#[test]
fn a_signature_may_leave_out_zeros_of_both_numbers() {
    // The order has three bits in its first byte, so that one signature in sixteen begins with zeros twice.
    let (curve, keys) = (Curve::Sect163k1, pair(Curve::Sect163k1.oid()));
    let length = curve.order_length();
    let signature = (0..10_000)
        .map(|_| sign(CKM_ECDSA, &keys.private, b"digest"))
        .find(|signature| signature[0] == 0 && signature[length] == 0)
        .unwrap();
    let short = [&signature[1..length], &signature[length + 1..]].concat();
    verify(CKM_ECDSA, &keys.public, b"digest", &short).unwrap();
    let long = [&[0], &signature[..length], &[0], &signature[length..]].concat();
    for bad in [&long[..], &[]] {
        let verdict = verify(CKM_ECDSA, &keys.public, b"digest", bad);
        assert_eq!(verdict, Err(Error::SIGNATURE_LEN_RANGE));
    }
}

#[test]
fn both_sides_agree_with_and_without_the_cofactor() {
    for curve in Curve::ALL {
        let (one, two) = (pair(curve.oid()), pair(curve.oid()));
        let point = |pair: &Pair| pair.public.bytes(CKA_EC_POINT).unwrap().to_vec();
        for mechanism in [CKM_ECDH1_DERIVE, CKM_ECDH1_COFACTOR_DERIVE] {
            for (kdf, length) in [
                (CKD_NULL, None),
                (CKD_NULL, Some(16)),
                (CKD_SHA1_KDF, Some(50)),
                (CKD_SHA256_KDF, Some(32)),
                (CKD_SHA3_512_KDF, Some(100)),
                (CKD_SHA384_KDF_SP800, Some(7)),
            ] {
                let left = agree(mechanism, &one, &point(&two), kdf, length).unwrap();
                let right = agree(mechanism, &two, &point(&one), kdf, length).unwrap();
                assert_eq!(left, right);
                assert_eq!(left.len(), length.unwrap_or_else(|| curve.field_length()));
            }
        }
        let raw = &point(&two)[point(&two).len() - 1 - 2 * curve.field_length()..];
        let framed = agree(CKM_ECDH1_DERIVE, &one, &point(&two), CKD_NULL, None).unwrap();
        assert_eq!(agree(CKM_ECDH1_DERIVE, &one, raw, CKD_NULL, None).unwrap(), framed);
        let mut off = raw.to_vec();
        *off.last_mut().unwrap() ^= 1;
        let error = agree(CKM_ECDH1_DERIVE, &one, &off, CKD_NULL, None);
        assert_eq!(error, Err(Error::MECHANISM_PARAM_INVALID));
        let unknown = agree(CKM_ECDH1_DERIVE, &one, raw, 99, Some(16));
        assert_eq!(unknown, Err(Error::MECHANISM_PARAM_INVALID));
    }
}

#[test]
fn keys_come_back_when_they_are_imported() {
    for curve in Curve::ALL {
        let keys = pair(curve.oid());
        let point = keys.public.bytes(CKA_EC_POINT).unwrap();
        let public = imported(CKO_PUBLIC_KEY, curve, Some(point), None).unwrap();
        assert_eq!(shown(&public), shown(&keys.public));
        let raw = &point[point.len() - 1 - 2 * curve.field_length()..];
        let public = imported(CKO_PUBLIC_KEY, curve, Some(raw), None).unwrap();
        assert_eq!(shown(&public), shown(&keys.public));
        let scalar = keys.private.secret(CKA_VALUE).unwrap();
        assert_eq!(scalar.len(), curve.order_length());
        for said in [None, Some(point)] {
            let private = imported(CKO_PRIVATE_KEY, curve, said, Some(scalar)).unwrap();
            assert_eq!(shown(&private), shown(&keys.private));
            assert_eq!(private.secret(CKA_VALUE).unwrap(), scalar);
        }
        let signature = sign(CKM_ECDSA_SHA256, &keys.private, b"message");
        verify(CKM_ECDSA_SHA256, &public, b"message", &signature).unwrap();
    }
}

#[test]
fn bad_keys_are_refused_when_they_are_imported() {
    let curve = Curve::Sect233k1;
    let (keys, others) = (pair(curve.oid()), pair(curve.oid()));
    let point = keys.public.bytes(CKA_EC_POINT).unwrap();
    let scalar = keys.private.secret(CKA_VALUE).unwrap();
    let mut off = point.to_vec();
    *off.last_mut().unwrap() ^= 1;
    for bad in [&off[..], &point[..point.len() - 1], &[0], &[], &[4; 61]] {
        let error = imported(CKO_PUBLIC_KEY, curve, Some(bad), None).err();
        assert_eq!(error, Some(Error::ATTRIBUTE_VALUE_INVALID));
    }
    let error = imported(CKO_PUBLIC_KEY, curve, None, None).err();
    assert_eq!(error, Some(Error::TEMPLATE_INCOMPLETE));
    let error = imported(CKO_PRIVATE_KEY, curve, Some(point), None).err();
    assert_eq!(error, Some(Error::TEMPLATE_INCOMPLETE));
    let other = others.public.bytes(CKA_EC_POINT).unwrap();
    let error = imported(CKO_PRIVATE_KEY, curve, Some(other), Some(scalar)).err();
    assert_eq!(error, Some(Error::TEMPLATE_INCONSISTENT));
    for bad in [&[0; 29][..], &[0xff; 29], &[1; 100], &[]] {
        let error = imported(CKO_PRIVATE_KEY, curve, None, Some(bad)).err();
        assert_eq!(error, Some(Error::ATTRIBUTE_VALUE_INVALID));
    }
}

#[test]
fn private_keys_come_back_from_their_pkcs8_form() {
    for curve in Curve::ALL {
        let keys = pair(curve.oid());
        let der = LANES.encode_private_key(&keys.private).unwrap();
        let back = key(CKO_PRIVATE_KEY, LANES.decode_private_key(der.expose()).unwrap());
        assert_eq!(shown(&back), shown(&keys.private));
        assert!(back.secrets().iter().eq(keys.private.secrets().iter()));
        for damaged in [&der.expose()[..der.len() - 1], &[der.expose(), &[0]].concat(), &[]] {
            let error = LANES.decode_private_key(damaged).unwrap_err();
            assert_eq!(error, Error::WRAPPED_KEY_INVALID);
        }
    }
}

#[test]
fn curves_have_names_too_and_other_curves_are_another_providers() {
    let names = [
        ("K-163", Curve::Sect163k1),
        ("B-163", Curve::Sect163r2),
        ("K-571", Curve::Sect571k1),
        ("B-283", Curve::Sect283r1),
    ];
    let own = Curve::ALL.map(|curve| (curve.name(), curve));
    for (name, curve) in names.into_iter().chain(own) {
        let keys = pair(&printable(name));
        assert_eq!(keys.public.bytes(CKA_EC_PARAMS).unwrap(), curve.oid());
    }
    const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    for params in [P256.to_vec(), printable("P-256"), printable(""), vec![], vec![6, 0]] {
        let template = [(CKA_EC_PARAMS, Value::Bytes(params))].into_iter().collect();
        assert!(!algorithm(CKM_EC_KEY_PAIR_GEN).generate_pair.unwrap().serves(&template));
        let mut object = NewObject { attributes: template, ..NewObject::default() };
        object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_EC));
        assert_eq!(LANES.complete(&mut object), Err(Error::CURVE_NOT_SUPPORTED));
    }
    assert!(!algorithm(CKM_EC_KEY_PAIR_GEN).generate_pair.unwrap().serves(&Attributes::new()));
}

#[test]
fn the_wrong_half_of_a_pair_is_refused() {
    let keys = pair(Curve::Sect409r1.oid());
    let row = algorithm(CKM_ECDSA);
    for (direction, wrong) in
        [(Direction::Forward, &keys.public), (Direction::Backward, &keys.private)]
    {
        let error = row.sign.unwrap().check(direction, wrong, &Params::None);
        assert_eq!(error, Err(Error::KEY_TYPE_INCONSISTENT));
    }
}

#[test]
fn threads_that_wait_share_batches_and_each_has_its_own_answer() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 10;
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for at in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                let curve = [Curve::Sect233k1, Curve::Sect571r1][at % 2];
                let keys = pair(curve.oid());
                barrier.wait();
                for round in 0..ROUNDS {
                    let message = [at, round].map(|n| n.to_le_bytes()[0]);
                    let signature = sign(CKM_ECDSA_SHA512, &keys.private, &message);
                    verify(CKM_ECDSA_SHA512, &keys.public, &message, &signature).unwrap();
                    let wrong = verify(CKM_ECDSA_SHA512, &keys.public, b"wrong", &signature);
                    assert_eq!(wrong, Err(Error::SIGNATURE_INVALID));
                    let own = keys.public.bytes(CKA_EC_POINT).unwrap();
                    agree(CKM_ECDH1_DERIVE, &keys, own, CKD_NULL, None).unwrap();
                }
            });
        }
    });
}

#[test]
fn many_are_begun_and_completed_later() {
    let keys = pair(Curve::Sect283r1.oid());
    let row = algorithm(CKM_ECDSA_SHA256);
    let (signing, verifying) = (row.sign.unwrap(), row.verify.unwrap());
    let messages: Vec<[u8; 1]> = (0..11).map(|byte| [byte]).collect();
    let begun: Vec<_> = messages
        .iter()
        .map(|message| signing.sign_later(&keys.private, &Params::None, message).unwrap().unwrap())
        .collect();
    let signatures: Vec<Vec<u8>> = begun
        .into_iter()
        .map(|mut pending| {
            while !pending.poll() {}
            let mut out = vec![0; signing.length(&keys.private, &Params::None)];
            pending.finish(&mut out).unwrap();
            out
        })
        .collect();
    let begun: Vec<_> = messages
        .iter()
        .zip(signatures.iter().rev())
        .map(|(message, signature)| {
            verifying
                .verify_later(&keys.public, &Params::None, message, signature)
                .unwrap()
                .unwrap()
        })
        .collect();
    for (at, pending) in begun.into_iter().enumerate() {
        let verdict = pending.finish(&mut []);
        // The message in the middle is the only one that met its own signature.
        assert_eq!(verdict.is_ok(), at == 5, "{at}: {verdict:?}");
    }
}
