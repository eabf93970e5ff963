// SPDX-License-Identifier: Apache-2.0
//! The README's way from a package to a TLS server, as it is printed, in a system where nothing of ours is: this one, with what is
//! changed kept in memory and gone at the end.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{root, target};
use crate::packages::is_root;
use crate::report::Count;

/// Above the lines.
const HEADING: &str = "## A TLS server with its key in a token";

/// Seconds in which it is to be done; a hung server would take for ever.
const LIMIT: &str = "60";

/// What is changed below these directories is in memory.
const BEFORE: &str = r#"
set -e
mount -t tmpfs metaslot-first /mnt
for directory in etc usr var run root; do
    mkdir -p "/mnt/$directory/new" "/mnt/$directory/work"
    mount -t overlay metaslot-first -o "lowerdir=/$directory,upperdir=/mnt/$directory/new,workdir=/mnt/$directory/work" "/$directory"
done
# Nor is anything there of who works with ours on this machine: this is in memory, too.
rm -rf /root/.local/share/metaslot /root/.config/metaslot
export HOME=/root DEBIAN_FRONTEND=noninteractive
# The workers of the server have other rights, whatever root's mask is.
umask 077
trap 'test ! -s /run/nginx.pid || kill "$(cat /run/nginx.pid)"' EXIT
set -x
"#;

/// The counters show which process signed.
const AFTER: &str = "metaslot stat --json";

fn lines() -> Result<String> {
    let readme = fs::read_to_string(root().join("README.md")).context("read the README")?;
    let section = readme.split_once(HEADING).context("the README has no such section")?.1;
    let block = section.split("```").nth(1).context("the section has no lines")?;
    Ok(block.trim().to_owned())
}

/// Runs the lines. They need root, and a port 443 that nobody has.
pub(crate) fn test() -> Result<Count> {
    if !is_root() {
        println!("    not run: it needs root, who may mount file systems");
        return Ok(Count::default());
    }
    let lines = lines()?;
    ensure!(lines.lines().count() == 4, "three commands, and one that looks at the result");
    let mut first = Command::new("timeout");
    first.args([
        LIMIT,
        "unshare",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    first.args(["bash", "-c", &format!("ip link set lo up\n{BEFORE}{lines}\n{AFTER}")]);
    first.current_dir(target().join("dist")).env_clear();
    first.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let started = Instant::now();
    let output = first.output().context("run unshare")?;
    let took = started.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout);
    let noted = String::from_utf8_lossy(&output.stderr);
    let seen = ["</html>", "\"program\": \"nginx\"", "\"CKM_ECDSA"];
    if !output.status.success() || !seen.iter().all(|text| said.contains(text)) {
        bail!("{}\n{said}\n{noted}", output.status);
    }
    println!("    from the package to a page over TLS: {took:.1} s");
    Ok(Count::ONE)
}
