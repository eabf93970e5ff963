// SPDX-License-Identifier: Apache-2.0
//! What the engine asks of a place where tokens live. SQLite implements it; PostgreSQL will.
//!
//! A store seals, indexes and counts; it knows nothing of sessions or of what attributes mean.

use crate::provider::Algorithm;
use crate::{Attributes, Params, Secrets, detail};
use metaslot_ck::{
    CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CK_USER_TYPE, CKU_CONTEXT_SPECIFIC, CKU_SO, CKU_USER,
    Error, Result,
};
use metaslot_memory::Secret;
use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;

/// One token's place. All functions may be called from any thread.
pub trait Store: Send + Sync {
    /// The token's own row. `initialized` is false where no token is yet; nothing is created.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`, `CKR_TOKEN_NOT_RECOGNIZED` (a newer format, a damaged file).
    fn token(&self) -> Result<TokenRow>;

    /// Makes the token, or empties it after checking the SO PIN (`C_InitToken`). `label` is UTF-8
    /// without padding, at most 32 bytes.
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT`, `CKR_PIN_LOCKED`, `CKR_DEVICE_ERROR`, `CKR_TOKEN_WRITE_PROTECTED`
    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()>;

    /// Counts the attempt, opens the master key and keeps it until [`Self::logout`].
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT`, `CKR_PIN_LOCKED` (for good, or too soon after failures, which does not
    /// count), `CKR_USER_PIN_NOT_INITIALIZED`, `CKR_TOKEN_WRITE_PROTECTED` (cannot count).
    fn login(&self, role: Role, pin: &[u8]) -> Result<()>;

    /// Checks a PIN while logged in (context-specific login); counts like a login.
    ///
    /// # Errors
    /// As [`Self::login`].
    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()>;

    /// Forgets every key.
    fn logout(&self);

    /// Whether the keys of the last login are still the token's: another process may have made it anew.
    fn keeps_login(&self) -> bool;

    /// [`Self::login`] of an identity (`C_LoginUser`). The keys go as soon as it is revoked.
    ///
    /// # Errors
    /// As [`Self::login`], but `CKR_PIN_INCORRECT` also where the PIN is locked or no identity has the name: none of these
    /// tells which names there are. `CKR_ARGUMENTS_BAD` of a store that has no identities.
    fn login_as(&self, _name: Name, _pin: &[u8]) -> Result<()> {
        Err(Name::unknown())
    }

    /// [`Self::check_pin`] of an identity.
    ///
    /// # Errors
    /// As [`Self::login_as`].
    fn check_pin_as(&self, _name: Name, _pin: &[u8]) -> Result<()> {
        Err(Name::unknown())
    }

    /// [`Self::set_pin`] of an identity.
    ///
    /// # Errors
    /// As [`Self::login_as`].
    fn set_pin_as(&self, _name: Name, _old: &[u8], _new: &[u8]) -> Result<()> {
        Err(Name::unknown())
    }

    /// A number that the identity of this name got by chance when it was added; none where there is no such identity now.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` while that cannot be known.
    fn incarnation(&self, _name: Name) -> Result<Option<u64>> {
        Ok(None)
    }

    /// From when on a PIN is tried, in seconds since 1970, after the failures of others: the user's, or that of the identity of this
    /// name; 0 for now. It tells which names there are, and is for one who has the PIN.
    ///
    /// # Errors
    /// Those of [`Self::token`].
    fn retry_at(&self, name: Option<Name>) -> Result<u64> {
        name.map_or_else(|| Ok(self.token()?.user.retry_at), |_| Ok(0))
    }

    /// Keeps the keys of a login even when the identity is revoked that has opened them: the caller, who has more than one
    /// user, looks at [`Self::incarnation`] itself.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`
    fn share_login(&self) -> Result<()> {
        Ok(())
    }

    /// Sets the user's PIN, by the SO (`C_InitPIN`); clears the counter.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`, `CKR_DEVICE_ERROR`
    fn init_pin(&self, pin: &[u8]) -> Result<()>;

    /// Changes a PIN; the old one counts as an attempt. One small row, atomically.
    ///
    /// # Errors
    /// As [`Self::login`].
    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()>;

    /// All changes or none, durable when it returns. Gives the id of each inserted object.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`, `CKR_OBJECT_HANDLE_INVALID` (gone, or changed since it was read),
    /// `CKR_DEVICE_MEMORY` (disk full), `CKR_TOKEN_WRITE_PROTECTED`, `CKR_DEVICE_ERROR`
    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>>;

    /// [`Self::write`] by an identity of this incarnation, whose login is [shared](Self::share_login): nothing where it is revoked by
    /// the time at which that would be committed.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_as(&self, _identity: (Name, u64), changes: Vec<Change>) -> Result<Vec<u64>> {
        self.write(changes)
    }

    /// One row, opened; `None` when there is none, or when it is private and no user is logged in.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` for a damaged row: that row only.
    fn read(&self, id: u64) -> Result<Option<ObjectRow>>;

    /// The sealed secrets of a row at this version.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`, `CKR_OBJECT_HANDLE_INVALID` (gone or newer), `CKR_DEVICE_ERROR`
    fn secrets(&self, id: u64, version: u64) -> Result<Secret>;

    /// Rows above the id `after`, at most `limit`, whose indexed attributes are all as in `query`
    /// (all rows for an empty query), in ascending order; private ones only while a user is
    /// logged in. Holds no lock and no read transaction between calls.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>>;

    /// Looks at all of the token, whether or not a user is logged in: the PIN is tried, and counts
    /// like a login. What is wrong is told while it goes on; `false` from `remark` ends it.
    ///
    /// # Errors
    /// As [`Self::login`]; `CKR_FUNCTION_CANCELED`; `CKR_DEVICE_ERROR` where it cannot be repaired.
    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined>;

    /// A number that the token got by chance when it was made by a backup or a restore last, or repaired so that rows may be older than
    /// the last, and 0 where it never was: what counts in rows may have gone on since.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`, `CKR_DEVICE_ERROR`
    fn restored(&self) -> Result<u64>;

    /// Counts the commits of all processes: one load of a mapped page, or a system call where others could
    /// cut it. Odd while a commit is under way; `None` when it is not known, and every look must go
    /// to the store. Makes no call at which the C library cancels threads.
    fn generation(&self) -> Option<u64>;

    /// As [`Self::generation`], of what a row belongs to: where rows are of several tokens, a change in one of them leaves
    /// it as it is for those of the others.
    fn generation_of(&self, _row: u64) -> Option<u64> {
        self.generation()
    }

    /// What uses the keys of this token, where they do not leave it.
    fn home(&self) -> Option<&'static dyn Home> {
        None
    }

    /// Whose objects this store shows besides those of its own token; see [`Row`].
    fn guests(&self) -> Vec<&'static dyn Home> {
        Vec::new()
    }
}

/// A row's number, where a store shows the objects of several tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// Which of [`Store::guests`] has it; none for the store's own token.
    pub guest: Option<usize>,
    /// Its number there.
    pub id: u64,
}

impl Row {
    /// Of a number that a store with so many guests gave.
    #[must_use]
    pub fn of(number: u64, guests: usize) -> Self {
        let step = guests as u64 + 1;
        let place = usize::try_from(number % step).unwrap_or(0);
        Self { guest: place.checked_sub(1), id: number / step }
    }

    /// The number that a store with so many guests gives. It is as small as can be: handles are made of numbers, and come to an end.
    #[must_use]
    pub fn number(self, guests: usize) -> u64 {
        self.id * (guests as u64 + 1) + self.guest.map_or(0, |guest| guest as u64 + 1)
    }
}

/// A token that keeps its keys, another module's: they are made, used and changed there. The engine has checked what its own rules and policy say; the
/// module checks again.
pub trait Home: Sync {
    /// Short and lower case, as the configuration has it.
    fn name(&self) -> &'static str;

    /// Whether the token is there now. What was open of one that has gone is closed.
    fn is_there(&self) -> bool;

    /// What it does with its keys, sorted by mechanism. Each key that it is given carries
    /// [`CKA_FOREIGN_ROW`](metaslot_ck::attribute::CKA_FOREIGN_ROW).
    fn algorithms(&'static self) -> &'static [Algorithm];

    /// Context-specific `C_Login`, for an operation that has begun: the module wants the PIN in a session of its own
    /// where it is given the data. Until then the PIN is kept; the ticket is presented before the operation goes on.
    ///
    /// # Errors
    /// `CKR_DEVICE_MEMORY`
    fn keep_pin(&self, pin: &[u8]) -> Result<Ticket>;

    /// `C_CreateObject`: what the caller wrote.
    ///
    /// # Errors
    /// The module's code.
    fn create(&self, template: &Attributes, secrets: &Secrets) -> Result<Found>;

    /// `C_CopyObject`: row and changes.
    ///
    /// # Errors
    /// The module's code.
    fn copy(&self, row: u64, changes: &Attributes) -> Result<Found>;

    /// `C_GenerateKey`
    ///
    /// # Errors
    /// The module's code.
    fn generate(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        template: &Attributes,
    ) -> Result<Found>;

    /// `C_GenerateKeyPair`: the public key first.
    ///
    /// # Errors
    /// The module's code.
    fn generate_pair(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        public: &Attributes,
        private: &Attributes,
    ) -> Result<[Found; 2]>;

    /// `C_WrapKey` of one of its keys by another, each by its row.
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` where the token does nothing of that kind.
    fn wrap(&self, _: CK_MECHANISM_TYPE, _: &Params, _by: u64, _key: u64) -> Result<Vec<u8>> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    /// A key that the one in a row makes: its bytes do not leave the token.
    ///
    /// # Errors
    /// As [`Self::wrap`].
    fn make_by(
        &self,
        _by: u64,
        _: Making<'_>,
        _: CK_MECHANISM_TYPE,
        _: &Params,
        _template: &Attributes,
    ) -> Result<Found> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

/// How a key is made by one that is there, and of what.
#[derive(Clone, Copy, Debug)]
pub enum Making<'a> {
    /// `C_DeriveKey`
    Derived,
    /// `C_UnwrapKey`, of the wrapped key.
    Unwrapped(&'a [u8]),
    /// `C_DecapsulateKey`, of the ciphertext.
    Decapsulated(&'a [u8]),
    /// `C_EncapsulateKey`, whose ciphertext goes here, and is so long.
    Encapsulated(&'a [Cell<u8>]),
}

/// Which PIN of those that a [`Home`] keeps is an operation's. No two operations have the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket(pub NonZeroU64);

thread_local! {
    static PRESENTED: Cell<Option<Ticket>> = const { Cell::new(None) };
}

impl Ticket {
    /// What this thread computes next is this operation's.
    pub fn present(self) {
        PRESENTED.set(Some(self));
    }

    /// What was presented last on this thread, once.
    #[must_use]
    pub fn presented() -> Option<Self> {
        PRESENTED.take()
    }
}

/// What [`Store::examine`] does to a token that its PIN opens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Examination<'a> {
    /// It looks, and changes nothing.
    Look,
    /// It takes out whatever is damaged, all in one transaction.
    Repair,
    /// It looks at a copy, and that becomes this file, which must not be there; with findings it does not.
    Backup(&'a Path),
    /// It looks at this file, and that becomes the token, where none is; with findings it does not.
    Restore(&'a Path),
    /// The token gets this label. Nothing is looked at.
    Rename(&'a str),
    /// The files of the token that has this label go, by the officer's PIN: an error while another process has them open.
    Remove(&'a str),
    /// Its identities, by the officer's PIN.
    Identities(Identities<'a>),
}

/// What is done with a token's identities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Identities<'a> {
    /// Each is told of.
    List,
    /// There is one more, with this PIN.
    Add(Name, NewPin<'a>),
    /// It is there no more, and neither is its wrap of the master key.
    Revoke(Name),
    /// It gets this PIN, which is not locked.
    SetPin(Name, NewPin<'a>),
}

/// A PIN that is to be set; `Debug` does not show it.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct NewPin<'a>(pub &'a [u8]);

impl fmt::Debug for NewPin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewPin")
    }
}

/// What an identity is called; compared byte by byte.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct Name {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl Name {
    /// The longest, in bytes.
    pub const LONGEST: usize = 64;

    /// `None` unless it has 1 to 64 bytes of UTF-8, all of which can be seen: no control character, none that only orders or
    /// joins others, and no white space at either end.
    #[must_use]
    pub fn new(name: &[u8]) -> Option<Self> {
        let text = str::from_utf8(name).ok()?;
        let is_fit = !text.is_empty() && text == text.trim() && !text.contains(is_unseen);
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        is_fit.then_some(Self { bytes, length: name.len() })
    }

    /// What is given with a type of user (PKCS#11 3.2 §5.6.9).
    ///
    /// # Errors
    /// `CKR_USER_TYPE_INVALID`; `CKR_ARGUMENTS_BAD` for what no identity is called, and of those who have no names.
    pub fn of_user(user: CK_USER_TYPE, name: &[u8]) -> Result<Self> {
        let reason = match user {
            CKU_USER => "an identity's name has 1 to 64 bytes of UTF-8, all of which can be seen",
            CKU_SO => "the officer has no name",
            CKU_CONTEXT_SPECIFIC => "an operation is unlocked by who is logged in: give no name",
            _ => return Err(Error::USER_TYPE_INVALID),
        };
        Self::new(name).filter(|_| user == CKU_USER).ok_or_else(|| {
            detail::set(format_args!("{reason}"));
            Error::ARGUMENTS_BAD
        })
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// With zeros behind it, which no name has: for a comparison that takes as long for every name.
    #[must_use]
    pub const fn padded(&self) -> &[u8; Self::LONGEST] {
        &self.bytes
    }

    /// Where there are no identities.
    fn unknown() -> Error {
        detail::set(format_args!("this token has no identities: give no name, or call C_Login"));
        Error::ARGUMENTS_BAD
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Whether it is a control character, or one of those that are not drawn themselves: soft hyphen, joiners, marks of direction.
fn is_unseen(character: char) -> bool {
    let format = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{2028}', '\u{2029}', '\u{feff}'];
    let is_mark = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    let is_joiner = matches!(character, '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e0fff}');
    character.is_control() || is_mark || is_joiner || format.contains(&character)
}

/// What [`Store::examine`] tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Remark<'a> {
    /// How many rows were looked at, and how many there are.
    Progress {
        /// So many.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// Something is wrong.
    Finding {
        /// With which row; `None` for the token as a whole.
        id: Option<u64>,
        /// What, in words.
        what: &'a str,
    },
    /// An identity.
    Identity(Name, PinState),
}

/// What [`Store::examine`] found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Examined {
    /// How many rows were looked at.
    pub rows: u64,
    /// How many of them were written before anybody had logged in, and can be anybody's.
    pub unverified: u64,
    /// How much is wrong.
    pub findings: u64,
    /// How many rows were taken out.
    pub removed: u64,
}

/// Which rows a search looks at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// Those that are there before a login.
    Public,
    /// Those that are there after one only.
    Private,
    /// All.
    Both,
}

/// A row that a search found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found {
    /// Its number.
    pub id: u64,
    /// `CKA_PRIVATE`
    pub private: bool,
}

/// Who logs in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// `CKU_SO`
    So,
    /// `CKU_USER`
    User,
}

/// What is public about a token.
#[derive(Clone, Debug, Default)]
pub struct TokenRow {
    /// Whether there is a token at all.
    pub initialized: bool,
    /// UTF-8, without padding.
    pub label: String,
    /// 16 hexadecimal digits.
    pub serial: String,
    /// Whether the user has a PIN.
    pub user_pin_set: bool,
    /// Whether the SO's PIN is as it was set by `C_InitToken` before a user PIN existed.
    pub so: PinState,
    /// The user's.
    pub user: PinState,
    /// Whether this process may write the store.
    pub writable: bool,
    /// The shortest PIN that may be set, in bytes, where that is more than the engine's own.
    pub shortest_pin: usize,
    /// Of a token of another module, what else it says of itself.
    pub other: Option<OtherToken>,
}

impl TokenRow {
    /// [`OtherToken::asks_by_itself`]; our own tokens do not.
    #[must_use]
    pub fn asks_by_itself(&self) -> bool {
        self.other.as_ref().is_some_and(|other| other.asks_by_itself)
    }
}

/// What another module says of its token.
#[derive(Clone, Debug, Default)]
pub struct OtherToken {
    /// Who made it.
    pub manufacturer: String,
    /// Its model.
    pub model: String,
    /// Whether there is anything that needs a login.
    pub login_required: bool,
    /// Whether a login without a PIN works: it has a keypad, or the PIN is configured.
    pub asks_by_itself: bool,
}

/// How one PIN stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PinState {
    /// Failures since the last success.
    pub failures: u32,
    /// How many are left before it is locked.
    pub left: u32,
    /// No attempt is taken before then, in seconds since 1970; 0 when one may try now.
    pub retry_at: u64,
    /// What a guess costs.
    pub cost: PinCost,
}

/// What a guess at a PIN costs anyone who has a copy of the store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PinCost {
    /// Argon2id's memory, in KiB; 0 for PBKDF2.
    pub memory_kib: u32,
    /// Argon2id's passes or PBKDF2's iterations; 0 where there is no PIN.
    pub passes: u32,
    /// Microseconds of one processor that it took when this process did it last; 0 when it did not.
    pub microseconds: u32,
}

/// A row to write.
#[derive(Debug)]
pub struct Record {
    /// Sealed whole (`CKA_PRIVATE`), or plain but for the secrets.
    pub private: bool,
    /// [`crate::Attributes::encode`].
    pub attributes: Vec<u8>,
    /// [`crate::Secrets::encode`]; always sealed.
    pub secrets: Option<Secret>,
    /// What the index holds: attribute and value.
    pub terms: Vec<Term>,
}

/// An attribute and its value, as the index has it.
pub type Term = (CK_ATTRIBUTE_TYPE, Vec<u8>);

/// One change of a transaction.
#[derive(Debug)]
pub enum Change {
    /// A new object.
    Insert(Record),
    /// New attributes for the object that is at `version`; `secrets: None` keeps the sealed ones.
    Update {
        /// Which.
        id: u64,
        /// As it was read.
        version: u64,
        /// As it shall be.
        record: Record,
    },
    /// Takes out the object that is at `version`.
    Delete {
        /// Which.
        id: u64,
        /// As it was read: what was read may say that it must stay.
        version: u64,
        /// Its `CKA_UNIQUE_ID`: in an older store that was put back another object may be at that version. `None` takes out
        /// the row that is there.
        unique_id: Option<Term>,
    },
}

/// A row as read.
#[derive(Debug)]
pub struct ObjectRow {
    /// Goes up with every change of the row.
    pub version: u64,
    /// Sealed whole.
    pub private: bool,
    /// Written during a login, and its MAC is right.
    pub verified: bool,
    /// [`crate::Attributes::encode`].
    pub attributes: Vec<u8>,
    /// Whether there are sealed secrets.
    pub has_secrets: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_can_be_seen() {
        let longest = "n".repeat(Name::LONGEST);
        for name in ["a", "nginx.service", "Zoë und Jürgen", "spiffe://example.org/web", &longest]
        {
            assert_eq!(Name::new(name.as_bytes()).unwrap().as_str(), name);
        }
        let too_long = "n".repeat(Name::LONGEST + 1);
        for name in ["", " ", " a", "a\t", "a\nb", "a\0", "a\u{202e}b", "a\u{200b}", &too_long] {
            assert_eq!(Name::new(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(Name::new(b"\xff"), None);
        assert_eq!(format!("{:?}", NewPin(b"1234")), "NewPin");
    }

    #[test]
    fn numbers_of_rows_say_whose_they_are_and_stay_small() {
        for guests in 0..5 {
            let mut numbers = Vec::new();
            for id in 1..=20 {
                for guest in std::iter::once(None).chain((0..guests).map(Some)) {
                    let row = Row { guest, id };
                    assert_eq!(Row::of(row.number(guests), guests), row);
                    numbers.push(row.number(guests));
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), 20 * (guests + 1));
            assert!(*numbers.last().unwrap() < 21 * (guests as u64 + 1));
            assert_eq!(Row::of(0, guests), Row { guest: None, id: 0 });
        }
    }
}
