// SPDX-License-Identifier: Apache-2.0
//! Tarballs and Debian packages of what is installed: the token's in one, the lab's in another one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{build, build_with_openssl, command, lab, target};
use crate::deb;
use crate::report::check;
use crate::tree::{Tree, write};

/// Man pages and completions, written by the commands themselves from their own definitions; a directory for each.
pub(crate) fn man() -> Result<PathBuf> {
    build()?;
    let home = target().join("man");
    drop(fs::remove_dir_all(&home));
    for program in [command(), lab()] {
        pages(&program, &home)?;
    }
    Ok(home)
}

fn pages(program: &Path, home: &Path) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let home = home.join(name.as_ref());
    fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
    check(Command::new(program).arg("man").arg(&home))?;
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(program)
            .args(["completions", shell])
            .output()
            .with_context(|| format!("make the completions of {name} for {shell}"))?;
        ensure!(output.status.success(), "no completions of {name} for {shell}");
        let file = if shell == "zsh" { format!("_{name}") } else { format!("{name}.{shell}") };
        write(&home.join(file), &output.stdout)?;
    }
    Ok(())
}

/// Which module is packed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Library {
    /// With OpenSSL, which takes minutes to build.
    Whole,
    /// As the tests have built it.
    Tested,
}

/// The tarballs and the packages.
pub(crate) fn run(library: Library) -> Result<()> {
    let pages = man()?;
    if library == Library::Whole {
        build_with_openssl()?;
    }
    let (name, home) = begin("metaslot")?;
    Tree::new(home, "/usr").token(&pages)?;
    pack(&name)?;
    deb::token(&pages)?;
    // What is built is what the tests and `run` use.
    build()?;
    let (name, home) = begin("metaslot-lab")?;
    Tree::new(home, "/usr").lab(&pages)?;
    pack(&name)?;
    deb::lab(&pages)?;
    Ok(())
}

/// An empty directory for a package's files, and its name.
fn begin(package: &str) -> Result<(String, PathBuf)> {
    let name = format!("{package}-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let home = target().join("dist").join(&name);
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
    Ok((name, home))
}

fn pack(name: &str) -> Result<()> {
    let tarball = target().join("dist").join(format!("{name}.tar.gz"));
    check(
        Command::new("tar")
            .args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf"])
            .arg(&tarball)
            .arg("-C")
            .arg(target().join("dist"))
            .arg(name),
    )?;
    println!("    {}", tarball.display());
    Ok(())
}
