// SPDX-License-Identifier: Apache-2.0
//! Debian packages of what is installed. Two of the same sources are equal, byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{root, target};
use crate::report::check;
use crate::tree::{Tree, files_below, write};

/// A package: what is said of it, and what is run when it is installed.
struct Package {
    name: &'static str,
    control: &'static str,
    postinst: Option<&'static str>,
    /// Before it is taken out.
    prerm: Option<&'static str>,
}

const TOKEN: Package = Package {
    name: "metaslot",
    control: include_str!("../deb/metaslot.control"),
    postinst: Some(include_str!("../deb/metaslot.postinst")),
    prerm: Some(include_str!("../deb/metaslot.prerm")),
};

const LAB: Package = Package {
    name: "metaslot-lab",
    control: include_str!("../deb/metaslot-lab.control"),
    postinst: None,
    prerm: None,
};

/// The module and the command, as they are built; `pages` has their man pages.
pub(crate) fn token(pages: &Path) -> Result<PathBuf> {
    TOKEN.make(|tree| {
        tree.token(pages)?;
        let lib = Path::new("/usr/lib");
        tree.write(lib.join("tmpfiles.d/metaslot.conf"), include_str!("../deb/tmpfiles.conf"))?;
        tree.write(lib.join("sysusers.d/metaslot.conf"), include_str!("../deb/sysusers.conf"))
    })
}

/// The lab.
pub(crate) fn lab(pages: &Path) -> Result<PathBuf> {
    LAB.make(|tree| tree.lab(pages))
}

impl Package {
    fn path(&self) -> PathBuf {
        let name = format!("{}_{}_amd64.deb", self.name, env!("CARGO_PKG_VERSION"));
        target().join("dist").join(name)
    }

    fn make(&self, fill: impl FnOnce(&mut Tree) -> Result<()>) -> Result<PathBuf> {
        let home = target().join("dist").join(format!("{}.tree", self.name));
        drop(fs::remove_dir_all(&home));
        fill(&mut Tree::new(&home, "/usr"))?;
        let size = files_below(&home)?.iter().try_fold(0, |size, file| {
            let bytes = fs::symlink_metadata(file).context("look at a file")?.len();
            Ok::<_, anyhow::Error>(size + bytes.div_ceil(1024))
        })?;
        let control = self.control.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        write(
            &home.join("DEBIAN/control"),
            control.replace("@SIZE@", &size.to_string()).as_bytes(),
        )?;
        if let Some(postinst) = self.postinst {
            write(&home.join("DEBIAN/postinst"), postinst.as_bytes())?;
        }
        if let Some(prerm) = self.prerm {
            write(&home.join("DEBIAN/prerm"), prerm.as_bytes())?;
        }
        settle(&home)?;
        let package = self.path();
        // One thread: what several write depends on how many there are.
        check(
            Command::new("dpkg-deb")
                .args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
                .args([&home, &package])
                .env("SOURCE_DATE_EPOCH", committed()?)
                .stdout(std::process::Stdio::null()),
        )?;
        fs::remove_dir_all(&home).with_context(|| format!("remove {}", home.display()))?;
        let bytes = fs::metadata(&package).context("look at the package")?.len();
        println!("    {} ({:.1} MiB)", package.display(), bytes as f64 / f64::from(1 << 20));
        Ok(package)
    }
}

/// Modes that do not depend on the umask.
pub(crate) fn settle(directory: &Path) -> Result<()> {
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode))
            .with_context(|| format!("set the mode of {}", path.display()))
    };
    mode(directory, 0o755)?;
    for entry in fs::read_dir(directory).context("read a directory")? {
        let path = entry.context("read a directory")?.path();
        let metadata = fs::symlink_metadata(&path).context("look at a file")?;
        let script =
            ["DEBIAN/postinst", "DEBIAN/prerm"].iter().any(|script| path.ends_with(script));
        let runs = script || metadata.permissions().mode() & 0o100 != 0;
        match metadata.file_type() {
            kind if kind.is_symlink() => {}
            kind if kind.is_dir() => settle(&path)?,
            _ => mode(&path, if runs { 0o755 } else { 0o644 })?,
        }
    }
    Ok(())
}

/// When the sources were committed, in seconds since 1970: no file of a package is later.
pub(crate) fn committed() -> Result<String> {
    let git = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root())
        .output()
        .context("run git")?;
    let time = String::from_utf8_lossy(&git.stdout).trim().to_owned();
    ensure!(git.status.success() && !time.is_empty(), "there is no commit to date a package by");
    Ok(time)
}

/// A package that was made is the same when it is made again, installs into a system of its own, beside the lab's, and works there.
pub(crate) fn test(pages: &Path) -> Result<()> {
    let read = || fs::read(TOKEN.path()).context("read the package");
    let first = read()?;
    token(pages)?;
    ensure!(read()? == first, "made twice, it differs");
    let system = target().join("dist/system");
    drop(fs::remove_dir_all(&system));
    write(&system.join("var/lib/dpkg/status"), b"")?;
    fs::create_dir_all(system.join("var/lib/dpkg/updates")).context("make a directory")?;
    fs::create_dir_all(system.join("var/lib/dpkg/info")).context("make a directory")?;
    check(
        Command::new("dpkg")
            .arg(format!("--root={}", system.display()))
            .args([
                "--force-script-chrootless",
                "--force-not-root",
                "--force-depends",
                "--log=/dev/null",
            ])
            .arg("--install")
            .args([TOKEN.path(), LAB.path()])
            .stdout(std::process::Stdio::null()),
    )?;
    let home = system.join("home");
    for (pin, digits) in [("so", "87654321"), ("pin", "12345678")] {
        write(&home.join(pin), digits.as_bytes())?;
    }
    let lines = [
        "token init --label web --so-pin-source so --pin-source pin",
        "key generate --label site --pin-source pin",
        "sign --key site --in so --out so.sig --pin-source pin",
        "verify --key site --in so --signature so.sig",
    ];
    for line in lines {
        let mut metaslot = Command::new(system.join("usr/bin/metaslot"));
        metaslot.args(line.split(' ')).current_dir(&home).env_clear().env("HOME", &home);
        check(metaslot.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()))?;
    }
    daemon(&system)?;
    fs::remove_dir_all(&system).context("remove the system")
}

/// The daemon starts, opens the token that was made, and finds nothing wrong; a wrong PIN is told from other failures.
fn daemon(system: &Path) -> Result<()> {
    let (home, configuration) = (system.join("home"), system.join("home/metaslotd.toml"));
    let token = home.join(".local/share/metaslot/token.db");
    let text = format!(
        "[[token]]\npath = {token:?}\npin-source = \"file:{0}/pin\"\n[daemon]\nsocket = \"{0}/socket\"\n",
        home.display()
    );
    write(&configuration, text.as_bytes())?;
    for (pin, status) in [("12345678", 0), ("12345679", 77)] {
        write(&home.join("pin"), pin.as_bytes())?;
        let mut daemon = Command::new(system.join("usr/sbin/metaslotd"));
        daemon.arg("--check").arg("--config").arg(&configuration).env_clear().env("HOME", &home);
        let said = daemon.output().context("run metaslotd")?;
        ensure!(said.status.code() == Some(status), "metaslotd --check: {said:?}");
    }
    let unit = system.join("usr/lib/systemd/system/metaslotd.service");
    let unit = fs::read_to_string(unit).context("read the unit")?;
    ensure!(unit.contains("ExecStart=/usr/sbin/metaslotd\n"), "the unit starts another program");
    Ok(())
}
