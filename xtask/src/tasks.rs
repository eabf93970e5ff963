// SPDX-License-Identifier: Apache-2.0
//! The words of `cargo xtask`: what each does, what it takes, and how long that takes. The list of them and `--help` are made of
//! this table.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use crate::{
    bench, codegen, dist, fleet, fuzz, install, kernel, kryoptic, machine, miri, openssls, run,
    search, structure, test,
};

/// One word.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// What may stand behind it.
    takes: &'static str,
    /// One sentence, for the list.
    does: &'static str,
    /// What stands behind it, line by line: the word, and what it says.
    options: &'static [(&'static str, &'static str)],
    /// How long it takes on two cores, and what it needs or leaves.
    costs: &'static str,
    run: Run,
}

enum Run {
    Plain(fn() -> Result<()>),
    With(fn(&[String]) -> Result<()>),
}

impl Task {
    pub(crate) fn run(&self, arguments: &[String]) -> Result<()> {
        match self.run {
            Run::With(task) => task(arguments),
            Run::Plain(task) => {
                let extra = arguments.join(" ");
                let name = self.name;
                ensure!(extra.is_empty(), "{name} takes no arguments; these are: {extra}");
                task()
            }
        }
    }

    fn usage(&self) -> String {
        format!("{} {}", self.name, self.takes).trim_end().to_owned()
    }

    pub(crate) fn help(&self) -> String {
        let mut text = format!("{}\n\nusage: cargo xtask {}\n", self.does, self.usage());
        if !self.options.is_empty() {
            text.push('\n');
        }
        for (word, says) in self.options {
            _ = writeln!(text, "  {word:<20} {says}");
        }
        text + "\n" + self.costs + "\n"
    }
}

/// All of them, a line or two each.
pub(crate) fn list() -> String {
    let mut text = "usage: cargo xtask TASK; cargo xtask TASK --help says more\n\n".to_owned();
    for task in TASKS {
        let usage = task.usage();
        if usage.len() < 20 {
            _ = writeln!(text, "  {usage:<20} {}", task.does);
        } else {
            _ = writeln!(text, "  {usage}\n{:<22} {}", "", task.does);
        }
    }
    text
}

const PLACE: &[(&str, &str)] = &[
    ("--prefix DIR", "below this directory: /usr/local as root, ~/.local otherwise"),
    ("--destdir DIR", "in this copy of the file system, for who makes a package"),
];

pub(crate) const TASKS: &[Task] = &[
    Task {
        name: "run",
        takes: "",
        does: "build, make a token, serve TLS with a key in it, sign a file; a table at the end",
        options: &[],
        costs: "Half a minute, after a release build of some minutes. As root it installs the packages that it needs, and otherwise\n\
                names them. It changes nothing else outside of target.",
        run: Run::Plain(run::run),
    },
    Task {
        name: "test",
        takes: "",
        does: "everything that decides whether a change may go in",
        options: &[],
        costs: "Fifteen minutes and more, the first time. As root it installs the packages that the tests need; what pip, npm and Go\n\
                fetch stays in target.",
        run: Run::Plain(test::run),
    },
    Task {
        name: "bench",
        takes: "[lanes|tls|connections] [ARGUMENTS]",
        does: "measure with the release build",
        options: &[
            ("[ARGUMENTS]", "metaslot lab speed with these arguments"),
            ("lanes [ARGUMENTS]", "metaslot lab lanes with these arguments"),
            (
                "tls [SERVER] [--rounds N]",
                "handshakes of threaded servers and nginx, key in a file and in a token; SERVER: openssl, nginx, java",
            ),
            ("connections", "what a key costs a server that forks for each connection"),
        ],
        costs: "Minutes, after a release build of some minutes; BENCHMARKING.md says what to read from it. `metaslot lab speed --help`\n\
                and `metaslot lab lanes --help` have their arguments.",
        run: Run::With(bench::run),
    },
    Task {
        name: "fleet",
        takes: "[--NAME NUMBER]...",
        does: "model many machines that share a token in PostgreSQL",
        options: &[
            ("--machines N, --processes N", "how many there are, and on each"),
            ("--hot N, --keys N", "keys that each machine uses, and that are rotated"),
            ("--cores N", "of the server"),
            ("--connect MS, --statement MS", "of a core, for a connection and a statement"),
            ("--change MS, --pin MS", "under the lock of changes, and of tries of PINs"),
            (
                "--spread S, --again S",
                "over which machines start, and after which a failed one does",
            ),
        ],
        costs: "A moment: it computes, and asks no server. docs/postgresql.md says what to read from it.",
        run: Run::With(fleet::run),
    },
    Task {
        name: "packages",
        takes: "",
        does: "make what is released, install it, and use it as the README says; part of test",
        options: &[],
        costs: "A minute, after a release build. It changes nothing outside of target; the way of the README needs root.",
        run: Run::Plain(test::packages),
    },
    Task {
        name: "search",
        takes: "[--policy POLICY] [--allow NAME] [--minutes N] [--seed N]",
        does: "look for attacks on the interface",
        options: &[
            (
                "--policy POLICY",
                "default, where none may be found, or legacy, where some have to be",
            ),
            ("--allow NAME", "would one be found, were this not refused?"),
            ("--minutes N", "for so long: 1"),
            ("--seed N", "the same search again"),
        ],
        costs: "A minute if not said otherwise, after a release build of the models.",
        run: Run::With(search::run),
    },
    Task {
        name: "suites",
        takes: "",
        does: "what of others' suites takes too long for test: pkcs11-check, all of it",
        options: &[],
        costs: "Ten minutes, after a release build of some minutes. It wants Python 3.12, from the search path or from pyenv.",
        run: Run::Plain(test::suites),
    },
    Task {
        name: "histories",
        takes: "[COUNT]",
        does: "histories of threads beside a model",
        options: &[
            ("COUNT", "so many: 1000000"),
            ("METASLOT_MIXTURE", "in the environment: one mixture of calls"),
            ("METASLOT_THREADS", "in the environment: so many threads"),
        ],
        costs: "Some minutes, after a release build of the models.",
        run: Run::With(test::histories),
    },
    Task {
        name: "openssl",
        takes: "",
        does: "build OpenSSL, and let it and the other providers judge each other",
        options: &[],
        costs: "A minute and a half to build the library, once, and two to test.",
        run: Run::Plain(test::openssl),
    },
    Task {
        name: "kernel",
        takes: "",
        does: "let the provider over the operating system's kernel and AWS-LC judge each other, in a virtual machine",
        options: &[],
        costs: "One to three minutes, because every instruction is emulated. Debian's kernel and QEMU are fetched once, 45 MB.",
        run: Run::Plain(kernel::run),
    },
    Task {
        name: "machine",
        takes: "[PACKAGE]",
        does: "the package under a running systemd, with a TPM, vsock and the kernel's TLS, in a virtual machine",
        options: &[("PACKAGE", "this one; otherwise one is made of a release build")],
        costs: "Four to ten minutes, because every instruction is emulated, after a release build of some minutes. It needs root. The packages of\n\
                a Debian are fetched once, 57 MB, and stay in target/machine, 370 MB.",
        run: Run::With(machine::run),
    },
    Task {
        name: "openssls",
        takes: "",
        does: "test our OpenSSL provider with OpenSSL 3.5 and 4.0",
        options: &[],
        costs: "Not part of test: the first time some minutes, to build their programs below target/openssls; then one.",
        run: Run::Plain(openssls::run),
    },
    Task {
        name: "kryoptic",
        takes: "",
        does: "build another token in Rust, and test its module behind ours",
        options: &[],
        costs: "Some minutes the first time. As root it installs the packages that it needs; the crates come from crates.io.",
        run: Run::Plain(kryoptic::run),
    },
    Task {
        name: "codegen",
        takes: "[--check]",
        does: "write (or compare) the files generated from the standard's bindings",
        options: &[("--check", "write nothing, and fail where a file differs")],
        costs: "Seconds.",
        run: Run::With(codegen::task),
    },
    Task {
        name: "structure",
        takes: "",
        does: "check the tree against ARCHITECTURE.md, and the packages against deny.toml",
        options: &[],
        costs: "Seconds.",
        run: Run::Plain(structure::run),
    },
    Task {
        name: "fuzz",
        takes: "[TARGET] [--minutes N]",
        does: "a fuzz target under libFuzzer, or each in turn",
        options: &[
            ("TARGET", "this one; the answer to a wrong name lists them"),
            ("--minutes N", "each for so long: 1"),
        ],
        costs: "A minute for each target, if not said otherwise, after an instrumented build of some minutes in target/fuzz.",
        run: Run::With(fuzz::run),
    },
    Task {
        name: "miri",
        takes: "",
        does: "the tests that Miri can run, where a toolchain has it",
        options: &[],
        costs: "Minutes. rustup component add --toolchain nightly miri rust-src brings it.",
        run: Run::Plain(miri::run),
    },
    Task {
        name: "install",
        takes: "[--prefix DIR] [--destdir DIR]",
        does: "build and install the command, the module, OpenSSL's provider, man pages and completions",
        options: PLACE,
        costs: "A release build of some minutes, the first time. It says every path that it writes.",
        run: Run::With(install::install),
    },
    Task {
        name: "uninstall",
        takes: "[--prefix DIR] [--destdir DIR]",
        does: "take out again what install put there",
        options: PLACE,
        costs: "A second. Tokens and configurations stay.",
        run: Run::With(install::uninstall),
    },
    Task {
        name: "man",
        takes: "",
        does: "write man pages and completions to target/man",
        options: &[],
        costs: "Seconds, after a release build of the command.",
        run: Run::Plain(|| dist::man().map(|_| ())),
    },
    Task {
        name: "dist",
        takes: "",
        does: "write tarballs and Debian packages to target/dist",
        options: &[],
        costs: "Some minutes: a release build with an OpenSSL of the library's own.",
        run: Run::Plain(|| dist::run(dist::Library::Whole)),
    },
    Task {
        name: "reproduce",
        takes: "",
        does: "build the committed state in two folders, and compare what dist makes of it",
        options: &[],
        costs: "Two whole release builds, some gigabytes in target while they last.",
        run: Run::Plain(dist::reproduce),
    },
];
