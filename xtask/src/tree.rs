// SPDX-License-Identifier: Apache-2.0
//! What is installed, and where: module, OpenSSL's provider, command, daemon with its unit, header, pkg-config file, p11-kit module file, man pages and completions; the
//! lab, its kernels and its pages. Packages and `cargo xtask install` have it from here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{command, daemon, kernels, lab, module, openssl_provider, root};
use crate::linked;
use crate::report::check;

/// Below the prefix. ssh-agent takes modules only from below a library directory, and p11-kit looks into its `pkcs11`.
const LIBRARY: &str = "lib/x86_64-linux-gnu";

/// The most bytes of the module as it is installed.
const LARGEST: u64 = 12 << 20;

/// The most bytes of OpenSSL's provider.
const LARGEST_PROVIDER: u64 = 1 << 20;

/// More bytes than OpenSSL adds to the module.
const OPENSSL: u64 = 5 << 19;

/// The Solaris commands that the command is, too, by names that clash with nothing.
const PERSONALITIES: [&str; 7] =
    ["cryptoadm", "decrypt", "digest", "encrypt", "ksslcfg", "mac", "pktool"];

/// Both programs write a page of this name. The lab's package has it: two that have one file cannot both be installed.
const LABS_PAGE: &str = "metaslot-lab.1";

/// Files as they are in a system whose root is some directory.
pub(crate) struct Tree {
    root: PathBuf,
    /// Absolute in that system.
    prefix: PathBuf,
    /// Where p11-kit looks for the names of modules; absolute in that system.
    p11_kit: PathBuf,
    /// Where OpenSSL's provider is: a directory beside the module's, unless OpenSSL looks elsewhere; absolute in that system.
    providers: PathBuf,
    /// What was put there; absolute in that system.
    pub(crate) placed: Vec<PathBuf>,
    /// Directories that were not there before.
    pub(crate) made: Vec<PathBuf>,
}

impl Tree {
    pub(crate) fn new(root: impl Into<PathBuf>, prefix: impl Into<PathBuf>) -> Self {
        let (root, prefix) = (root.into(), prefix.into());
        let p11_kit = prefix.join("share/p11-kit/modules");
        let providers = prefix.join(LIBRARY).join("ossl-modules");
        Self { root, prefix, p11_kit, providers, placed: Vec::new(), made: Vec::new() }
    }

    /// The same, and p11-kit looks elsewhere.
    pub(crate) fn with_p11_kit(self, p11_kit: PathBuf) -> Self {
        Self { p11_kit, ..self }
    }

    /// The same, and OpenSSL looks elsewhere.
    pub(crate) fn with_providers(self, providers: PathBuf) -> Self {
        Self { providers, ..self }
    }

    /// The module, OpenSSL's provider, the command and the daemon. `pages` has the man pages and completions of each command.
    pub(crate) fn token(&mut self, pages: &Path) -> Result<()> {
        self.module()?;
        self.provider()?;
        self.copy(&stripped(&command(), "--strip-all")?, "bin/metaslot")?;
        self.copy(&stripped(&daemon(), "--strip-all")?, "sbin/metaslotd")?;
        self.daemon()?;
        for personality in PERSONALITIES {
            self.link("metaslot", &format!("bin/metaslot-{personality}"))?;
        }
        for header in files_below(&root().join("include/metaslot"))? {
            self.copy(&header, &format!("include/metaslot/{}", name(&header)))?;
        }
        for document in ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"] {
            self.copy(&root().join(document), &format!("share/doc/metaslot/{document}"))?;
        }
        // The command's hints name pages of it.
        for page in files_below(&root().join("docs"))? {
            let below = page.strip_prefix(root()).context("a page outside")?.to_owned();
            self.copy(&page, &format!("share/doc/metaslot/{}", below.display()))?;
        }
        self.pages(&pages.join("metaslot"), &[LABS_PAGE])?;
        let (prefix, version) = (self.prefix.display(), env!("CARGO_PKG_VERSION"));
        let package = format!(
            "prefix={prefix}\nlibdir=${{prefix}}/{LIBRARY}\nincludedir=${{prefix}}/include\n\
             p11_module_path=${{libdir}}/pkcs11/libmetaslot.so\n\nName: metaslot\nDescription: \
             PKCS#11 module: an encrypted token, and a metaslot that chooses who does the \
             work\nVersion: {version}\nLibs: -L${{libdir}} -lmetaslot\nCflags: \
             -I${{includedir}}\n"
        );
        self.write(self.prefix.join(LIBRARY).join("pkgconfig/metaslot.pc"), &package)?;
        // p11-kit finds by its name what is below the system's own prefix.
        let module = match self.prefix == Path::new("/usr") {
            true => PathBuf::from("libmetaslot.so"),
            false => self.installed_module(),
        };
        let module = format!("module: {}\ncritical: no\ntrust-policy: no\n", module.display());
        self.write(self.p11_kit.join("metaslot.module"), &module)
    }

    /// The daemon's units and its page.
    fn daemon(&mut self) -> Result<()> {
        let (sbin, units) = (self.prefix.join("sbin"), self.prefix.join("lib/systemd/system"));
        for (name, unit) in [
            ("metaslotd.service", include_str!("../../crates/daemon/metaslotd.service")),
            (
                "metaslotd-connect@.service",
                include_str!("../../crates/daemon/metaslotd-connect@.service"),
            ),
        ] {
            self.write(units.join(name), &unit.replace("@SBIN@", &sbin.display().to_string()))?;
        }
        let socket = root().join("crates/daemon/metaslotd.socket");
        self.copy(&socket, "lib/systemd/system/metaslotd.socket")?;
        let page = root().join("crates/daemon/metaslotd.8");
        self.copy(&page, "share/man/man8/metaslotd.8")
    }

    /// The lab and its kernels.
    pub(crate) fn lab(&mut self, pages: &Path) -> Result<()> {
        // Profiles name functions.
        self.copy(&stripped(&lab(), "--strip-debug")?, "bin/metaslot-lab")?;
        self.copy(&stripped(&kernels(), "--strip-debug")?, "bin/metaslot-kernels")?;
        self.copy(&root().join("LICENSE"), "share/doc/metaslot-lab/LICENSE")?;
        self.pages(&pages.join("metaslot-lab"), &[])
    }

    /// Where the module is, in that system.
    pub(crate) fn installed_module(&self) -> PathBuf {
        self.prefix.join(LIBRARY).join("pkcs11/libmetaslot.so")
    }

    fn module(&mut self) -> Result<()> {
        // Its probes are found without symbols, too.
        let stripped = stripped(&module(), "--strip-all")?;
        limit(&stripped, LARGEST)?;
        self.copy(&stripped, &format!("{LIBRARY}/pkcs11/libmetaslot.so"))?;
        self.link("pkcs11/libmetaslot.so", &format!("{LIBRARY}/libmetaslot.so"))
    }

    /// Where OpenSSL's provider is, in that system.
    pub(crate) fn installed_provider(&self) -> PathBuf {
        self.providers.join("metaslot.so")
    }

    fn provider(&mut self) -> Result<()> {
        let stripped = stripped(&openssl_provider(), "--strip-all")?;
        limit(&stripped, LARGEST_PROVIDER)?;
        linked::check(&stripped, &["OSSL_provider_init"])?;
        // An absolute path stays so below the prefix.
        self.copy(&stripped, &self.installed_provider().to_string_lossy())
    }

    fn pages(&mut self, pages: &Path, without: &[&str]) -> Result<()> {
        for page in files_below(pages)?.iter().filter(|page| !without.contains(&&*name(page))) {
            self.copy(page, &place_of(page))?;
        }
        Ok(())
    }

    /// Where something is that has this path in that system.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn copy(&mut self, from: &Path, below: &str) -> Result<()> {
        let to = self.prefix.join(below);
        // A program that runs keeps the module that it has.
        let fresh = self.at(&to.with_extension("new"));
        self.make_parent(&to)?;
        let copied = fs::copy(from, &fresh).and_then(|_| fs::rename(&fresh, self.at(&to)));
        copied.with_context(|| format!("copy {} to {}", from.display(), self.at(&to).display()))?;
        self.placed.push(to);
        Ok(())
    }

    fn link(&mut self, target: &str, below: &str) -> Result<()> {
        let link = self.prefix.join(below);
        let at = self.at(&link);
        self.make_parent(&link)?;
        if at.is_symlink() {
            fs::remove_file(&at).with_context(|| format!("replace {}", at.display()))?;
        }
        symlink(target, &at).with_context(|| format!("link {}", at.display()))?;
        self.placed.push(link);
        Ok(())
    }

    /// Writes a file; `path` is absolute in that system.
    pub(crate) fn write(&mut self, path: PathBuf, text: &str) -> Result<()> {
        self.make_parent(&path)?;
        write(&self.at(&path), text.as_bytes())?;
        self.placed.push(path);
        Ok(())
    }

    /// Makes a file's directory; `path` is absolute in that system.
    pub(crate) fn make_parent(&mut self, path: &Path) -> Result<()> {
        let directories = path.ancestors().skip(1).filter(|directory| directory.parent().is_some());
        let missing = directories.take_while(|directory| !self.at(directory).exists());
        let missing: Vec<_> = missing.map(Path::to_path_buf).collect();
        self.made.extend(missing);
        make_parent(&self.at(path))
    }
}

/// Where the OpenSSL of this machine looks for providers, if it says so.
pub(crate) fn providers() -> Option<PathBuf> {
    let output = Command::new("openssl").args(["version", "-m"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let place = text.strip_prefix("MODULESDIR: ")?.trim().trim_matches('"');
    Some(PathBuf::from(place)).filter(|place| place.is_absolute())
}

/// The tests build the module without OpenSSL; what is published has it.
pub(crate) fn leaves_room_for_openssl() -> Result<()> {
    limit(&stripped(&module(), "--strip-all")?, LARGEST - OPENSSL)
}

fn limit(module: &Path, most: u64) -> Result<()> {
    let bytes = fs::metadata(module).context("look at the module")?.len();
    let file = module.display();
    ensure!(bytes < most, "{file} has {bytes} bytes, not less than {most}");
    Ok(())
}

/// A copy of a program or a library, beside it, without what this option of strip takes out.
fn stripped(file: &Path, option: &str) -> Result<PathBuf> {
    let stripped = file.with_extension("stripped");
    check(Command::new("strip").arg(option).arg(file).arg("-o").arg(&stripped))?;
    Ok(stripped)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where a page or a completion file is installed below the prefix, by its ending.
fn place_of(page: &Path) -> String {
    let ending = page.extension().unwrap_or_default().to_string_lossy();
    let (name, stem) = (name(page), page.file_stem().unwrap_or_default().to_string_lossy());
    match ending.as_ref() {
        "1" => format!("share/man/man1/{name}"),
        "bash" => format!("share/bash-completion/completions/{stem}"),
        "fish" => format!("share/fish/vendor_completions.d/{name}"),
        _ => format!("share/zsh/vendor-completions/{name}"),
    }
}

/// Every file below a directory, in order.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
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

/// Writes a file, and makes its directory.
pub(crate) fn write(to: &Path, text: &[u8]) -> Result<()> {
    make_parent(to)?;
    fs::write(to, text).with_context(|| format!("write {}", to.display()))
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a file without directory")?;
    fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_daemon_where_it_is_installed() {
        let root = std::env::temp_dir().join(format!("metaslot-tree-{}", std::process::id()));
        let mut tree = Tree::new(&root, "/usr/local");
        tree.daemon().unwrap();
        let units = root.join("usr/local/lib/systemd/system");
        let unit = fs::read_to_string(units.join("metaslotd.service"));
        let connect = fs::read_to_string(units.join("metaslotd-connect@.service"));
        let page = root.join("usr/local/share/man/man8/metaslotd.8").exists()
            && units.join("metaslotd.socket").exists();
        fs::remove_dir_all(&root).unwrap();
        assert!(unit.unwrap().contains("\nExecStart=/usr/local/sbin/metaslotd\n") && page);
        assert!(connect.unwrap().contains("\nExecStart=/usr/local/sbin/metaslotd connect "));
    }
}
