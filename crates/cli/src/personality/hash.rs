// SPDX-License-Identifier: Apache-2.0
//! `digest` and `mac`

use super::algorithm::{Algorithm, Choice, DIGESTS, MACS};
use super::material::{KeyArg, Purpose, Stretch, any_session};
use crate::app::App;
use crate::command::payload::Payload;
use crate::encoding::{hex, printable};
use crate::failure::{Failure, Result};
use crate::output::{self, Report};
use metaslot_ck as ck;
use serde_json::json;
use std::path::{Path, PathBuf};

const DIGEST_EXAMPLES: &str = "\
Examples:
  metaslot digest -l
  metaslot digest -v -a sha256 *.tar";

const MAC_EXAMPLES: &str = "\
Examples:
  metaslot mac -l
  metaslot mac -v -a sha256_hmac -k key.bin *.tar
  metaslot mac -a sha256_hmac -K seal -T web release.tar";

/// The original's way from a passphrase to a key: the same key for the same passphrase.
const STRETCH: Stretch<'_> =
    Stretch { prf: ck::CKP_PKCS5_PBKD2_HMAC_SHA1, salt: &[0x0a; 16], iterations: 1000, length: 16 };

/// What `digest` and `mac` share.
#[derive(clap::Args, Debug)]
struct What {
    #[command(flatten)]
    choice: Choice,
    /// Print the algorithm and the file's name too
    #[arg(short = 'v')]
    verbose: bool,
    /// The files [default: standard input]
    #[arg(value_name = "FILE", conflicts_with = "list")]
    files: Vec<PathBuf>,
}

/// Arguments of `digest`.
#[derive(clap::Args, Debug)]
#[command(after_help = DIGEST_EXAMPLES)]
pub(crate) struct DigestArgs {
    #[command(flatten)]
    what: What,
}

/// Arguments of `mac`.
#[derive(clap::Args, Debug)]
#[command(after_help = MAC_EXAMPLES)]
pub(crate) struct MacArgs {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    key: KeyArg,
}

pub(crate) fn digest(app: &App, args: &DigestArgs) -> Result<()> {
    let Some(algorithm) = args.what.choice.made(app, DIGESTS, "digest")? else { return Ok(()) };
    let session = any_session(app)?;
    args.what.each(app, algorithm, |payload| {
        session.digest_init(&algorithm.mechanism.into())?;
        let update = |data: &[u8]| Ok(session.digest_update(data)?);
        let read = payload.feed(update, update);
        // Always, or the operation would be in the way of the next file's.
        let sum = session.digest_final();
        read.and(Ok(sum?))
    })
}

pub(crate) fn mac(app: &App, args: &MacArgs) -> Result<()> {
    let Some(algorithm) = args.what.choice.made(app, MACS, "mac")? else { return Ok(()) };
    let purpose = Purpose { key_type: ck::CKK_GENERIC_SECRET, usage: ck::CKA_SIGN, lengths: &[] };
    let (session, key) = args.key.open(app, purpose, &STRETCH, false)?;
    args.what.each(app, algorithm, |payload| {
        session.sign_init(&algorithm.mechanism.into(), key)?;
        let update = |data: &[u8]| Ok(session.sign_update(data)?);
        let read = payload.feed(update, update);
        let sum = session.sign_final();
        read.and(Ok(sum?))
    })
}

impl What {
    /// Does it for every file; one that cannot be read does not stop the others.
    fn each(
        &self,
        app: &App,
        algorithm: &Algorithm,
        sum: impl Fn(&mut Payload) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let paths: Vec<Option<&Path>> = match &*self.files {
            [] => vec![None],
            files => files.iter().map(|path| Some(&**path)).collect(),
        };
        let (mut files, mut result) = (Vec::new(), Ok(()));
        for (at, path) in paths.iter().enumerate() {
            if output::is_closed() {
                break;
            }
            let is_last = at + 1 == paths.len();
            let summed =
                Payload::open(*path).and_then(|payload| sum(&mut payload.shown(app.output)));
            let file = path.map(|path| path.display().to_string());
            match summed {
                Ok(sum) if app.output.json => files.push(json!({"file": file, "sum": hex(&sum)})),
                Ok(sum) => output::write_out(self.line(algorithm, *path, &sum).as_bytes())?,
                Err(failure) if is_last => result = Err(failure),
                Err(failure) => {
                    match app.output.json {
                        true => files.push(json!({"file": file, "error": failure.message()})),
                        false => app.output.failure(&failure),
                    }
                    result = Err(Failure::failed("not every file could be read"));
                }
            }
        }
        if app.output.json {
            let json = json!({"algorithm": algorithm.name, "files": files});
            app.output.print(&Report { json, ..Report::default() })?;
        }
        result
    }

    fn line(&self, algorithm: &Algorithm, path: Option<&Path>, sum: &[u8]) -> String {
        let sum = hex(sum);
        match (self.verbose, path) {
            (false, _) => format!("{sum}\n"),
            (true, None) => format!("{} = {sum}\n", algorithm.name),
            (true, Some(path)) => {
                format!("{} ({}) = {sum}\n", algorithm.name, printable(&path.to_string_lossy()))
            }
        }
    }
}
