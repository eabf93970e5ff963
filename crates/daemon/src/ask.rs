// SPDX-License-Identifier: Apache-2.0
//! PINs and passwords, from where the configuration says that they are: a file, a credential, or the terminal on which the daemon was started.

use crate::manager::say;
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_wiring::config::PinSource;
use metaslot_wiring::text::words;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The longest PIN, in bytes.
const LONGEST: usize = 255;

/// What it says; `what` it is for, for the question.
///
/// # Errors
/// `CKR_PIN_INCORRECT` where there is none; the detail says why.
pub(crate) fn secret(source: &PinSource, what: &str) -> Result<Secret> {
    match source {
        PinSource::Ask => typed(what).map_err(|error| {
            detail::set(format_args!("it cannot be asked for on a terminal: {}", words(&error)));
            Error::PIN_INCORRECT
        }),
        PinSource::File(file) => {
            if is_open_to_others(file) {
                let hint = "others may read or write it (chmod o= helps)";
                say(&format!("{}: {hint}", file.display()));
            }
            source.read()
        }
        PinSource::Credential(_) => source.read(),
    }
}

fn is_open_to_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o006 != 0)
}

fn typed(what: &str) -> io::Result<Secret> {
    let what: String = what.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let typed = metaslot_terminal::secret(
        metaslot_terminal::open()?,
        &format!("metaslotd: {what}"),
        LONGEST,
    )?;
    match typed {
        Some(secret) if !secret.is_empty() => Ok(secret),
        Some(_) => Err(io::Error::other("nothing was typed")),
        None => Err(io::Error::other("cancelled")),
    }
}
