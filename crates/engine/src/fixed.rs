// SPDX-License-Identifier: Apache-2.0
//! What a token says of itself, as objects that are in no store and that nobody makes, changes or destroys: the profiles that it has
//! and its mechanisms.
//!
//! A search finds them where it names their class. The standard says so of mechanisms, for the sake of programs that do not know
//! them; profiles are spared the same programs.

use crate::engine::Engine;
use crate::object::{Location, Object};
use crate::token::Token;
use crate::token::epoch::Epoch;
use metaslot_ck::*;
use metaslot_rules::policy::Refusal;
use metaslot_spi::{Attributes, Value};
use std::sync::Arc;

/// The profiles whose conditions every token of ours meets. Of a token with public certificates it is its owner who decides what is in it.
const PROFILES: &[CK_PROFILE_ID] =
    &[CKP_BASELINE_PROVIDER, CKP_EXTENDED_PROVIDER, CKP_AUTHENTICATION_TOKEN];

/// The attribute in which an object of this class says it.
const fn says(class: CK_OBJECT_CLASS) -> CK_ATTRIBUTE_TYPE {
    if class == CKO_PROFILE { CKA_PROFILE_ID } else { CKA_MECHANISM_TYPE }
}

impl Engine {
    /// The objects of a class that is fixed; none of another class, and none of another module's token, which says that itself.
    pub(crate) fn fixed_objects(
        &self,
        token: &Token,
        class: Option<CK_OBJECT_CLASS>,
        epoch: Epoch,
    ) -> Vec<Arc<Object>> {
        let said = match class {
            _ if token.home.is_some() => Vec::new(),
            Some(CKO_PROFILE) => {
                // A key of TLS 1.3 that stays here gives its IVs by CKM_HKDF_DATA.
                let refused = [Refusal::DeriveNonSensitive, Refusal::RelatedKeys];
                let tls = !refused.iter().any(|one| token.policy().refuses(*one));
                let tls = tls.then_some(CKP_HKDF_TLS_TOKEN);
                PROFILES.iter().copied().chain(tls).collect()
            }
            Some(CKO_MECHANISM) => self.mechanism_list(token.slot).unwrap_or_default(),
            _ => Vec::new(),
        };
        let class = class.unwrap_or_default();
        said.into_iter().map(|said| Arc::new(object(token, class, said, epoch))).collect()
    }

    /// The object of such a handle.
    pub(crate) fn fixed_object(
        &self,
        token: &Token,
        handle: ObjectHandle,
        class: CK_OBJECT_CLASS,
        epoch: Epoch,
    ) -> Result<Arc<Object>> {
        let mut all = self.fixed_objects(token, Some(class), epoch).into_iter();
        all.find(|object| object.handle == handle).ok_or(Error::OBJECT_HANDLE_INVALID)
    }
}

fn object(token: &Token, class: CK_OBJECT_CLASS, said: u64, epoch: Epoch) -> Object {
    let name = format!("{class:02x}{said:08x}").into_bytes();
    let no = [CKA_PRIVATE, CKA_MODIFIABLE, CKA_COPYABLE, CKA_DESTROYABLE];
    let mut all: Attributes = no.into_iter().map(|no| (no, Value::Bool(false))).collect();
    all.set(CKA_CLASS, Value::Ulong(class));
    all.set(CKA_TOKEN, Value::Bool(true));
    all.set(CKA_UNIQUE_ID, Value::Bytes(name));
    all.set(says(class), Value::Ulong(said));
    let handle = token.fixed(class, said);
    Object::new(handle, token.slot, Location::Session, all, false, epoch)
}
