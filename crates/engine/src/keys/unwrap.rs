// SPDX-License-Identifier: Apache-2.0
//! `C_UnwrapKey` (PKCS#11 3.2 §5.18.4).

use super::{UNWRAPPING, told_of};
use crate::engine::Engine;
use crate::object::Object;
use crate::session::SessionGuard;
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_router::{Count, HomeRoute};
use metaslot_rules::Purposes;
use metaslot_rules::bound::{Head, head_bound, opens_bound, say_length};
use metaslot_rules::policy::{NonceBy, WrapForm, imposed_purposes, said_purposes, wrap_form};
use metaslot_rules::with_imposed;
use metaslot_rules::{self as rules, Birth, Origin};
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::{Direction, Place, Wrap};
use metaslot_spi::store::Making;
use metaslot_spi::{Attributes, NewObject, Params, Template};

impl Engine {
    /// `C_UnwrapKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.4 names them.
    pub fn unwrap_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        unwrapping: ObjectHandle,
        wrapped: &[u8],
        template: Template,
    ) -> Result<ObjectHandle> {
        let chosen = (mechanism, params, NonceBy::Caller);
        self.unwrap_key_apart(session, chosen, unwrapping, wrapped, template)
    }

    /// `C_UnwrapKeyAuthenticated`, whose tag stands behind `wrapped`, and `C_UnwrapKey` under a nonce that the token made and said.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.4 names them.
    pub fn unwrap_key_apart(
        &self,
        session: SessionHandle,
        (mechanism, mut params, nonce): (CK_MECHANISM_TYPE, Params, NonceBy),
        unwrapping: ObjectHandle,
        wrapped: &[u8],
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        self.route(mechanism, |row| row.unwrap)?;
        let by = self
            .key_for(&mut session, unwrapping, CKA_UNWRAP, mechanism)
            .map_err(told_of(UNWRAPPING))?;
        let (count, algorithm) = self
            .route_with(&by, mechanism, |row| row.unwrap)
            .map_err(|error| self.kept_here(&by).err().unwrap_or(error))?;
        let place = algorithm.place(&params);
        let login = token.login_state();
        let arriving = rules::arriving(template, place, login)?;
        let arriving = with_imposed(arriving, by.attributes(), CKA_UNWRAP_TEMPLATE, login)?;
        let facts = by.facts();
        let approved = token.policy().approving(mechanism, CKF_UNWRAP, Some(facts.key_type))?;
        token.policy().using_mechanism(mechanism, &params, facts, Direction::Backward, false)?;
        let form = wrap_form(mechanism, &params, nonce);
        token.policy().unwrapping((mechanism, form), by.subject(), &arriving)?;
        if nonce == NonceBy::Token && opens_bound(&params) {
            return Err(Error::WRAPPED_KEY_INVALID);
        }
        if let Params::Ccm { mac_length, .. } = params {
            let mac = usize::try_from(mac_length).unwrap_or(usize::MAX);
            say_length(&mut params, wrapped.len().saturating_sub(mac));
        }
        if let Some(home) = self.home_for(token, &by, &arriving) {
            let made = self.open_at_home(
                (&session, token, home),
                (&by, count, form),
                (mechanism, &params),
                (wrapped, arriving),
            )?;
            session.recent.completes(approved);
            return Ok(made);
        }
        let watch = metaslot_counters::begin();
        let opened = self.open(token, (form, algorithm), &by, params, wrapped, arriving);
        count.done(wrapped.len(), opened.is_ok(), watch);
        let object = self.opened(token, &by, opened?, place)?;
        session.recent.keep(Some(by));
        let handles = self.add(&mut session, vec![object])?;
        session.recent.completes(approved);
        Ok(handles[0])
    }

    /// The bytes, and the template with what the wrapped form says of the key.
    fn open(
        &self,
        token: &Token,
        (form, algorithm): (WrapForm, &dyn Wrap),
        by: &Object,
        params: Params,
        wrapped: &[u8],
        template: Attributes,
    ) -> Result<Opened> {
        let key = self.key(by)?;
        if form != WrapForm::Bound {
            algorithm.check(Direction::Backward, key, &params).map_err(told_of(UNWRAPPING))?;
            let plain = algorithm.unwrap(key, &params, wrapped)?;
            return Ok(Opened { plain, template, said: None });
        }
        let (head, bytes, sealed) = Head::decode(wrapped)?;
        let params = head_bound(params, head.iv, bytes)?;
        algorithm.check(Direction::Backward, key, &params).map_err(told_of(UNWRAPPING))?;
        let plain = algorithm.unwrap(key, &params, sealed)?;
        let said = Some(said_purposes(&head.said)?);
        let template = rules::within(&head.said, template, token.policy())?;
        if !by.facts().decrypts() {
            token.policy().imposing(&template, Some(&head.said))?;
        }
        Ok(Opened { plain, template, said })
    }

    /// The object that is opened in the token of the key, and stays there.
    fn open_at_home(
        &self,
        (session, token, home): (&SessionGuard<'_>, &Token, HomeRoute),
        (by, count, form): (&Object, Count, WrapForm),
        chosen: (CK_MECHANISM_TYPE, &Params),
        (wrapped, mut template): (&[u8], Attributes),
    ) -> Result<ObjectHandle> {
        if form == WrapForm::Bound {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let (policy, class) = (token.policy(), template.ulong(CKA_CLASS).unwrap_or(CKO_SECRET_KEY));
        let protected = !by.facts().decrypts();
        policy.making(&template, protected)?;
        let own = if protected { Purposes::USE } else { Purposes::at_birth(&template, class) };
        policy.complete_opened(by.subject(), true, &mut template);
        let making = (count, own, Making::Unwrapped(wrapped));
        self.make_at_home((session, token, home), by, making, chosen, template)
    }

    /// The object in what was opened.
    fn opened(
        &self,
        token: &Token,
        by: &Object,
        opened: Opened,
        place: Place,
    ) -> Result<NewObject> {
        let Opened { plain, mut template, said } = opened;
        let class = template.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let protected = !by.facts().decrypts();
        let made = if class == CKO_PRIVATE_KEY {
            let der = place.private_key(plain.expose())?;
            let made =
                self.routes.first(Error::WRAPPED_KEY_INVALID, |one| one.decode_private_key(der))?;
            token.policy().making(&made.attributes, false)?;
            made
        } else {
            token.policy().making(&template, protected)?;
            let value = self.value(token, &mut template, plain, place, protected)?;
            let made = self.secret_key(&template, value).map_err(|error| match error {
                Error::ATTRIBUTE_VALUE_INVALID => Error::WRAPPED_KEY_LEN_RANGE,
                other => other,
            })?;
            token.policy().parity(&made.attributes, &made.secrets)?;
            made
        };
        let imposed = imposed_purposes(by.attributes(), CKA_UNWRAP_TEMPLATE, class);
        let purposes = match (said, protected) {
            (Some(said), _) => said,
            // A bare form says nothing, and the user could make another twin of a key by each template.
            (None, true) => imposed.unwrap_or(Purposes::USE),
            (None, false) => Purposes::at_birth(&template, class),
        };
        token.policy().complete_opened(by.subject(), said.is_none(), &mut template);
        let birth = Birth::new(Origin::Unwrapped, purposes, token.login_state());
        rules::complete(birth, class, template, made)
    }

    /// The value in unwrapped bytes.
    fn value(
        &self,
        token: &Token,
        template: &mut Attributes,
        plain: Secret,
        place: Place,
        protected: bool,
    ) -> Result<Secret> {
        let only = template.ulong(CKA_KEY_TYPE).and_then(Lengths::of).and_then(Lengths::only);
        let length = place.length(template.ulong(CKA_VALUE_LEN), only, plain.expose())?;
        template.remove(CKA_VALUE_LEN);
        let opened = place.secret_key(plain.expose(), length)?;
        if protected {
            token.policy().opening(opened, length)?;
            token.policy().long_enough(length, Error::WRAPPED_KEY_LEN_RANGE)?;
        }
        Ok(match plain.len() - length {
            0 => plain,
            surplus if place == Place::Last => {
                Secret::try_copy_of(&plain.expose()[surplus..]).ok_or(Error::DEVICE_MEMORY)?
            }
            _ => plain.truncated(length),
        })
    }
}

/// What came out of a wrapped key.
struct Opened {
    plain: Secret,
    template: Attributes,
    /// What the wrapped form says that the key is for.
    said: Option<Purposes>,
}
