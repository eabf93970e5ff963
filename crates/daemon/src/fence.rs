// SPDX-License-Identifier: Apache-2.0
//! The fence: what this thread, and those that it starts, cannot do any more once everything is open. Landlock keeps files
//! away, seccomp system calls; a kernel that has neither is used without.

use crate::calls;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use metaslot_wiring::config::Reach;
use std::path::PathBuf;

/// What the C library, the keystore and the look at a client's control group read.
const READ: [&str; 6] = [
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/etc/group",
    "/etc/passwd",
    "/dev/urandom",
];

/// Puts it up. Gives what of it is not there, and why; `sockets` are directories out of which sockets are removed.
#[must_use]
pub fn put_up(reach: &Reach, sockets: &[PathBuf]) -> Vec<String> {
    let mut lacks = Vec::new();
    if reach.modules {
        lacks.push(String::from(
            "not fenced: what a module of a [[foreign]] section needs is unknown",
        ));
        return lacks;
    }
    if reach.programs {
        // The kernel shows a process behind it the programs of no process outside.
        lacks.push(String::from("not fenced by Landlock: a [[client]] is known by its program"));
    } else if let Err(reason) = landlock(reach, sockets) {
        lacks.push(format!("not fenced by Landlock: {reason}"));
    }
    if let Err(reason) = calls::limit(reach) {
        lacks.push(format!("not fenced by seccomp: {reason}"));
    }
    lacks
}

fn landlock(reach: &Reach, sockets: &[PathBuf]) -> Result<(), String> {
    let status = rules(reach, sockets).and_then(RulesetCreated::restrict_self);
    let status = status.map_err(|error| error.to_string())?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(String::from("the kernel does not have it")),
        // An older kernel fences fewer things.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// All of what is not named is closed, and TCP and signals to others, too.
fn rules(reach: &Reach, sockets: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let keep: BitFlags<AccessFs> = read
        | change
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V5))?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(READ, read))?
        .add_rules(path_beneath_rules(["/dev/null"], change))?
        .add_rules(path_beneath_rules(&reach.read, read))?
        .add_rules(path_beneath_rules(&reach.changed, change))?
        .add_rules(path_beneath_rules(&reach.directories, keep))?
        .add_rules(path_beneath_rules(sockets, AccessFs::RemoveFile))
}
