// SPDX-License-Identifier: Apache-2.0
//! What is installed: module, command, header, pkg-config file, p11-kit module file, man pages and completions in one
//! tarball; the lab, its kernels and its pages in another one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{build, build_with_openssl, command, kernels, lab, module, root, target};
use crate::report::check;

/// ssh-agent takes modules only from below a library directory, and p11-kit looks into its `pkcs11`.
const LIBRARY: &str = "usr/lib/x86_64-linux-gnu";

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
        write(&home.join(file), &String::from_utf8_lossy(&output.stdout))?;
    }
    Ok(())
}

/// The most bytes of the module as it is installed.
const LARGEST: u64 = 12 << 20;

/// Which module is packed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Library {
    /// With OpenSSL, which takes minutes to build.
    Whole,
    /// As the tests have built it.
    Tested,
}

/// The tarballs.
pub(crate) fn run(library: Library) -> Result<()> {
    let pages = man()?;
    if library == Library::Whole {
        build_with_openssl()?;
    }
    token(&pages.join("metaslot"))?;
    // What is built is what the tests and `run` use.
    build()?;
    let (name, home) = begin("metaslot-lab")?;
    copy(&lab(), &home.join("usr/bin/metaslot-lab"))?;
    copy(&kernels(), &home.join("usr/bin/metaslot-kernels"))?;
    copy(&root().join("LICENSE"), &home.join("usr/share/doc/metaslot-lab/LICENSE"))?;
    for page in files_below(&pages.join("metaslot-lab"))? {
        copy(&page, &place_of(&home, &page))?;
    }
    pack(&name)
}

/// An empty directory for a package's files, and its name.
fn begin(package: &str) -> Result<(String, PathBuf)> {
    let name = format!("{package}-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let home = target().join("dist").join(&name);
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).with_context(|| format!("make {}", home.display()))?;
    Ok((name, home))
}

/// The Solaris commands that the command is, too, by names that clash with nothing.
const PERSONALITIES: [&str; 6] = ["cryptoadm", "decrypt", "digest", "encrypt", "mac", "pktool"];

/// The module and the command.
fn token(pages: &Path) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let (name, home) = begin("metaslot")?;
    let module_home = home.join(LIBRARY).join("pkcs11");
    let installed = module_home.join("libmetaslot.so");
    copy(&module(), &installed)?;
    // Its probes are found without symbols, too.
    check(Command::new("strip").arg(&installed))?;
    let bytes = fs::metadata(&installed).context("look at the module")?.len();
    ensure!(bytes < LARGEST, "the module has {bytes} bytes, not less than {LARGEST}");
    std::os::unix::fs::symlink("pkcs11/libmetaslot.so", home.join(LIBRARY).join("libmetaslot.so"))
        .context("link the module")?;
    copy(&command(), &home.join("usr/bin/metaslot"))?;
    for personality in PERSONALITIES {
        let link = home.join(format!("usr/bin/metaslot-{personality}"));
        std::os::unix::fs::symlink("metaslot", &link)
            .with_context(|| format!("link {}", link.display()))?;
    }
    for header in files_below(&root().join("include/metaslot"))? {
        let name = header.file_name().unwrap_or_default();
        copy(&header, &home.join("usr/include/metaslot").join(name))?;
    }
    for document in ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"] {
        copy(&root().join(document), &home.join("usr/share/doc/metaslot").join(document))?;
    }
    for page in files_below(pages)? {
        copy(&page, &place_of(&home, &page))?;
    }
    write(
        &home.join(LIBRARY).join("pkgconfig/metaslot.pc"),
        &format!(
            "prefix=/usr\nlibdir=/{LIBRARY}\nincludedir=${{prefix}}/include\n\
             p11_module_path=${{libdir}}/pkcs11/libmetaslot.so\n\nName: metaslot\nDescription: \
             PKCS#11 module: an encrypted token, and a metaslot that chooses who does the \
             work\nVersion: {version}\nLibs: -L${{libdir}} -lmetaslot\nCflags: \
             -I${{includedir}}\n"
        ),
    )?;
    write(
        &home.join("usr/share/p11-kit/modules/metaslot.module"),
        "module: libmetaslot.so\ncritical: no\ntrust-policy: no\n",
    )?;
    pack(&name)
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

/// Where a page or a completion file is installed, by its ending.
fn place_of(home: &Path, page: &Path) -> PathBuf {
    let name = page.file_name().unwrap_or_default();
    let ending = page.extension().unwrap_or_default().to_string_lossy();
    match ending.as_ref() {
        "1" => home.join("usr/share/man/man1").join(name),
        "bash" => home
            .join("usr/share/bash-completion/completions")
            .join(page.file_stem().unwrap_or_default()),
        "fish" => home.join("usr/share/fish/vendor_completions.d").join(name),
        _ => home.join("usr/share/zsh/vendor-completions").join(name),
    }
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    for entry in entries {
        let path = entry.context("read a directory")?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("copy {} to {}", from.display(), to.display()))
}

fn write(to: &Path, text: &str) -> Result<()> {
    make_parent(to)?;
    fs::write(to, text).with_context(|| format!("write {}", to.display()))
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a file without directory")?;
    fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))
}
