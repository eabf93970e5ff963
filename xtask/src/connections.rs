// SPDX-License-Identifier: Apache-2.0
//! What a key costs a server that forks for each connection, as PostgreSQL does: fork, log in, find the key, sign. Beside it the
//! fork alone, a key that the parent has read from a file, and SoftHSM.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{build, command, module, root, target};
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use crate::report::check;

const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "7482910365";
const ROUNDS: usize = 301;

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_RUN, FOR_TESTS])?;
    build()?;
    let home = target().join("connections");
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(home.join("softhsm")).context("make the directory")?;
    let home = fs::canonicalize(&home).context("find the directory")?;
    prepare(&home)?;
    let program = home.join("connections");
    let rounds = ROUNDS.to_string();
    let (own, module) = (program.as_path(), module());
    let mut measured = within(&home, own);
    let done = measured.args([&rounds, PIN, "key.pem"]).arg(&module).arg(SOFTHSM).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in String::from_utf8(done.stdout)?.lines() {
        let (kind, time) = line.split_once('\t').context("a line has two cells")?;
        times.entry(kind.to_owned()).or_default().push(time.parse::<f64>()? / 1e6);
    }
    print(&times, &module.display().to_string());
    Ok(())
}

/// Each kind, and what it adds to the fork and to the key in a file of its own round.
fn print(times: &BTreeMap<String, Vec<f64>>, module: &str) {
    println!(
        "A connection for each process: P-256, {ROUNDS} rounds in turn; medians in ms (quartiles)"
    );
    println!("{:<24} {:>26} {:>26} {:>26}", "", "whole", "added to the fork", "to a key in a file");
    let kinds = [
        ("fork", "fork"),
        ("file", "key in a file, OpenSSL"),
        (module, "token, fast login"),
        (SOFTHSM, "SoftHSM"),
    ];
    for (kind, name) in kinds {
        let Some(own) = times.get(kind) else { continue };
        let over = |other: &str| {
            let other = times.get(other).into_iter().flatten();
            quartiles(own.iter().zip(other).map(|(own, other)| own - other).collect())
        };
        let whole = quartiles(own.clone());
        println!("{name:<24} {whole:>26} {:>26} {:>26}", over("fork"), over("file"));
    }
}

fn quartiles(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |quarter: usize| times.get(times.len() * quarter / 4).copied().unwrap_or(f64::NAN);
    format!("{:.3} ({:.3} to {:.3})", at(2), at(1), at(3))
}

/// A key of each kind, and the program.
fn prepare(home: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        fs::write(home.join(name), text).with_context(|| format!("write {name}"))
    };
    let place = |name: &str| home.join(name).display().to_string();
    write(
        "metaslot.toml",
        &format!("[[token]]\npath = \"{}\"\nfast_login = \"15m\"\n", place("token.db")),
    )?;
    write("softhsm.conf", &format!("directories.tokendir = {}\n", place("softhsm")))?;
    write("pin", PIN)?;
    let metaslot = command().display().to_string();
    let softhsm = format!("--label made --pin {PIN} --so-pin {PIN}");
    let opensc = format!("--module {SOFTHSM} --token-label made --login --pin {PIN} --label key");
    for line in [
        format!("{metaslot} token init --label made --pin-source pin --so-pin-source pin"),
        format!("{metaslot} key generate --label key --type ec:p256 --pin-source pin"),
        String::from("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem"),
        format!("softhsm2-util --init-token --free {softhsm}"),
        format!("pkcs11-tool {opensc} --keypairgen --key-type EC:prime256v1"),
    ] {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        check(within(home, Path::new(program)).args(words))?;
    }
    let mut cc = within(home, Path::new("cc"));
    cc.arg("-O2").arg("-I").arg(root().join("include")).args(["-o", "connections"]);
    cc.arg(root().join("xtask/src/connections.c"));
    check(cc.args(["-lcrypto", "-ldl"])).map(|_| ())
}

fn within(home: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home).env("METASLOT_MODULE", module());
    command.env("METASLOT_CONF", "metaslot.toml").env("SOFTHSM2_CONF", "softhsm.conf");
    command
}
