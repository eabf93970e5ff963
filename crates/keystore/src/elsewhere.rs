// SPDX-License-Identifier: Apache-2.0
//! What a token is in another database than SQLite's: its rows are sealed, indexed and authenticated in the same way, and its
//! PINs are counted by the same rule. Nothing here reads or writes but through [`Rows`] and [`RowsMut`].

pub use crate::commit::{Group, Outcomes, Queue};
pub use crate::crypto::{KeyId, Keys, Serial};
pub use crate::exchange::{Loading, Node, Saving, Sink, Source};
pub use crate::identity::{Identities, Identity};
pub use crate::rows::{Rows, RowsMut};
pub use crate::schema::{Head, PinRow, Stored, Token};
pub use crate::survey::{Listed, Table, survey};

use crate::apply;
use crate::crypto;
use crate::error::{Error, Result};
use crate::kdf::Cost;
use crate::state::{self, Known, State};
use crate::tree;
use crate::{anchor, limit, pepper, pin, search, wrap};
use metaslot_awslc_wrapper::digest;
use metaslot_memory::Secret;
use metaslot_spi::store::{Name, ObjectRow, PinState, Role, Term};
use std::fmt;
use std::path::Path;

/// The state of a token that was written last, with what is known of the tree under it.
#[derive(Debug, Default)]
pub struct Memory(state::Memory);

/// So many nodes are remembered of what was read, a KiB each: in them are all above the leaves of 16 million rows.
const NODES_FROM_ELSEWHERE: usize = 4200;

/// How PINs of a token are kept.
#[derive(Clone, Copy, Debug)]
pub struct Pins<'a> {
    /// What makes guessing expensive, for PINs that are set from now on.
    pub cost: Cost,
    /// A file of this machine that every PIN is mixed with.
    pub pepper: Option<&'a Path>,
}

/// What an attempt with a name is made at.
#[derive(Debug)]
pub struct Target {
    /// Whose counter goes up; `None` for the row without a name.
    pub counted: Option<Identity>,
    /// What the PIN is tried at, and to whom it belongs.
    pub(crate) wrap: Vec<u8>,
    owner: Vec<u8>,
    serial: Serial,
}

impl Pins<'_> {
    pub(crate) fn pepper(self) -> Result<Option<Secret>> {
        self.pepper.map(pepper::read).transpose()
    }

    /// Refuses a PIN that cannot be tried here: before the attempt is counted.
    ///
    /// # Errors
    /// [`Error::PinNotInitialized`], [`Error::NotToken`]; what is wrong with the pepper.
    pub fn can_try(self, row: &PinRow) -> Result<()> {
        let wrapped = row.wrap.as_deref().ok_or(Error::PinNotInitialized)?;
        if self.pepper()?.is_none() && wrap::needs_pepper(wrapped) {
            return Err(Error::not_token(
                "its PINs are mixed with a file that its configuration does not name: set pepper",
            ));
        }
        wrap::kdf(wrapped).map(drop)
    }

    /// The keys that a PIN opens; none for a wrong one. Derives a key, which takes a tenth of a second.
    ///
    /// # Errors
    /// [`Error::PinNotInitialized`], [`Error::NotToken`], [`Error::Memory`]
    pub fn open(self, token: &Token, role: Role, pin: &[u8]) -> Result<Option<Keys>> {
        let wrapped = pin::pin_row(token, role).wrap.as_deref().ok_or(Error::PinNotInitialized)?;
        let pepper = self.pepper()?;
        let master = wrap::open(wrapped, &token.serial, &wrap::owner(role), pin, pepper.as_ref())?;
        master.map(|master| Keys::new(master, token.serial, role)).transpose()
    }

    /// The master key under another PIN.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Cryptography`]
    pub fn wrap(self, keys: &Keys, role: Role, pin: &[u8]) -> Result<Vec<u8>> {
        let pepper = self.pepper()?;
        let owner = wrap::owner(role);
        wrap::seal(self.cost.kdf()?, &keys.serial, &owner, pin, pepper.as_ref(), &keys.master)
    }

    /// What an attempt with a name is made at `now`. Of an identity that is not there, or may not be tried, it is a wrap that no PIN
    /// opens, and that costs what another one costs.
    ///
    /// # Errors
    /// [`Error::NotToken`] where its PINs cannot be tried here; [`Error::Cryptography`]
    pub fn target(self, token: &Token, name: Name, now: u64) -> Result<Target> {
        let found = token.identities.find(name);
        let counted = found.filter(|identity| may_try(&identity.pin, now).is_ok()).cloned();
        // One that is locked costs what it did before, or its name would be told by the difference.
        let like = found.map_or_else(|| decoy(token, name), |identity| &identity.pin);
        self.can_try(like)?;
        let mut wrap = like.wrap.clone().unwrap_or_default();
        if counted.is_none() {
            wrap::spoil(&mut wrap)?;
        }
        let owner = counted.as_ref().map_or_else(Vec::new, Identity::owner);
        Ok(Target { counted, wrap, owner, serial: token.serial })
    }

    /// The keys that an identity's PIN opens; none for a wrong one. Derives a key, which takes a tenth of a second.
    ///
    /// # Errors
    /// [`Error::Memory`]
    pub fn try_at(self, target: &Target, pin: &[u8]) -> Result<Option<Keys>> {
        let pepper = self.pepper()?;
        let opened = wrap::open(&target.wrap, &target.serial, &target.owner, pin, pepper.as_ref())?;
        let (Some(identity), Some(master)) = (&target.counted, opened) else { return Ok(None) };
        let mut keys = Keys::new(master, target.serial, Role::User)?;
        keys.bound = Some((identity.name, identity.incarnation));
        Ok(Some(keys))
    }

    /// One more identity, with the master key under its PIN.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Cryptography`]
    pub fn identity(self, keys: &Keys, name: Name, pin: &[u8]) -> Result<Identity> {
        let incarnation = u64::from_ne_bytes(crypto::random::<8>()?);
        let none = PinRow { wrap: None, failures: 0, failed_at: 0 };
        let mut made = Identity { name, incarnation, pin: none };
        made.pin.wrap = Some(self.wrap_of(keys, &made, pin)?);
        Ok(made)
    }

    /// The master key under another PIN of an identity.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Cryptography`]
    pub fn wrap_of(self, keys: &Keys, identity: &Identity, pin: &[u8]) -> Result<Vec<u8>> {
        let (kdf, pepper, owner) = (self.cost.kdf()?, self.pepper()?, identity.owner());
        wrap::seal(kdf, &keys.serial, &owner, pin, pepper.as_ref(), &keys.master)
    }

    /// A token without objects: the next one gets `next_id`, and there were so many changes before.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Cryptography`]
    pub fn new_token(
        self,
        serial: Serial,
        so_pin: &[u8],
        label: &str,
        (next_id, commits): (u64, u64),
    ) -> Result<(Token, Head, Keys)> {
        let keys = Keys::new(crypto::random_key()?, serial, Role::So)?;
        let wrap = self.wrap(&keys, Role::So, so_pin)?;
        let state = State { commits, ..State::new(next_id, label, &wrap) }.seal(&keys)?;
        let none = || PinRow { wrap: None, failures: 0, failed_at: 0 };
        let so = PinRow { wrap: Some(wrap), ..none() };
        let identities = Identities::default();
        let token = Token { serial, label: label.to_owned(), so, user: none(), identities };
        Ok((token, Head { key_id: keys.id, next_id, state }, keys))
    }
}

/// Whose wrap says what a try at a name costs that is not there: for one name always the same.
fn decoy(token: &Token, name: Name) -> &PinRow {
    let salt = token.so.wrap.as_deref().unwrap_or_default();
    let chosen = digest::sha256(&[salt, name.padded()].concat());
    let chosen = chosen.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let count = token.identities.iter().count().max(1) as u64;
    let at = usize::try_from(chosen % count).unwrap_or(0);
    token.identities.iter().nth(at).map_or(&token.so, |identity| &identity.pin)
}

/// A serial number for a new token.
///
/// # Errors
/// [`Error::Cryptography`]
pub fn new_serial() -> Result<Serial> {
    crypto::random()
}

/// What may be told about a PIN, `now` being in seconds since 1970.
#[must_use]
pub fn pin_state(row: &PinRow, now: u64) -> PinState {
    pin::state(row, now)
}

/// Whether an attempt may be made now.
///
/// # Errors
/// [`Error::PinLocked`], [`Error::TooSoon`]
pub fn may_try(row: &PinRow, now: u64) -> Result<()> {
    limit::may_try(row.failures, row.failed_at, now)
}

/// What a wrong PIN is answered with, `row` being as it was before the attempt.
#[must_use]
pub fn refused(row: &PinRow) -> Error {
    Error::PinIncorrect { left: limit::MAX_FAILURES.saturating_sub(row.failures + 1) }
}

/// Refuses a token that is not as it was last written, as far as a login looks: it has so many rows `there` that are verified.
///
/// # Errors
/// [`Error::Tampered`]
pub fn confirm(keys: &Keys, token: &Token, head: &Head, there: u64) -> Result<()> {
    state::check(keys, token, head)?.compare_count(there)
}

/// The token's state with another PIN: `wrap` is what [`Pins::wrap`] gave.
///
/// # Errors
/// [`Error::NotLoggedIn`] where the token was made anew; [`Error::Tampered`]
pub fn with_pin(
    keys: &Keys,
    token: &Token,
    head: &Head,
    (role, wrap): (Role, &[u8]),
) -> Result<Vec<u8>> {
    current(keys, head)?;
    let mut state = state::check(keys, token, head)?;
    state.wrapped(role, wrap);
    state.seal(keys)
}

/// The token's state with another label.
///
/// # Errors
/// As [`with_pin`].
pub fn with_label(keys: &Keys, token: &Token, head: &Head, label: &str) -> Result<Vec<u8>> {
    current(keys, head)?;
    let mut state = state::check(keys, token, head)?;
    state.label = state::name(Some(label.as_bytes()));
    state.seal(keys)
}

/// The token's state with other identities than the token has.
///
/// # Errors
/// As [`with_pin`].
pub fn with_identities(
    keys: &Keys,
    token: &Token,
    head: &Head,
    identities: &Identities,
) -> Result<Vec<u8>> {
    current(keys, head)?;
    let mut state = state::check(keys, token, head)?;
    state.identities = state::identities(identities);
    state.seal(keys)
}

/// Refuses a token whose own row is not as it was last written.
///
/// # Errors
/// [`Error::Tampered`]
pub fn check(keys: &Keys, token: &Token, head: &Head) -> Result<()> {
    state::check(keys, token, head).map(drop)
}

/// How many changes the token's state counts; 0 where it does not open.
#[must_use]
pub fn commits(keys: &Keys, head: &Head) -> u64 {
    State::open(keys, &head.state).map_or(0, |state| state.commits)
}

/// [`metaslot_spi::store::Store::restored`]
///
/// # Errors
/// [`Error::NotLoggedIn`], [`Error::Tampered`]
pub fn restored(keys: &Keys, head: &Head) -> Result<u64> {
    current(keys, head)?;
    Ok(State::open(keys, &head.state)?.restored)
}

/// Compares the token's state with its anchor, and moves that on to it. `name` is what the token is called in errors.
///
/// # Errors
/// [`Error::Tampered`] for a state that is older; [`Error::File`]
pub fn advance_anchor(anchor: &Path, name: &Path, keys: &Keys, head: &Head) -> Result<()> {
    if head.key_id != keys.id {
        // Who made the token anew has seen to it.
        return Ok(());
    }
    anchor::advance(anchor, name, &keys.serial, &State::open(keys, &head.state)?)
}

/// Whether the anchor can follow this token. Gives how many changes it has seen.
///
/// # Errors
/// [`Error::Tampered`] where it is another token's; [`Error::File`]
pub fn check_anchor(anchor: &Path, name: &Path, serial: &Serial) -> Result<u64> {
    anchor::check(anchor, name, serial)
}

/// Whether these are the keys of the token.
///
/// # Errors
/// [`Error::NotLoggedIn`] where another process has made it anew.
pub fn current(keys: &Keys, head: &Head) -> Result<()> {
    if keys.id == head.key_id { Ok(()) } else { Err(Error::NotLoggedIn) }
}

/// Applies what a group has left, within a transaction, which must be given up where this fails. What has failed comes with the
/// number of its change set, where it is the fault of that.
///
/// # Errors
/// [`Error::NotLoggedIn`], [`Error::Gone`], [`Error::Damaged`], [`Error::Tampered`]; what the database says.
pub fn apply(
    rows: &dyn RowsMut,
    group: &Group,
    memory: &Memory,
) -> std::result::Result<Outcomes, (Option<usize>, Error)> {
    // Where statements are sent later, another's may have failed.
    let is_its_own = |error: &Error| {
        matches!(error, Error::NotLoggedIn | Error::Gone { .. } | Error::Damaged { .. })
    };
    let blamed = |(at, error): (Option<usize>, Error)| (at.filter(|_| is_its_own(&error)), error);
    group.apply_once(rows, &memory.0).map_err(blamed)
}

/// The numbers of the nodes that lead to a row, whatever the tree's height is.
#[must_use]
pub fn path(id: u64) -> Vec<i64> {
    tree::path(id)
}

/// Rows of one moment, which are compared with the state that the token has there.
pub struct Reading<'a> {
    rows: &'a dyn Rows,
    keys: &'a Keys,
    known: Known,
}

impl<'a> Reading<'a> {
    /// `memory` has what was seen last: what is the same still is not verified again.
    ///
    /// # Errors
    /// [`Error::NotLoggedIn`] where the token was made anew; [`Error::Tampered`]; what the database says.
    pub fn of(rows: &'a dyn Rows, keys: &'a Keys, memory: &Memory) -> Result<Self> {
        let head = rows.head()?;
        current(keys, &head)?;
        Ok(Self { rows, keys, known: Known::recall(&memory.0, keys, &head.state)? })
    }

    /// A row that is the one that was last written. `None` where there is to be none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Tampered`]; what the database says.
    pub fn row(&mut self, id: u64) -> Result<Option<Stored>> {
        let row = self.rows.stored(id)?;
        apply::check_last(self.rows, self.keys, &mut self.known.tree, id, row.as_ref())?;
        row.as_ref().map_or(Ok(()), |row| apply::check(self.keys, id, row))?;
        Ok(row)
    }

    /// How many levels of the tree are below its root: so many nodes lead to a row.
    #[must_use]
    pub const fn height(&self) -> u8 {
        self.known.state.height
    }

    /// How many of these levels, from the lowest on, have nodes on the way to a row that are not remembered: of those above none
    /// is read.
    #[must_use]
    pub fn unread(&self, id: u64) -> u8 {
        self.known.tree.unread(id)
    }

    /// How many changes the token's state counts.
    #[must_use]
    pub const fn commits(&self) -> u64 {
        self.known.state.commits
    }

    /// Remembers what was verified.
    pub fn keep(self, memory: &Memory) {
        self.known.keep_most(&memory.0, NODES_FROM_ELSEWHERE);
    }
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("known", &self.known).finish_non_exhaustive()
    }
}

/// What is shown of a row; nothing of a private one without keys. With keys it is one that [`Reading::row`] gave.
///
/// # Errors
/// [`Error::Damaged`]
pub fn open(row: &Stored, keys: Option<&Keys>, id: u64) -> Result<Option<ObjectRow>> {
    let attributes = match keys {
        None if row.private => return Ok(None),
        Some(keys) if row.private => {
            let opened = keys.open_attributes(&apply::place(keys, id, row), &row.attributes)?;
            opened.ok_or_else(|| Error::damaged(id, "its attributes do not open"))?
        }
        _ => row.attributes.clone(),
    };
    Ok(Some(ObjectRow {
        version: row.version,
        private: row.private,
        verified: row.verified && keys.is_some(),
        attributes,
        has_secrets: row.secrets.is_some(),
    }))
}

/// What an uninitialised place answers to a question about objects: that there are none.
///
/// # Errors
/// Every other one.
pub fn nothing<T: Default>(result: Result<T>) -> Result<T> {
    match result {
        Err(Error::Uninitialized { .. }) => Ok(T::default()),
        result => result,
    }
}

/// The secrets of a row that [`Reading::row`] gave, at this version.
///
/// # Errors
/// [`Error::Gone`], [`Error::Damaged`]
pub fn secrets(row: &Stored, keys: &Keys, id: u64, version: u64) -> Result<Secret> {
    if row.version != version {
        return Err(Error::Gone { id });
    }
    let sealed = row.secrets.as_ref().ok_or_else(|| Error::damaged(id, "it has no secrets"))?;
    let opened = keys.open_secrets(&apply::place(keys, id, row), &row.attributes, sealed)?;
    opened.ok_or_else(|| Error::damaged(id, "its secrets do not open"))
}

/// What the index has for a query, the most selective attribute first: of private rows with keys, of open ones without.
///
/// # Errors
/// [`Error::Cryptography`]
pub fn values(keys: Option<&Keys>, query: &[Term]) -> Result<Vec<[u8; 16]>> {
    search::values(keys, query)
}
