// SPDX-License-Identifier: Apache-2.0
//! Everything between one `C_Initialize` and its `C_Finalize`.

use crate::caught::caught;
use metaslot_awslc_wrapper as awslc;
use metaslot_ck::{Error, Result, SlotId};
use metaslot_counters as counters;
use metaslot_engine::Engine;
use metaslot_spi::detail;
use metaslot_wiring::Parts;
use metaslot_wiring::audit::Log;
use metaslot_wiring::cancel::Uncancelled;
use metaslot_wiring::config::Problem;
use metaslot_wiring::config::source::Source;
use metaslot_wiring::environment;
use metaslot_wiring::error_log::{ErrorLog, Wrong};
use metaslot_wiring::outside::is_outside;
use metaslot_wiring::reload::{Stamps, Watch};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The engine, made at the first call that needs it.
#[derive(Debug)]
pub(crate) struct Library {
    engine: OnceLock<std::result::Result<Engine, String>>,
    /// Locked while it is made.
    making: Mutex<()>,
    log: OnceLock<Log>,
    watch: OnceLock<Watch>,
    errors: std::result::Result<Option<ErrorLog>, Wrong>,
    epoch: u32,
}

impl Library {
    pub(crate) fn new(epoch: u32) -> Self {
        let (engine, log, watch) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let making = Mutex::default();
        Self { engine, making, log, watch, errors: ErrorLog::of_environment(), epoch }
    }

    /// Where calls that failed are told, if that is wanted.
    pub(crate) fn errors(&self) -> Option<&ErrorLog> {
        self.errors.as_ref().ok()?.as_ref()
    }

    /// The engine.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` when the configuration is unusable; the detail says why.
    #[inline]
    pub(crate) fn engine(&self) -> Result<&Engine> {
        match self.engine.get() {
            Some(Ok(engine)) => Ok(engine),
            _ => self.first_engine(),
        }
    }

    /// The audit log, where one is configured; known once there is an engine.
    #[inline]
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }

    #[cold]
    fn first_engine(&self) -> Result<&Engine> {
        if is_outside() {
            // The engine is being made by this thread, and waits for the module that calls.
            return Err(Error::FUNCTION_FAILED);
        }
        let _uncancelled = Uncancelled::begin();
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |problem: &dyn Display| {
            detail::set(format_args!("{problem}"));
            Error::DEVICE_ERROR
        };
        if self.engine.get().is_none() {
            let made = self.new_engine();
            if let Err(problem) = made.as_ref()
                && problem.passes
            {
                return Err(refused(problem));
            }
            self.engine.get_or_init(|| made.map_err(|problem| problem.to_string()));
        }
        let engine = self.engine.get().ok_or(Error::GENERAL_ERROR)?;
        engine.as_ref().map_err(|problem| refused(problem))
    }

    fn new_engine(&self) -> std::result::Result<Engine, Problem> {
        if let Err((variable, reason)) = &self.errors {
            return Err(Problem::new(Some(variable.into()), reason.clone()));
        }
        let source = Source::of_environment();
        let stamps = Stamps::of(&source);
        let (config, found) = source.read()?;
        if let Some(log) = Log::of(&config) {
            self.log.get_or_init(|| log);
        }
        let parts = Parts::of(config)
            .map_err(|reason| Problem::new(found.first().map(Path::to_owned), reason))?;
        let (engine, watched) = parts.engine();
        self.watch.get_or_init(|| Watch::new(source, stamps, found, watched));
        Ok(engine)
    }

    /// Takes a changed configuration over, where it is time to look for one.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_configuration(&self) {
        if let (Some(Ok(engine)), Some(watch)) = (self.engine.get(), self.watch.get())
            && watch.is_due()
        {
            caught(|| {
                watch.look(engine, self.log());
                Ok(())
            });
        }
    }

    /// How long a fast login to a slot's token lasts, where one is configured.
    pub(crate) fn fast_login(&self, slot: SlotId) -> Option<Duration> {
        self.watch.get()?.fast_login(slot)
    }

    /// What changes when this library is finalised.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether or not there is a library, the calling thread forks.
    pub(crate) fn before_fork() {
        awslc::fork::before();
        #[cfg(feature = "openssl")]
        metaslot_openssl::fork::before();
    }

    /// Whether or not there is a library, the calling thread has forked, and is in the parent or in the child.
    pub(crate) fn after_fork() {
        #[cfg(feature = "openssl")]
        metaslot_openssl::fork::after();
    }

    /// In a forked child that begins anew.
    pub(crate) fn forked() {
        awslc::fork::in_child();
        environment::forked();
        counters::forked();
    }
}
