// SPDX-License-Identifier: Apache-2.0
//! What a command that did not succeed tells its user, and its exit code.
//!
//! A message is one line, lower case, without a full stop; a hint says what to do next. When a C
//! function refused, the message ends with its name and code, as a bug report needs them.

use crate::encoding::printable;
use crate::uri::Uri;
use metaslot_ck as ck;
use metaslot_client::{self as client, LoadError, Module};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The documented exit codes; 0 is success.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// The module refused, a file could not be read, or anything else went wrong.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// No such module, token or key, or several where one is needed.
    NotFound = 3,
    /// The PIN is wrong, locked, or not to be had.
    Pin = 4,
    /// The signature is not valid.
    Invalid = 5,
    /// Some of it was done, and some could not be.
    Partly = 6,
}

/// An error on its way to the user.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    hint: Option<String>,
    /// What the hint says to choose from.
    choices: Vec<String>,
    call: Option<client::Error>,
    detail: Option<String>,
    /// Another command's code in place of ours.
    status: Option<u8>,
}

/// What nearly every function of the command returns.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with its exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
            choices: Vec::new(),
            call: None,
            detail: None,
            status: None,
        }
    }

    /// Anything that has no exit code of its own.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// No such thing, or several.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    /// No PIN, or a wrong one.
    pub(crate) fn pin(message: impl Into<String>) -> Self {
        Self::new(Exit::Pin, message)
    }

    /// Some of it was done, and some could not be.
    pub(crate) fn partly(message: impl Into<String>) -> Self {
        Self::new(Exit::Partly, message)
    }

    /// The system refused; its words without the number that [`io::Error`] adds.
    pub(crate) fn io(what: impl Display, error: &io::Error) -> Self {
        let text = error.to_string();
        let words = text.split_once(" (os error").map_or(&*text, |(words, _)| words);
        Self::failed(format!("{what}: {words}"))
    }

    /// The same failure with the exit code of a PIN that is not to be had.
    #[must_use]
    pub(crate) fn about_pin(self) -> Self {
        Self { exit: Exit::Pin, ..self }
    }

    /// In other words, with the same call and code.
    #[must_use]
    pub(crate) fn saying(self, words: &str) -> Self {
        let call = self.call.map(|call| format!(" ({}: {})", call.function.name(), call.code));
        Self { message: format!("{words}{}", call.unwrap_or_default()), ..self }
    }

    /// The hint will say it better than the module.
    #[must_use]
    pub(crate) fn without_detail(self) -> Self {
        Self { detail: None, ..self }
    }

    /// What to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts what was being done before the message.
    #[must_use]
    pub(crate) fn context(mut self, what: impl Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// A hint, and what it says to choose from.
    #[must_use]
    pub(crate) fn choose(mut self, hint: &str, choices: impl Iterator<Item = Uri>) -> Self {
        self.choices = choices.map(|uri| uri.to_string()).collect();
        self.hint(hint)
    }

    /// The same where one of the choices is named by an option.
    #[must_use]
    pub(crate) fn chosen_by(self, option: &str) -> Self {
        if self.choices.is_empty() {
            return self;
        }
        self.hint(format!("name one with {option}"))
    }

    /// What happened, without a hint.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do next, if that is known.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The same failure for commands that know failure and wrong usage only.
    #[must_use]
    pub(crate) fn plain(self) -> Self {
        let exit = if self.exit == Exit::Usage { Exit::Usage } else { Exit::Failed };
        Self { exit, ..self }
    }

    /// The same failure with the exit codes of another command.
    #[must_use]
    pub(crate) fn coded(self, code: impl FnOnce(Exit) -> u8) -> Self {
        Self { status: Some(code(self.exit)), ..self }
    }

    /// The code that the module returned, if it was the module.
    pub(crate) fn code(&self) -> Option<ck::Error> {
        self.call.map(|call| call.code)
    }

    /// Whether it ends with this exit code.
    pub(crate) fn is(&self, exit: Exit) -> bool {
        self.exit == exit
    }

    /// The exit code for the shell.
    pub(crate) fn exit(&self) -> ExitCode {
        ExitCode::from(self.number())
    }

    fn number(&self) -> u8 {
        self.status.unwrap_or(self.exit as u8)
    }

    /// `error:` and `hint:` lines.
    pub(crate) fn text(&self, colour: bool) -> String {
        let (red, cyan, plain) =
            if colour { ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") } else { ("", "", "") };
        let mut text = format!("{red}error:{plain} {}\n", printable(&self.message));
        for (what, said) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(said) = said {
                text.push_str(&format!("{cyan}{what}:{plain} {}\n", printable(said)));
            }
        }
        for choice in &self.choices {
            text.push_str(&format!("      {}\n", printable(choice)));
        }
        text
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let mut json = json!({"error": {
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "function": self.call.map(|call| call.function.name()),
            "code": self.call.map(|call| call.code.to_string()),
            "exit": self.number(),
        }});
        if !self.choices.is_empty() {
            json["error"]["choices"] = json!(self.choices);
        }
        json
    }
}

/// The module in use, which has words for its failures.
static IN_USE: OnceLock<Module> = OnceLock::new();

/// From now on failures of calls have this module's words.
pub(crate) fn explained_by(module: &Module) {
    IN_USE.set(module.clone()).ok();
}

impl From<client::Error> for Failure {
    fn from(call: client::Error) -> Self {
        // Any other call of the module replaces what it says of this one.
        let detail = IN_USE.get().and_then(Module::detail);
        let row = WORDS.iter().find(|row| row.0 == call.code);
        let (name, code) = (call.function.name(), call.code);
        // These codes say least: what the module has to say about them is the message.
        let vague = [ck::Error::DEVICE_ERROR, ck::Error::TOKEN_NOT_RECOGNIZED].contains(&code);
        if let Some((reason, entry)) = detail.as_deref().and_then(by_policy) {
            let message = format!("the token's policy refuses this: {reason} ({name}: {code})");
            let failure = Self { call: Some(call), ..Self::failed(message) };
            return failure.hint(format!(
                "allow = [\"{entry}\"] in the token's section of the configuration permits it"
            ));
        }
        let told = detail.as_ref().filter(|_| vague);
        if let Some(words) = told {
            let message = format!("{words} ({name}: {code})");
            // Only a configuration that cannot be used keeps a module of ours from saying which slots it has.
            let hint = (name == "C_GetSlotList").then(|| String::from(CHECK));
            return Self { call: Some(call), hint, ..Self::failed(message) };
        }
        let message = match row {
            Some((_, words, _)) => format!("{words} ({name}: {code})"),
            None => format!("{name} returned {code}"),
        };
        let hint = row.map(|row| row.2).filter(|hint| !hint.is_empty()).map(str::to_owned);
        let exit = if PIN_CODES.contains(&call.code) { Exit::Pin } else { Exit::Failed };
        Self { exit, message, hint, choices: Vec::new(), call: Some(call), detail, status: None }
    }
}

/// What our module says where the policy refuses: why, and the name that `allow` has for it.
fn by_policy(detail: &str) -> Option<(&str, &str)> {
    let said = detail.strip_prefix("refused by the token's policy: ")?;
    said.strip_suffix("\"] re-opens it)")?.split_once(" (allow = [\"")
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::not_found(error.to_string())
            .hint("give the module's file with --module or METASLOT_MODULE")
    }
}

const CHECK: &str = "'metaslot config check' says all that is wrong with the configuration";

/// Codes that are about a PIN.
const PIN_CODES: &[ck::Error] = &[
    ck::Error::PIN_EXPIRED,
    ck::Error::PIN_INCORRECT,
    ck::Error::PIN_INVALID,
    ck::Error::PIN_LEN_RANGE,
    ck::Error::PIN_LOCKED,
    ck::Error::PIN_TOO_WEAK,
    ck::Error::USER_NOT_LOGGED_IN,
    ck::Error::USER_PIN_NOT_INITIALIZED,
];

/// Codes in plain words, and what helps; an empty hint is none.
const WORDS: &[(ck::Error, &str, &str)] = &[
    (ck::Error::ACTION_PROHIBITED, "the key or the token's policy does not allow this", ""),
    (ck::Error::ATTRIBUTE_SENSITIVE, "the key is sensitive and is never shown", ""),
    (ck::Error::ATTRIBUTE_READ_ONLY, "an attribute cannot be set this way", ""),
    (ck::Error::ATTRIBUTE_VALUE_INVALID, "an attribute has a value that it cannot have", ""),
    (ck::Error::CURVE_NOT_SUPPORTED, "the module does not have this curve", ""),
    (
        ck::Error::DATA_LEN_RANGE,
        "the data is too long or too short for this mechanism",
        "block ciphers without padding take whole blocks, and RSA less than the key's length",
    ),
    (ck::Error::DEVICE_ERROR, "the token's store failed", "check the store's disk and permissions"),
    (ck::Error::DEVICE_MEMORY, "the token's store is full", "make room on its disk"),
    (ck::Error::FUNCTION_NOT_SUPPORTED, "the module does not have this function", ""),
    (ck::Error::FUNCTION_REJECTED, "the module refused", ""),
    (
        ck::Error::KEY_EXHAUSTED,
        "the key has been used as often as it may be",
        "'metaslot key show' says how many one-time keys are left",
    ),
    (
        ck::Error::KEY_FUNCTION_NOT_PERMITTED,
        "the key may not be used for this",
        "'metaslot key list' shows what each key may be used for",
    ),
    (
        ck::Error::KEY_NOT_WRAPPABLE,
        "this key may not leave under that one",
        "docs/policy.md says which may",
    ),
    (ck::Error::KEY_SIZE_RANGE, "the module refuses a key of this size", ""),
    (ck::Error::KEY_TYPE_INCONSISTENT, "this mechanism needs a key of another type", ""),
    (ck::Error::UNWRAPPING_KEY_SIZE_RANGE, "the module refuses a key of this size", ""),
    (ck::Error::UNWRAPPING_KEY_TYPE_INCONSISTENT, "this mechanism needs a key of another type", ""),
    (
        ck::Error::MECHANISM_INVALID,
        "the module does not have this mechanism",
        "'metaslot mechanisms' lists those that it has",
    ),
    (ck::Error::DOMAIN_PARAMS_INVALID, "the curve parameters are no DER encoding", ""),
    (ck::Error::ENCRYPTED_DATA_INVALID, "the data was changed, or sealed by another key", ""),
    (ck::Error::WRAPPED_KEY_INVALID, "the wrapped key was changed, or wrapped by another key", ""),
    (ck::Error::WRAPPED_KEY_LEN_RANGE, "the wrapped key has a length that it cannot have", ""),
    (ck::Error::MECHANISM_PARAM_INVALID, "the mechanism refuses its parameter", ""),
    (ck::Error::PIN_INCORRECT, "wrong PIN", ""),
    (ck::Error::PIN_INVALID, "the PIN has characters that the token does not take", ""),
    (ck::Error::PIN_LEN_RANGE, "the PIN is too short or too long", ""),
    (
        ck::Error::PIN_LOCKED,
        "the PIN is locked after too many wrong ones",
        "the security officer can set a new user PIN",
    ),
    (ck::Error::PIN_TOO_WEAK, "the token finds this PIN too weak", ""),
    (
        ck::Error::SESSION_EXISTS,
        "a session of this process is open with the token",
        "close every session with it before it is initialised",
    ),
    (ck::Error::SLOT_ID_INVALID, "there is no such slot", "'metaslot token list' shows the slots"),
    (ck::Error::TOKEN_NOT_PRESENT, "there is no token in this slot", ""),
    (ck::Error::TOKEN_NOT_RECOGNIZED, "its store is damaged, or of a newer format", ""),
    (
        ck::Error::TOKEN_WRITE_PROTECTED,
        "the token's store cannot be written by this user",
        "check the owner and mode of its file and directory, and whether the file system is read-only",
    ),
    (ck::Error::USER_NOT_LOGGED_IN, "this needs a login", "give the PIN with --pin-source"),
    (
        ck::Error::USER_PIN_NOT_INITIALIZED,
        "the token has no user PIN yet",
        "initialise it: metaslot token init",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::Function;

    #[test]
    fn a_refusal_names_the_call_and_the_code() {
        let failure: Failure =
            client::Error::new(Function::Sign, ck::Error::KEY_FUNCTION_NOT_PERMITTED).into();
        assert_eq!(
            failure.text(false),
            "error: the key may not be used for this (C_Sign: CKR_KEY_FUNCTION_NOT_PERMITTED)\n\
             hint: 'metaslot key list' shows what each key may be used for\n"
        );
        let failure: Failure =
            client::Error::new(Function::Sign, ck::Error::new(0x8000_0001)).into();
        assert_eq!(failure.text(false), "error: C_Sign returned CKR_0x80000001\n");
    }

    #[test]
    fn what_the_policy_says_is_taken_apart() {
        let detail =
            "refused by the token's policy: a hash is weak (allow = [\"weak\"] re-opens it)";
        assert_eq!(by_policy(detail), Some(("a hash is weak", "weak")));
        assert_eq!(by_policy("the row is damaged"), None);
    }

    #[test]
    fn a_wrong_pin_has_an_exit_code_of_its_own() {
        let failure: Failure = client::Error::new(Function::Login, ck::Error::PIN_INCORRECT).into();
        assert_eq!(failure.json()["error"]["exit"], 4);
        assert_eq!(failure.json()["error"]["function"], "C_Login");
    }

    #[test]
    fn messages_begin_small_and_end_without_a_full_stop() {
        for (code, words, hint) in WORDS {
            for text in [words, hint] {
                assert!(!text.starts_with(char::is_uppercase), "{code}: {text}");
                assert!(!text.ends_with('.'), "{code}: {text}");
            }
        }
    }
}
