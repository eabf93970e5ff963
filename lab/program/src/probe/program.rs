// SPDX-License-Identifier: Apache-2.0
//! Programs of others that the lab can use.

use super::outcome::{Outcome, Trouble};
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to say its version.
const LIMIT: Duration = Duration::from_millis(900);

/// A program, and how it is asked for its version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// The exit code of a good answer.
    pub(crate) code: i32,
}

/// Asks a program for its version.
pub(crate) fn version(program: Program) -> Result<Outcome, Trouble> {
    let Some(path) = find(program.name) else {
        return Err(Trouble::reason("not installed", "the program, from the distribution"));
    };
    let mut running = Running(
        Command::new(&path)
            .args(program.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?,
    );
    let code = running.end()?;
    let line = running.first_line();
    if code == Some(program.code) && !line.is_empty() {
        return Ok(Outcome::new(line));
    }
    let why = if line.is_empty() { "does not say its version".to_owned() } else { line };
    Err(Trouble::reason(format!("{}: {why}", path.display()), "the program, whole"))
}

/// Where a shell would find it, or root's shell.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = env::split_paths(&path).chain(more).filter(|place| place.is_absolute());
    places.find_map(|place| Some(place.join(name)).filter(|path| is_program(path)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A program that is killed if it is not done in time.
struct Running(Child);

impl Running {
    fn end(&mut self) -> Result<Option<i32>, Trouble> {
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(Trouble::reason("did not answer in time", "an idle machine"))
    }

    /// The first line that says something, of either output. What a version says fits a pipe.
    fn first_line(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(output) = self.0.stdout.take() {
            output.take(4096).read_to_end(&mut text).ok();
        }
        if let Some(output) = self.0.stderr.take() {
            output.take(4096).read_to_end(&mut text).ok();
        }
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or_default().chars().take(100).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_not_installed() {
        let program = Program { name: "no such program", arguments: &[], code: 0 };
        let Err(Trouble::Reason(why, _)) = version(program) else { panic!("it is there") };
        assert_eq!(why, "not installed");
    }

    #[test]
    fn a_program_says_its_version_or_why_not() {
        let program = |arguments, code| Program { name: "sh", arguments, code };
        assert_eq!(version(program(&["-c", "echo v 1; exit 3"], 3)).unwrap().says, "v 1");
        version(program(&["-c", "echo v 1"], 3)).unwrap_err();
        version(program(&["-c", "true"], 0)).unwrap_err();
    }
}
