// SPDX-License-Identifier: Apache-2.0
//! `digest` and `mac`

use super::algorithm::{self, Algorithm, DIGESTS, MACS};
use super::material::{KeyArg, Purpose, Stretch, any_session};
use crate::app::App;
use crate::command::payload::Payload;
use crate::encoding::hex;
use crate::failure::{Failure, Result};
use crate::output;
use crate::uri::Uri;
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
    /// List the algorithms
    #[arg(short = 'l', required_unless_present = "algorithm", conflicts_with_all = ["algorithm", "files"])]
    list: bool,
    /// Print the algorithm and the file's name too
    #[arg(short = 'v')]
    verbose: bool,
    /// The algorithm
    #[arg(short = 'a', value_name = "ALGORITHM")]
    algorithm: Option<String>,
    /// The files [default: standard input]
    #[arg(value_name = "FILE")]
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
    let Some(algorithm) = args.what.chosen(app, DIGESTS, "digest")? else { return Ok(()) };
    let session = any_session(app)?;
    args.what.each(app, algorithm, |payload| {
        session.digest_init(&algorithm.mechanism.into())?;
        let update = |data: &[u8]| Ok(session.digest_update(data)?);
        payload.feed(update, update)?;
        Ok(session.digest_final()?)
    })
}

pub(crate) fn mac(app: &App, args: &MacArgs) -> Result<()> {
    let Some(algorithm) = args.what.chosen(app, MACS, "mac")? else { return Ok(()) };
    let purpose = Purpose { key_type: ck::CKK_GENERIC_SECRET, usage: ck::CKA_SIGN };
    let (session, key) = args.key.open(app, purpose, &STRETCH, false)?;
    args.what.each(app, algorithm, |payload| {
        session.sign_init(&algorithm.mechanism.into(), key)?;
        let update = |data: &[u8]| Ok(session.sign_update(data)?);
        payload.feed(update, update)?;
        Ok(session.sign_final()?)
    })
}

impl What {
    /// The algorithm; nothing when it was to list them, which is done then.
    fn chosen(
        &self,
        app: &App,
        table: &'static [Algorithm],
        command: &str,
    ) -> Result<Option<&'static Algorithm>> {
        let Some(name) = &self.algorithm else {
            let module = app.host(&Uri::default())?.module();
            let slot = module.slots(true)?.into_iter().next();
            let slot = slot.ok_or_else(|| Failure::not_found("the module has no slot"))?;
            algorithm::list(table, module, slot)?;
            return Ok(None);
        };
        algorithm::find(table, name, command).map(Some)
    }

    /// Does it for every file; one that cannot be read does not stop the others.
    fn each(
        &self,
        app: &App,
        algorithm: &Algorithm,
        sum: impl Fn(&mut Payload) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let one = |path: Option<&Path>| {
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
            (true, Some(path)) => format!("{} ({}) = {sum}\n", algorithm.name, path.display()),
        }
    }
}
