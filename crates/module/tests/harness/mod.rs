// SPDX-License-Identifier: Apache-2.0
//! Compiles and runs the C programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

/// The module under test: `METASLOT_MODULE`, or the one beside the tests. A copy, so that a build
/// that goes on meanwhile does not replace it under a running program.
pub(crate) fn module() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let named = env::var_os("METASLOT_MODULE").map(PathBuf::from);
        let original = named.unwrap_or_else(beside_the_tests);
        remove_copies_of_the_dead();
        let copy = built().join(format!("{COPY_NAME}{}.so", std::process::id()));
        fs::copy(&original, &copy).expect("the module can be copied");
        copy
    })
}

const COPY_NAME: &str = "libmetaslot-";

fn remove_copies_of_the_dead() {
    for entry in fs::read_dir(built()).expect("the directory was made").flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(COPY_NAME)?.strip_suffix(".so"));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn beside_the_tests() -> PathBuf {
    let test = env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("the test is in target/PROFILE/deps");
    let candidates = [profile.join("deps/libmetaslot.so"), profile.join("libmetaslot.so")];
    let found = candidates.into_iter().find(|path| path.exists());
    found.expect("no libmetaslot.so: run `cargo build -p metaslot-module` first")
}

/// The module with a provider that panics, built for the purpose beside the others.
pub(crate) fn library_that_panics() -> PathBuf {
    let directory = built().join("panicking");
    fs::create_dir_all(&directory).expect("the target directory can be written");
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--locked", "--package", "metaslot-module", "--lib"])
        .args(["--features", "panicking-provider", "--", "-o"])
        .arg(directory.join("libmetaslot.so"))
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join("libmetaslot.so")
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

/// As [`program`], with further options and under another name.
pub(crate) fn program_with(name: &str, called: &str, options: &[&str]) -> PathBuf {
    let out = built().join(called);
    compile(name, &out, options);
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
        .arg("-I")
        .arg(built())
        .arg("-o")
        .arg(out)
        .arg(tests().join(format!("{name}.c")))
        .args(more)
        .args(["-ldl", "-lpthread"])
        .output()
        .expect("cc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A home directory, in which programs run with an environment of their own.
pub(crate) struct Home(PathBuf);

impl Home {
    /// One whose user's token is where it is without a configuration, and takes a PIN at once.
    pub(crate) fn new(name: &str) -> Self {
        let home = Self::empty(name);
        let token = home.0.join(".local/share/metaslot/token.db");
        let configuration = home.0.join(".config/metaslot");
        fs::create_dir_all(&configuration).expect("the target directory can be written");
        fs::write(
            configuration.join("metaslot.toml"),
            format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n"),
        )
        .expect("the target directory can be written");
        home
    }

    /// One in which nothing is configured.
    pub(crate) fn empty(name: &str) -> Self {
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
        let output = self
            .command(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .output()
            .expect("the program can be run");
        self.judge(program, arguments, &output)
    }

    /// Runs a program whose every access to memory is checked. What was never written is not: libraries of cryptography
    /// compute with such on purpose.
    pub(crate) fn run_under_valgrind(&self, program: &Path) {
        let output = self
            .command(Path::new("valgrind"))
            .args(["--quiet", "--undef-value-errors=no", "--error-exitcode=99"])
            .arg(format!("--log-file={}", self.0.join("valgrind").display()))
            .arg(program)
            .output()
            .expect("valgrind is installed");
        let log = fs::read_to_string(self.0.join("valgrind")).expect("valgrind writes its log");
        assert!(output.status.success(), "{log}");
        self.judge(program, &[], &output);
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", &self.0)
            .env("PATH", "/usr/bin:/bin")
            .env("METASLOT_MODULE", module())
            .env("BOUNDARY_LIBRARIES", built())
            .current_dir(&self.0);
        command
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

/// Writes `functions.inc`: each function of the header with the kinds of its parameters.
pub(crate) fn write_function_table() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/metaslot/pkcs11.h");
    let header = fs::read_to_string(header).expect("the header is there");
    let mut table = String::new();
    for line in header.lines().filter_map(|line| line.strip_prefix("CK_RV C_")) {
        let (name, rest) = line.split_once('(').expect("a prototype has parameters");
        let parameters = rest.trim_end_matches(");").split(", ");
        let kinds: String = parameters.map(kind).collect();
        table.push_str(&format!("\t{{\"C_{name}\", \"{kinds}\"}},\n"));
    }
    fs::write(built().join("functions.inc"), table).expect("the target directory can be written");
}

fn kind(parameter: &str) -> char {
    match parameter {
        "CK_SESSION_HANDLE" => 's',
        "CK_OBJECT_HANDLE" => 'o',
        "CK_NOTIFY" => 'p',
        other if other.contains('*') => 'p',
        _ => 'n',
    }
}

/// What a tool says about a file.
pub(crate) fn output(tool: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(tool).args(arguments).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A shared library of the system.
pub(crate) fn find_library(name: &str) -> Option<PathBuf> {
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/x86_64-linux-gnu"];
    directories.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.exists())
}
