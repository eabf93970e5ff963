// SPDX-License-Identifier: Apache-2.0
//! Kryoptic, another token in Rust, from crates.io: built as a module over the system's OpenSSL, for the tests of tokens of other
//! modules. It is not part of `test` because that takes a minute or two.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{cargo, root, target};
use crate::packages::{self, FOR_TESTS, Package, Probe};
use crate::report::{all_pass, check};

/// What it needs beside what the tests need; bindgen looks for the library of clang.
const PACKAGES: &[Package] = &[
    ("libclang-dev", Probe::Library("libclang-14.so.1")),
    ("libsqlite3-dev", Probe::File("/usr/include/sqlite3.h")),
    ("pkg-config", Probe::Program("pkg-config")),
];

/// Its own package has features that need a newer OpenSSL than Debian's; its library has what is exported here.
const MANIFEST: &str = r#"[package]
name = "kryoptic-module"
version = "0.0.0"
edition = "2024"

[lib]
name = "kryoptic"
crate-type = ["cdylib"]

[dependencies.kryoptic-lib]
version = "=1.5.4"
default-features = false
features = ["dynamic", "sqlitedb", "ecdsa", "ecdh", "hash_all", "rsa", "hkdf", "pbkdf2", "sp800_108"]

[workspace]
"#;

const ENTRANCE: &str = "\
#[unsafe(no_mangle)]
pub extern \"C\" fn C_GetFunctionList(
    list: kryoptic_lib::pkcs11::CK_FUNCTION_LIST_PTR_PTR,
) -> kryoptic_lib::pkcs11::CK_RV {
    kryoptic_lib::fns::general::fn_get_function_list(list)
}
";

/// Builds it, and runs the tests that use it.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_TESTS, PACKAGES])?;
    // Where the tests look for it, wherever Cargo builds.
    let home = root().join("target/kryoptic");
    build(&home)?;
    // One by one: together their dependencies have other features, and are built once more.
    for package in ["metaslot-module", "metaslot-cli"] {
        check(&mut cargo(&["build", "--locked", "--package", package]))?;
    }
    // These, and no older ones of the release profile.
    let built = target().join("debug");
    let mut test = cargo(&["test", "--locked", "--package", "metaslot-testkit"]);
    test.env("METASLOT_MODULE", built.join("libmetaslot.so"));
    test.env("METASLOT_COMMAND", built.join("metaslot"));
    all_pass(test.args(["--test", "foreign", "--", "kryoptic"]))
}

fn build(home: &Path) -> Result<()> {
    fs::create_dir_all(home.join("src")).context("make a directory")?;
    fs::write(home.join("Cargo.toml"), MANIFEST).context("write a manifest")?;
    fs::write(home.join("src/lib.rs"), ENTRANCE).context("write a crate")?;
    // Clang's library comes without the headers that belong to a compiler.
    let headers = Command::new("gcc").arg("-print-file-name=include").output()?;
    let headers = String::from_utf8(headers.stdout)?;
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--target-dir", "build"])
        .env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", headers.trim()))
        .current_dir(home)
        .status()
        .context("start cargo")?;
    ensure!(built.success(), "kryoptic was not built");
    let library = home.join("build/debug/libkryoptic.so");
    fs::copy(library, home.join("libkryoptic.so")).context("copy kryoptic's module")?;
    Ok(())
}
