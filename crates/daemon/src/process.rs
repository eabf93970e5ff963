// SPDX-License-Identifier: Apache-2.0
//! This process and its threads.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use std::{io, thread};

/// No core dump, and no debugger but root's.
pub(crate) fn keep_memory_to_itself() {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
}

/// Each connection takes one, and more than the usual thousand may be had.
pub(crate) fn take_all_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
}

/// Begins a thread.
///
/// # Errors
/// Where there is no room for one.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(String::from(name)).spawn(work).map(drop)
}
