// SPDX-License-Identifier: Apache-2.0
//! Digests (PKCS#11 3.2 §5.12).

use super::later::{self, Later};
use super::{Active, ends, fails};
use crate::Params;
use crate::engine::Engine;
use crate::metaslot::route::Count;
use crate::output::{Output, Written};
use crate::provider::{Digest, DigestStream};
use metaslot_ck::{
    CK_MECHANISM_TYPE, CKA_VALUE, CKO_SECRET_KEY, Error, ObjectHandle, Result, SessionHandle,
};
use metaslot_counters::Watch;

/// What `C_DigestInit` chose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DigestOp {
    pub(crate) count: Count,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) algorithm: &'static dyn Digest,
}

pub(crate) type DigestState = Active<DigestOp, Box<dyn DigestStream>>;

impl Engine {
    /// `C_DigestInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.1 names them.
    pub fn digest_init(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        _params: Params,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        session.digest.free()?;
        let later = session.asynchronous;
        let (count, algorithm) =
            self.route(mechanism, |row| row.digest.filter(|digest| later || digest.for_waiting()))?;
        session.digest = Active::Initialized(DigestOp { count, mechanism, algorithm });
        Ok(())
    }

    /// `C_Digest`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.2 names them.
    pub fn digest(&self, session: SessionHandle, data: &[u8], out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let op = *session.digest.single()?;
        let watch = metaslot_counters::begin();
        let length = op.algorithm.length();
        let postponed = if session.asynchronous {
            later::begin(out.room(length), || op.algorithm.digest_later(data))
        } else {
            Ok(None)
        };
        let result = match postponed {
            Ok(Some((room, work))) => {
                session.digest.postpone(Later { work, room, bytes: data.len(), watch });
                Err(Error::PENDING)
            }
            Ok(None) => out.exact(length, |room| op.algorithm.digest(data, room)),
            Err(error) => Err(error),
        };
        if ends(result) {
            session.digest.end();
            op.count.done(data.len(), result.is_ok(), watch);
        }
        result.map(drop)
    }

    /// `C_DigestUpdate`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.3 names them.
    pub fn digest_update(&self, session: SessionHandle, data: &[u8]) -> Result<()> {
        let mut session = self.session(session)?;
        update(&mut session.digest, data)
    }

    /// `C_DigestKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.4 names them.
    pub fn digest_key(&self, session: SessionHandle, key: ObjectHandle) -> Result<()> {
        let mut session = self.session(session)?;
        session.digest.chosen()?;
        let object = self.object_in(&session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        if object.class() != CKO_SECRET_KEY {
            return Err(Error::KEY_INDIGESTIBLE);
        }
        let key = self.key(&object)?;
        update(&mut session.digest, key.secret(CKA_VALUE)?)
    }

    /// `C_DigestFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.5 names them.
    pub fn digest_final(&self, session: SessionHandle, out: &mut Output<'_>) -> Result<()> {
        let mut session = self.session(session)?;
        let length = session.digest.chosen()?.algorithm.length();
        let result = out.exact(length, |room| {
            let (_, stream) = session.digest.stream(|op| op.algorithm.start())?;
            stream.finish(room)
        });
        if ends(result)
            && let Some(op) = session.digest.end()
        {
            op.count.done(0, result.is_ok(), Watch::OFF);
        }
        result.map(drop)
    }
}

pub(crate) fn update(state: &mut DigestState, data: &[u8]) -> Result<()> {
    let result = state.stream(|op| op.algorithm.start()).and_then(|(op, stream)| {
        stream.update(data)?;
        op.count.bytes(data.len());
        Ok(Written::Done)
    });
    if fails(result)
        && let Some(op) = state.end()
    {
        op.count.done(0, false, Watch::OFF);
    }
    result.map(drop)
}
