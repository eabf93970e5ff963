// SPDX-License-Identifier: Apache-2.0
//! The line on a terminal that says, after a second, that a command is at work.

use crate::output::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Whether a question is on the terminal, which the line would take the place of.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// A question on the terminal, until this goes.
#[derive(Debug)]
pub(crate) struct Question;

impl Question {
    pub(crate) fn begin() -> Self {
        IS_ASKED.store(true, Ordering::SeqCst);
        Self
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        IS_ASKED.store(false, Ordering::SeqCst);
    }
}

/// It stays until this goes.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    state: Arc<State>,
    line: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes.
    done: AtomicU64,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Waiting {
    /// What is done; of so many bytes, where that is known.
    pub(crate) fn new(output: Output, what: impl Into<String>, total: Option<u64>) -> Self {
        let state = Arc::new(State::default());
        if !output.shows_progress() {
            return Self { state, line: None };
        }
        let (shared, what) = (Arc::clone(&state), what.into());
        let line = thread::Builder::new().spawn(move || shared.tell(output, &what, total));
        Self { state, line: line.ok() }
    }

    /// So many bytes more.
    pub(crate) fn advance(&self, bytes: usize) {
        self.state.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl State {
    fn tell(&self, output: Output, what: &str, total: Option<u64>) {
        let (mut begun, mut is_shown) = (Instant::now(), false);
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let wait = self.over.wait_timeout_while(is_over, SECOND, |is_over| !*is_over);
            is_over = wait.unwrap_or_else(PoisonError::into_inner).0;
            if *is_over {
                break;
            }
            if IS_ASKED.load(Ordering::SeqCst) {
                // Who answers is waited for, and not the command.
                begun = Instant::now();
                continue;
            }
            is_shown = true;
            let seconds = begun.elapsed().as_secs();
            let done = self.done.load(Ordering::Relaxed);
            let share = total.filter(|total| *total > 0).map(|total| {
                format!(", {} %", done.saturating_mul(100).checked_div(total).unwrap_or_default())
            });
            output.rewrite(&format!("{what}{}, {seconds} s", share.unwrap_or_default()));
        }
        if is_shown {
            output.rewrite("");
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *self.state.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.over.notify_all();
        if let Some(line) = self.line.take() {
            // It has nothing left to do.
            line.join().unwrap_or_default();
        }
    }
}
