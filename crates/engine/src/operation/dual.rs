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
use metaslot_ck::{Error, Result, SessionHandle};
use metaslot_spi::provider::Direction;

impl Engine {
    /// `C_DigestEncryptUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.17.1 names them.
    pub fn digest_encrypt_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        encrypt(&mut *self.session(session)?, Companion::Digest, part, out)
    }

    /// `C_DecryptDigestUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.17.2 names them.
    pub fn decrypt_digest_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        decrypt(&mut *self.session(session)?, Companion::Digest, part, out)
    }

    /// `C_SignEncryptUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.17.3 names them.
    pub fn sign_encrypt_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        encrypt(&mut *self.session(session)?, Companion::Sign, part, out)
    }

    /// `C_DecryptVerifyUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.17.4 names them.
    pub fn decrypt_verify_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        decrypt(&mut *self.session(session)?, Companion::Verify, part, out)
    }
}

/// What takes the plaintext beside the cipher.
#[derive(Clone, Copy)]
enum Companion {
    Digest,
    Sign,
    Verify,
}

fn encrypt(
    session: &mut Session,
    companion: Companion,
    part: &[u8],
    out: &mut Output<'_>,
) -> Result<()> {
    together(session, OperationKind::Encrypt, companion, |session| {
        session.operations.encrypt.chosen()?;
        companion.prepare(session, out)?;
        cipher::update(Direction::Forward, session, part, out)?;
        if out.was_asked() { Ok(()) } else { companion.update(session, part) }
    })
}

fn decrypt(
    session: &mut Session,
    companion: Companion,
    part: &[u8],
    out: &mut Output<'_>,
) -> Result<()> {
    together(session, OperationKind::Decrypt, companion, |session| {
        session.operations.decrypt.chosen()?;
        companion.prepare(session, out)?;
        cipher::update(Direction::Backward, session, part, out)?;
        if out.was_asked() { Ok(()) } else { companion.update(session, out.written()) }
    })
}

fn together(
    session: &mut Session,
    cipher: OperationKind,
    companion: Companion,
    work: impl FnOnce(&mut Session) -> Result<()>,
) -> Result<()> {
    let result = work(session);
    if result.is_err_and(|error| error != Error::BUFFER_TOO_SMALL) {
        let Session { operations, recent, .. } = session;
        operations.fail(recent, &[cipher, companion.kind()]);
    }
    result
}

impl Companion {
    const fn kind(self) -> OperationKind {
        match self {
            Self::Digest => OperationKind::Digest,
            Self::Sign => OperationKind::Sign,
            Self::Verify => OperationKind::Verify,
        }
    }

    /// Fails, and ends the operation, where it cannot take data: a mechanism without parts, a key
    /// whose login is missing. A caller that only asks for the length changes nothing.
    fn prepare(self, session: &mut Session, out: &Output<'_>) -> Result<()> {
        match self {
            Self::Digest => session.operations.digest.chosen().map(drop)?,
            Self::Sign => session.operations.sign.chosen().map(drop)?,
            Self::Verify => session.operations.verify.chosen().map(drop)?,
        }
        if out.was_asked() { Ok(()) } else { self.update(session, &[]) }
    }

    fn update(self, session: &mut Session, data: &[u8]) -> Result<()> {
        let Operations { digest, sign, verify, .. } = &mut session.operations;
        let fed = match self {
            Self::Digest => digest::fed(digest, data),
            Self::Sign => signature::fed(OperationKind::Sign, sign, data),
            Self::Verify => signature::fed(OperationKind::Verify, verify, data),
        };
        fed.map(drop)
    }
}
