// SPDX-License-Identifier: Apache-2.0
//! Tarballs and Debian packages of what is installed: the token's in one, the lab's in another one.

use std::collections::BTreeMap;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::cargo::{build, build_with_openssl, cargo, command, lab, root, target};
use crate::deb;
use crate::report::check;
use crate::tree::{Tree, files_below, leaves_room_for_openssl, write};

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
#[derive(Clone, Copy)]
pub(crate) enum Library {
    /// With OpenSSL, which takes minutes to build.
    Whole,
    /// As the tests have built it.
    Tested,
}

/// The tarballs and the packages.
pub(crate) fn run(library: Library) -> Result<()> {
    let pages = man()?;
    match library {
        Library::Whole => build_with_openssl()?,
        Library::Tested => leaves_room_for_openssl()?,
    }
    // What packs has one thread, so that two take half of the time.
    let lab = || {
        packed("metaslot-lab", |tree| tree.lab(&pages)).and_then(|()| deb::lab(&pages).map(drop))
    };
    thread::scope(|scope| {
        let lab = scope.spawn(lab);
        packed("metaslot", |tree| tree.token(&pages))?;
        deb::token(&pages)?;
        lab.join().unwrap_or_else(|panicked| resume_unwind(panicked))
    })?;
    // What is built is what the tests and `run` use.
    build()
}

/// Builds the committed state in two folders, and compares what `dist` makes there, byte for byte.
pub(crate) fn reproduce() -> Result<()> {
    let home = target().join("reproduce");
    drop(fs::remove_dir_all(&home));
    let mut made: Vec<BTreeMap<PathBuf, Vec<u8>>> = Vec::new();
    let folders = ["one", "another/with-a-longer-name"].map(|folder| home.join(folder));
    // The second from the first: what is committed while that is built does not count.
    for (from, folder) in [(&root(), &folders[0]), (&folders[0], &folders[1])] {
        check(Command::new("git").args(["clone", "--quiet"]).arg(from).arg(folder))?;
    }
    for folder in folders {
        println!("==> {}", folder.display());
        check(cargo(&["xtask", "dist"]).current_dir(&folder).env_remove("CARGO_TARGET_DIR"))?;
        let dist = folder.join("target/dist");
        let packed = |path: &PathBuf| path.is_file();
        let files = files_below(&dist)?
            .into_iter()
            .filter(packed)
            .filter(|path| path.parent() == Some(&dist));
        let read = |path: PathBuf| Ok((path.strip_prefix(&dist)?.to_owned(), fs::read(&path)?));
        made.push(files.map(read).collect::<Result<_>>().context("read what was made")?);
    }
    let (one, other) = (&made[0], &made[1]);
    let differ: Vec<_> = one.keys().filter(|name| one.get(*name) != other.get(*name)).collect();
    ensure!(!one.is_empty(), "nothing was made");
    ensure!(one.len() == other.len() && differ.is_empty(), "made twice, these differ: {differ:?}");
    println!("{} files, equal byte for byte", one.len());
    fs::remove_dir_all(&home).context("remove the two folders")
}

/// A tarball of what `fill` puts into a tree.
fn packed(package: &str, fill: impl FnOnce(&mut Tree) -> Result<()>) -> Result<()> {
    let name = format!("{package}-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let home = target().join("dist").join(&name);
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
    fill(&mut Tree::new(&home, "/usr"))?;
    deb::settle(&home)?;
    let tarball = target().join("dist").join(format!("{name}.tar.gz"));
    check(
        Command::new("tar")
            .args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name"])
            .arg(format!("--mtime=@{}", deb::committed()?))
            .arg("-czf")
            .arg(&tarball)
            .arg("-C")
            .arg(target().join("dist"))
            .arg(name),
    )?;
    println!("    {}", tarball.display());
    Ok(())
}
