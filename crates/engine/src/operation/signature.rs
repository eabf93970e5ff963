// SPDX-License-Identifier: Apache-2.0
//! Signatures and MACs (PKCS#11 3.2 §5.13, §5.14).

use super::later::{self, Later, Room};
use super::{Active, ends, fails};
use crate::engine::Engine;
use crate::metaslot::route::Count;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::provider::{Algorithm, Direction, Signature, SignatureStream};
use crate::session::Session;
use crate::{Key, Params};
use metaslot_ck::*;
use metaslot_counters::Watch;
use std::sync::Arc;

/// What `C_SignInit` or `C_VerifyInit` chose.
#[derive(Debug)]
pub(crate) struct SignatureOp {
    pub(crate) count: Count,
    pub(crate) algorithm: &'static dyn Signature,
    pub(crate) object: Arc<Object>,
    pub(crate) params: Params,
    /// `CKA_ALWAYS_AUTHENTICATE`: a context-specific login is still missing.
    pub(crate) locked: bool,
}

impl SignatureOp {
    pub(crate) fn key(&self) -> Result<&Arc<Key>> {
        self.object.key().ok_or(Error::KEY_HANDLE_INVALID)
    }

    fn open(&self) -> Result<&Self> {
        if self.locked { Err(Error::USER_NOT_LOGGED_IN) } else { Ok(self) }
    }
}

pub(crate) type SignatureState = Active<SignatureOp, Box<dyn SignatureStream>>;

/// Which of the four operations of this kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Sign,
    Verify,
    SignRecover,
}

impl Kind {
    const fn usage(self) -> CK_ATTRIBUTE_TYPE {
        match self {
            Self::Sign => CKA_SIGN,
            Self::Verify => CKA_VERIFY,
            Self::SignRecover => CKA_SIGN_RECOVER,
        }
    }

    const fn direction(self) -> Direction {
        match self {
            Self::Sign | Self::SignRecover => Direction::Forward,
            Self::Verify => Direction::Backward,
        }
    }

    const fn state(self, session: &mut Session) -> &mut SignatureState {
        match self {
            Self::Sign => &mut session.sign,
            Self::Verify => &mut session.verify,
            Self::SignRecover => &mut session.sign_recover,
        }
    }
}

impl Engine {
    fn signature_init(
        &self,
        kind: Kind,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        kind.state(&mut session).free()?;
        let operation = |row: &'static Algorithm| match kind {
            Kind::Sign => row.sign,
            Kind::Verify => row.verify,
            Kind::SignRecover => row.sign_recover,
        };
        let object = self
            .key_for(&mut session, key, kind.usage(), mechanism)
            .map_err(|error| self.refused(mechanism, operation, error))?;
        let direction = kind.direction();
        self.policy(&session)?.using(mechanism, &params, object.facts(), direction, true)?;
        let (key, later) = (self.key(&object)?, session.asynchronous);
        let (count, algorithm) = self
            .route(mechanism, |row| {
                operation(row)
                    .filter(|algorithm| algorithm.serves(key) && (later || algorithm.for_waiting()))
            })
            .map_err(|_| self.refused(mechanism, operation, Error::KEY_SIZE_RANGE))?;
        algorithm.check(direction, key, &params)?;
        let locked = object.facts().always_authenticate;
        let op = SignatureOp { count, algorithm, object, params, locked };
        *kind.state(&mut session) = Active::Initialized(op);
        Ok(())
    }

    fn sign_once(
        &self,
        kind: Kind,
        session: SessionHandle,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous && kind == Kind::Sign;
        let state = kind.state(&mut session);
        let opened = state.single().and_then(SignatureOp::open);
        let mut postponed = None;
        let result = opened.and_then(|op| {
            let key = op.key()?;
            let length = op.algorithm.length(key, &op.params);
            if later {
                let work = || op.algorithm.sign_later(key, &op.params, data);
                postponed = later::begin(out.room(length), work)?;
                if postponed.is_some() {
                    return Err(Error::PENDING);
                }
            }
            out.exact(length, |room| op.algorithm.sign(key, &op.params, data, room).map(drop))
        });
        if let Some((room, work)) = postponed {
            state.postpone(Later { work, room, bytes: data.len(), watch });
        }
        conclude(kind, &mut session, data.len(), watch, result)
    }

    fn signature_update(&self, kind: Kind, session: SessionHandle, data: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        update(kind, &mut session, data)
    }

    /// `C_SignInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.1 names them.
    pub fn sign_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(Kind::Sign, session, mechanism, params, key)
    }

    /// `C_Sign`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.2 names them.
    pub fn sign(&self, session: SessionHandle, data: &[u8], out: &mut Output<'_>) -> Result<()> {
        self.sign_once(Kind::Sign, session, data, out)
    }

    /// `C_SignUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.3 names them.
    pub fn sign_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        self.signature_update(Kind::Sign, session, data)
    }

    /// `C_SignFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.4 names them.
    pub fn sign_final(&self, session: SessionHandle, out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let state = &mut session.sign;
        let longest = state
            .chosen()
            .and_then(SignatureOp::open)
            .and_then(|op| Ok(op.algorithm.length(op.key()?, &op.params)));
        let result = longest.and_then(|longest| {
            out.exact(longest, |room| {
                let (_, stream) = state.stream(start(Kind::Sign))?;
                stream.sign(room).map(drop)
            })
        });
        conclude(Kind::Sign, &mut session, 0, Watch::OFF, result)
    }

    /// `C_SignRecoverInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.5 names them.
    pub fn sign_recover_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(Kind::SignRecover, session, mechanism, params, key)
    }

    /// `C_SignRecover`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.13.6 names them.
    pub fn sign_recover(
        &self,
        session: SessionHandle,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.sign_once(Kind::SignRecover, session, data, out)
    }

    /// `C_VerifyInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.1 names them.
    pub fn verify_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        key: ObjectHandle,
    ) -> Result<()> {
        self.signature_init(Kind::Verify, session, mechanism, params, key)
    }

    /// `C_Verify`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.2 names them.
    pub fn verify(&self, session: SessionHandle, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        let watch = metaslot_counters::begin();
        let later = session.asynchronous;
        let mut postponed = None;
        let result = session.verify.single().and_then(SignatureOp::open).and_then(|op| {
            let key = op.key()?;
            if later {
                let work = || op.algorithm.verify_later(key, &op.params, data, signature);
                postponed = later::begin(Ok(Some(Room::default())), work)?;
                if postponed.is_some() {
                    return Err(Error::PENDING);
                }
            }
            op.algorithm.verify(key, &op.params, data, signature)?;
            Ok(Written::Done)
        });
        if let Some((room, work)) = postponed {
            session.verify.postpone(Later { work, room, bytes: data.len(), watch });
        }
        conclude(Kind::Verify, &mut session, data.len(), watch, result)
    }

    /// `C_VerifyUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.3 names them.
    pub fn verify_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        self.signature_update(Kind::Verify, session, data)
    }

    /// `C_VerifyFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.15.4 names them.
    pub fn verify_final(&self, session: SessionHandle, signature: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        let state = &mut session.verify;
        let opened = state.chosen().and_then(SignatureOp::open).map(drop);
        let result = opened.and_then(|()| {
            let (_, stream) = state.stream(start(Kind::Verify))?;
            stream.verify(signature)?;
            Ok(Written::Done)
        });
        conclude(Kind::Verify, &mut session, 0, Watch::OFF, result)
    }
}

fn start(kind: Kind) -> impl FnOnce(&SignatureOp) -> Result<Box<dyn SignatureStream>> {
    move |op| op.algorithm.start(kind.direction(), op.key()?, &op.params)
}

pub(crate) fn update(kind: Kind, session: &mut Session, data: &[u8]) -> Result<()> {
    let state = kind.state(session);
    let opened = state.chosen().and_then(SignatureOp::open).map(drop);
    let result = opened.and_then(|()| {
        let (op, stream) = state.stream(start(kind))?;
        stream.update(data)?;
        op.count.bytes(data.len());
        Ok(Written::Done)
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
    kind: Kind,
    session: &mut Session,
    bytes: usize,
    watch: Watch,
    result: Result<Written>,
) -> Result<()> {
    if ends(result)
        && let Some(op) = kind.state(session).end()
    {
        op.count.done(bytes, result.is_ok(), watch);
        session.keep(op.object);
    }
    result.map(drop)
}
