// SPDX-License-Identifier: Apache-2.0
//! Table: hash functions, as libcrypto names them, and what signs with them.

use crate::failure::{Failure, Result};
use metaslot_ck::*;

/// A hash function.
#[derive(Debug)]
pub(crate) struct Hash {
    /// What libcrypto calls it, its own name first.
    pub(crate) names: &'static [&'static str],
    pub(crate) digest: CK_MECHANISM_TYPE,
    /// In bytes.
    pub(crate) length: usize,
    /// Content of the object identifier.
    pub(crate) oid: &'static [u8],
    pub(crate) mgf: CK_ULONG,
    pub(crate) pkcs1: Signed,
    pub(crate) pss: CK_MECHANISM_TYPE,
    pub(crate) ecdsa: Signed,
}

/// A mechanism that hashes and signs, and the content of the object identifier that such signatures have.
#[derive(Debug)]
pub(crate) struct Signed(pub(crate) CK_MECHANISM_TYPE, pub(crate) &'static [u8]);

/// Without a mechanism of its own.
const NONE: Signed = Signed(0, &[]);

#[rustfmt::skip]
static HASHES: [Hash; 12] = [
    Hash { names: &["SHA2-256", "SHA256", "SHA-256"], digest: CKM_SHA256, length: 32, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x01", mgf: CKG_MGF1_SHA256,
        pkcs1: Signed(CKM_SHA256_RSA_PKCS, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), pss: CKM_SHA256_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA256, b"\x2a\x86\x48\xce\x3d\x04\x03\x02") },
    Hash { names: &["SHA2-384", "SHA384", "SHA-384"], digest: CKM_SHA384, length: 48, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x02", mgf: CKG_MGF1_SHA384,
        pkcs1: Signed(CKM_SHA384_RSA_PKCS, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"), pss: CKM_SHA384_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA384, b"\x2a\x86\x48\xce\x3d\x04\x03\x03") },
    Hash { names: &["SHA2-512", "SHA512", "SHA-512"], digest: CKM_SHA512, length: 64, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x03", mgf: CKG_MGF1_SHA512,
        pkcs1: Signed(CKM_SHA512_RSA_PKCS, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"), pss: CKM_SHA512_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA512, b"\x2a\x86\x48\xce\x3d\x04\x03\x04") },
    Hash { names: &["SHA1", "SHA-1"], digest: CKM_SHA_1, length: 20, oid: b"\x2b\x0e\x03\x02\x1a", mgf: CKG_MGF1_SHA1,
        pkcs1: Signed(CKM_SHA1_RSA_PKCS, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05"), pss: CKM_SHA1_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA1, b"\x2a\x86\x48\xce\x3d\x04\x01") },
    Hash { names: &["SHA2-224", "SHA224", "SHA-224"], digest: CKM_SHA224, length: 28, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x04", mgf: CKG_MGF1_SHA224,
        pkcs1: Signed(CKM_SHA224_RSA_PKCS, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0e"), pss: CKM_SHA224_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA224, b"\x2a\x86\x48\xce\x3d\x04\x03\x01") },
    Hash { names: &["SHA2-512/224", "SHA512-224", "SHA-512/224"], digest: CKM_SHA512_224, length: 28, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x05", mgf: 0,
        pkcs1: Signed(0, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0f"), pss: 0, ecdsa: NONE },
    Hash { names: &["SHA2-512/256", "SHA512-256", "SHA-512/256"], digest: CKM_SHA512_256, length: 32, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x06", mgf: 0,
        pkcs1: Signed(0, b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x10"), pss: 0, ecdsa: NONE },
    Hash { names: &["SHA3-224"], digest: CKM_SHA3_224, length: 28, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x07", mgf: CKG_MGF1_SHA3_224,
        pkcs1: Signed(CKM_SHA3_224_RSA_PKCS, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0d"), pss: CKM_SHA3_224_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA3_224, b"\x60\x86\x48\x01\x65\x03\x04\x03\x09") },
    Hash { names: &["SHA3-256"], digest: CKM_SHA3_256, length: 32, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x08", mgf: CKG_MGF1_SHA3_256,
        pkcs1: Signed(CKM_SHA3_256_RSA_PKCS, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0e"), pss: CKM_SHA3_256_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA3_256, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0a") },
    Hash { names: &["SHA3-384"], digest: CKM_SHA3_384, length: 48, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x09", mgf: CKG_MGF1_SHA3_384,
        pkcs1: Signed(CKM_SHA3_384_RSA_PKCS, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0f"), pss: CKM_SHA3_384_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA3_384, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0b") },
    Hash { names: &["SHA3-512"], digest: CKM_SHA3_512, length: 64, oid: b"\x60\x86\x48\x01\x65\x03\x04\x02\x0a", mgf: CKG_MGF1_SHA3_512,
        pkcs1: Signed(CKM_SHA3_512_RSA_PKCS, b"\x60\x86\x48\x01\x65\x03\x04\x03\x10"), pss: CKM_SHA3_512_RSA_PKCS_PSS, ecdsa: Signed(CKM_ECDSA_SHA3_512, b"\x60\x86\x48\x01\x65\x03\x04\x03\x0c") },
    // Both in a row, as TLS before 1.2 signs them: without a name in the signature.
    Hash { names: &["MD5-SHA1"], digest: CKM_MD5, length: 36, oid: &[], mgf: 0, pkcs1: NONE, pss: 0, ecdsa: NONE },
];

impl Hash {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let is = |hash: &&Self| hash.names.iter().any(|other| other.eq_ignore_ascii_case(name));
        HASHES.iter().find(is)
    }

    /// What libcrypto takes where none is named.
    pub(crate) fn usual() -> &'static Self {
        &HASHES[0]
    }

    /// The digests that, in a row, are this one.
    pub(crate) fn digests(&self) -> &[CK_MECHANISM_TYPE] {
        if self.is_pair() { &[CKM_MD5, CKM_SHA_1] } else { std::slice::from_ref(&self.digest) }
    }

    /// Whether it is two of them.
    pub(crate) const fn is_pair(&self) -> bool {
        self.oid.is_empty()
    }
}

/// The one of this name, or why there is none.
pub(crate) fn named(name: &str) -> Result<&'static Hash> {
    Hash::named(name)
        .ok_or_else(|| Failure::unsupported(format!("the hash function {name} is not supported")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_once() {
        for hash in &HASHES {
            for name in hash.names {
                let found = Hash::named(&name.to_lowercase()).expect("it is there");
                assert_eq!(found.names, hash.names);
            }
        }
        assert!(Hash::named("SHA2-255").is_none());
    }
}
