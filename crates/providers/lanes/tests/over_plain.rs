// SPDX-License-Identifier: Apache-2.0
//! Every row over a plain provider's: many results at a time, and those of one call, are what the plain row makes or accepts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_lanes::chacha;
use metaslot_lanes::cpu::cpu;
use metaslot_lanes::provider::Lanes;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Keys, Pending, Provider, Signature};
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Secrets, Value};
use std::sync::{Arc, Barrier};
use std::thread;

static LANES: Lanes = Lanes::beside(&AWSLC);

/// More than any kernel has lanes but that for DES.
const MANY: usize = 40;

/// The rows of both providers for one mechanism.
struct Rows {
    lanes: &'static Algorithm,
    plain: &'static Algorithm,
}

fn rows() -> impl Iterator<Item = Rows> {
    LANES.algorithms().iter().filter_map(|lanes| {
        let plain = AWSLC.algorithms().iter().find(|row| row.mechanism == lanes.mechanism)?;
        Some(Rows { lanes, plain })
    })
}

struct Pair {
    private: Arc<Key>,
    public: Arc<Key>,
}

fn key(class: u64, key_type: u64, object: NewObject) -> Arc<Key> {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

fn pair(mechanism: CK_MECHANISM_TYPE, key_type: u64, template: (u64, Value)) -> Pair {
    let row = AWSLC.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap();
    let template: Attributes = [template].into_iter().collect();
    let (public, private) =
        row.generate_pair.unwrap().generate_pair(&Params::None, &template).unwrap();
    Pair {
        private: key(CKO_PRIVATE_KEY, key_type, private),
        public: key(CKO_PUBLIC_KEY, key_type, public),
    }
}

fn secret(key_type: u64, length: usize) -> Pair {
    let mut secrets = Secrets::new();
    let mut value = Secret::zeroed(length);
    AWSLC.random(value.expose_mut()).unwrap();
    secrets.set(CKA_VALUE, value);
    let key = key(CKO_SECRET_KEY, key_type, NewObject { attributes: Attributes::new(), secrets });
    Pair { private: Arc::clone(&key), public: key }
}

const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x6e];

fn on(curve: &[u8]) -> (u64, Value) {
    (CKA_EC_PARAMS, Value::Bytes(curve.to_vec()))
}

/// Keys of each kind, all different.
fn signers() -> Vec<Vec<Pair>> {
    let rsa = |bits| {
        let pair =
            || pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, (CKA_MODULUS_BITS, Value::Ulong(bits)));
        (0..3).map(|_| pair()).collect()
    };
    let curve =
        |mechanism, key_type, curve| (0..5).map(|_| pair(mechanism, key_type, on(curve))).collect();
    let lattice = |set| {
        let set = (CKA_PARAMETER_SET, Value::Ulong(set));
        (0..3).map(|_| pair(CKM_ML_DSA_KEY_PAIR_GEN, CKK_ML_DSA, set.clone())).collect()
    };
    vec![
        rsa(1024),
        rsa(2048),
        curve(CKM_EC_KEY_PAIR_GEN, CKK_EC, P256),
        curve(CKM_EC_KEY_PAIR_GEN, CKK_EC, P384),
        curve(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, ED25519),
        (0..5).map(|_| secret(CKK_GENERIC_SECRET, 32)).collect(),
        lattice(CKP_ML_DSA_44),
        lattice(CKP_ML_DSA_65),
        lattice(CKP_ML_DSA_87),
    ]
}

/// Parameters of signatures, of which a mechanism takes the first that its check lets pass.
fn parameters() -> Vec<Params> {
    let pss = |(hash, mgf)| Params::Pss { hash, mgf, salt_length: 20 };
    let hashes = [
        (CKM_SHA256, CKG_MGF1_SHA256),
        (CKM_SHA_1, CKG_MGF1_SHA1),
        (CKM_SHA224, CKG_MGF1_SHA224),
        (CKM_SHA384, CKG_MGF1_SHA384),
        (CKM_SHA512, CKG_MGF1_SHA512),
        (CKM_SHA3_224, CKG_MGF1_SHA3_224),
        (CKM_SHA3_256, CKG_MGF1_SHA3_256),
        (CKM_SHA3_384, CKG_MGF1_SHA3_384),
        (CKM_SHA3_512, CKG_MGF1_SHA3_512),
    ];
    let digested = Params::HashSignContext {
        hedge: CKH_HEDGE_PREFERRED,
        context: vec![7; 9].into(),
        hash: CKM_SHA256,
    };
    let others = [Params::None, Params::Ulong(10), digested];
    others.into_iter().chain(hashes.map(pss)).collect()
}

/// The first takes what else is there along, in batches.
fn all(pending: impl IntoIterator<Item = Box<dyn Pending>>, length: usize) -> Vec<Result<Vec<u8>>> {
    let finish = |pending: Box<dyn Pending>| {
        let mut out = vec![0; length];
        let length = pending.finish(&mut out)?;
        out.truncate(length);
        Ok(out)
    };
    pending.into_iter().map(finish).collect()
}

fn message(at: usize, length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 31 + at * 7).to_le_bytes()[0]).collect()
}

#[test]
fn signatures_are_what_the_plain_provider_makes_and_accepts() {
    let (signers, parameters) = (signers(), parameters());
    for Rows { lanes, plain } in rows() {
        let (Some(sign), Some(accept)) = (lanes.sign, plain.verify) else { continue };
        for pairs in &signers {
            let key = &pairs[0].private;
            let checked = |params: &&Params| {
                plain.sign.unwrap().check(Direction::Forward, key, params).is_ok()
                    && accept.check(Direction::Backward, &pairs[0].public, params).is_ok()
            };
            let Some(params) = parameters.iter().find(checked) else { continue };
            if !sign.serves(key) {
                continue;
            }
            let mechanism = lanes.mechanism;
            let length = match key.key_type() {
                CKK_GENERIC_SECRET => 2000,
                _ if mechanism == CKM_ML_DSA_EXTERNAL_MU => 64,
                _ => 32,
            };
            let both = || pairs.iter().cycle().take(MANY).enumerate();
            for pair in pairs {
                sign.check(Direction::Forward, &pair.private, params).unwrap();
            }
            let later = |(at, pair): (usize, &Pair)| {
                sign.sign_later(&pair.private, params, &message(at, length)).unwrap()
            };
            let later: Vec<_> = both().filter_map(later).collect();
            assert!(later.is_empty() || later.len() == MANY, "{mechanism:#x}");
            let room = sign.length(key, params);
            let mut signatures = all(later, room);
            let mut now = vec![0; room];
            let made = sign.sign(key, params, &message(0, length), &mut now).unwrap();
            assert_eq!(made, room);
            for (signature, (at, pair)) in signatures.iter().zip(both()) {
                let signature = signature.as_ref().unwrap();
                accept.check(Direction::Backward, &pair.public, params).unwrap();
                accept.verify(&pair.public, params, &message(at, length), signature).unwrap();
            }
            accept.check(Direction::Backward, &pairs[0].public, params).unwrap();
            accept.verify(&pairs[0].public, params, &message(0, length), &now).unwrap();
            signatures.push(Ok(now));
            judged(lanes, pairs, params, length, &signatures);
        }
    }
}

/// Every third signature is changed before it is judged.
fn judged(
    lanes: &Algorithm,
    pairs: &[Pair],
    params: &Params,
    length: usize,
    signatures: &[Result<Vec<u8>>],
) {
    // Where lanes only sign, others verify.
    let Some(verify) = lanes.verify else { return };
    for pair in pairs {
        verify.check(Direction::Backward, &pair.public, params).unwrap();
    }
    let changed = |at: usize| {
        let mut signature = signatures[at].clone().unwrap();
        let last = signature.len() - 1;
        signature[last] ^= u8::from(at % 3 == 1);
        signature
    };
    let works = || pairs.iter().cycle().take(signatures.len() - 1).enumerate();
    let later = works().filter_map(|(at, pair)| {
        verify.verify_later(&pair.public, params, &message(at, length), &changed(at)).unwrap()
    });
    let later: Vec<_> = later.collect();
    let right = |at| if at % 3 == 1 { Err(Error::SIGNATURE_INVALID) } else { Ok(Vec::new()) };
    for (at, answer) in all(later, 0).into_iter().enumerate() {
        assert_eq!(answer, right(at), "{:#x}: {at}", lanes.mechanism);
    }
    for (at, pair) in works() {
        let answer = verify.verify(&pair.public, params, &message(at, length), &changed(at));
        assert_eq!(answer, right(at).map(drop), "{:#x}: {at}", lanes.mechanism);
    }
}

#[test]
fn bare_numbers_are_raised_or_refused_as_by_the_plain_provider() {
    let rsa = pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, (CKA_MODULUS_BITS, Value::Ulong(1024)));
    let Rows { lanes, plain } = rows().find(|rows| rows.lanes.mechanism == CKM_RSA_X_509).unwrap();
    let (lanes, plain) = (lanes.sign.unwrap(), plain.sign.unwrap());
    let modulus = rsa.private.bytes(CKA_MODULUS).unwrap().to_vec();
    // The modulus is odd.
    let mut last = modulus.clone();
    last[127] -= 1;
    for number in [vec![], vec![1], last, modulus, vec![2], vec![0xff; 128], vec![1; 129]] {
        let sign = |row: &dyn Signature| {
            row.check(Direction::Forward, &rsa.private, &Params::None)?;
            let mut out = vec![0; 128];
            row.sign(&rsa.private, &Params::None, &number, &mut out).map(|_| out)
        };
        let right = sign(plain);
        assert_eq!(sign(lanes), right, "{number:02x?}");
        let later = |_| lanes.sign_later(&rsa.private, &Params::None, &number);
        let answers = match (0..9).map(later).collect::<Result<Vec<_>>>() {
            Ok(later) => all(later.into_iter().flatten(), 128),
            Err(error) => vec![Err(error)],
        };
        for answer in answers {
            assert_eq!(answer, right, "{number:02x?}");
        }
    }
}

#[test]
fn digests_are_the_plain_providers() {
    for Rows { lanes, plain } in rows() {
        let (Some(lanes), Some(plain)) = (lanes.digest, plain.digest) else { continue };
        let messages: Vec<_> = (0..MANY).map(|at| message(at, 1500 + 311 * at)).collect();
        let later = messages.iter().filter_map(|message| lanes.digest_later(message).unwrap());
        let later = all(later.collect::<Vec<_>>(), lanes.length());
        for (at, message) in messages.iter().enumerate() {
            let (mut now, mut right) = (vec![0; lanes.length()], vec![0; plain.length()]);
            plain.digest(message, &mut right).unwrap();
            lanes.digest(message, &mut now).unwrap();
            assert_eq!(now, right);
            assert!(later.get(at).is_none_or(|later| later.as_ref().unwrap() == &right));
        }
    }
}

#[test]
fn ciphertexts_are_the_plain_providers() {
    let keys = [
        (0..5).map(|_| secret(CKK_AES, 16)).collect::<Vec<_>>(),
        (0..5).map(|_| secret(CKK_DES3, 24)).collect(),
        (0..5).map(|_| secret(CKK_RC4, 16)).collect(),
        (0..5).map(|_| secret(CKK_CHACHA20, 32)).collect(),
    ];
    let (nonce, aad) = (Bytes::from_slice(&[3; 12]), Bytes::from_slice(b"beside it"));
    let parameters = [
        Params::None,
        Params::Iv(Bytes::from_slice(&[3; 8])),
        Params::Iv(Bytes::from_slice(&[3; 16])),
        Params::Ctr { bits: 32, block: [9; 16] },
        Params::ChaCha20Poly1305 { nonce, aad },
    ];
    for Rows { lanes, plain } in rows() {
        let (Some(cipher), Some(plain)) = (lanes.encrypt, plain.encrypt) else { continue };
        for keys in &keys {
            let taken = |params: &&Params| {
                plain.check(Direction::Forward, &keys[0].private, params).is_ok()
            };
            let Some(params) = parameters.iter().find(taken) else { continue };
            if !cipher.serves(&keys[0].private) {
                continue;
            }
            let works = || keys.iter().cycle().take(MANY).enumerate();
            let text = |at| message(at, 4000 + 48 * at);
            let later = works().filter_map(|(at, key)| {
                cipher.check(Direction::Forward, &key.private, params).unwrap();
                cipher.run_later(Direction::Forward, &key.private, params, &text(at)).unwrap()
            });
            let later = all(later.collect::<Vec<_>>(), 8000);
            for (at, key) in works() {
                let run = |cipher: &dyn Cipher, direction, text: &[u8]| {
                    let room = cipher.length(direction, &key.private, params, text.len()).unwrap();
                    let mut out = vec![0; room];
                    let length =
                        cipher.run(direction, &key.private, params, text, &mut out).unwrap();
                    out.truncate(length);
                    out
                };
                let right = run(plain, Direction::Forward, &text(at));
                assert_eq!(run(cipher, Direction::Forward, &text(at)), right);
                assert_eq!(run(cipher, Direction::Backward, &right), text(at));
                assert!(later.get(at).is_none_or(|later| later.as_ref().unwrap() == &right));
            }
        }
    }
}

#[test]
fn a_wrong_tag_is_refused_as_by_the_plain_provider() {
    if !cpu().has(chacha::NEEDS) {
        return println!(
            "lanes, a wrong tag: not run: this processor lacks the kernel's instructions"
        );
    }
    let key = secret(CKK_CHACHA20, 32).private;
    let params = Params::ChaCha20Poly1305 { nonce: Bytes::from_slice(&[3; 12]), aad: Bytes::new() };
    let rows = rows().find(|rows| rows.lanes.mechanism == CKM_CHACHA20_POLY1305).unwrap();
    for length in [0, 1, 15, 16, 17, 100, 5000] {
        let opened = |row: &Algorithm| {
            let mut out = vec![7; length];
            let sealed = message(3, length);
            let said =
                row.decrypt.unwrap().run(Direction::Backward, &key, &params, &sealed, &mut out);
            (said, out.iter().all(|byte| *byte == 7))
        };
        let ours = opened(rows.lanes);
        assert_eq!(ours.0, opened(rows.plain).0, "{length}");
        assert!(ours.0.is_err() && ours.1, "{length}: written");
    }
}

struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

#[test]
fn agreements_of_many_threads_are_the_plain_providers() {
    let curves = [
        (CKM_EC_KEY_PAIR_GEN, CKK_EC, P256),
        (CKM_EC_KEY_PAIR_GEN, CKK_EC, P384),
        (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, X25519),
    ];
    for Rows { lanes, plain } in rows() {
        let (Some(lanes), Some(plain)) = (lanes.derive, plain.derive) else { continue };
        for (mechanism, key_type, curve) in curves {
            let pairs: Vec<_> = (0..MANY).map(|_| pair(mechanism, key_type, on(curve))).collect();
            if !lanes.serves(&pairs[0].private) {
                continue;
            }
            let barrier = Barrier::new(MANY);
            let agree = |at: usize| {
                let key = &pairs[at].private;
                let public = pairs[(at + 1) % MANY].public.bytes(CKA_EC_POINT).unwrap();
                let mut public = Bytes::from_slice(public);
                // Every third peer sends no point.
                if at % 3 == 1 {
                    public.fill(0);
                }
                let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
                lanes.check(key, &params).unwrap();
                let length = lanes.natural_length(key, &params).unwrap();
                barrier.wait();
                for _ in 0..20 {
                    let secrets = lanes.derive(key, &params, &[length], &NoKeys);
                    let right = plain.derive(key, &params, &[length], &NoKeys);
                    let shown = |secrets: Vec<Secret>| secrets[0].expose().to_vec();
                    assert_eq!(secrets.map(shown), right.map(shown));
                }
            };
            thread::scope(|scope| {
                for at in 0..MANY {
                    scope.spawn(move || agree(at));
                }
            });
        }
    }
}

#[test]
fn agreements_that_are_completed_later_are_the_plain_providers() {
    let curves = [
        (CKM_EC_KEY_PAIR_GEN, CKK_EC, P256),
        (CKM_EC_KEY_PAIR_GEN, CKK_EC, P384),
        (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, X25519),
    ];
    for Rows { lanes, plain } in rows() {
        let (Some(lanes), Some(plain)) = (lanes.derive, plain.derive) else { continue };
        for (mechanism, key_type, curve) in curves {
            let pairs: Vec<_> = (0..MANY).map(|_| pair(mechanism, key_type, on(curve))).collect();
            if !lanes.serves(&pairs[0].private) {
                continue;
            }
            for (kdf, length) in [(CKD_NULL, 32), (CKD_NULL, 16), (CKD_SHA256_KDF, 80)] {
                let params = |at: usize| {
                    let public = pairs[(at + 1) % MANY].public.bytes(CKA_EC_POINT).unwrap();
                    let mut public = Bytes::from_slice(public);
                    // Every third peer sends no point.
                    if at % 3 == 1 {
                        public.fill(0);
                    }
                    let shared = if kdf == CKD_NULL { &[][..] } else { b"shared" };
                    Params::Ecdh1 { kdf, shared: shared.into(), public }
                };
                let key = |at: usize| &pairs[at].private;
                let later = |at| lanes.derive_later(key(at), &params(at), length).unwrap().unwrap();
                let later: Vec<_> = (0..MANY).map(later).collect();
                for (at, secret) in all(later, length).into_iter().enumerate() {
                    let right = plain.derive(key(at), &params(at), &[length], &NoKeys);
                    assert_eq!(secret, right.map(|right| right[0].expose().to_vec()));
                }
            }
            let public = pairs[1].public.bytes(CKA_EC_POINT).unwrap().into();
            let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
            let longer = lanes.derive_later(&pairs[0].private, &params, 49);
            assert_eq!(longer.err(), Some(Error::KEY_SIZE_RANGE));
        }
    }
}
