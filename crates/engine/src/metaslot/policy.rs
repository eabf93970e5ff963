// SPDX-License-Identifier: Apache-2.0
//! What is refused although it would work: the attacks on the interface itself, and cryptography
//! that is broken. `legacy` re-opens everything, one name at a time or all at once.

use crate::key_info::EcParams;
use crate::object::attribute::CKA_BIRTH_ROLES;
use crate::object::rules::role;
use crate::object::{Facts, bits};
use crate::provider::Direction;
use crate::token::Login;
use crate::{Attributes, Params};
use metaslot_ck::*;

/// One switch each; `true` refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of independent switches, named in a table"
)]
pub struct Policy {
    conflicting_roles: bool,
    role_changes: bool,
    wrap_untrusted: bool,
    unwrap_non_sensitive: bool,
    weak_wrapping_keys: bool,
    wrap_mechanisms: bool,
    trusted_by_user: bool,
    short_tags: bool,
    short_keys: bool,
    derive_non_sensitive: bool,
    weak_rsa: bool,
    weak_curves: bool,
    weak_exponents: bool,
    md5_signatures: bool,
    weak_ciphers: bool,
}

type Switch = (&'static str, fn(&mut Policy) -> &mut bool);

/// The names by which a configuration re-opens something.
const SWITCHES: &[Switch] = &[
    ("conflicting-roles", |p| &mut p.conflicting_roles),
    ("role-changes", |p| &mut p.role_changes),
    ("wrap-untrusted", |p| &mut p.wrap_untrusted),
    ("unwrap-non-sensitive", |p| &mut p.unwrap_non_sensitive),
    ("weak-wrapping-keys", |p| &mut p.weak_wrapping_keys),
    ("wrap-mechanisms", |p| &mut p.wrap_mechanisms),
    ("trusted-by-user", |p| &mut p.trusted_by_user),
    ("short-tags", |p| &mut p.short_tags),
    ("short-keys", |p| &mut p.short_keys),
    ("derive-non-sensitive", |p| &mut p.derive_non_sensitive),
    ("weak-rsa", |p| &mut p.weak_rsa),
    ("weak-curves", |p| &mut p.weak_curves),
    ("weak-exponents", |p| &mut p.weak_exponents),
    ("md5-signatures", |p| &mut p.md5_signatures),
    ("weak-ciphers", |p| &mut p.weak_ciphers),
];

/// No authentication tag and no truncated MAC below this, in bytes.
const MIN_TAG: u64 = 12;
/// No derived or unwrapped secret key below this (112 bits), in bytes.
const MIN_KEY: usize = 14;
/// No RSA key below this is made or signs, in bits.
const MIN_RSA: u64 = 2048;
/// The last numbers of 1.3.132.0 and the names of curves below 112 bits of security: no key on them is made
/// or signs.
const WEAK_CURVES: [(u8, &[&str]); 3] =
    [(1, &["sect163k1", "K-163"]), (2, &["sect163r1"]), (15, &["sect163r2", "B-163"])];

impl Policy {
    /// Leaves no way from a sensitive key to its value, and makes nothing new with broken
    /// cryptography.
    pub const DEFAULT: Self = Self {
        conflicting_roles: true,
        role_changes: true,
        wrap_untrusted: true,
        unwrap_non_sensitive: true,
        weak_wrapping_keys: true,
        wrap_mechanisms: true,
        trusted_by_user: true,
        short_tags: true,
        short_keys: true,
        derive_non_sensitive: true,
        weak_rsa: true,
        weak_curves: true,
        weak_exponents: true,
        md5_signatures: true,
        weak_ciphers: true,
    };

    /// Refuses only what the standard refuses.
    #[must_use]
    pub fn legacy() -> Self {
        let mut policy = Self::DEFAULT;
        for (_, switch) in SWITCHES {
            *switch(&mut policy) = false;
        }
        policy
    }

    /// Re-opens one thing by its name; `false` when there is no such name.
    pub fn allow(&mut self, name: &str) -> bool {
        let found = SWITCHES.iter().find(|switch| switch.0 == name);
        found.map(|(_, switch)| *switch(self) = false).is_some()
    }

    /// Every name that [`Self::allow`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SWITCHES.iter().map(|switch| switch.0)
    }

    /// May `CKA_TRUSTED` be set by somebody in this state?
    pub(crate) fn trusting(&self, login: Login) -> Result<()> {
        refuse(self.trusted_by_user && login != Login::So, Error::ATTRIBUTE_READ_ONLY)
    }

    /// May a usage be switched on after the key was made?
    pub(crate) const fn adding_usage(&self) -> Result<()> {
        refuse(self.role_changes, Error::ATTRIBUTE_READ_ONLY)
    }

    /// May a key, generated or brought, have this size and exponent?
    pub(crate) fn making(&self, attributes: &Attributes, generated: bool) -> Result<()> {
        refuse(self.weak_curves && generated && weak_curve(attributes), Error::KEY_SIZE_RANGE)?;
        let weak = attributes.ulong(CKA_KEY_TYPE).is_some_and(weak_cipher);
        refuse(self.weak_ciphers && generated && weak, Error::MECHANISM_INVALID)?;
        if attributes.ulong(CKA_KEY_TYPE) != Some(CKK_RSA) {
            return Ok(());
        }
        let bits = attributes.ulong(CKA_MODULUS_BITS).or_else(|| modulus_bits(attributes));
        let small = generated && bits.is_some_and(|bits| bits < MIN_RSA);
        refuse(self.weak_rsa && small, Error::KEY_SIZE_RANGE)?;
        let exponent = attributes.bytes(CKA_PUBLIC_EXPONENT);
        let weak = exponent.is_some_and(|e| {
            e.last().is_none_or(|byte| byte & 1 == 0)
                || (e.len() < 3 || e < &[1, 0, 1][..]) && e.len() <= 3
        });
        refuse(self.weak_exponents && weak, Error::ATTRIBUTE_VALUE_INVALID)
    }

    /// May this mechanism with these parameters and this key sign, or encrypt?
    pub(crate) fn using(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        key: &Facts,
        direction: Direction,
        signing: bool,
    ) -> Result<()> {
        let forward = direction == Direction::Forward;
        let md5 = mechanism == CKM_MD5_RSA_PKCS && forward;
        refuse(self.md5_signatures && md5, Error::MECHANISM_INVALID)?;
        let old = forward && seals_weakly(mechanism);
        refuse(self.weak_ciphers && old, Error::MECHANISM_INVALID)?;
        let small = (1..MIN_RSA).contains(&key.modulus_bits);
        refuse(self.weak_rsa && signing && forward && small, Error::KEY_SIZE_RANGE)?;
        let weak = signing && forward && key.weak_curve;
        refuse(self.weak_curves && weak, Error::KEY_SIZE_RANGE)?;
        let tag = match params {
            Params::Gcm { tag_bits, .. } => tag_bits / 8,
            Params::Ccm { mac_length, .. } => *mac_length,
            Params::Ulong(length) if signing => *length,
            _ => return Ok(()),
        };
        refuse(self.short_tags && tag < MIN_TAG, Error::MECHANISM_PARAM_INVALID)
    }

    /// May `wrapping` wrap `key` by this mechanism?
    pub(crate) fn wrapping(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        wrapping: &Attributes,
        trusted: bool,
        key: &Attributes,
        length: usize,
    ) -> Result<()> {
        let roles = wrapping.ulong(CKA_BIRTH_ROLES).unwrap_or(0);
        // In counter modes encryption is decryption, so a wrapping key must not do that either.
        let undoes =
            role(CKA_DECRYPT) | if mechanism == CKM_AES_GCM { role(CKA_ENCRYPT) } else { 0 };
        let conflict = roles & undoes != 0;
        refuse(self.conflicting_roles && conflict, Error::KEY_FUNCTION_NOT_PERMITTED)?;
        refuse(self.wrap_mechanisms && !wraps_safely(mechanism), Error::MECHANISM_INVALID)?;
        let sensitive = key.bool(CKA_SENSITIVE);
        refuse(self.wrap_untrusted && sensitive && !trusted, Error::KEY_NOT_WRAPPABLE)?;
        let weak = strength(wrapping, 0) < strength(key, length);
        refuse(self.weak_wrapping_keys && weak, Error::WRAPPING_KEY_SIZE_RANGE)
    }

    /// May `unwrapping` open a key by this mechanism into `template`?
    pub(crate) fn unwrapping(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        unwrapping: &Attributes,
        template: &Attributes,
    ) -> Result<()> {
        let roles = unwrapping.ulong(CKA_BIRTH_ROLES).unwrap_or(0);
        // With ENCRYPT a chosen key could be slipped in, with DECRYPT a wrapped one read.
        let conflict = roles & (role(CKA_ENCRYPT) | role(CKA_DECRYPT)) != 0;
        refuse(self.conflicting_roles && conflict, Error::KEY_FUNCTION_NOT_PERMITTED)?;
        refuse(self.wrap_mechanisms && !wraps_safely(mechanism), Error::MECHANISM_INVALID)?;
        let open = template.get(CKA_SENSITIVE) == Some(&crate::Value::Bool(false));
        refuse(self.unwrap_non_sensitive && open, Error::TEMPLATE_INCONSISTENT)
    }

    /// May a secret key of this length come out of a derivation or an unwrapping?
    pub(crate) fn arriving(&self, length: usize) -> Result<()> {
        refuse(self.short_keys && length < MIN_KEY, Error::KEY_SIZE_RANGE)
    }

    /// May something readable be derived from this key?
    pub(crate) fn deriving(&self, base: &Attributes, result: &Attributes) -> Result<()> {
        // A private key's agreement says nothing of the key; a secret key's derivatives are read
        // and re-derived with other lengths or classes until they do.
        let inherits = base.ulong(CKA_CLASS) == Some(CKO_SECRET_KEY) && base.bool(CKA_SENSITIVE);
        let open = !result.bool(CKA_SENSITIVE)
            || (result.bool(CKA_EXTRACTABLE) && !base.bool(CKA_EXTRACTABLE));
        refuse(self.derive_non_sensitive && inherits && open, Error::TEMPLATE_INCONSISTENT)
    }
}

const fn refuse(refused: bool, error: Error) -> Result<()> {
    if refused { Err(error) } else { Ok(()) }
}

/// Authenticated, or without a padding oracle.
const fn wraps_safely(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(mechanism, CKM_AES_KEY_WRAP | CKM_AES_KEY_WRAP_KWP | CKM_AES_GCM | CKM_RSA_PKCS_OAEP)
}

/// Triple DES, whose blocks repeat after some gigabytes (SP 800-131A rev. 2), and RC4, whose key stream shows (RFC 7465): no
/// key is made for them, and nothing new is sealed with them.
const fn weak_cipher(key_type: CK_KEY_TYPE) -> bool {
    matches!(key_type, CKK_RC4 | CKK_DES2 | CKK_DES3)
}

const fn seals_weakly(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(mechanism, CKM_RC4 | CKM_DES3_ECB | CKM_DES3_CBC | CKM_DES3_CBC_PAD)
}

fn modulus_bits(attributes: &Attributes) -> Option<u64> {
    attributes.bytes(CKA_MODULUS).map(bits)
}

/// Whether a key lies, or shall lie, on one of [`WEAK_CURVES`].
pub(crate) fn weak_curve(attributes: &Attributes) -> bool {
    let on_curve = attributes.ulong(CKA_KEY_TYPE) == Some(CKK_EC);
    let params = attributes.bytes(CKA_EC_PARAMS).filter(|_| on_curve);
    match params.and_then(EcParams::parse) {
        Some(EcParams::Oid([0x2b, 0x81, 0x04, 0x00, last])) => {
            WEAK_CURVES.iter().any(|row| row.0 == *last)
        }
        Some(EcParams::Name(name)) => {
            WEAK_CURVES.iter().any(|row| row.1.iter().any(|known| known.as_bytes() == name))
        }
        _ => false,
    }
}

/// Security strength in bits (SP 800-57 part 1, table 2); `length` is that of a secret key.
fn strength(key: &Attributes, length: usize) -> u64 {
    match key.ulong(CKA_KEY_TYPE) {
        Some(CKK_RSA) => match modulus_bits(key).unwrap_or(0) {
            0..2048 => 80,
            2048..3072 => 112,
            3072..7680 => 128,
            7680..15360 => 192,
            _ => 256,
        },
        Some(CKK_EC) => match key.bytes(CKA_EC_PARAMS).unwrap_or_default() {
            [.., 0x81, 0x04, 0x00, 1 | 2 | 15] => 80,
            [.., 0x81, 0x04, 0x00, 0x21 | 26 | 27] => 112,
            [.., 0x81, 0x04, 0x00, 0x22 | 36 | 37] => 192,
            [.., 0x81, 0x04, 0x00, 0x23 | 38 | 39] => 256,
            _ => 128,
        },
        Some(CKK_EC_EDWARDS | CKK_EC_MONTGOMERY) => 128,
        Some(CKK_DES2 | CKK_RC4) => 80,
        Some(CKK_DES3) => 112,
        Some(CKK_AES_XTS) => key.ulong(CKA_VALUE_LEN).unwrap_or(length as u64) * 4,
        // A secret of any kind and length is worth at most what AES-256 protects.
        _ => (key.ulong(CKA_VALUE_LEN).unwrap_or(length as u64) * 8).min(256),
    }
}
