// SPDX-License-Identifier: Apache-2.0
//! `Whole` of our own interface: an `Init` function and the one that does all at once, as one call.

use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_spi::provider::Direction;

/// `Whole` (`include/metaslot/metaslot.h`)
pub(crate) extern "C" fn whole(
    session: CK_SESSION_HANDLE,
    operation: CK_FLAGS,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
    data: Given<'_, CK_BYTE>,
    length: CK_ULONG,
    out: Given<'_, CK_BYTE>,
    out_length: Given<'_, CK_ULONG>,
) -> CK_RV {
    let what = match operation {
        CKF_DIGEST => Ok((Function::DigestInit, Function::Digest, None)),
        CKF_ENCRYPT => Ok((Function::EncryptInit, Function::Encrypt, Some(Direction::Forward))),
        CKF_DECRYPT => Ok((Function::DecryptInit, Function::Decrypt, Some(Direction::Backward))),
        _ => Err(Error::ARGUMENTS_BAD),
    };
    // Another operation is refused as one of these, and nothing has begun.
    let second = what.map_or(Function::Encrypt, |(_, second, _)| second);
    enter_session(second, session, |engine, caller, session| {
        let (first, _, direction) = what?;
        counters::call(first, CKR_OK);
        let output = caller.output(out, out_length)?;
        let input = caller.input(data, length, &output)?;
        let Some(direction) = direction else {
            let mechanism = caller.mechanism_alone(mechanism)?;
            return output.fill(|out| engine.digest_whole(session, mechanism, &input, out));
        };
        let (mechanism, mut params) = caller.mechanism(mechanism)?;
        let with = (mechanism, &mut params, ObjectHandle(key));
        output.fill(|out| engine.cipher_whole(direction, session, with, &input, out))
    })
}
