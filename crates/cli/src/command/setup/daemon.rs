// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --daemon`: the key is in `metaslotd`, and the program has neither the token's file nor its PIN.

use super::program::{Bridge, Plan, Program};
use crate::failure::{Failure, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use std::env;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The program's configuration, in the place of one with a token.
const FILE: &str = "metaslot-daemon.toml";

/// Names the configuration of the module.
const NAMED: &str = "METASLOT_CONF";

/// Whether a configuration is named, in which the key is looked up.
pub(super) fn is_asked() -> bool {
    env::var_os(NAMED).is_some_and(|file| !file.is_empty())
}

/// Why it is not tested, and therefore not enabled.
pub(super) fn cannot_enable(program: &Program) -> Failure {
    let name = program.name;
    let what = format!(
        "--enable tests {name} with the key, which metaslotd gives to the unit of {name} and not to this shell"
    );
    Failure::usage(what)
        .hint("leave out --enable: what is to be included, and what the unit needs, is said then")
}

/// Begins this command anew with a configuration in which the daemon's tokens are, since a module reads its own once. Root sees the
/// public half of a key there, and need not be given the key. It returns where that is not possible.
pub(super) fn ask(socket: &Path) -> Failure {
    let begun = || -> io::Result<io::Error> {
        // It goes with the process.
        let mut file = File::from(memfd_create("metaslot.toml", MemfdFlags::empty())?);
        let text = configuration(socket).map_err(|failure| io::Error::other(failure.message()))?;
        file.write_all(text.as_bytes())?;
        let mut again = Command::new(env::current_exe()?);
        again.args(env::args_os().skip(1));
        Ok(again.env(NAMED, format!("/proc/self/fd/{}", file.as_raw_fd())).exec())
    };
    let (Ok(error) | Err(error)) = begun();
    Failure::io("cannot ask the daemon", &error)
}

/// The program's: the daemon in the place of a token.
fn configuration(socket: &Path) -> Result<String> {
    let socket = named("the socket", &socket.display().to_string())?;
    Ok(format!("[[foreign]]\nname = \"daemon\"\nsocket = {socket}\n"))
}

/// Refuses a program that does not find keys by our provider.
pub(super) fn takes(program: &Program, socket: &Path) -> Result<()> {
    if program.bridge != Bridge::Own {
        let what = format!("{} does not find its key by our provider for OpenSSL", program.name);
        return Err(Failure::usage(what)
            .hint("docs/daemon.md says how programs use p11-kit's client, and OpenSSH the agent"));
    }
    named("the socket", &socket.display().to_string()).map(drop)
}

/// A string of a configuration that needs no escapes.
fn named(what: &str, text: &str) -> Result<String> {
    if text.contains(|letter: char| letter == '"' || letter == '\\' || letter.is_control()) {
        return Err(Failure::failed(format!("{what} is no plain text: {text:?}")));
    }
    Ok(format!("\"{text}\""))
}

/// Adds the program's configuration, and says first what the daemon's has to say.
pub(super) fn add_to(
    plan: &mut Plan,
    program: &Program,
    values: &[(&str, String)],
    socket: &Path,
) -> Result<()> {
    let value = |name: &str| values.iter().find(|row| row.0 == name).map_or("", |row| &*row.1);
    let service = match (program.unit(), program.user()) {
        (Some((unit, _)), _) => format!("cgroup:/system.slice/{unit}"),
        (None, Some(user)) => format!("user:{user}"),
        (None, None) => format!("user:{}", rustix::process::geteuid().as_raw()),
    };
    plan.files.push((FILE, configuration(socket)?));
    let mut lines = vec![
        String::from("in /etc/metaslot/metaslotd.toml, and then: systemctl reload metaslotd"),
        String::from("[[client]]"),
        format!("services = [\"{service}\"]"),
        format!("token = {}", named("the token's label", value("token"))?),
        format!("keys = [{}]", named("the key's label", value("label"))?),
        String::from("operations = [\"sign\"]"),
        format!("wherever OPENSSL_CONF is set: METASLOT_CONF={}/{FILE}, too", value("directory")),
    ];
    if let Some(user) = program.user() {
        lines.push(format!("a member of the daemon's 'group': {user}, as usermod -aG makes it"));
        // systemd orders no unit after the daemon unless it is told to.
        let order = "After=metaslotd.service and Wants=metaslotd.service";
        lines.push(format!("in the unit of the program: [Unit] and {order}"));
    }
    // The token is the daemon's alone, and so is the login.
    let is_daemons = ["must be able to use the token", "logs in anew"];
    plan.then.retain(|line| !is_daemons.iter().any(|part| line.contains(part)));
    lines.append(&mut plan.then);
    plan.then = lines;
    Ok(())
}
