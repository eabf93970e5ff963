// SPDX-License-Identifier: Apache-2.0
//! Checks of files and directories.

use super::checks::Setup;
use super::finding::{Finding, cannot};
use super::rights::denied;
use crate::configured::TokenSection;
use crate::encoding::word;
use crate::places::{config_home, how_to_make};
use metaslot_client::DIRECTORIES;
use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use rustix::process::geteuid;
use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bits of a file's mode.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const OTHERS: u32 = 0o007;
const OTHERS_ENTER: u32 = 0o001;
const SET_GROUP: u32 = 0o2000;

/// What the log of a token takes for a change or two, in bytes.
const ROOM: u64 = 64 * 1024;

/// Where p11-kit looks for module files, beside the user's own directory.
const P11_KIT: [&str; 2] = ["/etc/pkcs11/modules", "/usr/share/p11-kit/modules"];

pub(super) fn tokens(setup: &Setup<'_>) -> Vec<Finding> {
    setup.configuration.tokens.iter().flat_map(token).collect()
}

/// The store's file and its directory.
fn token(section: &TokenSection) -> Vec<Finding> {
    let path = &section.path;
    let parent = path.parent().unwrap_or(path);
    if let Some(denied) = denied(path, 0, path.symlink_metadata().map(drop)) {
        return vec![denied];
    }
    let Ok(directory) = parent.metadata() else {
        return vec![Finding::ok(format!("{}: not made yet", path.display()))];
    };
    let shared = directory.mode() & SET_GROUP != 0;
    let mut findings = Vec::new();
    if directory.mode() & OTHERS_WRITE != 0 {
        let found = format!("{}: every user may write this directory", parent.display());
        findings.push(Finding::error(found, format!("chmod o-w {}", word(parent.display()))));
    }
    if !is_own(&directory) && !shared {
        let found =
            format!("{}: this directory belongs to user {}", parent.display(), directory.uid());
        findings.push(Finding::error(
            found,
            "give it to this user, or share it: group in the configuration",
        ));
    }
    findings.extend(full(path, parent));
    match path.symlink_metadata() {
        Ok(file) if file.mode() & OTHERS != 0 && directory.mode() & OTHERS_ENTER != 0 => findings
            .push(Finding::error(
                format!(
                    "{}: mode {:o}: other users may open it",
                    path.display(),
                    file.mode() & 0o777
                ),
                format!("chmod o= {}*", word(path.display())),
            )),
        Ok(file) if !is_own(&file) && !shared => findings.push(Finding::error(
            format!("{} belongs to user {}", path.display(), file.uid()),
            "give it to this user, or share it: group in the configuration",
        )),
        Ok(file) if findings.is_empty() => findings.push(Finding::ok(format!(
            "{}: mode {:o}",
            path.display(),
            file.mode() & 0o777
        ))),
        Ok(_) => {}
        Err(_) => findings.push(Finding::ok(format!("{}: not made yet", path.display()))),
    }
    findings
}

/// Where there is no room for a change of the store.
fn full(path: &Path, directory: &Path) -> Option<Finding> {
    let system = statvfs(directory).ok()?;
    let blocks = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    let left = blocks.saturating_mul(system.f_frsize);
    // One without a limit, or that does not say it, has no blocks at all.
    let is_limited = system.f_blocks > 0 && !system.f_flag.contains(StatVfsMountFlags::RDONLY);
    (left < ROOM && is_limited).then(|| {
        let found = format!("{}: {left} bytes are left on its disk", path.display());
        Finding::error(found, "make room: until then keys are used, and none are made or changed")
    })
}

fn is_own(metadata: &Metadata) -> bool {
    [geteuid().as_raw(), 0].contains(&metadata.uid())
}

pub(super) fn peppers(setup: &Setup<'_>) -> Vec<Finding> {
    let paths = setup.configuration.tokens.iter().filter_map(|token| token.pepper.as_ref());
    let one = |path: &PathBuf| {
        let opened = File::open(path).map(drop);
        denied(path, 0o4, opened).unwrap_or_else(|| pepper(path))
    };
    paths.map(one).collect()
}

fn pepper(path: &Path) -> Finding {
    match path.metadata() {
        Err(error) => Finding::error(
            format!("{}: no PIN is right without it", cannot(path, &error)),
            "put it back; for a token that is still to be made: head -c 32 /dev/urandom",
        ),
        Ok(file) if file.mode() & (OTHERS | GROUP_WRITES) != 0 => Finding::error(
            format!("{}: mode {:o}: refused", path.display(), file.mode() & 0o777),
            format!("chmod 600 {}", word(path.display())),
        ),
        Ok(_) => Finding::ok(path.display()),
    }
}

pub(super) fn anchors(setup: &Setup<'_>) -> Vec<Finding> {
    setup.configuration.tokens.iter().map(anchor).collect()
}

fn anchor(section: &TokenSection) -> Finding {
    let Some(path) = &section.anchor else {
        let path = section.path.display();
        return Finding::ok(format!(
            "{path}: none: an older copy of the whole file is not noticed"
        ));
    };
    let opened = OpenOptions::new().read(true).append(true).open(path).map(drop);
    if let Some(denied) = denied(path, 0o6, opened) {
        return denied;
    }
    match path.metadata() {
        Err(error) => Finding::error(
            cannot(path, &error),
            "it begins as an empty file that the token's users may write",
        ),
        Ok(_) if path.parent() == section.path.parent() => Finding::warning(
            format!("{} lies beside the token: one copy brings both back", path.display()),
            "keep it in a directory of another owner",
        ),
        Ok(_) => Finding::ok(path.display()),
    }
}

/// Whether programs that ask p11-kit see the module.
pub(super) fn p11_kit(setup: &Setup<'_>) -> Vec<Finding> {
    let Ok(host) = &setup.host else { return Vec::new() };
    let library = host.module().path();
    // Of root p11-kit reads no file of the user's.
    let is_root = geteuid().is_root();
    let own = config_home().filter(|_| !is_root).map(|own| own.join("pkcs11/modules"));
    let place = own.clone().unwrap_or_else(|| PathBuf::from(P11_KIT[0]));
    let directories = own.into_iter().chain(P11_KIT.map(PathBuf::from));
    let entries = directories.filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let named = entries.flatten().find_map(|entry| {
        let named = named_module(&entry.path())?;
        (named.file_name() == library.file_name()).then(|| (entry.path(), named))
    });
    let plain = fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    let Some((file, named)) = named else {
        return vec![Finding::warning(
            "unknown to p11-kit: programs that ask it (curl, GnuTLS) do not see the tokens",
            format!(
                "write 'module: {}' into {}",
                plain.display(),
                word(place.join("metaslot.module").display())
            ),
        )];
    };
    let installed = DIRECTORIES.iter().any(|directory| Path::new(directory).join(&named).exists());
    vec![match named.exists() || named.is_relative() && installed {
        true => Finding::ok(file.display()),
        false => Finding::error(
            format!("{} names {}, which is not there", file.display(), named.display()),
            format!("write 'module: {}' into it", plain.display()),
        ),
    }]
}

/// What a module file of p11-kit names.
fn named_module(file: &Path) -> Option<PathBuf> {
    if file.extension()? != "module" {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| Some(line.trim().strip_prefix("module:")?.trim().into()))
}

pub(super) fn counters(setup: &Setup<'_>) -> Vec<Finding> {
    if !setup.ours {
        return Vec::new();
    }
    if setup.configuration.counters_off {
        return vec![Finding::ok("counters = false: 'metaslot stat' shows nothing")];
    }
    let named = setup.configuration.counters.clone().map(|named| vec![named]);
    let directories = named.unwrap_or_else(|| metaslot_counters::directories().collect());
    vec![match directories.iter().find(|directory| directory.is_dir()) {
        Some(directory) if access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() => {
            Finding::warning(
                format!("this user may not write into {}: nothing is counted", directory.display()),
                format!("for every user: chmod 1777 {}", word(directory.display())),
            )
        }
        Some(directory) => Finding::ok(directory.display()),
        None => {
            let any: Vec<_> = directories.iter().map(|path| how_to_make(path)).collect();
            Finding::warning(
                "no directory for counters: 'metaslot stat' shows nothing",
                any.join(", or "),
            )
        }
    }]
}
