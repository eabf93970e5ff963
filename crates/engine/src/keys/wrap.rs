// SPDX-License-Identifier: Apache-2.0
//! `C_WrapKey` (PKCS#11 3.2 §5.18.3), and the form of a wrapped key that says what it is.

use super::told_of;
use crate::engine::Engine;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_router::HomeRoute;
use metaslot_rules as rules;
use metaslot_rules::bound::{Head, IV, head_bound, nonce_of, opens_bound, say_length};
use metaslot_rules::policy::{NonceBy, WrapForm, described, wrap_form};
use metaslot_rules::series::{RANDOM_BITS, randomize};
use metaslot_spi::provider::{Direction, Place, Wrap};
use metaslot_spi::{Bytes, Key, Params};
use std::ptr;

/// What is wrong with the wrapping key, where something is.
const WRAPPING: [Error; 3] = [
    Error::WRAPPING_KEY_HANDLE_INVALID,
    Error::WRAPPING_KEY_TYPE_INCONSISTENT,
    Error::WRAPPING_KEY_SIZE_RANGE,
];
/// No nonce that the token makes has more bytes.
const LONGEST_NONCE: usize = 256;

/// Of a key that is not here and does not say its length, in bytes: it is worth as much as any.
const LONG: usize = 32;

/// A wrap by an authenticated cipher of which the caller is told more than the bytes (PKCS#11 3.2 §6.13.3, §6.13.5).
#[derive(Debug, Default)]
pub struct Apart {
    /// The token makes the nonce, but for so many bits at its beginning.
    pub fixed_bits: Option<u64>,
    /// The tag does not follow the bytes.
    pub tag_apart: bool,
    /// The nonce, when something was wrapped.
    pub nonce: Bytes,
    /// The tag, when something was wrapped and it is apart.
    pub tag: Bytes,
}

impl Engine {
    /// `C_WrapKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.3 names them.
    pub fn wrap_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        wrapping: ObjectHandle,
        key: ObjectHandle,
        out: &mut Output<'_>,
    ) -> Result<()> {
        self.wrap_key_apart(session, (mechanism, params), wrapping, key, None, out)
    }

    /// `C_WrapKeyAuthenticated`, and `C_WrapKey` where the token makes the nonce and says it.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.3 names them.
    pub fn wrap_key_apart(
        &self,
        session: SessionHandle,
        (mechanism, mut params): (CK_MECHANISM_TYPE, Params),
        wrapping: ObjectHandle,
        key: ObjectHandle,
        mut apart: Option<&mut Apart>,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        self.route(mechanism, |row| row.wrap)?;
        let wrapping =
            self.key_for(&mut session, wrapping, CKA_WRAP, mechanism).map_err(told_of(WRAPPING))?;
        let key = self.object_in(&session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        let (count, algorithm) = self
            .route_with(&wrapping, mechanism, |row| row.wrap)
            .map_err(|error| self.kept_here(&wrapping).err().unwrap_or(error))?;
        let home = self.home_of_both(&wrapping, &key)?;
        rules::wrappable(key.subject(), wrapping.attributes())?;
        let plain = match home {
            Some(_) => None,
            None => Some(self.plain(token, &key, algorithm.place(&params))?),
        };
        let there = || key.attributes().ulong(CKA_VALUE_LEN)?.try_into().ok();
        let length = plain.as_ref().map(Secret::len).or_else(there).unwrap_or(LONG);
        let facts = wrapping.facts();
        let approved = token.policy().approving(mechanism, CKF_WRAP, Some(facts.key_type))?;
        token.policy().using_mechanism(mechanism, &params, facts, Direction::Forward, false)?;
        let form = match &mut apart {
            Some(apart) => {
                let form = self.nonce(mechanism, &mut params, apart.fixed_bits)?;
                if opens_bound(&params) {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                form
            }
            None => wrap_form(mechanism, &params, NonceBy::Caller),
        };
        token.policy().wrapping((mechanism, form), wrapping.subject(), key.subject(), length)?;
        say_length(&mut params, length);
        let by = self.key(&wrapping)?;
        let watch = metaslot_counters::begin();
        let result = match (plain, home, form) {
            (Some(plain), _, WrapForm::Bound) => {
                self.bind(algorithm, by, params, &key, &plain, out)
            }
            (Some(plain), ..) => wrap(algorithm, by, &mut params, &plain, apart, out),
            (None, Some(home), WrapForm::Bare | WrapForm::Unsafe) if apart.is_none() => {
                self.wrap_at_home(home, (mechanism, &params), [&wrapping, &key], out)
            }
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        };
        if result != Ok(Written::Asked) {
            count.done(length, result.is_ok(), watch);
        }
        if result == Ok(Written::Done) {
            session.recent.completes(approved);
        }
        session.recent.keep(Some(wrapping));
        result.map(drop)
    }

    /// What keeps a key that is wrapped: nothing but this library, or what keeps the wrapping key.
    fn home_of_both(&self, wrapping: &Object, key: &Object) -> Result<Option<HomeRoute>> {
        let home = self.home_of(key).filter(|_| key.facts().is_key());
        let by = self.home_of(wrapping);
        match home {
            Some(home) if !by.is_some_and(|by| ptr::addr_eq(by.home, home.home)) => {
                self.kept_here(key).map(|()| None)
            }
            home => Ok(home),
        }
    }

    /// What is wrapped: the value of a secret key, the PKCS#8 form of a private one.
    fn plain(&self, token: &Token, object: &Object, place: Place) -> Result<Secret> {
        let key = token.key(object)?;
        match object.class() {
            CKO_SECRET_KEY => {
                Secret::try_copy_of(key.secret(CKA_VALUE)?).ok_or(Error::DEVICE_MEMORY)
            }
            CKO_PRIVATE_KEY if place.takes_private_keys() => {
                self.routes.first(Error::KEY_NOT_WRAPPABLE, |one| one.encode_private_key(key))
            }
            _ => Err(Error::KEY_NOT_WRAPPABLE),
        }
    }

    /// Makes the nonce of an authenticated wrap, but for its fixed bits, where the token is to do that; and the form of what
    /// is wrapped under it.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` where too little of it would be random, and where there is none.
    fn nonce(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &mut Params,
        fixed_bits: Option<u64>,
    ) -> Result<WrapForm> {
        let nonce = nonce_of(params).filter(|nonce| (1..=LONGEST_NONCE).contains(&nonce.len()));
        let nonce = nonce.ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let Some(fixed) = fixed_bits else {
            return Ok(wrap_form(mechanism, params, NonceBy::Caller));
        };
        let free = (8 * nonce.len() as u64).saturating_sub(fixed);
        if free < RANDOM_BITS {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let mut random = Bytes::from_elem(0, nonce.len());
        self.random_bytes(&mut random)?;
        randomize(nonce, fixed, &random);
        Ok(wrap_form(mechanism, params, NonceBy::Token))
    }

    /// The bound form: [`MAGIC`], the IV, the length of the description (4 bytes, little-endian), the
    /// description, and what the mechanism makes of the key, with all of that authenticated behind
    /// the caller's additional data.
    fn bind(
        &self,
        algorithm: &dyn Wrap,
        by: &Key,
        params: Params,
        key: &Object,
        plain: &Secret,
        out: &mut Output<'_>,
    ) -> Result<Written> {
        let mut iv = [0; IV];
        self.random_bytes(&mut iv)?;
        let head = Head { iv, said: described(key.subject()) }.encode();
        let params = head_bound(params, iv, &head)?;
        algorithm.check(Direction::Forward, by, &params).map_err(told_of(WRAPPING))?;
        let length = algorithm.length(by, &params, plain.len())?;
        out.exact(head.len() + length, |room| {
            let (front, rest) = room.split_at_mut(head.len());
            front.copy_from_slice(&head);
            algorithm.wrap(by, &params, plain.expose(), rest).map(drop)
        })
    }
}

fn wrap(
    algorithm: &dyn Wrap,
    by: &Key,
    params: &mut Params,
    plain: &Secret,
    apart: Option<&mut Apart>,
    out: &mut Output<'_>,
) -> Result<Written> {
    algorithm.check(Direction::Forward, by, params).map_err(told_of(WRAPPING))?;
    let length = algorithm.length(by, params, plain.len())?;
    let Some(apart) = apart else {
        return out
            .exact(length, |room| algorithm.wrap(by, params, plain.expose(), room).map(drop));
    };
    let shown = if apart.tag_apart { plain.len() } else { length };
    out.exact(shown, |room| {
        let mut sealed = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
        algorithm.wrap(by, params, plain.expose(), sealed.expose_mut())?;
        let (bytes, tag) = sealed.expose().split_at(shown);
        room.copy_from_slice(bytes);
        apart.tag = Bytes::from_slice(tag);
        apart.nonce = nonce_of(params).map(std::mem::take).unwrap_or_default();
        Ok(())
    })
}
