// SPDX-License-Identifier: Apache-2.0
//! The options of `pktool`, its help, and what its operands mean to several verbs.

use crate::app::{App, Login};
use crate::failure::{Failure, Result};
use crate::personality::material::token_spec;
use crate::personality::operands::Operands;
use crate::uri::Uri;
use clap::ArgAction;
use metaslot_client::{Access, Session};
use std::path::PathBuf;

pub(super) const USAGE: &str = "\
Verbs:
  tokens
  inittoken [currlabel=TOKEN] [newlabel=LABEL]
  setpin [token=TOKEN] [usertype=user|so]
  list [token=TOKEN] [objtype=TYPE] [label=LABEL] [subject=] [issuer=] [serial=]
         [criteria=valid|expired|both]
  delete as list
  genkey label=LABEL [keytype=aes|3des|arcfour|generic] [keylen=BITS] [sensitive=y|n]
         [extractable=y|n] [print=y|n] [token=TOKEN]
  genkeypair label=LABEL [keytype=rsa|ec] [keylen=BITS] [curve=CURVE] [token=TOKEN] | listcurves
  gencert label=LABEL subject=NAME serial=HEX [altname=] [keyusage=] [eku=] [lifetime=N-hour|N-day|N-year]
         [keytype=rsa|ec] [keylen=BITS] [curve=CURVE] [hash=sha1|sha256|sha384|sha512] [token=TOKEN]
  gencsr label=LABEL subject=NAME outcsr=FILE [format=pem|der], and as gencert but serial= and lifetime=
  signcsr signkey=LABEL csr=FILE serial=HEX outcert=FILE issuer=NAME [store=y|n] [outlabel=LABEL]
         [format=pem|der] [subject=NAME] [altname=] [keyusage=] [eku=] [lifetime=] [token=TOKEN]
  import infile=FILE label=LABEL [objtype=cert] [token=TOKEN]
  import infile=FILE label=LABEL objtype=key [keytype=aes|3des|arcfour|generic]
         [sensitive=y|n] [extractable=y|n] [token=TOKEN]
  export outfile=FILE objtype=cert [label=LABEL] [subject=] [issuer=] [serial=] [outformat=pem|der]
         [token=TOKEN]
  export outfile=FILE objtype=key label=LABEL outformat=raw [token=TOKEN]
  help

TOKEN is name[:manufacturer[:serial]], or a PKCS#11 URI; without it there must be one token only. TYPE is
private, public, both, key or cert; key and cert with :private, :public or :both after it. NAME is a
distinguished name: 'CN=site, O=Acme, C=DE'.";

/// Arguments of `pktool`.
#[derive(clap::Args, Debug)]
#[command(after_help = USAGE)]
pub(crate) struct Args {
    /// Print the verbs
    #[arg(short = '?', action = ArgAction::HelpLong)]
    question: Option<bool>,
    /// Read the verb and its operands from a file, one a line
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "words")]
    pub(super) file: Option<PathBuf>,
    /// gencert, gencsr: has no meaning here
    #[arg(short = 'i')]
    pub(super) interactive: bool,
    /// Delete without asking
    #[arg(long)]
    pub(super) yes: bool,
    /// The user PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pub(super) pin_source: Option<String>,
    /// The SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pub(super) so_pin_source: Option<String>,
    /// setpin: the new PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pub(super) new_pin_source: Option<String>,
    /// The verb and its operands
    #[arg(value_name = "VERB|OPERAND")]
    pub(super) words: Vec<String>,
}

impl Args {
    /// A session with the token that the operands name, with its user logged in.
    pub(super) fn log_in(
        &self,
        app: &App,
        operands: &Operands<'_>,
        access: Access,
    ) -> Result<(Session, Uri)> {
        let uri = token(operands)?;
        let (token, option) = (app.token(&uri)?, self.pin_source.as_deref());
        let login = Login::by(token, &uri, option, None)?;
        Ok((app.log_in(&login, access)?.0, login.token.uri()))
    }

    /// A session with that token where no PIN is needed.
    pub(super) fn session(&self, app: &App, operands: &Operands<'_>) -> Result<Session> {
        let uri = token(operands)?;
        let slot = app.token(&uri)?.slot;
        Ok(app.host(&uri)?.module().open_session(slot, Access::ReadOnly)?)
    }
}

/// The token that the operands name.
pub(super) fn token(operands: &Operands<'_>) -> Result<Uri> {
    Ok(operands.value("token").map(token_spec).transpose()?.unwrap_or_default())
}

/// `name=y` or `name=n`
pub(super) fn yes(operands: &Operands<'_>, name: &str, otherwise: bool) -> bool {
    operands.value(name).map_or(otherwise, |value| value.starts_with('y'))
}

/// `keylen=`, in bits.
pub(super) fn key_length(operands: &Operands<'_>) -> Result<Option<usize>> {
    let Some(text) = operands.value("keylen") else { return Ok(None) };
    match text.parse() {
        Ok(bits) if bits > 0 && bits % 8 == 0 => Ok(Some(bits)),
        _ => Err(Failure::usage(format!("'keylen={text}' is no number of bits, a multiple of 8"))),
    }
}
