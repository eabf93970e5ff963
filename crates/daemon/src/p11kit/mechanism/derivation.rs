// SPDX-License-Identifier: Apache-2.0
//! Parameters by which a key is made: of ANSI X9.42 (PKCS#11 3.2 §6.4), by a string (§6.43) or by encryption (§6.17), and of IKE (§6.64).

use metaslot_ck::mechanism::Shape;
use metaslot_ck::*;
use metaslot_client::Params as Read;
use metaslot_spi::{Bytes, Params, Tls};

/// No string of which a key is made is longer, in bytes: keys are not, and a chain of blocks hashes it once for each.
const LONGEST_STRING: usize = Tls::LONGEST_STRING;

/// The keys that one names, in the order in which their values are put together.
pub(super) const fn keys(params: &Read<'_>) -> [Option<ObjectHandle>; 2] {
    match *params {
        Read::IkePrf { new_key: key, .. }
        | Read::Ike1Extended { agreed: key, .. }
        | Read::Ike2PrfPlus { seed_key: key, .. } => [key, None],
        Read::Ike1Prf { previous, agreed, .. } => [previous, Some(agreed)],
        _ => [None; 2],
    }
}

/// One as the engine takes it; `None` where it is not one of this shape.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for an unknown function, and a string that is too long.
pub(super) fn params(shape: Shape, params: &Read<'_>) -> Option<Result<Params>> {
    Some(match (shape, *params) {
        (Shape::X942, Read::X942 { kdf, info, public }) => x9_42(kdf, info, public),
        (Shape::StringData, Read::StringData { data }) => {
            short(data).map(|data| Params::Data { iv: Bytes::new(), data })
        }
        (Shape::CbcData(length), Read::CbcData { iv, data }) if iv.len() == length => {
            short(data).map(|data| Params::Data { iv: Bytes::from_slice(iv), data })
        }
        _ => return ike(shape, params),
    })
}

fn x9_42(kdf: u64, info: &[u8], public: &[u8]) -> Result<Params> {
    let kdf = match kdf {
        CKD_NULL | CKD_SHA1_KDF_ASN1 => kdf,
        // The same as ANSI X9.63's.
        CKD_SHA1_KDF_CONCATENATE => CKD_SHA1_KDF,
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    Ok(Params::Ecdh1 { kdf, shared: short(info)?, public: short(public)? })
}

/// A string, copied where it is not too long.
pub(super) fn short(string: &[u8]) -> Result<Bytes> {
    together([string])
}

/// Strings, put together where they are not too long.
pub(super) fn together<const N: usize>(strings: [&[u8]; N]) -> Result<Bytes> {
    let length = strings.iter().fold(0_usize, |sum, string| sum.saturating_add(string.len()));
    if length > LONGEST_STRING {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    let mut all = Bytes::with_capacity(length);
    strings.into_iter().for_each(|string| all.extend_from_slice(string));
    Ok(all)
}

fn ike(shape: Shape, params: &Read<'_>) -> Option<Result<Params>> {
    let (prf, data_as_key, parts, number) = match (shape, *params) {
        (Shape::IkePrf, Read::IkePrf { prf, data_as_key, initiator, responder, .. }) => {
            (prf, data_as_key, [initiator, responder], None)
        }
        (Shape::Ike1Prf, Read::Ike1Prf { prf, initiator, responder, number, .. }) => {
            (prf, false, [initiator, responder], Some(number))
        }
        (Shape::Ike1Extended, Read::Ike1Extended { prf, extra, .. }) => {
            (prf, false, [extra, &[]], None)
        }
        (Shape::Ike2PrfPlus, Read::Ike2PrfPlus { prf, seed, .. }) => {
            (prf, false, [seed, &[]], None)
        }
        _ => return None,
    };
    let before = keys(params).into_iter().flatten().collect();
    let params = |mut data: Bytes| {
        data.extend(number);
        Params::Ike { prf, data, data_as_key, before }
    };
    Some(together(parts).map(params))
}
