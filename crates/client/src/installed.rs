// SPDX-License-Identifier: Apache-2.0
//! Where our own module is, for the programs that are installed with it.

use std::env;
use std::path::{Path, PathBuf};

/// The library's file name.
pub const LIBRARY: &str = "libmetaslot.so";

/// Where Debian and others install modules and libraries.
pub const DIRECTORIES: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu/pkcs11",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/pkcs11",
    "/usr/local/lib/pkcs11",
    "/usr/local/lib",
    "/usr/lib64/pkcs11",
    "/usr/lib/pkcs11",
];

/// The module of this program: beside it, in `lib` beside its directory, where `cargo xtask install` puts it, or where
/// the system keeps modules.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    let program = env::current_exe().ok();
    let near = program.as_deref().map(beside).unwrap_or_default();
    let far = DIRECTORIES.iter().map(PathBuf::from);
    let mut files = near.into_iter().chain(far).map(|directory| directory.join(LIBRARY));
    files.find(|file| file.exists())
}

/// What is installed with a program.
fn beside(program: &Path) -> Vec<PathBuf> {
    let bin = program.parent();
    let lib = bin.and_then(Path::parent).map(|prefix| prefix.join("lib"));
    let modules = format!("{}-linux-gnu/pkcs11", env::consts::ARCH);
    let modules = lib.as_ref().map(|lib| lib.join(modules));
    bin.map(Path::to_path_buf).into_iter().chain(lib).chain(modules).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_looked_for_where_it_is_installed_with_the_program_and_by_a_plain_name() {
        let modules = format!("/opt/m/lib/{}-linux-gnu/pkcs11", env::consts::ARCH);
        let places = ["/opt/m/bin", "/opt/m/lib", &modules].map(PathBuf::from);
        assert_eq!(beside(Path::new("/opt/m/bin/metaslot-lab")), places);
    }
}
