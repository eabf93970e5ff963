// SPDX-License-Identifier: Apache-2.0
//! Commands that people know from Solaris, with the syntax that they know.

pub(crate) mod algorithm;
pub(crate) mod crypt;
pub(crate) mod cryptoadm;
pub(crate) mod hash;
pub(crate) mod ksslcfg;
pub(crate) mod material;
mod operands;
pub(crate) mod pktool;
mod progress;
mod version1;
mod version2;

use crate::app::App;
use crate::failure::{Failure, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names under which the command is a personality; each is a subcommand too.
const NAMES: &[&str] = &["cryptoadm", "decrypt", "digest", "encrypt", "ksslcfg", "mac", "pktool"];

/// The arguments as if the subcommand had been written: `metaslot-digest -l` or `digest -l` is
/// `metaslot digest -l`.
pub(crate) fn expanded(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|first| Path::new(first).file_name());
    if let Some(name) = name.and_then(OsStr::to_str).and_then(personality) {
        arguments.insert(1, name.into());
    }
    arguments
}

pub(crate) fn digest(app: &App, args: &hash::DigestArgs) -> Result<()> {
    hash::digest(app, args).map_err(Failure::plain)
}

pub(crate) fn mac(app: &App, args: &hash::MacArgs) -> Result<()> {
    hash::mac(app, args).map_err(Failure::plain)
}

pub(crate) fn encrypt(app: &App, args: &crypt::EncryptArgs) -> Result<()> {
    crypt::encrypt(app, args).map_err(Failure::plain)
}

pub(crate) fn decrypt(app: &App, args: &crypt::DecryptArgs) -> Result<()> {
    crypt::decrypt(app, args).map_err(Failure::plain)
}

pub(crate) fn cryptoadm(app: &App, args: &cryptoadm::Args) -> Result<()> {
    cryptoadm::run(app, args).map_err(Failure::plain)
}

pub(crate) fn ksslcfg(app: &App, args: &ksslcfg::Args) -> Result<()> {
    ksslcfg::run(app, args).map_err(Failure::plain)
}

pub(crate) fn pktool(app: &App, args: &pktool::Args) -> Result<()> {
    pktool::run(app, args).map_err(pktool::coded)
}

/// A command line that makes no sense, with the exit code that the command has for it.
pub(crate) fn misread(subcommand: Option<&OsStr>, failure: Failure) -> Failure {
    if subcommand.is_some_and(|name| name == "pktool") { pktool::coded(failure) } else { failure }
}

fn personality(program: &str) -> Option<&'static str> {
    let name = program.strip_prefix("metaslot-").unwrap_or(program);
    NAMES.iter().copied().find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_name_chooses_the_subcommand() {
        let rows = [
            ("metaslot", None),
            ("/usr/bin/metaslot-digest", Some("digest")),
            ("mac", Some("mac")),
            ("metaslot-lab", None),
        ];
        for (program, expected) in rows {
            let arguments = expanded(vec![program.into(), "-l".into()]);
            let inserted = (arguments.len() == 3).then(|| arguments[1].clone());
            assert_eq!(inserted, expected.map(OsString::from), "{program}");
        }
    }
}
