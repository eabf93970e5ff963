// SPDX-License-Identifier: Apache-2.0
//! This process and its threads.

use crate::manager::say;
use metaslot_wiring::text::words;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use std::time::{Duration, Instant};
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

/// What a listener waits for that cannot take a connection: without a file to spare, say, until a client has gone.
#[derive(Debug, Default)]
pub(crate) struct Want {
    said: Option<Instant>,
}

impl Want {
    /// So often it is said.
    const AGAIN: Duration = Duration::from_secs(60);

    /// Until it may try again.
    pub(crate) fn wait(&mut self, error: &io::Error) {
        if self.said.is_none_or(|said| said.elapsed() > Self::AGAIN) {
            say(&format!("takes no connection: {}", words(error)));
            self.said = Some(Instant::now());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Begins a thread.
///
/// # Errors
/// Where there is no room for one.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(String::from(name)).spawn(work).map(drop)
}
