// SPDX-License-Identifier: Apache-2.0
//! A search in the middle (PKCS#11 3.2 §5.7.7): streamed, so that a million objects cost no more memory than ten.

use crate::object::is_our_own;
use crate::token::Token;
use crate::token::epoch::Epoch;
use metaslot_ck::attribute::{AttributeRow, is_secret};
use metaslot_ck::*;
use metaslot_rules::{class_of, typed};
use metaslot_spi::store::{Scope, Term};
use metaslot_spi::{Attributes, Template, Value};
use std::vec::IntoIter;

/// A search in the middle.
#[derive(Debug, Default)]
pub(crate) struct Find {
    /// Found already: the session objects at the start, then the rest of a page of rows.
    pub(crate) ready: IntoIter<ObjectHandle>,
    /// What to look at in the store, and the last row looked at there; `None` when all were.
    pub(crate) store: Option<(Scope, u64)>,
    pub(crate) terms: Vec<Term>,
    /// What the index does not hold, checked on each candidate.
    pub(crate) rest: Attributes,
}

impl Find {
    /// Reads on in the store, to have about `wanted` more; `false` when nothing is left.
    pub(crate) fn page(&mut self, token: &Token, wanted: usize) -> Result<bool> {
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
        Ok(object) => Ok(object.subject().matches(rest)),
        Err(Error::OBJECT_HANDLE_INVALID | Error::DEVICE_ERROR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A search template; `None` where no object can be meant.
/// A value that would be secret in a key is compared with data objects and certificates only: keys
/// do not hold theirs where a search could see it.
pub(crate) fn query(template: Template) -> Result<Option<Attributes>> {
    let is_unknown = |attribute| is_our_own(attribute) || AttributeRow::named(attribute).is_empty();
    if template.iter().any(|(attribute, _)| is_unknown(*attribute)) {
        return Ok(None);
    }
    let class = class_of(&template);
    let typed = typed(template, class)?;
    let of_keys = class.is_some_and(is_secret);
    if of_keys && !typed.secrets.is_empty() {
        return Ok(None);
    }
    let mut query = typed.attributes;
    for (attribute, value) in typed.secrets.iter() {
        query.set(attribute, Value::Bytes(value.to_vec()));
    }
    Ok(Some(query))
}
