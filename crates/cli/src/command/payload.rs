// SPDX-License-Identifier: Apache-2.0
//! The data that is signed, verified or encrypted, read in pieces of bounded size.

use super::target::{Target, of_stream};
use crate::failure::{Failure, Result};
use crate::inputs;
use crate::output::{Output, Report};
use crate::waiting::Waiting;
use metaslot_memory::Secret;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// Data up to this size goes to the token in one call, longer data in pieces of this size.
const PIECE: usize = 64 * 1024;

/// No key, signature, certificate or request is longer, nor what a token keeps: it is no disk.
const SHORT: usize = 1 << 20;

/// A file or standard input (`-`, or nothing).
#[derive(Debug)]
pub(crate) struct Payload {
    name: String,
    file: File,
    /// That it is read.
    waiting: Option<Waiting>,
}

impl Payload {
    /// Opens it. From now on no result takes its place.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let payload = Self::replaceable(path)?;
        let refused = format!("{} would be overwritten while it is read", payload.name);
        inputs::keep(&payload.metadata()?, refused);
        Ok(payload)
    }

    /// Opens what the result may replace.
    pub(crate) fn replaceable(path: Option<&Path>) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("-"));
        let name =
            path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
        // Not by way of the buffer that the library has for standard input: what is read may be secret.
        let opened = path.map_or_else(|| of_stream(&io::stdin()), File::open);
        match opened {
            Ok(file) => Ok(Self { name, file, waiting: None }),
            Err(error) => Err(Failure::io(format!("cannot open {name}"), &error)),
        }
    }

    /// Shows on a terminal how far it is.
    #[must_use]
    pub(crate) fn shown(mut self, output: Output) -> Self {
        self.show(output);
        self
    }

    /// The same, from now on. What is typed is on the terminal itself.
    pub(crate) fn show(&mut self, output: Output) {
        if self.file.is_terminal() {
            return;
        }
        let length = self.file.metadata().ok().filter(Metadata::is_file).map(|file| file.len());
        self.waiting = Some(Waiting::new(output, format!("reading {}", self.name), length));
    }

    /// All of it.
    pub(crate) fn all(&mut self) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.file.read_to_end(&mut data).map_err(|error| self.unreadable(&error))?;
        Ok(data)
    }

    /// All of a file that is short by its nature.
    pub(crate) fn short(path: Option<&Path>) -> Result<Vec<u8>> {
        Self::open(path)?.up_to(SHORT)
    }

    /// All of it, and no more than so many bytes are read.
    pub(crate) fn up_to(mut self, most: usize) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let read = (&mut self.file).take(most as u64 + 1).read_to_end(&mut data);
        read.map_err(|error| self.unreadable(&error))?;
        if data.len() > most { Err(self.too_long(most)) } else { Ok(data) }
    }

    /// The same of a secret, for which the path stands.
    pub(crate) fn short_secret(path: &Path) -> Result<Secret> {
        let mut payload = Self::open(Some(path))?;
        let mut buffer = Secret::zeroed(SHORT + 1);
        let length = payload.fill(buffer.expose_mut())?;
        if length > SHORT { Err(payload.too_long(SHORT)) } else { Ok(buffer.truncated(length)) }
    }

    fn too_long(&self, most: usize) -> Failure {
        Failure::failed(format!("{} is longer than {most} bytes", self.name))
    }

    /// All of it, and no copy of it elsewhere.
    pub(crate) fn all_secret(&mut self) -> Result<Secret> {
        let mut data = Secret::zeroed(PIECE);
        let mut length = 0;
        loop {
            length += self.fill(&mut data.expose_mut()[length..])?;
            if length < data.len() {
                return Ok(data.truncated(length));
            }
            let longer = Secret::try_zeroed(2 * length);
            let mut longer = longer.ok_or_else(|| {
                Failure::failed(format!("{} is longer than the memory for secrets", self.name))
                    .hint("an AES key without --mechanism takes files of any length")
            })?;
            longer.expose_mut()[..length].copy_from_slice(data.expose());
            data = longer;
        }
    }

    /// Fills the buffer; how many bytes there were, fewer only before the end.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => {
                    filled += read;
                    self.waiting.iter().for_each(|waiting| waiting.advance(read));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
        Ok(filled)
    }

    /// Gives `each` what is left, from protected memory, in pieces of this size, and says which is the last one; nothing is
    /// one empty piece.
    pub(crate) fn pieces(
        &mut self,
        size: usize,
        mut each: impl FnMut(&[u8], bool) -> Result<()>,
    ) -> Result<()> {
        let (mut piece, mut next) = (Secret::zeroed(size), Secret::zeroed(size));
        let mut length = self.fill(piece.expose_mut())?;
        loop {
            let following = self.fill(next.expose_mut())?;
            each(&piece.expose()[..length], following == 0)?;
            if following == 0 {
                return Ok(());
            }
            std::mem::swap(&mut piece, &mut next);
            length = following;
        }
    }

    /// What the system says about the file.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map_err(|error| self.unreadable(&error))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Feeds it to `whole` when it is short, else piece by piece to `update`; true when it was
    /// short.
    pub(crate) fn feed(
        &mut self,
        whole: impl FnOnce(&[u8]) -> Result<()>,
        update: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut buffer = vec![0; PIECE];
        let mut length = self.fill(&mut buffer)?;
        if length < PIECE {
            whole(&buffer[..length])?;
            return Ok(true);
        }
        while length > 0 {
            update(&buffer[..length])?;
            length = self.fill(&mut buffer)?;
        }
        Ok(false)
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::io(format!("cannot read {}", self.name), error)
    }
}

/// Writes a result, and with `--json` says what it is: then it goes to standard output only where a path
/// says so.
pub(crate) fn write_beside(
    output: &Output,
    path: Option<&Path>,
    bytes: &[u8],
    report: &Report,
) -> Result<()> {
    path.map_or(Ok(()), refuse_to_lose_a_key)?;
    written(output, path, bytes, report, |path| Target::open(path, 0o666))
}

/// Refuses a secret without a file of its own where a document takes the place of the bytes.
pub(crate) fn refuse_mixed(output: &Output, path: Option<&Path>) -> Result<()> {
    if !output.json || path.is_some_and(|path| path != Path::new("-")) {
        return Ok(());
    }
    let message = "a secret is not printed as a part of something else";
    Err(Failure::usage(message).hint("give --out FILE, or leave --json out"))
}

/// The same for what only its owner may read, and what is nowhere else then: where it has no place it is refused.
pub(crate) fn write_secret(
    output: &Output,
    path: Option<&Path>,
    secret: &Secret,
    report: &Report,
) -> Result<()> {
    refuse_mixed(output, path)?;
    written(output, path, secret.expose(), report, Target::open_secret)
}

fn written(
    output: &Output,
    path: Option<&Path>,
    bytes: &[u8],
    report: &Report,
    open: impl Fn(Option<&Path>) -> Result<Target>,
) -> Result<()> {
    let write = |path: Option<&Path>| {
        // It appears whole or not at all.
        let mut target = open(path)?;
        target.write_whole(bytes)?;
        target.finish()
    };
    if !output.json {
        return write(path);
    }
    let file = path.filter(|path| *path != Path::new("-"));
    file.map_or(Ok(()), |file| write(Some(file)))?;
    output.print(report)
}

/// What is no secret may replace a file, but for one with a private key, which may be nowhere else.
pub(crate) fn refuse_to_lose_a_key(path: &Path) -> Result<()> {
    const END: &[u8] = b"PRIVATE KEY-----";
    let mut beginning = Vec::new();
    if path.is_file() {
        // One that cannot be read is told of where it is written.
        let file = File::open(path).map(|file| file.take(SHORT as u64));
        file.and_then(|mut file| file.read_to_end(&mut beginning)).ok();
    }
    if beginning.windows(END.len()).any(|part| part == END) {
        return Err(Failure::failed(format!("{} holds a private key", path.display()))
            .hint("it is not replaced: give another name"));
    }
    Ok(())
}
