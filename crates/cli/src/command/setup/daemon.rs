// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --daemon`: the key is in `metaslotd`, and the program has neither the token's file nor its PIN.

use super::program::{Bridge, Plan, Program};
use crate::failure::{Failure, Result};
use std::path::Path;

/// The program's configuration, in the place of one with a token.
const FILE: &str = "metaslot-daemon.toml";

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
    let socket = named("the socket", &socket.display().to_string())?;
    let service = match (program.unit(), program.user()) {
        (Some((unit, _)), _) => format!("cgroup:/system.slice/{unit}"),
        (None, Some(user)) => format!("user:{user}"),
        (None, None) => format!("user:{}", rustix::process::geteuid().as_raw()),
    };
    plan.files.push((FILE, format!("[[foreign]]\nname = \"daemon\"\nsocket = {socket}\n")));
    let mut lines = vec![
        String::from("in /etc/metaslot/metaslotd.toml, and then: systemctl restart metaslotd"),
        String::from("[[client]]"),
        format!("services = [\"{service}\"]"),
        format!("token = {}", named("the token's label", value("token"))?),
        format!("keys = [{}]", named("the key's label", value("label"))?),
        String::from("operations = [\"sign\"]"),
        format!("where it has OPENSSL_CONF: METASLOT_CONF={}/{FILE}, too", value("directory")),
    ];
    if let Some(user) = program.user() {
        lines.push(format!("a member of the daemon's 'group': {user}, as usermod -aG makes it"));
    }
    // The token is the daemon's alone.
    plan.then.retain(|line| !line.contains("must be able to use the token"));
    lines.append(&mut plan.then);
    plan.then = lines;
    Ok(())
}
