// SPDX-License-Identifier: Apache-2.0
//! Two operations in one call (PKCS#11 3.2 §5.17).
//!
//! The second operation takes the plaintext only after the cipher has found room for its output, and
//! the cipher moves on only after the second operation is known to take data. A call that fails ends
//! both, as it would end each alone; a short buffer is no failure.

use super::{OperationKind, Operations, cipher, digest, signature};
use crate::engine::Engine;
use crate::output::Output;
use crate::session::Session;
use metaslot_ck::{Error, Function, Result, SessionHandle};
use metaslot_spi::provider::Direction;

impl Engine {
    /// `C_DigestEncryptUpdate`, `C_DecryptDigestUpdate`, `C_SignEncryptUpdate` or `C_DecryptVerifyUpdate`: the one that `function` names.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.17 names them; `CKR_FUNCTION_NOT_SUPPORTED` for a function that does something else.
    pub fn update_both(
        &self,
        function: Function,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let kinds = OperationKind::of(function);
        let (direction, companion) = match *kinds {
            [OperationKind::Decrypt, companion] => (Direction::Backward, companion),
            [companion, _] => (Direction::Forward, companion),
            _ => return Err(Error::FUNCTION_NOT_SUPPORTED),
        };
        let session = &mut *self.session(session)?;
        let result = both(session, direction, companion, part, out);
        if result.is_err_and(|error| error != Error::BUFFER_TOO_SMALL) {
            session.operations.fail(&mut session.recent, kinds);
        }
        result
    }
}

fn both(
    session: &mut Session,
    direction: Direction,
    companion: OperationKind,
    part: &[u8],
    out: &mut Output<'_>,
) -> Result<()> {
    cipher::split(cipher::kind(direction), session).0.chosen()?;
    // Fails where it cannot take data: a mechanism without parts, a key whose login is missing.
    feed(session, companion, (!out.was_asked()).then_some(&[]))?;
    cipher::update(direction, session, part, out)?;
    let plain = if direction == Direction::Forward { part } else { out.written() };
    feed(session, companion, (!out.was_asked()).then_some(plain))
}

/// The operation beside the cipher takes `data`. A caller that only asks for a length has none, and changes nothing.
fn feed(session: &mut Session, companion: OperationKind, data: Option<&[u8]>) -> Result<()> {
    let Operations { digest, sign, verify, .. } = &mut session.operations;
    match companion {
        OperationKind::Digest => digest.chosen().map(drop)?,
        OperationKind::Sign => sign.chosen().map(drop)?,
        _ => verify.chosen().map(drop)?,
    }
    let Some(data) = data else { return Ok(()) };
    let fed = match companion {
        OperationKind::Digest => digest::fed(digest, data),
        OperationKind::Sign => signature::fed(companion, sign, data),
        _ => signature::fed(companion, verify, data),
    };
    fed.map(drop)
}
