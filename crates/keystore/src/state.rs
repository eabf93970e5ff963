// SPDX-License-Identifier: Apache-2.0
//! What is authenticated of the token as a whole, in its own row: which rows there are (the root of
//! the tree), the next id, both wraps, the label. None of it can go back without the others.
//!
//! Anyone who writes without a login raises `next_id` in its column only; the one here is the least that
//! it can be.

use crate::crypto::{self, KeyId, Keys};
use crate::error::{Error, Result};
use crate::identity::{Identities, Identity};
use crate::rows::RowsMut;
use crate::schema::{Head, Token, unsigned};
use crate::tree::{Entry, HIGHEST, Node, Tree};
use metaslot_awslc_wrapper::digest;
use metaslot_spi::store::Role;
use rusqlite::Connection;
use std::sync::{Mutex, PoisonError};

/// Length of the parts before the root, in bytes.
const FIXED: usize = 8 + 8 + 8 + 1 + 3 * DIGEST;
const DIGEST: usize = 16;
/// Length of the MAC at the end, in bytes.
pub(crate) const MAC: usize = 32;
/// Beside the height: the digest of the identities stands behind the names.
const NAMES: u8 = 0x80;
/// So many objects may have been made without a login since the last login.
const MAX_OPEN: u64 = 1 << 32;

pub(crate) type Digest = [u8; DIGEST];

/// The authenticated part of the token's row.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// How many changes there were: no two states of a token have the same, but the copy that a backup makes has that of what it copies.
    pub(crate) commits: u64,
    /// How many authenticated rows there are.
    pub(crate) count: u64,
    pub(crate) next_id: u64,
    pub(crate) so: Digest,
    pub(crate) user: Digest,
    pub(crate) label: Digest,
    /// Of the identities; zeros without any, which are not stored.
    pub(crate) identities: Digest,
    pub(crate) height: u8,
    pub(crate) root: Node,
    /// The random number of the last backup or restore that made it, or of a repair after which rows may be older; 0 where there was none, which is not stored.
    pub(crate) restored: u64,
    /// As it is stored.
    pub(crate) mac: [u8; MAC],
}

/// What can be wrong with the columns beside the state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Difference {
    SoPin,
    UserPin,
    Label,
    Identities,
    NextId,
}

impl Difference {
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::SoPin => "the SO PIN is not the one that was last set",
            Self::UserPin => {
                "the user PIN is not the one that was last set; the SO can set a new one"
            }
            Self::Label => "its label was changed",
            Self::Identities => {
                "its identities are not those that were last added; a repair takes all of them out"
            }
            Self::NextId => "the number of its next object was changed",
        }
    }
}

/// The short name of a column as it is stored; absent ones have a name, too.
pub(crate) fn name(column: Option<&[u8]>) -> Digest {
    let whole = column.map_or([0; 32], digest::sha256);
    *whole.first_chunk().unwrap_or(&[0; DIGEST])
}

/// The names, incarnations and wraps of identities, not what is counted. Zeros where there are none.
pub(crate) fn identities(identities: &Identities) -> Digest {
    if identities.is_strange() {
        return [0xff; DIGEST];
    }
    let mut all = Vec::new();
    for Identity { name, incarnation, pin } in identities.iter() {
        let wrap = pin.wrap.as_deref().unwrap_or_default();
        for part in [name.as_str().as_bytes(), &incarnation.to_le_bytes(), wrap] {
            all.extend_from_slice(&(part.len() as u64).to_le_bytes());
            all.extend_from_slice(part);
        }
    }
    if all.is_empty() { Digest::default() } else { name(Some(&all)) }
}

impl State {
    /// A token without rows.
    pub(crate) fn new(next_id: u64, label: &str, so_wrap: &[u8]) -> Self {
        Self {
            commits: 0,
            count: 0,
            next_id,
            so: name(Some(so_wrap)),
            user: name(None),
            label: name(Some(label.as_bytes())),
            identities: Digest::default(),
            height: 0,
            root: Node::default(),
            restored: 0,
            mac: [0; MAC],
        }
    }

    /// Opens what is stored.
    pub(crate) fn open(keys: &Keys, stored: &[u8]) -> Result<Self> {
        let changed = || Error::tampered("its own row was changed or is damaged");
        let (plain, mac) = stored.split_last_chunk::<MAC>().ok_or_else(changed)?;
        if !crypto::equal(mac, &keys.state(plain)?) {
            return Err(changed());
        }
        Self::decode(plain, *mac).ok_or_else(changed)
    }

    fn decode(plain: &[u8], mac: [u8; MAC]) -> Option<Self> {
        let (fixed, root) = plain.split_first_chunk::<FIXED>()?;
        let (numbers, rest) = fixed.split_at(24);
        let numbers = numbers.as_chunks().0.first_chunk::<3>()?;
        let [commits, count, next_id] = numbers.map(u64::from_le_bytes);
        let (height, names) = rest.split_first()?;
        let [so, user, label] = *names.as_chunks().0.first_chunk()?;
        let (identities, root) = match height & NAMES {
            0 => (Digest::default(), root),
            _ => root.split_first_chunk().map(|(names, root)| (*names, root))?,
        };
        let height = height & !NAMES;
        // A root is of entries of 16 bytes.
        let (root, restored) = match root.split_last_chunk() {
            Some((root, last)) if root.len().is_multiple_of(16) => {
                (root, u64::from_le_bytes(*last))
            }
            _ => (root, 0),
        };
        let root = Node::decode(root)?;
        (height <= HIGHEST).then_some(Self {
            commits,
            count,
            next_id,
            so,
            user,
            label,
            identities,
            height,
            root,
            restored,
            mac,
        })
    }

    /// The next state, to be stored.
    pub(crate) fn seal(&mut self, keys: &Keys) -> Result<Vec<u8>> {
        self.commits += 1;
        let mut out = Vec::with_capacity(FIXED + self.root.encode().len() + MAC);
        for number in [self.commits, self.count, self.next_id] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let has_identities = self.identities != Digest::default();
        out.push(self.height | if has_identities { NAMES } else { 0 });
        for name in [self.so, self.user, self.label] {
            out.extend_from_slice(&name);
        }
        if has_identities {
            out.extend_from_slice(&self.identities);
        }
        out.extend_from_slice(self.root.encode());
        if self.restored != 0 {
            out.extend_from_slice(&self.restored.to_le_bytes());
        }
        self.mac = keys.state(&out)?;
        out.extend_from_slice(&self.mac);
        Ok(out)
    }

    /// Rows may be older than the last, or the token from which they come has gone on: keys that count in them do not go on by
    /// themselves.
    pub(crate) fn doubt_counts(&mut self) -> Result<()> {
        self.restored = u64::from_ne_bytes(crypto::random::<8>()?) | 1;
        Ok(())
    }

    /// Seals and stores.
    pub(crate) fn write(&mut self, connection: &Connection, keys: &Keys) -> Result<()> {
        let sealed = self.seal(keys)?;
        connection.prepare_cached("UPDATE token SET row_set = ?1")?.execute([sealed])?;
        Ok(())
    }

    /// Seals and stores with the next id.
    pub(crate) fn write_next(&mut self, rows: &dyn RowsMut, keys: &Keys) -> Result<Vec<u8>> {
        let sealed = self.seal(keys)?;
        rows.write_head(self.next_id, Some(&sealed))?;
        Ok(sealed)
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::new(self.height, self.root.clone())
    }

    /// Takes over the root of a tree that is written.
    pub(crate) fn plant(&mut self, tree: &Tree) {
        (self.height, self.root) = (tree.height(), tree.root().clone());
    }

    pub(crate) fn wrapped(&mut self, role: Role, wrap: &[u8]) {
        let name = name(Some(wrap));
        match role {
            Role::So => self.so = name,
            Role::User => self.user = name,
        }
    }

    /// What is wrong with the columns beside it.
    pub(crate) fn differences(
        &self,
        token: &Token,
        head: &Head,
    ) -> impl Iterator<Item = Difference> + use<> {
        let label = self.label == name(Some(token.label.as_bytes()));
        [
            (self.has_wrap(token, Role::So), Difference::SoPin),
            (self.has_wrap(token, Role::User), Difference::UserPin),
            (label, Difference::Label),
            (self.identities == identities(&token.identities), Difference::Identities),
            (self.has_ids(head.next_id), Difference::NextId),
        ]
        .into_iter()
        .filter_map(|(holds, difference)| (!holds).then_some(difference))
    }

    /// Whether a PIN is the one that was last set.
    pub(crate) fn has_wrap(&self, token: &Token, role: Role) -> bool {
        match role {
            Role::So => self.so == name(token.so.wrap.as_deref()),
            Role::User => self.user == name(token.user.wrap.as_deref()),
        }
    }

    /// Whether there are as many rows as there should be. Reads no row.
    pub(crate) fn check_count(&self, connection: &Connection) -> Result<()> {
        let there: u64 = connection
            .prepare_cached(
                "SELECT (SELECT count(*) FROM object)
                      - (SELECT count(*) FROM object WHERE verified = 0)",
            )?
            .query_row((), |row| unsigned(row, 0))?;
        self.compare_count(there)
    }

    /// The same, where it is known how many there are.
    pub(crate) fn compare_count(&self, there: u64) -> Result<()> {
        match there == self.count {
            true => Ok(()),
            false => {
                Err(Error::tampered(&format!("it has {there} objects and not {}", self.count)))
            }
        }
    }

    /// Whether `next_id` can have come from this state.
    pub(crate) fn has_ids(&self, next_id: u64) -> bool {
        (self.next_id..=self.next_id.saturating_add(MAX_OPEN)).contains(&next_id)
    }
}

/// A state with what was read of the tree under it: as good as the file for as long as that has the
/// same state.
#[derive(Debug)]
pub(crate) struct Known {
    key: KeyId,
    sealed: Vec<u8>,
    pub(crate) state: State,
    pub(crate) tree: Tree,
}

/// What is known from the last time. Locked only while a connection is.
pub(crate) type Memory = Mutex<Option<Known>>;

/// So many nodes are kept, a KiB each.
const MAX_NODES: usize = 256;

impl Known {
    /// The stored state, from memory where it is still the same.
    pub(crate) fn recall(memory: &Memory, keys: &Keys, sealed: &[u8]) -> Result<Self> {
        let last = memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(known) = last.filter(|last| last.is(keys, sealed)) {
            return Ok(known);
        }
        let state = State::open(keys, sealed)?;
        Ok(Self { key: keys.id, sealed: sealed.to_vec(), tree: state.tree(), state })
    }

    /// What there is to be under `id`, where it need not be read.
    pub(crate) fn remembered(
        memory: &Memory,
        keys: &Keys,
        sealed: &[u8],
        id: u64,
    ) -> Option<Option<Entry>> {
        let last = memory.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|last| last.is(keys, sealed))?.tree.remembered(id)
    }

    /// Whether [`Self::remembered`] has an answer, while the state is the same.
    pub(crate) fn reaches(memory: &Memory, id: u64) -> bool {
        let last = memory.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|last| last.tree.remembered(id).is_some())
    }

    fn is(&self, keys: &Keys, sealed: &[u8]) -> bool {
        self.key == keys.id && self.sealed == sealed
    }

    /// Writes the tree and the state, and remembers both.
    pub(crate) fn write(
        mut self,
        connection: &dyn RowsMut,
        keys: &Keys,
        memory: &Memory,
    ) -> Result<()> {
        self.tree.finish(connection, keys)?;
        self.state.plant(&self.tree);
        self.sealed = self.state.write_next(connection, keys)?;
        self.keep(memory);
        Ok(())
    }

    /// Without the lowest levels, where there are too many nodes: those above lead to more rows.
    pub(crate) fn keep(self, memory: &Memory) {
        self.keep_most(memory, MAX_NODES);
    }

    /// The same, where so many nodes are not too many.
    pub(crate) fn keep_most(mut self, memory: &Memory, most: usize) {
        for level in 0..self.state.height {
            if self.tree.len() <= most {
                break;
            }
            self.tree.forget_level(level);
        }
        *memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }
}

/// The state of a token of the current format whose row is as it was last written. The user's PIN is
/// not the officer's concern, who can set a new one.
pub(crate) fn of(connection: &Connection, keys: &Keys) -> Result<State> {
    let head = Head::read(connection)?;
    let token = Token::read(connection)?;
    check(keys, &token.ok_or_else(|| Error::not_token("its own row is missing"))?, &head)
}

/// The same, of what was read of the token's row.
pub(crate) fn check(keys: &Keys, token: &Token, head: &Head) -> Result<State> {
    if keys.id != head.key_id {
        return Err(Error::tampered("the name of its key was changed"));
    }
    let state = State::open(keys, &head.state)?;
    let is_ours = |found: &Difference| keys.role == Role::User || *found != Difference::UserPin;
    let difference = state.differences(token, head).find(is_ours);
    difference.map_or(Ok(state), |found| Err(Error::tampered(found.sentence())))
}
