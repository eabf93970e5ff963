// SPDX-License-Identifier: Apache-2.0
//! Two operations in one call (PKCS#11 3.2 §5.16).

use super::signature::Kind;
use super::{cipher, digest, signature};
use crate::engine::Engine;
use crate::output::Output;
use crate::provider::Direction;
use metaslot_ck::{Result, SessionHandle};

impl Engine {
    /// `C_DigestEncryptUpdate`: digests the plaintext that it encrypts. The digest takes the data
    /// only once the output has found room.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.1 names them.
    pub fn digest_encrypt_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.digest.chosen()?;
        cipher::update(Direction::Forward, &mut session, part, out)?;
        if out.was_asked() { Ok(()) } else { digest::update(&mut session.digest, part) }
    }

    /// `C_DecryptDigestUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.2 names them.
    pub fn decrypt_digest_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.digest.chosen()?;
        cipher::update(Direction::Backward, &mut session, part, out)?;
        digest::update(&mut session.digest, out.written())
    }

    /// `C_SignEncryptUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.3 names them.
    pub fn sign_encrypt_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.sign.chosen()?;
        cipher::update(Direction::Forward, &mut session, part, out)?;
        if out.was_asked() { Ok(()) } else { signature::update(Kind::Sign, &mut session, part) }
    }

    /// `C_DecryptVerifyUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.16.4 names them.
    pub fn decrypt_verify_update(
        &self,
        session: SessionHandle,
        part: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.verify.chosen()?;
        cipher::update(Direction::Backward, &mut session, part, out)?;
        signature::update(Kind::Verify, &mut session, out.written())
    }
}
