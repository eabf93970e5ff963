// SPDX-License-Identifier: Apache-2.0
//! Types of keys: how they are written (`ec:p256`), generated and recognised. One row per type.

use super::family::Family;
use super::hss;
use super::old::Old;
use super::set::Set;
use super::xmss;
use crate::encoding::{der, significant};
use crate::failure::Failure;
use crate::key::Usage;
use metaslot_ck::*;
use metaslot_client::Template;
use metaslot_spi::curves::Curve;
use metaslot_spi::known_groups;
use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::str::FromStr;

/// A type of key: family and size. The size of an RSA, AES, RC4 or [`Old`] key is in bits, that of a generic
/// secret in bytes, that of a curve and of DSA in bytes of its numbers; that of a key of a parameter set is the
/// number in the set's name, of XMSS that of the set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Kind {
    pub(crate) family: Family,
    pub(crate) size: usize,
    name: String,
}

/// A curve whose keys are numbers of one length (RFC 8410).
struct NumberCurve {
    name: &'static str,
    family: Family,
    key_type: CK_KEY_TYPE,
    /// In bytes.
    length: usize,
    /// `CKA_EC_PARAMS`
    oid: &'static [u8],
    /// The same as older modules have it: a PrintableString.
    named: &'static [u8],
}

const fn edwards(
    name: &'static str,
    length: usize,
    oid: &'static [u8],
    named: &'static [u8],
) -> NumberCurve {
    NumberCurve { name, family: Family::Edwards, key_type: CKK_EC_EDWARDS, length, oid, named }
}

const fn montgomery(
    name: &'static str,
    length: usize,
    oid: &'static [u8],
    named: &'static [u8],
) -> NumberCurve {
    let (family, key_type) = (Family::Montgomery, CKK_EC_MONTGOMERY);
    NumberCurve { family, key_type, ..edwards(name, length, oid, named) }
}

/// The first of each family is that of keys which do not say theirs.
const NUMBER_CURVES: [NumberCurve; 4] = [
    edwards("ed25519", 32, ED25519_OID, b"\x13\x0cedwards25519"),
    edwards("ed448", 57, ED448_OID, b"\x13\x0aedwards448"),
    montgomery("x25519", 32, X25519_OID, b"\x13\x0acurve25519"),
    montgomery("x448", 56, X448_OID, b"\x13\x08curve448"),
];

impl NumberCurve {
    fn is(&self, params: &[u8]) -> bool {
        [self.oid, self.named].contains(&params)
    }
}

/// `1.3.101.112`
pub(crate) const ED25519_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
/// `1.3.101.110`
pub(crate) const X25519_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x6e];
/// `1.3.101.113`
pub(crate) const ED448_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x71];
/// `1.3.101.111`
pub(crate) const X448_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x6f];
/// 65537, the usual one.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// The types that `--type` takes, for help and errors.
pub(crate) const TYPES: &str = "rsa:BITS, ec:p224, ec:p256, ec:p384, ec:p521, ec:secp256k1, \
    ec:sect163k1 to ec:sect571r1, ec:brainpoolP256r1 and other curves by their names, ed25519, x25519, ed448, x448, dh:BITS, ml-dsa:44, ml-dsa:65, ml-dsa:87, ml-kem:512, ml-kem:768, ml-kem:1024, \
    slh-dsa:sha2-128s to slh-dsa:shake-256f, hss, hss:HASH:TREES, xmss:SET, xmssmt:SET, aes:128, aes:192, aes:256, chacha20, generic:BYTES, hotp:BYTES, \
    des2, des3, rc4:BITS, and of old or national ciphers camellia:BITS, aria:BITS, seed, twofish:BITS, salsa20, cast5:BITS, \
    blowfish:BITS, idea, rc2:BITS, rc5:BITS, des";

/// Types that are written as they are, or often of one of these sizes.
const USUAL: &[&str] = &[
    "rsa:2048",
    "rsa:3072",
    "rsa:4096",
    "ed25519",
    "x25519",
    "ed448",
    "x448",
    "dh:2048",
    "dh:3072",
    "aes:128",
    "aes:192",
    "aes:256",
    "chacha20",
    "hss",
    "generic:32",
    "hotp:20",
    "des2",
    "des3",
    "rc4:128",
];

/// Types that a shell offers.
pub(crate) fn types() -> impl Iterator<Item = String> {
    let curves = Curve::all().map(|curve| format!("ec:{}", written(curve)));
    let sets = Set::all().map(|set| set.name.to_owned());
    let ready = USUAL.iter().map(ToString::to_string).chain(Old::usual());
    ready.chain(curves).chain(sets).chain(xmss::types())
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (family, size) = lower.split_once(':').unwrap_or((&lower, ""));
        let number = size.parse::<usize>().ok().filter(|_| !size.starts_with('+'));
        let found = match (family, number) {
            ("rsa", Some(bits @ 512..=16384)) => Some((Family::Rsa, bits)),
            ("aes", Some(bits @ (128 | 192 | 256))) => Some((Family::Aes, bits)),
            ("generic", Some(bytes @ 1..=4096)) => Some((Family::Generic, bytes)),
            ("hotp", Some(bytes @ 10..=64)) => Some((Family::Hotp, bytes)),
            ("rc4", Some(bits @ 8..=2048)) if bits % 8 == 0 => Some((Family::Rc4, bits)),
            // Its order is not in the key.
            ("dh", Some(bits)) => known_groups::prime(bits).map(|_| (Family::Dh, 0)),
            ("des2", None) if size.is_empty() => Some((Family::Des2, 16)),
            ("des3", None) if size.is_empty() => Some((Family::Des3, 24)),
            ("ec", None) => curve(size).map(|curve| (Family::Ec, curve.order_length())),
            ("chacha20", None) if size.is_empty() => Some((Family::ChaCha20, 32)),
            ("xmss", None) => xmss::number(Family::Xmss, size).map(|set| (Family::Xmss, set)),
            ("xmssmt", None) => xmss::number(Family::Xmssmt, size).map(|set| (Family::Xmssmt, set)),
            ("hss", None) if !lower.ends_with(':') => hss::types(size).map(|_| (Family::Hss, 0)),
            _ => match Old::named(family).filter(|_| !lower.ends_with(':')) {
                Some(old) => old.bits(size, number).map(|bits| (Family::Old, bits)),
                None => number_curve(&lower)
                    .map(|curve| (curve.family, curve.length))
                    .or_else(|| Set::named(&lower).map(|set| (set.family, set.size))),
            },
        };
        let (family, size) = found.ok_or_else(|| takes(family, number))?;
        // Some curves have capital letters in their names.
        let of_curve = lower.strip_prefix("ec:").and_then(curve);
        let name = of_curve.map(|curve| format!("ec:{}", written(curve)));
        let name = name.unwrap_or(lower);
        Ok(Self { family, size, name })
    }
}

/// What the command line takes in place of what it does not.
fn takes(family: &str, number: Option<usize>) -> String {
    match (family, number) {
        ("rsa", Some(_)) => String::from("an RSA key has 512 to 16384 bits"),
        ("generic", Some(_)) => String::from("a generic secret has 1 to 4096 bytes"),
        ("hotp", Some(_)) => {
            String::from("a key of HOTP has 10 to 64 bytes, a new one 16 at least")
        }
        ("rc4", Some(_)) => String::from("an RC4 key has 8 to 2048 bits, a multiple of 8"),
        ("dh", Some(_)) => {
            String::from("a Diffie-Hellman key has 2048, 3072, 4096, 6144 or 8192 bits (RFC 7919)")
        }
        ("aes", Some(_)) => String::from("an AES key has 128, 192 or 256 bits"),
        ("ml-dsa", Some(_)) => String::from("ML-DSA has the sets 44, 65 and 87"),
        ("ml-kem", Some(_)) => String::from("ML-KEM has the sets 512, 768 and 1024"),
        ("slh-dsa", _) => String::from(
            "SLH-DSA has the sets sha2-128s, sha2-128f, sha2-192s, sha2-192f, sha2-256s, sha2-256f, and those of shake",
        ),
        ("hss", _) => hss::FORM.to_owned(),
        ("xmss" | "xmssmt", _) => xmss::FORM.to_owned(),
        (old, Some(_)) if Old::named(old).is_some_and(|old| !old.has_one_length()) => {
            Old::named(old).map(Old::takes).unwrap_or_default()
        }
        _ => format!("one of {TYPES}"),
    }
}

/// As the command line has it: short where it is one of NIST's over a prime field, else what its standard calls it.
fn written(curve: &Curve) -> Cow<'static, str> {
    let short = curve.others.iter().find_map(|name| name.strip_prefix("P-"));
    short.map_or_else(|| curve.name.to_string_lossy(), |bits| format!("p{bits}").into())
}

/// By that name, or another one of its standards.
fn curve(name: &str) -> Option<&'static Curve> {
    Curve::all().find(|curve| {
        let standards = iter::once(curve.name.to_string_lossy());
        let others = curve.others.iter().map(|other| Cow::from(*other));
        let mut names = standards.chain(others).chain([written(curve)]);
        names.any(|known| known.eq_ignore_ascii_case(name))
    })
}

fn number_curve(name: &str) -> Option<&'static NumberCurve> {
    NUMBER_CURVES.iter().find(|curve| curve.name == name)
}

/// The object identifier of a curve that a module calls by its name.
pub(crate) fn identified(params: &[u8]) -> Option<&'static [u8]> {
    NUMBER_CURVES.iter().find(|curve| curve.named == params).map(|curve| curve.oid)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Set {
    /// The type of its keys.
    pub(crate) fn kind(&self) -> Kind {
        Kind { family: self.family, size: self.size, name: self.name.to_owned() }
    }
}

/// What `C_GenerateKey` or `C_GenerateKeyPair` need beside names and usage.
pub(crate) struct Generation {
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    /// For the public half, or for the secret key.
    pub(crate) template: Template,
    /// For the private half.
    pub(crate) private: Template,
    pub(crate) pair: bool,
    /// What the key is for when nothing is said.
    pub(crate) usages: &'static [Usage],
}

impl Kind {
    /// The type of an object, from `CKA_KEY_TYPE`, `CKA_EC_PARAMS`, and the lengths in bytes of
    /// `CKA_MODULUS` and `CKA_VALUE`, where the object has them.
    pub(crate) fn of(
        key_type: CK_KEY_TYPE,
        params: Option<&[u8]>,
        modulus: Option<&[u8]>,
        value_length: Option<u64>,
    ) -> Self {
        let size = value_length.and_then(|bytes| usize::try_from(bytes).ok());
        let sized = |family, name: &str, size: Option<usize>| Self {
            family,
            size: size.unwrap_or(0),
            name: size.map_or_else(|| name.to_owned(), |size| format!("{name}:{size}")),
        };
        let plain = |family, size, name: &str| Self { family, size, name: name.to_owned() };
        match key_type {
            CKK_RSA => sized(Family::Rsa, "rsa", modulus.map(bits)),
            CKK_AES => sized(Family::Aes, "aes", size.map(|bytes| bytes * 8)),
            CKK_GENERIC_SECRET => sized(Family::Generic, "generic", size),
            CKK_HOTP => sized(Family::Hotp, "hotp", size),
            CKK_RC4 => sized(Family::Rc4, "rc4", size.map(|bytes| bytes * 8)),
            CKK_CHACHA20 => plain(Family::ChaCha20, 32, "chacha20"),
            CKK_DES2 => plain(Family::Des2, 16, "des2"),
            CKK_DES3 => plain(Family::Des3, 24, "des3"),
            CKK_EC => match params.and_then(|params| Curve::named(params).ok()) {
                Some(curve) => {
                    plain(Family::Ec, curve.order_length(), &format!("ec:{}", written(curve)))
                }
                None => plain(Family::Ec, 0, "ec"),
            },
            CKK_EC_EDWARDS | CKK_EC_MONTGOMERY => {
                let mut curves = NUMBER_CURVES.iter().filter(|curve| curve.key_type == key_type);
                let usual = curves.clone().next();
                let named = curves.find(|curve| params.is_some_and(|params| curve.is(params)));
                named.or(usual).map_or_else(
                    || plain(Family::Other, 0, "ec"),
                    |curve| plain(curve.family, curve.length, curve.name),
                )
            }
            CKK_ML_DSA => plain(Family::MlDsa, 0, "ml-dsa"),
            CKK_ML_KEM => plain(Family::MlKem, 0, "ml-kem"),
            CKK_HSS => plain(Family::Hss, 0, "hss"),
            CKK_SLH_DSA => plain(Family::SlhDsa, 0, "slh-dsa"),
            CKK_XMSS => plain(Family::Xmss, 0, "xmss"),
            CKK_XMSSMT => plain(Family::Xmssmt, 0, "xmssmt"),
            other if Old::of(other).is_some() => {
                let bits = size.map(|bytes| bytes * 8);
                let name = Old::of(other).map(|old| old.written(bits)).unwrap_or_default();
                Self { family: Family::Old, size: bits.unwrap_or(0), name }
            }
            other => {
                let name = key_type_name(other).and_then(|name| name.strip_prefix("CKK_"));
                let name = name.map(|name| name.to_ascii_lowercase().replace('_', "-"));
                let name = name.unwrap_or_else(|| format!("0x{other:x}"));
                Self { family: Family::Other, size: 0, name }
            }
        }
    }

    /// The type of an object in a group modulo a prime, from `CKA_PRIME` and, of DSA, `CKA_SUBPRIME`; `None` for any other.
    pub(crate) fn of_group(
        key_type: CK_KEY_TYPE,
        prime: Option<&[u8]>,
        order: Option<&[u8]>,
    ) -> Option<Self> {
        let (family, name) = match key_type {
            CKK_DSA => (Family::Dsa, "dsa"),
            CKK_DH => (Family::Dh, "dh"),
            CKK_X9_42_DH => (Family::Dh, "x9.42-dh"),
            _ => return None,
        };
        let name = prime.map_or_else(|| name.to_owned(), |prime| format!("{name}:{}", bits(prime)));
        Some(Self { family, size: order.map_or(0, |order| significant(order).len()), name })
    }

    /// The type of an object that says its parameter set, else as [`Self::of`] has it with nothing but its `CKA_KEY_TYPE`.
    pub(crate) fn of_set(key_type: CK_KEY_TYPE, number: CK_ULONG) -> Self {
        let plain = Self::of(key_type, None, None, None);
        match (plain.family, Set::numbered(key_type, number)) {
            (_, Some(set)) => set.kind(),
            (family @ (Family::Xmss | Family::Xmssmt), None) => match xmss::name(family, number) {
                Some(name) => Self { family, size: usize::try_from(number).unwrap_or(0), name },
                None => plain,
            },
            _ => plain,
        }
    }

    /// Its parameter set, where it is one's.
    pub(crate) fn set(&self) -> Option<&'static Set> {
        Set::named(&self.name)
    }

    fn curve(&self) -> Option<&'static Curve> {
        self.name.strip_prefix("ec:").and_then(curve)
    }

    /// Whether it is on a curve that signs nothing under the usual policies.
    pub(crate) fn is_on_weak_curve(&self) -> bool {
        self.curve().is_some_and(Curve::is_weak)
    }

    /// The rule of the usual policies by which no new key of this type is made.
    pub(crate) fn refused_as_new(&self) -> Option<&'static str> {
        match self.family {
            _ if self.is_on_weak_curve() => Some("weak-curves"),
            Family::Des2 | Family::Des3 | Family::Rc4 => Some("weak-ciphers"),
            Family::Old if self.name != "salsa20" => Some("weak-ciphers"),
            _ => None,
        }
    }

    /// `CKA_EC_PARAMS` of a key on a curve that has a name here.
    pub(crate) fn params(&self) -> Option<Vec<u8>> {
        match self.family {
            Family::Edwards | Family::Montgomery => {
                number_curve(&self.name).map(|curve| curve.oid.to_vec())
            }
            _ => self.curve().map(|curve| der::element(der::OBJECT_IDENTIFIER, curve.oid)),
        }
    }

    /// The point in its `CKA_EC_POINT`, an OCTET STRING; older modules give the bare point.
    pub(crate) fn point<'a>(&self, attribute: &'a [u8]) -> &'a [u8] {
        match self.curve() {
            Some(curve) => curve.point(attribute),
            None => der::point(attribute, self.size),
        }
    }

    /// `CKA_KEY_TYPE`, of a type that can be written.
    pub(crate) fn key_type(&self) -> CK_KEY_TYPE {
        match self.family {
            Family::Aes => CKK_AES,
            Family::ChaCha20 => CKK_CHACHA20,
            Family::Des2 => CKK_DES2,
            Family::Des3 => CKK_DES3,
            Family::Dh => CKK_DH,
            Family::Dsa => CKK_DSA,
            Family::Ec => CKK_EC,
            Family::Edwards => CKK_EC_EDWARDS,
            Family::Hotp => CKK_HOTP,
            Family::Hss => CKK_HSS,
            Family::MlDsa => CKK_ML_DSA,
            Family::MlKem => CKK_ML_KEM,
            Family::Rc4 => CKK_RC4,
            Family::Rsa => CKK_RSA,
            Family::SlhDsa => CKK_SLH_DSA,
            Family::Montgomery => CKK_EC_MONTGOMERY,
            Family::Xmss => CKK_XMSS,
            Family::Xmssmt => CKK_XMSSMT,
            Family::Old => self.old().map_or(CKK_GENERIC_SECRET, |old| old.key_type),
            Family::Generic | Family::Other => CKK_GENERIC_SECRET,
        }
    }

    /// `CKA_CLASS` of a key that is no pair.
    pub(crate) fn class(&self) -> CK_OBJECT_CLASS {
        if self.family == Family::Hotp { CKO_OTP_KEY } else { CKO_SECRET_KEY }
    }

    /// How many bytes the value of a secret key has; none of a pair.
    pub(crate) const fn secret_length(&self) -> Option<usize> {
        match self.family {
            Family::Aes | Family::Rc4 | Family::Old => Some(self.size / 8),
            Family::ChaCha20 | Family::Des2 | Family::Des3 | Family::Generic | Family::Hotp => {
                Some(self.size)
            }
            Family::Dh
            | Family::Dsa
            | Family::Ec
            | Family::Edwards
            | Family::Hss
            | Family::MlDsa
            | Family::MlKem
            | Family::Other
            | Family::Rsa
            | Family::SlhDsa
            | Family::Montgomery
            | Family::Xmss
            | Family::Xmssmt => None,
        }
    }

    fn old(&self) -> Option<&'static Old> {
        Old::named(self.name.split(':').next().unwrap_or_default())
    }

    /// Whether its keys are all as long, so that nobody says how long (PKCS#11 3.2 §5.18.5).
    pub(crate) fn has_one_length(&self) -> bool {
        match self.family {
            Family::Des2 | Family::Des3 | Family::ChaCha20 => true,
            Family::Old => self.old().is_some_and(Old::has_one_length),
            _ => false,
        }
    }

    const fn possible(&self) -> &'static [Usage] {
        match self.family {
            Family::Rsa => &[Usage::Sign, Usage::Decrypt, Usage::Unwrap, Usage::Decapsulate],
            Family::Ec => &[Usage::Sign, Usage::Derive, Usage::Decapsulate],
            Family::Dsa
            | Family::Edwards
            | Family::Hotp
            | Family::Hss
            | Family::MlDsa
            | Family::SlhDsa
            | Family::Xmss
            | Family::Xmssmt => &[Usage::Sign],
            Family::MlKem => &[Usage::Decapsulate],
            Family::Dh => &[Usage::Derive],
            Family::Montgomery => &[Usage::Derive, Usage::Decapsulate],
            Family::Generic => &[Usage::Sign, Usage::Derive],
            Family::ChaCha20 => &[Usage::Decrypt, Usage::Derive],
            Family::Rc4 => &[Usage::Decrypt],
            Family::Des2 | Family::Des3 => &[Usage::Decrypt, Usage::Unwrap],
            Family::Aes | Family::Old | Family::Other => {
                &[Usage::Sign, Usage::Decrypt, Usage::Unwrap, Usage::Derive]
            }
        }
    }

    /// A use that the type cannot have would make a key that is good for nothing.
    pub(crate) fn check_usages(&self, asked: Option<&[Usage]>) -> std::result::Result<(), Failure> {
        let possible = self.possible();
        match asked.iter().copied().flatten().find(|usage| !possible.contains(usage)) {
            None => Ok(()),
            Some(wrong) => Err(Failure::usage(format!("{self} keys cannot {}", wrong.name()))),
        }
    }

    /// What a key is for: what was asked for, or what its type is for.
    pub(crate) fn usages<'a>(&self, asked: Option<&'a [Usage]>) -> &'a [Usage] {
        asked.unwrap_or_else(|| self.generation().usages)
    }

    /// How to make such a key.
    pub(crate) fn generation(&self) -> Generation {
        let length = |bytes: usize| Template::new().ulong(CKA_VALUE_LEN, bytes as CK_ULONG);
        let secret = |mechanism, template, usages| Generation {
            mechanism,
            template,
            private: Template::new(),
            pair: false,
            usages,
        };
        let pair = |mechanism, template, usages| Generation {
            pair: true,
            ..secret(mechanism, template, usages)
        };
        let params = || Template::new().bytes(CKA_EC_PARAMS, self.params().unwrap_or_default());
        let number = || Template::new().ulong(CKA_PARAMETER_SET, self.size as CK_ULONG);
        let of_set = || self.set().map_or_else(Template::new, Set::parameter);
        match self.family {
            Family::Rsa => pair(
                CKM_RSA_PKCS_KEY_PAIR_GEN,
                Template::new()
                    .ulong(CKA_MODULUS_BITS, self.size as CK_ULONG)
                    .bytes(CKA_PUBLIC_EXPONENT, EXPONENT),
                &[Usage::Sign, Usage::Decrypt],
            ),
            Family::Ec => pair(CKM_EC_KEY_PAIR_GEN, params(), &[Usage::Sign, Usage::Derive]),
            Family::Edwards => pair(CKM_EC_EDWARDS_KEY_PAIR_GEN, params(), &[Usage::Sign]),
            Family::Montgomery => pair(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, params(), &[Usage::Derive]),
            // Of a group that somebody has made: they come from files.
            Family::Dsa => pair(CKM_DSA_KEY_PAIR_GEN, Template::new(), &[Usage::Sign]),
            // The groups of RFC 7919 have the base 2; others come from files.
            Family::Dh => {
                let bits = self.name.strip_prefix("dh:").and_then(|bits| bits.parse().ok());
                let prime = bits.and_then(known_groups::prime).unwrap_or_default();
                let group = Template::new().bytes(CKA_PRIME, &prime).bytes(CKA_BASE, [2]);
                pair(CKM_DH_PKCS_KEY_PAIR_GEN, group, &[Usage::Derive])
            }
            Family::MlDsa => pair(CKM_ML_DSA_KEY_PAIR_GEN, of_set(), &[Usage::Sign]),
            Family::MlKem => pair(CKM_ML_KEM_KEY_PAIR_GEN, of_set(), &[Usage::Decapsulate]),
            Family::SlhDsa => pair(CKM_SLH_DSA_KEY_PAIR_GEN, of_set(), &[Usage::Sign]),
            Family::Hss => Generation {
                private: hss::template(&self.name),
                ..pair(CKM_HSS_KEY_PAIR_GEN, Template::new(), &[Usage::Sign])
            },
            Family::Xmss => pair(CKM_XMSS_KEY_PAIR_GEN, number(), &[Usage::Sign]),
            Family::Xmssmt => pair(CKM_XMSSMT_KEY_PAIR_GEN, number(), &[Usage::Sign]),
            Family::Hotp => secret(CKM_HOTP_KEY_GEN, length(self.size), &[Usage::Sign]),
            Family::Aes => secret(CKM_AES_KEY_GEN, length(self.size / 8), &[Usage::Decrypt]),
            Family::Rc4 => secret(CKM_RC4_KEY_GEN, length(self.size / 8), &[Usage::Decrypt]),
            Family::Des2 => secret(CKM_DES2_KEY_GEN, Template::new(), &[Usage::Decrypt]),
            Family::Des3 => secret(CKM_DES3_KEY_GEN, Template::new(), &[Usage::Decrypt]),
            Family::Old => {
                let mechanism = self.old().map_or(UNAVAILABLE, |old| old.mechanism);
                let length =
                    if self.has_one_length() { Template::new() } else { length(self.size / 8) };
                secret(mechanism, length, &[Usage::Decrypt])
            }
            Family::ChaCha20 => secret(CKM_CHACHA20_KEY_GEN, Template::new(), &[Usage::Decrypt]),
            Family::Generic | Family::Other => {
                secret(CKM_GENERIC_SECRET_KEY_GEN, length(self.size), &[Usage::Sign])
            }
        }
    }
}

/// Bits of an unsigned big-endian number.
fn bits(number: &[u8]) -> usize {
    let number = significant(number);
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_written() {
        for name in types() {
            assert_eq!(name.parse::<Kind>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "rsa",
            "rsa:",
            "rsa:+2048",
            "rsa:100",
            "ec",
            "ec:p255",
            "aes:512",
            "ed25519:1",
            "rc4:12",
            "hotp",
            "hotp:9",
            "hotp:65",
            "camellia",
            "camellia:160",
            "dh:1024",
            "seed:128",
            "des:",
            "ml-dsa",
            "ml-dsa:+44",
            "ml-dsa:45",
            "ml-kem:44",
            "slh-dsa",
            "slh-dsa:128s",
            "hss:",
            "hss:1",
            "hss:sha256-192:h10",
            "xmss",
            "xmss:1",
            "xmss:sha2-20/2-256",
        ] {
            assert!(name.parse::<Kind>().is_err(), "{name}");
        }
    }

    #[test]
    fn an_object_has_the_type_it_was_generated_with() {
        for curve in Curve::all() {
            let kind: Kind = format!("ec:{}", written(curve)).parse().unwrap();
            assert_eq!(Kind::of(CKK_EC, kind.params().as_deref(), None, None), kind);
            assert_eq!(kind.is_on_weak_curve(), curve.is_weak());
        }
        for name in ["ec:secp256r1", "ec:P-256", "ec:prime256v1", "EC:P256"] {
            assert_eq!(name.parse::<Kind>().unwrap().to_string(), "ec:p256");
        }
        assert_eq!("EC:BRAINPOOLP256R1".parse::<Kind>().unwrap().to_string(), "ec:brainpoolP256r1");
        assert_eq!(Kind::of(CKK_AES, None, None, Some(32)), "aes:256".parse().unwrap());
        assert_eq!(Kind::of(CKK_GENERIC_SECRET, None, None, Some(20)).to_string(), "generic:20");
        assert_eq!(Kind::of(CKK_RSA, None, Some(&[0x80; 256]), None).to_string(), "rsa:2048");
        assert_eq!(Kind::of(CKK_RSA, None, Some(&[0, 0x7f, 0]), None).to_string(), "rsa:15");
        assert_eq!(Kind::of(CKK_DES3, None, None, None).to_string(), "des3");
        assert_eq!(Kind::of(CKK_ARIA, None, None, Some(24)), "aria:192".parse().unwrap());
        assert_eq!(Kind::of(CKK_SEED, None, None, Some(16)), "seed".parse().unwrap());
        assert_eq!(Kind::of(CKK_EC, Some(&[5, 0]), None, None).to_string(), "ec");
        assert_eq!(Kind::of_set(CKK_ML_DSA, CKP_ML_DSA_87), "ml-dsa:87".parse().unwrap());
        assert_eq!(Kind::of_set(CKK_ML_DSA, 9).to_string(), "ml-dsa");
        assert_eq!(
            Kind::of_set(CKK_SLH_DSA, CKP_SLH_DSA_SHAKE_256F).to_string(),
            "slh-dsa:shake-256f"
        );
        assert_eq!(Kind::of_set(CKK_SLH_DSA, 13).to_string(), "slh-dsa");
        assert_eq!(Kind::of_set(CKK_AES, CKP_ML_DSA_87).to_string(), "aes");
        assert_eq!(Kind::of_set(CKK_XMSSMT, 0x22), "xmssmt:sha2-20/4-192".parse().unwrap());
        assert_eq!(Kind::of_set(CKK_XMSS, 22).to_string(), "xmss");
        assert_eq!(Kind::of(CKK_HSS, None, None, None), "hss".parse().unwrap());
        for (key_type, oid, named, name) in [
            (CKK_EC_EDWARDS, ED25519_OID, &b"\x13\x0cedwards25519"[..], "ed25519"),
            (CKK_EC_EDWARDS, ED448_OID, b"\x13\x0aedwards448", "ed448"),
            (CKK_EC_MONTGOMERY, X25519_OID, b"\x13\x0acurve25519", "x25519"),
            (CKK_EC_MONTGOMERY, X448_OID, b"\x13\x08curve448", "x448"),
        ] {
            for params in [oid, named] {
                assert_eq!(Kind::of(key_type, Some(params), None, None).to_string(), name);
            }
        }
    }

    #[test]
    fn a_point_is_taken_out_of_its_octet_string() {
        for name in types() {
            let kind: Kind = name.parse().unwrap();
            let Some(length) = kind.curve().map(Curve::point_length) else { continue };
            let point = [&[4], &vec![7; length - 1][..]].concat();
            assert_eq!(kind.point(&point), point, "{name}");
            assert_eq!(kind.point(&der::element(der::OCTET_STRING, &point)), point, "{name}");
        }
    }
}
