// SPDX-License-Identifier: Apache-2.0
//! The configuration, read again while clients are served (SIGHUP).

use crate::manager::{self, say};
use crate::socket::{Socket, group_id};
use crate::tls::{Listener, Server};
use crate::tokens::Tokens;
use metaslot_wiring::audit::Log;
use metaslot_wiring::config::source::Source;
use metaslot_wiring::config::{Config, Reach};
use metaslot_wiring::text::words;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

/// What has to be readable for that: the file's directory, since an editor puts another file in its place. One that has much else,
/// such as `/etc` or a home, stays out of reach, and only the file itself is read.
pub(crate) fn to_be_read_again(file: &Path) -> impl Iterator<Item = PathBuf> {
    let files = [Some(file.to_owned()), fs::canonicalize(file).ok()];
    files.into_iter().flatten().map(|file| match file.parent() {
        Some(directory) if !has_much_else(directory) => directory.to_owned(),
        _ => file,
    })
}

fn has_much_else(directory: &Path) -> bool {
    let is_home = env::var_os("HOME").is_some_and(|home| directory == Path::new(&home));
    directory.components().count() < 3 || is_home
}

/// What serves, and by which configuration.
pub(crate) struct Running<'s> {
    pub(crate) file: PathBuf,
    pub(crate) config: Config,
    /// What the fence leaves.
    pub(crate) reach: Reach,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) sockets: Vec<&'s Socket>,
    pub(crate) listener: Option<Arc<Listener>>,
}

impl Running<'_> {
    /// Reads it again. One that is wrong changes nothing.
    pub(crate) fn reload(&mut self) {
        manager::tell_reloading();
        match self.change() {
            Ok(rest) if rest.is_empty() => say("serves by the configuration as it is now"),
            Ok(rest) => {
                let rest = rest.join(", ");
                say(&format!("serves by the configuration as it is now; after a restart: {rest}"));
            }
            Err(reason) => {
                if let Some(log) = Log::of(&self.config) {
                    log.configured(&self.file, Some(&reason)).ok();
                }
                say(&format!("serves by the configuration as it was: {reason}"));
            }
        }
        manager::tell("READY=1");
    }

    /// What of the configuration as it is now counts after a restart only.
    fn change(&mut self) -> Result<Vec<&'static str>, String> {
        let read = Source::of_file(self.file.clone()).read();
        let (config, _) = read.map_err(|problem| problem.to_string())?;
        let mut rest = self.config.needs_restart(&config);
        let is_behind_landlock =
            self.config.daemon.fence && !self.reach.modules && !self.reach.programs;
        if is_behind_landlock && config.reach().programs {
            // No program of another process is seen from there.
            rest.push("services that are a \"program:\"");
        }
        let another_log = self.config.has_another_log(&config);
        let log = !is_behind_landlock || config.log_is_within(&self.reach);
        if another_log && !log {
            rest.push("audit");
        }
        let config = self.config.with_changes(&config, log);
        // They may have been renewed under their names.
        let shown = self.listener.as_ref().and(config.daemon.listen.as_ref());
        let shown = shown.map(Server::of).transpose()?;
        let audit = Log::of(&config);
        if let Some(log) = &audit {
            let written = log.configured(&self.file, None);
            written
                .map_err(|error| format!("the audit log cannot be written: {}", words(&error)))?;
        }
        self.give_sockets_to(config.daemon.group.as_deref())?;
        if another_log && log {
            self.tokens.log(audit);
        }
        if let (Some(listener), Some(shown)) = (&self.listener, shown) {
            listener.show(shown);
        }
        self.tokens.change(&config.daemon);
        self.tokens.unmet().iter().for_each(|lack| say(lack));
        config.daemon.unreachable().into_iter().for_each(say);
        self.config = config;
        Ok(rest)
    }

    /// To all of them or to none.
    fn give_sockets_to(&self, group: Option<&str>) -> Result<(), String> {
        let old = self.config.daemon.group.as_deref();
        if group == old {
            return Ok(());
        }
        let new = group.map(group_id).transpose()?;
        let given = self.sockets.iter().try_for_each(|socket| socket.give_to(new));
        given.map_err(|error| {
            if let Ok(old) = old.map(group_id).transpose() {
                self.sockets.iter().for_each(|socket| drop(socket.give_to(old)));
            }
            format!("[daemon] group: {error}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_much_else_is_not_readable_for_one_file() {
        let read = |file: &str| Vec::from_iter(to_be_read_again(Path::new(file)));
        assert_eq!(read("/etc/no-such/metaslotd.toml"), [Path::new("/etc/no-such")]);
        for file in ["/no-such.toml", "/etc/no-such.toml"] {
            assert_eq!(read(file), [Path::new(file)]);
        }
        if let Some(home) = env::var_os("HOME").filter(|home| !home.is_empty()) {
            let file = Path::new(&home).join("no-such.toml");
            assert_eq!(Vec::from_iter(to_be_read_again(&file)), [file]);
        }
    }
}
