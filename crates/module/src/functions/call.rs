// SPDX-License-Identifier: Apache-2.0
//! The five shapes that the calls of an operation have: begin, transform, update, finish, check.
//!
//! PKCS#11 3.2 §5.8 to §5.17: a call that fails ends its operation, also when its arguments are the
//! reason, so an argument that cannot be decoded is told to the engine as well.

use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;
use metaslot_engine::{Engine, OperationKind, Output};
use metaslot_spi::Params;

/// Bytes of the caller: where, and how many.
pub(super) type Bytes<'a> = (Given<'a, CK_BYTE>, CK_ULONG);
/// Where a result of variable length goes, and where its length stands.
pub(super) type Room<'a> = (Given<'a, CK_BYTE>, Given<'a, CK_ULONG>);

/// `*Init`. Without a mechanism it cancels the operation that is active (PKCS#11 3.2 §5.8.1).
pub(super) fn begin(
    function: Function,
    session: CK_SESSION_HANDLE,
    mechanism: Given<'_, CK_MECHANISM>,
    key: CK_OBJECT_HANDLE,
    work: impl FnOnce(&Engine, SessionHandle, CK_MECHANISM_TYPE, Params, ObjectHandle) -> Result<()>,
) -> CK_RV {
    let key = ObjectHandle(key);
    enter_session(function, session, |engine, caller, session| {
        if mechanism.is_null() {
            return engine.cancel_active(session, OperationKind::of(function));
        }
        let (mechanism, params) = caller.mechanism(mechanism)?;
        work(engine, session, mechanism, params, key)
    })
}

/// A call that reads bytes and writes others: `C_Encrypt`, `C_EncryptUpdate`, `C_Sign`, …
pub(super) fn transform(
    function: Function,
    session: CK_SESSION_HANDLE,
    data: Bytes<'_>,
    out: Room<'_>,
    work: impl FnOnce(&Engine, SessionHandle, &[u8], &mut Output<'_>) -> Result<()>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let arguments = caller.output(out.0, out.1).and_then(|output| {
            let input = caller.input(data.0, data.1, &output)?;
            Ok((output, input))
        });
        let (output, input) = decoded(engine, session, function, arguments)?;
        output.fill(|out| work(engine, session, &input, out))
    })
}

/// A call that takes more data: `C_DigestUpdate`, …
pub(super) fn update(
    function: Function,
    session: CK_SESSION_HANDLE,
    data: Bytes<'_>,
    work: impl FnOnce(&Engine, SessionHandle, &[u8]) -> Result<()>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let data = decoded(engine, session, function, caller.bytes(data.0, data.1))?;
        work(engine, session, data)
    })
}

/// A call that only writes: `C_SignFinal`, …
pub(super) fn finish(
    function: Function,
    session: CK_SESSION_HANDLE,
    out: Room<'_>,
    work: impl FnOnce(&Engine, SessionHandle, &mut Output<'_>) -> Result<()>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let output = decoded(engine, session, function, caller.output(out.0, out.1))?;
        output.fill(|out| work(engine, session, out))
    })
}

/// `C_Verify`: data and a signature, and no result but the code.
pub(super) fn check(
    function: Function,
    session: CK_SESSION_HANDLE,
    data: Bytes<'_>,
    signature: Bytes<'_>,
    work: impl FnOnce(&Engine, SessionHandle, &[u8], &[u8]) -> Result<()>,
) -> CK_RV {
    enter_session(function, session, |engine, caller, session| {
        let arguments = caller
            .bytes(data.0, data.1)
            .and_then(|data| Ok((data, caller.bytes(signature.0, signature.1)?)));
        let (data, signature) = decoded(engine, session, function, arguments)?;
        work(engine, session, data, signature)
    })
}

/// The arguments; where they cannot be decoded, the operation of the call ends.
pub(super) fn decoded<T>(
    engine: &Engine,
    session: SessionHandle,
    function: Function,
    arguments: Result<T>,
) -> Result<T> {
    arguments.inspect_err(|_| engine.fail_active(session, OperationKind::of(function)))
}
