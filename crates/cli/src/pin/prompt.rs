// SPDX-License-Identifier: Apache-2.0
//! Questions on the terminal.

use super::source::LONGEST;
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::waiting::Question;
use metaslot_memory::Secret;
use metaslot_terminal::open;
use std::io::{self, IsTerminal, Read, Write};

/// Whether there is a terminal to ask on.
pub(crate) fn is_interactive() -> bool {
    io::stderr().is_terminal() && open().is_ok()
}

/// Asks a question whose answer is shown; true for `y` or `yes`.
pub(crate) fn confirm(question: &str) -> Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks a question, and gives the line that is typed.
pub(crate) fn ask(question: &str) -> Result<String> {
    let mut terminal = open().map_err(cannot)?;
    let _question = Question::begin();
    write!(terminal, "{}", printable(question)).map_err(cannot)?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while terminal.read(&mut byte).map_err(cannot)? == 1 && byte[0] != b'\n' {
        answer.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Asks for something secret.
pub(crate) fn secret(question: &str) -> Result<Secret> {
    let terminal = open().map_err(cannot)?;
    let _question = Question::begin();
    let typed = metaslot_terminal::secret(terminal, &printable(question), LONGEST);
    match typed.map_err(cannot)? {
        Some(secret) if !secret.is_empty() => Ok(secret),
        Some(_) => Err(Failure::pin("nothing was typed")),
        None => Err(Failure::pin("cancelled")),
    }
}

fn cannot(error: io::Error) -> Failure {
    Failure::io("cannot ask on the terminal", &error)
}
