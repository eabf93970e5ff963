// SPDX-License-Identifier: Apache-2.0
//! Objects made in the token.

use crate::error::is_loss;
use crate::params;
use crate::read;
use crate::rows;
use crate::token::Token;
use crate::value;
use metaslot_ck::attribute::is_secret;
use metaslot_ck::*;
use metaslot_client::{Error as Failure, Result as Called, Session};
use metaslot_memory::Secret;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::store::{Found, Home, Making, Ticket};
use metaslot_spi::{Attributes, Bytes, Params, Secrets, detail};
use std::cell::Cell;

impl Home for Token {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_there(&self) -> bool {
        if self.is_pooled() || !self.has_started() {
            return false;
        }
        if self.has_slot() {
            return true;
        }
        self.module.suspect();
        self.close();
        self.comes_back() && self.has_slot()
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        if let Some(rows) = self.rows.get() {
            return rows;
        }
        if !self.has_started() {
            return &[];
        }
        let rows = self.call_anew(|| {
            let late = self.mechanisms.is_empty();
            let mut all = match late {
                true => self.module.library.mechanisms(self.slot())?,
                false => self.mechanisms.clone(),
            };
            all.retain(|mechanism| !self.without.contains(mechanism));
            rows::of(self, &all)
        });
        let rows = rows.unwrap_or_default();
        // A token that is not there yet says nothing yet.
        if rows.is_empty() { &[] } else { self.rows.get_or_init(|| Vec::leak(rows)) }
    }

    fn keep_pin(&self, pin: &[u8]) -> Result<Ticket> {
        self.keep(Secret::try_copy_of(pin).ok_or(Error::DEVICE_MEMORY)?)
    }

    fn create(&self, template: &Attributes, secrets: &Secrets) -> Result<Found> {
        let class = template.ulong(CKA_CLASS);
        if !self.trusted && class.is_some_and(is_secret) {
            detail::set(format_args!("{} is not trusted: no key is brought to it", self.name));
            return Err(Error::ACTION_PROHIBITED);
        }
        let template = value::whole(template, secrets);
        self.make(&|session| session.create(&template).map(|handle| [handle])).map(|[made]| made)
    }

    fn copy(&self, row: u64, changes: &Attributes) -> Result<Found> {
        let changes = value::template(changes);
        let copy = |session: &Session| session.copy(self.handle(session, row)?, &changes);
        self.make(&|session| copy(session).map(|handle| [handle])).map(|[made]| made)
    }

    fn generate(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        template: &Attributes,
    ) -> Result<Found> {
        let (mechanism, template) =
            (params::mechanism(mechanism, params)?, value::template(template));
        let made = |session: &Session| session.generate_key(&mechanism, &template);
        self.make(&|session| made(session).map(|handle| [handle])).map(|[made]| made)
    }

    fn generate_pair(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        public: &Attributes,
        private: &Attributes,
    ) -> Result<[Found; 2]> {
        let mechanism = params::mechanism(mechanism, params)?;
        let (public, private) = (value::template(public), value::template(private));
        let made = |session: &Session| session.generate_key_pair(&mechanism, &public, &private);
        self.make(&|session| made(session).map(|(public, private)| [public, private]))
    }

    fn wrap(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        by: u64,
        key: u64,
    ) -> Result<Vec<u8>> {
        let mechanism = params::mechanism(mechanism, params)?;
        self.with(|session| {
            let (by, key) = (self.handle(session, by)?, self.handle(session, key)?);
            session.wrap(&mechanism, by, key)
        })
    }

    fn make_by(
        &self,
        by: u64,
        making: Making<'_>,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        template: &Attributes,
    ) -> Result<Found> {
        let data = params::data(params);
        let (public, params, making) = match (making, params) {
            // Of an agreement the ciphertext is the other side's public value.
            (Making::Decapsulated(public), Params::Ecdh1 { kdf, shared, .. }) => {
                let (kdf, shared, public) = (*kdf, shared.clone(), Bytes::from_slice(public));
                (Params::Ecdh1 { kdf, shared, public }, None, Making::Derived)
            }
            (making, params) => (Params::None, Some(params), making),
        };
        let params = params.unwrap_or(&public);
        let mechanism = params::deriving(mechanism, params, &data)?;
        let template = value::template(template);
        let make = |session: &Session| {
            let by = self.handle(session, by)?;
            match making {
                Making::Derived => session.derive(&mechanism, by, &template),
                Making::Unwrapped(wrapped) => session.unwrap(&mechanism, by, wrapped, &template),
                Making::Decapsulated(ciphertext) => {
                    session.decapsulate(&mechanism, by, ciphertext, &template)
                }
                Making::Encapsulated(told) => {
                    let (ciphertext, made) = session.encapsulate(&mechanism, by, &template)?;
                    if told.len() != ciphertext.len() {
                        // A key that is agreed on with no other side is of no use.
                        session.destroy(made)?;
                        let lied = self.lied("a ciphertext of another length than it must have");
                        return Err(Failure::new(Function::EncapsulateKey, lied));
                    }
                    told.iter().zip(&ciphertext).for_each(|(to, byte)| to.set(*byte));
                    Ok(made)
                }
            }
        };
        self.make(&|session| make(session).map(|handle| [handle])).map(|[made]| made)
    }
}

impl Token {
    /// A module that does not say is asked again: it would not be there for good otherwise.
    fn has_slot(&self) -> bool {
        let slots = self.call_anew(|| self.module.library.slots(true));
        slots.map_or(true, |slots| slots.contains(&self.slot()))
    }

    /// Makes objects, once: what is lost before that is looked for again. Their privacy is read: the module has the last word on it.
    fn make<const N: usize>(
        &self,
        work: &dyn Fn(&Session) -> Called<[ObjectHandle; N]>,
    ) -> Result<[Found; N]> {
        let begun = Cell::new(false);
        let not_yet = || !begun.get();
        self.with_while(&not_yet, |session| {
            self.must_be_its(session)?;
            begun.set(true);
            let losses = self.objects().losses();
            let handles = work(session)?;
            self.known(session, losses, handles).inspect_err(|failure| {
                // The caller is told of no object: none stays. After a loss these handles are of nothing, or of something else.
                if !is_loss(failure.code) && self.objects().losses() == losses {
                    handles.into_iter().for_each(|handle| self.unmake(session, handle));
                }
            })
        })
        .inspect(|_| self.objects().changed())
    }

    /// The rows of objects that were just made.
    fn known<const N: usize>(
        &self,
        session: &Session,
        losses: u64,
        handles: [ObjectHandle; N],
    ) -> Called<[Found; N]> {
        let mut made = [Found { id: 0, private: true }; N];
        for (found, handle) in made.iter_mut().zip(handles) {
            let private = match session.attribute_bool(handle, CKA_PRIVATE) {
                Err(failure) if is_loss(failure.code) => return Err(failure),
                said => said.unwrap_or(true),
            };
            *found = self.objects_since(losses)?.add(handle, private);
            // Known by its attributes, it is found again after a loss.
            let attributes = read::attributes(self.name, session, handle, found.id, private)?;
            self.objects_since(losses)?.read(found.id, &attributes);
        }
        Ok(made)
    }

    /// Takes one back that was just made. Where the module keeps it all the same, the failure that it is for is what counts.
    fn unmake(&self, session: &Session, handle: ObjectHandle) {
        session.destroy(handle).ok();
        let mut objects = self.objects();
        if let Some(row) = objects.row(handle) {
            objects.forget(row.id);
        }
    }
}
