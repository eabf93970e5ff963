// SPDX-License-Identifier: Apache-2.0
//! What OpenSSL is configured with, and what is compiled for it.

use crate::sandbox::Sandbox;
use crate::{Failure, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the provider does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Mode {
    /// Only what is done with keys that have a URI
    Keys,
    /// Everything that the module has: keys that programs make or read from files, too
    All,
}

impl Mode {
    /// As the configuration has it.
    const fn word(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::All => "all",
        }
    }
}

/// Who does the work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bridge<'a> {
    /// OpenSSL itself.
    None,
    /// This provider.
    Provider { file: &'a Path, mode: Mode, jobs: bool },
    /// libp11's.
    Engine(&'a Path),
}

/// The whole of `openssl.cnf`.
pub(crate) fn configuration(bridge: Bridge<'_>, module: &Path, pin: &str) -> String {
    let mut text = "openssl_conf = start\n[start]\n".to_owned();
    let module = module.display();
    match bridge {
        Bridge::None => {}
        Bridge::Provider { file, mode, jobs } => {
            // Where keys of files are the module's as well, they have to be asked for: OpenSSL takes the provider that it loaded first.
            if mode == Mode::All {
                text.push_str("alg_section = algorithms\n");
            }
            text.push_str("providers = providers\n");
            if mode == Mode::All {
                text.push_str("[algorithms]\ndefault_properties = ?provider=metaslot\n");
            }
            write!(
                text,
                "[providers]\ndefault = builtin\nmetaslot = metaslot\n[builtin]\nactivate = 1\n[metaslot]\nmodule = {}\n\
                 pkcs11-module = {module}\npin = {pin}\nmode = {}\nasync-jobs = {}\nactivate = 1\n",
                file.display(),
                mode.word(),
                if jobs { "yes" } else { "no" },
            )
            .ok();
        }
        Bridge::Engine(engine) => {
            write!(
                text,
                "engines = engines\n[engines]\npkcs11 = pkcs11\n[pkcs11]\nengine_id = pkcs11\ndynamic_path = {}\n\
                 MODULE_PATH = {module}\nPIN = {pin}\ninit = 0\n",
                engine.display()
            )
            .ok();
        }
    }
    text
}

/// The provider of the same build as the module, or of the same package.
///
/// # Errors
/// There is none.
pub(crate) fn provider_beside(module: &Path) -> Result<PathBuf> {
    let directory = module.parent().unwrap_or_else(|| Path::new("."));
    let places = ["libmetaslot_ossl.so", "../ossl-modules/metaslot.so"];
    let mut files = places.map(|place| directory.join(place)).into_iter();
    files.find(|file| file.exists()).ok_or_else(|| {
        Failure::new(format!("{}: there is no provider for OpenSSL with it", module.display()))
            .hint("name it with --provider: metaslot.so, or libmetaslot_ossl.so of a build")
    })
}

/// A program in C over the installed OpenSSL; the text says why there is none.
pub(crate) fn compiled(
    place: &Sandbox,
    name: &str,
    text: &str,
) -> std::result::Result<PathBuf, String> {
    let (source, program) = (place.file(&format!("{name}.c")), place.file(name));
    let why = |what: String| format!("{name}.c is not compiled: {what}");
    let header = place.file("include/metaslot");
    std::fs::create_dir_all(&header).map_err(|error| why(error.to_string()))?;
    for (path, text) in [(&source, text), (&header.join("pkcs11.h"), HEADER)] {
        std::fs::write(path, text).map_err(|error| why(error.to_string()))?;
    }
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-I"]).arg(place.file("include")).arg(&source).arg("-o").arg(&program);
    cc.args(["-lssl", "-lcrypto", "-lpthread", "-ldl"]);
    let output = cc.stdin(Stdio::null()).output().map_err(|error| why(format!("cc: {error}")))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().find(|line| line.contains("error")).unwrap_or("cc fails");
    if output.status.success() { Ok(program) } else { Err(why(first.trim().to_owned())) }
}

/// The standard's header, for programs that ask a module themselves.
const HEADER: &str = include_str!("../../../include/metaslot/pkcs11.h");

/// The loop of `openssl speed`.
pub(crate) const LOOP: &str = include_str!("../../../examples/openssl_loop.c");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_files_are_asked_of_the_provider_in_one_mode_only() {
        let text = |mode| {
            let bridge = Bridge::Provider { file: Path::new("p.so"), mode, jobs: true };
            configuration(bridge, Path::new("m.so"), "1234")
        };
        assert!(text(Mode::All).contains("?provider=metaslot"));
        assert!(text(Mode::All).contains("mode = all\nasync-jobs = yes\n"));
        assert!(!text(Mode::Keys).contains("alg_section"));
        assert!(
            configuration(Bridge::Engine(Path::new("e.so")), Path::new("m.so"), "1")
                .contains("dynamic_path = e.so\nMODULE_PATH = m.so\n")
        );
    }
}
