// SPDX-License-Identifier: Apache-2.0
//! `C_WrapKey` (PKCS#11 3.2 §5.18.3), and the form of a wrapped key that says what it is.

use super::told_of;
use crate::engine::Engine;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_rules::policy::{NonceBy, WrapForm, described, wrap_form};
use metaslot_rules::series::{RANDOM_BITS, randomize};
use metaslot_spi::provider::{Direction, Place, Wrap};
use metaslot_spi::{Attributes, Bytes, Key, Params, Value};

/// What is wrong with the wrapping key, where something is.
const WRAPPING: [Error; 3] = [
    Error::WRAPPING_KEY_HANDLE_INVALID,
    Error::WRAPPING_KEY_TYPE_INCONSISTENT,
    Error::WRAPPING_KEY_SIZE_RANGE,
];
/// Begins every bound form; the digit is its version.
const MAGIC: &[u8; 8] = b"metawrp1";
/// Length of the IV that the token chooses, in bytes (SP 800-38D §8.2.2).
const IV: usize = 12;
/// No nonce that the token makes has more bytes.
const LONGEST_NONCE: usize = 256;

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
        let (count, algorithm) = self.route(mechanism, |row| row.wrap)?;
        let wrapping =
            self.key_for(&mut session, wrapping, CKA_WRAP, mechanism).map_err(told_of(WRAPPING))?;
        let key = self.object_in(&session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        self.kept_here(&wrapping).and_then(|()| self.kept_here(&key))?;
        wrappable(&key, wrapping.attributes())?;
        let plain = self.plain(token, &key, algorithm.place(&params))?;
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
        token.policy().wrapping(
            (mechanism, form),
            wrapping.subject(),
            key.subject(),
            plain.len(),
        )?;
        say_length(&mut params, plain.len());
        let by = self.key(&wrapping)?;
        let watch = metaslot_counters::begin();
        let result = match form {
            WrapForm::Bound => self.bind(algorithm, by, params, &key, &plain, out),
            _ => wrap(algorithm, by, &mut params, &plain, apart, out),
        };
        if result != Ok(Written::Asked) {
            count.done(plain.len(), result.is_ok(), watch);
        }
        if result == Ok(Written::Done) {
            session.recent.completes(approved);
        }
        session.recent.keep(Some(wrapping));
        result.map(drop)
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

/// The nonce of an authenticated cipher's parameters.
fn nonce_of(params: &mut Params) -> Option<&mut Bytes> {
    match params {
        Params::Gcm { iv, .. } => Some(iv),
        Params::Ccm { nonce, .. } => Some(nonce),
        _ => None,
    }
}

/// CCM is told how long the key is, whatever the caller said of it (PKCS#11 3.2 §6.13.5).
pub(super) const fn say_length(params: &mut Params, length: usize) {
    if let Params::Ccm { data_length, .. } = params {
        *data_length = length as u64;
    }
}

/// Whether these parameters would open what is sealed in the bound form as if it said nothing of the key.
pub(super) fn opens_bound(params: &Params) -> bool {
    let Params::Gcm { iv, aad, .. } = params else { return false };
    let head = [&MAGIC[..], iv].concat();
    aad.windows(head.len()).any(|window| window == head)
}

/// What stands before the ciphertext of a bound form.
pub(super) struct Head {
    pub(super) iv: [u8; IV],
    /// What limits the key.
    pub(super) said: Attributes,
}

impl Head {
    fn encode(&self) -> Vec<u8> {
        let said = self.said.encode();
        let length = u32::try_from(said.len()).unwrap_or(u32::MAX);
        [&MAGIC[..], &self.iv, &length.to_le_bytes(), &said].concat()
    }

    /// The head, its bytes, and what follows it.
    ///
    /// # Errors
    /// `CKR_WRAPPED_KEY_INVALID` for anything else.
    pub(super) fn decode(wrapped: &[u8]) -> Result<(Self, &[u8], &[u8])> {
        let head = || {
            let rest = wrapped.strip_prefix(MAGIC)?;
            let (iv, rest) = rest.split_first_chunk::<IV>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (said, rest) = rest.split_at_checked(length)?;
            let head = Self { iv: *iv, said: Attributes::decode(said).ok()? };
            Some((head, &wrapped[..wrapped.len() - rest.len()], rest))
        };
        head().ok_or(Error::WRAPPED_KEY_INVALID)
    }
}

/// GCM parameters with the token's IV, and the head behind the caller's additional data.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for another mechanism's.
pub(super) fn head_bound(params: Params, iv: [u8; IV], head: &[u8]) -> Result<Params> {
    let Params::Gcm { mut aad, tag_bits, .. } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    // The head has a fixed beginning and says its own length, so the two cannot run into each other
    // where the caller's length is also said.
    let length = (aad.len() as u64).to_le_bytes();
    aad.extend_from_slice(head);
    aad.extend_from_slice(&length);
    Ok(Params::Gcm { iv: Bytes::from_slice(&iv), aad, tag_bits })
}

/// What the key itself says of being wrapped (PKCS#11 3.2 §5.18.3).
fn wrappable(key: &Object, wrapping: &Attributes) -> Result<()> {
    let attributes = key.attributes();
    if !attributes.bool(CKA_EXTRACTABLE) {
        return Err(Error::KEY_UNEXTRACTABLE);
    }
    if attributes.bool(CKA_WRAP_WITH_TRUSTED) && !wrapping.bool(CKA_TRUSTED) {
        return Err(Error::KEY_NOT_WRAPPABLE);
    }
    if let Some(Value::Template(wanted)) = wrapping.get(CKA_WRAP_TEMPLATE)
        && !key.subject().matches(wanted)
    {
        return Err(Error::KEY_HANDLE_INVALID);
    }
    Ok(())
}
