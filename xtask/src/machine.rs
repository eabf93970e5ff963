// SPDX-License-Identifier: Apache-2.0
//! The package under a running systemd, in a virtual machine with Debian's kernel and a TPM: what the pages of the daemon and of the
//! proxy say of units, credentials, control groups, clocks, vsock and the kernel's TLS, none of which a container has.
//!
//! Debian is put together once, by its own packages. Each run starts it from a disk that stays as it is, with the package and a
//! script on another one; the script says on the serial line how each of its checks ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{root, target};
use crate::cpio::Archive;
use crate::emulator::{self, Machine};
use crate::packages::{Package, Probe, is_root};
use crate::report::{Count, check};
use crate::{deb, dist};

const PACKAGES: &[Package] = &[
    ("mmdebstrap", Probe::Program("mmdebstrap")),
    ("e2fsprogs", Probe::Program("mke2fs")),
    ("swtpm", Probe::Program("swtpm")),
];

/// The release that the pages speak of, and what of it is in the machine beside what every system has.
const RELEASE: &str = "bookworm";
const INSIDE: &str = "linux-image-cloud-amd64,systemd-sysv,udev,dbus,procps,\
    libtss2-esys-3.0.2-0,libtss2-rc0,libtss2-mu0,libtss2-tcti-device0,\
    nginx-light,curl,openssl,opensc,p11-kit,p11-kit-modules,socat";

/// The disk is as long as that, and as large as what is on it.
const DISK: &str = "1536M";

const SCRIPT: &str = include_str!("machine.sh");

/// What systemd is told: it starts the script when the system is up, beside what it starts anyway, and nothing reads the serial line.
const WORDS: &str = "root=/dev/vda rw systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service \
    systemd.run=\"/bin/sh -c 'cd /root && cpio --extract --unconditional --quiet < /dev/vdb && exec bash machine.sh > /dev/ttyS0 2>&1'\"";

/// Tests the package that is named, or else one of what is built.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(is_root(), "files of a system belong to its users\nhint: sudo cargo xtask machine");
    emulator::install(PACKAGES)?;
    let package = match arguments {
        [] => deb::token(&dist::man()?)?,
        [package] => PathBuf::from(package),
        _ => bail!("one package, not {}", arguments.join(" ")),
    };
    let home = target().join("machine");
    debian(&home)?;
    fs::write(home.join("files"), files(&package)?).context("write the machine's files")?;
    let tpm = Tpm::start(&home)?;
    let machine = Machine {
        kernel: &home.join("kernel"),
        archive: &home.join("initramfs"),
        words: WORDS,
        megabytes: 2048,
        more: [disk(&home.join("disk")), disk(&home.join("files")), tpm.device()].concat(),
        limit: 1200,
    };
    let count = judged(&machine.run()?, SCRIPT)?;
    println!("\n{} passed, {} failed", count.passed, count.failed);
    ensure!(count.failed == 0, "see what the machine said");
    Ok(())
}

/// Puts Debian together, where it is not there yet: its kernel, what that starts with, and a disk.
fn debian(home: &Path) -> Result<()> {
    let made = home.join("packages");
    let made_of = made_of();
    if fs::read_to_string(&made).is_ok_and(|before| before == made_of) {
        return Ok(());
    }
    println!("    fetching the packages of a Debian");
    drop(fs::remove_dir_all(home));
    fs::create_dir_all(home).context("make a directory")?;
    let tree = home.join("tree");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--mode=root", "--variant=essential"]);
    for unused in ["doc", "man", "locale"] {
        mmdebstrap.arg(format!("--dpkgopt=path-exclude=/usr/share/{unused}/*"));
    }
    mmdebstrap.args(["--include", INSIDE, RELEASE]).arg(&tree);
    check(&mut mmdebstrap)?;
    for (name, begins) in [("kernel", "vmlinuz-"), ("initramfs", "initrd.img-")] {
        let files = fs::read_dir(tree.join("boot"))?.flatten();
        let mut files = files.filter(|file| file.file_name().to_string_lossy().starts_with(begins));
        let file = files.next().with_context(|| format!("no {begins} in its packages"))?;
        fs::copy(file.path(), home.join(name)).context("copy the kernel's file")?;
    }
    let mut mke2fs = Command::new("mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-d"]).arg(&tree).arg(home.join("disk")).arg(DISK);
    check(&mut mke2fs)?;
    fs::remove_dir_all(&tree).context("remove what the disk was made of")?;
    fs::write(made, made_of).context("write down what is on the disk")
}

/// By what a Debian that was put together is known to be the one that is wanted.
fn made_of() -> String {
    [RELEASE, DISK, INSIDE].join("\n")
}

/// What is brought to the machine: the package, the lines of the page, and the script.
fn files(package: &Path) -> Result<Vec<u8>> {
    let page = root().join("docs/daemon-host.md");
    let page = fs::read_to_string(&page).with_context(|| format!("read {}", page.display()))?;
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines: String = blocks.collect();
    // A PIN that takes a tenth of a second costs some when each instruction is emulated.
    let lines = lines.replace("[[token]]\n", "[[token]]\nkdf = \"weak-for-tests\"\n");
    let mut archive = Archive::default();
    archive.copy(package, "metaslot.deb")?;
    archive.file("page.sh", lines.as_bytes())?;
    archive.file("machine.sh", SCRIPT.as_bytes())?;
    archive.finished()
}

/// A disk of which the machine changes a copy.
fn disk(file: &Path) -> Vec<String> {
    let file = file.display();
    vec!["-drive".to_owned(), format!("if=virtio,format=raw,snapshot=on,file={file}")]
}

/// A new TPM, in a process that ends with this value.
struct Tpm {
    process: Child,
    socket: PathBuf,
}

impl Tpm {
    fn start(home: &Path) -> Result<Self> {
        let state = home.join("tpm");
        drop(fs::remove_dir_all(&state));
        fs::create_dir_all(&state).context("make the TPM's directory")?;
        let socket = state.join("socket");
        let mut swtpm = Command::new("swtpm");
        swtpm.args(["socket", "--tpm2", "--tpmstate"]).arg(format!("dir={}", state.display()));
        swtpm.arg("--ctrl").arg(format!("type=unixio,path={}", socket.display()));
        let tpm = Self { process: swtpm.spawn().context("run swtpm")?, socket };
        for _ in 0..100 {
            if tpm.socket.exists() {
                return Ok(tpm);
            }
            sleep(Duration::from_millis(50));
        }
        bail!("swtpm makes no socket {}", tpm.socket.display())
    }

    fn device(&self) -> Vec<String> {
        let socket = format!("socket,id=tpm,path={}", self.socket.display());
        let words = ["-chardev", &socket, "-tpmdev", "emulator,id=tpm,chardev=tpm"];
        words.into_iter().chain(["-device", "tpm-crb,tpmdev=tpm"]).map(str::to_owned).collect()
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// How the checks of a script ended; one that says nothing has failed.
fn judged(said: &str, script: &str) -> Result<Count> {
    let checks = script.lines().filter(|line| line.trim_start().starts_with("check \"")).count();
    let passed = said.lines().filter(|line| line.starts_with("ok: ")).count();
    let failed = checks.checked_sub(passed).context("more checks passed than there are")?;
    Ok(Count { passed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_release_disk_or_package_makes_another_debian() {
        let made_of = made_of();
        assert!(
            [RELEASE, DISK, INSIDE].iter().all(|part| made_of.lines().any(|line| line == *part))
        );
    }

    #[test]
    fn a_check_that_says_nothing_has_failed() {
        let script = "check() { # SENTENCE\ncheck \"one\" one\ncheck \"two\" two\n    check \"three\" three\n";
        let count = |said| judged(said, script).map(|count| (count.passed, count.failed)).unwrap();
        assert_eq!(count("ok: one\nok: two\nok: three\n"), (3, 0));
        assert_eq!(count("ok: one\nFAILED: two\n    ok: not this\nok: three\n"), (2, 1));
        assert_eq!(count("ok: one\n"), (1, 2));
        assert!(judged("ok: one\nok: one\n", "check \"one\" one\n").is_err());
        assert!(judged("", SCRIPT).unwrap().failed > 10);
    }
}
