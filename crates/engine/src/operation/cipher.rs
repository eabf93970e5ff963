// SPDX-License-Identifier: Apache-2.0
//! Encryption and decryption (PKCS#11 3.2 §5.8, §5.10).

use super::{Active, Chosen, OperationKind, Streams};
use crate::engine::Engine;
use crate::object::recent::Recent;
use crate::output::{Output, Written};
use crate::session::Session;
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_memory::Secret;
use metaslot_spi::Params;
use metaslot_spi::provider::{Cipher, CipherStream, Direction};

/// A stream, and its last part once that was computed but did not fit the caller's buffer.
#[derive(Debug)]
pub(crate) struct CipherRun {
    pub(super) stream: Box<dyn CipherStream>,
    last: Option<Secret>,
    /// Of a message: how much more was taken than was given.
    pub(super) owed: usize,
}

impl Streams for dyn Cipher {
    type Stream = CipherRun;
}

impl Engine {
    /// `C_EncryptInit` (forward) and `C_DecryptInit` (backward).
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.8.1 and §5.10.1 name them.
    pub fn cipher_init(
        &self,
        direction: Direction,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        split(kind(direction), &mut session).0.free()?;
        let choice = self.choose(&mut session, kind(direction), (mechanism, &params), key)?;
        *split(kind(direction), &mut session).0 =
            Active::Initialized(choice.with(mechanism, params));
        Ok(())
    }

    /// `C_Encrypt` and `C_Decrypt`. `input` and the output must not overlap.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.8.2 and §5.10.2 name them.
    pub fn cipher(
        &self,
        direction: Direction,
        session: SessionHandle,
        input: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let (active, recent) = split(kind(direction), &mut session);
        let result = self.serve(kind(direction), active, input.len(), |active| {
            once(direction, active, later.then_some(watch), input, out)
        });
        active.conclude(recent, input.len(), watch, result)
    }

    /// `C_EncryptUpdate` and `C_DecryptUpdate`.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.8.3 and §5.10.3 name them.
    pub fn cipher_update(
        &self,
        direction: Direction,
        session: SessionHandle,
        input: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        drop(self.settle(kind(direction), split(kind(direction), &mut session).0, input.len()));
        update(direction, &mut session, input, out)
    }

    /// `C_EncryptFinal` and `C_DecryptFinal`.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.8.4 and §5.10.4 name them.
    pub fn cipher_final(
        &self,
        direction: Direction,
        session: SessionHandle,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(kind(direction), &mut session);
        let result = active.stream(start(direction)).and_then(|(_, run)| run.finish(out));
        active.conclude(recent, 0, Watch::OFF, result)
    }
}

pub(super) const fn kind(direction: Direction) -> OperationKind {
    match direction {
        Direction::Forward => OperationKind::Encrypt,
        Direction::Backward => OperationKind::Decrypt,
    }
}

/// The same for several messages.
pub(super) const fn kind_of_messages(direction: Direction) -> OperationKind {
    match direction {
        Direction::Forward => OperationKind::MessageEncrypt,
        Direction::Backward => OperationKind::MessageDecrypt,
    }
}

/// The operation of one of the four kinds that encrypt and decrypt.
#[inline(always)]
pub(super) fn split(
    kind: OperationKind,
    session: &mut Session,
) -> (&mut Active<dyn Cipher>, &mut Recent) {
    let Session { operations, recent, .. } = session;
    match kind {
        OperationKind::Decrypt => (&mut operations.decrypt, recent),
        OperationKind::MessageEncrypt => (&mut operations.message_encrypt, recent),
        OperationKind::MessageDecrypt => (&mut operations.message_decrypt, recent),
        _ => (&mut operations.encrypt, recent),
    }
}

/// `later`: where the session is asynchronous, the clock of the call.
pub(super) fn once(
    direction: Direction,
    active: &mut Active<dyn Cipher>,
    later: Option<Watch>,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<Written> {
    let chosen = active.single()?;
    let longest = chosen.algorithm.length(direction, chosen.key()?, &chosen.params, input.len())?;
    if let Some(watch) = later {
        active.begin_later(longest, out, input.len(), watch, |chosen| {
            let Chosen { algorithm, params, .. } = chosen;
            algorithm.run_later(direction, chosen.unlocked_key()?, params, input)
        })?;
    }
    let chosen = active.single()?;
    if chosen.object.as_ref().is_some_and(|key| key.facts().always_authenticate) {
        // A room that is tried again could have another ciphertext opened for the same PIN.
        out.room(longest)?;
    }
    out.at_most(longest, |room| {
        chosen.algorithm.run(direction, chosen.unlocked_key()?, &chosen.params, input, room)
    })
}

pub(super) fn start(direction: Direction) -> impl FnOnce(&Chosen<dyn Cipher>) -> Result<CipherRun> {
    move |chosen| {
        let Chosen { algorithm, params, .. } = chosen;
        let stream = algorithm.start(direction, chosen.unlocked_key()?, params)?;
        Ok(CipherRun { stream, last: None, owed: 0 })
    }
}

pub(crate) fn update(
    direction: Direction,
    session: &mut Session,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<()> {
    let (active, recent) = split(kind(direction), session);
    let result = active.stream(start(direction)).and_then(|(chosen, run)| {
        let length = run.stream.update_length(input.len());
        let written = out.exact(length, |room| run.stream.update(input, room))?;
        if written == Written::Done {
            chosen.count.add(input.len());
        }
        Ok(written)
    });
    active.proceed(recent, result)
}

impl CipherRun {
    /// The last part is computed once; a short buffer finds it here when it comes back larger.
    fn finish(&mut self, out: &mut Output<'_>) -> Result<Written> {
        let longest = self.last.as_ref().map_or_else(|| self.stream.finish_length(), Secret::len);
        let (stream, last) = (&mut self.stream, &mut self.last);
        out.at_most(longest, |room| {
            if last.is_none() {
                let mut part = Secret::try_zeroed(longest).ok_or(Error::DEVICE_MEMORY)?;
                let length = stream.finish(part.expose_mut())?;
                *last = Some(part.truncated(length));
            }
            let part = last.as_ref().map_or(&[][..], Secret::expose);
            room[..part.len()].copy_from_slice(part);
            Ok(part.len())
        })
    }
}
