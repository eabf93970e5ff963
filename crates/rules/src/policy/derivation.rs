// SPDX-License-Identifier: Apache-2.0
//! Keys that are made from others (PKCS#11 3.2 §5.18.5): what may be derived, and what for.
//!
//! Results of a protected secret key must not say anything of each other. With one value that is a
//! MAC key for one caller and a derivation key for another, the first computes what the second derives;
//! so results are for use, never for further derivation, unless the base key's own
//! `CKA_DERIVE_TEMPLATE` makes all of them something else. The extract step of HKDF (RFC 5869) is the
//! exception that follows from the same rule: what it gives is the key of the expand step.

use super::table::{DERIVES, KeyUse};
use super::weak::{MIN_KEY, seals_weakly};
use super::{Policy, Refusal};
use crate::facts::{Facts, has_elements};
use crate::offspring::may_leave;
use crate::purpose::Purposes;
use crate::subject::Subject;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Attributes, Params, Value};

/// Of the digests that an HMAC is made with, in bytes, but for MD2.
const SHORTEST_BLOCK: usize = 64;

impl Policy {
    /// May this key be derived from by this mechanism?
    pub fn deriving(self, mechanism: CK_MECHANISM_TYPE, base: &Facts) -> Result<()> {
        if base.class == CKO_PRIVATE_KEY {
            self.refuse(Refusal::WeakGroups, base.weak_group, Error::KEY_SIZE_RANGE)?;
            return self.using_key(KeyUse::Agree, base);
        }
        self.using_key(KeyUse::Derive, base)?;
        let broken = matches!(mechanism, CKM_MD2_KEY_DERIVATION | CKM_MD5_KEY_DERIVATION);
        self.refuse(Refusal::Md5Signatures, broken, Error::MECHANISM_INVALID)?;
        self.refuse(Refusal::WeakCiphers, seals_weakly(mechanism), Error::MECHANISM_INVALID)?;
        let related = !base.readable && !DERIVES.contains(&mechanism);
        self.refuse(Refusal::RelatedKeys, related, Error::MECHANISM_INVALID)
    }

    /// May this key be the salt of HKDF? It is the key of a MAC over what the caller chooses, which is
    /// also how the expand step computes.
    pub fn salting(self, salt: &Facts) -> Result<()> {
        if salt.class != CKO_SECRET_KEY {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        let protected = !salt.readable;
        self.refuse(Refusal::RelatedKeys, protected, Error::KEY_FUNCTION_NOT_PERMITTED)
    }

    /// May this key of `length` bytes be digested, in a state that the caller `brought` or not? Of one longer
    /// than a block an HMAC uses the digest (RFC 2104 §2), so the digest would be worth as much as the key.
    /// A state of SHA-3 may hold an HMAC's pad, to which the key is added: then the digest is the MAC.
    /// The block of MD2 is as short as keys are, and as the pieces that make a longer one. A MAC of SSL 3.0 is two digests of the key with
    /// what is known: where these MACs are used, a key that does not sign would make them so.
    pub fn digesting(
        self,
        mechanism: CK_MECHANISM_TYPE,
        key: &Facts,
        length: usize,
        brought: bool,
    ) -> Result<()> {
        let short = !key.readable && mechanism == CKM_MD2;
        self.refuse(Refusal::RelatedKeys, short, Error::KEY_INDIGESTIBLE)?;
        let signs = !key.may(CKA_SIGN) && !self.refuses(Refusal::OldTls);
        let signs = signs && !key.readable && matches!(mechanism, CKM_MD5 | CKM_SHA_1);
        self.refuse(Refusal::RelatedKeys, signs, Error::KEY_INDIGESTIBLE)?;
        let long = !key.readable && length > SHORTEST_BLOCK;
        self.refuse(Refusal::RelatedKeys, long, Error::KEY_SIZE_RANGE)?;
        self.refuse(Refusal::RelatedKeys, !key.readable && brought, Error::KEY_INDIGESTIBLE)
    }

    /// May this key encapsulate or decapsulate by this mechanism? With a public key every user may.
    pub fn agreeing(
        self,
        mechanism: CK_MECHANISM_TYPE,
        direction: Direction,
        key: &Subject,
    ) -> Result<()> {
        let facts = key.facts();
        self.refuse(Refusal::WeakGroups, facts.weak_group, Error::KEY_SIZE_RANGE)?;
        if direction == Direction::Forward {
            self.sealing(facts)?;
        }
        self.using_key(KeyUse::Decapsulate, facts)?;
        let tells = matches!(mechanism, CKM_RSA_PKCS | CKM_RSA_X_509);
        let leaks = tells && hides_all(key, CKA_DECAPSULATE_TEMPLATE);
        self.refuse(Refusal::WrapMechanisms, leaks, Error::MECHANISM_INVALID)
    }

    /// May a key be made in another module's token by this template, where it is for these purposes? There it is for what its
    /// usages say.
    pub fn making_elsewhere(self, purposes: Purposes, template: &Attributes) -> Result<()> {
        let class = template.ulong(CKA_CLASS).unwrap_or(CKO_SECRET_KEY);
        let asked = Purposes::asked(template, class).chosen();
        let beyond = asked.is_some_and(|asked| !purposes.has(asked));
        self.refuse(Refusal::BeyondPurpose, beyond, Error::TEMPLATE_INCONSISTENT)
    }

    /// May a key of another module's token, or a copy of it, become this? What it was for it stays for, though the module would see
    /// in fewer usages another purpose: of two keys of one value the one would wrap, and the other decrypt that.
    pub fn changing_elsewhere(self, old: &Facts, new: &Attributes) -> Result<()> {
        let now = Purposes::asked(new, old.class).chosen();
        let other = !old.readable && now.is_some_and(|now| !old.purposes.has(now));
        self.refuse(Refusal::BeyondPurpose, other, Error::ATTRIBUTE_READ_ONLY)
    }

    /// May `result` be derived from `base`?
    pub fn derived(self, base: &Subject, result: &Attributes) -> Result<()> {
        self.agreed(base, CKA_DERIVE_TEMPLATE, result)
    }

    /// May `result` be made by `base`, whose template of this name says what all results are?
    pub fn agreed(
        self,
        base: &Subject,
        template: CK_ATTRIBUTE_TYPE,
        result: &Attributes,
    ) -> Result<()> {
        let own = template_of(base.attributes(), template);
        let secret = base.class() == CKO_SECRET_KEY;
        if base.facts().readable {
            return Ok(());
        }
        let short = result.ulong(CKA_VALUE_LEN).is_some_and(|length| length < MIN_KEY as u64);
        self.refuse(Refusal::ShortKeys, short, Error::WRAPPED_KEY_LEN_RANGE)?;
        if secret || own.is_some_and(hides) {
            let shown = !secret && otherwise(base, template);
            self.refuse(Refusal::RelatedKeys, shown, Error::KEY_FUNCTION_NOT_PERMITTED)?;
            let open = secret
                && (!result.bool(CKA_SENSITIVE)
                    || (result.bool(CKA_EXTRACTABLE) && !base.attributes().bool(CKA_EXTRACTABLE)));
            self.refuse(Refusal::DeriveNonSensitive, open, Error::TEMPLATE_INCONSISTENT)?;
            let shown = base.private() && !result.bool(CKA_PRIVATE);
            self.refuse(Refusal::LessPrivate, shown, Error::TEMPLATE_INCONSISTENT)?;
            self.digesting_pieces(result)?;
        }
        // What a private key agrees on says nothing of the key, and can be agreed on again, unless the
        // key's own template says what all results are.
        if secret || own.is_some() { self.imposing(result, own) } else { Ok(()) }
    }

    /// Of a derived key for use that is longer than a block an HMAC uses the digest, which `C_DigestKey`
    /// would compute of its pieces: shorter keys of the same derivation.
    fn digesting_pieces(self, result: &Attributes) -> Result<()> {
        let digested = Purposes::of_key(result).has(Purposes::USE);
        let longer =
            result.ulong(CKA_VALUE_LEN).is_some_and(|length| length > SHORTEST_BLOCK as u64);
        self.refuse(Refusal::RelatedKeys, digested && longer, Error::KEY_SIZE_RANGE)
    }

    /// May a key that is made from a protected one impose this on what is derived from it? Nothing but
    /// what it comes from says so: the same value under another template would have another purpose.
    pub fn imposing(self, result: &Attributes, origin: Option<&Attributes>) -> Result<()> {
        let all = [CKA_DERIVE_TEMPLATE, CKA_DECAPSULATE_TEMPLATE, CKA_UNWRAP_TEMPLATE];
        let twin = all.into_iter().any(|template| {
            let imposed = result.get(template);
            has_elements(imposed) && imposed != origin.and_then(|origin| origin.get(template))
        });
        self.refuse(Refusal::RelatedKeys, twin, Error::TEMPLATE_INCONSISTENT)
    }

    /// What a derived key is for. `template` is the caller's, with what the base key imposes.
    pub fn purposes_of_derived(
        self,
        base: &Subject,
        params: &Params,
        template: &Attributes,
    ) -> Result<Purposes> {
        if base.class() != CKO_SECRET_KEY || base.facts().readable {
            return self.purposes_of_agreed(base, CKA_DERIVE_TEMPLATE, params, template);
        }
        let imposed = imposed_purposes(base.attributes(), CKA_DERIVE_TEMPLATE, CKO_SECRET_KEY);
        let extracts = matches!(params, Params::Hkdf { extract: true, expand: false, .. });
        // Expanded, it would be a twin of what is derived in one step, without what the key imposes.
        let twin = extracts && has_elements(base.attributes().get(CKA_DERIVE_TEMPLATE));
        self.refuse(Refusal::RelatedKeys, twin, Error::TEMPLATE_INCONSISTENT)?;
        let own = if extracts { Purposes::DERIVATION } else { Purposes::USE };
        let purposes = imposed.unwrap_or(own);
        let kept = template.bool(CKA_SENSITIVE)
            && template.get(CKA_EXTRACTABLE) == Some(&Value::Bool(false));
        let sealed = base.facts().purposes.has(Purposes::SEALED) && imposed.is_some() && kept;
        Ok(if sealed { purposes.and(Purposes::SEALED) } else { purposes })
    }
}

impl Policy {
    /// What a secret is for that a private key agrees on, or that it decapsulates, or a public one encapsulates. `imposes` is the name
    /// of the template of the key that says what all of them are; `template` is the caller's, with that in it.
    pub fn purposes_of_agreed(
        self,
        base: &Subject,
        imposes: CK_ATTRIBUTE_TYPE,
        params: &Params,
        template: &Attributes,
    ) -> Result<Purposes> {
        let hidden = hides_all(base, imposes);
        // The KDFs are digests of the agreed value and what the caller knows, and a key for use is
        // digested: of the two, only the value itself may be had.
        let digests = matches!(params, Params::Ecdh1 { kdf, .. } if *kdf != CKD_NULL);
        self.refuse(Refusal::RelatedKeys, digests && hidden, Error::MECHANISM_PARAM_INVALID)?;
        // What can be agreed on again would be another thing the next time.
        let own = match hidden {
            true => Purposes::USE,
            false => Purposes::at_birth(template, CKO_SECRET_KEY),
        };
        Ok(imposed_purposes(base.attributes(), imposes, CKO_SECRET_KEY).unwrap_or(own))
    }

    /// The same of one that is made where its key is kept, whose template is completed.
    ///
    /// # Errors
    /// As [`Self::purposes_of_agreed`] and [`Self::agreed`].
    pub fn agreed_elsewhere(
        self,
        base: &Subject,
        imposes: CK_ATTRIBUTE_TYPE,
        params: &Params,
        template: &mut Attributes,
    ) -> Result<Purposes> {
        let purposes = self.purposes_of_agreed(base, imposes, params, template)?;
        may_leave(template);
        self.agreed(base, imposes, template).map(|()| purposes)
    }
}

/// Whether a private key gives what it agrees on in another way than under the template of this name: RSA computes the same to decrypt
/// and to sign.
fn otherwise(key: &Subject, imposes: CK_ATTRIBUTE_TYPE) -> bool {
    let may = |usage: &CK_ATTRIBUTE_TYPE| key.facts().may(*usage);
    let own = key.attributes().get(imposes);
    let another = |(usage, template): (CK_ATTRIBUTE_TYPE, CK_ATTRIBUTE_TYPE)| {
        may(&usage) && key.attributes().get(template) != own
    };
    let agrees = [(CKA_DERIVE, CKA_DERIVE_TEMPLATE), (CKA_DECAPSULATE, CKA_DECAPSULATE_TEMPLATE)];
    let raw = [CKA_DECRYPT, CKA_SIGN, CKA_SIGN_RECOVER];
    agrees.into_iter().any(another) || key.facts().key_type == CKK_RSA && raw.iter().any(may)
}

/// Whether a protected key's template of this name keeps all of its offspring from being read.
fn hides_all(base: &Subject, imposes: CK_ATTRIBUTE_TYPE) -> bool {
    !base.facts().readable && template_of(base.attributes(), imposes).is_some_and(hides)
}

/// Whether a key's template keeps all of its offspring from being read.
fn hides(said: &Attributes) -> bool {
    said.bool(CKA_SENSITIVE) || said.get(CKA_EXTRACTABLE) == Some(&Value::Bool(false))
}

/// What a key's template makes all of its offspring for; `None` where it leaves that open.
pub fn imposed_purposes(
    parent: &Attributes,
    template: CK_ATTRIBUTE_TYPE,
    class: CK_OBJECT_CLASS,
) -> Option<Purposes> {
    Purposes::asked(template_of(parent, template)?, class).chosen()
}

/// The template of this name, where the key has one.
pub(super) fn template_of(key: &Attributes, template: CK_ATTRIBUTE_TYPE) -> Option<&Attributes> {
    let Some(Value::Template(imposed)) = key.get(template) else { return None };
    Some(imposed)
}
