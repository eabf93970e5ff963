// SPDX-License-Identifier: Apache-2.0
//! Encryption and decryption (PKCS#11 3.2 §5.8, §5.10).

use super::later::{self, Later};
use super::{Active, ends, fails};
use crate::engine::Engine;
use crate::metaslot::route::Count;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::provider::{Algorithm, Cipher, CipherStream, Direction};
use crate::session::Session;
use crate::{Key, Params};
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_memory::Secret;
use std::sync::Arc;

/// What `C_EncryptInit` or `C_DecryptInit` chose.
#[derive(Debug)]
pub(crate) struct CipherOp {
    pub(crate) count: Count,
    pub(crate) algorithm: &'static dyn Cipher,
    pub(crate) object: Arc<Object>,
    pub(crate) params: Params,
    /// `CKA_ALWAYS_AUTHENTICATE`: a context-specific login is still missing.
    pub(crate) locked: bool,
}

impl CipherOp {
    fn key(&self) -> Result<&Arc<Key>> {
        self.object.key().ok_or(Error::KEY_HANDLE_INVALID)
    }

    fn open(&self) -> Result<&Self> {
        if self.locked { Err(Error::USER_NOT_LOGGED_IN) } else { Ok(self) }
    }
}

/// A stream, and its last part once that was computed but did not fit the caller's buffer.
#[derive(Debug)]
pub(crate) struct CipherRun {
    stream: Box<dyn CipherStream>,
    last: Option<Secret>,
}

pub(crate) type CipherState = Active<CipherOp, CipherRun>;

const fn state(direction: Direction, session: &mut Session) -> &mut CipherState {
    match direction {
        Direction::Forward => &mut session.encrypt,
        Direction::Backward => &mut session.decrypt,
    }
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
        state(direction, &mut session).free()?;
        let operation = |row: &'static Algorithm| match direction {
            Direction::Forward => row.encrypt,
            Direction::Backward => row.decrypt,
        };
        let usage = match direction {
            Direction::Forward => CKA_ENCRYPT,
            Direction::Backward => CKA_DECRYPT,
        };
        let object = self
            .key_for(&mut session, key, usage, mechanism)
            .map_err(|error| self.refused(mechanism, operation, error))?;
        self.policy(&session)?.using(mechanism, &params, object.facts(), direction, false)?;
        let (key, later) = (self.key(&object)?, session.asynchronous);
        let (count, algorithm) = self
            .route(mechanism, |row| {
                operation(row).filter(|algorithm| {
                    algorithm.serves(key) && (later || algorithm.for_waiting(direction))
                })
            })
            .map_err(|_| self.refused(mechanism, operation, Error::KEY_SIZE_RANGE))?;
        algorithm.check(direction, key, &params)?;
        let locked = object.facts().always_authenticate;
        let op = CipherOp { count, algorithm, object, params, locked };
        *state(direction, &mut session) = Active::Initialized(op);
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
        let state = state(direction, &mut session);
        let mut postponed = None;
        let result = state.single().and_then(CipherOp::open).and_then(|op| {
            let key = op.key()?;
            let longest = op.algorithm.length(direction, key, &op.params, input.len())?;
            if later {
                let work = || op.algorithm.run_later(direction, key, &op.params, input);
                postponed = later::begin(out.room(longest), work)?;
                if postponed.is_some() {
                    return Err(Error::PENDING);
                }
            }
            out.at_most(longest, |room| op.algorithm.run(direction, key, &op.params, input, room))
        });
        if let Some((room, work)) = postponed {
            state.postpone(Later { work, room, bytes: input.len(), watch });
        }
        conclude(direction, &mut session, input.len(), watch, result)
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
        let state = state(direction, &mut session);
        let opened = state.chosen().and_then(CipherOp::open).map(drop);
        let result = opened.and_then(|()| {
            let (_, run) = state.stream(start(direction))?;
            run.finish(out)
        });
        conclude(direction, &mut session, 0, Watch::OFF, result)
    }
}

impl CipherRun {
    /// The last part is computed once; a short buffer finds it here when it comes back larger.
    fn finish(&mut self, out: &mut Output<'_>) -> Result<Written> {
        let longest = self.last.as_ref().map_or_else(|| self.stream.finish_length(), Secret::len);
        let (stream, last) = (&mut self.stream, &mut self.last);
        out.at_most(longest, |room| {
            if last.is_none() {
                let mut part = Secret::zeroed(longest);
                let length = stream.finish(part.expose_mut())?;
                *last = Some(part.truncated(length));
            }
            let part = last.as_ref().map_or(&[][..], Secret::expose);
            room[..part.len()].copy_from_slice(part);
            Ok(part.len())
        })
    }
}

fn start(direction: Direction) -> impl FnOnce(&CipherOp) -> Result<CipherRun> {
    move |op| {
        let stream = op.algorithm.start(direction, op.key()?, &op.params)?;
        Ok(CipherRun { stream, last: None })
    }
}

pub(crate) fn update(
    direction: Direction,
    session: &mut Session,
    input: &[u8],
    out: &mut Output<'_>,
) -> Result<()> {
    let state = state(direction, session);
    let opened = state.chosen().and_then(CipherOp::open).map(drop);
    let result = opened.and_then(|()| {
        let (op, run) = state.stream(start(direction))?;
        let length = run.stream.update_length(input.len());
        let written = out.exact(length, |room| run.stream.update(input, room))?;
        if written == Written::Done {
            op.count.bytes(input.len());
        }
        Ok(written)
    });
    if fails(result)
        && let Some(op) = state.end()
    {
        op.count.done(0, false, Watch::OFF);
        session.keep(op.object);
    }
    result.map(drop)
}

fn conclude(
    direction: Direction,
    session: &mut Session,
    bytes: usize,
    watch: Watch,
    result: Result<Written>,
) -> Result<()> {
    if ends(result)
        && let Some(op) = state(direction, session).end()
    {
        op.count.done(bytes, result.is_ok(), watch);
        session.keep(op.object);
    }
    result.map(drop)
}
