// SPDX-License-Identifier: Apache-2.0
//! Go's compiler.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::token::{TestToken, target};

/// The first time it fetches modules and compiles them.
const LIMIT: Duration = Duration::from_secs(300);

/// One compilation at a time: two of them would compile Go's own library twice.
static COMPILER: Mutex<()> = Mutex::new(());

/// Has the compiler make `to` of what is in `directory`: a program, or by `words` something else. Its downloads and results are
/// kept below `target`.
///
/// # Errors
///
/// When there is no compiler, or it fails: then with what it wrote.
pub fn compile_go(token: &TestToken, directory: &Path, words: &[&str], to: &Path) -> Result<()> {
    let cache = target().join("go");
    let go = token.program("go").env("GOPATH", &cache).env("GOCACHE", cache.join("cache"));
    let go = go.env("GOFLAGS", "-modcacherw -buildvcs=false").limit(LIMIT).directory(directory);
    let (first, more) = words.split_first().context("no words")?;
    let _alone = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
    go.arg(first).arg("-o").arg(to).args(more).run().map(drop)
}
