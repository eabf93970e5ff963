// SPDX-License-Identifier: Apache-2.0
//! `encrypt` and `decrypt`

use super::algorithm::{Algorithm, CIPHERS, Choice, SEALS};
use super::material::{KeyArg, Purpose, Stretch};
use super::progress::Progress;
use super::{version1, version2};
use crate::app::App;
use crate::command::cipher::{CipherArg, Direction, Opened};
use crate::command::payload::{Payload, refuse_to_lose_a_key};
use crate::command::target::Target;
use crate::failure::{Failure, Result};
use crate::inputs;
use crate::output::{Output, Report};
use crate::uri::Uri;
use metaslot_ck::{self as ck, ObjectHandle};
use metaslot_client::Session;
use serde_json::json;
use std::path::{Path, PathBuf};

const ENCRYPT_EXAMPLES: &str = "\
Examples:
  metaslot encrypt -l
  metaslot encrypt -a aes -i letter -o letter.enc
  metaslot encrypt -v -a aes -k key.bin -i disk.img -o disk.img.enc
  tar c dir | metaslot encrypt -a aes -K backup -T web > dir.tar.enc
  metaslot encrypt --key site -m rsa-oaep -i secret -o secret.enc";

const DECRYPT_EXAMPLES: &str = "\
Examples:
  metaslot decrypt -a aes -i letter.enc -o letter
  metaslot decrypt -a 3des -k key.bin -i of-solaris.enc -o letter
  metaslot decrypt --key site -m rsa-oaep -i secret.enc -o secret";

/// Only the owner may read what is written.
const MODE: u32 = 0o600;

/// Arguments of `encrypt`.
#[derive(clap::Args, Debug)]
#[command(after_help = ENCRYPT_EXAMPLES)]
pub(crate) struct EncryptArgs {
    #[command(flatten)]
    what: What,
}

/// Arguments of `decrypt`.
#[derive(clap::Args, Debug)]
#[command(after_help = DECRYPT_EXAMPLES)]
pub(crate) struct DecryptArgs {
    #[command(flatten)]
    what: What,
}

/// What both have.
#[derive(clap::Args, Debug)]
#[command(mut_arg("list", |list| list.required_unless_present_any(["algorithm", "key"])))]
struct What {
    #[command(flatten)]
    choice: Choice,
    /// Show how far it is
    #[arg(short = 'v')]
    verbose: bool,
    /// The file to read [default: standard input]
    #[arg(short = 'i', value_name = "FILE", conflicts_with = "list")]
    input: Option<PathBuf>,
    /// The file to write, never the same one [default: standard output]
    #[arg(short = 'o', value_name = "FILE", conflicts_with = "list")]
    output: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArg,
    #[command(flatten)]
    cipher: CipherArg,
}

/// The files of one run.
#[derive(Debug)]
struct Files {
    payload: Payload,
    target: Target,
    progress: Progress,
    /// Where a line may say after a second how far it is: the bar of `-v` does, and no line goes into the result.
    line: Option<Output>,
}

impl Files {
    /// Nothing more is asked for: from now on it is shown how far it is.
    fn show(&mut self) {
        if let Some(output) = self.line {
            self.payload.show(output);
        }
    }
}

/// Where the key comes from.
enum Source<'a> {
    Arguments(&'a KeyArg),
    /// The token that `--key` named.
    Token(Box<Opened>),
}

impl Source<'_> {
    fn is_passphrase(&self) -> bool {
        matches!(self, Self::Arguments(key) if key.is_passphrase())
    }

    /// A session, and the key in it. A passphrase that is to be `chosen` is typed twice.
    fn open(
        self,
        app: &App,
        purpose: Purpose,
        stretch: &Stretch<'_>,
        chosen: bool,
    ) -> Result<(Session, ObjectHandle)> {
        match self {
            Self::Arguments(key) => key.open(app, purpose, stretch, chosen),
            Self::Token(opened) => opened.usable(purpose),
        }
    }
}

pub(crate) fn encrypt(app: &App, args: &EncryptArgs) -> Result<()> {
    encrypted(app, args)?;
    args.what.tell(app)
}

fn encrypted(app: &App, args: &EncryptArgs) -> Result<()> {
    let What { choice, key, .. } = &args.what;
    let Some(named) = args.what.cipher.key()? else {
        return match choice.made(app, SEALS, "encrypt")? {
            Some(_) => {
                let files = args.what.files(app)?;
                let header = version2::Header::new(&key.session(app)?, key.is_passphrase())?;
                seal(app, Source::Arguments(key), header, files)
            }
            None => Ok(()),
        };
    };
    let mut files = args.what.files(app)?;
    match args.what.by_mechanism(app, &named, Direction::Encrypt, &mut files)? {
        None => files.target.finish(),
        Some(opened) => {
            let header = version2::Header::new(&opened.session, false)?;
            seal(app, Source::Token(Box::new(opened)), header, files)
        }
    }
}

fn seal(app: &App, key: Source<'_>, mut header: version2::Header, mut files: Files) -> Result<()> {
    let purpose = version2::purpose(ck::CKA_ENCRYPT);
    let (session, key) = key.open(app, purpose, &header.stretch(), true)?;
    files.show();
    let Files { mut payload, mut target, mut progress, .. } = files;
    let mut chunks = header.seal(&session, key)?;
    target.write(header.bytes())?;
    payload.pieces(version2::CHUNK, |data, last| {
        target.write(chunks.seal(data, last)?)?;
        progress.advance(data.len());
        Ok(())
    })?;
    target.finish()?;
    progress.finish();
    Ok(())
}

pub(crate) fn decrypt(app: &App, args: &DecryptArgs) -> Result<()> {
    decrypted(app, args)?;
    args.what.tell(app)
}

fn decrypted(app: &App, args: &DecryptArgs) -> Result<()> {
    let What { choice, key, .. } = &args.what;
    let named = args.what.cipher.key()?;
    let algorithm = match &named {
        Some(_) => &CIPHERS[0],
        None => match choice.made(app, CIPHERS, "decrypt")? {
            Some(algorithm) => algorithm,
            None => return Ok(()),
        },
    };
    let mut files = args.what.files(app)?;
    let mut key = Source::Arguments(key);
    if let Some(named) = &named {
        match args.what.by_mechanism(app, named, Direction::Decrypt, &mut files)? {
            None => return files.target.finish(),
            Some(opened) => key = Source::Token(Box::new(opened)),
        }
    }
    match version(&mut files.payload)? {
        version1::VERSION => decrypt_version1(app, key, algorithm, &mut files)?,
        _ => decrypt_version2(app, key, algorithm, &mut files)?,
    }
    files.target.finish()?;
    files.progress.finish();
    Ok(())
}

fn decrypt_version1(
    app: &App,
    key: Source<'_>,
    algorithm: &Algorithm,
    files: &mut Files,
) -> Result<()> {
    let header = version1::Header::read(&mut files.payload, algorithm)?;
    let (session, key) = match key {
        Source::Arguments(key) => header.key(app, key, algorithm)?,
        Source::Token(opened) => opened.usable(header.purpose())?,
    };
    app.output.note(&format!(
        "warning: {} has format version 1: whether it was changed cannot be seen",
        files.payload.name()
    ));
    files.show();
    let Files { payload, target, progress, .. } = files;
    header.decrypt(algorithm, (&session, key), payload, |data, read| {
        target.write(data)?;
        progress.advance(read);
        Ok(())
    })
}

fn decrypt_version2(
    app: &App,
    key: Source<'_>,
    algorithm: &Algorithm,
    files: &mut Files,
) -> Result<()> {
    if algorithm.name != CIPHERS[0].name {
        return Err(Failure::failed("the file was encrypted with AES").hint("give '-a aes'"));
    }
    let mut bytes = [0; version2::LENGTH];
    bytes[..4].copy_from_slice(&version2::VERSION.to_be_bytes());
    if files.payload.fill(&mut bytes[4..])? < version2::LENGTH - 4 {
        return Err(Failure::failed("the file was cut within its header"));
    }
    let header = version2::Header::read(bytes, key.is_passphrase())?;
    let purpose = version2::purpose(ck::CKA_DECRYPT);
    let (session, key) = key.open(app, purpose, &header.stretch(), false)?;
    files.show();
    let Files { payload, target, progress, .. } = files;
    let mut chunks = header.open(&session, key)?;
    payload.pieces(version2::SEALED, |sealed, last| {
        target.write(chunks.open(sealed, last)?)?;
        progress.advance(sealed.len());
        Ok(())
    })
}

/// What the file says in its first four bytes.
fn version(payload: &mut Payload) -> Result<u32> {
    let mut first = [0; 4];
    match (payload.fill(&mut first)?, u32::from_be_bytes(first)) {
        (4, known @ (version1::VERSION | version2::VERSION)) => Ok(known),
        (4, _) => Err(Failure::failed(format!("{} is not an encrypted file", payload.name()))
            .hint("it begins with neither 1 nor 2, the versions of the format")),
        _ => Err(Failure::failed(format!("{} is too short", payload.name()))
            .hint("an encrypted file begins with its version, four bytes")),
    }
}

impl What {
    /// Does it by a mechanism without a format, or gives the key of a file that has one.
    fn by_mechanism(
        &self,
        app: &App,
        named: &Uri,
        direction: Direction,
        files: &mut Files,
    ) -> Result<Option<Opened>> {
        let login = self.key.login(app.token_with(named)?, named)?;
        self.cipher.run(app, &login, direction, (&mut files.payload, &mut files.target))
    }

    /// With `--json`, what was written.
    fn tell(&self, app: &App) -> Result<()> {
        match &self.output {
            Some(path) if app.output.json => app.output.print(&Report {
                json: json!({"out": path.to_string_lossy()}),
                ..Report::default()
            }),
            _ => Ok(()),
        }
    }

    fn files(&self, app: &App) -> Result<Files> {
        if app.output.json && self.output.as_deref().is_none_or(|path| path == Path::new("-")) {
            let what = "the result and a document would go to one place";
            return Err(Failure::usage(what).hint("give -o FILE, or leave --json out"));
        }
        let payload = Payload::open(self.input.as_deref())?;
        let read = payload.metadata()?;
        for (path, what) in self.key.files()? {
            // What is not there is told of where it is read.
            if let Ok(file) = path.metadata() {
                inputs::keep(&file, format!("the {what} would be overwritten"));
            }
        }
        let length = (self.input.is_some() && read.is_file()).then_some(read.len());
        self.output.as_deref().map_or(Ok(()), refuse_to_lose_a_key)?;
        let target = Target::open(self.output.as_deref(), MODE)?;
        Ok(Files {
            line: (!self.verbose && !target.is_terminal()).then_some(app.output),
            target,
            progress: Progress::new(self.verbose.then_some(app.output), length),
            payload,
        })
    }
}
