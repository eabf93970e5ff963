// SPDX-License-Identifier: Apache-2.0
//! Public keys of others.

use crate::encoding::der::{self, BIT_STRING, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};
use crate::key::{ED448_OID, ED25519_OID, Family, Kind, ONE_TIME, Set};
use metaslot_ck::*;
use metaslot_client::Template;

/// A key that is to be certified, or that is to have signed.
#[derive(Debug)]
pub(crate) struct PublicKey {
    pub(super) template: Template,
    pub(crate) kind: Kind,
}

impl PublicKey {
    /// As we would write it, and no other way: other programs must read the same key in the certificate.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        let mut outer = der::take(&mut &*der, SEQUENCE)?;
        let mut algorithm = der::take(&mut outer, SEQUENCE)?;
        let mut key = der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])?;
        let kind = der::next(&mut algorithm).filter(|it| it.tag == OBJECT_IDENTIFIER)?.whole;
        let template = Template::new().class(CKO_PUBLIC_KEY);
        if kind == der::identifier(&[1, 2, 840, 113_549, 1, 1, 1]) {
            let mut numbers = der::take(&mut key, SEQUENCE)?;
            let mut number = || {
                let content = der::take(&mut numbers, INTEGER)?;
                Some(content.strip_prefix(&[0]).unwrap_or(content))
            };
            let (modulus, exponent) = (number()?, number()?);
            let template = template.key_type(CKK_RSA).bytes(CKA_MODULUS, modulus);
            let template = template.bytes(CKA_PUBLIC_EXPONENT, exponent);
            let kind = Kind::of(CKK_RSA, None, Some(modulus), None);
            let is_exact = der::rsa_public_key(modulus, exponent) == der;
            return is_exact.then_some(Self { template, kind });
        }
        if matches!(kind, ED25519_OID | ED448_OID) {
            let template = template.key_type(CKK_EC_EDWARDS).bytes(CKA_EC_PARAMS, kind);
            let template = template.bytes(CKA_EC_POINT, der::element(OCTET_STRING, key));
            let is_exact = der::edwards_public_key(kind, key) == der;
            let kind = Kind::of(CKK_EC_EDWARDS, Some(kind), None, None);
            let is_exact = is_exact && key.len() == kind.size;
            return is_exact.then_some(Self { template, kind });
        }
        if let Some(row) = ONE_TIME.iter().find(|row| der::identifier(row.arcs) == kind) {
            let template = row.values(key)?.class(CKO_PUBLIC_KEY);
            let written = der::sequence(&[&der::sequence(&[kind]), &der::bit_string(key)]);
            let kind = Kind::of(row.key_type, None, None, None);
            return (written == der).then_some(Self { template, kind });
        }
        if let Some(set) = Set::identified(kind).filter(|set| set.signature.is_some()) {
            let template = set.template().class(CKO_PUBLIC_KEY).bytes(CKA_VALUE, key);
            let is_exact = key.len() == set.public && set.public_key(key) == der;
            return is_exact.then_some(Self { template, kind: set.kind() });
        }
        let params = der::next(&mut algorithm)?.whole;
        let kind = Kind::of(CKK_EC, Some(params), None, None);
        let template = template.key_type(CKK_EC).bytes(CKA_EC_PARAMS, params);
        let template = template.bytes(CKA_EC_POINT, der::element(OCTET_STRING, key));
        let is_exact = der::ec_public_key(params, key) == der;
        (is_exact && kind.size > 0).then_some(Self { template, kind })
    }

    /// Whether it has less than 112 bits of security.
    pub(crate) fn is_weak(&self) -> bool {
        self.kind.is_on_weak_curve() || self.kind.family == Family::Rsa && self.kind.size < 2048
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_weak_by_its_field_too() {
        for (name, weak) in
            [("ec:c2pnb272w1", true), ("ec:p192", true), ("ec:p224", false), ("ed448", false)]
        {
            let kind: Kind = name.parse().unwrap();
            let key = PublicKey { template: Template::new(), kind };
            assert_eq!(key.is_weak(), weak, "{name}");
        }
    }
}
