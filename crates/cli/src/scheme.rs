// SPDX-License-Identifier: Apache-2.0
//! How a signature is made: from the key, `--mechanism` and `--hash` to a mechanism with its
//! parameter. One row per hash.

use crate::failure::{Failure, Result};
use crate::key::{Family, Kind};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params};

/// A way to sign and verify.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) mechanism: Mechanism<'static>,
    /// A mechanism that digests the data first, where the module cannot do it within the other.
    pub(crate) digest: Option<CK_MECHANISM_TYPE>,
    /// Takes its data in one piece only.
    pub(crate) one_shot: bool,
    /// Bytes of each number of an ECDSA signature, which has two forms; 0 for other signatures.
    pub(crate) number: usize,
}

/// Bytes of a µ of ML-DSA (FIPS 204, algorithm 7, line 6).
const MU: usize = 64;

/// The mechanisms of one hash.
struct Hash {
    name: &'static str,
    length: CK_ULONG,
    digest: CK_MECHANISM_TYPE,
    rsa: CK_MECHANISM_TYPE,
    pss: CK_MECHANISM_TYPE,
    mgf: CK_ULONG,
    ecdsa: CK_MECHANISM_TYPE,
    dsa: CK_MECHANISM_TYPE,
    /// HashML-DSA (FIPS 204 §5.4), which has no SHA-1.
    ml_dsa: Option<CK_MECHANISM_TYPE>,
    /// HashSLH-DSA (FIPS 205 §10.2), which has none either.
    slh_dsa: Option<CK_MECHANISM_TYPE>,
    hmac: CK_MECHANISM_TYPE,
}

const HASHES: &[Hash] = &[
    Hash {
        name: "sha1",
        length: 20,
        digest: CKM_SHA_1,
        rsa: CKM_SHA1_RSA_PKCS,
        pss: CKM_SHA1_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA1,
        ecdsa: CKM_ECDSA_SHA1,
        dsa: CKM_DSA_SHA1,
        ml_dsa: None,
        slh_dsa: None,
        hmac: CKM_SHA_1_HMAC,
    },
    Hash {
        name: "sha224",
        length: 28,
        digest: CKM_SHA224,
        rsa: CKM_SHA224_RSA_PKCS,
        pss: CKM_SHA224_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA224,
        ecdsa: CKM_ECDSA_SHA224,
        dsa: CKM_DSA_SHA224,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA224),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA224),
        hmac: CKM_SHA224_HMAC,
    },
    Hash {
        name: "sha256",
        length: 32,
        digest: CKM_SHA256,
        rsa: CKM_SHA256_RSA_PKCS,
        pss: CKM_SHA256_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA256,
        ecdsa: CKM_ECDSA_SHA256,
        dsa: CKM_DSA_SHA256,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA256),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA256),
        hmac: CKM_SHA256_HMAC,
    },
    Hash {
        name: "sha384",
        length: 48,
        digest: CKM_SHA384,
        rsa: CKM_SHA384_RSA_PKCS,
        pss: CKM_SHA384_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA384,
        ecdsa: CKM_ECDSA_SHA384,
        dsa: CKM_DSA_SHA384,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA384),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA384),
        hmac: CKM_SHA384_HMAC,
    },
    Hash {
        name: "sha512",
        length: 64,
        digest: CKM_SHA512,
        rsa: CKM_SHA512_RSA_PKCS,
        pss: CKM_SHA512_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA512,
        ecdsa: CKM_ECDSA_SHA512,
        dsa: CKM_DSA_SHA512,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA512),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA512),
        hmac: CKM_SHA512_HMAC,
    },
    Hash {
        name: "sha3-224",
        length: 28,
        digest: CKM_SHA3_224,
        rsa: CKM_SHA3_224_RSA_PKCS,
        pss: CKM_SHA3_224_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA3_224,
        ecdsa: CKM_ECDSA_SHA3_224,
        dsa: CKM_DSA_SHA3_224,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA3_224),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA3_224),
        hmac: CKM_SHA3_224_HMAC,
    },
    Hash {
        name: "sha3-256",
        length: 32,
        digest: CKM_SHA3_256,
        rsa: CKM_SHA3_256_RSA_PKCS,
        pss: CKM_SHA3_256_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA3_256,
        ecdsa: CKM_ECDSA_SHA3_256,
        dsa: CKM_DSA_SHA3_256,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA3_256),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA3_256),
        hmac: CKM_SHA3_256_HMAC,
    },
    Hash {
        name: "sha3-384",
        length: 48,
        digest: CKM_SHA3_384,
        rsa: CKM_SHA3_384_RSA_PKCS,
        pss: CKM_SHA3_384_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA3_384,
        ecdsa: CKM_ECDSA_SHA3_384,
        dsa: CKM_DSA_SHA3_384,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA3_384),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA3_384),
        hmac: CKM_SHA3_384_HMAC,
    },
    Hash {
        name: "sha3-512",
        length: 64,
        digest: CKM_SHA3_512,
        rsa: CKM_SHA3_512_RSA_PKCS,
        pss: CKM_SHA3_512_RSA_PKCS_PSS,
        mgf: CKG_MGF1_SHA3_512,
        ecdsa: CKM_ECDSA_SHA3_512,
        dsa: CKM_DSA_SHA3_512,
        ml_dsa: Some(CKM_HASH_ML_DSA_SHA3_512),
        slh_dsa: Some(CKM_HASH_SLH_DSA_SHA3_512),
        hmac: CKM_SHA3_512_HMAC,
    },
];

/// The names that `--hash` takes.
pub(crate) fn hash_names() -> impl Iterator<Item = &'static str> {
    HASHES.iter().map(|hash| hash.name)
}

fn hash(name: &str) -> Result<&'static Hash> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    let found = HASHES
        .iter()
        .find(|hash| hash.name == wanted || hash.name.replace("sha", "sha-") == wanted);
    found.ok_or_else(|| {
        let names: Vec<&str> = hash_names().collect();
        Failure::usage(format!("unknown hash '{name}'"))
            .hint(format!("known are {}", names.join(", ")))
    })
}

/// The mechanism of a hash.
pub(crate) fn digest(name: &str) -> Result<CK_MECHANISM_TYPE> {
    Ok(hash(name)?.digest)
}

/// MGF1 with a hash.
pub(crate) fn mgf(name: &str) -> Result<CK_ULONG> {
    Ok(hash(name)?.mgf)
}

/// The parameter of OAEP with a hash.
pub(crate) fn oaep(name: &str) -> Result<Params<'static>> {
    let Hash { digest, mgf, .. } = hash(name)?;
    Ok(Params::Oaep { hash: *digest, mgf: *mgf, label: &[] })
}

/// How many bytes an RSA key takes by OAEP with this hash (RFC 8017 §7.1.1); none where its size is not known.
pub(crate) fn oaep_room(pair: &Kind, name: &str) -> Option<usize> {
    let hash = usize::try_from(hash(name).ok()?.length).ok()?;
    (pair.size > 0).then(|| pair.size.div_ceil(8).saturating_sub(2 * hash + 2))
}

impl Scheme {
    /// What a key of this kind signs with. `mechanism` and `hash` are as the user wrote them;
    /// `offered` is what the token has.
    pub(crate) fn choose(
        kind: &Kind,
        mechanism: Option<&str>,
        hash: Option<&str>,
        offered: &[CK_MECHANISM_TYPE],
    ) -> Result<Self> {
        if kind.family == Family::Hotp {
            let what = format!("{kind} keys give one-time passwords and sign nothing");
            let hint = "a program asks for the next one by C_Sign with CKM_HOTP";
            return Err(Failure::usage(what).hint(hint));
        }
        let mechanism = mechanism.map(mechanism_number).transpose()?;
        let hash = hash.map(self::hash).transpose()?;
        let scheme = match mechanism {
            None => Self::usual(kind, hash)?,
            Some(number) => Self::named(kind, number, hash)?,
        };
        Ok(scheme.within(offered))
    }

    /// Nothing was said about the mechanism.
    fn usual(kind: &Kind, hash: Option<&'static Hash>) -> Result<Self> {
        let or_default = |name| hash.map_or_else(|| self::hash(name), Ok);
        match kind.family {
            Family::Rsa => Ok(Self::streaming(or_default("sha256")?.rsa)),
            Family::Ec => Ok(Self::ecdsa(or_default(kind.usual_hash())?, kind)),
            Family::Dsa => Ok(Self::dsa(or_default("sha256")?, kind)),
            Family::Generic => Ok(Self::streaming(or_default("sha256")?.hmac)),
            Family::Edwards if hash.is_none() => Ok(Self::one_shot(CKM_EDDSA)),
            Family::MlDsa => Self::ml_dsa(hash),
            Family::SlhDsa => Self::slh_dsa(hash),
            Family::Aes if hash.is_none() => Ok(Self::streaming(CKM_AES_CMAC)),
            Family::Hss if hash.is_none() => Ok(Self::streaming(CKM_HSS)),
            Family::Xmss if hash.is_none() => Ok(Self::streaming(CKM_XMSS)),
            Family::Xmssmt if hash.is_none() => Ok(Self::streaming(CKM_XMSSMT)),
            Family::Edwards | Family::Aes | Family::Hss | Family::Xmss | Family::Xmssmt => {
                Err(Failure::usage(format!("signatures with {kind} keys have no --hash")))
            }
            Family::Dh | Family::MlKem | Family::Montgomery => {
                let does = if kind.family == Family::MlKem { "decapsulate" } else { "derive" };
                let failure = Failure::usage(format!("{kind} keys do not sign"));
                Err(failure.hint(format!("'metaslot {does}' is what such a key does")))
            }
            Family::ChaCha20
            | Family::Des2
            | Family::Des3
            | Family::Hotp
            | Family::Old
            | Family::Rc4
            | Family::Other => Err(Failure::usage(format!("{kind} keys have no usual signature"))
                .hint("name one with --mechanism")),
        }
    }

    /// A mechanism by its number: one with a hash inside, or a bare one to which `hash` is added.
    fn named(kind: &Kind, number: CK_MECHANISM_TYPE, added: Option<&'static Hash>) -> Result<Self> {
        let inside = HASHES.iter().find(|hash| hash.has(number));
        if let (Some(inside), Some(added)) = (inside, added)
            && inside.name != added.name
        {
            let name = mechanism_name(number).unwrap_or_default();
            return Err(Failure::usage(format!("{name} already has a hash: drop --hash")));
        }
        match (number, inside.or(added)) {
            (CKM_ECDSA, Some(hash)) => Ok(Self::ecdsa(hash, kind)),
            (CKM_ECDSA, None) => Ok(Self { number: kind.size, ..Self::one_shot(CKM_ECDSA) }),
            (CKM_RSA_PKCS, Some(hash)) => Ok(Self::streaming(hash.rsa)),
            (CKM_RSA_PKCS_PSS, Some(hash)) => Ok(Self::pss(hash)),
            (CKM_RSA_PKCS_PSS, None) => Err(Failure::usage("CKM_RSA_PKCS_PSS needs --hash")),
            (CKM_HASH_ML_DSA, None) => Err(Failure::usage("CKM_HASH_ML_DSA needs --hash")),
            (CKM_HASH_SLH_DSA, None) => Err(Failure::usage("CKM_HASH_SLH_DSA needs --hash")),
            (CKM_ML_DSA | CKM_HASH_ML_DSA, hash) => Self::ml_dsa(hash),
            (CKM_SLH_DSA | CKM_HASH_SLH_DSA, hash) => Self::slh_dsa(hash),
            (CKM_DSA, Some(hash)) => Ok(Self::dsa(hash, kind)),
            (CKM_DSA, None) => Ok(Self { number: kind.size, ..Self::one_shot(CKM_DSA) }),
            (_, Some(hash)) if number == hash.dsa => Ok(Self::dsa(hash, kind)),
            (_, Some(hash)) if number == hash.ecdsa => Ok(Self::ecdsa(hash, kind)),
            (_, Some(hash)) if number == hash.pss => Ok(Self::pss(hash)),
            (CKM_RSA_PKCS | CKM_RSA_X_509 | CKM_EDDSA | CKM_ML_DSA_EXTERNAL_MU, None) => {
                Ok(Self::one_shot(number))
            }
            (_, Some(_)) if inside.is_none() => {
                let name = mechanism_name(number).unwrap_or("this mechanism");
                Err(Failure::usage(format!("{name} takes no --hash")))
            }
            _ => Ok(Self::streaming(number)),
        }
    }

    /// A token without ECDSA over a hash can still digest and sign in two steps.
    fn within(self, offered: &[CK_MECHANISM_TYPE]) -> Self {
        let hash = HASHES.iter().find(|hash| hash.ecdsa == self.mechanism.number);
        match hash {
            Some(hash) if !offered.contains(&hash.ecdsa) && offered.contains(&CKM_ECDSA) => {
                Self { mechanism: Mechanism::new(CKM_ECDSA), digest: Some(hash.digest), ..self }
            }
            _ => self,
        }
    }

    const fn streaming(number: CK_MECHANISM_TYPE) -> Self {
        Self { mechanism: Mechanism::new(number), digest: None, one_shot: false, number: 0 }
    }

    const fn one_shot(number: CK_MECHANISM_TYPE) -> Self {
        Self { one_shot: true, ..Self::streaming(number) }
    }

    const fn ecdsa(hash: &Hash, kind: &Kind) -> Self {
        Self { number: kind.size, ..Self::streaming(hash.ecdsa) }
    }

    const fn dsa(hash: &Hash, kind: &Kind) -> Self {
        Self { number: kind.size, ..Self::streaming(hash.dsa) }
    }

    fn ml_dsa(hash: Option<&Hash>) -> Result<Self> {
        let number = hash.map_or(Some(CKM_ML_DSA), |hash| hash.ml_dsa);
        number.map(Self::streaming).ok_or_else(|| lacks("HashML-DSA", hash))
    }

    fn slh_dsa(hash: Option<&Hash>) -> Result<Self> {
        let number = hash.map_or(Some(CKM_SLH_DSA), |hash| hash.slh_dsa);
        number.map(Self::streaming).ok_or_else(|| lacks("HashSLH-DSA", hash))
    }

    const fn pss(hash: &Hash) -> Self {
        let params = Params::Pss { hash: hash.digest, mgf: hash.mgf, salt_length: hash.length };
        Self { mechanism: Mechanism::with(hash.pss, params), ..Self::streaming(hash.pss) }
    }

    /// Bare ECDSA takes a digest: of anything that is longer than the curve's numbers it signs the
    /// first bytes, so that one signature fits every file that begins so. A µ has one length.
    pub(crate) fn check_length(&self, length: usize) -> Result<()> {
        if self.mechanism.number == CKM_ML_DSA_EXTERNAL_MU && length != MU {
            let what = format!("a µ has {MU} bytes, and {length} bytes are none");
            return Err(Failure::usage(what).hint("a message is signed by -m ml-dsa"));
        }
        let is_bare = self.mechanism.number == CKM_ECDSA && self.digest.is_none();
        let is_digest = HASHES.iter().any(|hash| hash.length == length as CK_ULONG);
        if !is_bare || is_digest || length <= self.number {
            return Ok(());
        }
        let what = format!("CKM_ECDSA takes a digest, and {length} bytes are none");
        Err(Failure::usage(what)
            .hint("let the token digest the data: --hash sha256, or -m ecdsa-sha256"))
    }

    /// For messages and JSON: the mechanism's name.
    pub(crate) fn name(&self) -> String {
        let number = self.mechanism.number;
        mechanism_name(number).map_or_else(|| format!("0x{number:x}"), str::to_owned)
    }
}

/// What is to be said where a form of signature does not have a hash.
fn lacks(form: &str, hash: Option<&Hash>) -> Failure {
    Failure::usage(format!("{form} does not have {}", hash.map_or("it", |hash| hash.name)))
}

impl Hash {
    fn has(&self, number: CK_MECHANISM_TYPE) -> bool {
        let one = [self.rsa, self.pss, self.ecdsa, self.dsa, self.hmac].contains(&number);
        one || [self.ml_dsa, self.slh_dsa].contains(&Some(number))
    }
}

impl Kind {
    /// A hash as strong as the curve.
    const fn usual_hash(&self) -> &'static str {
        match self.size {
            48..66 => "sha384",
            66.. => "sha512",
            _ => "sha256",
        }
    }
}

/// Names that are shorter than the standard's.
const SHORT: &[(&str, CK_MECHANISM_TYPE)] = &[
    ("rsa-pss", CKM_RSA_PKCS_PSS),
    ("pss", CKM_RSA_PKCS_PSS),
    ("rsa-oaep", CKM_RSA_PKCS_OAEP),
    ("oaep", CKM_RSA_PKCS_OAEP),
    ("cmac", CKM_AES_CMAC),
];

/// Those names.
pub(crate) fn short_mechanisms() -> impl Iterator<Item = (&'static str, CK_MECHANISM_TYPE)> {
    SHORT.iter().copied()
}

/// A mechanism by its name, with or without `CKM_`, by a short word, or by its number.
pub(crate) fn mechanism_number(text: &str) -> Result<CK_MECHANISM_TYPE> {
    let short = SHORT.iter().find(|row| row.0.eq_ignore_ascii_case(text)).map(|row| row.1);
    let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    short.or_else(|| mechanism_by_name(text)).or(number).ok_or_else(|| {
        Failure::usage(format!("unknown mechanism '{text}'"))
            .hint("'metaslot mechanisms' lists those of the token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[CK_MECHANISM_TYPE] =
        &[CKM_ECDSA, CKM_ECDSA_SHA256, CKM_ECDSA_SHA384, CKM_ECDSA_SHA512];

    fn choose(kind: &str, mechanism: Option<&str>, hash: Option<&str>) -> Result<String> {
        let scheme = Scheme::choose(&kind.parse().unwrap(), mechanism, hash, ALL)?;
        Ok(scheme.name()[4..].to_owned())
    }

    #[test]
    fn every_name_of_the_standard_is_taken() {
        for name in ["CKM_SHAKE_128_KEY_DERIVE", "shake-128-key-derivation", "923", "0x39b"] {
            let number = mechanism_number(name).ok();
            assert_eq!(number, (name != "923").then_some(CKM_SHAKE_128_KEY_DERIVE), "{name}");
        }
    }

    #[test]
    fn each_key_has_its_usual_signature() {
        let rows = [
            ("rsa:2048", "SHA256_RSA_PKCS"),
            ("ec:p256", "ECDSA_SHA256"),
            ("ec:p384", "ECDSA_SHA384"),
            ("ec:p521", "ECDSA_SHA512"),
            ("ec:sect283r1", "ECDSA_SHA256"),
            ("ec:sect409k1", "ECDSA_SHA384"),
            ("ec:sect571r1", "ECDSA_SHA512"),
            ("ed25519", "EDDSA"),
            ("ml-dsa:65", "ML_DSA"),
            ("slh-dsa:sha2-128f", "SLH_DSA"),
            ("aes:256", "AES_CMAC"),
            ("generic:32", "SHA256_HMAC"),
        ];
        for (kind, name) in rows {
            assert_eq!(choose(kind, None, None).unwrap(), name);
        }
        assert!(choose("x25519", None, None).is_err());
        assert!(choose("ml-kem:768", None, None).is_err());
        assert!(choose("ed25519", None, Some("sha256")).is_err());
        assert_eq!(choose("ml-dsa:87", None, Some("sha512")).unwrap(), "HASH_ML_DSA_SHA512");
        assert!(choose("ml-dsa:87", None, Some("sha1")).is_err());
    }

    #[test]
    fn a_hash_completes_a_bare_mechanism() {
        let rows = [
            ("rsa:2048", "rsa-pss", Some("sha384"), "SHA384_RSA_PKCS_PSS"),
            ("rsa:2048", "CKM_SHA256_RSA_PKCS_PSS", None, "SHA256_RSA_PKCS_PSS"),
            ("rsa:2048", "rsa-pkcs", Some("SHA-512"), "SHA512_RSA_PKCS"),
            ("rsa:2048", "rsa-pkcs", None, "RSA_PKCS"),
            ("ec:p256", "ecdsa", Some("sha256"), "ECDSA_SHA256"),
            ("ec:p256", "ecdsa", None, "ECDSA"),
            ("ec:p256", "0x1044", None, "ECDSA_SHA256"),
            ("ml-dsa:44", "ml-dsa", None, "ML_DSA"),
            ("ml-dsa:44", "ml-dsa", Some("sha3-256"), "HASH_ML_DSA_SHA3_256"),
            ("ml-dsa:44", "hash-ml-dsa", Some("sha224"), "HASH_ML_DSA_SHA224"),
            ("ml-dsa:44", "hash-ml-dsa-shake256", None, "HASH_ML_DSA_SHAKE256"),
            ("ml-dsa:44", "ml-dsa-external-mu", None, "ML_DSA_EXTERNAL_MU"),
            ("slh-dsa:sha2-128s", "slh-dsa", None, "SLH_DSA"),
            ("slh-dsa:sha2-128s", "hash-slh-dsa", Some("sha512"), "HASH_SLH_DSA_SHA512"),
            ("slh-dsa:sha2-128s", "hash-slh-dsa-sha3-256", None, "HASH_SLH_DSA_SHA3_256"),
        ];
        for (kind, mechanism, hash, name) in rows {
            assert_eq!(choose(kind, Some(mechanism), hash).unwrap(), name, "{mechanism}");
        }
        assert!(choose("rsa:2048", Some("rsa-pss"), None).is_err());
        assert!(choose("ml-dsa:44", Some("ml-dsa-external-mu"), Some("sha256")).is_err());
        let mu =
            Scheme::choose(&"ml-dsa:44".parse().unwrap(), Some("ml-dsa-external-mu"), None, ALL);
        assert!(mu.unwrap().one_shot, "a µ is signed in one call");
        assert!(choose("rsa:2048", Some("sha256-rsa-pkcs"), Some("sha1")).is_err());
        assert!(choose("aes:256", Some("cmac"), Some("sha1")).is_err());
        assert!(choose("rsa:2048", Some("no-such"), None).is_err());
    }

    #[test]
    fn a_token_without_hashing_ecdsa_digests_first() {
        let kind: Kind = "ec:p256".parse().unwrap();
        let scheme = Scheme::choose(&kind, None, None, &[CKM_ECDSA]).unwrap();
        assert_eq!(scheme.mechanism.number, CKM_ECDSA);
        assert_eq!(scheme.digest, Some(CKM_SHA256));
        assert_eq!(scheme.number, 32);
    }

    #[test]
    fn bare_ecdsa_takes_what_is_no_longer_than_the_curve_or_a_digest() {
        let check = |mechanism, hash, length| {
            let kind = "ec:p256".parse().unwrap();
            Scheme::choose(&kind, Some(mechanism), hash, ALL).unwrap().check_length(length)
        };
        for length in [0, 20, 31, 32, 48, 64] {
            assert!(check("ecdsa", None, length).is_ok(), "{length}");
        }
        for length in [33, 47, 63, 65, 100_000] {
            assert!(check("ecdsa", None, length).is_err(), "{length}");
            assert!(check("ecdsa", Some("sha256"), length).is_ok(), "{length}");
        }
    }

    #[test]
    fn a_mu_has_one_length() {
        let kind = "ml-dsa:65".parse().unwrap();
        let scheme = Scheme::choose(&kind, Some("ml-dsa-external-mu"), None, ALL).unwrap();
        assert!(scheme.check_length(64).is_ok());
        for length in [0, 63, 65, 100_000] {
            assert!(scheme.check_length(length).is_err(), "{length}");
        }
    }

    #[test]
    fn pss_salts_with_as_many_bytes_as_its_hash_has() {
        let scheme = Scheme::pss(hash("sha384").unwrap());
        let Params::Pss { hash, mgf, salt_length } = scheme.mechanism.params else {
            panic!("{scheme:?}");
        };
        assert_eq!((hash, mgf, salt_length), (CKM_SHA384, CKG_MGF1_SHA384, 48));
    }
}
