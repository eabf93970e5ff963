// SPDX-License-Identifier: Apache-2.0
//! The files that this process has read: no result takes the place of one.

use crate::failure::{Failure, Result};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

struct Input {
    file: (u64, u64),
    /// What would happen to it.
    refused: String,
}

static READ: Mutex<Vec<Input>> = Mutex::new(Vec::new());

/// From now on a result that would replace this file is refused in these words.
pub(crate) fn keep(file: &Metadata, refused: impl Into<String>) {
    if file.is_file() {
        let input = Input { file: identity(file), refused: refused.into() };
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(input);
    }
}

/// Refuses to write where something is read, under whatever name.
pub(crate) fn refuse_to_replace(written: &Metadata) -> Result<()> {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    match read.iter().find(|input| input.file == identity(written)) {
        Some(input) => {
            Err(Failure::failed(&*input.refused).hint("give -o the name of another file"))
        }
        None => Ok(()),
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}
