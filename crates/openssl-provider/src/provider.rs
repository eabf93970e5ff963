// SPDX-License-Identifier: Apache-2.0
//! One loaded provider: its configuration and its tokens.

use crate::abi::Core;
use crate::bulk::sessions::{Bulk, Whose};
use crate::failure::{Failure, Reason, Result};
use crate::host::{Host, Token, lock};
use crate::pin::{Pin, Pins, is_refused};
use metaslot_ck::{Error, SlotId};
use metaslot_client::uri::Uri;
use metaslot_client::{LIBRARY, Module};
use metaslot_memory::PerProcess;
use std::cell::Cell;
use std::ffi::CStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// For so long a failure is not said again.
const QUIET: Duration = Duration::from_secs(1);

/// What every key and every context of the provider refers to.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) core: Core,
    pub(crate) mode: Mode,
    /// Whether operations pause the jobs that they are called in.
    pub(crate) async_jobs: bool,
    /// Whether OpenSSL itself does, in mode `all`, what a module that cannot be loaded does not do.
    pub(crate) fallback: bool,
    /// Whether it offers hybrid groups of TLS.
    pub(crate) hybrid_groups: bool,
    /// What was last said on standard error, and when, where failures are said there.
    said: Option<Mutex<Option<(Instant, String)>>>,
    config: Config,
    host: PerProcess<Mutex<Host>>,
    /// What tokens took. Apart from the rest, whose lock is often held when a program with threads forks.
    pins: PerProcess<Mutex<Pins>>,
    bulk: PerProcess<Bulk>,
}

/// What is offered of the tables.
#[derive(Debug)]
pub(crate) enum Offer {
    /// All rows: what the module does not have is said where it is used.
    All,
    /// Rows whose mechanisms the token has.
    Of(Arc<Token>),
    Nothing,
}

thread_local! {
    /// This thread loads the module, or asks it with a lock held; it may be made of libcrypto itself and ask that for algorithms.
    static LOADING: Cell<bool> = const { Cell::new(false) };
}

/// What is done by the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What has a URI.
    Keys,
    /// Whatever the module can do: keys that the program loads itself, too.
    All,
}

/// What its section in openssl.cnf says.
#[derive(Debug)]
struct Config {
    module: Option<PathBuf>,
    /// This provider's own file.
    file: Option<PathBuf>,
    pin: Option<Pin>,
    pin_source: Option<String>,
    /// What is wrong with it.
    wrong: Option<String>,
}

/// Asks the user for the PIN of what is named.
pub(crate) type Ask<'a> = &'a dyn Fn(&str) -> Option<Pin>;

/// Where the program cannot be asked.
pub(crate) fn no_question(_: &str) -> Option<Pin> {
    None
}

impl Provider {
    /// Reads the configuration; the module is loaded when it is needed first. OpenSSL goes on in silence without a provider that does not start: what is
    /// wrong is said by whatever is done, of which nothing goes to another provider.
    pub(crate) fn new(core: Core) -> Self {
        let mut wrong = None;
        // Whether it is the second word.
        let mut is = |name: &CStr, words: [&str; 2]| {
            let said = core.configured(name).unwrap_or_else(|| words[0].to_owned());
            let place = words.iter().position(|word| *word == said);
            if place.is_none() {
                let ([first, second], name) = (words, name.to_string_lossy());
                wrong = Some(format!("{name} = {said}: it is '{first}' or '{second}'"));
            }
            place.map(|place| place == 1)
        };
        let all = is(c"mode", ["keys", "all"]).unwrap_or(true);
        let mode = if all { Mode::All } else { Mode::Keys };
        let mut yes = |name| is(name, ["no", "yes"]).unwrap_or_default();
        let (async_jobs, fallback) = (yes(c"async-jobs"), yes(c"fallback"));
        // As `mode = all` has them by itself.
        let usual = if all { ["yes", "no"] } else { ["no", "yes"] };
        let hybrid_groups = is(c"hybrid-groups", usual).unwrap_or_default() != all;
        let said = is(c"errors", ["queue", "stderr"]).unwrap_or(true).then(Mutex::default);
        let config = Config {
            module: core.configured(c"pkcs11-module").map(PathBuf::from),
            file: core.configured(c"module-filename").map(PathBuf::from),
            pin: core.configured(c"pin").map(Pin::taken),
            pin_source: core.configured(c"pin-source"),
            wrong,
        };
        let host = PerProcess::new(|_| Mutex::default());
        let (pins, bulk) = (PerProcess::new(Pins::after), PerProcess::new(Bulk::new));
        Self { core, mode, async_jobs, fallback, hybrid_groups, said, config, host, pins, bulk }
    }

    /// Puts a failure into libcrypto's queue, and on standard error where the configuration wants that.
    pub(crate) fn raise(&self, failure: &Failure) {
        let text = shown(&failure.text);
        self.core.raise(failure.reason as u32, &text);
        if let Some(said) = &self.said {
            self.say(said, failure.reason.name(), text);
        }
    }

    /// One line; not again what has just been said, for libcrypto asks one decoder after the other. A forked child may find the lock taken.
    fn say(&self, said: &Mutex<Option<(Instant, String)>>, reason: &str, text: String) {
        let Ok(mut last) = said.try_lock() else { return };
        let now = Instant::now();
        let is_new = last
            .as_ref()
            .is_none_or(|(then, before)| *before != text || now.duration_since(*then) >= QUIET);
        if is_new {
            let line = format!("metaslot: {reason}: {text}\n");
            io::stderr().write_all(line.as_bytes()).ok();
            *last = Some((now, text));
        }
    }

    /// What this process has of the module.
    pub(crate) fn host(&self) -> MutexGuard<'static, Host> {
        lock(self.host.get())
    }

    fn pins(&self) -> MutexGuard<'static, Pins> {
        lock(self.pins.get())
    }

    /// The end.
    pub(crate) fn close(&self) {
        self.pins().clear();
        self.bulk().close();
        self.host().close();
    }

    /// Loaded and initialised, once in each process.
    pub(crate) fn module(&self) -> Result<Module> {
        let mut host = self.host();
        if let Some(module) = host.module() {
            return Ok(module);
        }
        if let Some(wrong) = &self.config.wrong {
            return Err(Failure::new(Reason::Configuration, wrong));
        }
        let path = self.config.module.clone().or_else(|| self.config.installed());
        let path = path.ok_or_else(|| {
            let text = format!("{LIBRARY} is not installed: name a module by 'pkcs11-module'");
            Failure::new(Reason::Configuration, text)
        })?;
        LOADING.set(true);
        let loaded = host.load(&path);
        LOADING.set(false);
        loaded
    }

    /// The token of what is in none: session objects of keys that the program has, digests.
    pub(crate) fn any(&self) -> Result<Arc<Token>> {
        if let Some(token) = self.host().any() {
            return Ok(token);
        }
        let found = self.tokens(&Uri::default())?.into_iter().next();
        let found = found.ok_or_else(|| Failure::new(Reason::NotFound, "there is no token"))?;
        self.host().set_any(&found);
        Ok(found)
    }

    /// What of the tables is offered.
    pub(crate) fn offer(&self) -> Offer {
        if self.mode == Mode::Keys {
            return Offer::All;
        }
        match self.any() {
            Ok(token) => Offer::Of(token),
            Err(_) if self.fallback => Offer::Nothing,
            Err(_) => Offer::All,
        }
    }

    /// Whether libcrypto asks on behalf of the module that is being loaded.
    pub(crate) fn is_loading() -> bool {
        LOADING.get()
    }

    /// The tokens that a URI may mean.
    pub(crate) fn tokens(&self, uri: &Uri) -> Result<Vec<Arc<Token>>> {
        let module = self.module()?;
        let failed = |error| Failure::call("list the tokens", error, module.detail());
        let mut found = Vec::new();
        let slots = match module.slots(true) {
            // Another part of the program has finalised it.
            Err(error) if error.code == Error::CRYPTOKI_NOT_INITIALIZED => {
                self.host().revive();
                module.slots(true)
            }
            listed => listed,
        };
        for slot in slots.map_err(failed)? {
            found.extend(self.token(&module, slot, uri));
        }
        Ok(found)
    }

    /// The token in a slot, if it is the URI's.
    fn token(&self, module: &Module, slot: SlotId, uri: &Uri) -> Option<Arc<Token>> {
        let info = module.token_info(slot).ok()?;
        let meant = uri.is_of(slot, &info) && is_of_library(uri, module);
        meant.then(|| {
            // It asks the module for mechanisms.
            LOADING.set(true);
            let token = self.host().token(module, slot, info);
            LOADING.set(false);
            token
        })
    }

    /// Logs in to the token, if it wants that.
    pub(crate) fn login(&self, token: &Token, uri: &Uri, ask: Ask<'_>) -> Result<()> {
        if let Some(pin) = token.login(|| self.pin(token, uri, ask))? {
            self.pins().add(token.whose(), pin);
        }
        Ok(())
    }

    /// The URI's PIN, the one that the token took before, the configuration's, or the user's.
    pub(crate) fn pin(&self, token: &Token, uri: &Uri, ask: Ask<'_>) -> Result<Option<Pin>> {
        if let Some(pin) = &uri.pin_value {
            return Ok(Some(Pin::new(pin.expose())));
        }
        let whose = token.whose();
        let known = self.pins().get(&whose).cloned();
        // The token's PIN may have been changed since.
        let known = known.filter(|pin| !is_refused(&whose, pin));
        if let Some(source) = &uri.pin_source {
            // The worker of a server may have no right to the file that its master read.
            return Pin::read(source).or_else(|failure| known.ok_or(failure)).map(Some);
        }
        if known.is_some() {
            return Ok(known);
        }
        match (&self.config.pin, &self.config.pin_source) {
            (Some(pin), _) => Ok(Some(pin.clone())),
            (None, Some(source)) => Pin::read(source).map(Some),
            (None, None) => Ok(ask(&shown(&format!("PIN of token {}", token.label())))),
        }
    }
}

/// What goes into a log or to a terminal: labels of tokens, which are others' words, begin no line of their own there.
fn shown(text: &str) -> String {
    text.replace(char::is_control, " ")
}

impl Whose for Provider {
    #[inline]
    fn bulk(&self) -> &'static Bulk {
        self.bulk.get()
    }

    fn any(&self) -> Result<Arc<Token>> {
        Self::any(self)
    }
}

impl Config {
    /// Our module: beside the provider, where both are installed, or where the system keeps modules.
    fn installed(&self) -> Option<PathBuf> {
        let directory = self.file.as_deref().and_then(Path::parent);
        let places = directory
            .into_iter()
            .flat_map(|directory| ["../pkcs11", "."].map(|place| directory.join(place)));
        let mut files = places.map(|place| place.join(LIBRARY));
        files.find(|file| file.exists()).or_else(metaslot_client::installed)
    }
}

fn is_of_library(uri: &Uri, module: &Module) -> bool {
    if (&uri.library_description, &uri.library_manufacturer, uri.library_version)
        == (&None, &None, None)
    {
        return true;
    }
    module.info().is_ok_and(|info| {
        let same = |wanted: &Option<String>, said: &String| {
            wanted.as_ref().is_none_or(|wanted| wanted == said)
        };
        same(&uri.library_description, &info.description)
            && same(&uri.library_manufacturer, &info.manufacturer)
            && uri.library_version.is_none_or(|wanted| wanted == info.library_version)
    })
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_label_begins_no_line_of_its_own_in_a_log() {
        assert_eq!(shown("token a\nb\u{1b}[31m\0"), "token a b [31m ");
    }
}
