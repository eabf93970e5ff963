// SPDX-License-Identifier: Apache-2.0
//! Objects of a token that keeps its keys: made there, after the checks that ours pass.

use crate::engine::Engine;
use crate::object::{Location, Object};
use crate::output::{Output, Written};
use crate::session::SessionGuard;
use crate::token::{Login, Token};
use metaslot_ck::attribute;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_router::{Count, HomeRoute};
use metaslot_rules::{self as rules, Purposes};
use metaslot_spi::store::{Found, Making, Row};
use metaslot_spi::{Attributes, Params, Secrets, Template, Value, detail};

/// Whether a template asks for an object of the token, before anything else of it is looked at.
pub(super) fn asks_for_token(template: &Template) -> bool {
    let found = template.iter().find(|(attribute, _)| *attribute == CKA_TOKEN);
    found.is_some_and(|(_, value)| value.bytes().is_ok_and(|bytes| bytes != [0]))
}

impl Engine {
    pub(super) fn generate_at_home(
        &self,
        session: &SessionGuard<'_>,
        token: &Token,
        home: HomeRoute,
        (mechanism, params): (CK_MECHANISM_TYPE, Params),
        template: Template,
    ) -> Result<ObjectHandle> {
        let (count, _) = home.find(mechanism, |row| row.generate)?;
        let mut template = rules::generated_template(
            mechanism,
            MechanismRow::class_made(mechanism),
            template,
            token.login_state(),
        )?;
        token.policy().making(&template, true)?;
        if template.ulong(CKA_CLASS).is_some_and(attribute::is_secret) {
            rules::protected(&mut template);
        }
        let length = template.ulong(CKA_VALUE_LEN).and_then(|length| length.try_into().ok());
        let long_enough = token.policy().generated(&template, length.unwrap_or(usize::MAX));
        long_enough.map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        may_make(session, token, &[&template])?;
        let watch = metaslot_counters::begin();
        let made = home.home.generate(mechanism, &params, &template);
        count.done(0, made.is_ok(), watch);
        Ok(named(token, None, made?))
    }

    pub(super) fn generate_pair_at_home(
        &self,
        session: &SessionGuard<'_>,
        token: &Token,
        home: HomeRoute,
        (mechanism, params): (CK_MECHANISM_TYPE, Params),
        (public, private): (Template, Template),
    ) -> Result<(ObjectHandle, ObjectHandle)> {
        let (count, _) = home.find(mechanism, |row| row.generate_pair)?;
        let mut public =
            rules::generated_template(mechanism, CKO_PUBLIC_KEY, public, token.login_state())?;
        let mut private =
            rules::generated_template(mechanism, CKO_PRIVATE_KEY, private, token.login_state())?;
        rules::of_one_kind(&public, &private)?;
        token.policy().making(&public, true)?;
        token.policy().making(&private, true)?;
        // Both halves go where the private one does.
        public.set(CKA_TOKEN, Value::Bool(true));
        rules::protected(&mut private);
        may_make(session, token, &[&public, &private])?;
        let watch = metaslot_counters::begin();
        let made = home.home.generate_pair(mechanism, &params, &public, &private);
        count.done(0, made.is_ok(), watch);
        let [public, private] = made?;
        Ok((named(token, None, public), named(token, None, private)))
    }

    /// What keeps a new key, where the one that makes it is kept there too and the template asks for an object of the token.
    pub(super) fn home_for(
        &self,
        token: &Token,
        by: &Object,
        template: &Attributes,
    ) -> Option<HomeRoute> {
        token.home.filter(|_| by.on_token() && template.bool(CKA_TOKEN))
    }

    /// A key that one of the token makes there. `purposes`: what it is for.
    pub(super) fn make_at_home(
        &self,
        (session, token, home): (&SessionGuard<'_>, &Token, HomeRoute),
        by: &Object,
        (count, purposes, making): (Count, Purposes, Making<'_>),
        (mechanism, params): (CK_MECHANISM_TYPE, &Params),
        mut template: Attributes,
    ) -> Result<ObjectHandle> {
        token.policy().making_elsewhere(purposes, &template)?;
        rules::protected(&mut template);
        may_make(session, token, &[&template])?;
        let watch = metaslot_counters::begin();
        let made = home.home.make_by(row(by)?, making, mechanism, params, &template);
        count.done(0, made.is_ok(), watch);
        Ok(named(token, None, made?))
    }

    /// The wrapped form of a key that its token keeps, by another one that the same does.
    pub(super) fn wrap_at_home(
        &self,
        home: HomeRoute,
        (mechanism, params): (CK_MECHANISM_TYPE, &Params),
        [by, key]: [&Object; 2],
        out: &mut Output<'_>,
    ) -> Result<Written> {
        let wrapped = home.home.wrap(mechanism, params, row(by)?, row(key)?)?;
        out.exact(wrapped.len(), |room| {
            room.copy_from_slice(&wrapped);
            Ok(())
        })
    }

    pub(crate) fn create_at_home(
        &self,
        session: &SessionGuard<'_>,
        token: &Token,
        home: HomeRoute,
        mut template: Attributes,
        secrets: &Secrets,
    ) -> Result<ObjectHandle> {
        let class = template.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        if matches!(class, CKO_PUBLIC_KEY | CKO_PRIVATE_KEY | CKO_SECRET_KEY) {
            token.policy().making(&template, false)?;
            token.policy().parity(&template, secrets)?;
        }
        match class {
            CKO_PRIVATE_KEY => rules::protected(&mut template),
            CKO_SECRET_KEY if template.get(CKA_PRIVATE).is_none() => {
                template.set(CKA_PRIVATE, Value::Bool(true));
            }
            _ => {}
        }
        may_make(session, token, &[&template])?;
        Ok(named(token, None, home.home.create(&template, secrets)?))
    }

    /// An object of such a token is copied within it, and nothing is copied into it: a key does not
    /// pass from one keeper to another.
    pub(crate) fn copy_at_home(
        &self,
        session: &SessionGuard<'_>,
        token: &Token,
        home: HomeRoute,
        object: &Object,
        new: &Attributes,
    ) -> Result<ObjectHandle> {
        let Location::Token { id, .. } = object.place else { return Err(kept_apart(home)) };
        if !new.bool(CKA_TOKEN) {
            return Err(kept_apart(home));
        }
        may_make(session, token, &[new])?;
        let old = object.attributes();
        let changes = new.iter().filter(|(attribute, value)| old.get(*attribute) != Some(value));
        let changes = changes.map(|(attribute, value)| (attribute, value.clone())).collect();
        let Row { guest, id } = Row::of(id, token.guests.len());
        Ok(named(token, guest, home.home.copy(id, &changes)?))
    }
}

/// By which its token knows a key that it keeps.
fn row(key: &Object) -> Result<u64> {
    key.attributes().ulong(attribute::CKA_FOREIGN_ROW).ok_or(Error::KEY_HANDLE_INVALID)
}

fn kept_apart(home: HomeRoute) -> Error {
    let name = home.home.name();
    detail::set(format_args!("objects are not copied between {name}'s token and the session"));
    Error::ACTION_PROHIBITED
}

/// What every new object of a token needs.
fn may_make(session: &SessionGuard<'_>, token: &Token, templates: &[&Attributes]) -> Result<()> {
    let private = templates.iter().any(|template| template.bool(CKA_PRIVATE));
    if private && token.login_state() != Login::User {
        return Err(Error::USER_NOT_LOGGED_IN);
    }
    if session.write { Ok(()) } else { Err(Error::SESSION_READ_ONLY) }
}

/// After a logout meanwhile there is no handle by which it could be used.
fn named(token: &Token, guest: Option<usize>, made: Found) -> ObjectHandle {
    let number = Row { guest, id: made.id }.number(token.guests.len());
    let handle = token.name(number, made.private, token.epoch());
    handle.unwrap_or_else(|| token.handles.dead())
}
