// SPDX-License-Identifier: Apache-2.0
//! What the lab's tests measure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The lab's own program.
pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_metaslot-lab");

/// The module that the tests were given, or the one of this build, built now if that did not happen yet.
pub(crate) fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        if let Some(module) = std::env::var_os("METASLOT_MODULE") {
            return PathBuf::from(module);
        }
        let directory = Path::new(LAB).parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "metaslot-module"]);
        // Beside it, as the lab looks for them.
        cargo.args(["--package", "metaslot-openssl-provider", "--package", "metaslot-daemon"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        if directory.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "the module does not build");
        directory.join("libmetaslot.so")
    })
}
