// SPDX-License-Identifier: Apache-2.0
//! What a kernel leaves in the stack is wiped: below its caller's frames, the stack is as it was painted before, or zero.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc_wrapper::ec::{Curve as EcCurve, EcKey};
use metaslot_awslc_wrapper::ml_dsa::MlDsaKey;
use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_awslc_wrapper::rsa::{Rsa, RsaNumber, RsaNumbers, RsaPadding};
use metaslot_awslc_wrapper::seeded::SeededKey;
use metaslot_lanes::binary::{self, Curve, Derive, Sign};
use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::hash::{self, Hash};
use metaslot_lanes::xmss::{self, Scheme};
use metaslot_lanes::{curve25519, hss, ml_dsa, ml_kem, p256, p384, rsa, slh_dsa};
use metaslot_memory::{wipe_deep_stack, wipe_stack};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is painted, in bytes: far more than any kernel needs.
const REGION: usize = 256 * 1024;
const PAINT: u8 = 0xa5;
const LINE: usize = 64;
/// Frames above those of a kernel, in bytes: requests, keys' places, results.
const ABOVE: usize = 4 * 1024;
/// Beside the frames of the wiping functions themselves, those of what frees results, in lines.
const OTHERS: usize = 2;

static WORST: AtomicUsize = AtomicUsize::new(0);

/// Paints the stack below the caller, or says how many lines below [`ABOVE`] hold something else than paint or zeros.
#[inline(never)]
fn painted(now: bool) -> usize {
    let mut region = MaybeUninit::<[u8; REGION]>::uninit();
    let start: *mut u8 = region.as_mut_ptr().cast();
    let mut left = 0;
    // A frame of this size touches a word of each page when it is made; that is no more than a word of a line.
    for line in (0..REGION - ABOVE).step_by(LINE) {
        let mut changed = 0;
        for offset in line..line + LINE {
            let byte = start.wrapping_add(offset);
            if now {
                // SAFETY: within the array.
                unsafe { byte.write_volatile(PAINT) };
            } else {
                // SAFETY: within the array, which lies where the painted one lay in this thread's stack.
                let there = unsafe { byte.read_volatile() };
                changed += usize::from(![PAINT, 0].contains(&there));
            }
        }
        left += usize::from(changed > 8);
    }
    left
}

fn check(what: &str, run: impl FnOnce()) {
    painted(true);
    run();
    let left = painted(false);
    println!("{what}: {left} lines");
    WORST.fetch_max(left, Ordering::Relaxed);
}

/// The lines of the wiping functions' own frames, of which an optimised build has none.
fn own() -> usize {
    let left = [wipe_stack, wipe_deep_stack].map(|wipe: fn()| {
        painted(true);
        wipe();
        painted(false)
    });
    println!("wiping: {left:?} lines");
    left.into_iter().max().unwrap_or(0)
}

/// Whether this processor has what a kernel needs, which is used nowhere otherwise.
fn has(needs: Cpu, what: &str) -> bool {
    let has = cpu::cpu().has(needs);
    if !has {
        println!("lanes, {what}: not run: this processor lacks its instructions");
    }
    has
}

fn every_kernel() -> usize {
    let own = own();
    for curve in [Curve::Sect233k1, Curve::Sect409r1, Curve::Sect571r1] {
        let keys = binary::generate(curve, 8).unwrap();
        let mut places = vec![vec![0; 2 * curve.order_length()]; 8];
        let digest = [7; 32];
        let mut requests: Vec<_> = keys
            .iter()
            .zip(&mut places)
            .map(|(key, out)| Sign::new(&key.0, &digest, out))
            .collect();
        check(&format!("{} sign", curve.name()), || binary::sign(&mut requests));
        let mut places = vec![vec![0; curve.field_length()]; 8];
        let mut requests: Vec<_> = keys
            .iter()
            .zip(&mut places)
            .map(|(key, out)| Derive::new(&key.0, &keys[0].1, true, out))
            .collect();
        check(&format!("{} derive", curve.name()), || binary::derive(&mut requests));
        check(&format!("{} generate", curve.name()), || drop(binary::generate(curve, 8)));
        let private: Vec<_> = keys.iter().map(|key| &key.0).collect();
        check(&format!("{} public", curve.name()), || drop(binary::public_keys(&private)));
    }
    if has(rsa::NEEDS, "RSA") {
        [1024, 2048, 3072, 4096].into_iter().for_each(rsa_private);
    }
    library();
    curve25519_keys();
    weierstrass();
    for without in [Cpu::NONE, Cpu::AVX512] {
        cpu::mask(without);
        encapsulation();
        lattice_signatures();
    }
    cpu::mask(Cpu::NONE);
    trees();
    macs();
    #[cfg(target_arch = "x86_64")]
    old_ciphers();
    own
}

fn rsa_private(bits: u32) {
    let key = Rsa::generate(bits, &[1, 0, 1]).unwrap();
    let number = |which| {
        let mut bytes = vec![0; key.number_length(which).unwrap()];
        key.write_number(which, &mut bytes).unwrap();
        bytes
    };
    let numbers = RsaNumbers {
        modulus: &number(RsaNumber::Modulus),
        public_exponent: &number(RsaNumber::PublicExponent),
        private_exponent: &number(RsaNumber::PrivateExponent),
        prime_1: &number(RsaNumber::Prime1),
        prime_2: &number(RsaNumber::Prime2),
        exponent_1: &number(RsaNumber::Exponent1),
        exponent_2: &number(RsaNumber::Exponent2),
        coefficient: &number(RsaNumber::Coefficient),
    };
    let key = rsa::PrivateKey::new(&numbers).unwrap();
    let length = numbers.modulus.len();
    let input = vec![3; length - 1];
    let input = [&[0][..], &input].concat();
    let mut places = vec![vec![0; length]; 8];
    let request = |output| rsa::PrivateRequest { key: &key, input: &input, output, result: Ok(()) };
    let mut requests: Vec<_> = places.iter_mut().map(|out| request(out.as_mut_slice())).collect();
    check(&format!("RSA-{bits}"), || rsa::private(&mut requests));
}

/// What goes deep of the library's.
fn library() {
    for bits in [1024, 2048] {
        check(&format!("new key of RSA-{bits}"), || drop(Rsa::generate(bits, &[1, 0, 1]).unwrap()));
        let key = Rsa::generate(bits, &[1, 0, 1]).unwrap();
        let (block, mut out) = (vec![1; key.size() - 11], vec![0; key.size()]);
        check(&format!("RSA-{bits}, the library's"), || {
            key.sign_raw(RsaPadding::Pkcs1, &block, &mut out).unwrap();
        });
    }
    let (key, peer) = (EcKey::generate(EcCurve::P521), EcKey::generate(EcCurve::P521));
    let (key, mut point, mut agreed) = (key.unwrap(), [0; 133], [0; 66]);
    peer.unwrap().write_point(&mut point).unwrap();
    check("P-521 derive", || key.diffie_hellman(&point, &mut agreed).unwrap());
}

fn curve25519_keys() {
    let key = curve25519::X25519Key::new(&[9; 32]);
    let mut secrets = [[0; 32]; 8];
    let peer = [9; 32];
    let mut requests: Vec<_> =
        secrets.iter_mut().map(|out| curve25519::X25519Request::new(&key, &peer, out)).collect();
    check("X25519", || curve25519::x25519(&mut requests));
    let key = curve25519::PrivateKey::new(&[9; 32]).unwrap();
    let mut signatures = [[0; 64]; 16];
    let mut requests: Vec<_> = signatures
        .iter_mut()
        .map(|out| curve25519::SignRequest::new(&key, b"message", out))
        .collect();
    check("Ed25519 sign", || curve25519::sign(&mut requests));
}

fn weierstrass() {
    let scalar = [1; 32];
    let key = p256::PrivateKey::new(&scalar).unwrap();
    let mut places = [[0; 64]; 32];
    let mut requests: Vec<_> =
        places.iter_mut().map(|out| p256::SignRequest::new(&key, &[5; 32], out)).collect();
    check("P-256 sign", || p256::sign(&mut requests));
    let library = EcKey::generate(EcCurve::P256).unwrap();
    let mut point = [0; 65];
    library.write_point(&mut point).unwrap();
    let mut places = [[0; 32]; 16];
    let mut requests: Vec<_> =
        places.iter_mut().map(|out| p256::DeriveRequest::new(&key, &point, out)).collect();
    check("P-256 derive", || p256::derive(&mut requests));
    let key = p384::PrivateKey::new(&[1; 48]).unwrap();
    let mut places = [[0; 96]; 32];
    let mut requests: Vec<_> =
        places.iter_mut().map(|out| p384::SignRequest::new(&key, &[5; 32], out)).collect();
    check("P-384 sign", || p384::sign(&mut requests));
    let library = EcKey::generate(EcCurve::P384).unwrap();
    let mut point = [0; 97];
    library.write_point(&mut point).unwrap();
    let mut places = [[0; 48]; 16];
    let mut requests: Vec<_> =
        places.iter_mut().map(|out| p384::DeriveRequest::new(&key, &point, out)).collect();
    check("P-384 derive", || p384::derive(&mut requests));
}

fn encapsulation() {
    use ml_kem::{PrivateKey, PublicKey, Set};
    for set in [Set::Ml512, Set::Ml768, Set::Ml1024] {
        let made = MlKemKey::of_seed(set, &[7; 64]).unwrap();
        let (key, public) = (made.expanded().unwrap(), made.public_bytes().unwrap());
        check(&format!("{set:?} key"), || drop(PrivateKey::new(set, key.expose())));
        let key = PrivateKey::new(set, key.expose()).unwrap();
        let mut ciphertext = vec![5; set.ciphertext_length()];
        check(&format!("{set:?}"), || drop(key.decapsulate(&ciphertext)));
        let key = PublicKey::new(set, &public).unwrap();
        check(&format!("{set:?}, other way"), || drop(key.encapsulate(&mut ciphertext)));
    }
}

fn lattice_signatures() {
    if !ml_dsa::available() {
        return;
    }
    for set in ml_dsa::Set::ALL {
        let key = MlDsaKey::of_seed(set, &[7; 32]).unwrap().expanded().unwrap();
        check(&format!("{set:?} key"), || drop(ml_dsa::PrivateKey::new(set, key.expose())));
        let key = ml_dsa::PrivateKey::new(set, key.expose()).unwrap();
        let mut signature = vec![0; set.signature_length()];
        check(&format!("{set:?} sign"), || {
            key.sign(&[5; ml_dsa::MU_LENGTH], &[9; ml_dsa::RANDOM_LENGTH], &mut signature).unwrap();
        });
    }
}

fn trees() {
    // Of SHA-256, SHA-512 and SHAKE256.
    for number in [2, 10, 42] {
        let set = xmss::Set::new(Scheme::Multi, number).unwrap();
        let seeds = vec![7; set.seeds_length()];
        check(&format!("XMSS {number} key"), || drop(xmss::Private::new(&set, &seeds)));
        let mut key = xmss::Private::new(&set, &seeds);
        check(&format!("XMSS {number}"), || drop(key.sign(77_777, &[b"message"])));
    }
    // Of 24 bytes and of 32, with digits of eight bits.
    for (tree, chain) in [(10, 8), (5, 4)] {
        let set = hss::Set::new(tree, chain).unwrap();
        let seed = vec![7; set.node];
        check(&format!("HSS {tree} key"), || drop(hss::Private::new(&[set], &seed, &[1; hss::ID])));
        let mut key = hss::Private::new(&[set], &seed, &[1; hss::ID]);
        check(&format!("HSS {tree}"), || drop(key.sign(7, &[b"message"])));
    }
    for name in ["SLH-DSA-SHA2-128f", "SLH-DSA-SHA2-192f", "SLH-DSA-SHAKE-128f"] {
        let set = slh_dsa::Set::all().iter().find(|set| set.name == name).unwrap();
        let private = vec![7; set.private_length()];
        let mut signature = vec![0; set.signature_length()];
        check(name, || slh_dsa::sign(set, &private, None, &[b"message"], &mut signature).unwrap());
    }
}

fn macs() {
    for hash in Hash::ALL.into_iter().filter(|hash| hash::lanes(*hash) > 0) {
        check(&format!("HMAC key, {hash:?}"), || drop(hash::Key::new(hash, &[9; 20]).unwrap()));
        let key = hash::Key::new(hash, &[9; 20]).unwrap();
        let mut places = vec![vec![0; hash.length()]; 16];
        let mut requests: Vec<_> = places
            .iter_mut()
            .map(|output| hash::MacRequest { key: &key, data: &[7; 1000], output })
            .collect();
        check(&format!("HMAC, {hash:?}"), || hash::hmac(hash, &mut requests));
    }
}

#[cfg(target_arch = "x86_64")]
fn old_ciphers() {
    use metaslot_lanes::data::{Data, Way};
    use metaslot_lanes::{chacha, des, rc4};
    let key = des::Key::new(&[0x31; 24]).unwrap();
    let mut data = vec![5; 8192];
    check("3DES key", || drop(des::Key::new(&[0x31; 24]).unwrap()));
    check("3DES-ECB", || key.ecb(Way::Encrypt, Data::in_place(&mut data)));
    check("3DES-CBC decryption", || key.cbc_decrypt(&mut [1; 8], Data::in_place(&mut data)));
    let mut places = vec![(vec![5; 1024], [1; 8]); 64];
    let mut streams: Vec<_> = places
        .iter_mut()
        .map(|(data, iv)| des::Stream { key: &key, iv, data: Data::in_place(data) })
        .collect();
    let mut lanes = des::Lanes::new();
    check("3DES-CBC encryption", || lanes.cbc_encrypt(&mut streams));
    let mut states: Vec<_> = (0..4).map(|at| rc4::Rc4::new(&[at; 16]).unwrap()).collect();
    let mut places = vec![vec![5; 1024]; 4];
    let mut streams: Vec<_> = states
        .iter_mut()
        .zip(&mut places)
        .map(|(state, data)| rc4::Stream { state, data: Data::in_place(data) })
        .collect();
    let mut alone = rc4::Rc4::new(&[9; 16]).unwrap();
    let mut text = vec![5; 1024];
    check("RC4", || alone.apply(Data::in_place(&mut text)));
    check("RC4, interleaved", || rc4::apply(&mut streams));
    let mut sealed = vec![0; 8192];
    let mut tag = [0; chacha::TAG];
    if !has(chacha::NEEDS, "ChaCha20-Poly1305") {
        return;
    }
    check("ChaCha20-Poly1305", || {
        tag = chacha::seal(&[7; 32], &[1; 12], b"aad", &data, &mut sealed)
    });
    check("ChaCha20-Poly1305 opened", || {
        assert!(chacha::open(&[7; 32], &[1; 12], b"aad", &sealed, &tag, &mut data));
    });
}

#[test]
fn what_kernels_leave_in_the_stack_is_wiped() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(every_kernel).unwrap();
    let own = thread.join().unwrap();
    assert!(WORST.load(Ordering::Relaxed) <= own + OTHERS, "something is left in the stack");
}
