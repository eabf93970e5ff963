// SPDX-License-Identifier: Apache-2.0
//! `metaslot uri2pem`: a file in which programs that read keys from PEM files find a key of a token.
//!
//! The form is that of pkcs11-provider, and of no standard: a SEQUENCE of a VisibleString that says what it is and a
//! UTF8String, the URI (RFC 7512), between lines of PEM (RFC 7468).

use super::arguments::TokenArg;
use crate::app::App;
use crate::command::payload::write_beside;
use crate::encoding::der::{SEQUENCE, UTF8_STRING, VISIBLE_STRING, element};
use crate::encoding::pem;
use crate::failure::{Failure, Result};
use crate::find;
use crate::key::Key;
use crate::output::Report;
use crate::uri::{Class, Uri};
use metaslot_client::Access;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  metaslot uri2pem site --pin-source /etc/metaslot/pin --out site-key.pem
  metaslot uri2pem --as-is 'pkcs11:token=web;object=site;type=private' > site-key.pem";

/// What the lines of PEM say.
const LABEL: &str = "PKCS#11 PROVIDER URI";
/// What the first string says.
const VERSION: &[u8] = b"PKCS#11 Provider URI v1.0";

/// Arguments of `uri2pem`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key: a PKCS#11 URI or its label
    #[arg(value_name = "URI|LABEL")]
    key: String,
    /// Write the URI as it is, whether or not there is such a key here
    #[arg(long, conflicts_with_all = ["token", "pin_source"])]
    as_is: bool,
    /// A file with the user PIN, which the URI then names [default: the program asks, if it can]
    #[arg(long, value_name = "FILE")]
    pin_source: Option<PathBuf>,
    /// The file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = if args.as_is { checked(&args.key)? } else { found(app, args)? };
    let pem = pem_of(&uri);
    let report =
        Report { text: String::new(), json: json!({"uri": uri, "pem": pem}), uris: vec![uri] };
    write_beside(&app.output, args.out.as_deref(), pem.as_bytes(), &report)?;
    app.output.note(
        "read by programs of OpenSSL 3 that have our provider or pkcs11-provider configured, not by its engine",
    );
    Ok(())
}

/// The file that names a key by this URI.
pub(super) fn pem_of(uri: &str) -> String {
    pem(LABEL, &document(uri))
}

fn document(uri: &str) -> Vec<u8> {
    let parts = [element(VISIBLE_STRING, VERSION), element(UTF8_STRING, uri.as_bytes())];
    element(SEQUENCE, &parts.concat())
}

/// A URI that makes sense, as it was written.
fn checked(text: &str) -> Result<String> {
    let uri: Uri =
        text.parse().map_err(|error| Failure::usage(format!("not a PKCS#11 URI: {error}")))?;
    if uri.pin_value.is_some() {
        return Err(Failure::usage(
            "a file with a PIN in it is a PIN in a place where it does not belong",
        )
        .hint("pin-source=file:/path in the URI names a file that only the program reads"));
    }
    Ok(text.to_owned())
}

/// The URI of the private half of a key pair that is there.
fn found(app: &App, args: &Args) -> Result<String> {
    let uri = args.token.key(&args.key)?;
    let token = app.token_with(&uri)?;
    let session = app.host(&uri)?.module().open_session(token.slot, Access::ReadOnly)?;
    let key = find::one::<Key>(&session, &token.uri(), &uri)?;
    let source = args.pin_source.as_deref().map(|path| {
        path.canonicalize()
            .map(|path| format!("file:{}", path.display()))
            .map_err(|error| Failure::io(format!("cannot find {}", path.display()), &error))
    });
    let full = Uri {
        class: Some(Class::Private),
        pin_source: source.transpose()?,
        ..key.uri(&token.uri())
    };
    Ok(full.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_two_strings() {
        let der = document("pkcs11:token=a");
        let version = [&[0x1a, 25][..], VERSION].concat();
        let uri = [&[0x0c, 14][..], b"pkcs11:token=a"].concat();
        assert_eq!(der, [&[0x30, 27 + 16][..], &version, &uri].concat());
        assert!(pem(LABEL, &der).starts_with("-----BEGIN PKCS#11 PROVIDER URI-----\nMCsaGVBLQ1MjMTEgUHJvdmlkZXIgVVJJIHYxLjAMDnBrY3MxMTp0b2tlbj1h\n"));
    }

    #[test]
    fn a_pin_does_not_go_into_a_file() {
        assert!(checked("pkcs11:token=a?pin-value=1234").is_err());
        assert!(checked("pkcs11:nonsense=a").is_err());
        let uri = "pkcs11:token=a;object=b?pin-source=file:/p";
        assert_eq!(checked(uri).expect("it is one"), uri);
    }
}
