// SPDX-License-Identifier: Apache-2.0
//! The suite of pkcs11-check, which wants a newer Python than Debian 12 has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cargo::root;
use crate::packages::{self, program};

/// The suite, and what decides what it finds.
const PACKAGES: &[&str] =
    &["pkcs11-check==0.2.3", "pytest==9.2.0", "cryptography==50.0.2", "hypothesis==6.170.17"];

/// What its Python must be able to say.
const NEW: &str = "import sys, ensurepip; sys.exit(sys.version_info < (3, 12))";

/// The suite in an environment of its own, where a Python is here that it runs in; its tests say when it is missing.
pub(crate) fn prepare() -> Result<()> {
    // Where the tests look for it, wherever Cargo builds.
    let home = root().join("target/pkcs11-check");
    let python = home.join("bin/python3");
    if packages::has(&python, PACKAGES) {
        return Ok(());
    }
    let Some(newer) = pythons().into_iter().find(|python| is_new(python)) else {
        println!("    pkcs11-check is not here: it wants Python 3.12");
        return Ok(());
    };
    println!("    making an environment for {} in {}", PACKAGES[0], home.display());
    packages::quietly(Command::new(newer).args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    packages::quietly(pip.args(PACKAGES))?;
    if !packages::has(&python, PACKAGES) {
        bail!("{} was installed and is not there", PACKAGES[0]);
    }
    Ok(())
}

/// Those in the search path, and those of pyenv.
fn pythons() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["python3", "python3.12", "python3.13"].iter().filter_map(|name| program(name)).collect();
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv"));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from).or(home);
    let versions = pyenv.and_then(|pyenv| fs::read_dir(pyenv.join("versions")).ok());
    let mut versions: Vec<PathBuf> =
        versions.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    versions.sort();
    found.extend(versions.into_iter().map(|version| version.join("bin/python3")));
    found
}

fn is_new(python: &Path) -> bool {
    let mut python = Command::new(python);
    python.args(["-c", NEW]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}
