// SPDX-License-Identifier: Apache-2.0
//! What a library of ours gives to a program and wants of it, as the linker has written it down.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The libraries of every system: how their names begin.
const SYSTEM: [&str; 4] = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];

/// Refuses a library that gives other symbols than these, or that wants another library than the system's.
pub(crate) fn check(library: &Path, symbols: &[&str]) -> Result<()> {
    let given = given(&said("nm", &["-D", "--defined-only"], library)?);
    ensure!(given == symbols, "{} gives {given:?}, and not {symbols:?}", library.display());
    let wanted = wanted(&said("readelf", &["-d"], library)?);
    let others: Vec<_> =
        wanted.iter().filter(|name| !SYSTEM.iter().any(|known| name.starts_with(known))).collect();
    ensure!(others.is_empty(), "{} wants {others:?}", library.display());
    Ok(())
}

fn said(program: &str, options: &[&str], library: &Path) -> Result<String> {
    let output = Command::new(program).env("LC_ALL", "C").args(options).arg(library).output();
    let output = output.with_context(|| format!("run {program}"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines of `nm`: an address, a letter and the name.
fn given(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

/// Lines of `readelf`: `(NEEDED)  Shared library: [NAME]`.
fn wanted(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("(NEEDED)"));
    lines
        .filter_map(|line| Some(line.split_once('[')?.1.trim_end_matches(']').to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_say_is_read() {
        assert_eq!(given("0000000000006bd0 T OSSL_provider_init\n"), ["OSSL_provider_init"]);
        let text = "0x1 (NEEDED)  Shared library: [libc.so.6]\n0xe (SONAME)  Library soname: [metaslot.so]\n";
        assert_eq!(wanted(text), ["libc.so.6"]);
    }
}
