// SPDX-License-Identifier: Apache-2.0
//! `metaslot key generate`

use super::report::report;
use crate::app::App;
use crate::command::arguments::{PinArg, TokenArg};
use crate::encoding::from_hex;
use crate::failure::{Failure, Result};
use crate::key::{self, Family, Generation, Kind, Usage, usage};
use crate::output::Report;
use crate::uri::Uri;
use clap::builder::NonEmptyStringValueParser;
use metaslot_ck::*;
use metaslot_client::{Access, Session, Template};

/// Bytes of a random id: enough for no two keys to have the same.
const ID_LENGTH: usize = 8;

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
    /// (ec:sect163k1 to ec:sect571r1), ed25519, x25519, aes:128, aes:192, aes:256, chacha20,
    /// generic:32 (bytes), or for old data des3, des2, rc4:128 (bits)
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "ec:p256")]
    kind: Kind,
    /// The key's id in hexadecimal [default: random]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
    /// What it is for: sign, decrypt, unwrap, derive, with their counterparts [default: what the
    /// type is for; never unwrap]
    #[arg(long, value_name = "USE", value_delimiter = ',')]
    usage: Option<Vec<Usage>>,
    /// Let the key leave the token, encrypted by a wrapping key
    #[arg(long)]
    extractable: bool,
    /// Allow a second key with the same label
    #[arg(long)]
    same_label: bool,
    #[command(flatten)]
    token: TokenArg,
    #[command(flatten)]
    pin: PinArg,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let id = args.id.as_deref().map(id).transpose()?;
    let uri = args.token.uri()?;
    let login = args.pin.login(app, &uri)?;
    let (session, _) = app.log_in(&login, Access::ReadWrite)?;
    if !args.same_label {
        refuse_same_label(&session, &args.label)?;
    }
    let id = match id {
        Some(id) => id,
        None => random_id(&session)?,
    };
    let how = args.kind.generation();
    check_usage(args, &how)?;
    check_size(&session, login.token.slot, &args.kind)?;
    let made = generate(&session, args, &how, &id);
    let made = made.map_err(|failure| {
        failure.context(format!("cannot generate {} key", with_article(&args.kind)))
    })?;
    let wanted = Uri { id: Some(id), object: Some(args.label.clone()), ..Uri::default() };
    let mut keys = key::search(&session, &wanted)?;
    keys.retain(|key| key.parts.iter().any(|part| made.contains(&part.handle)));
    let report = report(&login.token, &keys);
    let text =
        format!("generated {} key '{}'\n{}\n", args.kind, args.label, report.uris.join("\n"));
    let ours = login.token.status.is_some();
    let warnings: Vec<String> = beyond_purpose(args, &how).filter(|_| ours).into_iter().collect();
    app.output.print_warning(&Report { text, ..report }, &warnings)
}

fn with_article(kind: &Kind) -> String {
    let name = kind.to_string();
    let vowel = name.starts_with(['a', 'e', 'r', 'x']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}

fn id(text: &str) -> Result<Vec<u8>> {
    from_hex(text).ok_or_else(|| {
        Failure::usage(format!("the id '{text}' is not bytes in hexadecimal, two digits each"))
            .hint("for example --id 01 or --id 0a1b2c")
    })
}

fn random_id(session: &Session) -> Result<Vec<u8>> {
    let mut id = vec![0; ID_LENGTH];
    session.random(&mut id)?;
    Ok(id)
}

fn refuse_same_label(session: &Session, label: &str) -> Result<()> {
    let same = Uri { object: Some(label.to_owned()), ..Uri::default() };
    if key::search(session, &same)?.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("the token already has a key '{label}'"))
        .hint("choose another label, or allow two with --same-label"))
}

/// A use that the type cannot have would make a key that is good for nothing.
fn check_usage(args: &Args, how: &Generation) -> Result<()> {
    let wrong = args.usage.iter().flatten().find(|usage| !how.possible.contains(usage));
    match wrong {
        None => Ok(()),
        Some(wrong) => Err(Failure::usage(format!("{} keys cannot {}", args.kind, wrong.name()))),
    }
}

/// How many bits an RSA key may have is the token's to say; the other types have their sizes by name.
fn check_size(session: &Session, slot: SlotId, kind: &Kind) -> Result<()> {
    if kind.family != Family::Rsa {
        return Ok(());
    }
    let info = session.module().mechanism_info(slot, CKM_RSA_PKCS_KEY_PAIR_GEN)?;
    let (least, most) = (info.min_key_size, info.max_key_size);
    if (least..=most).contains(&(kind.size as u64)) {
        return Ok(());
    }
    Err(Failure::usage(format!("RSA keys of this token have {least} to {most} bits")))
}

/// Programs state uses that they do not need, so the module takes them, and refuses them when asked.
fn beyond_purpose(args: &Args, how: &Generation) -> Option<String> {
    let asked = args.usage.as_deref()?;
    let beyond = usage::beyond_purpose(asked, how.pair);
    let (first, _) = beyond.split_first()?;
    let names = |usages: &[Usage]| {
        usages.iter().map(|usage| usage.name()).collect::<Vec<_>>().join(" and ")
    };
    let kept: Vec<Usage> = asked.iter().copied().filter(|usage| !beyond.contains(usage)).collect();
    let (kept, refused) = (names(&kept), names(&beyond));
    Some(format!(
        "a key has one purpose, and this one's is to {kept}: the default policy refuses to \
         {refused} with it; make another key with --usage {}, or allow \"beyond-purpose\"",
        first.name()
    ))
}

fn generate(
    session: &Session,
    args: &Args,
    how: &Generation,
    id: &[u8],
) -> Result<Vec<ObjectHandle>> {
    let usages = args.usage.as_deref().unwrap_or(how.usages);
    let named = || Template::new().token(true).label(&args.label).bytes(CKA_ID, id);
    let protected = |template: Template| {
        template
            .bool(CKA_PRIVATE, true)
            .bool(CKA_SENSITIVE, true)
            .bool(CKA_EXTRACTABLE, args.extractable)
    };
    let mechanism = how.mechanism.into();
    if !how.pair {
        let mut template = usage::secret(protected(named()), usages);
        template.extend(how.template.iter().map(|(number, value)| (number, value.clone())));
        return Ok(vec![session.generate_key(&mechanism, &template)?]);
    }
    let mut public = usage::public(named().bool(CKA_PRIVATE, false), usages);
    public.extend(how.template.iter().map(|(number, value)| (number, value.clone())));
    let private = usage::private(protected(named()), usages);
    let (public, private) = session.generate_key_pair(&mechanism, &public, &private)?;
    Ok(vec![private, public])
}
