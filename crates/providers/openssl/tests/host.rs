// SPDX-License-Identifier: Apache-2.0
//! What hosts were promised holds for OpenSSL too: forks at any moment, small stacks, protected keys, and nothing that runs by itself.
#![cfg(all(feature = "library", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl::{OPENSSL, fork};
use metaslot_spi::provider::{Algorithm, Cipher, Derive, Direction, Keys, Provider, Signature};
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

fn row(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    OPENSSL.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap()
}

/// What encrypts and verifies, and what decrypts and signs.
struct Pair {
    public: Arc<Key>,
    private: Arc<Key>,
}

fn key(class: u64, key_type: u64, object: NewObject) -> Arc<Key> {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// A key of each kind.
fn keys() -> Vec<Pair> {
    let mut object = NewObject::default();
    let value: Vec<u8> = (1..=64).collect();
    object.secrets.set(CKA_VALUE, Secret::copy_of(&value[..32]));
    let secret = key(CKO_SECRET_KEY, CKK_AES, object);
    let mut object = NewObject::default();
    object.secrets.set(CKA_VALUE, Secret::copy_of(&value));
    let xts = key(CKO_SECRET_KEY, CKK_AES_XTS, object);
    let mut keys: Vec<_> =
        [secret, xts].map(|key| Pair { public: Arc::clone(&key), private: key }).into();
    keys.extend(pairs().iter().map(|bytes| Pair {
        public: bytes.key(CKO_PUBLIC_KEY),
        private: bytes.key(CKO_PRIVATE_KEY),
    }));
    keys
}

/// What a pair is made of, where children find it too.
struct PairBytes {
    key_type: u64,
    shown: Attributes,
    secrets: Vec<(u64, Vec<u8>)>,
}

impl PairBytes {
    /// AWS-LC makes it where OpenSSL does not.
    fn new(mechanism: CK_MECHANISM_TYPE, key_type: u64, wanted: (u64, Value)) -> Self {
        let mut rows = OPENSSL.algorithms().iter().chain(AWSLC.algorithms());
        let row = rows.find(|row| row.mechanism == mechanism).unwrap();
        let template: Attributes = [wanted].into_iter().collect();
        let made = row.generate_pair.unwrap().generate_pair(&Params::None, &template).unwrap();
        let NewObject { attributes, secrets } = made.1;
        let secrets = secrets.iter().map(|(number, value)| (number, value.to_vec())).collect();
        Self { key_type, shown: attributes, secrets }
    }

    fn key(&self, class: u64) -> Arc<Key> {
        let mut object = NewObject { attributes: self.shown.clone(), ..NewObject::default() };
        let secrets = if class == CKO_PRIVATE_KEY { &self.secrets[..] } else { &[] };
        for (number, value) in secrets {
            object.secrets.set(*number, Secret::copy_of(value));
        }
        key(class, self.key_type, object)
    }
}

/// Made once, and before any fork.
fn pairs() -> &'static [PairBytes] {
    static PAIRS: OnceLock<Vec<PairBytes>> = OnceLock::new();
    PAIRS.get_or_init(|| {
        let bits = (CKA_MODULUS_BITS, Value::Ulong(1024));
        let mut pairs = vec![PairBytes::new(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, bits)];
        pairs.extend(CURVES.iter().map(|(mechanism, key_type, params)| {
            PairBytes::new(*mechanism, *key_type, (CKA_EC_PARAMS, Value::Bytes(params.to_vec())))
        }));
        pairs
    })
}

/// P-256, brainpoolP256r1, both of RFC 8032, both of RFC 7748.
const CURVES: [(CK_MECHANISM_TYPE, u64, &[u8]); 6] = [
    (CKM_EC_KEY_PAIR_GEN, CKK_EC, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]),
    (CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS, CKK_EC, &[6, 9, 0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7]),
    (CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &[6, 3, 0x2b, 0x65, 0x70]),
    (CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &[6, 3, 0x2b, 0x65, 0x71]),
    (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &[6, 3, 0x2b, 0x65, 0x6e]),
    (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &[6, 3, 0x2b, 0x65, 0x6f]),
];

/// Parameters, of which a mechanism takes the first that its check lets pass.
fn params() -> Vec<Params> {
    let nonce = |length| Bytes::from_vec(vec![7; length]);
    let aad = Bytes::new;
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
    let others = [
        Params::None,
        Params::Ulong(10),
        Params::Iv(nonce(16)),
        Params::Ctr { bits: 128, block: [7; 16] },
        Params::Gcm { iv: nonce(12), aad: aad(), tag_bits: 128 },
        Params::Ccm { data_length: 32, nonce: nonce(12), aad: aad(), mac_length: 16 },
        Params::ChaCha20Poly1305 { nonce: nonce(12), aad: aad() },
        Params::Iv(nonce(12)),
        Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA1, label: aad() },
    ];
    others.into_iter().chain(hashes.map(pss)).collect()
}

/// Every operation, in parts where it has them.
fn everything() {
    let (keys, params, data) = (keys(), params(), [9; 32]);
    for row in OPENSSL.algorithms() {
        if let Some(digest) = row.digest {
            let mut out = vec![0; digest.length()];
            digest.digest(&data, &mut out).unwrap();
            digest.start().unwrap().update(&data).unwrap();
        }
        let kinds = MechanismRow::find(row.mechanism).unwrap().keys;
        let fits = |keys: &&Pair| {
            let Pair { private, .. } = keys;
            private.class() == CKO_SECRET_KEY || kinds.contains(&private.key_type())
        };
        let keys = keys.iter().filter(fits);
        let mut served = row.digest.is_some();
        if let Some(generate) = row.generate_pair {
            for (_, _, params) in CURVES.iter().filter(|curve| curve.0 == row.mechanism) {
                let params = (CKA_EC_PARAMS, Value::Bytes(params.to_vec()));
                let template = [params].into_iter().collect();
                generate.generate_pair(&Params::None, &template).unwrap();
                served = true;
            }
        }
        for keys in keys.clone() {
            served |= row.derive.is_some_and(|derive| agrees(derive, keys));
        }
        for (keys, params) in keys.flat_map(|keys| params.iter().map(move |p| (keys, p))) {
            served |=
                row.sign.is_some_and(|sign| signs(sign, row.verify.unwrap(), keys, params, &data));
            served |= row.encrypt.is_some_and(|row_encrypt| {
                encrypts(row_encrypt, row.decrypt.unwrap(), keys, params, &data)
            });
        }
        assert!(served, "{:#x}", row.mechanism);
    }
}

/// Whether the mechanism is for such a key and such parameters; if so it signs and verifies.
fn signs(
    sign: &dyn Signature,
    verify: &dyn Signature,
    keys: &Pair,
    params: &Params,
    data: &[u8],
) -> bool {
    if sign.check(Direction::Forward, &keys.private, params).is_err() {
        return false;
    }
    let mut out = vec![0; sign.length(&keys.private, params)];
    let length = match sign.sign(&keys.private, params, data, &mut out) {
        // PSS over a digest of another length.
        Err(Error::DATA_LEN_RANGE) => return false,
        signed => signed.unwrap(),
    };
    verify.verify(&keys.public, params, data, &out[..length]).unwrap();
    if let Ok(mut stream) = sign.start(Direction::Forward, &keys.private, params) {
        stream.update(data).unwrap();
        stream.sign(&mut out).unwrap();
    }
    true
}

/// Whether the mechanism is for such a key; if so it agrees with itself.
fn agrees(derive: &dyn Derive, Pair { public, private }: &Pair) -> bool {
    let Ok(point) = public.bytes(CKA_EC_POINT) else { return false };
    let public = Bytes::from_slice(point);
    let params = Params::Ecdh1 { kdf: CKD_SHA256_KDF, shared: Bytes::new(), public };
    let there = derive.check(private, &params).is_ok();
    if there {
        derive.derive(private, &params, &[40], &NoKeys).unwrap();
    }
    there
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

/// The same with encryption and decryption.
fn encrypts(
    encrypt: &dyn Cipher,
    decrypt: &dyn Cipher,
    keys: &Pair,
    params: &Params,
    data: &[u8],
) -> bool {
    let (forward, backward) = (Direction::Forward, Direction::Backward);
    if encrypt.check(forward, &keys.public, params).is_err() {
        return false;
    }
    let mut out = vec![0; encrypt.length(forward, &keys.public, params, data.len()).unwrap()];
    let length = encrypt.run(forward, &keys.public, params, data, &mut out).unwrap();
    let mut back = vec![0; decrypt.length(backward, &keys.private, params, length).unwrap()];
    let length = decrypt.run(backward, &keys.private, params, &out[..length], &mut back).unwrap();
    assert_eq!(back[..length], *data);
    true
}

/// Runs `body` in a child, which must end well.
fn in_child(body: impl FnOnce() + std::panic::UnwindSafe) {
    pairs();
    metaslot_awslc_wrapper::fork::before();
    fork::before();
    // SAFETY: the child uses this crate's own state and exits.
    let child = unsafe { libc::fork() };
    fork::after();
    if child == 0 {
        // A child that waits for a lock of its parent's ends here.
        // SAFETY: only a time is set.
        unsafe { libc::alarm(60) };
        let fine = std::panic::catch_unwind(body).is_ok();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = -1;
    // SAFETY: `status` is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

#[test]
fn children_of_a_busy_process_can_do_everything() {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // Also where an assertion fails.
        let _stop = Stop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    everything();
                }
            });
        }
        for _ in 0..20 {
            in_child(|| {
                everything();
                in_child(everything);
            });
        }
    });
}

#[test]
fn small_stacks_are_large_enough() {
    let small = thread::Builder::new().stack_size(128 * 1024).spawn(everything).unwrap();
    small.join().unwrap();
}

#[test]
fn one_thread_does_the_work_and_no_file_is_open() {
    in_child(|| {
        let count = |directory| std::fs::read_dir(directory).unwrap().count();
        let before = (count("/proc/self/task"), count("/proc/self/fd"));
        everything();
        assert_eq!((count("/proc/self/task"), count("/proc/self/fd")), before);
    });
}

/// What the library keeps would be wiped in a child if it lay in the arena, and a key would not if it lay elsewhere.
#[test]
fn keys_and_states_are_in_the_arena_and_nothing_else_is() {
    // A child has an arena of its own, and no thread beside this one.
    in_child(|| {
        let live = || metaslot_memory::stats().live;
        // AWS-LC keeps its random generator there.
        AWSLC.random(&mut [0; 16]).unwrap();
        let least = live();
        let (keys, params) = (keys(), params());
        let bare = live();
        for (mechanism, keys) in [CKM_AES_GCM, CKM_AES_XTS, CKM_RSA_PKCS].into_iter().zip(&keys) {
            let decrypt = row(mechanism).decrypt.unwrap();
            let fits = |params: &&Params| {
                decrypt.check(Direction::Backward, &keys.private, params).is_ok()
            };
            assert!(params.iter().any(|params| fits(&params)));
        }
        assert!(live() > bare, "their forms are in the arena");
        drop(keys);
        everything();
        assert_eq!(live(), least, "and go with them");
        let digest = row(CKM_SHA256).digest.unwrap().start().unwrap();
        assert!(live() > least);
        drop(digest);
        assert_eq!(live(), least);
    });
}
