// SPDX-License-Identifier: Apache-2.0
//! Identities: users with names, in whose place a command logs in.

use super::{is_interactive, prompt, source::Source};
use crate::failure::{Failure, Result};
use metaslot_memory::Secret;
use metaslot_spi::store::Name;
use std::env;
use std::ffi::OsString;

/// Names who logs in where no option does, as `METASLOT_PIN_SOURCE` names where the PIN is.
const VARIABLE: &str = "METASLOT_IDENTITY";

/// The name of an identity.
pub(crate) fn name(text: &str) -> Result<Name> {
    Name::new(text.as_bytes()).ok_or_else(|| {
        let long = (text.len() > Name::LONGEST).then(|| format!("; this one has {}", text.len()));
        let long = long.unwrap_or_default();
        Failure::usage(format!("a name has 1 to 64 bytes of UTF-8, all of which can be seen{long}"))
    })
}

/// As whom a command logs in: the option, then the variable. `None` for the user without a name.
pub(crate) fn identity(option: Option<&str>) -> Result<Option<Name>> {
    match option {
        Some(option) => name(option).map(Some).map_err(|failure| failure.context("--identity")),
        // What is no text is no name, and no reason to try the PIN as the user's.
        None => of_environment()
            .map(|text| text.to_str().map_or_else(|| name(""), name))
            .transpose()
            .map_err(|failure| failure.context(VARIABLE)),
    }
}

fn of_environment() -> Option<OsString> {
    env::var_os(VARIABLE).filter(|text| !text.is_empty())
}

/// What logs in as the user only does not try the PIN of an identity as the user's: that would count.
pub(crate) fn only_as_user() -> Result<()> {
    match of_environment() {
        None => Ok(()),
        Some(_) => {
            let what = format!("an identity cannot do this, and {VARIABLE} names one");
            Err(Failure::usage(what).hint(format!("unset {VARIABLE}, and give the user's PIN")))
        }
    }
}

/// The PIN of one, that is set: from `source`, else from the terminal.
pub(crate) fn existing(name: Name, token: &str, source: Option<&Source>) -> Result<Secret> {
    let name = name.as_str();
    if let Some(source) = source {
        return source.read();
    }
    if !is_interactive() {
        let missing = format!("no PIN of identity '{name}' given, and no terminal to ask on");
        return Err(Failure::pin(missing).hint(
            "write it into a file that only you can read, and give --pin-source FILE or set METASLOT_PIN_SOURCE",
        ));
    }
    prompt::secret(&format!("PIN of identity '{name}' of token '{token}'"))
}
