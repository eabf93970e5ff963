// SPDX-License-Identifier: Apache-2.0
//! A directory, a configuration and a module for one test of the command.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process};

/// What no command line of a test takes, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(300);

/// A directory with a configuration that says where the token is to be; removed on drop.
#[derive(Debug)]
pub(crate) struct Sandbox {
    directory: PathBuf,
    module: PathBuf,
    /// That were free when it was made.
    ports: [u16; 2],
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

impl Sandbox {
    /// A new one.
    pub(crate) fn make(module: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("metaslot-transcript-{}-{number}", process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(directory.join("run/metaslot")).expect("a directory can be made");
        let token = directory.join("token.db");
        let configuration = format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
        fs::write(directory.join("metaslot.toml"), configuration).expect("a file can be written");
        for (name, pin) in [("user.pin", "23456789\n"), ("so.pin", "12345678\n")] {
            let file = directory.join(name);
            fs::write(&file, pin).expect("a file can be written");
            fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
        }
        // Both at once, so that they are two.
        let listeners =
            [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).expect("there is a port"));
        let port = |it: &TcpListener| it.local_addr().expect("it is bound").port();
        Self { directory, module: module.to_owned(), ports: listeners.each_ref().map(port) }
    }

    /// Where it is.
    #[allow(dead_code, reason = "most tests run commands in it")]
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A program that finds the command, the module, the configuration and nothing of the user's.
    pub(crate) fn program(&self, name: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_metaslot"));
        let bin = binary.parent().expect("a program is in a directory");
        let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap_or_default());
        let mut program = Command::new(name);
        program.current_dir(&self.directory).env("PATH", path).env("HOME", &self.directory);
        program.env("METASLOT_MODULE", &self.module);
        program.env("METASLOT_CONF", self.directory.join("metaslot.toml"));
        for (name, port) in ["TLS", "PLAIN"].iter().zip(self.ports) {
            program.env(name, port.to_string());
        }
        program.env("TESTDATA", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata"));
        program.env("XDG_RUNTIME_DIR", self.directory.join("run"));
        program.env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1").env("COLUMNS", "100");
        for unwanted in ["METASLOT_PIN_SOURCE", "METASLOT_SO_PIN_SOURCE", "CREDENTIALS_DIRECTORY"] {
            program.env_remove(unwanted);
        }
        program
    }

    /// Runs one command line and gives its lines, the exit code last when it is not 0.
    ///
    /// # Panics
    /// It did not end in time.
    pub(crate) fn run(&self, command: &str) -> Vec<String> {
        self.run_within(LIMIT, command).unwrap_or_else(|what| panic!("{what}"))
    }

    /// The same within a limit, after which all of its process group is killed.
    pub(crate) fn run_within(&self, limit: Duration, command: &str) -> Result<Vec<String>, String> {
        let mut shell = self.program("timeout");
        shell
            .args(["--signal=KILL", &limit.as_secs_f64().to_string(), "bash"])
            .args(["-c", &format!("exec 2>&1\numask 077\n{command}")])
            .stdin(process::Stdio::null());
        let start = Instant::now();
        let output = shell.output().expect("timeout and bash run");
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.replace(&self.directory.display().to_string(), "/home/you");
        let text = text.replace(&self.module.display().to_string(), "/usr/lib/libmetaslot.so");
        let provider = self.module.with_file_name("libmetaslot_ossl.so");
        let text = text.replace(&provider.display().to_string(), "/usr/lib/metaslot.so");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => lines.push(format!("? {code}")),
            None if start.elapsed() >= limit => {
                let lines = lines.join("\n");
                return Err(format!("not ended in {limit:?}, and killed: {command}\n{lines}"));
            }
            None => lines.push("? killed".to_owned()),
        }
        Ok(lines)
    }
}

/// The module that `cargo xtask test` built, else the one of this build, built now if that did not
/// happen yet; OpenSSL's provider is beside it.
pub(crate) fn module() -> PathBuf {
    let both = ["metaslot-module", "metaslot-openssl-provider"];
    env::var_os("METASLOT_MODULE")
        .map_or_else(|| build(&both).join("libmetaslot.so"), PathBuf::from)
}

/// Builds packages as this test was built, and says where to.
pub(crate) fn build(packages: &[&str]) -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_metaslot"));
    let directory = binary.parent().expect("a program is in a directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success(), "{packages:?} do not build");
    directory.to_owned()
}
