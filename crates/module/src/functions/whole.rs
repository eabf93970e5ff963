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
    let (first, second) = match operation {
        CKF_DIGEST => (Function::DigestInit, Function::Digest),
        CKF_DECRYPT => (Function::DecryptInit, Function::Decrypt),
        _ => (Function::EncryptInit, Function::Encrypt),
    };
    enter_session(second, session, |engine, caller, session| {
        counters::call(first, CKR_OK);
        let output = caller.output(out, out_length)?;
        let input = caller.input(data, length, &output)?;
        let direction = match operation {
            CKF_DIGEST => {
                let mechanism = caller.mechanism_alone(mechanism)?;
                return output.fill(|out| engine.digest_whole(session, mechanism, &input, out));
            }
            CKF_ENCRYPT => Direction::Forward,
            CKF_DECRYPT => Direction::Backward,
            _ => return Err(Error::ARGUMENTS_BAD),
        };
        let (mechanism, mut params) = caller.mechanism(mechanism)?;
        let with = (mechanism, &mut params, ObjectHandle(key));
        output.fill(|out| engine.cipher_whole(direction, session, with, &input, out))
    })
}
