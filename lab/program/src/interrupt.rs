// SPDX-License-Identifier: Apache-2.0
//! ^C and its like: noticed between two runs, so that what was measured is written and what was made
//! is taken away.

use crate::{Failure, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From its making on, the signals that end a program only leave a mark.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// Someone looks for the mark between two runs, and ends in good order.
static LOOKED_FOR: AtomicBool = AtomicBool::new(false);

impl Interrupt {
    /// Takes the signals. A second one ends the program at once.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new() -> Result<Self> {
        let mark = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&mark))?;
            signal_hook::flag::register(signal, Arc::clone(&mark))?;
        }
        LOOKED_FOR.store(true, Ordering::SeqCst);
        Ok(Self(mark))
    }

    /// From here on the mark is not looked for: what is still to be done takes long in one piece.
    ///
    /// # Errors
    /// A signal came before.
    pub(crate) fn looks_no_more(&self) -> Result<()> {
        LOOKED_FOR.store(false, Ordering::SeqCst);
        self.failure().map_or(Ok(()), Err)
    }

    /// For work that does not look in between: at a signal, `clear` is called and the program ends. While
    /// someone looks for the mark, a signal is theirs.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn ends_after(clear: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let ends = |_: &i32| !LOOKED_FOR.load(Ordering::SeqCst);
            if let Some(signal) = signals.forever().find(ends) {
                clear();
                std::process::exit(128 + signal);
            }
        })?;
        Ok(())
    }

    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The error of a run that was cut short.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.came().then(|| Failure::new("interrupted"))
    }
}
