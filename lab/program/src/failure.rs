// SPDX-License-Identifier: Apache-2.0
//! Why an experiment stopped, and what to do about it.

use std::fmt;
use std::path::Path;

/// A message in lower case without a full stop, and a hint where there is one.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

/// What nearly every function of the lab returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same failure, with what was being done in front.
    pub(crate) fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// A file could not be read or written.
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("{}: {}", path.display(), words(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<metaslot_client::Error> for Failure {
    fn from(error: metaslot_client::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<metaslot_client::LoadError> for Failure {
    fn from(error: metaslot_client::LoadError) -> Self {
        Self::new(error.to_string())
            .hint("name a PKCS#11 library with --module or --rival; --rival none leaves it out")
    }
}

impl From<metaslot_bare::Failed> for Failure {
    fn from(error: metaslot_bare::Failed) -> Self {
        Self::new(format!("raw: {error}"))
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(format!("sqlite: {error}"))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(format!("json: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(words(&error))
    }
}

/// What the system says, without its number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or_else(|| text.clone(), |(words, _)| words.to_owned())
}
