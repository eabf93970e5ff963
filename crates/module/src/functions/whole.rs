// SPDX-License-Identifier: Apache-2.0
//! `Whole` of our own interface: an `Init` function and the one that does all at once, as one call.

use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_counters as counters;
use metaslot_engine::OperationKind;

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
    // One after the other: what is chosen first is carried through all that comes before it is used.
    let (first, second, kind) = match operation {
        CKF_DIGEST => {
            return enter_session(Function::Digest, session, |engine, caller, session| {
                counters::call(Function::DigestInit, CKR_OK);
                let output = caller.output(out, out_length)?;
                let input = caller.input(data, length, &output)?;
                let mechanism = caller.mechanism_alone(mechanism)?;
                output.fill(|out| engine.digest_whole(session, mechanism, &input, out))
            });
        }
        CKF_ENCRYPT => (Function::EncryptInit, Function::Encrypt, OperationKind::Encrypt),
        CKF_DECRYPT => (Function::DecryptInit, Function::Decrypt, OperationKind::Decrypt),
        CKF_SIGN => (Function::SignInit, Function::Sign, OperationKind::Sign),
        _ => return refused(session),
    };
    enter_session(second, session, |engine, caller, session| {
        counters::call(first, CKR_OK);
        let output = caller.output(out, out_length)?;
        let input = caller.input(data, length, &output)?;
        let (mechanism, mut params) = caller.mechanism(mechanism)?;
        let with = (mechanism, &mut params, ObjectHandle(key));
        output.fill(|out| engine.keyed_whole(kind, session, with, &input, out))
    })
}

/// Another operation is refused as one of these, and nothing has begun.
#[cold]
#[inline(never)]
fn refused(session: CK_SESSION_HANDLE) -> CK_RV {
    enter_session(Function::Encrypt, session, |_, _, _| Err(Error::ARGUMENTS_BAD))
}
