// SPDX-License-Identifier: Apache-2.0
//! The comparison of a token with what its writers logged, in a fresh process.

use super::log::{self, State};
use super::writer;
use crate::token::Token;
use crate::{Failure, Result};
use metaslot_ck::{CKA_LABEL, CKM_AES_CBC, ObjectHandle};
use metaslot_client::{Mechanism, Params, Template};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What was found.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Findings {
    /// Objects whose creation was acknowledged and that no writer destroyed.
    pub(crate) acknowledged: u64,
    /// Of these: not there.
    pub(crate) lost: Vec<String>,
    /// There, but the key does not work.
    pub(crate) broken: Vec<String>,
    /// Objects whose destruction was acknowledged.
    pub(crate) destroyed: u64,
    /// Of these: there again.
    pub(crate) resurrected: Vec<String>,
    /// Objects that a kill left undecided, and how many of them are there.
    pub(crate) undecided: u64,
    pub(crate) undecided_present: u64,
}

/// Prints the findings as JSON.
pub(crate) fn run(module: &Path, logs: &Path) -> Result<()> {
    let token = writer::open(module)?;
    let mut findings = Findings::default();
    for entry in std::fs::read_dir(logs).map_err(|error| Failure::file(logs, &error))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (object, state) in log::states(&log::read(&path)?) {
            findings.compare(&token, &writer::label(&name, object), state)?;
        }
    }
    println!("{}", serde_json::to_string(&findings)?);
    Ok(())
}

impl Findings {
    fn compare(&mut self, token: &Token, label: &str, state: State) -> Result<()> {
        let found = token.session.find(&Template::new().bytes(CKA_LABEL, label))?;
        // Twice the same object would be as wrong as none.
        let whole = matches!(found.as_slice(), [key] if works(token, *key));
        match state {
            State::Present => {
                self.acknowledged += 1;
                if found.is_empty() {
                    self.lost.push(label.to_owned());
                }
            }
            State::Absent => {
                self.destroyed += 1;
                if !found.is_empty() {
                    self.resurrected.push(label.to_owned());
                }
            }
            State::Either => {
                self.undecided += 1;
                self.undecided_present += u64::from(!found.is_empty());
            }
        }
        if !found.is_empty() && !whole {
            self.broken.push(label.to_owned());
        }
        Ok(())
    }
}

/// Whether the key encrypts, and decrypts to the same.
fn works(token: &Token, key: ObjectHandle) -> bool {
    let cbc = Mechanism::with(CKM_AES_CBC, Params::Bytes(&[1; 16]));
    let data = [7; 16];
    let sealed = token.session.encrypt(&cbc, key, &data);
    let opened = sealed.and_then(|sealed| token.session.decrypt(&cbc, key, &sealed));
    opened.is_ok_and(|opened| opened == data)
}
