// SPDX-License-Identifier: Apache-2.0
//! An `Init` function and the one that does all at once, in one call: what is done is no operation of the session, where another may be active. Nothing is
//! built that would be taken apart at once, unless there is a choice between providers, or the first one fails.

use super::keyed::Served;
use super::signature::sign_once;
use super::{Active, Chosen, Lock, OperationKind, Streams, cipher, digest};
use crate::engine::Engine;
use crate::object::recent::Recent;
use crate::output::{Output, Written};
use metaslot_ck::*;
use metaslot_counters::Watch;
use metaslot_router::{Count, is_providers};
use metaslot_spi::provider::{Cipher, Signature};
use metaslot_spi::{Key, Params};

/// Who does it: what was chosen, or what was built of that.
enum By<'a, A: Streams + ?Sized + 'static> {
    Row(&'a A, &'a Key, &'a Params),
    Active(&'a mut Active<A>),
}

impl Engine {
    /// `C_DigestInit` and `C_Digest`. Takes no lock.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.12.1 and §5.12.2 name them.
    pub fn digest_whole(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        let (info, unlocked) = self.sessions.unlocked(session)?;
        let (count, algorithm, approved) = self.hashing(info.slot, mechanism, false)?;
        let watch = metaslot_counters::begin();
        let mut tried = None;
        if !count.has_choice() {
            let done = out.exact(algorithm.length(), |room| algorithm.digest(data, room));
            if !done.is_err_and(is_providers) {
                unlocked.completes(session, approved, done);
                return counted(count, data.len(), watch, done);
            }
            tried = Some(done);
        }
        let (params, object, lock) = (Params::None, None, Lock::Open);
        let chosen = Chosen { count, mechanism, algorithm, params, object, lock, approved };
        let (kind, mut active) = (OperationKind::Digest, Active::Initialized(chosen));
        let result = self.serve(kind, &mut active, data.len(), |active| {
            tried.take().unwrap_or_else(|| digest::once(active, None, data, out))
        });
        unlocked.completes(session, approved, result);
        active.conclude(&mut Recent::default(), data.len(), watch, result)
    }

    /// `C_EncryptInit` and `C_Encrypt`, or those that decrypt or sign. The parameters may be gone afterwards. No login can be for it.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.8.1 and §5.8.2 name them, §5.10.1 and §5.10.2, or §5.13.1 and §5.13.2.
    pub fn keyed_whole(
        &self,
        kind: OperationKind,
        session: SessionHandle,
        with: (CK_MECHANISM_TYPE, &mut Params, ObjectHandle),
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Result<()> {
        if kind == OperationKind::Sign {
            return self.at_once(kind, session, with, data.len(), |by: By<'_, dyn Signature>| {
                match by {
                    By::Row(row, key, params) => out.exact(row.length(key, params), |room| {
                        row.sign(key, params, data, room).map(drop)
                    }),
                    By::Active(active) => sign_once(active, None, data, out),
                }
            });
        }
        let way = kind.direction();
        self.at_once(kind, session, with, data.len(), |by: By<'_, dyn Cipher>| match by {
            By::Row(row, key, params) => {
                let longest = row.length(way, key, params, data.len())?;
                out.at_most(longest, |room| row.run(way, key, params, data, room))
            }
            By::Active(active) => cipher::once(way, active, None, data, out),
        })
    }

    #[inline(always)]
    fn at_once<A: Served + Streams + ?Sized>(
        &self,
        kind: OperationKind,
        session: SessionHandle,
        (mechanism, params, key): (CK_MECHANISM_TYPE, &mut Params, ObjectHandle),
        bytes: usize,
        mut once: impl FnMut(By<'_, A>) -> Result<Written>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let waiting = session.locked_last;
        let choice = self.choose::<A>(&mut session, kind, (mechanism, params), key)?;
        session.locked_last = waiting;
        let watch = metaslot_counters::begin();
        let mut tried = None;
        if !choice.count.has_choice()
            && choice.lock == Lock::Open
            && let Some(key) = choice.object.key()
        {
            let done = once(By::Row(choice.algorithm, key, params));
            if !done.is_err_and(is_providers) {
                if done == Ok(Written::Done) {
                    session.recent.completes(choice.approved);
                }
                session.recent.keep(Some(choice.object));
                return counted(choice.count, bytes, watch, done);
            }
            tried = Some(done);
        }
        let params = std::mem::replace(params, Params::None);
        let mut active = Active::Initialized(choice.with(mechanism, params));
        let result = self.serve(kind, &mut active, bytes, |active| {
            tried.take().unwrap_or_else(|| once(By::Active(active)))
        });
        active.conclude(&mut session.recent, bytes, watch, result)
    }
}

/// As an operation is that ends so: where the length was asked for or there was too little room, it is none.
#[inline]
fn counted(count: Count, bytes: usize, watch: Watch, done: Result<Written>) -> Result<()> {
    if !matches!(done, Ok(Written::Asked) | Err(Error::BUFFER_TOO_SMALL)) {
        count.done(bytes, done.is_ok(), watch);
    }
    done.map(drop)
}
