// SPDX-License-Identifier: Apache-2.0
//! Keys that come from outside, and private keys as the DER of a PKCS #8 `PrivateKeyInfo` (RFC 5208, RFC 5958; PKCS#11 3.2 §6.7):
//! those on curves, which no other provider may have.

use super::number::named;
use super::prime::Library;
use super::{eddsa, montgomery, prime};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::{Malformed, tag};
use metaslot_spi::key_info::{self, PrivateKeyInfo};
use metaslot_spi::number_key::NumberCurve;
use metaslot_spi::prime_key::{self, complete_private, complete_public};
use metaslot_spi::{Key, NewObject};

/// As `Provider::complete`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let class = object.attributes.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key_type = object.attributes.ulong(CKA_KEY_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let curves = match (class, key_type) {
        (CKO_PUBLIC_KEY, CKK_EC) => return complete_public::<Library>(object),
        (CKO_PRIVATE_KEY, CKK_EC) => return complete_private::<Library>(object),
        (CKO_PUBLIC_KEY | CKO_PRIVATE_KEY, CKK_EC_EDWARDS) => &eddsa::CURVES,
        (CKO_PUBLIC_KEY | CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY) => &montgomery::CURVES,
        _ => return Err(Error::FUNCTION_NOT_SUPPORTED),
    };
    let curve = named(curves, &object.attributes)?;
    match class {
        CKO_PUBLIC_KEY => curve.complete_public(object),
        _ => curve.complete_private(object),
    }
}

/// As `Provider::encode_private_key`.
pub(crate) fn encode(key: &Key) -> Result<Secret> {
    let curves = match key.key_type() {
        CKK_EC => {
            let (_, prepared) = prime::prepared(key).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
            return prime_key::encode::<Library>(key, prepared);
        }
        CKK_EC_EDWARDS => &eddsa::CURVES,
        CKK_EC_MONTGOMERY => &montgomery::CURVES,
        _ => return Err(Error::KEY_NOT_WRAPPABLE),
    };
    let [one, two] = curves;
    one.encode(key).or_else(|_| two.encode(key))
}

/// As `Provider::decode_private_key`: the key comes back complete and checked.
pub(crate) fn decode(bytes: &[u8]) -> Result<NewObject> {
    let mut object = parse(bytes).map_err(|Malformed| Error::WRAPPED_KEY_INVALID)?;
    complete(&mut object).map_err(|_| Error::WRAPPED_KEY_INVALID)?;
    Ok(object)
}

fn parse(bytes: &[u8]) -> std::result::Result<NewObject, Malformed> {
    let mut info = PrivateKeyInfo::parse(bytes)?;
    if info.algorithm == key_info::EC_PUBLIC_KEY {
        return prime_key::decode(info);
    }
    let is = |curve: &&NumberCurve| curve.oid == info.algorithm;
    let key_type = match (eddsa::CURVES.iter().find(is), montgomery::CURVES.iter().find(is)) {
        (Some(_), _) => CKK_EC_EDWARDS,
        (_, Some(_)) => CKK_EC_MONTGOMERY,
        _ => return Err(Malformed),
    };
    info.parameters.end()?;
    let value = info.private.element(tag::OCTET_STRING)?;
    info.private.end()?;
    Ok(key_info::with_value(key_type, info.algorithm, value))
}
