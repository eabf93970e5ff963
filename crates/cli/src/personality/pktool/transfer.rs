// SPDX-License-Identifier: Apache-2.0
//! `pktool import` and `pktool export`: secret keys, from and to files.

use super::arguments::{Args, yes};
use super::generate::secret_kind;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::key::{self, usage};
use crate::personality::material;
use crate::personality::operands::Operands;
use crate::uri::{Class, Uri};
use metaslot_ck::{self as ck, CK_KEY_TYPE};
use metaslot_client::{Access, Template};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(super) fn import(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let file = Path::new(operands.needed("infile")?);
    operands.needed("objtype")?;
    let label = operands.needed("label")?;
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
    operands.needed("objtype")?;
    let label = operands.needed("label")?;
    let (session, token) = args.log_in(app, operands, Access::ReadOnly)?;
    let named =
        Uri { object: Some(label.to_owned()), class: Some(Class::Secret), ..Uri::default() };
    let key = key::one(&session, &token, &named)?;
    let missing = || Failure::not_found(format!("'{label}' is no secret key"));
    let handle = key.part(Class::Secret).ok_or_else(missing)?;
    let value = key::value(&session, handle)?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = new.and_then(|mut file| {
        file.write_all(value.expose())?;
        file.sync_all()
    });
    written.map_err(|error| Failure::io(format!("cannot write {}", file.display()), &error))
}
