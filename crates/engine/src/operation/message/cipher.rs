// SPDX-License-Identifier: Apache-2.0
//! Encryption and decryption of several messages under one key (PKCS#11 3.2 §5.9, §5.11): sealed and opened as one message is,
//! with the tag in the message's parameter.

use crate::engine::Engine;
use crate::operation::cipher::{CipherRun, kind_of_messages as kind, split, start};
use crate::operation::{Active, Chosen};
use crate::output::{Output, Written};
use crate::token::Token;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_memory::Secret;
use metaslot_spi::Message;
use metaslot_spi::provider::{Cipher, Direction};
use std::sync::Arc;

impl Engine {
    /// `C_MessageEncryptInit` (forward) and `C_MessageDecryptInit` (backward). `message`: an empty one of the mechanism.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.9.1 and §5.11.1 name them.
    pub fn message_cipher_init(
        &self,
        direction: Direction,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        message: &Message,
        key: ObjectHandle,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        split(kind(direction), &mut session).0.free()?;
        let params = message.params(&[]);
        let choice = self.choose(&mut session, kind(direction), (mechanism, &params), key)?;
        let chosen = choice.with(mechanism, params);
        *split(kind(direction), &mut session).0 = Active::Initialized(chosen);
        Ok(())
    }

    /// The shape of the parameters of the messages that are under way.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`, `CKR_OPERATION_NOT_INITIALIZED`
    pub fn message_shape(&self, direction: Direction, session: SessionHandle) -> Result<Shape> {
        let mechanism = self.session(session)?.operations.of(kind(direction)).mechanism();
        let row = mechanism.and_then(MechanismRow::find).ok_or(Error::OPERATION_NOT_INITIALIZED)?;
        Ok(row.shape)
    }

    /// `C_EncryptMessage` and `C_DecryptMessage`. `input` and the output must not overlap.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.9.2 and §5.11.2 name them.
    pub fn cipher_message(
        &self,
        direction: Direction,
        session: SessionHandle,
        message: &mut Message,
        (aad, input): (&[u8], &[u8]),
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        self.begin_message(&mut session, kind(direction))?;
        let (watch, token) = (metaslot_counters::begin(), self.token(session.slot)?);
        let (active, recent) = split(kind(direction), &mut session);
        let result = active.single().map(drop).and_then(|()| {
            out.exact(input.len(), |room| {
                self.prepare(direction, token, active, message, aad)?;
                let once = |active: &mut Active<dyn Cipher>| {
                    run(direction, active.single()?, message, input, room)
                };
                self.serve(kind(direction), active, input.len(), once).map(drop)
            })
        });
        active.next_message(recent, input.len(), watch, result)
    }

    /// `C_EncryptMessageBegin` and `C_DecryptMessageBegin`.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.9.3 and §5.11.3 name them.
    pub fn cipher_message_begin(
        &self,
        direction: Direction,
        session: SessionHandle,
        message: &mut Message,
        aad: &[u8],
    ) -> Result<()> {
        let mut session = self.session(session)?;
        self.begin_message(&mut session, kind(direction))?;
        let token = self.token(session.slot)?;
        let (active, _) = split(kind(direction), &mut session);
        let result = active.single().map(drop).and_then(|()| {
            self.prepare(direction, token, active, message, aad)?;
            let begin = |active: &mut Active<dyn Cipher>| {
                active.stream(start(direction)).map(|_| Written::Done)
            };
            self.serve(kind(direction), active, 0, begin)
        });
        active.same_message(result)
    }

    /// `C_EncryptMessageNext` and `C_DecryptMessageNext`; with `tag` the last part: it is put there, or what stands there is
    /// compared.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.9.4 and §5.11.4 name them.
    pub fn cipher_message_next(
        &self,
        direction: Direction,
        session: SessionHandle,
        input: &[u8],
        tag: Option<&mut [u8]>,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let (active, recent) = split(kind(direction), &mut session);
        let (chosen, stream) = active.message()?;
        let Some(tag) = tag else {
            let result = stream.take(input, out);
            if result == Ok(Written::Done) {
                chosen.count.add(input.len());
            }
            return active.same_message(result);
        };
        let result = match tag.len() as u64 == chosen.params.tag_length() {
            true => stream.close(direction, input, tag, out),
            false => Err(Error::MECHANISM_PARAM_INVALID),
        };
        active.next_message(recent, input.len(), Watch::OFF, result)
    }

    /// Puts the parameters of a message in their place, with its IV, once they are known to be right.
    fn prepare(
        &self,
        direction: Direction,
        token: &Token,
        active: &mut Active<dyn Cipher>,
        message: &mut Message,
        aad: &[u8],
    ) -> Result<()> {
        let Active::Initialized(chosen) = active else { return Err(Error::OPERATION_ACTIVE) };
        let shape = MechanismRow::find(chosen.mechanism).map(|row| row.shape);
        if shape != Some(message.shape) {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let key = Arc::clone(chosen.object.as_ref().ok_or(Error::KEY_HANDLE_INVALID)?);
        chosen.unlocked_key()?;
        chosen.params = message.params(aad);
        let (policy, facts) = (token.policy(), key.facts());
        policy.using_mechanism(chosen.mechanism, &chosen.params, facts, direction, false)?;
        // The provider was chosen by the parameters of the first message, and may not take this one's.
        let (said, tried) =
            (chosen.algorithm.check(direction, chosen.key()?, &chosen.params), chosen.count);
        said.or_else(|error| self.another(kind(direction), chosen, &[tried], error))?;
        if direction == Direction::Forward {
            self.generate_iv(token, &key, message)?;
        }
        chosen.params = message.params(aad);
        Ok(())
    }
}

/// Seals into `room` and the message's tag, or opens.
fn run(
    direction: Direction,
    chosen: &Chosen<dyn Cipher>,
    message: &mut Message,
    input: &[u8],
    room: &mut [u8],
) -> Result<Written> {
    let Chosen { algorithm, params, .. } = chosen;
    let (key, whole) = (chosen.key()?, input.len() + message.tag.len());
    let mut sealed = Secret::try_zeroed(whole).ok_or(Error::DEVICE_MEMORY)?;
    let sealed = sealed.expose_mut();
    match direction {
        Direction::Forward => {
            algorithm.run(direction, key, params, input, sealed)?;
            let (body, tag) = sealed.split_at(input.len());
            room.copy_from_slice(body);
            message.tag.copy_from_slice(tag);
        }
        Direction::Backward => {
            let (body, tag) = sealed.split_at_mut(input.len());
            body.copy_from_slice(input);
            tag.copy_from_slice(&message.tag);
            algorithm.run(direction, key, params, sealed, room).map_err(opened)?;
        }
    }
    Ok(Written::Done)
}

/// The code of what is not authentic: an operation on one message has another.
fn opened(error: Error) -> Error {
    if error == Error::ENCRYPTED_DATA_INVALID { Error::AEAD_DECRYPT_FAILED } else { error }
}

impl CipherRun {
    /// A part of a message.
    fn take(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<Written> {
        let length = self.stream.update_length(input.len());
        let written = out.exact(length, |room| self.stream.update(input, room))?;
        if written == Written::Done {
            self.owed = (self.owed + input.len()).saturating_sub(length);
        }
        Ok(written)
    }

    /// The last part of a message. What comes out of a message is as long as what went in: what is left of that comes now.
    fn close(
        &mut self,
        direction: Direction,
        input: &[u8],
        tag: &mut [u8],
        out: &mut Output<'_>,
    ) -> Result<Written> {
        let (stream, last) = (&mut self.stream, self.owed + input.len());
        out.exact(last, |room| {
            let at = stream.update_length(input.len());
            if direction == Direction::Backward {
                stream.update(input, room.get_mut(..at).ok_or(Error::DEVICE_ERROR)?)?;
                let more = at + stream.update_length(tag.len());
                stream.update(tag, room.get_mut(at..more).ok_or(Error::DEVICE_ERROR)?)?;
                let rest = room.get_mut(more..).ok_or(Error::DEVICE_ERROR)?;
                return stream.finish(rest).map(drop).map_err(opened);
            }
            let mut sealed = Secret::try_zeroed(last + tag.len()).ok_or(Error::DEVICE_MEMORY)?;
            let sealed = sealed.expose_mut();
            let (now, rest) = sealed.split_at_mut_checked(at).ok_or(Error::DEVICE_ERROR)?;
            stream.update(input, now)?;
            stream.finish(rest)?;
            room.copy_from_slice(&sealed[..last]);
            tag.copy_from_slice(&sealed[last..]);
            Ok(())
        })
    }
}
