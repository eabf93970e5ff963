// SPDX-License-Identifier: Apache-2.0
//! A virtual machine whose every instruction is emulated.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::packages::{self, Package, Probe};

const QEMU: Package = ("qemu-system-x86", Probe::Program("qemu-system-x86_64"));

/// Installs QEMU and what else is needed.
pub(crate) fn install(more: &[Package]) -> Result<()> {
    ensure!(cfg!(target_arch = "x86_64"), "the kernel that is tested is one for x86-64");
    packages::install(&[&[QEMU], more])
}

/// One that is about to run.
pub(crate) struct Machine<'a> {
    /// The kernel's own file, and the archive that it unpacks before it starts anything.
    pub(crate) kernel: &'a Path,
    pub(crate) archive: &'a Path,
    /// What the kernel is told beside where its console is.
    pub(crate) words: &'a str,
    pub(crate) megabytes: u32,
    /// Further arguments of QEMU's: devices, and whether it ends where it would start again.
    pub(crate) more: Vec<String>,
    /// Seconds after which it is ended.
    pub(crate) limit: u32,
}

impl Machine<'_> {
    /// Runs it until it ends itself, and shows and returns what it says.
    pub(crate) fn run(&self) -> Result<String> {
        let started = Instant::now();
        let mut command = Command::new("timeout");
        // In the foreground, so that ^C ends the machine too.
        command.args(["--foreground", "--kill-after=5", &self.limit.to_string()]);
        command.args(["qemu-system-x86_64", "-nodefaults", "-display", "none"]);
        command.args(["-serial", "stdio", "-smp", "2", "-m", &self.megabytes.to_string()]);
        // KVM, where there is one, is that of a machine within a machine as often as not, which not every kernel survives.
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max"]);
        command.arg("-kernel").arg(self.kernel).arg("-initrd").arg(self.archive);
        command.arg("-append").arg(format!("console=ttyS0 quiet panic=-1 {}", self.words));
        command.args(&self.more);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("run QEMU")?;
        let mut said = String::new();
        let serial = BufReader::new(child.stdout.take().context("no serial line")?);
        for line in serial.split(b'\n') {
            let line = String::from_utf8_lossy(&line.context("read the serial line")?).into_owned();
            let line = line.trim_end();
            if !line.is_empty() {
                println!("    {line}");
            }
            said += line;
            said.push('\n');
        }
        let status = child.wait().context("wait for QEMU")?;
        println!("    the machine took {:.1} s", started.elapsed().as_secs_f64());
        match status.code() {
            Some(0) => Ok(said),
            Some(124 | 137) => bail!("the machine was ended after {} s", self.limit),
            _ => bail!("the machine ended with {status}"),
        }
    }
}
