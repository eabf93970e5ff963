// SPDX-License-Identifier: Apache-2.0
//! PKCS#11 URIs (RFC 7512): how the command and the OpenSSL provider name tokens, keys and PINs.
//!
//! Reading is strict where a lenient reader could select another object than the one meant:
//! attributes given twice, bad escapes and unknown path attributes are errors. Unknown attributes
//! of the query are kept and ignored, as the RFC asks.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::Error;

use crate::TokenInfo;
use metaslot_ck::SlotId;
use metaslot_memory::Secret;
use std::fmt;
use std::sync::Arc;

/// What a URI says. An attribute that is absent matches everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Uri {
    /// `token`: the token's label.
    pub token: Option<String>,
    /// `manufacturer` of the token.
    pub manufacturer: Option<String>,
    /// `model` of the token.
    pub model: Option<String>,
    /// `serial` number of the token.
    pub serial: Option<String>,
    /// `object`: the object's label.
    pub object: Option<String>,
    /// `id`: `CKA_ID`.
    pub id: Option<Vec<u8>>,
    /// `type`: the object's class.
    pub class: Option<Class>,
    /// `slot-id`
    pub slot_id: Option<u64>,
    /// `slot-description`
    pub slot_description: Option<String>,
    /// `slot-manufacturer`
    pub slot_manufacturer: Option<String>,
    /// `library-description`
    pub library_description: Option<String>,
    /// `library-manufacturer`
    pub library_manufacturer: Option<String>,
    /// `library-version`: major and minor; without a minor it is 0.
    pub library_version: Option<(u8, u8)>,
    /// `pin-source`: where the PIN is.
    pub pin_source: Option<String>,
    /// `pin-value`: the PIN itself. Read, never written.
    pub pin_value: Option<PinValue>,
    /// `module-name`: the library's name without `lib` and extension.
    pub module_name: Option<String>,
    /// `module-path`: the library's file.
    pub module_path: Option<String>,
    /// Attributes of the query that are unknown here, undecoded.
    pub other: Vec<(String, String)>,
}

impl Uri {
    /// Whether it names the token in this slot, or does not say which.
    #[must_use]
    pub fn is_of(&self, slot: SlotId, token: &TokenInfo) -> bool {
        let same = |wanted: &Option<String>, actual: &String| {
            wanted.as_ref().is_none_or(|wanted| wanted == actual)
        };
        same(&self.token, &token.label)
            && same(&self.manufacturer, &token.manufacturer)
            && same(&self.model, &token.model)
            && same(&self.serial, &token.serial)
            && self.slot_id.is_none_or(|wanted| wanted == slot.0)
    }

    /// The part that names an object, as messages show it.
    #[must_use]
    pub fn key_part(&self) -> Self {
        Self { pin_source: None, pin_value: None, ..self.clone() }
    }

    /// The same object on the token that `token` names.
    #[must_use]
    pub fn on(self, token: &Self) -> Self {
        Self {
            object: self.object,
            id: self.id,
            class: self.class,
            pin_source: self.pin_source.or_else(|| token.pin_source.clone()),
            pin_value: self.pin_value.or_else(|| token.pin_value.clone()),
            other: self.other,
            ..token.clone()
        }
    }

    /// The part that names a token.
    #[must_use]
    pub fn token_part(&self) -> Self {
        Self {
            object: None,
            id: None,
            class: None,
            pin_source: None,
            pin_value: None,
            other: Vec::new(),
            ..self.clone()
        }
    }
}

/// The values of `type`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// `cert`
    Certificate,
    /// `data`
    Data,
    /// `private`
    Private,
    /// `public`
    Public,
    /// `secret-key`
    Secret,
}

impl Class {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::Certificate, "cert"),
        (Self::Data, "data"),
        (Self::Private, "private"),
        (Self::Public, "public"),
        (Self::Secret, "secret-key"),
    ];

    /// As the RFC writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

/// A PIN that stood in a URI; never printed.
#[derive(Clone)]
pub struct PinValue(Arc<Secret>);

impl PinValue {
    /// Takes a PIN over; `bytes` are zeroised.
    fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Secret::taken(bytes)))
    }

    /// The PIN.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }
}

impl Eq for PinValue {}

impl PartialEq for PinValue {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl fmt::Debug for PinValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinValue")
    }
}
