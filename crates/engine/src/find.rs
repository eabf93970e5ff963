// SPDX-License-Identifier: Apache-2.0
//! Searches (PKCS#11 3.2 §5.7.7): streamed, so that a million objects cost no more memory than ten.

use crate::attributes::{Attributes, Value};
use crate::engine::Engine;
use crate::object::{self, attribute::INDEXED};
use crate::store::Term;
use crate::template::{Template, class_of, typed};
use crate::token::{Login, Token};
use metaslot_ck::*;
use std::vec::IntoIter;

/// A search in the middle.
#[derive(Debug)]
pub(crate) struct Find {
    /// What is left of the session objects, found at the start.
    memory: IntoIter<ObjectHandle>,
    /// The store's part, one after the other.
    public: Option<Cursor>,
    private: Option<Cursor>,
    terms: Vec<Term>,
    /// What the index does not hold, checked on each candidate.
    rest: Attributes,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    after: u64,
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
        let query = query(template)?;
        session.find = Some(self.start(token, query));
        Ok(())
    }

    fn start(&self, token: &Token, mut query: Attributes) -> Find {
        let user = token.login_state() == Login::User;
        let slot = token.slot;
        let wanted = |attribute, value: bool| query.get(attribute) != Some(&Value::Bool(!value));
        let (tokens, sessions) = (wanted(CKA_TOKEN, true), wanted(CKA_TOKEN, false));
        let (private, public) = (wanted(CKA_PRIVATE, true), wanted(CKA_PRIVATE, false));
        let memory = if sessions {
            self.session_objects.handles(|object| {
                object.slot == slot && (user || !object.private()) && object.matches(&query)
            })
        } else {
            Vec::new()
        };
        query.remove(CKA_TOKEN);
        query.remove(CKA_PRIVATE);
        let terms: Vec<Term> =
            INDEXED.iter().filter_map(|attribute| object::term(&query, *attribute)).collect();
        for (attribute, _) in &terms {
            query.remove(*attribute);
        }
        let cursor = |on: bool| on.then_some(Cursor { after: 0 });
        Find {
            memory: memory.into_iter(),
            public: cursor(tokens && public),
            private: cursor(tokens && private && user),
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
        let mut found: Vec<_> = find.memory.by_ref().take(most).collect();
        find.rows(token, false, most, &mut found)?;
        find.rows(token, true, most, &mut found)?;
        Ok(found)
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
    /// Adds rows of one kind until there are `most`.
    fn rows(
        &mut self,
        token: &Token,
        private: bool,
        most: usize,
        found: &mut Vec<ObjectHandle>,
    ) -> Result<()> {
        let place = if private { &mut self.private } else { &mut self.public };
        while let Some(cursor) = place
            && found.len() < most
        {
            // One more than asked for where candidates may fall out, but never a huge page.
            let limit = (most - found.len()).min(PAGE);
            let ids = token.store.search(&self.terms, private, cursor.after, limit)?;
            let last = ids.len() < limit;
            for id in ids {
                cursor.after = id;
                if self.rest.is_empty() || candidate(token, id, &self.rest)? {
                    found.push(token.handles.name(id, private));
                }
            }
            if last {
                *place = None;
            }
        }
        Ok(())
    }
}

/// Rows asked of the store at once.
const PAGE: usize = 256;

/// A row that went away meanwhile, or that is damaged, is not found; the others are.
fn candidate(token: &Token, id: u64, rest: &Attributes) -> Result<bool> {
    match token.object(id) {
        Ok(object) => Ok(object.matches(rest)),
        Err(Error::OBJECT_HANDLE_INVALID | Error::DEVICE_ERROR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A search template. A value that would be secret in a key is compared with data objects and
/// certificates only: keys do not hold theirs where a search could see it.
fn query(template: Template) -> Result<Attributes> {
    let class = class_of(&template);
    let typed = typed(template, class)?;
    let mut query = typed.attributes;
    for (attribute, value) in typed.secrets.iter() {
        query.set(attribute, Value::Bytes(value.to_vec()));
    }
    Ok(query)
}
