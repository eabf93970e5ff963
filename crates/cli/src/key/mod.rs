// SPDX-License-Identifier: Apache-2.0
//! Keys as the command shows them: a public and a private object that belong together are one key.

mod alike;
mod bring;
mod family;
mod hss;
mod kind;
mod make;
mod old;
mod pairs;
mod public;
mod read;
mod set;
pub(crate) mod usage;
mod xmss;

pub(crate) use crate::find::only;
pub(crate) use alike::{UNSEEN, among};
pub(crate) use bring::{
    Brought, Trial, all_or_none, create, for_session, identifier, protected,
    public_half as bring_public, secret as bring_secret, with,
};
pub(crate) use family::{Family, ONE_TIME};
pub(crate) use kind::{
    ED448_OID, ED25519_OID, Generation, Kind, X448_OID, X25519_OID, identified, types,
};
pub(crate) use make::{Order, made, make, random_id, refuse_same_label};
pub(crate) use public::{public_key, ssh_line};
pub(crate) use read::{
    is_all_told, is_beyond_told, limited, one_time_left, only_mechanisms, search, search_all, value,
};
pub(crate) use set::{Form, Set};
pub(crate) use usage::{Usage, Usages, usage_names};

use crate::encoding::hex;
use crate::uri::{Class, Uri};
use metaslot_ck::ObjectHandle;
use serde_json::{Value, json};

/// A secret key, or a pair, or one half of a pair.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) parts: Vec<Part>,
    pub(crate) kind: Kind,
    pub(crate) label: String,
    pub(crate) id: Vec<u8>,
    pub(crate) usages: Usages,
    /// `CKA_SENSITIVE`; public halves have none.
    pub(crate) sensitive: Option<bool>,
    /// `CKA_EXTRACTABLE`
    pub(crate) extractable: Option<bool>,
    /// `CKA_ALWAYS_AUTHENTICATE`: the PIN again for each use.
    pub(crate) always_authenticate: bool,
    /// Which other module's token it is in, where the metaslot shows it.
    pub(crate) home: Option<String>,
}

/// One object of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) class: Class,
    pub(crate) handle: ObjectHandle,
}

impl Key {
    /// The object of this class.
    pub(crate) fn part(&self, class: Class) -> Option<ObjectHandle> {
        self.parts.iter().find(|part| part.class == class).map(|part| part.handle)
    }

    /// Its URI on a token: label and id, without a type, so that it names both halves.
    pub(crate) fn uri(&self, token: &Uri) -> Uri {
        Uri {
            object: (!self.label.is_empty()).then(|| self.label.clone()),
            id: (!self.id.is_empty()).then(|| self.id.clone()),
            ..token.clone()
        }
    }

    /// Names of its parts.
    pub(crate) fn part_names(&self) -> Vec<&'static str> {
        self.parts.iter().map(|part| part.class.name()).collect()
    }

    /// In one word, whether its value can leave the token.
    pub(crate) const fn protection(&self) -> &'static str {
        match (self.sensitive, self.extractable) {
            (None, _) | (_, None) => "public",
            (Some(true), Some(true)) => "wrappable",
            (_, Some(false)) => "sealed",
            (Some(false), Some(true)) => "readable",
        }
    }

    /// The stable form for programs.
    pub(crate) fn json(&self, token: &Uri) -> Value {
        json!({
            "uri": self.uri(token).to_string(),
            "label": self.label,
            "id": hex(&self.id),
            "type": self.kind.to_string(),
            "parts": self.part_names(),
            "usage": self.usages.names(),
            "sensitive": self.sensitive,
            "extractable": self.extractable,
            "home": self.home,
        })
    }
}
