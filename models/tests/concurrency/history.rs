// SPDX-License-Identifier: Apache-2.0
//! What a history consists of: calls, their answers, and when they began and ended.

use metaslot_ck::Error;
use std::time::Instant;

/// One call of the engine; some stand for a few calls in a row.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Call {
    /// `C_OpenSession`, for reading or for writing too; with `CKF_ASYNC_SESSION` or without.
    Open { process: u8, write: bool, asynchronous: bool },
    /// `C_CloseSession`
    Close { session: u64 },
    /// `C_Login` as the user or the security officer.
    Login { session: u64, user: bool },
    /// `C_Logout`
    Logout { session: u64 },
    /// `C_CreateObject`: the thing called `tag`.
    Create { session: u64, kind: Kind, tag: u8 },
    /// `C_CopyObject` of a key, called `tag` from then on.
    Copy { session: u64, object: u64, token: bool, tag: u8 },
    /// `C_SetAttributeValue`
    Set { session: u64, object: u64, change: Change },
    /// `C_GetAttributeValue`
    Get { session: u64, object: u64 },
    /// `C_FindObjectsInit`, `C_FindObjects`, `C_FindObjectsFinal` for one thing.
    Find { session: u64, tag: u8 },
    /// `C_EncryptInit`
    Use { session: u64, object: u64 },
    /// `C_Encrypt`, and `C_AsyncComplete` for as long as it is pending.
    Encrypt { session: u64 },
    /// `C_DestroyObject`
    Destroy { session: u64, object: u64 },
    /// `C_InitToken`
    InitToken { process: u8 },
}

/// What a thing is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kind {
    /// A private key on the token.
    TokenKey,
    /// A public data object on the token.
    TokenData,
    /// A private key in memory.
    PrivateKey,
    /// A public key in memory.
    PublicKey,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::TokenKey, Self::TokenData, Self::PrivateKey, Self::PublicKey];

    pub(crate) const fn on_token(self) -> bool {
        matches!(self, Self::TokenKey | Self::TokenData)
    }

    pub(crate) const fn private(self) -> bool {
        matches!(self, Self::TokenKey | Self::PrivateKey)
    }

    pub(crate) const fn is_key(self) -> bool {
        !matches!(self, Self::TokenData)
    }

    /// What a copy is: as private as the original.
    pub(crate) const fn copied(self, token: bool) -> Self {
        match (self, token) {
            (Self::TokenData | Self::PublicKey, _) => self,
            (Self::TokenKey | Self::PrivateKey, true) => Self::TokenKey,
            (Self::TokenKey | Self::PrivateKey, false) => Self::PrivateKey,
        }
    }
}

/// One changed attribute.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Change {
    /// `CKA_LABEL`
    Label(u8),
    /// `CKA_SENSITIVE` becomes true.
    Sensitive,
    /// `CKA_COPYABLE` becomes false.
    Single,
}

/// What a call answered.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Answer {
    Done,
    /// A new session or object.
    Handle(u64),
    Found(Option<u64>),
    /// Label, `CKA_SENSITIVE`, and the value where it is shown.
    Attributes(u8, bool, Option<u8>),
    /// The key whose value this is has encrypted.
    Encrypted(u8),
    No(Error),
}

/// One call of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) thread: usize,
    pub(crate) call: Call,
    pub(crate) answer: Answer,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

/// A history for a person.
pub(crate) fn shown(events: &[Event]) -> String {
    let Some(first) = events.iter().map(|event| event.begin).min() else { return String::new() };
    let mut lines: Vec<_> = events.iter().collect();
    lines.sort_by_key(|event| event.begin);
    let line = |event: &&Event| {
        let since = |at: Instant| at.duration_since(first).as_nanos();
        let (begin, end) = (since(event.begin), since(event.end));
        format!("{begin:>9}-{end:<9} {} {:?} -> {:?}", event.thread, event.call, event.answer)
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
