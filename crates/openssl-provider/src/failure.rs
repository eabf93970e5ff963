// SPDX-License-Identifier: Apache-2.0
//! Why something failed, as the program's log shows it.

use metaslot_ck::Error;
use std::ffi::CStr;
use std::fmt;

/// A failure: what kind, and in words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    pub(crate) text: String,
    /// The module does not have what was asked for.
    pub(crate) lacks: bool,
    /// What there was of the module may be gone.
    pub(crate) gone: Option<Gone>,
}

/// What may be gone that another part of the program, or the module, could end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Gone {
    /// One object.
    Object,
    /// All sessions, and what is in them.
    Sessions,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Kinds, which libcrypto has names for from [`REASONS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum Reason {
    Configuration = 1,
    Module,
    NotFound,
    Pin,
    Token,
    Unsupported,
    Input,
}

/// Their names.
pub(crate) const REASONS: &[(Reason, &CStr)] = &[
    (Reason::Configuration, c"wrong configuration"),
    (Reason::Module, c"PKCS#11 module not usable"),
    (Reason::NotFound, c"not found"),
    (Reason::Pin, c"no login"),
    (Reason::Token, c"PKCS#11 call failed"),
    (Reason::Unsupported, c"not supported"),
    (Reason::Input, c"unsuitable input"),
];

impl Reason {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        let row = REASONS.iter().find(|row| row.0 == self);
        row.and_then(|row| row.1.to_str().ok()).unwrap_or_default()
    }
}

/// Codes after which a session, a handle or a login that was good is looked for again.
const STALE: &[Error] = &[
    Error::CRYPTOKI_NOT_INITIALIZED,
    Error::DEVICE_REMOVED,
    Error::KEY_HANDLE_INVALID,
    Error::OBJECT_HANDLE_INVALID,
    Error::SESSION_CLOSED,
    Error::SESSION_HANDLE_INVALID,
    Error::SLOT_ID_INVALID,
    Error::TOKEN_NOT_PRESENT,
    Error::UNWRAPPING_KEY_HANDLE_INVALID,
    Error::USER_NOT_LOGGED_IN,
];

/// Whether it may be that what failed works once everything is looked for again.
pub(crate) fn is_stale(error: metaslot_client::Error) -> bool {
    STALE.contains(&error.code)
}

impl Gone {
    pub(crate) fn of(error: metaslot_client::Error) -> Option<Self> {
        match error.code {
            Error::KEY_HANDLE_INVALID
            | Error::OBJECT_HANDLE_INVALID
            | Error::UNWRAPPING_KEY_HANDLE_INVALID => Some(Self::Object),
            Error::USER_NOT_LOGGED_IN => None,
            // Somebody else uses the session: its number is theirs.
            Error::OPERATION_ACTIVE | Error::OPERATION_NOT_INITIALIZED => Some(Self::Sessions),
            _ => is_stale(error).then_some(Self::Sessions),
        }
    }
}

impl Failure {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into(), lacks: false, gone: None }
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Self {
        Self::new(Reason::Unsupported, text)
    }

    pub(crate) fn input(text: impl Into<String>) -> Self {
        Self::new(Reason::Input, text)
    }

    /// The same, which says what it was about where it does not yet.
    pub(crate) fn about(mut self, what: &str) -> Self {
        if !self.text.contains(what) {
            self.text = format!("{what}: {}", self.text);
        }
        self
    }

    /// A call of the module's failed.
    pub(crate) fn call(what: &str, error: metaslot_client::Error, detail: Option<String>) -> Self {
        let detail = detail.filter(|detail| !detail.is_empty());
        let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        Self {
            gone: Gone::of(error),
            ..Self::new(Reason::Token, format!("{what}: {error}{detail}"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
