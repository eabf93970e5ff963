// SPDX-License-Identifier: Apache-2.0
//! Certificates and requests, signed by a key of a token.

use super::Time;
use crate::encoding::der::{self, CONSTRUCTED, INTEGER, SEQUENCE, SET};
use crate::failure::{Failure, Result};
use crate::key::{Family, Kind, ONE_TIME, Set};
use metaslot_ck::*;
use metaslot_client::{self as client, Session, User};
use metaslot_memory::Secret;
use std::sync::LazyLock;

/// How a type of key signs with a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Algorithm {
    family: Family,
    /// Whose keys these are, where the algorithm is a parameter set.
    set: Option<&'static Set>,
    hash: &'static str,
    mechanism: CK_MECHANISM_TYPE,
    /// What digests the data before; every module has bare ECDSA, and not all have it with a hash.
    digest: Option<CK_MECHANISM_TYPE>,
    /// Of its keys, in bytes, where others of the family sign otherwise.
    length: usize,
    identifier: &'static [u32],
}

/// The attribute of a request that has the extensions which it asks for.
pub(super) const EXTENSION_REQUEST: &[u32] = &[1, 2, 840, 113_549, 1, 9, 14];

const fn rsa(
    hash: &'static str,
    mechanism: CK_MECHANISM_TYPE,
    identifier: &'static [u32],
) -> Algorithm {
    Algorithm {
        family: Family::Rsa,
        set: None,
        hash,
        mechanism,
        digest: None,
        length: 0,
        identifier,
    }
}

const fn ec(
    hash: &'static str,
    digest: CK_MECHANISM_TYPE,
    identifier: &'static [u32],
) -> Algorithm {
    let (family, digest) = (Family::Ec, Some(digest));
    Algorithm { family, set: None, hash, mechanism: CKM_ECDSA, digest, length: 0, identifier }
}

/// RFC 9881 §3, RFC 9909 §3, RFC 9802 and RFC 8410: they hash within.
const fn whole(
    (family, set): (Family, Option<&'static Set>),
    mechanism: CK_MECHANISM_TYPE,
    identifier: &'static [u32],
) -> Algorithm {
    Algorithm { family, set, hash: "none", mechanism, digest: None, length: 0, identifier }
}

/// RFC 8410 §3: of keys of this length.
const fn edwards(length: usize, identifier: &'static [u32]) -> Algorithm {
    Algorithm { length, ..whole((Family::Edwards, None), CKM_EDDSA, identifier) }
}

const FIXED: &[Algorithm] = &[
    rsa("sha1", CKM_SHA1_RSA_PKCS, &[1, 2, 840, 113_549, 1, 1, 5]),
    rsa("sha256", CKM_SHA256_RSA_PKCS, &[1, 2, 840, 113_549, 1, 1, 11]),
    rsa("sha384", CKM_SHA384_RSA_PKCS, &[1, 2, 840, 113_549, 1, 1, 12]),
    rsa("sha512", CKM_SHA512_RSA_PKCS, &[1, 2, 840, 113_549, 1, 1, 13]),
    ec("sha1", CKM_SHA_1, &[1, 2, 840, 10045, 4, 1]),
    ec("sha256", CKM_SHA256, &[1, 2, 840, 10045, 4, 3, 2]),
    ec("sha384", CKM_SHA384, &[1, 2, 840, 10045, 4, 3, 3]),
    ec("sha512", CKM_SHA512, &[1, 2, 840, 10045, 4, 3, 4]),
    edwards(32, &[1, 3, 101, 112]),
    edwards(57, &[1, 3, 101, 113]),
];

/// Those, one for each family of one-time keys, and one for each parameter set that signs.
static ALGORITHMS: LazyLock<Vec<Algorithm>> = LazyLock::new(|| {
    let of = |set: &'static Set| Some(whole((set.family, Some(set)), set.signature?, set.arcs));
    let one_time = ONE_TIME.iter().map(|row| whole((row.family, None), row.signature, row.arcs));
    FIXED.iter().copied().chain(one_time).chain(Set::all().filter_map(of)).collect()
});

impl Algorithm {
    pub(crate) fn find(kind: &Kind, hash: &str) -> Result<&'static Self> {
        let row = ALGORITHMS.iter().find(|row| row.is_for(kind) && row.hash == hash);
        row.ok_or_else(|| Failure::usage(format!("such a key does not sign with {hash}")))
    }

    fn is_for(&self, kind: &Kind) -> bool {
        let is_long = self.length == 0 || self.length == kind.size;
        is_long && self.family == kind.family && self.set.is_none_or(|set| kind.set() == Some(set))
    }

    /// With this hash, or with one as strong as the key.
    pub(crate) fn of(kind: &Kind, hash: Option<&str>) -> Result<&'static Self> {
        let usual = match (kind.family, kind.size) {
            _ if kind.set().is_some() => "none",
            (Family::Edwards | Family::Hss | Family::Xmss | Family::Xmssmt, _) => "none",
            (Family::Ec, 49..) => "sha512",
            (Family::Ec, 33..) => "sha384",
            _ => "sha256",
        };
        let known = ALGORITHMS.iter().any(|row| row.is_for(kind));
        match known {
            true => Self::find(kind, hash.unwrap_or(usual)),
            false => Err(Failure::usage(format!("a key of type {kind} signs no certificates"))
                .hint("RSA, EC, Ed25519, ML-DSA, SLH-DSA, HSS and XMSS keys do")),
        }
    }

    /// The name of its hash; "none" where it hashes within.
    pub(crate) const fn hash(&self) -> &'static str {
        self.hash
    }

    /// The one with this `AlgorithmIdentifier`.
    pub(crate) fn encoded_as(identifier: &[u8]) -> Option<&'static Self> {
        ALGORITHMS.iter().find(|row| row.encoded() == identifier)
    }

    /// What the mechanism signs.
    fn input(&self, session: &Session, data: &[u8]) -> client::Result<Vec<u8>> {
        match self.digest {
            Some(digest) => session.digest(&digest.into(), data),
            None => Ok(data.to_vec()),
        }
    }

    /// Whether a key signed the data so, in the signature's PKCS#11 form.
    pub(crate) fn verify(
        &self,
        session: &Session,
        key: ObjectHandle,
        data: &[u8],
        raw: &[u8],
    ) -> client::Result<()> {
        let input = self.input(session, data)?;
        session.verify(&self.mechanism.into(), key, &input, raw)
    }

    /// RSA has a NULL as its parameter, ECDSA none.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let null: &[u8] = if self.family == Family::Rsa { &[5, 0] } else { &[] };
        der::sequence(&[&der::identifier(self.identifier), null])
    }
}

/// What signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) algorithm: &'static Algorithm,
    pub(crate) session: &'a Session,
    /// The private half.
    pub(crate) key: ObjectHandle,
    /// The PIN, where the key wants it for each use.
    pub(crate) again: Option<&'a Secret>,
}

impl How<'_> {
    /// The signature, in the form that certificates have.
    pub(super) fn signature(&self, what: &[u8]) -> Result<Vec<u8>> {
        let input = self.algorithm.input(self.session, what)?;
        self.session.sign_init(&self.algorithm.mechanism.into(), self.key)?;
        if let Some(pin) = self.again {
            self.session.login(User::ContextSpecific, pin.expose())?;
        }
        let raw = self.session.sign_initialized(&input)?;
        Ok(if self.algorithm.family == Family::Ec { der::signature(&raw) } else { raw })
    }

    /// What was signed, how, and the signature.
    pub(super) fn signed(&self, what: &[u8]) -> Result<Vec<u8>> {
        let signature = self.signature(what)?;
        Ok(der::sequence(&[what, &self.algorithm.encoded(), &der::bit_string(&signature)]))
    }
}

/// Who is certified.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: Vec<u8>,
    /// `SubjectPublicKeyInfo`
    pub(crate) public_key: Vec<u8>,
    pub(crate) extensions: Vec<u8>,
}

/// A certificate for `subject`, by `issuer`, whose key signs; from now on.
pub(crate) fn certificate(
    subject: &Subject,
    issuer: &[u8],
    serial: &[u8],
    until: &Time,
    how: How<'_>,
) -> Result<Vec<u8>> {
    let version = der::element(CONSTRUCTED, &der::element(INTEGER, &[2]));
    let validity = der::sequence(&[&Time::from_now(0).encoded(), &until.encoded()]);
    let extensions = match subject.extensions.is_empty() {
        true => Vec::new(),
        false => der::element(CONSTRUCTED | 3, &der::sequence(&[&subject.extensions])),
    };
    let contents = der::sequence(&[
        &version,
        &der::integer(serial),
        &how.algorithm.encoded(),
        issuer,
        &validity,
        &subject.name,
        &subject.public_key,
        &extensions,
    ]);
    how.signed(&contents)
}

/// A request for a certificate.
pub(crate) fn request(subject: &Subject, how: How<'_>) -> Result<Vec<u8>> {
    let attributes = match subject.extensions.is_empty() {
        true => Vec::new(),
        false => {
            let wanted = der::identifier(EXTENSION_REQUEST);
            let extensions = der::element(SET, &der::element(SEQUENCE, &subject.extensions));
            der::sequence(&[&wanted, &extensions])
        }
    };
    let contents = der::sequence(&[
        &der::integer(&[0]),
        &subject.name,
        &subject.public_key,
        &der::element(CONSTRUCTED, &attributes),
    ]);
    how.signed(&contents)
}
