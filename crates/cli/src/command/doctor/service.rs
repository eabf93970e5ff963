// SPDX-License-Identifier: Apache-2.0
//! Checks for another user or process: what a service may do, and what it has in fact.

use super::checks::Setup;
use super::finding::Finding;
use super::rights::{open, readable, usable};
use super::user::User;
use crate::encoding::word;
use crate::failure::{Failure, Result};
use crate::places;
use metaslot_ck::rv_name;
use metaslot_counters::read;
use std::fs;
use std::path::{Path, PathBuf};

/// The system's configuration.
const SYSTEM: &str = "/etc/metaslot/metaslot.toml";

/// Who is meant.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) user: User,
    process: Option<Process>,
}

/// A process that runs.
#[derive(Debug)]
struct Process {
    pid: u32,
    program: String,
    /// The files that it has mapped; none where that may not be seen.
    maps: Option<String>,
    /// With what it was started, as far as that can still be seen.
    variables: Option<Vec<String>>,
}

impl Service {
    pub(super) fn named(user: &str) -> Result<Self> {
        let found = User::named(user).ok_or_else(|| {
            Failure::not_found(format!("there is no user '{user}'"))
                .hint("'getent passwd' lists the users")
        })?;
        Ok(Self { user: found, process: None })
    }

    pub(super) fn running(pid: u32) -> Result<Self> {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let gone = || Failure::not_found(format!("there is no process {pid}"));
        let status = fs::read_to_string(place.join("status")).map_err(|_| gone())?;
        let user = User::of_status(&status).ok_or_else(gone)?;
        let environ = fs::read(place.join("environ")).ok();
        let process = Process {
            pid,
            program: fs::read_to_string(place.join("comm")).unwrap_or_default().trim().to_owned(),
            maps: fs::read_to_string(place.join("maps")).ok(),
            variables: environ.map(|bytes| {
                let texts = bytes.split(|byte| *byte == 0).filter(|text| text.contains(&b'='));
                texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
            }),
        };
        Ok(Self { user, process: Some(process) })
    }
}

/// What is found of a service, with the names of the checks.
pub(super) fn look(setup: &Setup<'_>, service: &Service) -> Vec<(&'static str, Finding)> {
    let user = &service.user;
    let mut all = Vec::new();
    if let Some(process) = &service.process {
        all.extend(process.module(setup).map(|finding| ("process", finding)));
        all.push(("environment", process.environment(setup, &user.name, places::named())));
        all.extend(process.errors().into_iter().map(|finding| ("calls", finding)));
    } else {
        all.extend(configuration(setup, user).map(|finding| ("environment", finding)));
    }
    let module = setup.host.as_ref().ok().map(|host| host.module().path());
    let module = module.and_then(|path| fs::canonicalize(path).ok());
    all.extend(module.map(|path| ("access", readable(user, &path, "the module", &open(&path)))));
    for file in &setup.configuration.files {
        all.push(("access", readable(user, file, "the configuration", &open(file))));
    }
    for token in &setup.configuration.tokens {
        all.push(("access", usable(user, token)));
    }
    all
}

/// Which configuration the user has, where nothing is known of the environment.
fn configuration(setup: &Setup<'_>, user: &User) -> Option<Finding> {
    let file = setup.configuration.files.first()?;
    let own = user.home.join(".config/metaslot/metaslot.toml");
    (file != Path::new(SYSTEM) && *file != own).then(|| {
        Finding::warning(
            format!(
                "{} reads {} or {SYSTEM}, and not {}, unless its environment says so",
                user.name,
                own.display(),
                file.display()
            ),
            format!(
                "METASLOT_CONF={} in the service's environment, or move it to {SYSTEM}",
                file.display()
            ),
        )
    })
}

/// Whether a file is the system's configuration, by whatever name, or a drop-in of it.
fn is_systems(file: &Path) -> bool {
    let same = || {
        fs::canonicalize(file).is_ok_and(|file| fs::canonicalize(SYSTEM).is_ok_and(|it| it == file))
    };
    Path::new(SYSTEM).parent().is_some_and(|system| file.starts_with(system)) || same()
}

impl Process {
    fn name(&self) -> String {
        format!("{} (process {})", self.program, self.pid)
    }

    /// Whether it has the module, and the one that is installed now.
    fn module(&self, setup: &Setup<'_>) -> Option<Finding> {
        let library = setup.host.as_ref().ok()?.module().path().file_name()?;
        let name = self.name();
        let Some(maps) = &self.maps else {
            return Some(Finding::warning(
                format!("what {name} has loaded may not be seen"),
                "ask as its user, or as root",
            ));
        };
        let end = format!("/{}", library.to_string_lossy());
        let line = maps.lines().find(|line| line.trim_end_matches(" (deleted)").ends_with(&end));
        Some(match line {
            None => Finding::warning(
                format!("{name} has not loaded the module"),
                "its configuration does not name it, or it was not needed yet: metaslot setup PROGRAM",
            ),
            Some(line) if line.ends_with(" (deleted)") => Finding::warning(
                format!("{name} has a module that was replaced since it was started"),
                "start it again",
            ),
            Some(line) => {
                let path = line.split_once('/').map_or("", |(_, path)| path);
                Finding::ok(format!("{name} has loaded /{path}"))
            }
        })
    }

    /// Whether it goes by the configuration that is in force here.
    fn environment(&self, setup: &Setup<'_>, user: &str, ours: Option<PathBuf>) -> Finding {
        let name = self.name();
        let Some(variables) = &self.variables else {
            return Finding::warning(
                format!("the environment of {name} may not be seen"),
                "ask as its user, or as root",
            );
        };
        let said = variables.iter().find_map(|text| text.strip_prefix("METASLOT_CONF="));
        let ours = ours.map(|ours| ours.display().to_string());
        let file = setup.configuration.files.first();
        if said.is_none() && file.is_some_and(|file| is_systems(file)) && self.has_none_of_its_own()
        {
            return Finding::ok(format!("{name} reads {SYSTEM}, as is read here"));
        }
        match (said, &ours) {
            (Some(said), Some(ours)) if said == ours => {
                Finding::ok(format!("METASLOT_CONF is {said}"))
            }
            (Some(said), _) => Finding::warning(
                format!(
                    "METASLOT_CONF of {name} is {said}, which is not the configuration that is checked here"
                ),
                // The module loads what a configuration names: nobody is to be led to load another one's.
                format!(
                    "as {user}: METASLOT_CONF={} metaslot doctor --pid {}",
                    word(said),
                    self.pid
                ),
            ),
            (None, Some(ours)) => {
                let cleared = if variables.is_empty() { "was cleared" } else { "does not have it" };
                Finding::error(
                    format!(
                        "METASLOT_CONF is {ours} here, and the environment of {name} {cleared}"
                    ),
                    format!(
                        "pass it: 'env METASLOT_CONF;' in nginx.conf, Environment=METASLOT_CONF={ours} in a unit; or move the \
                         configuration to {SYSTEM}"
                    ),
                )
            }
            (None, None) => {
                let file =
                    file.map_or_else(|| String::from("none"), |file| file.display().to_string());
                match variables.is_empty() {
                    false => Finding::ok(format!("no METASLOT_CONF, here and in {name}: {file}")),
                    true => Finding::warning(
                        format!(
                            "the environment of {name} was cleared: it reads {SYSTEM}, and here counts {file}"
                        ),
                        format!("move the configuration to {SYSTEM}"),
                    ),
                }
            }
        }
    }

    /// Whether its variables lead to no configuration in a home.
    fn has_none_of_its_own(&self) -> bool {
        let variables = self.variables.iter().flatten();
        let homes = variables.filter_map(|text| {
            let home = text.strip_prefix("HOME=").map(|home| Path::new(home).join(".config"));
            home.or_else(|| text.strip_prefix("XDG_CONFIG_HOME=").map(PathBuf::from))
        });
        homes.into_iter().all(|home| !home.join("metaslot").exists())
    }

    /// What calls of its failed.
    fn errors(&self) -> Vec<Finding> {
        let directories = places::counters();
        let pages = read::of(self.pid, &directories);
        let codes = pages.iter().flat_map(|page| &page.codes);
        // Questions that programs ask, and not what stands in their way.
        let is_trouble = |code: u64| {
            rv_name(code).is_none_or(|name| {
                ["PIN", "DEVICE", "TOKEN", "LOGGED", "PERMITTED", "PROHIBITED", "GENERAL"]
                    .iter()
                    .any(|part| name.contains(part))
            })
        };
        let finding = |(function, code, count): &(metaslot_ck::Function, u64, u64)| {
            let code = rv_name(*code).map_or_else(|| format!("{code:#x}"), str::to_owned);
            Finding::warning(
                format!("{}: {}: {code}, {count} times", self.name(), function.name()),
                "METASLOT_LOG=stderr in its environment writes why (docs/configuration.md)",
            )
        };
        codes.filter(|row| is_trouble(row.1)).map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use crate::configured::Configuration;

    #[test]
    fn the_same_file_without_the_variable_is_no_warning() {
        let level = |file: &str, ours: Option<&str>, variables: &[&str]| {
            let configuration = Configuration { files: vec![file.into()], ..<_>::default() };
            let setup = Setup {
                host: Err(Failure::failed("not asked")),
                tokens: Ok(Vec::new()),
                configuration,
                providers: Vec::new(),
                ours: true,
            };
            let process = Process {
                pid: 1,
                program: String::from("nginx"),
                maps: None,
                variables: Some(variables.iter().map(|&text| text.to_owned()).collect()),
            };
            process.environment(&setup, "www-data", ours.map(PathBuf::from)).level
        };
        let (system, nowhere) = (Some(SYSTEM), ["HOME=/nonexistent"]);
        assert_eq!(level(SYSTEM, None, &[]), Level::Ok);
        assert_eq!(level("/etc/metaslot/metaslot.d/a.toml", None, &[]), Level::Ok);
        assert_eq!(level(SYSTEM, system, &[]), Level::Ok);
        assert_eq!(level(SYSTEM, system, &nowhere), Level::Ok);
        assert_eq!(level("/srv/web.toml", None, &[]), Level::Warning);
        assert_eq!(level("/srv/web.toml", Some("/srv/web.toml"), &nowhere), Level::Error);
    }
}
