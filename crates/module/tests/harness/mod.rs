// SPDX-License-Identifier: Apache-2.0
//! Compiles and runs the C programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// The module under test: `METASLOT_MODULE`, or the one beside the tests.
pub(crate) fn module() -> PathBuf {
    if let Some(named) = env::var_os("METASLOT_MODULE") {
        return named.into();
    }
    let test = env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("the test is in target/PROFILE/deps");
    let candidates = [profile.join("deps/libmetaslot.so"), profile.join("libmetaslot.so")];
    let found = candidates.into_iter().find(|path| path.exists());
    found.expect("no libmetaslot.so: run `cargo build -p metaslot-module` first")
}

/// How often each variant of a race is run.
pub(crate) fn rounds() -> u32 {
    env::var("METASLOT_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

fn built() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("boundary");
    fs::create_dir_all(&directory).expect("the target directory can be written");
    directory
}

/// Compiles `c/NAME.c`; warnings are errors.
pub(crate) fn program(name: &str) -> PathBuf {
    let out = built().join(name);
    compile(name, &out, &[]);
    out
}

/// Compiles `c/NAME.c` as a library.
pub(crate) fn shared_library(name: &str) -> PathBuf {
    let out = built().join(format!("lib{name}.so"));
    compile(name, &out, &["-shared", "-fPIC"]);
    out
}

fn compile(name: &str, out: &Path, more: &[&str]) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(out)
        .arg(tests().join(format!("{name}.c")))
        .args(more)
        .args(["-ldl", "-lpthread"])
        .output()
        .expect("cc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An empty home directory, in which programs run with an environment of their own.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let directory = built().join(format!("home-{name}"));
        drop(fs::remove_dir_all(&directory));
        fs::create_dir(&directory).expect("the target directory can be written");
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a program that must pass.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str]) -> String {
        self.run_with(program, arguments, &[])
    }

    pub(crate) fn run_with(
        &self,
        program: &Path,
        arguments: &[&str],
        environment: &[(&str, &OsStr)],
    ) -> String {
        let output = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("HOME", &self.0)
            .env("PATH", "/usr/bin:/bin")
            .env("METASLOT_MODULE", module())
            .env("BOUNDARY_LIBRARIES", built())
            .envs(environment.iter().copied())
            .current_dir(&self.0)
            .output()
            .expect("the program can be run");
        self.judge(program, arguments, &output)
    }

    fn judge(&self, program: &Path, arguments: &[&str], output: &Output) -> String {
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let name = program.file_name().unwrap_or_default().display();
        assert!(
            output.status.success(),
            "{name} {arguments:?} in {}: {}\n{said}{complained}",
            self.0.display(),
            output.status
        );
        assert_eq!(complained, "", "{name} {arguments:?} wrote to standard error");
        said.into_owned()
    }

    /// Nothing was made.
    pub(crate) fn assert_empty(&self) {
        let entries: Vec<_> = fs::read_dir(&self.0)
            .expect("the home is there")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert_eq!(entries, [] as [PathBuf; 0], "files were made");
    }
}
