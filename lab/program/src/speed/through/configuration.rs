// SPDX-License-Identifier: Apache-2.0
//! What OpenSSL is configured with.

use std::fmt::Write;
use std::path::Path;

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
pub(super) enum Bridge<'a> {
    /// OpenSSL itself.
    None,
    /// This provider.
    Provider { file: &'a Path, mode: Mode, jobs: bool },
    /// libp11's.
    Engine(&'a Path),
}

/// The whole of `openssl.cnf`.
pub(super) fn configuration(bridge: Bridge<'_>, module: &Path, pin: &str) -> String {
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
