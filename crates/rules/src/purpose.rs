// SPDX-License-Identifier: Apache-2.0
//! What a key is for. It is decided when the key is made and stays through copies, wraps and
//! derivations (Bortolozzo, Centenaro, Focardi, Steel 2010; Fröschle, Steel 2009).

use metaslot_ck::attribute::{CKA_BIRTH_ROLES, CKA_FOREIGN_ROW};
use metaslot_ck::*;
use metaslot_spi::{Attributes, Value};

/// Our own attribute: the purposes of a key as the bits of [`Purposes`].
pub use metaslot_ck::attribute::{CKA_PURPOSES, ROLES};

/// A set of purposes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Purposes(u64);

impl Purposes {
    /// Encrypts and decrypts.
    pub const DATA: Self = Self(1);
    /// Signs, verifies, is digested.
    pub const AUTHENTICATION: Self = Self(2);
    /// A private key that agrees on secrets with other public keys, or opens those that were made for it.
    pub const AGREEMENT: Self = Self(4);
    /// A secret key that other keys are made from.
    pub const DERIVATION: Self = Self(8);
    /// Wraps keys.
    pub const WRAPPING: Self = Self(16);
    /// Unwraps keys.
    pub const UNWRAPPING: Self = Self(32);
    /// Made here, sensitive and never extractable since: its value is not known outside, or (of a public
    /// key) its private half.
    pub const SEALED: Self = Self(64);

    /// No purpose.
    pub const NONE: Self = Self(0);
    /// Works on what the caller gives and takes. Neither gives nor takes keys, so these may be one
    /// key's: programs make RSA keys that sign and decrypt.
    pub const USE: Self = Self(1 | 2 | 4);
    /// Gives and takes keys.
    pub const TRANSPORT: Self = Self(16 | 32);

    /// The three sets of which a key has one. Where a template asks for several, the first counts:
    /// what goes beyond can be stated, because programs state it, and cannot be used.
    const GROUPS: [Self; 3] = [Self::USE, Self::TRANSPORT, Self::DERIVATION];

    /// Whether all of `other` is in it.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What of it is not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether a key can have these: they are of one group.
    pub fn are_one(self) -> bool {
        self.is_empty() || Self::GROUPS.into_iter().any(|group| self.without(group).is_empty())
    }

    /// Whether it is for nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The purpose that a usage serves in keys of a class.
    pub const fn of(usage: CK_ATTRIBUTE_TYPE, class: CK_OBJECT_CLASS) -> Self {
        match usage {
            CKA_ENCRYPT | CKA_DECRYPT => Self::DATA,
            CKA_SIGN | CKA_VERIFY | CKA_SIGN_RECOVER | CKA_VERIFY_RECOVER => Self::AUTHENTICATION,
            CKA_DERIVE if class == CKO_SECRET_KEY => Self::DERIVATION,
            CKA_DERIVE | CKA_ENCAPSULATE | CKA_DECAPSULATE => Self::AGREEMENT,
            CKA_WRAP => Self::WRAPPING,
            CKA_UNWRAP => Self::UNWRAPPING,
            _ => Self::NONE,
        }
    }

    /// What a template asks for by name: the purposes of the usages that it switches on.
    pub fn asked(template: &Attributes, class: CK_OBJECT_CLASS) -> Self {
        let on = template.iter().filter(|(_, value)| *value == &Value::Bool(true));
        on.fold(Self::NONE, |all, (usage, _)| all.and(Self::of(usage, class)))
    }

    /// The one group of what was asked for; `None` where nothing was.
    pub fn chosen(self) -> Option<Self> {
        Self::GROUPS.into_iter().find(|group| self.has(*group))
    }

    /// The purposes of a key that is made by this template and nothing else.
    pub fn at_birth(template: &Attributes, class: CK_OBJECT_CLASS) -> Self {
        let derives = template.ulong(CKA_KEY_TYPE) == Some(CKK_HKDF);
        let silent = if derives { Self::DERIVATION } else { Self::USE };
        Self::asked(template, class).chosen().unwrap_or(silent)
    }

    /// The purposes of a pair. The private half decides: what its public half does with data, anybody can do.
    pub fn of_pair(public: &Attributes, private: &Attributes) -> Self {
        let asked = Self::asked(private, CKO_PRIVATE_KEY).chosen();
        asked.unwrap_or_else(|| Self::at_birth(public, CKO_PUBLIC_KEY))
    }

    /// What the attributes of a key say. A row of a release that knew roles only has them by its
    /// roles.
    pub fn of_key(attributes: &Attributes) -> Self {
        match (attributes.ulong(CKA_PURPOSES), attributes.ulong(CKA_BIRTH_ROLES)) {
            (Some(bits), _) => Self(bits),
            (None, Some(roles)) => Self::of_roles(roles, attributes),
            (None, None) => Self::NONE,
        }
    }

    fn of_roles(roles: u64, attributes: &Attributes) -> Self {
        let class = attributes.ulong(CKA_CLASS).unwrap_or(UNAVAILABLE);
        let usages = (0..).zip(ROLES).filter(|(bit, _)| roles >> bit & 1 == 1);
        let asked = usages.fold(Self::NONE, |all, (_, usage)| all.and(Self::of(*usage, class)));
        let chosen = asked.chosen().unwrap_or(Self::NONE);
        let since_birth = [CKA_LOCAL, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE];
        let known = attributes.ulong(CKA_KEY_GEN_MECHANISM) == Some(CKM_PKCS5_PBKD2);
        // Its module may let others switch usages on.
        let known = known || attributes.get(CKA_FOREIGN_ROW).is_some();
        match since_birth.iter().all(|attribute| attributes.bool(*attribute)) && !known {
            true => chosen.and(Self::SEALED),
            false => chosen,
        }
    }

    /// As the attribute has it.
    pub const fn value(self) -> Value {
        Value::Ulong(self.0)
    }
}
