// SPDX-License-Identifier: Apache-2.0
//! What has to be on the machine: Debian packages and one Python environment. Installed when that
//! is allowed, and otherwise named exactly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{root, target};

/// How one sees that a package is there.
#[derive(Clone, Copy)]
pub(crate) enum Probe {
    /// A program in the search path.
    Program(&'static str),
    /// A file whose path begins with one of the library directories.
    Library(&'static str),
    /// A file.
    File(&'static str),
    /// A module that the system's Python can import.
    Python(&'static str),
}

/// A Debian package and the file that proves it.
pub(crate) type Package = (&'static str, Probe);

const SYSTEM_PYTHON: &str = "/usr/bin/python3";
const LIBRARIES: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];

/// What `run` needs.
pub(crate) const FOR_RUN: &[Package] = &[
    ("gcc", Probe::Program("gcc")),
    ("libc6-dev", Probe::File("/usr/include/stdio.h")),
    ("openssl", Probe::Program("openssl")),
    ("curl", Probe::Program("curl")),
    ("softhsm2", Probe::Program("softhsm2-util")),
];

/// What the tests need beside that.
pub(crate) const FOR_TESTS: &[Package] = &[
    ("opensc", Probe::Program("pkcs11-tool")),
    ("openssh-server", Probe::File("/usr/sbin/sshd")),
    ("openssh-client", Probe::Program("ssh-keygen")),
    ("openjdk-17-jdk-headless", Probe::Program("javac")),
    ("libp11-kit-dev", Probe::File("/usr/include/p11-kit-1/p11-kit/pkcs11.h")),
    ("libengine-pkcs11-openssl", Probe::Library("engines-3/pkcs11.so")),
    ("libssl-dev", Probe::File("/usr/include/openssl/ssl.h")),
    ("p11-kit", Probe::Program("p11-kit")),
    ("p11-kit-modules", Probe::Library("pkcs11/p11-kit-client.so")),
    ("libnss3", Probe::Library("libsoftokn3.so")),
    ("opencryptoki", Probe::Program("pkcsslotd")),
    ("libtpm2-pkcs11-1", Probe::Library("pkcs11/libtpm2_pkcs11.so")),
    ("swtpm", Probe::Program("swtpm")),
    ("tpm2-abrmd", Probe::Program("tpm2-abrmd")),
    ("tpm2-tools", Probe::Program("tpm2_dictionarylockout")),
    ("libtss2-tcti-tabrmd0", Probe::Library("libtss2-tcti-tabrmd.so.0")),
    ("dbus-daemon", Probe::Program("dbus-daemon")),
    ("procps", Probe::Program("ps")),
    ("iperf3", Probe::Program("iperf3")),
    ("binutils", Probe::Program("objdump")),
    ("bpftrace", Probe::Program("bpftrace")),
    ("valgrind", Probe::Program("valgrind")),
    ("xz-utils", Probe::Program("xz")),
    ("nginx-light", Probe::Program("nginx")),
    ("apache2-bin", Probe::Program("apache2")),
    ("stunnel4", Probe::Program("stunnel4")),
    ("gnutls-bin", Probe::Program("p11tool")),
    ("libnss3-tools", Probe::Program("certutil")),
    ("knot", Probe::Program("keymgr")),
    ("knot-dnssecutils", Probe::Program("kzonesign")),
    ("strongswan-pki", Probe::Program("pki")),
    ("libstrongswan-extra-plugins", Probe::Library("ipsec/plugins/libstrongswan-pkcs11.so")),
    ("osslsigncode", Probe::Program("osslsigncode")),
    ("postgresql", Probe::File("/usr/lib/postgresql")),
    ("git", Probe::Program("git")),
    ("zsh", Probe::Program("zsh")),
    ("fish", Probe::Program("fish")),
    ("golang-go", Probe::Program("go")),
    ("haproxy", Probe::Program("haproxy")),
    ("mariadb-server-core", Probe::Program("mariadbd")),
    ("mariadb-client-core", Probe::Program("mariadb")),
    ("openvpn", Probe::Program("openvpn")),
    ("gnupg-pkcs11-scd", Probe::Program("gnupg-pkcs11-scd")),
    ("gpg", Probe::Program("gpg")),
    ("gpg-agent", Probe::Program("gpg-agent")),
    ("nodejs", Probe::Program("node")),
    ("npm", Probe::Program("npm")),
    ("libnode-dev", Probe::File("/usr/include/node/node.h")),
    ("g++", Probe::Program("g++")),
    ("make", Probe::Program("make")),
    ("python3", Probe::File(SYSTEM_PYTHON)),
    ("python3-cryptography", Probe::Python("cryptography")),
    ("python3-venv", Probe::Python("ensurepip")),
];

impl Probe {
    fn found(self) -> bool {
        match self {
            Self::Program(name) => program(name).is_some(),
            Self::Library(path) => LIBRARIES.iter().any(|at| Path::new(at).join(path).exists()),
            Self::File(path) => Path::new(path).exists(),
            Self::Python(module) => imports(Path::new(SYSTEM_PYTHON), module),
        }
    }
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// Installs what is missing of `wanted`; where that is not possible, the error says what to type.
pub(crate) fn install(wanted: &[&[Package]]) -> Result<()> {
    let missing: Vec<&str> = wanted
        .iter()
        .flat_map(|list| list.iter())
        .filter(|(_, probe)| !probe.found())
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !is_root() || program("apt-get").is_none() {
        bail!("missing: {}\nhint: sudo {line}", missing.join(", "));
    }
    println!("    installing {}", missing.join(" "));
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(&missing);
    apt(&arguments).with_context(|| format!("hint: try by hand: {line}"))
}

/// The users of services whose packages are there without what makes them: Debian's `mariadb-server` does, its core does not.
const USERS: &[(&str, &str)] = &[("mysql", "mariadbd")];

/// Makes the users that are missing, as Debian's packages would.
pub(crate) fn make_users() -> Result<()> {
    let known = fs::read_to_string("/etc/passwd").context("read /etc/passwd")?;
    let is_known = |user: &str| known.lines().any(|line| line.split(':').next() == Some(user));
    for (user, _) in USERS.iter().filter(|row| program(row.1).is_some() && !is_known(row.0)) {
        if !is_root() {
            bail!("missing: the user {user}\nhint: sudo useradd --system --user-group {user}");
        }
        println!("    making the user {user}");
        let mut useradd = Command::new("useradd");
        useradd.args(["--system", "--user-group", "--no-create-home"]);
        let made = useradd.args(["--shell", "/usr/sbin/nologin", user]).output();
        let made = made.context("run useradd")?;
        if !made.status.success() {
            bail!("useradd {user}: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
    }
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<()> {
    let output = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .context("run apt-get")?;
    if !output.status.success() {
        bail!("apt-get {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// What the Python environment has: a package, and the module in it.
const PYTHON: &[(&str, &str)] = &[
    ("PyKCS11==1.5.20", "PyKCS11"),
    ("python-pkcs11==0.10.1", "pkcs11"),
    ("cryptography==48.0.0", "cryptography.hazmat.primitives.asymmetric.mldsa"),
    // For the suite of python-pkcs11.
    ("pytest==9.0.2", "pytest"),
    ("parameterized==0.9.0", "parameterized"),
];

/// The distribution whose tests [`python_suite`] unpacks.
const SUITE: &str = "python-pkcs11==0.10.1";

/// The tests of python-pkcs11, which its source distribution has and its wheels lack, under the target directory.
pub(crate) fn python_suite(python: &Path) -> Result<()> {
    let home = target().join("suites/python-pkcs11");
    let archive = format!("{}.tar.gz", SUITE.replace("==", "-").replacen('-', "_", 1));
    if home.join(&archive).exists() {
        return Ok(());
    }
    println!("    unpacking the tests of {SUITE} in {}", home.display());
    // It is named when it is whole, and in the place of another version.
    let fresh = target().join("suites/unpacking");
    for directory in [&home, &fresh] {
        if directory.exists() {
            fs::remove_dir_all(directory).context("remove an old directory of the suite")?;
        }
    }
    fs::create_dir_all(&fresh).context("make the directory of the suite")?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    quietly(pip.args(["--no-binary", "python-pkcs11", "--dest"]).arg(&fresh).arg(SUITE))?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--wildcards", "--directory"]).arg(&fresh);
    quietly(tar.arg("--extract").arg("--file").arg(fresh.join(archive)).arg("*/tests/*"))?;
    fs::rename(&fresh, &home).context("name the directory of the suite")
}

/// The Python environment of the tests, made under the target directory when it is not there yet.
pub(crate) fn python() -> Result<PathBuf> {
    let home = target().join("venv");
    let python = home.join("bin/python3");
    let packages = PYTHON.iter().map(|(package, _)| *package).collect::<Vec<_>>();
    let complete =
        || has(&python, &packages) && PYTHON.iter().all(|(_, module)| imports(&python, module));
    if complete() {
        return Ok(python);
    }
    println!("    making a Python environment in {}", home.display());
    quietly(Command::new(SYSTEM_PYTHON).args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    quietly(pip.args(&packages))?;
    if !complete() {
        bail!("the Python packages were installed and cannot be imported");
    }
    Ok(python)
}

/// The packages of Node.js that `testdata/node` names, fetched and compiled under the target directory.
pub(crate) fn node() -> Result<PathBuf> {
    let home = target().join("node");
    let addon = home.join("node_modules/pkcs11js/build/Release/pkcs11.node");
    if addon.exists() {
        return Ok(home);
    }
    println!("    installing packages of Node.js in {}", home.display());
    fs::create_dir_all(&home).context("make the directory of Node's packages")?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(root().join("testdata/node").join(name), home.join(name)).context("copy")?;
    }
    // With the headers of Debian's package: they are fetched otherwise.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund"]).env("npm_config_nodedir", "/usr");
    quietly(npm.current_dir(&home))?;
    if !addon.exists() {
        bail!("npm has installed pkcs11js and not compiled it");
    }
    Ok(home)
}

/// Where pkcs11-provider is, below one of [`LIBRARIES`].
const PROVIDER: &str = "ossl-modules/pkcs11.so";
/// Debian 12's archive of newer packages, on the mirror that this machine takes its packages from.
fn backports() -> Result<String> {
    let archive = || -> Result<Option<String>> {
        let mut apt_get = Command::new("apt-get");
        apt_get.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE)"]);
        let output = apt_get.arg("Created-By: Packages").output().context("run apt-get")?;
        let archives = String::from_utf8_lossy(&output.stdout);
        Ok(archives.lines().find_map(|line| line.strip_suffix(" bookworm").map(str::to_owned)))
    };
    let mut uri = archive()?;
    if uri.is_none() {
        // It names those only whose lists are here.
        apt(&["update", "-qq"])?;
        uri = archive()?;
    }
    let uri = uri.context("no archive of bookworm among those of this machine")?;
    let signed = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
    Ok(format!("deb [{signed}] {uri} bookworm-backports main\n"))
}

/// OpenSSL's provider for PKCS#11 modules. Debian 12 has it in its backports: from there it is unpacked under the target directory, and
/// the system's list of archives stays as it is. Later ones have a package.
pub(crate) fn provider() -> Result<()> {
    let home = target().join("pkcs11-provider");
    let below = |root: &Path| {
        LIBRARIES.iter().any(|at| root.join(at.trim_start_matches('/')).join(PROVIDER).exists())
    };
    if below(Path::new("/")) || below(&home) {
        return Ok(());
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !release.contains("VERSION_CODENAME=bookworm") {
        return install(&[&[("pkcs11-provider", Probe::Library(PROVIDER))]]);
    }
    println!("    unpacking pkcs11-provider of bookworm-backports in {}", home.display());
    let apt = home.join("apt");
    fs::create_dir_all(apt.join("lists/partial")).context("make the directory of lists")?;
    fs::create_dir_all(apt.join("cache/archives/partial")).context("make the cache")?;
    fs::write(apt.join("sources.list"), backports()?).context("write the list of archives")?;
    let own = |name: &str, path: &str| format!("{name}={}", apt.join(path).display());
    let options = [
        own("Dir::Etc::SourceList", "sources.list"),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        own("Dir::State::Lists", "lists"),
        own("Dir::Cache", "cache"),
    ];
    for command in [["update", "-qq"], ["download", "pkcs11-provider"]] {
        let mut apt_get = Command::new("apt-get");
        for option in &options {
            apt_get.args(["-o", option]);
        }
        quietly(apt_get.args(command).current_dir(&home))?;
    }
    let found = fs::read_dir(&home).context("look at what was fetched")?.flatten();
    let package =
        found.map(|entry| entry.path()).find(|path| path.extension() == Some("deb".as_ref()));
    let package = package.context("apt-get fetched no package")?;
    quietly(Command::new("dpkg-deb").arg("-x").args([&package, &home]))
}

/// What ends badly unless each `NAME==VERSION` among its arguments is installed.
const VERSIONS: &str = "import sys, importlib.metadata as m
sys.exit(any(m.version(name) != version for name, version in (word.split('==') for word in sys.argv[1:])))";

/// Whether an environment has these packages in these versions: another one is left by an earlier commit.
pub(crate) fn has(python: &Path, packages: &[&str]) -> bool {
    let mut python = Command::new(python);
    python.args(["-c", VERSIONS]).args(packages).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn imports(python: &Path, module: &str) -> bool {
    Command::new(python)
        .args(["-c", &format!("import {module}")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_not_there() {
        let python = Path::new(SYSTEM_PYTHON);
        let version = "import importlib.metadata as m
for one in m.distributions(): print(one.name + '==' + one.version)";
        let told = Command::new(python).args(["-c", version]).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout);
        let Some(there) = told.lines().next() else { return println!("not run: no packages") };
        assert!(has(python, &[there]) && has(python, &[]));
        assert!(!has(python, &[there, &format!("{there}.9")]));
        assert!(!has(python, &["no-such-package==1"]));
    }
}
