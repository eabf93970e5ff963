// SPDX-License-Identifier: Apache-2.0
//! The public half of a key: read from a token's attributes and from libcrypto's parameters, written as both and as DER.

use crate::abi::{Answer, Builder, Params};
use crate::kind::{Form, KeyKind, Number, Variant};
use metaslot_ck::*;
use metaslot_client::Template;
use metaslot_spi::curves::Curve;
use metaslot_spi::der::{Node, Reader, only, tag};
use metaslot_spi::{key_info, known_groups};
use std::ffi::CStr;

/// rsaEncryption
pub(crate) const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
/// id-RSASSA-PSS
pub(crate) const PSS: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a";

/// The public half.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Public {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point that is not known is empty.
    Ec {
        curve: &'static Curve,
        point: Vec<u8>,
    },
    /// The same.
    Number(Vec<u8>),
    /// The numbers of a group, by attributes, in the order of the `AlgorithmIdentifier`; and the same.
    Field {
        group: Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>,
        value: Vec<u8>,
    },
}

/// What libcrypto calls the parts.
pub(crate) const N: &CStr = c"n";
pub(crate) const E: &CStr = c"e";
pub(crate) const GROUP: &CStr = c"group";
pub(crate) const PUB: &CStr = c"pub";
/// And the numbers of a group.
const FIELD: [(&CStr, CK_ATTRIBUTE_TYPE); 3] =
    [(c"p", CKA_PRIME), (c"q", CKA_SUBPRIME), (c"g", CKA_BASE)];

/// What libcrypto calls a curve.
pub(crate) fn group(curve: &'static Curve) -> &'static CStr {
    // The one whose first name here is that of another standard.
    if curve.name == c"secp256r1" { c"prime256v1" } else { curve.name }
}

/// The curve of one of its names.
pub(crate) fn curve_named(name: &str) -> Option<&'static Curve> {
    let length = u8::try_from(name.len()).ok()?;
    let der = [&[tag::PRINTABLE_STRING, length], name.as_bytes()].concat();
    Curve::named(&der).ok()
}

impl Public {
    /// From attributes: modulus and exponent, or `CKA_EC_PARAMS` and a point, which may be inside an OCTET STRING.
    pub(crate) fn of_attributes(
        kind: &KeyKind,
        get: impl Fn(CK_ATTRIBUTE_TYPE) -> Vec<u8>,
    ) -> Option<Self> {
        match &kind.form {
            Form::Rsa { .. } => {
                let exponent =
                    Some(get(CKA_PUBLIC_EXPONENT)).filter(|exponent| !exponent.is_empty());
                // What keys have that do not say.
                let exponent = exponent.unwrap_or_else(|| vec![1, 0, 1]);
                let modulus = Some(get(CKA_MODULUS)).filter(|modulus| !modulus.is_empty())?;
                Some(Self::Rsa { modulus: trimmed(&modulus), exponent: trimmed(&exponent) })
            }
            Form::Ec => {
                let curve = Curve::named(&get(CKA_EC_PARAMS)).ok()?;
                Some(Self::Ec { curve, point: curve.point(&get(CKA_EC_POINT)).to_vec() })
            }
            Form::Number(number) => {
                let point = get(attribute(number));
                let point = match number.variant {
                    Variant::Curve(_) => key_info::number(number.length, &point),
                    Variant::Set(_) => Some(&*point).filter(|point| point.len() == number.length),
                };
                Some(Self::Number(point.unwrap_or_default().to_vec()))
            }
            Form::Field(_) => {
                let group = numbers(kind, |attribute| Some(trimmed(&get(attribute))))?;
                Some(Self::Field { group, value: trimmed(&get(CKA_VALUE)) })
            }
        }
    }

    /// From what libcrypto exports; the point may be missing.
    pub(crate) fn of_params(kind: &KeyKind, params: &Params) -> Option<Self> {
        let octets = |name| Some(params.find(name)?.octets()?.to_vec());
        let large = |name| params.find(name)?.large();
        match &kind.form {
            Form::Field(_) => {
                let name = |attribute| FIELD.iter().find(|row| row.1 == attribute);
                let group = numbers(kind, |attribute| large(name(attribute)?.0))?;
                Some(Self::Field { group, value: large(PUB).unwrap_or_default() })
            }
            Form::Rsa { .. } => Some(Self::Rsa { modulus: large(N)?, exponent: large(E)? }),
            Form::Ec => {
                let curve = curve_named(params.find(GROUP)?.text()?)?;
                Some(Self::Ec { curve, point: octets(PUB).unwrap_or_default() })
            }
            Form::Number(number) => {
                let key = octets(PUB).unwrap_or_default();
                (key.is_empty() || key.len() == number.length).then_some(Self::Number(key))
            }
        }
    }

    /// As libcrypto imports it.
    pub(crate) fn params(&self) -> Builder {
        let params = Builder::default();
        match self {
            Self::Rsa { modulus, exponent } => params.large(N, modulus).large(E, exponent),
            Self::Ec { curve, point } => {
                let name = group(curve).to_str().unwrap_or_default();
                let params = params.text(GROUP, name);
                if point.is_empty() { params } else { params.octets(PUB, point) }
            }
            Self::Number(key) if key.is_empty() => params,
            Self::Number(key) => params.octets(PUB, key),
            Self::Field { value, .. } => {
                let numbers = FIELD.iter().filter_map(|row| Some((row.0, self.number(row.1)?)));
                let known = Some((PUB, &**value)).filter(|_| self.is_known());
                numbers
                    .chain(known)
                    .fold(params, |params, (name, number)| params.large(name, number))
            }
        }
    }

    /// As a token takes it.
    pub(crate) fn template(&self, kind: &KeyKind) -> Template {
        let template = Template::new().class(CKO_PUBLIC_KEY).key_type(kind.key_type).token(false);
        // What a key is for where nothing is said is the token's own affair (PKCS#11 3.2 §4.8).
        let (template, _) = kind.usages(template, Template::new());
        let template = self.domain(kind, template);
        match (self, kind.number().map(|number| number.variant)) {
            (Self::Rsa { .. }, _) => template,
            (Self::Number(key), Some(Variant::Set(_))) | (Self::Field { value: key, .. }, _) => {
                template.bytes(CKA_VALUE, key)
            }
            (Self::Ec { point, .. } | Self::Number(point), _) => {
                template.bytes(CKA_EC_POINT, Node::OctetString(point).to_vec())
            }
        }
    }

    /// What both halves say of themselves: of RSA the numbers, else the curve or the parameter set.
    pub(crate) fn domain(&self, kind: &KeyKind, template: Template) -> Template {
        let curve = |oid| Node::Oid(oid).to_vec();
        match (self, &kind.form) {
            (Self::Rsa { modulus, exponent }, _) => {
                template.bytes(CKA_MODULUS, modulus).bytes(CKA_PUBLIC_EXPONENT, exponent)
            }
            (Self::Ec { curve: of, .. }, _) => template.bytes(CKA_EC_PARAMS, curve(of.oid)),
            (Self::Field { group, .. }, _) => group
                .iter()
                .fold(template, |template, (name, number)| template.bytes(*name, number)),
            (_, Form::Number(number)) => match number.variant {
                Variant::Curve(_) => template.bytes(CKA_EC_PARAMS, curve(number.oid)),
                Variant::Set(set) => template.ulong(CKA_PARAMETER_SET, set),
            },
            _ => template,
        }
    }

    /// A point or a number; of RSA the modulus.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Rsa { modulus: bytes, .. }
            | Self::Ec { point: bytes, .. }
            | Self::Number(bytes)
            | Self::Field { value: bytes, .. } => bytes,
        }
    }

    /// Whether there is one.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Rsa { .. } => true,
            Self::Ec { point, .. } | Self::Number(point) | Self::Field { value: point, .. } => {
                !point.is_empty()
            }
        }
    }

    /// Whether a point has the length and the first byte of one.
    pub(crate) fn has_form(&self) -> bool {
        let Self::Ec { curve, point } = self else { return true };
        match point.first() {
            Some(2 | 3) => point.len() == 1 + curve.length(),
            Some(4 | 6 | 7) => point.len() == 1 + 2 * curve.length(),
            _ => false,
        }
    }

    /// Whether it could be a key, before a token is asked: even numbers and an exponent of one are none of RSA.
    pub(crate) fn is_sound(&self) -> bool {
        let odd = |number: &[u8]| number.last().is_some_and(|byte| byte & 1 == 1);
        match self {
            Self::Rsa { modulus, exponent } => {
                let less = (exponent.len(), exponent) < (modulus.len(), modulus);
                odd(modulus) && odd(exponent) && *exponent != [1] && less
            }
            Self::Ec { .. } => self.has_form(),
            Self::Number(_) => true,
            Self::Field { value, .. } => {
                let prime = self.number(CKA_PRIME).unwrap_or_default();
                odd(prime) && *value != [1] && (value.len(), &**value) < (prime.len(), prime)
            }
        }
    }

    /// A number of the group.
    pub(crate) fn number(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        let Self::Field { group, .. } = self else { return None };
        group.iter().find(|number| number.0 == attribute).map(|number| &*number.1)
    }

    /// As long as the prime: how a number of the group is sent.
    pub(crate) fn padded(&self, number: &[u8]) -> Vec<u8> {
        let length = self.number(CKA_PRIME).map_or(0, <[u8]>::len);
        [&vec![0; length.saturating_sub(number.len())], number].concat()
    }

    /// Whether both are on the same curve, or in the same group.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ec { curve, .. }, Self::Ec { curve: another, .. }) => curve == another,
            (Self::Field { group, .. }, Self::Field { group: another, .. }) => group == another,
            _ => true,
        }
    }

    /// Without the key, where what is left has a meaning.
    pub(crate) fn emptied(mut self) -> Self {
        match &mut self {
            Self::Ec { point, .. } | Self::Number(point) | Self::Field { value: point, .. } => {
                point.clear();
            }
            Self::Rsa { .. } => {}
        }
        self
    }

    /// With another point or number, as it is sent; of RSA there is none.
    pub(crate) fn with_encoded(&self, sent: &[u8], kind: &KeyKind) -> Option<Self> {
        let point = sent.to_vec();
        let public = match self {
            Self::Rsa { .. } => return None,
            Self::Ec { curve, .. } => Self::Ec { curve, point },
            Self::Field { group, .. } => {
                (sent.len() == self.padded(&[]).len()).then_some(())?;
                Self::Field { group: group.clone(), value: trimmed(sent) }
            }
            Self::Number(_) => {
                kind.number().filter(|number| number.length == sent.len())?;
                Self::Number(point)
            }
        };
        (public.has_form() && public.is_known()).then_some(public)
    }

    /// Whether both are the same key, in whichever form a point is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ec { curve, point }, Self::Ec { curve: also, point: another })
                if curve == also && !curve.is_binary && point.len() != another.len() =>
            {
                compressed(point) == compressed(another)
            }
            _ => self == other,
        }
    }

    /// With the point of this `SubjectPublicKeyInfo`, where its own is not known.
    pub(crate) fn completed(mut self, info: &[u8]) -> Self {
        if let Self::Ec { point, .. } | Self::Number(point) = &mut self
            && point.is_empty()
        {
            point.extend_from_slice(key_info::public_bits(info).unwrap_or_default());
        }
        if let Self::Field { value, .. } = &mut self
            && value.is_empty()
        {
            let number = key_info::public_bits(info).map(Reader::new);
            let number = number.and_then(|mut bits| bits.integer().ok());
            value.extend_from_slice(number.unwrap_or_default());
        }
        self
    }

    /// A `SubjectPublicKeyInfo`, of the algorithm of these nodes.
    pub(crate) fn info(&self, algorithm: &[Node<'_>]) -> Vec<u8> {
        let algorithm = Node::Sequence(algorithm);
        match self {
            Self::Rsa { modulus, exponent } => {
                let key = Node::Sequence(&[Node::Integer(modulus), Node::Integer(exponent)]);
                Node::Sequence(&[algorithm, Node::BitStringOf(&key)]).to_vec()
            }
            Self::Ec { point, .. } | Self::Number(point) => {
                Node::Sequence(&[algorithm, Node::BitString(point)]).to_vec()
            }
            Self::Field { value, .. } => {
                Node::Sequence(&[algorithm, Node::BitStringOf(&Node::Integer(value))]).to_vec()
            }
        }
    }

    /// What stands in the `AlgorithmIdentifier` of a key.
    pub(crate) fn identifier<T>(&self, kind: &KeyKind, with: impl FnOnce(&[Node<'_>]) -> T) -> T {
        match (self, &kind.form) {
            (Self::Ec { curve, .. }, _) => {
                with(&[Node::Oid(key_info::EC_PUBLIC_KEY), Node::Oid(curve.oid)])
            }
            (Self::Field { group, .. }, _) => {
                let numbers: Vec<_> = group.iter().map(|row| Node::Integer(&row.1)).collect();
                let oid = kind.field().map_or(&[][..], |field| field.oid);
                with(&[Node::Oid(oid), Node::Sequence(&numbers)])
            }
            (_, Form::Number(number)) => with(&[Node::Oid(number.oid)]),
            (_, Form::Rsa { pss: true }) => with(&[Node::Oid(PSS)]),
            _ => with(&[Node::Oid(RSA), Node::Null]),
        }
    }

    /// Length in bits.
    pub(crate) fn bits(&self, kind: &KeyKind) -> i64 {
        match (self, &kind.form) {
            (Self::Rsa { modulus, .. }, _) => bits(modulus),
            (Self::Field { .. }, _) => bits(self.number(CKA_PRIME).unwrap_or_default()),
            (Self::Ec { curve, .. }, _) => i64::from(curve.bits),
            (Self::Number(_), Form::Number(number)) => number.bits,
            (Self::Number(_), _) => 0,
        }
    }

    /// Security in bits: of RSA by SP 800-57 and FIPS 140's formula as libcrypto rounds it, of curves the half of their order.
    pub(crate) fn security(&self, kind: &KeyKind) -> i64 {
        const RSA_SECURITY: [(i64, i64); 9] = [
            (15360, 256),
            (8192, 200),
            (7680, 192),
            (6144, 176),
            (4096, 152),
            (3072, 128),
            (2048, 112),
            (1024, 80),
            (0, 0),
        ];
        let bits = self.bits(kind);
        match (self, &kind.form) {
            (Self::Rsa { .. } | Self::Field { .. }, _) => {
                RSA_SECURITY.iter().find(|row| bits >= row.0).map_or(0, |row| row.1)
            }
            (_, Form::Number(number)) => number.security,
            _ => [256, 192, 128, 112, 80]
                .into_iter()
                .find(|half| bits >= 2 * half)
                .unwrap_or(bits / 2),
        }
    }

    /// The longest that a signature, a ciphertext or a shared secret may be.
    pub(crate) fn answer_length(&self, kind: &KeyKind) -> usize {
        match (self, &kind.form) {
            (Self::Rsa { modulus, .. }, _) => modulus.len(),
            (Self::Field { .. }, Form::Field(mechanism)) if *mechanism != CKM_DSA => {
                self.padded(&[]).len()
            }
            (Self::Ec { .. } | Self::Field { .. }, _) => {
                let half = vec![0xff; self.order_length().unwrap_or_default()];
                Node::Sequence(&[Node::Integer(&half), Node::Integer(&half)]).to_vec().len()
            }
            (Self::Number(_), Form::Number(number)) => number.answer,
            (Self::Number(_), _) => 0,
        }
    }

    /// Length of the halves of a signature that is two numbers.
    pub(crate) fn order_length(&self) -> Option<usize> {
        match self {
            Self::Ec { curve, .. } => Some(curve.order_length()),
            _ => self.number(CKA_SUBPRIME).map(<[u8]>::len),
        }
    }

    /// A parameter of the key by libcrypto's name.
    pub(crate) fn answer<'a>(&'a self, kind: &KeyKind, name: &[u8]) -> Option<Answer<'a>> {
        match name {
            b"bits" => Some(Answer::Number(self.bits(kind))),
            b"security-bits" => Some(Answer::Number(self.security(kind))),
            b"max-size" => Some(Answer::Number(length(self.answer_length(kind)))),
            _ => self.part(name).or_else(|| digest(kind, name)),
        }
    }

    fn part(&self, name: &[u8]) -> Option<Answer<'_>> {
        match (self, name) {
            (Self::Rsa { modulus, .. }, b"n") => Some(Answer::Large(modulus)),
            (Self::Rsa { exponent, .. }, b"e") => Some(Answer::Large(exponent)),
            (Self::Ec { curve, .. }, b"group") => Some(Answer::Constant(group(curve))),
            (Self::Ec { curve, .. }, b"field-type") => {
                let binary = c"characteristic-two-field";
                Some(Answer::Constant(if curve.is_binary { binary } else { c"prime-field" }))
            }
            (Self::Ec { .. }, b"encoding") => Some(Answer::Constant(c"named_curve")),
            (Self::Ec { .. }, b"point-format") => Some(Answer::Constant(c"uncompressed")),
            (Self::Ec { .. }, b"decoded-from-explicit") => Some(Answer::Number(0)),
            (Self::Ec { curve, point }, b"qx" | b"qy") => {
                let halves = point.strip_prefix(&[4])?.split_at_checked(curve.length())?;
                Some(Answer::Large(if name == b"qx" { halves.0 } else { halves.1 }))
            }
            (Self::Ec { point, .. } | Self::Number(point), b"pub" | b"encoded-pub-key") => {
                (!point.is_empty()).then_some(Answer::Octets(point))
            }
            (Self::Field { value, .. }, b"pub" | b"encoded-pub-key") if self.is_known() => {
                let encoded = || Answer::Own(self.padded(value));
                Some(if name == b"pub" { Answer::Large(value) } else { encoded() })
            }
            (Self::Field { .. }, b"group") => {
                let two = self.number(CKA_BASE)? == [2];
                known_groups::name_of(self.number(CKA_PRIME)?).filter(|_| two).map(Answer::Text)
            }
            (Self::Field { .. }, _) => {
                let row = FIELD.iter().find(|row| row.0.to_bytes() == name)?;
                self.number(row.1).map(Answer::Large)
            }
            _ => None,
        }
    }
}

/// What of a public key says which it is.
pub(crate) const fn attributes(kind: &KeyKind) -> &'static [CK_ATTRIBUTE_TYPE] {
    match &kind.form {
        Form::Rsa { .. } => &[CKA_MODULUS, CKA_PUBLIC_EXPONENT],
        Form::Ec => &[CKA_EC_PARAMS, CKA_EC_POINT],
        Form::Field(_) => &[CKA_PRIME, CKA_SUBPRIME, CKA_BASE, CKA_VALUE],
        Form::Number(number) => match number.variant {
            Variant::Curve(_) => &[CKA_EC_POINT],
            Variant::Set(_) => &[CKA_VALUE],
        },
    }
}

/// The numbers of a kind's group; `None` where one is missing.
pub(crate) fn numbers(
    kind: &KeyKind,
    get: impl Fn(CK_ATTRIBUTE_TYPE) -> Option<Vec<u8>>,
) -> Option<Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>> {
    let numbers = kind.field()?.group.iter();
    numbers.map(|name| Some((*name, get(*name).filter(|number| !number.is_empty())?))).collect()
}

/// Length of a number in bits.
fn bits(number: &[u8]) -> i64 {
    let first = number.first().map_or(0, |byte| byte.leading_zeros());
    length(number.len() * 8) - i64::from(first)
}

/// Which attribute of a public key has it.
pub(crate) const fn attribute(number: &Number) -> CK_ATTRIBUTE_TYPE {
    match number.variant {
        Variant::Curve(_) => CKA_EC_POINT,
        Variant::Set(_) => CKA_VALUE,
    }
}

/// What hashes for a kind: none for EdDSA, which must not be given one.
fn digest(kind: &KeyKind, name: &[u8]) -> Option<Answer<'static>> {
    let is_number = matches!(kind.form, Form::Number(_));
    match name {
        b"default-digest" if !is_number && kind.agrees_only() => None,
        b"default-digest" if !is_number => Some(Answer::Constant(c"SHA256")),
        b"mandatory-digest" if is_number => Some(Answer::Constant(c"")),
        _ => None,
    }
}

fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A point of a curve over a prime field by its X and by whether Y is odd (SEC 1 §2.3.3).
fn compressed(point: &[u8]) -> Vec<u8> {
    match point {
        [4 | 6 | 7, numbers @ ..] => {
            let odd = numbers.last().map_or(0, |byte| byte & 1);
            [&[2 | odd], &numbers[..numbers.len() / 2]].concat()
        }
        other => other.to_vec(),
    }
}

fn trimmed(number: &[u8]) -> Vec<u8> {
    metaslot_spi::der::without_zeros(number).to_vec()
}

/// The `SubjectPublicKeyInfo` in a certificate (RFC 5280 §4.1).
pub(crate) fn of_certificate(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Reader::new(only(certificate, tag::SEQUENCE).ok()?);
    let mut fields = whole.sequence().ok()?;
    if fields.peek() == Some(tag::constructed(0)) {
        fields.element(tag::constructed(0)).ok()?;
    }
    fields.element(tag::INTEGER).ok()?;
    // The algorithm, the issuer, the dates, the subject.
    for _ in 0..4 {
        fields.sequence().ok()?;
    }
    let rest = fields.rest();
    fields.sequence().ok()?;
    Some(rest[..rest.len() - fields.rest().len()].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_client::Value;

    fn point(first: u8, rest: &[u8]) -> Public {
        let curve = curve_named("P-256").expect("it is there");
        Public::Ec { curve, point: [&[first], rest].concat() }
    }

    #[test]
    fn a_point_is_the_same_in_each_form() {
        let (x, mut y) = ([7; 32], [9; 32]);
        let whole = |y: &[u8]| point(4, &[&x, y].concat());
        assert!(whole(&y).is(&point(3, &x)) && point(3, &x).is(&whole(&y)));
        assert!(!whole(&y).is(&point(2, &x)) && !whole(&y).is(&point(3, &y)));
        assert!(whole(&y).is(&whole(&y)));
        y[0] = 1;
        assert!(!whole(&y).is(&whole(&[9; 32])));
    }

    #[test]
    fn a_token_is_told_what_a_public_key_is_for() {
        let template = point(4, &[1; 64]).template(KeyKind::named(c"EC"));
        assert!(matches!(template.find(CKA_VERIFY), Some(Value::Bool(true))), "{template:?}");
    }

    #[test]
    fn what_could_be_no_key_is_known() {
        assert!(point(4, &[1; 64]).has_form() && point(2, &[1; 32]).has_form());
        for broken in [point(4, &[1; 63]), point(5, &[1; 64]), point(0, &[]), point(2, &[1; 64])] {
            assert!(!broken.has_form(), "{broken:?}");
        }
        let rsa = |modulus: &[u8], exponent: &[u8]| {
            Public::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec() }.is_sound()
        };
        assert!(rsa(&[9; 256], &[3]) && rsa(&[9; 256], &[1, 0, 1]));
        assert!(!rsa(&[8; 256], &[3]) && !rsa(&[9; 256], &[2]) && !rsa(&[9; 256], &[1]));
        assert!(!rsa(&[9; 256], &[9; 256]) && !rsa(&[9; 256], &[11; 256]) && !rsa(&[], &[3]));
    }
    #[test]
    fn numbers_of_a_group_are_between_one_and_its_prime_and_sent_as_long_as_it() {
        let key = |value: &[u8]| Public::Field {
            group: vec![(CKA_PRIME, vec![200, 7]), (CKA_BASE, vec![2])],
            value: value.to_vec(),
        };
        assert!(key(&[9]).is_sound() && key(&[200, 6]).is_sound());
        for wrong in [&[1][..], &[200, 7], &[201, 0], &[1, 0, 0]] {
            assert!(!key(wrong).is_sound(), "{wrong:?}");
        }
        assert_eq!(key(&[9]).padded(&[9]), [0, 9]);
        let kind = KeyKind::named(c"DH");
        assert_eq!(key(&[]).with_encoded(&[0, 9], kind), Some(key(&[9])));
        assert!(key(&[]).with_encoded(&[9], kind).is_none());
        assert!(key(&[9]).is_beside(&key(&[8])) && !key(&[9]).emptied().is_known());
    }
}
