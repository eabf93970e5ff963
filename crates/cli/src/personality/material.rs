// SPDX-License-Identifier: Apache-2.0
//! The key of `mac`: in a file, in a token, or made from a passphrase.

use crate::app::{App, Login};
use crate::command::arguments::token_uri;
use crate::failure::{Failure, Result};
use crate::pin;
use crate::uri::{Class, Uri};
use clap::Args;
use metaslot_ck::{self as ck, CK_ATTRIBUTE_TYPE, CK_KEY_TYPE, CK_ULONG, ObjectHandle};
use metaslot_client::{Access, Mechanism, Params, Session, Template};
use metaslot_memory::Secret;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A key in a file has so many bytes at most.
const LONGEST: u64 = 8192;

/// Where the key is.
#[derive(Args, Debug)]
pub(crate) struct KeyArg {
    /// The file whose bytes are the key [default: a passphrase is asked for]
    #[arg(short = 'k', value_name = "FILE", conflicts_with = "key_label")]
    key_file: Option<PathBuf>,
    /// The label of a key in a token
    #[arg(short = 'K', value_name = "LABEL")]
    key_label: Option<String>,
    /// The token of that key: name[:manufacturer[:serial]], or a PKCS#11 URI
    #[arg(short = 'T', value_name = "TOKEN", requires = "key_label")]
    token: Option<String>,
    /// The passphrase's or the PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
}

/// What a key is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    pub(crate) key_type: CK_KEY_TYPE,
    pub(crate) usage: CK_ATTRIBUTE_TYPE,
}

/// How a passphrase becomes a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'a> {
    pub(crate) prf: CK_ULONG,
    pub(crate) salt: &'a [u8],
    pub(crate) iterations: u64,
    pub(crate) length: u64,
}

impl KeyArg {
    /// A session, and the key in it. A passphrase that is to be `chosen` is typed twice.
    pub(crate) fn open(
        &self,
        app: &App,
        purpose: Purpose,
        stretch: &Stretch<'_>,
        chosen: bool,
    ) -> Result<(Session, ObjectHandle)> {
        if let Some(label) = &self.key_label {
            return self.in_token(app, label, purpose);
        }
        let session = any_session(app)?;
        let key = match &self.key_file {
            Some(path) => imported(&session, &read(path)?, purpose)?,
            None => {
                let passphrase = pin::passphrase(self.pin_source.as_deref(), chosen)?;
                derived(&session, &passphrase, purpose, stretch)?
            }
        };
        Ok((session, key))
    }

    fn in_token(
        &self,
        app: &App,
        label: &str,
        purpose: Purpose,
    ) -> Result<(Session, ObjectHandle)> {
        let uri = self.token.as_deref().map(token_spec).transpose()?.unwrap_or_default();
        let login =
            Login { token: app.token(&uri)?, uri: &uri, option: self.pin_source.as_deref() };
        let (session, _) = app.log_in(&login, Access::ReadOnly)?;
        let named =
            Uri { object: Some(label.to_owned()), class: Some(Class::Secret), ..Uri::default() };
        let key = crate::key::one(&session, &login.token.uri(), &named)?;
        let missing = || Failure::not_found(format!("'{label}' is no secret key"));
        let handle = key.part(Class::Secret).ok_or_else(missing)?;
        if !session.attribute_bool(handle, purpose.usage)? {
            return Err(Failure::failed(format!("the key '{label}' may not be used for this")));
        }
        Ok((session, handle))
    }
}

/// A session where no token is needed.
pub(crate) fn any_session(app: &App) -> Result<Session> {
    let module = app.host(&Uri::default())?.module();
    let slot = module.slots(true)?.into_iter().next();
    let slot = slot.ok_or_else(|| Failure::not_found("the module has no slot"))?;
    Ok(module.open_session(slot, Access::ReadOnly)?)
}

/// `name[:manufacturer[:serial]]`, in which `\:` is a colon; or a URI.
pub(super) fn token_spec(text: &str) -> Result<Uri> {
    if text.starts_with("pkcs11:") {
        return token_uri(text);
    }
    let mut parts = split(text).into_iter().map(|part| (!part.is_empty()).then_some(part));
    let mut next = || parts.next().flatten();
    let uri = Uri { token: next(), manufacturer: next(), serial: next(), ..Uri::default() };
    match parts.next() {
        Some(_) => Err(Failure::usage(format!("'{text}' is not name[:manufacturer[:serial]]"))),
        None => Ok(uri),
    }
}

fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = parts.len() - 1;
        match character {
            ':' => parts.push(String::new()),
            '\\' => parts[last].extend(characters.next()),
            other => parts[last].push(other),
        }
    }
    parts
}

pub(super) fn read(path: &Path) -> Result<Secret> {
    let what = format!("cannot read the key file {}", path.display());
    let cannot = |error| Failure::io(&what, &error);
    let mut file = File::open(path).map_err(cannot)?;
    let mut buffer = Secret::zeroed(usize::try_from(LONGEST + 1).unwrap_or(0));
    let mut filled = 0;
    loop {
        match file.read(&mut buffer.expose_mut()[filled..]).map_err(cannot)? {
            0 => break,
            read => filled += read,
        }
    }
    match filled {
        0 => Err(Failure::failed(format!("the key file {} is empty", path.display()))),
        long if long as u64 > LONGEST => {
            Err(Failure::failed(format!("the key file {} is too long", path.display())))
        }
        length => Ok(buffer.truncated(length)),
    }
}

fn template(purpose: Purpose) -> Template {
    Template::new()
        .class(ck::CKO_SECRET_KEY)
        .key_type(purpose.key_type)
        .token(false)
        .bool(ck::CKA_PRIVATE, false)
        .bool(purpose.usage, true)
}

fn imported(session: &Session, key: &Secret, purpose: Purpose) -> Result<ObjectHandle> {
    Ok(session.create(&template(purpose).bytes(ck::CKA_VALUE, key.expose()))?)
}

fn derived(
    session: &Session,
    passphrase: &Secret,
    purpose: Purpose,
    stretch: &Stretch<'_>,
) -> Result<ObjectHandle> {
    let params = Params::Pbkd2 {
        prf: stretch.prf,
        salt: stretch.salt,
        iterations: stretch.iterations,
        password: passphrase.expose(),
    };
    let mechanism = Mechanism::with(ck::CKM_PKCS5_PBKD2, params);
    let template = template(purpose).ulong(ck::CKA_VALUE_LEN, stretch.length);
    Ok(session.generate_key(&mechanism, &template)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_named_with_its_maker_and_serial() {
        let uri = token_spec(r"a\:b:maker:17").unwrap();
        assert_eq!(uri.token.as_deref(), Some("a:b"));
        assert_eq!(uri.manufacturer.as_deref(), Some("maker"));
        assert_eq!(uri.serial.as_deref(), Some("17"));
        assert!(token_spec("a:b:c:d").is_err());
    }
}
