// SPDX-License-Identifier: Apache-2.0
//! XEdDSA: signatures like Ed25519's by the keys of X25519 (PKCS#11 3.2 §6.3.15; T. Perrin, "The XEdDSA and VXEdDSA Signature
//! Schemes", revision 1). AWS-LC multiplies no point of edwards25519 by a chosen number, so points and scalars are
//! curve25519-dalek's; it computes in constant time with what is secret.

use crate::digest::Hashing;
use crate::eddsa::point;
use crate::generate;
use crate::other_hashes::{BLAKE2B_256, BLAKE2B_512};
use curve25519_dalek::{EdwardsPoint, MontgomeryPoint, Scalar, scalar::clamp_integer};
use metaslot_awslc_wrapper::cleanse;
use metaslot_awslc_wrapper::curve25519::{ED25519_SIGNATURE_LENGTH, KEY_LENGTH};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_memory::{Secret, wiping};
use metaslot_spi::buffer::hold;
use metaslot_spi::parts::{self, Begun};
use metaslot_spi::provider::{Algorithm, Digest, Direction, Signature, SignatureStream, checked};
use metaslot_spi::{Key, Params, number_key};
use std::hint::black_box;
use std::sync::Arc;

pub(crate) const ROWS: [Algorithm; 1] = checked([Algorithm {
    extra_flags: CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME,
    ..Algorithm::signature(CKM_XEDDSA, (255, 255), &XEdDsa)
}]);

/// `CK_XEDDSA_HASH_TYPE`. The order of the group is so close to 2²⁵² that 256 bits reduced by it are as good as 512.
static HASHES: [(CK_MECHANISM_TYPE, &dyn Digest); 6] = [
    (CKM_SHA512, &Hashing(Hash::Sha512)),
    (CKM_SHA256, &Hashing(Hash::Sha256)),
    (CKM_SHA3_256, &Hashing(Hash::Sha3_256)),
    (CKM_SHA3_512, &Hashing(Hash::Sha3_512)),
    (CKM_BLAKE2B_256, BLAKE2B_256),
    (CKM_BLAKE2B_512, BLAKE2B_512),
];

/// What `hash1` hashes first: 2²⁵⁶ - 2, which begins no encoding of a point.
const HASH1: [u8; 32] = {
    let mut prefix = [0xff; 32];
    prefix[0] = 0xfe;
    prefix
};

/// Length of the random bytes of a signature.
const RANDOM: usize = 64;

type Signed = [u8; ED25519_SIGNATURE_LENGTH];

fn digest(params: &Params) -> Result<&'static dyn Digest> {
    let Params::XEdDsa { hash } = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    let row = HASHES.iter().find(|row| row.0 == *hash);
    row.map(|row| row.1).ok_or(Error::MECHANISM_PARAM_INVALID)
}

fn number_bytes(number: &[u8]) -> Result<&[u8; KEY_LENGTH]> {
    number.try_into().map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

/// The hash of all parts as a number modulo the order of the group.
fn number(digest: &dyn Digest, parts: &[&[u8]]) -> Result<Scalar> {
    let mut stream = digest.start()?;
    parts.iter().try_for_each(|part| stream.update(part))?;
    let mut out = [0; 64];
    let finished = stream.finish(&mut out[..digest.length()]);
    let number = Scalar::from_bytes_mod_order_wide(&out);
    cleanse(&mut out);
    finished.map(|()| number)
}

/// A private key, as it signs.
#[derive(Debug)]
struct Signer {
    /// `a`
    private: Secret,
    /// `A`, whose sign is 0.
    public: [u8; KEY_LENGTH],
}

impl Signer {
    fn new(key: &Key) -> Result<Self> {
        number_bytes(key.secret(CKA_VALUE)?).map(Self::of)
    }

    /// `calculate_key_pair`
    fn of(value: &[u8; KEY_LENGTH]) -> Self {
        wiping(|| {
            let number = Scalar::from_bytes_mod_order(clamp_integer(*value));
            let mut public = EdwardsPoint::mul_base(&number).compress().to_bytes();
            // 1 or -1, without asking which.
            let sign = Scalar::ONE - Scalar::from(2 * (public[KEY_LENGTH - 1] >> 7));
            public[KEY_LENGTH - 1] &= 0x7f;
            Self { private: Secret::copy_of((number * sign).as_bytes()), public }
        })
    }

    /// `xeddsa_sign`
    fn sign(
        &self,
        digest: &dyn Digest,
        message: &[u8],
        random: &[u8; RANDOM],
        out: &mut Signed,
    ) -> Result<()> {
        let private = number_bytes(self.private.expose())?;
        wiping(|| {
            let secret = number(digest, &[&HASH1, private, message, random])?;
            let point = EdwardsPoint::mul_base(&secret).compress();
            let challenge = number(digest, &[point.as_bytes(), &self.public, message])?;
            let (first, second) = out.split_at_mut(KEY_LENGTH);
            first.copy_from_slice(point.as_bytes());
            let sum = secret + challenge * Scalar::from_bytes_mod_order(*private);
            second.copy_from_slice(sum.as_bytes());
            Ok(())
        })
    }
}

/// A public key, as it verifies.
#[derive(Debug)]
struct Verifier {
    /// `-A`
    minus: EdwardsPoint,
    /// `A`
    public: [u8; KEY_LENGTH],
}

impl Verifier {
    /// `convert_mont`; nothing is signed by a key that is no point, is not written as one is, or has few multiples, under which anybody signs.
    fn new(key: &Key) -> Result<Self> {
        let said = MontgomeryPoint(*point(key)?);
        let point = said.to_edwards(0).filter(|point| {
            !point.is_small_order() && point.to_montgomery().as_bytes() == said.as_bytes()
        });
        let point = point.ok_or(Error::SIGNATURE_INVALID)?;
        Ok(Self { minus: -point, public: point.compress().to_bytes() })
    }

    /// `xeddsa_verify`, where s is less than the order: what makes a signature has none above, and a second one for it would be good.
    fn verify(&self, digest: &dyn Digest, message: &[u8], signature: &Signed) -> Result<()> {
        let (point, sum) = signature.split_at(KEY_LENGTH);
        let sum =
            sum.try_into().ok().and_then(|sum| Scalar::from_canonical_bytes(sum).into_option());
        let sum = sum.ok_or(Error::SIGNATURE_INVALID)?;
        let challenge = number(digest, &[point, &self.public, message])?;
        let found =
            EdwardsPoint::vartime_double_scalar_mul_basepoint(&challenge, &self.minus, &sum);
        if found.compress().as_bytes() == point { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

#[derive(Debug)]
struct XEdDsa;

impl Signature for XEdDsa {
    fn serves(&self, key: &Key) -> bool {
        number_key::is_long(key, KEY_LENGTH)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        digest(params)?;
        match direction {
            Direction::Forward => key.prepared(Signer::new).map(drop),
            Direction::Backward => point(key).map(drop),
        }
    }

    fn length(&self, _: &Key, _: &Params) -> usize {
        ED25519_SIGNATURE_LENGTH
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        // What another thread makes of it between both readings is not signed.
        Message::new(params)?.sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        verify(digest(params)?, key, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(parts::stream(key, Message::new(params)?))
    }
}

fn verify(digest: &dyn Digest, key: &Key, data: &[u8], signature: &[u8]) -> Result<()> {
    // What another thread makes of it between both readings is not verified, nor is the copy left out by the compiler.
    let copy = signature.try_into().map_err(|_| Error::SIGNATURE_LEN_RANGE)?;
    key.prepared(Verifier::new)?.verify(digest, data, &black_box(copy))
}

/// A message that comes in parts: it is read twice, and has to be kept until the end.
struct Message {
    digest: &'static dyn Digest,
    held: Vec<u8>,
}

impl Message {
    fn new(params: &Params) -> Result<Self> {
        Ok(Self { digest: digest(params)?, held: Vec::new() })
    }
}

impl Begun for Message {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        hold(&mut self.held, data, Error::DATA_LEN_RANGE)
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        let out = out.first_chunk_mut().ok_or(Error::BUFFER_TOO_SMALL)?;
        let mut random = Secret::zeroed(RANDOM);
        generate::random(random.expose_mut())?;
        let random = random.expose().try_into().map_err(|_| Error::DEVICE_ERROR)?;
        key.prepared(Signer::new)?.sign(self.digest, &self.held, random, out)?;
        Ok(ED25519_SIGNATURE_LENGTH)
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        verify(self.digest, key, &self.held, signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn hex(value: &Value) -> Vec<u8> {
        let digits = value.as_str().unwrap().as_bytes().chunks(2);
        digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    /// Those that are random are made with the random bytes of the vectors.
    #[test]
    fn signatures_are_those_of_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/xeddsa/vectors.json");
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for vector in file["good"].as_array().unwrap() {
            let hash = mechanism_by_name(vector["hash"].as_str().unwrap()).unwrap();
            let digest = digest(&Params::XEdDsa { hash }).unwrap();
            let signer = Signer::of(hex(&vector["private"]).as_slice().try_into().unwrap());
            let random = hex(&vector["random"]).try_into().unwrap();
            let (message, mut out) = (hex(&vector["message"]), [0; 64]);
            signer.sign(digest, &message, &random, &mut out).unwrap();
            assert_eq!(out.as_slice(), hex(&vector["signature"]), "{vector}");
        }
    }
}
