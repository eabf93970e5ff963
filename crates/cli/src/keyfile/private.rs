// SPDX-License-Identifier: Apache-2.0
//! Keys in DER: PKCS #8 (RFC 5958), PKCS #1 (RFC 8017), SEC 1 (RFC 5915), and public keys (RFC 5280), as attributes.

use crate::encoding::der::{
    self, BIT_STRING, CONSTRUCTED, CONTEXT, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE,
};
use crate::encoding::significant;
use crate::key::{ED448_OID, ED25519_OID, Family, Form, Kind, ONE_TIME, Set, X448_OID, X25519_OID};
use metaslot_ck::*;
use metaslot_client::{Template, Value};

/// A key of a file: the values of its halves, and what the file calls it.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) kind: Kind,
    /// `CKA_KEY_TYPE` and the values of the private half; a file of a public key has none.
    pub(crate) private: Option<Template>,
    /// `SubjectPublicKeyInfo`, where the file has it.
    pub(crate) public: Option<Vec<u8>>,
    pub(crate) name: Option<String>,
}

/// Why a key is not taken.
pub(super) type Refused = String;

/// What is read, or why it is not taken.
pub(crate) type Read<T> = std::result::Result<T, Refused>;

/// `1.2.840.113549.1.1.1`, and `1.2.840.113549.1.1.10`, whose keys are the same numbers.
const RSA: [&[u32]; 2] = [&[1, 2, 840, 113_549, 1, 1, 1], &[1, 2, 840, 113_549, 1, 1, 10]];
const EC: &[u32] = &[1, 2, 840, 10045, 2, 1];

/// Algorithms whose keys are numbers in a group modulo a prime, and what their parameters say of it (RFC 3279 §2.3.2, §2.3.3,
/// PKCS #3).
const GROUPS: &[(&[u32], CK_KEY_TYPE, &[CK_ATTRIBUTE_TYPE])] = &[
    (&[1, 2, 840, 10040, 4, 1], CKK_DSA, &[CKA_PRIME, CKA_SUBPRIME, CKA_BASE]),
    (&[1, 2, 840, 113_549, 1, 3, 1], CKK_DH, &[CKA_PRIME, CKA_BASE]),
    (&[1, 2, 840, 10046, 2, 1], CKK_X9_42_DH, &[CKA_PRIME, CKA_BASE, CKA_SUBPRIME]),
];

/// What is to be said of other algorithms.
const UNKNOWN: &str = "its algorithm is not known";

/// What is to be said of bytes that end too early or are no DER.
pub(super) fn damaged(what: &str) -> Refused {
    format!("its {what} is damaged or cut")
}

/// Which algorithm: its identifier as a whole element, and its parameters.
#[derive(Clone, Copy)]
struct Algorithm<'a> {
    identifier: &'a [u8],
    params: &'a [u8],
}

impl<'a> Algorithm<'a> {
    fn take(der: &mut &'a [u8]) -> Option<Self> {
        let mut content = der::take(der, SEQUENCE)?;
        let identifier =
            der::next(&mut content).filter(|element| element.tag == OBJECT_IDENTIFIER)?;
        Some(Self { identifier: identifier.whole, params: content })
    }

    fn is(self, arcs: &[u32]) -> bool {
        self.identifier == der::identifier(arcs)
    }

    fn is_rsa(self) -> bool {
        RSA.iter().any(|arcs| self.is(arcs))
    }

    /// RFC 8410: the algorithm is the curve.
    fn modern(self) -> Option<(Family, CK_KEY_TYPE)> {
        match self.identifier {
            ED25519_OID => Some((Family::Edwards, CKK_EC_EDWARDS)),
            ED448_OID => Some((Family::Edwards, CKK_EC_EDWARDS)),
            X25519_OID | X448_OID => Some((Family::Montgomery, CKK_EC_MONTGOMERY)),
            _ => None,
        }
    }

    /// RFC 9881: the algorithm is the parameter set, and has no parameters.
    fn set(self) -> Read<Option<&'static Set>> {
        match Set::identified(self.identifier) {
            Some(_) if !self.params.is_empty() => {
                Err(String::from("its algorithm has parameters, and takes none"))
            }
            set => Ok(set),
        }
    }

    /// The values of a key in a group modulo a prime, whose own number is in `key`; `None` where it is another's.
    fn in_group(self, key: &[u8]) -> Option<Read<Template>> {
        let (_, key_type, said) = GROUPS.iter().find(|row| self.is(row.0))?;
        let read = || {
            let mut params = der::take(&mut &*self.params, SEQUENCE)?;
            let mut values = Template::new().key_type(*key_type);
            for attribute in *said {
                values = values.bytes(*attribute, significant(der::take(&mut params, INTEGER)?));
            }
            let mut rest = key;
            let number = significant(der::take(&mut rest, INTEGER)?);
            rest.is_empty().then(|| values.bytes(CKA_VALUE, number))
        };
        Some(read().ok_or_else(|| damaged("key")))
    }
}

/// `PrivateKeyInfo` or `OneAsymmetricKey`.
pub(crate) fn pkcs8(der: &[u8]) -> Read<Pair> {
    let (algorithm, key, public) = pkcs8_parts(der).ok_or_else(|| damaged("PKCS #8 key"))?;
    if algorithm.is_rsa() {
        return pkcs1(key);
    }
    if algorithm.is(EC) {
        return sec1(key, Some(algorithm.params));
    }
    if let Some(set) = algorithm.set()? {
        return of_set(set, key, public).ok_or_else(|| damaged("private key"));
    }
    if let Some(values) = algorithm.in_group(key) {
        return values.map(|private| Pair {
            kind: kind_of(&private),
            private: Some(private),
            public: None,
            name: None,
        });
    }
    let Some((family, key_type)) = algorithm.modern() else { return Err(String::from(UNKNOWN)) };
    let oid = algorithm.identifier;
    let length = Kind::of(key_type, Some(oid), None, None).size;
    let seed = der::take(&mut &*key, OCTET_STRING).filter(|seed| seed.len() == length);
    let seed = seed.ok_or_else(|| damaged("private key"))?;
    let public = public.map(|point| der::edwards_public_key(oid, point));
    Ok(modern(family, key_type, oid, seed, public))
}

/// A key of RFC 8410.
pub(super) fn modern(
    family: Family,
    key_type: CK_KEY_TYPE,
    oid: &[u8],
    seed: &[u8],
    public: Option<Vec<u8>>,
) -> Pair {
    let kind = Kind::of(key_type, Some(oid), None, None);
    debug_assert_eq!(kind.family, family);
    let private = Template::new().key_type(key_type).bytes(CKA_EC_PARAMS, oid);
    Pair { kind, private: Some(private.bytes(CKA_VALUE, seed)), public, name: None }
}

/// A key of a parameter set.
fn of_set(set: &Set, key: &[u8], public: Option<&[u8]>) -> Option<Pair> {
    let (seed, expanded) = match set.private {
        Form::Seed(length) => seeded(key, length)?,
        Form::Bytes(length) if key.len() == length => (None, Some(key)),
        Form::Bytes(_) => return None,
    };
    let mut private = set.template();
    let values = [(CKA_SEED, seed), (CKA_VALUE, expanded)];
    let there = values.into_iter().filter_map(|(attribute, value)| Some((attribute, value?)));
    private.extend(there.map(|(attribute, value)| (attribute, Value::Bytes(value.to_vec()))));
    let public = public.map(|public| set.public_key(public));
    Some(Pair { kind: set.kind(), private: Some(private), public, name: None })
}

/// A seed, and what is made of it.
type Seeded<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Either of the two, or both (RFC 9881 §6, RFC 9935 §6).
fn seeded(key: &[u8], length: usize) -> Option<Seeded<'_>> {
    let mut rest = key;
    let (seed, expanded) = if let Some(seed) = der::take(&mut rest, CONTEXT) {
        (Some(seed), None)
    } else if let Some(expanded) = der::take(&mut rest, OCTET_STRING) {
        (None, Some(expanded))
    } else {
        let mut both = der::take(&mut rest, SEQUENCE)?;
        let halves = [der::take(&mut both, OCTET_STRING)?, der::take(&mut both, OCTET_STRING)?];
        both.is_empty().then_some((Some(halves[0]), Some(halves[1])))?
    };
    let is_whole = rest.is_empty() && seed.is_none_or(|seed| seed.len() == length);
    is_whole.then_some((seed, expanded))
}

/// The content of a sequence behind which there is nothing.
fn only(mut der: &[u8]) -> Option<&[u8]> {
    let content = der::take(&mut der, SEQUENCE)?;
    der.is_empty().then_some(content)
}

type Parts<'a> = (Algorithm<'a>, &'a [u8], Option<&'a [u8]>);

fn pkcs8_parts(der: &[u8]) -> Option<Parts<'_>> {
    let mut rest = only(der)?;
    der::take(&mut rest, INTEGER).filter(|version| matches!(version, [0 | 1]))?;
    let algorithm = Algorithm::take(&mut rest)?;
    let key = der::take(&mut rest, OCTET_STRING)?;
    der::take(&mut rest, CONSTRUCTED);
    // [1] IMPLICIT BIT STRING
    let public = match der::take(&mut rest, CONTEXT | 1) {
        Some(bits) => Some(bits.strip_prefix(&[0])?),
        None => None,
    };
    rest.is_empty().then_some((algorithm, key, public))
}

/// The numbers of an RSA key, in the order of `RSAPrivateKey`.
pub(crate) const RSA_PRIVATE: &[CK_ATTRIBUTE_TYPE] = &[
    CKA_MODULUS,
    CKA_PUBLIC_EXPONENT,
    CKA_PRIVATE_EXPONENT,
    CKA_PRIME_1,
    CKA_PRIME_2,
    CKA_EXPONENT_1,
    CKA_EXPONENT_2,
    CKA_COEFFICIENT,
];

/// `RSAPrivateKey`
pub(super) fn pkcs1(der: &[u8]) -> Read<Pair> {
    let cut = || damaged("RSA key");
    let mut rest = only(der).ok_or_else(cut)?;
    match der::take(&mut rest, INTEGER) {
        Some([0]) => {}
        Some([1]) => {
            return Err(String::from("RSA keys of more than two primes are not supported"));
        }
        _ => return Err(cut()),
    }
    let mut private = Template::new();
    for attribute in RSA_PRIVATE {
        let value = significant(der::take(&mut rest, INTEGER).ok_or_else(cut)?);
        private.push(*attribute, Value::Bytes(value.to_vec()));
    }
    if !rest.is_empty() {
        return Err(cut());
    }
    Ok(rsa(private))
}

/// From the values of an RSA key.
pub(super) fn rsa(private: Template) -> Pair {
    let bytes = |attribute| match private.find(attribute) {
        Some(Value::Bytes(bytes)) => bytes.as_slice(),
        _ => &[],
    };
    let (modulus, exponent) = (bytes(CKA_MODULUS), bytes(CKA_PUBLIC_EXPONENT));
    let public = Some(der::rsa_public_key(modulus, exponent));
    let kind = Kind::of(CKK_RSA, None, Some(modulus), None);
    Pair { kind, public, private: Some(private.key_type(CKK_RSA)), name: None }
}

/// `ECPrivateKey`; PKCS #8 says the curve outside.
pub(super) fn sec1(der: &[u8], params: Option<&[u8]>) -> Read<Pair> {
    let (value, inside, point) = sec1_parts(der).ok_or_else(|| damaged("EC key"))?;
    let params = params.or(inside).ok_or("it does not say which curve its key is on")?;
    check_curve(params)?;
    let public = point.map(|point| der::ec_public_key(params, point));
    Ok(ec(params, value, public))
}

/// A key on a named curve.
pub(super) fn ec(params: &[u8], value: &[u8], public: Option<Vec<u8>>) -> Pair {
    let kind = Kind::of(CKK_EC, Some(params), None, None);
    let private = Template::new().key_type(CKK_EC).bytes(CKA_EC_PARAMS, params);
    Pair { kind, private: Some(private.bytes(CKA_VALUE, value)), public, name: None }
}

fn check_curve(params: &[u8]) -> Read<()> {
    match params.first() {
        Some(&OBJECT_IDENTIFIER) => Ok(()),
        Some(&SEQUENCE) => Err(String::from(
            "its curve is written out and not named: 'openssl ec -param_enc named_curve' names it",
        )),
        _ => Err(damaged("EC key")),
    }
}

type EcParts<'a> = (&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);

fn sec1_parts(der: &[u8]) -> Option<EcParts<'_>> {
    let mut rest = only(der)?;
    der::take(&mut rest, INTEGER).filter(|version| *version == [1])?;
    let value = der::take(&mut rest, OCTET_STRING)?;
    let params = der::take(&mut rest, CONSTRUCTED);
    // What is there must be right: nothing else says that the file was changed.
    let point = match der::take(&mut rest, CONSTRUCTED | 1) {
        Some(mut bits) => Some(der::take(&mut bits, BIT_STRING)?.strip_prefix(&[0])?),
        None => None,
    };
    rest.is_empty().then_some((value, params, point))
}

/// `SubjectPublicKeyInfo`
pub(super) fn public(der: &[u8]) -> Read<Pair> {
    let kind = kind_of(&public_values(der)?);
    Ok(Pair { kind, private: None, public: Some(der.to_vec()), name: None })
}

/// The type of a key that has these values.
fn kind_of(template: &Template) -> Kind {
    let bytes = |attribute| match template.find(attribute) {
        Some(Value::Bytes(bytes)) => Some(bytes.as_slice()),
        _ => None,
    };
    let key_type = match template.find(CKA_KEY_TYPE) {
        Some(Value::Ulong(key_type)) => *key_type,
        _ => CK_UNAVAILABLE_INFORMATION,
    };
    if let Some(kind) = Kind::of_group(key_type, bytes(CKA_PRIME), bytes(CKA_SUBPRIME)) {
        return kind;
    }
    match template.find(CKA_PARAMETER_SET) {
        Some(Value::Ulong(set)) => Kind::of_set(key_type, *set),
        _ => Kind::of(key_type, bytes(CKA_EC_PARAMS), bytes(CKA_MODULUS), None),
    }
}

/// `CKA_KEY_TYPE` and the values of a public key in its `SubjectPublicKeyInfo`.
pub(crate) fn public_values(der: &[u8]) -> Read<Template> {
    let (algorithm, key) = public_parts(der).ok_or_else(|| damaged("public key"))?;
    let on = |key_type, params| {
        let point = der::element(OCTET_STRING, key);
        let values = Template::new().key_type(key_type).bytes(CKA_EC_PARAMS, params);
        Ok(values.bytes(CKA_EC_POINT, point))
    };
    if algorithm.is_rsa() {
        let (modulus, exponent) = rsa_numbers(key).ok_or_else(|| damaged("public key"))?;
        let values = Template::new().key_type(CKK_RSA).bytes(CKA_MODULUS, significant(modulus));
        return Ok(values.bytes(CKA_PUBLIC_EXPONENT, significant(exponent)));
    }
    if algorithm.is(EC) {
        check_curve(algorithm.params)?;
        return on(CKK_EC, algorithm.params);
    }
    if let Some(row) = ONE_TIME.iter().find(|row| algorithm.is(row.arcs)) {
        return row.values(key).ok_or_else(|| damaged("public key"));
    }
    if let Some(set) = algorithm.set()? {
        let is_whole = key.len() == set.public;
        return is_whole
            .then(|| set.template().bytes(CKA_VALUE, key))
            .ok_or_else(|| damaged("public key"));
    }
    if let Some(values) = algorithm.in_group(key) {
        return values;
    }
    match algorithm.modern() {
        Some((_, key_type)) => on(key_type, algorithm.identifier),
        None => Err(String::from(UNKNOWN)),
    }
}

fn public_parts(der: &[u8]) -> Option<(Algorithm<'_>, &[u8])> {
    let mut rest = der;
    let mut outer = der::take(&mut rest, SEQUENCE)?;
    let algorithm = Algorithm::take(&mut outer)?;
    let key = der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
    (rest.is_empty() && outer.is_empty()).then_some((algorithm, key))
}

fn rsa_numbers(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut numbers = der::take(&mut &*key, SEQUENCE)?;
    Some((der::take(&mut numbers, INTEGER)?, der::take(&mut numbers, INTEGER)?))
}
