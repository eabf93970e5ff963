// SPDX-License-Identifier: Apache-2.0
//! The provider over the operating system's kernel, in a virtual machine: with a kernel of Debian's, whatever kernel this machine has.
//!
//! The machine has no disk and no network. Its memory holds a shell, that kernel's modules for cryptography, the provider's
//! tests, the module and the command; it runs them, says on its serial line how they ended, and ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::binaries::compiled;
use crate::cargo::{cargo, root, target};
use crate::cpio::Archive;
use crate::emulator::{self, Machine};
use crate::packages::{Package, Probe};
use crate::report::check;

const PACKAGES: &[Package] =
    &[("busybox-static", Probe::File("/bin/busybox")), ("binutils", Probe::Program("strip"))];

/// Debian's package that depends on the newest kernel for virtual machines.
const NEWEST: &str = "linux-image-cloud-amd64";
/// Directories of the kernel's modules that cryptography may need.
const MODULES: [&str; 3] = ["kernel/crypto", "kernel/arch/x86/crypto", "kernel/lib"];
/// What is not a test.
const PRODUCTS: [&str; 2] = ["metaslot", "libmetaslot.so"];
/// What the machine says at its end where all is well.
const WELL: &str = "metaslot: all is well";

/// Builds, starts the machine, and judges by its last words.
pub(crate) fn run() -> Result<()> {
    emulator::install(PACKAGES)?;
    let home = target().join("kernel");
    let kernel = unpacked(&home)?;
    let archive = home.join("initramfs");
    fs::write(&archive, contents(&kernel)?).context("write the machine's files")?;
    let machine = Machine {
        kernel: &image(&kernel)?,
        archive: &archive,
        words: "",
        megabytes: 1024,
        more: vec!["-no-reboot".to_owned()],
        limit: 600,
    };
    ensure!(machine.run()?.lines().any(|line| line == WELL), "see what the machine said");
    Ok(())
}

/// Where Debian's kernel is: the directory with `boot` and `lib`. It is not installed.
fn unpacked(home: &Path) -> Result<PathBuf> {
    let directory = home.join("unpacked");
    if directory.join("boot").is_dir() {
        return Ok(directory);
    }
    fs::create_dir_all(home).context("make a directory")?;
    let said = Command::new("apt-cache").args(["depends", NEWEST]).output()?;
    let said = String::from_utf8(said.stdout)?;
    let name = said.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let name = name.with_context(|| format!("no package {NEWEST}\nhint: apt-get update"))?;
    println!("    downloading {name}");
    check(Command::new("apt-get").args(["download", "-qq", name]).current_dir(home))?;
    let package =
        files(home)?.into_iter().find(|file| file.extension().is_some_and(|e| e == "deb"));
    let package = package.context("no package was downloaded")?;
    let part = home.join("part");
    check(Command::new("dpkg").arg("-x").args([&package, &part]))?;
    fs::remove_file(package)?;
    fs::rename(part, &directory)?;
    Ok(directory)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    entries.collect()
}

/// The kernel's own file.
fn image(kernel: &Path) -> Result<PathBuf> {
    let all = files(&kernel.join("boot"))?;
    let is_image = |file: &&PathBuf| file.to_string_lossy().contains("/vmlinuz-");
    all.iter().find(is_image).cloned().context("no kernel in its package")
}

/// All files of the machine.
fn contents(kernel: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["/dev", "/proc", "/sys", "/tmp", "/sbin"] {
        archive.directory(directory)?;
    }
    archive.copy(Path::new("/bin/busybox"), "/bin/busybox")?;
    let release = files(&kernel.join("lib/modules"))?.pop().context("no modules")?;
    let place = release.strip_prefix(kernel)?.to_string_lossy().into_owned();
    for directory in MODULES {
        archive.copy(&release.join(directory), &format!("/{place}/{directory}"))?;
    }
    for list in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
        archive.copy(&release.join(list), &format!("/{place}/{list}"))?;
    }
    let mut libraries = BTreeSet::new();
    for program in programs()? {
        libraries.extend(needed(&program)?);
        let stripped = target().join("kernel/stripped");
        check(Command::new("strip").arg("-o").args([&stripped, &program]))?;
        let name = program.file_name().context("a program without a name")?.to_string_lossy();
        let place = if PRODUCTS.contains(&&*name) { "/bin" } else { "/tests" };
        archive.copy(&stripped, &format!("{place}/{name}"))?;
    }
    for library in libraries {
        archive.copy(Path::new(&library), &library)?;
    }
    // Where the tests look for their vectors.
    let home = root().to_string_lossy().into_owned();
    archive.directory(&format!("{home}/crates/providers/kernel"))?;
    for vectors in ["openssl", "nist", "wycheproof"] {
        let from = root().join("testdata").join(vectors);
        archive.copy(&from, &format!("{home}/testdata/{vectors}"))?;
    }
    archive.copy(&root().join("xtask/src/kernel.sh"), "/init")?;
    archive.finished()
}

/// The provider's tests, the module and the command.
fn programs() -> Result<Vec<PathBuf>> {
    let packages = ["--package=metaslot-module", "--package=metaslot-cli"];
    check(cargo(&["build", "--locked", "--quiet"]).args(packages))?;
    let packages = ["--package=metaslot-kernel", "--package=metaslot-kernel-wrapper"];
    let mut tests = cargo(&["test", "--locked", "--tests"]);
    let tests = compiled(tests.args(packages))?.into_iter().map(|binary| binary.path);
    let debug = target().join("debug");
    Ok(tests.chain(PRODUCTS.map(|name| debug.join(name))).collect())
}

/// The libraries that a program needs, and what loads them.
fn needed(program: &Path) -> Result<Vec<String>> {
    let said = Command::new("ldd").arg(program).output().context("run ldd")?;
    let said = String::from_utf8(said.stdout)?;
    let words = said.lines().flat_map(str::split_whitespace);
    Ok(words.filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}
