// SPDX-License-Identifier: Apache-2.0
//! `C_WrapKey` (PKCS#11 3.2 §5.18.3), and the form of a wrapped key that says what it is.

use super::told_of;
use crate::engine::Engine;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_rules::policy::{WrapForm, described, wrap_form};
use metaslot_spi::provider::{Direction, Wrap};
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
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let (count, algorithm) = self.route(mechanism, |row| row.wrap)?;
        let wrapping =
            self.key_for(&mut session, wrapping, CKA_WRAP, mechanism).map_err(told_of(WRAPPING))?;
        let key = self.object_in(&session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        self.kept_here(&wrapping).and_then(|()| self.kept_here(&key))?;
        wrappable(&key, wrapping.attributes())?;
        let plain = self.plain(token, &key)?;
        let facts = wrapping.facts();
        token.policy().approving(mechanism, CKF_WRAP, Some(facts.key_type))?;
        token.policy().using_mechanism(mechanism, &params, facts, Direction::Forward, false)?;
        token.policy().wrapping(
            mechanism,
            &params,
            wrapping.subject(),
            key.subject(),
            plain.len(),
        )?;
        let by = self.key(&wrapping)?;
        let watch = metaslot_counters::begin();
        let result = match wrap_form(mechanism, &params) {
            WrapForm::Bound => self.bind(algorithm, by, params, &key, &plain, out),
            _ => wrap(algorithm, by, &params, &plain, out),
        };
        if result != Ok(Written::Asked) {
            count.done(plain.len(), result.is_ok(), watch);
        }
        session.recent.keep(Some(wrapping));
        result.map(drop)
    }

    /// What is wrapped: the value of a secret key, the PKCS#8 form of a private one.
    fn plain(&self, token: &Token, object: &Object) -> Result<Secret> {
        let key = token.key(object)?;
        match object.class() {
            CKO_SECRET_KEY => {
                Secret::try_copy_of(key.secret(CKA_VALUE)?).ok_or(Error::DEVICE_MEMORY)
            }
            CKO_PRIVATE_KEY => self.routes.first(|provider| provider.encode_private_key(key)),
            _ => Err(Error::KEY_NOT_WRAPPABLE),
        }
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
    params: &Params,
    plain: &Secret,
    out: &mut Output<'_>,
) -> Result<Written> {
    algorithm.check(Direction::Forward, by, params).map_err(told_of(WRAPPING))?;
    let length = algorithm.length(by, params, plain.len())?;
    out.exact(length, |room| algorithm.wrap(by, params, plain.expose(), room).map(drop))
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
