// SPDX-License-Identifier: Apache-2.0
//! Signatures and MACs by keys of a token.

use crate::params;
use crate::rows::Mechanism;
use crate::token::{Taken, Token};
use metaslot_ck::*;
use metaslot_client::{Result as Called, Session};
use metaslot_spi::key_info::EcParams;
use metaslot_spi::provider::{Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params, detail};
use std::sync::Arc;

/// How long a signature is: the engine must know it before the module is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Length {
    /// As long as the modulus.
    Modulus,
    /// Two numbers below the order of the curve.
    Pair,
    /// Always so many bytes.
    Fixed(usize),
    /// What the parameter says.
    Said,
    /// It makes no signatures.
    Unknown,
}

impl Length {
    pub(crate) const fn of(mechanism: CK_MECHANISM_TYPE) -> Self {
        match mechanism {
            CKM_RSA_PKCS
            | CKM_RSA_X_509
            | CKM_RSA_PKCS_PSS
            | CKM_MD5_RSA_PKCS
            | CKM_SHA1_RSA_PKCS
            | CKM_SHA224_RSA_PKCS
            | CKM_SHA256_RSA_PKCS
            | CKM_SHA384_RSA_PKCS
            | CKM_SHA512_RSA_PKCS
            | CKM_SHA1_RSA_PKCS_PSS
            | CKM_SHA224_RSA_PKCS_PSS
            | CKM_SHA256_RSA_PKCS_PSS
            | CKM_SHA384_RSA_PKCS_PSS
            | CKM_SHA512_RSA_PKCS_PSS
            | CKM_SHA3_224_RSA_PKCS
            | CKM_SHA3_256_RSA_PKCS
            | CKM_SHA3_384_RSA_PKCS
            | CKM_SHA3_512_RSA_PKCS
            | CKM_SHA3_224_RSA_PKCS_PSS
            | CKM_SHA3_256_RSA_PKCS_PSS
            | CKM_SHA3_384_RSA_PKCS_PSS
            | CKM_SHA3_512_RSA_PKCS_PSS => Self::Modulus,
            CKM_ECDSA | CKM_ECDSA_SHA1 | CKM_ECDSA_SHA224 | CKM_ECDSA_SHA256 | CKM_ECDSA_SHA384
            | CKM_ECDSA_SHA512 | CKM_ECDSA_SHA3_224 | CKM_ECDSA_SHA3_256 | CKM_ECDSA_SHA3_384
            | CKM_ECDSA_SHA3_512 | CKM_EDDSA => Self::Pair,
            CKM_MD5_HMAC | CKM_AES_CMAC | CKM_AES_GMAC => Self::Fixed(16),
            CKM_SHA_1_HMAC => Self::Fixed(20),
            CKM_SHA224_HMAC | CKM_SHA512_224_HMAC | CKM_SHA3_224_HMAC => Self::Fixed(28),
            CKM_SHA256_HMAC | CKM_SHA512_256_HMAC | CKM_SHA3_256_HMAC => Self::Fixed(32),
            CKM_SHA384_HMAC | CKM_SHA3_384_HMAC => Self::Fixed(48),
            CKM_SHA512_HMAC | CKM_SHA3_512_HMAC => Self::Fixed(64),
            CKM_MD5_HMAC_GENERAL
            | CKM_SHA_1_HMAC_GENERAL
            | CKM_SHA224_HMAC_GENERAL
            | CKM_SHA256_HMAC_GENERAL
            | CKM_SHA384_HMAC_GENERAL
            | CKM_SHA512_HMAC_GENERAL
            | CKM_AES_CMAC_GENERAL => Self::Said,
            _ => Self::Unknown,
        }
    }

    fn for_key(self, key: &Key, params: &Params) -> Option<usize> {
        match (self, params) {
            (Self::Modulus, _) => key.attributes().bytes(CKA_MODULUS).map(<[u8]>::len),
            (Self::Pair, _) => order(key.attributes().bytes(CKA_EC_PARAMS)?).map(|order| 2 * order),
            (Self::Fixed(length), _) => Some(length),
            (Self::Said, Params::Ulong(length)) => usize::try_from(*length).ok(),
            _ => None,
        }
    }
}

/// Bytes of the order of a curve; Edwards curves have signatures as long as if theirs were so.
fn order(params: &[u8]) -> Option<usize> {
    /// Object identifier or name, and bytes.
    const CURVES: [(&[u8], &[&str], usize); 14] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 1], &["secp192r1", "prime192v1"], 24),
        (&[0x2b, 0x81, 4, 0, 33], &["secp224r1"], 28),
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], &["secp256r1", "prime256v1"], 32),
        (&[0x2b, 0x81, 4, 0, 10], &["secp256k1"], 32),
        (&[0x2b, 0x81, 4, 0, 34], &["secp384r1"], 48),
        (&[0x2b, 0x81, 4, 0, 35], &["secp521r1"], 66),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7], &["brainpoolP256r1"], 32),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 8], &["brainpoolP256t1"], 32),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 11], &["brainpoolP384r1"], 48),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 12], &["brainpoolP384t1"], 48),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 13], &["brainpoolP512r1"], 64),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 14], &["brainpoolP512t1"], 64),
        (&[0x2b, 0x65, 0x70], &["edwards25519", "Ed25519"], 32),
        (&[0x2b, 0x65, 0x71], &["edwards448", "Ed448"], 57),
    ];
    let params = EcParams::parse(params).ok()?;
    let found = CURVES.iter().find(|(oid, names, _)| match &params {
        EcParams::Oid(bytes) => bytes == oid,
        EcParams::Name(name) => names.iter().any(|known| known.as_bytes() == *name),
    });
    found.map(|row| row.2)
}

impl Mechanism {
    fn signature(&self, key: &Key, params: &Params) -> Result<usize> {
        self.length.for_key(key, params).ok_or_else(|| {
            let name = self.token.name;
            detail::set(format_args!("{name}: how long a signature of this key is, is not known"));
            Error::KEY_TYPE_INCONSISTENT
        })
    }
}

impl Signature for Mechanism {
    /// The module's own checks come with the first data: its sessions are not taken before.
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.usable(key, params)?;
        self.signature(key, params).map(drop)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.length.for_key(key, params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let written = self.token.with(true, |session| {
            session.sign_init(&mechanism, self.token.handle(session, row)?)?;
            session.sign_into(data, out)
        })?;
        self.exactly(written, out.len())
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        self.token.with(true, |session| {
            session.verify_init(&mechanism, self.token.handle(session, row)?)?;
            session.verify_initialized(data, signature)
        })
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let taken = self.token.begin(|session| {
            let handle = self.token.handle(session, row)?;
            match direction {
                Direction::Forward => session.sign_init(&mechanism, handle),
                Direction::Backward => session.verify_init(&mechanism, handle),
            }
        })?;
        Ok(Box::new(Run { token: self.token, taken: Some(taken), direction }))
    }
}

impl Mechanism {
    /// Refuses what cannot be asked of the module.
    pub(crate) fn usable(&self, key: &Key, params: &Params) -> Result<()> {
        params::mechanism(self.number, params)?;
        if key.attributes().bool(CKA_ALWAYS_AUTHENTICATE) {
            let name = self.token.name;
            detail::set(format_args!(
                "{name}: the key wants a PIN for each use, which is not passed on"
            ));
            return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
        }
        Ok(())
    }

    /// A result whose length is known is that long, or the module is wrong.
    pub(crate) fn exactly(&self, written: usize, expected: usize) -> Result<usize> {
        match written == expected {
            true => Ok(written),
            false => Err(self.token.lied("a result of another length than it must have")),
        }
    }
}

/// A signature in the middle. A session that is dropped here is closed, and the operation with it.
#[derive(Debug)]
struct Run {
    token: &'static Token,
    taken: Option<Taken>,
    direction: Direction,
}

impl SignatureStream for Run {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        let direction = self.direction;
        self.token.go_on(&mut self.taken, |session| match direction {
            Direction::Forward => session.sign_update(data),
            Direction::Backward => session.verify_update(data),
        })
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let signature = self.token.finish(&mut self.taken, Session::sign_final)?;
        if signature.len() != out.len() {
            return Err(self.token.lied("a signature of another length than it must have"));
        }
        out.copy_from_slice(&signature);
        Ok(out.len())
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let check = |session: &Session| -> Called<()> { session.verify_final(signature) };
        self.token.finish(&mut self.taken, check)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.token.abandon(&mut self.taken);
    }
}
