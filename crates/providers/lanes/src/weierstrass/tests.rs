// SPDX-License-Identifier: Apache-2.0
//! Both curves against the library: random inputs, and the edges.

use super::kernel::sign::sign_with;
use super::{DeriveRequest, PrivateKey, PublicKey, SignRequest, VerifyRequest};
use crate::testing::{Random, inputs, judge, spills};
use crate::{p256, p384};
use metaslot_awslc_wrapper::Result;
use metaslot_awslc_wrapper::ec::{Curve, EcKey};

/// A curve's interface.
pub(super) struct Kernels<const N: usize> {
    pub(super) curve: Curve,
    pub(super) private: fn(&[u8]) -> Result<PrivateKey<N>>,
    pub(super) public: fn(&[u8]) -> Result<PublicKey<N>>,
    pub(super) sign: fn(&mut [SignRequest<'_, N>]),
    pub(super) verify: fn(&mut [VerifyRequest<'_, N>]),
    pub(super) derive: fn(&mut [DeriveRequest<'_, N>]),
}

pub(super) const P256: Kernels<5> = Kernels {
    curve: Curve::P256,
    private: PrivateKey::<5>::new,
    public: PublicKey::<5>::new,
    sign: p256::sign,
    verify: p256::verify,
    derive: p256::derive,
};

pub(super) const P384: Kernels<8> = Kernels {
    curve: Curve::P384,
    private: PrivateKey::<8>::new,
    public: PublicKey::<8>::new,
    sign: p384::sign,
    verify: p384::verify,
    derive: p384::derive,
};

/// A key in all forms.
struct Keys<const N: usize> {
    library: EcKey,
    private: PrivateKey<N>,
    public: PublicKey<N>,
    point: Vec<u8>,
}

impl<const N: usize> Kernels<N> {
    fn keys(&self, scalar: &[u8]) -> Keys<N> {
        let library = EcKey::private(self.curve, scalar).unwrap();
        let mut point = vec![0; self.curve.point_length()];
        library.write_point(&mut point).unwrap();
        Keys {
            private: (self.private)(scalar).unwrap(),
            public: (self.public)(&point).unwrap(),
            library,
            point,
        }
    }

    /// Random keys, and those of the scalars that are nearest to the order's edges.
    fn many_keys(&self, random: &mut Random) -> Vec<Keys<N>> {
        let length = self.curve.length();
        let mut scalars: Vec<Vec<u8>> = Vec::new();
        for small in [1, 2, 3, 15, 16, 17, 31, 32, 33, 37, 38, 39, 63, 64] {
            let mut scalar = vec![0; length];
            scalar[length - 1] = small;
            scalars.push(scalar.clone());
            scalars.push(self.order_less(small));
        }
        while scalars.len() < 60 {
            let mut scalar = random.bytes(length);
            scalar[0] &= 0x7f;
            scalars.push(scalar);
        }
        scalars.iter().map(|scalar| self.keys(scalar)).collect()
    }

    /// n − small.
    fn order_less(&self, small: u8) -> Vec<u8> {
        let mut bytes = match self.curve {
            Curve::P256 => p256::ORDER.to_vec(),
            _ => p384::ORDER.to_vec(),
        };
        let mut borrow = small;
        for byte in bytes.iter_mut().rev() {
            let (less, under) = byte.overflowing_sub(borrow);
            *byte = less;
            borrow = u8::from(under);
        }
        bytes
    }

    /// Digests: random, of odd lengths, zero, all ones, the order.
    fn a_digest(&self, random: &mut Random) -> Vec<u8> {
        let length = self.curve.length();
        match random.below(20) {
            0 => vec![0; length],
            1 => vec![0xff; length],
            2 => self.order_less(0),
            3 => random.bytes(64),
            4 => random.bytes(20),
            5 => vec![],
            _ => random.bytes(length),
        }
    }

    fn signatures_are_good(&self, count: usize) {
        let mut random = Random::new();
        let keys = self.many_keys(&mut random);
        let mut done = 0;
        while done < count {
            let size = [1, 3, 8, 9, 64, 128, 131][random.below(7)];
            done += size;
            let cases: Vec<_> = (0..size)
                .map(|_| (&keys[random.below(keys.len())], self.a_digest(&mut random)))
                .collect();
            let mut signatures = vec![vec![0; 2 * self.curve.length()]; size];
            let mut requests: Vec<_> = cases
                .iter()
                .zip(&mut signatures)
                .map(|((key, digest), signature)| SignRequest::new(&key.private, digest, signature))
                .collect();
            (self.sign)(&mut requests);
            assert!(requests.iter().all(|request| request.result == Ok(())));
            for ((key, digest), signature) in cases.iter().zip(&signatures) {
                key.library.verify(digest, signature).unwrap();
            }
            self.verification_agrees(&mut random, &cases, &signatures);
        }
    }

    /// Good signatures are accepted; those with one bit changed are refused, and only those.
    fn verification_agrees(
        &self,
        random: &mut Random,
        cases: &[(&Keys<N>, Vec<u8>)],
        signatures: &[Vec<u8>],
    ) {
        let mut changed = signatures.to_vec();
        let mut expected = vec![true; cases.len()];
        for (signature, expected) in changed.iter_mut().zip(&mut expected) {
            if random.below(3) == 0 {
                let bit = random.below(8 * signature.len());
                signature[bit / 8] ^= 1 << (bit % 8);
                *expected = false;
            }
        }
        let mut requests: Vec<_> = cases
            .iter()
            .zip(&changed)
            .map(|((key, digest), signature)| VerifyRequest::new(&key.public, digest, signature))
            .collect();
        (self.verify)(&mut requests);
        for (request, expected) in requests.iter().zip(expected) {
            assert_eq!(request.result.is_ok(), expected);
        }
    }

    fn library_signatures_are_accepted(&self, count: usize) {
        let mut random = Random::new();
        let keys = self.many_keys(&mut random);
        for _ in 0..count.div_ceil(40) {
            let cases: Vec<_> = (0..40)
                .map(|_| (&keys[random.below(keys.len())], self.a_digest(&mut random)))
                .collect();
            let mut signatures = vec![vec![0; 2 * self.curve.length()]; cases.len()];
            for ((key, digest), signature) in cases.iter().zip(&mut signatures) {
                key.library.sign(digest, signature).unwrap();
            }
            self.verification_agrees(&mut random, &cases, &signatures);
        }
    }

    fn secrets_agree(&self, count: usize) {
        let mut random = Random::new();
        let keys = self.many_keys(&mut random);
        let mut done = 0;
        while done < count {
            let size = [1, 2, 8, 13, 64][random.below(5)];
            done += size;
            let cases: Vec<_> = (0..size)
                .map(|_| (&keys[random.below(keys.len())], &keys[random.below(keys.len())]))
                .collect();
            let mut secrets = vec![vec![0; self.curve.length()]; size];
            let mut points: Vec<Vec<u8>> =
                cases.iter().map(|(_, peer)| peer.point.clone()).collect();
            let broken = random.below(3 * size);
            if broken < size {
                points[broken][70 % self.curve.point_length()] ^= 1;
            }
            let mut requests: Vec<_> = cases
                .iter()
                .zip(&points)
                .zip(&mut secrets)
                .map(|(((key, _), point), secret)| DeriveRequest::new(&key.private, point, secret))
                .collect();
            (self.derive)(&mut requests);
            let results: Vec<_> = requests.iter().map(|request| request.result).collect();
            for (i, (key, _)) in cases.iter().enumerate() {
                let mut expected = vec![0; self.curve.length()];
                let result = key.library.diffie_hellman(&points[i], &mut expected);
                assert_eq!((results[i], i == broken), (result, result.is_err()));
                assert_eq!(secrets[i], expected);
            }
        }
    }
}

#[test]
fn p256_signatures_are_good_for_the_library_and_for_us() {
    P256.signatures_are_good(inputs(100_000));
}

#[test]
fn p384_signatures_are_good_for_the_library_and_for_us() {
    P384.signatures_are_good(inputs(20_000));
}

#[test]
fn p256_signatures_of_the_library_are_accepted() {
    P256.library_signatures_are_accepted(inputs(100_000));
}

#[test]
fn p384_signatures_of_the_library_are_accepted() {
    P384.library_signatures_are_accepted(inputs(20_000));
}

#[test]
fn p256_secrets_are_the_librarys() {
    P256.secrets_agree(inputs(100_000));
}

#[test]
fn p384_secrets_are_the_librarys() {
    P384.secrets_agree(inputs(20_000));
}

#[test]
fn scalars_outside_the_range_and_points_off_the_curve_are_refused() {
    for scalar in [P256.order_less(0), vec![0; 32], vec![], vec![0xff; 32], vec![1; 33]] {
        assert!(p256::PrivateKey::new(&scalar).is_err());
    }
    assert!(p384::PrivateKey::new(&P384.order_less(0)).is_err());
    assert!(p256::PrivateKey::new(&[&[0; 8], &P256.order_less(1)[..]].concat()).is_ok());
    assert!(p256::PublicKey::new(&[0]).is_err());
    assert!(p256::PublicKey::new(&[4; 65]).is_err());
}

/// Signs one digest eight times with given nonces.
fn signed_with(key: &p256::PrivateKey, digest: &[u8], nonces: &[[u8; 32]; 8]) -> Vec<[u8; 64]> {
    let mut signatures = vec![[0; 64]; 8];
    let mut requests: Vec<_> =
        signatures.iter_mut().map(|out| SignRequest::new(key, digest, out)).collect();
    let mut source = |out: &mut [u8]| {
        out.iter_mut().zip(nonces.as_flattened()).for_each(|(to, from)| *to = *from);
        Ok(())
    };
    // SAFETY: the callers asked whether the processor has the instructions.
    unsafe { sign_with::<p256::P256, 5>(&mut requests, &mut source) };
    assert!(requests.iter().all(|request| request.result == Ok(())));
    signatures
}

#[test]
fn nonces_at_the_edges_give_good_signatures() {
    if !p256::available() {
        return;
    }
    let mut random = Random::new();
    let keys = P256.keys(&random.bytes(32));
    let mut nonces: Vec<[u8; 32]> = Vec::new();
    for small in 1..=72 {
        let mut nonce = [0; 32];
        nonce[31] = small;
        nonces.push(nonce);
        nonces.push(P256.order_less(small).try_into().unwrap());
    }
    // 15·2^253 − n, the one that meets an exception: it must not show in the signature.
    let exception = p256_exception();
    nonces[7] = exception;
    let mut seen = std::collections::HashSet::new();
    for eight in nonces.as_chunks::<8>().0 {
        let digest = random.bytes(32);
        for signature in signed_with(&keys.private, &digest, eight) {
            keys.library.verify(&digest, &signature).unwrap();
            seen.insert(signature[..32].to_vec());
        }
    }
    // k and n − k have the same r; the exception's is another each time.
    assert!(seen.len() > 72);
}

/// 15·2^253 − n.
fn p256_exception() -> [u8; 32] {
    // 15·2^253 is 2^256 + 7·2^253, and 2^256 − n is n's complement.
    let mut out = [0; 32];
    let mut carry = 1;
    for (to, from) in out.iter_mut().zip(p256::ORDER).rev() {
        let sum = u16::from(!from) + carry;
        *to = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    out[0] += 7 << 5;
    out
}

#[test]
fn the_time_of_a_signature_does_not_depend_on_the_nonce() {
    if !p256::available() {
        return;
    }
    let mut random = Random::new();
    let key = p256::PrivateKey::new(&random.bytes(32)).unwrap();
    let mut small = [[0; 32]; 8];
    small.iter_mut().for_each(|nonce| nonce[31] = 1);
    let mut large = [[0; 32]; 8];
    large.iter_mut().for_each(|nonce| nonce.copy_from_slice(&random.bytes(32)));
    let digest = random.bytes(32);
    judge("signing with small and with random nonces", &mut random, 20_000, |class| {
        signed_with(&key, &digest, if class == 0 { &small } else { &large });
    });
}

#[test]
fn the_time_of_a_secret_does_not_depend_on_the_key() {
    if !p256::available() {
        return;
    }
    let mut random = Random::new();
    let keys = [P256.keys(&[3]), P256.keys(&random.bytes(32))];
    let peer = &P256.keys(&random.bytes(32)).point;
    judge("deriving with a small and with a random key", &mut random, 5000, |class| {
        let mut secrets = [[0; 32]; 8];
        let mut requests: Vec<_> = secrets
            .iter_mut()
            .map(|secret| DeriveRequest::new(&keys[class].private, peer, secret))
            .collect();
        p256::derive(&mut requests);
        assert!(requests.iter().all(|request| request.result == Ok(())));
    });
}

#[test]
fn products_stay_in_registers() {
    if p256::available() {
        // Only products modulo P-384's order, a few for each signature, pass their 16 limbs through memory.
        assert!(spills("montgomery::mul") <= 110);
        assert!(spills("montgomery::square") <= 20);
    }
}
