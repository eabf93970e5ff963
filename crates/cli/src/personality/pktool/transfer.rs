// SPDX-License-Identifier: Apache-2.0
//! `pktool import` and `pktool export`: secret keys and certificates, from and to files.

use super::arguments::{Args, yes};
use super::certificates;
use super::files::{contents, write_new};
use super::generate::secret_kind;
use crate::app::App;
use crate::certificate;
use crate::encoding::{der_of, pem};
use crate::failure::{Failure, Result};
use crate::find;
use crate::key::{self, Key, usage};
use crate::personality::material;
use crate::personality::operands::Operands;
use crate::uri::{Class, Uri};
use metaslot_ck::{self as ck, CK_KEY_TYPE};
use metaslot_client::{Access, Session, Template};
use std::path::Path;

/// Without `objtype=` it is a key where `keytype=` says of which type, and a certificate otherwise.
pub(super) fn import(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let file = Path::new(operands.needed("infile")?);
    let label = operands.needed("label")?;
    let otherwise = if operands.has("keytype") { "key" } else { "cert" };
    match operands.value("objtype").unwrap_or(otherwise) {
        "key" => import_key(app, args, operands, file, label),
        _ => {
            let no = || Failure::failed(format!("{} is no certificate", file.display()));
            let der =
                der_of(&contents(file)?, &["CERTIFICATE", "X509 CERTIFICATE"]).ok_or_else(no)?;
            let certificate = certificate::read(&der).map_err(|_| no())?;
            let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
            let key = certificate::key_of(&session, certificate.public_key)?;
            let id = key.map(|key| key.id).unwrap_or_default();
            certificate::store(&session, &der, label, &id).map(drop)
        }
    }
}

fn import_key(
    app: &App,
    args: &Args,
    operands: &Operands<'_>,
    file: &Path,
    label: &str,
) -> Result<()> {
    let keytype = operands.value("keytype").unwrap_or("generic");
    let value = material::read(file)?;
    let kind = secret_kind(keytype, Some(value.len() * 8))?;
    if keytype == "3des" && value.len() != 24 {
        return Err(Failure::failed(format!("{} has not the 24 bytes of a key", file.display())));
    }
    let usages = kind.generation().usages;
    let template = Template::new()
        .class(ck::CKO_SECRET_KEY)
        .key_type(key_type(keytype))
        .token(true)
        .label(label)
        .bool(ck::CKA_PRIVATE, true)
        .bool(ck::CKA_SENSITIVE, yes(operands, "sensitive", false))
        .bool(ck::CKA_EXTRACTABLE, yes(operands, "extractable", true))
        .bytes(ck::CKA_VALUE, value.expose());
    let (session, _) = args.log_in(app, operands, Access::ReadWrite)?;
    session.create(&usage::secret(template, usages))?;
    Ok(())
}

const fn key_type(keytype: &str) -> CK_KEY_TYPE {
    match keytype.as_bytes() {
        b"aes" => ck::CKK_AES,
        b"3des" => ck::CKK_DES3,
        b"arcfour" => ck::CKK_RC4,
        _ => ck::CKK_GENERIC_SECRET,
    }
}

pub(super) fn export(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let file = Path::new(operands.needed("outfile")?);
    let format = operands.value("outformat");
    match (operands.needed("objtype")?, format) {
        ("key", Some("raw")) => {
            let (session, token) = args.log_in(app, operands, Access::ReadOnly)?;
            let label = operands.needed("label")?;
            let value = key::value(&session, secret(&session, &token, label)?)?;
            write_new(file, value.expose(), 0o600)
        }
        ("key", _) => Err(Failure::usage("objtype=key goes with outformat=raw, for a secret key")
            .hint("a private key does not leave its token; 'metaslot key export' writes the public half")),
        (_, Some("raw")) => Err(Failure::usage("objtype=cert goes with outformat=pem or der")),
        (_, format) => {
            let session = args.session(app, operands)?;
            let found = certificates::find(&session, operands)?;
            let [one] = &*found else {
                return Err(Failure::not_found(format!("{} certificates match", found.len())));
            };
            let bytes = match format {
                Some("der") => one.der.clone(),
                _ => pem("CERTIFICATE", &one.der).into_bytes(),
            };
            write_new(file, &bytes, 0o644)
        }
    }
}

fn secret(session: &Session, token: &Uri, label: &str) -> Result<ck::ObjectHandle> {
    let key = find::one::<Key>(session, token, &material::named(label, Class::Secret)?)?;
    key.part(Class::Secret).ok_or_else(|| Failure::not_found(format!("'{label}' is no secret key")))
}
