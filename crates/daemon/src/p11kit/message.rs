// SPDX-License-Identifier: Apache-2.0
//! Signatures of several messages under one key. Ciphers are not among them: the parameter of a message is a structure with
//! pointers, which the protocol sends as it is.

use super::connection::Asked;
use metaslot_ck::*;
use metaslot_engine::OperationKind;

impl<'m> Asked<'m, '_, '_> {
    /// The parameter of a signature's message: there is none.
    fn no_parameter(&mut self) -> Result<()> {
        if self.data()?.is_empty() { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }

    fn message(&mut self) -> Result<&'m [u8]> {
        self.no_parameter()?;
        self.data()
    }

    /// What a part of a message gave: a failure ends the message, whose data is gone.
    fn unless_failed(
        &mut self,
        session: SessionHandle,
        kind: OperationKind,
        result: Result<()>,
    ) -> Result<()> {
        result.inspect_err(|_| self.connection.kept.gathered(session, kind))
    }
}

/// `C_SignMessage` (PKCS#11 3.2 §5.14.2)
pub(super) fn sign(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, engine) = (asked.session()?, asked.connection.engine);
    let (data, room) = asked.decoded(session, |asked| Ok((asked.message()?, asked.room()?)))?;
    asked.fill(room, 0, |out| engine.sign_message(session, data, out)).map(drop)
}

/// `C_SignMessageBegin` (PKCS#11 3.2 §5.14.3) and `C_VerifyMessageBegin` (§5.16.3)
pub(super) fn begin(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    asked.decoded(session, Asked::no_parameter)?;
    let kind = match asked.call.function {
        Function::SignMessageBegin => OperationKind::MessageSign,
        _ => OperationKind::MessageVerify,
    };
    asked.connection.engine.signature_message_begin(session, kind)
}

/// `C_SignMessageNext` (PKCS#11 3.2 §5.14.4)
pub(super) fn sign_next(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let (session, engine) = (asked.session()?, asked.connection.engine);
    let parts =
        |asked: &mut Asked<'_, '_, '_>| Ok::<_, Error>((asked.request.byte()?, asked.room()?));
    let (data, (last, room)) =
        asked.decoded(session, |asked| Ok((asked.message()?, parts(asked)?)))?;
    if last == CK_FALSE {
        asked.gather(session, OperationKind::MessageSign, data.len())?;
        let more = engine.sign_message_next(session, data, None);
        asked.unless_failed(session, OperationKind::MessageSign, more)?;
        asked.answer.bytes(Some(&[]));
        return Ok(());
    }
    let given = asked.fill(room, 0, |out| engine.sign_message_next(session, data, Some(out)));
    if given != Ok(false) {
        asked.connection.kept.gathered(session, OperationKind::MessageSign);
    }
    given.map(drop)
}

/// `C_VerifyMessage` (PKCS#11 3.2 §5.16.2)
pub(super) fn verify(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    let (data, signature) =
        asked.decoded(session, |asked| Ok((asked.message()?, asked.data()?)))?;
    asked.connection.engine.verify_message(session, data, signature)
}

/// `C_VerifyMessageNext` (PKCS#11 3.2 §5.16.4): without a signature more data is to follow.
pub(super) fn verify_next(mut asked: Asked<'_, '_, '_>) -> Result<()> {
    let session = asked.session()?;
    let (data, signature) =
        asked.decoded(session, |asked| Ok((asked.message()?, asked.optional()?)))?;
    let (engine, kind) = (asked.connection.engine, OperationKind::MessageVerify);
    if signature.is_none() {
        asked.gather(session, kind, data.len())?;
        let more = engine.verify_message_next(session, data, None);
        return asked.unless_failed(session, kind, more);
    }
    asked.connection.kept.gathered(session, kind);
    engine.verify_message_next(session, data, signature)
}
