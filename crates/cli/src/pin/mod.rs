// SPDX-License-Identifier: Apache-2.0
//! Where a PIN comes from: a file, a command, a service's credentials, or the terminal. Never an
//! option of the command line, which every user of the machine can read.

pub(crate) mod cost;
pub(crate) mod identity;
mod prompt;
mod role;
mod source;
pub(crate) mod tries;

pub(crate) use identity::{identity, only_as_user};
pub(crate) use prompt::{ask, confirm, is_interactive};
pub(crate) use role::Role;
pub(crate) use source::Source;

use crate::failure::{Failure, Result};
use metaslot_client::TokenStatus;
use metaslot_memory::Secret;

/// A PIN that is already set: from `source`, else from the terminal. Nothing is asked for that would not be tried; `status`
/// is how the token's PINs stand, where that is known.
pub(crate) fn existing(
    role: Role,
    token: &str,
    status: Option<&TokenStatus>,
    source: Option<&Source>,
) -> Result<Secret> {
    if let Some(source) = source {
        return source.read();
    }
    if !is_interactive() {
        return Err(missing(role));
    }
    if let Some(why) = status.and_then(|status| tries::in_vain(role.of(status))) {
        return Err(Failure::pin(format!("the {} would not be tried now", role.words())).hint(why));
    }
    prompt::secret(&format!("{} of token '{token}'", role.words()))
}

/// A new PIN: from `source`, else typed twice.
pub(crate) fn chosen(role: Role, token: &str, source: Option<&Source>) -> Result<Secret> {
    if let Some(source) = source {
        return source.read();
    }
    if !is_interactive() {
        return Err(missing(role));
    }
    let first = prompt::secret(&format!("new {} for token '{token}'", role.words()))?;
    let second = prompt::secret(&format!("the same {} again", role.words()))?;
    if first.expose() != second.expose() {
        return Err(Failure::pin("the two PINs differ"));
    }
    Ok(first)
}

/// A new PIN of an identity: from `source`, else typed twice.
pub(crate) fn of_identity(name: &str, source: Option<&str>) -> Result<Secret> {
    if let Some(source) = source {
        return Source::parse(source)?.read();
    }
    if !is_interactive() {
        let missing = format!("no PIN of identity '{name}' given, and no terminal to ask on");
        return Err(Failure::pin(missing)
            .hint("write it into a file that only you can read, and give --new-pin-source FILE"));
    }
    let first = prompt::secret(&format!("new PIN for identity '{name}'"))?;
    if first.expose() != prompt::secret("the same PIN again")?.expose() {
        return Err(Failure::pin("the two PINs differ"));
    }
    Ok(first)
}

/// A passphrase that no token knows: from `source`, else typed, twice when it is a new one.
pub(crate) fn passphrase(source: Option<&str>, chosen: bool) -> Result<Secret> {
    if let Some(source) = source {
        return Source::parse(source)?.read();
    }
    if !is_interactive() {
        return Err(Failure::pin("no passphrase given, and no terminal to ask on")
            .hint("give -k FILE for a key, or --pin-source FILE for a passphrase"));
    }
    let first = prompt::secret("Enter passphrase")?;
    if chosen && first.expose() != prompt::secret("Re-enter passphrase")?.expose() {
        return Err(Failure::pin("the two passphrases differ"));
    }
    Ok(first)
}

/// Asks whether something is to be deleted: "the key", by what makes sure that it is the right one.
pub(crate) fn confirm_deletion(what: &str, question: &str) -> Result<()> {
    if !is_interactive() {
        let message = format!("no terminal to ask on whether to delete {what}");
        return Err(Failure::failed(message).hint("--yes deletes it without asking"));
    }
    match confirm(question)? {
        true => Ok(()),
        false => Err(Failure::failed("nothing was deleted")),
    }
}

fn missing(role: Role) -> Failure {
    Failure::pin(format!("no {} given, and no terminal to ask on", role.words())).hint(format!(
        "write it into a file that only you can read, and give {} FILE or set {}",
        role.option(),
        role.variable()
    ))
}
