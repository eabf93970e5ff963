// SPDX-License-Identifier: Apache-2.0
//! The places where a PIN can be, other than the terminal.

use super::Role;
use crate::failure::{Failure, Result};
use crate::inputs;
use crate::output::warn;
use crate::uri::{PinValue, Uri};
use metaslot_memory::Secret;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A PIN has 4 to 255 bytes in practice; what is longer is not one, nor is its beginning.
pub(super) const LONGEST: usize = 1024;

/// What a file of PINs is not for: it may be for a group, as services have it.
const FOR_OTHERS: u32 = 0o006;

/// What is wrong with more.
pub(super) fn too_long() -> io::Error {
    io::Error::other(format!("it is longer than {LONGEST} bytes"))
}

/// A `pin-source`: a path, `file:` and a path, or `|` and a command for the shell; or the PIN that
/// stood in a URI.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    File(String),
    Command(String),
    Value(PinValue),
}

impl Source {
    /// The most explicit place that was named: the option, the URI, the variable, and last the
    /// credential that systemd gave to a service.
    pub(crate) fn find(role: Role, option: Option<&str>, uri: &Uri) -> Result<Option<Self>> {
        if let Some(option) = option {
            return Self::parse(option).map(Some);
        }
        if role == Role::User {
            if let Some(value) = &uri.pin_value {
                return Ok(Some(Self::Value(value.clone())));
            }
            if let Some(source) = &uri.pin_source {
                return Self::parse(source).map(Some);
            }
        }
        match env::var(role.variable()) {
            Ok(source) if !source.is_empty() => Self::parse(&source).map(Some),
            _ => Ok(role.credential().map(Self::File)),
        }
    }

    /// Reads what a URI or an option says.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if let Some(command) = text.strip_prefix('|') {
            return Ok(Self::Command(command.to_owned()));
        }
        let path = match text.strip_prefix("file:") {
            // RFC 8089: an authority, if there is one, must be this machine.
            Some(rest) => match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            },
            None => text,
        };
        if path.is_empty() {
            return Err(Failure::usage("the PIN source is empty")
                .hint("give a file, 'file:/path' or '|command'"));
        }
        Ok(Self::File(path.to_owned()))
    }

    /// The PIN: the first line of the file or of what the command prints.
    pub(crate) fn read(&self) -> Result<Secret> {
        let pin = match self {
            Self::File(path) => read_file(Path::new(path)),
            Self::Command(command) => run(command),
            Self::Value(value) => Ok(Secret::copy_of(value.expose())),
        }?;
        if pin.is_empty() {
            let failure = Failure::pin(format!("{self} holds no PIN"));
            return Err(failure.hint("the PIN is its first line"));
        }
        Ok(pin)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "the PIN file {path}"),
            Self::Command(command) => write!(f, "the PIN command '{command}'"),
            Self::Value(_) => write!(f, "the URI's pin-value"),
        }
    }
}

fn read_file(path: &Path) -> Result<Secret> {
    let what = format!("cannot read the PIN file {}", path.display());
    let cannot = |error| Failure::io(&what, &error).about_pin();
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    inputs::keep(&metadata, format!("the PIN file {} would be overwritten", path.display()));
    if metadata.is_file() && metadata.mode() & FOR_OTHERS != 0 {
        let path = path.display();
        warn(format!(
            "every user of this machine may read or change the PIN file {path}: chmod 600 {path}"
        ));
    }
    first_line(file).map_err(cannot)
}

fn run(command: &str) -> Result<Secret> {
    let what = format!("cannot run the PIN command '{command}'");
    let cannot = |error| Failure::io(&what, &error).about_pin();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = shell.spawn().map_err(cannot)?;
    let pin = match child.stdout.take() {
        Some(out) => first_line(out).map_err(cannot),
        None => Ok(Secret::zeroed(0)),
    };
    let status = child.wait().map_err(cannot)?;
    if !status.success() {
        return Err(Failure::pin(format!("the PIN command '{command}' failed: {status}")));
    }
    pin
}

/// The first line, without its end, read straight into protected memory.
fn first_line(mut source: impl Read) -> io::Result<Secret> {
    // The end of a line may have two bytes.
    let mut buffer = Secret::zeroed(LONGEST + 2);
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer.expose_mut()[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    let bytes = &buffer.expose()[..filled];
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let length = line.strip_suffix(b"\r").unwrap_or(line).len();
    if length > LONGEST {
        return Err(too_long());
    }
    Ok(buffer.truncated(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Source {
        Source::File(path.into())
    }

    #[test]
    fn sources_have_three_forms() {
        let rows = [
            ("/run/pin", file("/run/pin")),
            ("pin", file("pin")),
            ("file:/run/pin", file("/run/pin")),
            ("file:pin", file("pin")),
            ("file:///run/pin", file("/run/pin")),
            ("file://localhost/run/pin", file("/run/pin")),
            ("|pass show pin", Source::Command("pass show pin".into())),
        ];
        for (text, source) in rows {
            assert_eq!(Source::parse(text).unwrap(), source, "{text}");
        }
        assert!(Source::parse("").is_err());
        assert!(Source::parse("file:").is_err());
    }

    #[test]
    fn a_pin_is_the_first_line_without_its_end() {
        let rows: [(&[u8], &[u8]); 5] = [
            (b"1234", b"1234"),
            (b"1234\n", b"1234"),
            (b"1234\r\nmore", b"1234"),
            (b" 12 34 \n", b" 12 34 "),
            (b"\n1234", b""),
        ];
        for (content, pin) in rows {
            assert_eq!(first_line(content).unwrap().expose(), pin);
        }
    }

    #[test]
    fn the_beginning_of_a_long_line_is_no_pin() {
        let line = [7; LONGEST + 1];
        assert_eq!(first_line(&line[1..]).unwrap().expose(), &line[1..]);
        assert_eq!(first_line(&[&line[1..], b"\r\nmore"].concat()[..]).unwrap().len(), LONGEST);
        assert!(first_line(&line[..]).is_err());
        assert!(first_line(&[&line[1..], b"\rmore"].concat()[..]).is_err());
    }

    #[test]
    fn a_command_that_fails_gives_no_pin() {
        assert_eq!(run("echo 1234").unwrap().expose(), b"1234");
        let failure = run("echo 1234; exit 3").expect_err("exit 3");
        assert!(failure.text(false).contains("exit status: 3"));
    }
}
