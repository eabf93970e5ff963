// SPDX-License-Identifier: Apache-2.0
//! The private half of a key that is the program's own, by its parts: as the program gave them, or as the module made them.

use crate::abi::{Answer, Builder, Params};
use crate::failure::{Failure, Result};
use crate::kind::{Form, KeyKind, Number, Variant};
use crate::public::Public;
use metaslot_ck::*;
use metaslot_client::{Session, Template, Value};
use metaslot_memory::Secret;
use metaslot_spi::der::Node;
use metaslot_spi::key_info;
use std::ffi::CStr;

/// A part: libcrypto's name, and the attribute.
type Part = (&'static CStr, CK_ATTRIBUTE_TYPE);

const RSA: [Part; 6] = [
    (c"d", CKA_PRIVATE_EXPONENT),
    (c"rsa-factor1", CKA_PRIME_1),
    (c"rsa-factor2", CKA_PRIME_2),
    (c"rsa-exponent1", CKA_EXPONENT_1),
    (c"rsa-exponent2", CKA_EXPONENT_2),
    (c"rsa-coefficient1", CKA_COEFFICIENT),
];
/// The seed is that of ML-DSA and of ML-KEM.
const NUMBER: [Part; 2] = [(c"priv", CKA_VALUE), (c"seed", CKA_SEED)];

/// The parts that keys of a kind have.
pub(crate) fn parts(kind: &KeyKind) -> &'static [Part] {
    match &kind.form {
        Form::Rsa { .. } => &RSA,
        Form::Number(Number { variant: Variant::Set(_), .. }) if kind.key_type != CKK_SLH_DSA => {
            &NUMBER
        }
        _ => &NUMBER[..1],
    }
}

/// All parts that there are, zeroised in the end. They are not in the protected arena, which is wiped in a forked child: a server's
/// workers use the key that their master read.
#[derive(Clone, Debug)]
pub(crate) struct Parts(Template);

impl Parts {
    /// What the program gives; empty where it gives nothing private, or nothing of it is asked for; `None` where a token has no such keys.
    pub(crate) fn of_params(
        kind: &KeyKind,
        public: &Public,
        params: &Params,
        private: bool,
    ) -> Option<Self> {
        let width = match public {
            Public::Ec { curve, .. } => curve.order_length(),
            _ => 0,
        };
        let mut given = Template::new();
        for (name, attribute) in parts(kind).iter().filter(|_| private) {
            let Some(part) = params.find(name) else { continue };
            let bytes = match kind.form {
                Form::Number(_) => part.octets()?.to_vec(),
                _ => part.digits(width)?,
            };
            given.push(*attribute, Value::Bytes(bytes));
        }
        let is_rsa = matches!(kind.form, Form::Rsa { .. });
        if is_rsa && params.find(c"rsa-factor3").is_some() {
            return None;
        }
        let has = |attribute| given.find(attribute).is_some();
        let whole = has(CKA_PRIVATE_EXPONENT) && has(CKA_PRIME_1) == has(CKA_PRIME_2);
        (!is_rsa || given.is_empty() || whole).then_some(Self(given))
    }

    /// Of a pair that is made of a seed.
    pub(crate) fn of_seed(seed: &[u8]) -> Self {
        Self(Template::new().bytes(CKA_SEED, seed))
    }

    /// Of some pair on a curve, where any number below the order is a private key.
    pub(crate) fn of_any(length: usize) -> Self {
        let mut number = vec![7; length];
        number[0] = 0;
        Self(Template::new().bytes(CKA_VALUE, number))
    }

    /// What the module shows of a private key.
    pub(crate) fn read(
        kind: &KeyKind,
        session: &Session,
        handle: ObjectHandle,
    ) -> metaslot_client::Result<Self> {
        let names: Vec<_> = parts(kind).iter().map(|part| part.1).collect();
        let values = session.attributes(handle, &names)?;
        let shown = names.iter().zip(values);
        let shown = shown.filter_map(|(name, value)| Some((*name, Value::Bytes(value?))));
        let mut parts = Template::new();
        parts.extend(shown.filter(|(_, value)| *value != Value::Bytes(Vec::new())));
        Ok(Self(parts))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a token takes it: for this process, without a login, and shown to no other library in it.
    pub(crate) fn template(&self, kind: &KeyKind, public: &Public) -> Template {
        let template = Template::new().class(CKO_PRIVATE_KEY).key_type(kind.key_type).token(false);
        let template = template.bool(CKA_PRIVATE, false).bool(CKA_SENSITIVE, true);
        let (_, template) = kind.usages(Template::new(), template.bool(CKA_EXTRACTABLE, false));
        let mut template = public.domain(kind, template);
        // Where not all parts of RSA are there, the module finds the others.
        let all = kind.key_type != CKK_RSA || self.0.iter().count() == RSA.len();
        let brought = self.0.iter().filter(|part| all || part.0 == CKA_PRIVATE_EXPONENT);
        template.extend(brought.map(|(name, value)| (name, value.clone())));
        template
    }

    fn part(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        match self.0.find(attribute)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// As libcrypto imports them.
    pub(crate) fn send(&self, kind: &KeyKind, params: Builder) -> Builder {
        let present = parts(kind).iter().filter_map(|part| Some((part.0, self.part(part.1)?)));
        present.fold(params, |params, (name, part)| match kind.form {
            Form::Number(_) => params.octets(name, part),
            _ => params.large(name, part),
        })
    }

    /// One of them by libcrypto's name.
    pub(crate) fn answer(&self, kind: &KeyKind, name: &[u8]) -> Option<Answer<'_>> {
        let part = parts(kind).iter().find(|part| part.0.to_bytes() == name)?;
        let part = self.part(part.1)?;
        Some(match kind.form {
            Form::Number(_) => Answer::Octets(part),
            _ => Answer::Large(part),
        })
    }

    /// The name and the bytes of each.
    pub(crate) fn named(&self, kind: &KeyKind) -> impl Iterator<Item = (&'static str, &[u8])> {
        let parts = parts(kind).iter();
        parts.filter_map(|part| Some((part.0.to_str().ok()?, self.part(part.1)?)))
    }

    /// A `PrivateKeyInfo`.
    pub(crate) fn info(
        &self,
        kind: &KeyKind,
        public: &Public,
        algorithm: &[Node<'_>],
    ) -> Result<Secret> {
        let part = |attribute| {
            let missing = || Failure::unsupported("the key is written with parts that it lacks");
            self.part(attribute).ok_or_else(missing)
        };
        Ok(match (public, &kind.form) {
            (Public::Rsa { modulus, exponent }, _) => {
                let mut numbers =
                    vec![Node::Integer(&[]), Node::Integer(modulus), Node::Integer(exponent)];
                for (_, attribute) in RSA {
                    numbers.push(Node::Integer(part(attribute)?));
                }
                key_info::private(algorithm, &Node::Sequence(&numbers))
            }
            (Public::Ec { curve, point }, _) => {
                key_info::ec_private(curve.oid, part(CKA_VALUE)?, point)
            }
            (_, Form::Number(Number { variant: Variant::Set(_), oid, .. })) => {
                let value = part(CKA_VALUE)?;
                match self.part(CKA_SEED) {
                    None if kind.key_type == CKK_SLH_DSA => key_info::bare_private(oid, value),
                    None => key_info::private(algorithm, &Node::OctetString(value)),
                    Some(seed) => {
                        let both = [Node::OctetString(seed), Node::OctetString(value)];
                        key_info::private(algorithm, &Node::Sequence(&both))
                    }
                }
            }
            (_, Form::Field(_)) => key_info::private(algorithm, &Node::Integer(part(CKA_VALUE)?)),
            _ => key_info::private(algorithm, &Node::OctetString(part(CKA_VALUE)?)),
        })
    }
}
