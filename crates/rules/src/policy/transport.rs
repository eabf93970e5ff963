// SPDX-License-Identifier: Apache-2.0
//! Keys that leave and arrive (PKCS#11 3.2 §5.18.3, §5.18.4): which key may wrap which, in what form,
//! and what an unwrapped key may be.

use super::derivation::{imposed_purposes, template_of};
use super::table::{KeyUse, WRAPS, WrapForm};
use super::{Policy, Refusal};
use crate::attributes::usual_usages;
use crate::facts::has_elements;
use crate::offspring::{may_leave, unless_said};
use crate::purpose::Purposes;
use crate::subject::Subject;
use metaslot_ck::attribute::{self, AttributeRow, CKA_PURPOSES, Kind};
use metaslot_ck::*;
use metaslot_spi::{Attributes, NewObject, Params, Value};

/// The first half of the integrity check value of key wrap with padding (RFC 5649 §3).
const KWP_CONSTANT: [u8; 4] = [0xa6, 0x59, 0x59, 0xa6];

/// What the wrapped form by this mechanism is worth.
///
/// GCM under an IV that the caller chooses repeats its key stream for another key when the caller
/// repeats the IV; without an IV the token chooses one. The two kinds of AES key wrap are told apart
/// by their integrity values, so neither may be given the other's.
pub fn wrap_form(mechanism: CK_MECHANISM_TYPE, params: &Params, nonce: NonceBy) -> WrapForm {
    let row = WRAPS.iter().find(|row| row.0 == mechanism);
    let form = row.map_or(WrapForm::Unsafe, |row| row.1);
    match (mechanism, params) {
        (CKM_AES_GCM | CKM_AES_CCM, _) if nonce == NonceBy::Token => WrapForm::Bare,
        (CKM_AES_GCM, Params::Gcm { iv, .. }) if !iv.is_empty() => WrapForm::Unsafe,
        (CKM_AES_CCM, _) => WrapForm::Unsafe,
        (CKM_AES_KEY_WRAP, Params::Iv(iv)) if iv.starts_with(&KWP_CONSTANT) => WrapForm::Unsafe,
        (CKM_AES_KEY_WRAP_KWP, Params::Iv(iv)) if iv[..] != KWP_CONSTANT => WrapForm::Unsafe,
        _ => form,
    }
}

/// Who chose the nonce under which an authenticated cipher wraps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NonceBy {
    /// The caller; or, where the parameter has none, the token, which puts it into the bound form.
    Caller,
    /// The token, which tells the caller (`CK_GCM_WRAP_PARAMS`, `CK_GCM_MESSAGE_PARAMS` and those of CCM).
    Token,
}

impl Policy {
    /// May `by` wrap `key`, of `length` bytes, in this form?
    pub fn wrapping(
        self,
        (mechanism, form): (CK_MECHANISM_TYPE, WrapForm),
        by: &Subject,
        key: &Subject,
        length: usize,
    ) -> Result<()> {
        let (open, readable) = (key.facts().readable, by.facts().readable);
        if open && by.facts().encrypts() {
            // The caller can read the one and encrypt it by the other.
            return Ok(());
        }
        self.using_key(KeyUse::Wrap, by.facts())?;
        // The AES key that goes along would come back by OAEP, as one that decrypts. What allows the private half
        // is not seen here; where the pair was made elsewhere, that is not here.
        let opened = mechanism == CKM_RSA_AES_KEY_WRAP && !open && by.attributes().bool(CKA_LOCAL);
        let leaks = form == WrapForm::Unsafe || opened;
        self.refuse(Refusal::WrapMechanisms, leaks, Error::MECHANISM_INVALID)?;
        // Under a short key's wrap lies one block of the cipher, which other modes compute with.
        self.long_enough(length, Error::KEY_SIZE_RANGE)?;
        if open {
            return Ok(());
        }
        self.strong_enough(by.attributes(), key.attributes(), length)?;
        let trusted = by.attributes().bool(CKA_TRUSTED) && !readable;
        let known = !trusted && !by.facts().purposes.has(Purposes::SEALED);
        self.refuse(Refusal::WrapUntrusted, known, Error::KEY_NOT_WRAPPABLE)?;
        // Without a login `by` would open it again, as a key that stays after the logout.
        let stays = by.class() == CKO_SECRET_KEY && !keeps_private(by);
        let shown = form == WrapForm::Bare && stays && key.private();
        self.refuse(Refusal::LessPrivate, shown, Error::KEY_NOT_WRAPPABLE)?;
        // No form brings CKA_TRUSTED back, which is the SO's word.
        let lost = key.attributes().bool(CKA_TRUSTED)
            || (form == WrapForm::Bare
                && (makes_other(by.attributes(), key.class()) || is_restricted(key)));
        self.refuse(Refusal::LostRestrictions, lost, Error::KEY_NOT_WRAPPABLE)
    }

    /// May `by` open a key in this form into `template`?
    pub fn unwrapping(
        self,
        (mechanism, form): (CK_MECHANISM_TYPE, WrapForm),
        by: &Subject,
        template: &Attributes,
    ) -> Result<()> {
        self.using_key(KeyUse::Unwrap, by.facts())?;
        if by.facts().decrypts() {
            // The caller can decrypt what arrives and create it as it likes.
            return Ok(());
        }
        let opened = mechanism == CKM_RSA_AES_KEY_WRAP && by.allows(CKM_RSA_PKCS_OAEP);
        let leaks = form == WrapForm::Unsafe || opened;
        self.refuse(Refusal::WrapMechanisms, leaks, Error::MECHANISM_INVALID)?;
        let says = |attribute| template.get(attribute) == Some(&Value::Bool(false));
        let open = form == WrapForm::Bare && says(CKA_SENSITIVE);
        self.refuse(Refusal::UnwrapNonSensitive, open, Error::TEMPLATE_INCONSISTENT)?;
        let shown = keeps_private(by) && says(CKA_PRIVATE);
        self.refuse(Refusal::LessPrivate, shown, Error::TEMPLATE_INCONSISTENT)?;
        if form == WrapForm::Bound {
            return Ok(());
        }
        let signs = only_agrees(template) && template.bool(CKA_SIGN);
        self.refuse(Refusal::LostRestrictions, signs, Error::TEMPLATE_INCONSISTENT)?;
        // Before the SO trusts the key and after, one wrapped form would come back as two things.
        let class = template.ulong(CKA_CLASS).unwrap_or(CKO_SECRET_KEY);
        let other = makes_other(by.attributes(), class) && !by.attributes().bool(CKA_TRUSTED);
        self.refuse(Refusal::LostRestrictions, other, Error::KEY_FUNCTION_NOT_PERMITTED)?;
        self.imposing(template, template_of(by.attributes(), CKA_UNWRAP_TEMPLATE))
    }
}

impl Policy {
    /// What a key that was opened is where its template does not say it; `bare`: nor the wrapped form.
    pub fn complete_opened(self, by: &Subject, bare: bool, template: &mut Attributes) {
        if by.facts().decrypts() {
            return may_leave(template);
        }
        if keeps_private(by) {
            unless_said(template, CKA_PRIVATE, true);
        }
        match self.refuses(Refusal::UnwrapNonSensitive) {
            true => unless_said(template, CKA_SENSITIVE, true),
            false => may_leave(template),
        }
        if bare && by.attributes().bool(CKA_TRUSTED) {
            // It may have been one that only a trusted key may wrap; a bare form cannot say so.
            template.set(CKA_WRAP_WITH_TRUSTED, Value::Bool(true));
        }
        if bare && only_agrees(template) && self.refuses(Refusal::LostRestrictions) {
            unless_said(template, CKA_SIGN, false);
        }
    }

    /// May `length` of these unwrapped bytes be a secret key? Keys of growing length would give a
    /// longer one away byte by byte, a private key's encoding begins with bytes that are known.
    pub fn opening(self, plain: &[u8], length: usize) -> Result<()> {
        let cut = length != plain.len();
        self.refuse(Refusal::KeyPieces, cut, Error::WRAPPED_KEY_LEN_RANGE)?;
        let other = may_be_private_key(plain);
        self.refuse(Refusal::KeyPieces, other, Error::WRAPPED_KEY_INVALID)
    }
}

impl Policy {
    /// May a key that is made of another wrap what that one may? Where that one is not private, it would open
    /// the wraps again without a login; a shorter one would be guessed instead.
    pub fn unseal(self, origin: &Subject, made: &mut Attributes) {
        let length = |key: &Attributes| key.ulong(CKA_VALUE_LEN);
        let shown = made.bool(CKA_PRIVATE) && !origin.private();
        let longer = length(made) > length(origin.attributes());
        let purposes = Purposes::of_key(made);
        if purposes.has(Purposes::SEALED)
            && (shown && self.refuses(Refusal::LessPrivate)
                || longer && self.refuses(Refusal::WeakWrappingKeys))
        {
            made.set(CKA_PURPOSES, purposes.without(Purposes::SEALED).value());
        }
    }
}

/// Whether a key from a bare form must not sign: it may have been one that agrees, which by itself does nothing else.
fn only_agrees(template: &Attributes) -> bool {
    template.ulong(CKA_KEY_TYPE) == Some(CKK_EC_MONTGOMERY)
}

/// Whether what a key unwraps is private. One that the SO trusts is public, because the SO sees no other.
fn keeps_private(by: &Subject) -> bool {
    by.private() || by.attributes().bool(CKA_TRUSTED)
}

/// Whether what a key unwraps is not for use: of a bare form a twin of the key that was wrapped.
pub fn makes_other(by: &Attributes, class: CK_OBJECT_CLASS) -> bool {
    imposed_purposes(by, CKA_UNWRAP_TEMPLATE, class).is_some_and(|imposed| imposed != Purposes::USE)
}

/// A public key keeps what it wraps as well as its private half is kept, where that is used after a login only. It
/// wraps nothing protected where the private half makes something else of it.
pub fn seal_as(public: &mut NewObject, private: &NewObject) {
    let purposes = Purposes::of_key(&public.attributes);
    let attributes = &private.attributes;
    let kept = Purposes::of_key(attributes).has(Purposes::SEALED) && attributes.bool(CKA_PRIVATE);
    let purposes = if kept { purposes.and(Purposes::SEALED) } else { purposes };
    let other = makes_other(attributes, CKO_SECRET_KEY);
    let purposes = if other { purposes.without(Purposes::WRAPPING) } else { purposes };
    public.attributes.set(CKA_PURPOSES, purposes.value());
}

/// Whether a wrapped form that says nothing of the key would forget something: a purpose beyond data
/// and authentication, a usage that it lacks, or a limit that its owner set.
fn is_restricted(key: &Subject) -> bool {
    let attributes = key.attributes();
    let usual = usual_usages(key.class(), key.facts().key_type);
    let lacks = usual.iter().any(|usage| !attributes.bool(*usage));
    let beyond = !key.facts().purposes.without(Purposes::USE.and(Purposes::SEALED)).is_empty();
    let limits = [
        CKA_ALLOWED_MECHANISMS,
        CKA_WRAP_TEMPLATE,
        CKA_UNWRAP_TEMPLATE,
        CKA_DERIVE_TEMPLATE,
        CKA_DECAPSULATE_TEMPLATE,
    ];
    lacks
        || beyond
        || [CKA_ALWAYS_AUTHENTICATE, CKA_WRAP_WITH_TRUSTED]
            .iter()
            .any(|flag| attributes.bool(*flag))
        || [CKA_COPYABLE, CKA_MODIFIABLE].iter().any(|attribute| !attributes.bool(*attribute))
        || limits.iter().any(|attribute| has_elements(attributes.get(*attribute)))
}

/// Whether a bound form says this of a key: it limits it.
fn limits(row: &AttributeRow) -> bool {
    row.may(attribute::USAGE)
        || matches!(
            row.number,
            CKA_CLASS
                | CKA_KEY_TYPE
                | CKA_PRIVATE
                | CKA_SENSITIVE
                | CKA_EXTRACTABLE
                | CKA_MODIFIABLE
                | CKA_COPYABLE
                | CKA_ALWAYS_AUTHENTICATE
                | CKA_WRAP_WITH_TRUSTED
                | CKA_ALLOWED_MECHANISMS
                | CKA_WRAP_TEMPLATE
                | CKA_UNWRAP_TEMPLATE
                | CKA_DERIVE_TEMPLATE
                | CKA_DECAPSULATE_TEMPLATE
        )
}

const fn is_of(value: &Value, kind: Kind) -> bool {
    matches!(
        (value, kind),
        (Value::Bool(_), Kind::Bool)
            | (Value::Ulong(_), Kind::Ulong)
            | (Value::Ulongs(_), Kind::Ulongs)
            | (Value::Template(_), Kind::Template)
    )
}

/// What a bound form that arrives says that its key is for. Anyone who knows the unwrapping key can write
/// one, so it is believed where it limits the key and nowhere else.
///
/// # Errors
/// `CKR_WRAPPED_KEY_INVALID` where it says anything else.
pub fn said_purposes(said: &Attributes) -> Result<Purposes> {
    let mut limited = said.iter().filter(|(attribute, _)| *attribute != CKA_PURPOSES);
    let known = limited.all(|(attribute, value)| {
        let fits = |row: &AttributeRow| limits(row) && is_of(value, row.kind);
        AttributeRow::named(attribute).iter().any(fits)
    });
    let purposes = Purposes::of_key(said).without(Purposes::SEALED);
    match known && said.ulong(CKA_PURPOSES).is_some() && purposes.are_one() {
        true => Ok(purposes),
        false => Err(Error::WRAPPED_KEY_INVALID),
    }
}

/// What a bound form says of a key: everything that limits it.
pub fn described(key: &Subject) -> Attributes {
    let there = |row: &AttributeRow| Some((row.number, key.attributes().get(row.number)?.clone()));
    let mut said: Attributes =
        AttributeRow::all().iter().filter(|row| limits(row)).filter_map(there).collect();
    said.set(CKA_PURPOSES, key.facts().purposes.without(Purposes::SEALED).value());
    said
}

/// Whether bytes begin as a PKCS#8 `PrivateKeyInfo` or `OneAsymmetricKey` does (RFC 5958 §2): what was
/// wrapped as a private key must not come back as a secret one. Of random bytes one in 2⁴⁰ does.
fn may_be_private_key(plain: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = plain else { return false };
    let (length, content) = match (*length, rest) {
        (short @ 0..=0x7f, content) => (usize::from(short), content),
        (0x81, [length, content @ ..]) => (usize::from(*length), content),
        (0x82, [high, low, content @ ..]) => (usize::from(*high) << 8 | usize::from(*low), content),
        _ => return false,
    };
    length <= content.len() && matches!(content, [0x02, 0x01, 0x00 | 0x01, 0x30, ..])
}
