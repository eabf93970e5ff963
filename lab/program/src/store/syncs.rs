// SPDX-License-Identifier: Apache-2.0
//! How often the disk is asked to keep what was written, per acknowledged create: counted by
//! `strace`, where it is installed.

use super::holder::{Request, ask};
use crate::child::Child;
use crate::role::Role;
use crate::sandbox::Store;
use crate::{Failure, Result};
use std::path::Path;
use std::process::Command;

const CREATES: u64 = 200;

/// Syncs per create; `None` where there is no `strace`, or where it may not trace.
pub(crate) fn per_create(store: &Store, module: &Path, seed: u64) -> Result<Option<f64>> {
    let trace = store.file("syncs.strace");
    let role = Role::Holder { module: module.to_owned(), make: false };
    let inner = store.command(&role)?;
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o"]);
    command.arg(&trace).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let Ok(mut holder) = Child::start(command) else {
        return Ok(None);
    };
    // Opening and the first create sync for other reasons.
    if ask(&mut holder, &Request::CreateCount { count: 1, seed }).is_err() {
        return Ok(None);
    }
    let before = count(&trace)?;
    ask(&mut holder, &Request::CreateCount { count: CREATES, seed: seed + 1 })?;
    let after = count(&trace)?;
    holder.end()?;
    Ok(Some((after - before) as f64 / CREATES as f64))
}

fn count(trace: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(trace).map_err(|error| Failure::file(trace, &error))?;
    Ok(text.lines().filter(|line| line.contains("sync")).count())
}
