// SPDX-License-Identifier: Apache-2.0
//! Version 1 of the format: instead of the tree there is a sum, modulo 2²⁵⁶, of one keyed value per
//! authenticated row, and nothing authenticates the wraps. A login makes it the current version.

use crate::crypto::{self, Keys};
use crate::error::{Error, Result};
use crate::format::FORMAT;
use crate::schema::{CREATE_TREE, CREATE_UNVERIFIED, Head, Token, unsigned};
use crate::state::{State, name};
use crate::tree::{self, Tree};
use metaslot_memory::Secret;
use rusqlite::Connection;

/// Length of the salt before the sealed set, in bytes.
const SALT: usize = 16;

/// The hash of a set of rows, with how many they are and the next object's id.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Set {
    sum: [u64; 4],
    count: u64,
    next_id: u64,
}

impl Set {
    fn open(keys: &Keys, sealed: &[u8]) -> Result<Self> {
        let damaged = || Error::tampered("its set hash was changed or is damaged");
        let (salt, sealed) = sealed.split_first_chunk::<SALT>().ok_or_else(damaged)?;
        let key = crypto::hmac(key(keys, "set")?.expose(), &[salt])?;
        let mut plain = [0; 48];
        if !crypto::open(&key, &keys.serial, sealed, &mut plain) {
            return Err(damaged());
        }
        let numbers: &[[u8; 8]; 6] = plain.as_chunks().0.first_chunk().ok_or_else(damaged)?;
        let [a, b, c, d, count, next_id] = numbers.map(u64::from_le_bytes);
        Ok(Self { sum: [a, b, c, d], count, next_id })
    }

    fn add(&mut self, member: &Secret) {
        let mut carry = false;
        for (word, added) in self.sum.iter_mut().zip(member.expose().as_chunks().0) {
            let (sum, first) = word.overflowing_add(u64::from_le_bytes(*added));
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
        self.count += 1;
    }
}

fn key(keys: &Keys, purpose: &str) -> Result<Secret> {
    crypto::subkey(&keys.master, &keys.serial, purpose)
}

/// Makes the store that `connection` has open the current version, inside the open transaction.
pub(crate) fn upgrade(connection: &Connection, keys: &Keys) -> Result<()> {
    let stored = Set::open(keys, &Head::read(connection)?.state)?;
    create(connection)?;
    let (found, tree) = survey(connection, keys, stored.next_id)?;
    if found != stored {
        return Err(Error::tampered(OTHER_ROWS));
    }
    let mut state = state(connection, keys)?;
    state.count = found.count;
    state.plant(&tree);
    state.write(connection, keys)
}

/// What keeps a store from becoming one of the current version.
pub(crate) const OTHER_ROWS: &str = "its rows are not those that were last written";

/// The tables, and the mark, of the current version.
pub(crate) fn create(connection: &Connection) -> Result<()> {
    connection.execute_batch(CREATE_TREE)?;
    connection.execute_batch(CREATE_UNVERIFIED)?;
    Ok(connection.pragma_update(None, "user_version", FORMAT)?)
}

/// The state of the token as the current version has it, but for the rows.
pub(crate) fn state(connection: &Connection, keys: &Keys) -> Result<State> {
    let head = Head::read(connection)?;
    let token = Token::read(connection)?;
    let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
    let stored = Set::open(keys, &head.state)?;
    let so_wrap = token.so.wrap.unwrap_or_default();
    let mut state = State::new(head.next_id, &token.label, &so_wrap);
    state.user = name(token.user.wrap.as_deref());
    if keys.id != head.key_id || head.next_id < stored.next_id {
        return Err(Error::tampered("its own row was changed or is damaged"));
    }
    Ok(state)
}

/// The sum and the tree of the authenticated rows.
fn survey(connection: &Connection, keys: &Keys, next_id: u64) -> Result<(Set, Tree)> {
    let members = key(keys, "members")?;
    let mut set = Set { next_id, ..Set::default() };
    let mut tree = Tree::empty();
    let mut statement =
        connection.prepare("SELECT id, version, tag FROM object WHERE verified = 1 ORDER BY id")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (id, version) = (unsigned(row, 0)?, unsigned(row, 1)?);
        let tag: [u8; crypto::TAG] = row.get(2)?;
        let parts: [&[u8]; 3] = [&id.to_le_bytes(), &version.to_le_bytes(), &tag];
        set.add(&crypto::hmac(members.expose(), &parts)?);
        tree.set(connection, keys, id, Some(tree::entry(&tag)?))?;
        if set.count.is_multiple_of(BATCH) {
            tree.finish(connection, keys)?;
            tree.forget_below(id);
        }
    }
    tree.finish(connection, keys)?;
    Ok((set, tree))
}

/// So many rows' nodes are kept in memory.
pub(crate) const BATCH: u64 = 4096;
