// SPDX-License-Identifier: Apache-2.0
//! Searches (PKCS#11 3.2 §5.7.7): streamed, so that a million objects cost no more memory than ten.

use crate::engine::Engine;
use crate::object;
use crate::template::{class_of, typed};
use crate::token::epoch::Epoch;
use crate::token::{Login, Token};
use metaslot_ck::attribute::AttributeRow;
use metaslot_ck::*;
use metaslot_spi::Template;
use metaslot_spi::store::{Scope, Term};
use metaslot_spi::{Attributes, Value};
use std::vec::IntoIter;

/// A search in the middle.
#[derive(Debug, Default)]
pub(crate) struct Find {
    /// Found already: the session objects at the start, then the rest of a page of rows.
    ready: IntoIter<ObjectHandle>,
    /// What to look at in the store, and the last row looked at there; `None` when all were.
    store: Option<(Scope, u64)>,
    terms: Vec<Term>,
    /// What the index does not hold, checked on each candidate.
    rest: Attributes,
}

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
            Some(query) => self.start(token, query),
            None => Find::default(),
        };
        session.find = Some(find);
        Ok(())
    }

    fn start(&self, token: &Token, mut query: Attributes) -> Find {
        let epoch = token.epoch();
        let user = epoch.login() == Login::User;
        let wanted = |attribute, value: bool| query.get(attribute) != Some(&Value::Bool(!value));
        let (tokens, sessions) = (wanted(CKA_TOKEN, true), wanted(CKA_TOKEN, false));
        let (private, public) = (wanted(CKA_PRIVATE, true), wanted(CKA_PRIVATE, false));
        let memory = if sessions {
            self.session_objects
                .handles(|object| token.shows(object, epoch) && object.matches(&query))
        } else {
            Vec::new()
        };
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
        Find {
            ready: memory.into_iter(),
            store: scope.filter(|_| tokens).map(|scope| (scope, 0)),
            terms,
            rest: query,
        }
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
            found.extend(find.ready.by_ref().take(most - found.len()));
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

impl Find {
    /// Reads on in the store, to have about `wanted` more; `false` when nothing is left.
    fn page(&mut self, token: &Token, wanted: usize) -> Result<bool> {
        // Where candidates may fall out, a larger page saves many small searches.
        let limit = if self.rest.is_empty() { wanted.min(PAGE) } else { PAGE };
        let Some((scope, after)) = self.store else { return Ok(false) };
        let epoch = token.epoch();
        let rows = token.store.search(&self.terms, scope, after, limit)?;
        let last = rows.last().filter(|_| rows.len() == limit);
        self.store = last.map(|row| (scope, row.id));
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            if self.rest.is_empty() || candidate(token, row.id, epoch, &self.rest)? {
                // After a logout meanwhile private rows are not found.
                found.extend(token.name(row.id, row.private, epoch));
            }
        }
        self.ready = found.into_iter();
        Ok(true)
    }
}

/// Rows asked of the store at once.
const PAGE: usize = 256;

/// A row that went away meanwhile, or that is damaged, is not found; the others are.
fn candidate(token: &Token, id: u64, epoch: Epoch, rest: &Attributes) -> Result<bool> {
    match token.object(id, epoch) {
        Ok(object) => Ok(object.matches(rest)),
        Err(Error::OBJECT_HANDLE_INVALID | Error::DEVICE_ERROR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A search template; `None` where it names an attribute that no object has, so that none is found.
/// A value that would be secret in a key is compared with data objects and certificates only: keys
/// do not hold theirs where a search could see it.
fn query(template: Template) -> Result<Option<Attributes>> {
    let is_unknown =
        |attribute| object::is_our_own(attribute) || AttributeRow::named(attribute).is_empty();
    if template.iter().any(|(attribute, _)| is_unknown(*attribute)) {
        return Ok(None);
    }
    let class = class_of(&template);
    let typed = typed(template, class)?;
    let mut query = typed.attributes;
    for (attribute, value) in typed.secrets.iter() {
        query.set(attribute, Value::Bytes(value.to_vec()));
    }
    Ok(Some(query))
}
