// SPDX-License-Identifier: Apache-2.0
//! `metaslot key generate`

use super::report::report;
use crate::app::App;
use crate::command::arguments::{UserArg, id};
use crate::failure::{Failure, Result};
use crate::key::{self, Kind, Order, Usage, usage};
use crate::output::Report;
use crate::scheme::mechanism_number;
use crate::waiting::Waiting;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::{
    CKA_ALLOWED_MECHANISMS, CKA_ALWAYS_AUTHENTICATE, CKA_DESTROYABLE, CKA_MODIFIABLE,
};
use metaslot_client::{Access, Template, Value};

const EXAMPLES: &str = "\
Examples:
  metaslot key generate --label site --type rsa:3072
  metaslot key generate --label app --type ec:p256 --usage sign --token web
  metaslot key generate --label kek --type aes:256 --usage unwrap";

/// Arguments of `key generate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The key's name
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    label: String,
    /// rsa:2048 (or more bits), ec:p256, ec:p384, ec:p521, ec:p224, ec:secp256k1, a binary curve
    /// (ec:sect163k1 to ec:sect571r1), where the module has OpenSSL ec:brainpoolP256r1 and others
    /// of Brainpool, SEC 2 and X9.62 by their names, ed25519, x25519, ed448, x448, dh:2048, ml-dsa:44, ml-dsa:65, ml-dsa:87,
    /// ml-kem:512, ml-kem:768, ml-kem:1024, slh-dsa:sha2-128s (to slh-dsa:shake-256f), hss (a million
    /// signatures; hss:sha256-192:h10w8 a thousand, hss:sha256-192:h5w8/h5w8 as many), xmss:sha2-10-192 (a thousand
    /// signatures), xmssmt:sha2-20/2-192 (a million), aes:128, aes:192, aes:256, chacha20,
    /// generic:32 (bytes), hotp:20 (bytes), or for old data des3, des2, rc4:128 (bits), and
    /// other ciphers of old or of a country, as camellia:256, aria:256 or seed
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "ec:p256")]
    kind: Kind,
    /// The key's id in hexadecimal [default: random]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// What it is for: sign, decrypt, unwrap, derive, decapsulate, with their counterparts
    /// [default: what the type is for; never unwrap]
    #[arg(long, value_name = "USE", value_delimiter = ',')]
    usage: Option<Vec<Usage>>,
    /// Let the key leave the token, encrypted by a wrapping key
    #[arg(long)]
    extractable: bool,
    /// Ask for the PIN again whenever the private half of the pair is used
    #[arg(long)]
    always_authenticate: bool,
    /// Do only this with it, whatever it is for: mechanisms by name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// Do not let it be changed or deleted, but with the token
    #[arg(long)]
    permanent: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    #[command(flatten)]
    user: UserArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(id).transpose()?;
    let uri = args.user.uri()?;
    let login = args.user.login(app, &uri)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    let order = Order {
        label: &args.label,
        kind: &args.kind,
        id,
        usages: args.usage.as_deref(),
        sensitive: true,
        extractable: args.extractable,
        same_label: args.same_label,
        limits: args.limits()?,
    };
    let waiting = Waiting::new(app.output, format!("generating {}", args.kind), None);
    let keys = key::make(&session, login.token.slot, order)?;
    drop(waiting);
    let report = report(&login.token, &keys);
    let text =
        format!("generated {} key '{}'\n{}\n", args.kind, args.label, report.uris.join("\n"));
    let ours = login.token.status.is_some();
    let how = args.kind.generation();
    let warning = usage::warning(args.usage.as_deref(), how.pair).filter(|_| ours);
    app.output.print_warning(&Report { text, ..report }, warning.as_slice())
}

impl Args {
    /// What limits the key beside its usages.
    fn limits(&self) -> Result<Template> {
        let mut limits = Template::new();
        if self.always_authenticate {
            if !self.kind.generation().pair {
                let message =
                    format!("a use of a secret key cannot ask for the PIN: {}", self.kind);
                return Err(Failure::usage(message).hint("--always-authenticate is for pairs"));
            }
            limits = limits.bool(CKA_ALWAYS_AUTHENTICATE, true);
        }
        if let Some(names) = &self.only {
            let numbers = names.iter().map(|name| mechanism_number(name)).collect::<Result<_>>()?;
            limits.push(CKA_ALLOWED_MECHANISMS, Value::Mechanisms(numbers));
        }
        if self.permanent {
            limits = limits.bool(CKA_MODIFIABLE, false).bool(CKA_DESTROYABLE, false);
        }
        Ok(limits)
    }
}
