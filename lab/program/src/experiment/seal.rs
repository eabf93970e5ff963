// SPDX-License-Identifier: Apache-2.0
//! The digests of a finished experiment. They show what was changed afterwards, by mistake or in
//! haste; they do not stop anybody who changes the seal as well.

use super::{AGAIN, DERIVED, LOG, MANIFEST, PLAN, SAMPLES, SEAL};
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// What every sealed experiment has.
const FILES: [&str; 4] = [MANIFEST, PLAN, SAMPLES, LOG];

/// `seal.json`.
#[derive(Debug, Deserialize, Serialize)]
struct Seal {
    sha256: BTreeMap<String, String>,
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digest = [0; 32];
    metaslot_bare::sha256(bytes, &mut digest);
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

/// Seals a directory whose files are all there.
pub(super) fn seal(directory: &Path) -> Result<()> {
    let mut sha256 = BTreeMap::new();
    let mut names = Vec::new();
    collect(directory, "", &mut names).map_err(|error| Failure::file(directory, &error))?;
    for name in names {
        let bytes = read(directory, &name)?;
        sha256.insert(name, digest(&bytes));
    }
    replace(directory, SEAL, &serde_json::to_vec_pretty(&Seal { sha256 })?)
}

/// The names of all files in the directory and below it, but of those that are no part of it.
fn collect(directory: &Path, before: &str, names: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), names)?;
        } else if name != SEAL && name != DERIVED {
            names.push(name);
        }
    }
    Ok(())
}

/// Whether there is a seal, and it holds.
///
/// # Errors
/// A file was changed or is gone; all of them are named.
pub(super) fn check(directory: &Path) -> Result<bool> {
    let text = match fs::read(directory.join(SEAL)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        other => other.map_err(|error| Failure::file(&directory.join(SEAL), &error))?,
    };
    let seal: Seal =
        serde_json::from_slice(&text).map_err(|error| Failure::from(error).context(SEAL))?;
    // What is read where it is there says something, too.
    let added = [AGAIN].into_iter().filter(|name| directory.join(name).exists());
    let absent = FILES.into_iter().chain(added).filter(|name| !seal.sha256.contains_key(*name));
    let mut wrong: Vec<String> = absent.map(|name| format!("{name} is not in the seal")).collect();
    for (name, sealed) in &seal.sha256 {
        match fs::read(directory.join(name)) {
            Ok(bytes) if digest(&bytes) == *sealed => {}
            Ok(_) => wrong.push(format!("{name} was changed")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    if wrong.is_empty() {
        return Ok(true);
    }
    Err(Failure::new(format!("the seal is broken: {}", wrong.join(", ")))
        .hint("take the experiment from where it was copied, or measure again"))
}

pub(super) fn read(directory: &Path, name: &str) -> Result<Vec<u8>> {
    let path = directory.join(name);
    fs::read(&path).map_err(|error| Failure::file(&path, &error))
}

/// Writes a whole file or none of it: a reader never meets half of one.
pub(super) fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (new, path) = (directory.join(format!("{name}.new")), directory.join(name));
    let write = || {
        let mut file = fs::File::create(&new)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().map_err(|error| Failure::file(&path, &error))
}
