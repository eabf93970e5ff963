// SPDX-License-Identifier: Apache-2.0
//! `digest` and `mac`

use super::algorithm::{Algorithm, Choice, DIGESTS, MACS};
use super::material::{KeyArg, Purpose, Stretch, any_session};
use crate::app::App;
use crate::command::payload::Payload;
use crate::encoding::{hex, printable};
use crate::failure::{Failure, Result};
use crate::output;
use metaslot_ck as ck;
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
        let one = |path: Option<&Path>| {
            if output::is_closed() {
                return Ok(());
            }
            let result = sum(&mut Payload::open(path)?)?;
            output::write_out(self.line(algorithm, path, &result).as_bytes())
        };
        let Some((last, others)) = self.files.split_last() else { return one(None) };
        let mut result = Ok(());
        for failed in others.iter().filter_map(|path| one(Some(path)).err()) {
            app.output.failure(&failed);
            result = Err(Failure::failed("not every file could be read"));
        }
        one(Some(last)).and(result)
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
