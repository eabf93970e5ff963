// SPDX-License-Identifier: Apache-2.0
//! Key pairs of the raw library behind one trait, and the raw library as the judge of a module's signatures.

use super::job::Job;
use crate::speed::subject::expect;
use crate::token::Pair;
use crate::{Failure, Result};
use metaslot_bare::{self as bench, EC_SIGNATURE, Ec, Ed25519, MlDsa65, Rsa};
use metaslot_ck::*;
use metaslot_client::Session;
use metaslot_spi::der::Node;

/// A public key.
pub(super) trait Verifies: Send + Sync {
    /// # Errors
    /// The signature is not of this message by this key.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()>;
}

/// A key pair.
pub(super) trait Signs: Verifies {
    /// The length of the signature, which begins where `out` does.
    ///
    /// # Errors
    /// The library failed.
    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize>;
}

impl Verifies for Rsa {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(self.verify(message, signature)?)
    }
}

impl Signs for Rsa {
    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        Ok(self.sign(message, out)?)
    }
}

impl Verifies for Ec {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(self.verify(array(message)?, signature)?)
    }
}

impl Signs for Ec {
    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let out = out.first_chunk_mut::<EC_SIGNATURE>().ok_or_else(length)?;
        Ok(self.sign(array(message)?, out)?)
    }
}

impl Verifies for Ed25519 {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(self.verify(message, array(signature)?)?)
    }
}

impl Signs for Ed25519 {
    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let out = out.first_chunk_mut::<64>().ok_or_else(length)?;
        self.sign(message, out)?;
        Ok(out.len())
    }
}

impl Verifies for MlDsa65 {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(self.verify(message, signature)?)
    }
}

impl Signs for MlDsa65 {
    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize> {
        Ok(self.sign(message, out)?)
    }
}

/// A public key of a token: its ECDSA signatures are `r ‖ s`, where the raw library's are DER.
struct Standard(Ec);

impl Verifies for Standard {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Verifies::verify(&self.0, message, &der(signature))
    }
}

struct Edwards([u8; 32]);

impl Verifies for Edwards {
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(bench::ed25519_verify(&self.0, message, array(signature)?)?)
    }
}

/// The raw library with the public key of the token, where it knows the mechanism.
///
/// # Errors
/// The module does not give the public key.
pub(super) fn judge(session: &Session, job: &Job, key: Pair) -> Result<Option<Box<dyn Verifies>>> {
    Ok(Some(match job.mechanism {
        CKM_SHA256_RSA_PKCS => {
            let modulus = session.attribute(key.public, CKA_MODULUS)?;
            let exponent = session.attribute(key.public, CKA_PUBLIC_EXPONENT)?;
            Box::new(Rsa::public(&modulus, &exponent)?)
        }
        CKM_ECDSA => Box::new(Standard(Ec::public(&point(session, key)?)?)),
        CKM_ML_DSA => Box::new(MlDsa65::public(&session.attribute(key.public, CKA_VALUE)?)?),
        CKM_EDDSA => Box::new(Edwards(*array(&point(session, key)?)?)),
        _ => return Ok(None),
    }))
}

/// The public point.
fn point(session: &Session, key: Pair) -> Result<Vec<u8>> {
    let point = session.attribute(key.public, CKA_EC_POINT)?;
    // A DER OCTET STRING of less than 128 bytes, as both curves have.
    let [4, length, point @ ..] = point.as_slice() else {
        return Err(Failure::new("CKA_EC_POINT is not a DER OCTET STRING"));
    };
    expect(usize::from(*length) == point.len(), "the length of CKA_EC_POINT")?;
    Ok(point.to_vec())
}

/// The standard's `r ‖ s` as the DER that the raw library reads.
fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    Node::Sequence(&[Node::Integer(r), Node::Integer(s)]).to_vec()
}

fn array<const N: usize>(bytes: &[u8]) -> Result<&[u8; N]> {
    bytes.try_into().map_err(|_| length())
}

fn length() -> Failure {
    Failure::new("a message, a key or a signature of another length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_bare::ML_DSA_65_SIGNATURE;

    #[test]
    fn raw_signatures_become_der() {
        assert_eq!(der(&[0, 1, 0x80, 2]), [0x30, 8, 2, 1, 1, 2, 3, 0, 0x80, 2]);
    }

    #[test]
    fn what_was_signed_verifies_and_nothing_else_does() {
        let pairs: [Box<dyn Signs>; 3] = [
            Box::new(Ec::generate().unwrap()),
            Box::new(Ed25519::generate()),
            Box::new(MlDsa65::generate().unwrap()),
        ];
        for pair in pairs {
            let mut out = [0; ML_DSA_65_SIGNATURE];
            let used = pair.sign(&[7; 32], &mut out).unwrap();
            pair.verify(&[7; 32], &out[..used]).unwrap();
            assert!(pair.verify(&[8; 32], &out[..used]).is_err());
        }
    }
}
