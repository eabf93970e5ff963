// SPDX-License-Identifier: Apache-2.0
//! `C_FindObjects…` (PKCS#11 3.2 §5.7.7).

use crate::engine::Engine;
use crate::object;
use crate::search::{Find, query};
use crate::token::{Login, Token};
use metaslot_ck::attribute::AttributeRow;
use metaslot_ck::*;
use metaslot_spi::buffer::make_room;
use metaslot_spi::store::{Scope, Term};
use metaslot_spi::{Attributes, Template, Value};

impl Engine {
    /// `C_FindObjectsInit`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.7 names them.
    pub fn find_init(&self, session: SessionHandle, template: Template) -> Result<()> {
        let mut session = self.session(session)?;
        if session.find.is_some() {
            return Err(Error::OPERATION_ACTIVE);
        }
        let token = self.token(session.slot)?;
        let find = match query(template)? {
            Some(query) => self.start(token, query)?,
            None => Find::default(),
        };
        session.find = Some(find);
        Ok(())
    }

    fn start(&self, token: &Token, mut query: Attributes) -> Result<Find> {
        let epoch = token.epoch();
        let user = epoch.login() == Login::User;
        let wanted = |attribute, value: bool| query.get(attribute) != Some(&Value::Bool(!value));
        let (tokens, sessions) = (wanted(CKA_TOKEN, true), wanted(CKA_TOKEN, false));
        let (private, public) = (wanted(CKA_PRIVATE, true), wanted(CKA_PRIVATE, false));
        let fixed = if tokens {
            let all = self.fixed_objects(token, query.ulong(CKA_CLASS), epoch).into_iter();
            let all = all.filter(|object| object.subject().matches(&query));
            all.map(|object| object.handle).collect::<Vec<_>>()
        } else {
            Vec::new()
        };
        let mut ready = if sessions {
            self.session_objects
                .handles(|object| token.shows(object, epoch) && object.subject().matches(&query))?
        } else {
            Vec::new()
        };
        make_room(&mut ready, fixed.len())?;
        ready.extend(fixed);
        let scope = match (public, private && user) {
            (true, true) => Some(Scope::Both),
            (true, false) => Some(Scope::Public),
            (false, true) => Some(Scope::Private),
            (false, false) => None,
        };
        query.remove(CKA_TOKEN);
        query.remove(CKA_PRIVATE);
        let terms: Vec<Term> = AttributeRow::indexed()
            .filter_map(|attribute| object::term(&query, attribute))
            .collect();
        for (attribute, _) in &terms {
            query.remove(*attribute);
        }
        Ok(Find {
            ready: ready.into_iter(),
            store: scope.filter(|_| tokens).map(|scope| (scope, 0)),
            terms,
            rest: query,
        })
    }

    /// `C_FindObjects`: at most `most` handles; fewer mean that there are no more.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.8 names them.
    pub fn find(&self, session: SessionHandle, most: usize) -> Result<Vec<ObjectHandle>> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let find = session.find.as_mut().ok_or(Error::OPERATION_NOT_INITIALIZED)?;
        let mut found = Vec::new();
        loop {
            let ready = find.ready.len().min(most - found.len());
            make_room(&mut found, ready)?;
            found.extend(find.ready.by_ref().take(ready));
            if found.len() == most || !find.page(token, most - found.len())? {
                return Ok(found);
            }
        }
    }

    /// `C_FindObjectsFinal`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.9 names them.
    pub fn find_final(&self, session: SessionHandle) -> Result<()> {
        let find = self.session(session)?.find.take();
        find.map(drop).ok_or(Error::OPERATION_NOT_INITIALIZED)
    }
}
