// SPDX-License-Identifier: Apache-2.0
//! The one entrance for everything that is done to this repository: build, test, measure, package.
//!
//! Each task is a file. Nothing here is needed to build the module itself, and nothing here is
//! installed.
#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod codegen;
mod connections;
mod cpio;
mod cycles;
mod deb;
mod deny;
mod dist;
mod first;
mod floors;
mod fuzz;
mod header;
mod install;
mod kernel;
mod kryoptic;
mod miri;
mod packages;
mod report;
mod run;
mod search;
mod structure;
mod suites;
mod test;
mod tls;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  run                 build, make a token, serve TLS with a key in it, sign a file; a table at the end
  test                everything that decides whether a change may go in
  bench [ARGUMENTS]   metaslot lab speed with the release build; bench lanes [ARGUMENTS]: metaslot lab lanes;
                      bench tls: handshakes of threaded servers and nginx; bench connections: what a key
                      costs a server that forks for each connection
  search [--policy default|legacy] [--allow NAME] [--minutes N] [--seed N]
                      look for attacks on the interface; --allow: would one be found, were this not refused?
  suites              what of others' suites takes too long for test: pkcs11-check, all of it
  histories [COUNT]   histories of threads beside a model, a million of them; METASLOT_MIXTURE and METASLOT_THREADS
                      narrow them
  openssl             build OpenSSL, and let it and the other providers judge each other
  kernel              let the provider over the operating system's kernel and AWS-LC judge each other, in a virtual
                      machine
  kryoptic            build another token in Rust, and test its module behind ours
  codegen [--check]   write (or compare) the files generated from the standard's bindings
  structure           check the tree against ARCHITECTURE.md, and the packages against deny.toml
  fuzz [TARGET] [--minutes N]
                      a fuzz target under libFuzzer, or each in turn, for a minute if not said otherwise
  miri                the tests that Miri can run, where a toolchain has it
  install [--prefix DIR] [--destdir DIR]
                      build and install: below /usr/local as root, ~/.local otherwise
  uninstall [--prefix DIR] [--destdir DIR]
                      take that out again
  man                 write man pages and completions to target/man
  dist                write tarballs and Debian packages to target/dist
  reproduce           build the committed state in two folders, and compare what dist makes of it
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let done = match arguments.first().map(String::as_str) {
        Some("run") => run::run(),
        Some("test") => test::run(),
        Some("bench") => bench::run(rest),
        Some("search") => search::run(rest),
        Some("suites") => test::suites(),
        Some("histories") => test::histories(rest),
        Some("openssl") => test::openssl(),
        Some("kernel") => kernel::run(),
        Some("kryoptic") => kryoptic::run(),
        Some("codegen") => codegen::run(rest.iter().any(|word| word == "--check")),
        Some("structure") => structure::run(),
        Some("fuzz") => fuzz::run(rest),
        Some("miri") => miri::run(),
        Some("install") => install::install(rest),
        Some("uninstall") => install::uninstall(rest),
        Some("man") => dist::man().map(|_| ()),
        Some("dist") => dist::run(dist::Library::Whole),
        Some("reproduce") => dist::reproduce(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
