// SPDX-License-Identifier: Apache-2.0
//! The load in C, compiled where the experiment is made.

use crate::sandbox::Sandbox;
use crate::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of the program and the headers that they need.
const FILES: [(&str, &str); 5] = [
    ("load.h", include_str!("../../../../examples/lanes_load/load.h")),
    ("main.c", include_str!("../../../../examples/lanes_load/main.c")),
    ("work.c", super::rows::LOAD),
    ("openssl.c", include_str!("../../../../examples/lanes_load/openssl.c")),
    ("metaslot/pkcs11.h", include_str!("../../../../include/metaslot/pkcs11.h")),
];

/// Compiles the program.
///
/// # Errors
/// There is no compiler, or it refuses.
pub(crate) fn load(place: &Sandbox) -> Result<PathBuf> {
    let (source, program) = (place.file("load"), place.file("lanes_load"));
    for (name, text) in FILES {
        let path = source.join(name);
        let parent = path.parent().unwrap_or(&source);
        std::fs::create_dir_all(parent).map_err(|error| Failure::file(parent, &error))?;
        std::fs::write(&path, text).map_err(|error| Failure::file(&path, &error))?;
    }
    compile("cc", &source, &program)?;
    Ok(program)
}

fn compile(compiler: &str, source: &Path, program: &Path) -> Result<()> {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-I"]).arg(source).arg("-o").arg(program);
    command.args(
        FILES.iter().filter(|(name, _)| name.ends_with(".c")).map(|(name, _)| source.join(name)),
    );
    let output = command.args(["-lpthread", "-ldl"]).output().map_err(|error| {
        Failure::new(format!("the load has to be compiled: {compiler}: {error}"))
            .hint("install a C compiler, or leave out what needs it: --no-module")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("the load does not compile: {}", words.trim()))
        .hint("cc must be able to link programs for this machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_named_with_a_hint() {
        let failure = compile("no-such-compiler", Path::new("/"), Path::new("/")).unwrap_err();
        assert!(failure.message.contains("no-such-compiler"), "{failure}");
        assert!(failure.hint.unwrap().contains("--no-module"));
    }
}
