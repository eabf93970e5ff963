// SPDX-License-Identifier: Apache-2.0
//! The key of `mac`, `encrypt` and `decrypt`: in a file, in a token, or made from a passphrase.

use crate::app::{App, Login};
use crate::command::arguments::{key_uri, token_uri};
use crate::failure::{Failure, Result};
use crate::find;
use crate::host::Token;
use crate::key::Key;
use crate::pin::{self, Source};
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
    /// The label of a key in a token, or its PKCS#11 URI
    #[arg(short = 'K', value_name = "LABEL")]
    key_label: Option<String>,
    /// The token of that key: name[:manufacturer[:serial]], or a PKCS#11 URI
    #[arg(short = 'T', value_name = "TOKEN", requires = "key_label")]
    token: Option<String>,
    /// The passphrase's or the PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
    /// For a key in a token: log in as the identity of this name, by its PIN [default:
    /// $METASLOT_IDENTITY, or the user]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
}

/// What a key is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    pub(crate) key_type: CK_KEY_TYPE,
    pub(crate) usage: CK_ATTRIBUTE_TYPE,
    /// The lengths that a key in a file may have, in bytes; none stands for all.
    pub(crate) lengths: &'static [usize],
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
    /// A login on the token of its key.
    pub(crate) fn login<'a>(&'a self, token: Token, uri: &'a Uri) -> Result<Login<'a>> {
        Login::by(token, uri, self.pin_source.as_deref(), self.identity.as_deref())
    }

    /// Whether it is made from a passphrase.
    pub(crate) const fn is_passphrase(&self) -> bool {
        self.key_file.is_none() && self.key_label.is_none()
    }

    /// Whether it is in a token.
    pub(crate) const fn is_in_token(&self) -> bool {
        self.key_label.is_some()
    }

    /// The file that holds it.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.key_file.as_deref()
    }

    /// The files that its secrets are in, and what each is called.
    pub(crate) fn files(&self) -> Result<Vec<(PathBuf, &'static str)>> {
        let source = self.pin_source.as_deref().map(Source::parse).transpose()?;
        let key = self.key_file.clone().map(|path| (path, "key file"));
        let pin = match source {
            Some(Source::File(path)) => Some((PathBuf::from(path), "file of --pin-source")),
            _ => None,
        };
        Ok(key.into_iter().chain(pin).collect())
    }

    /// A session with the module that has the key, before the key is known.
    pub(crate) fn session(&self, app: &App) -> Result<Session> {
        app.host(&self.uri()?)?;
        any_session(app)
    }

    /// A session, and the key in it. A passphrase that is to be `chosen` is typed twice.
    pub(crate) fn open(
        &self,
        app: &App,
        purpose: Purpose,
        stretch: &Stretch<'_>,
        chosen: bool,
    ) -> Result<(Session, ObjectHandle)> {
        if self.is_in_token() {
            return self.in_token(app, purpose);
        }
        let session = any_session(app)?;
        let key = match &self.key_file {
            Some(path) => imported(&session, &fitting(path, purpose)?, purpose)?,
            None => stretched_key(&session, &self.passphrase(chosen)?, purpose, stretch)?,
        };
        Ok((session, key))
    }

    /// The passphrase of a key that is made from one.
    pub(crate) fn passphrase(&self, chosen: bool) -> Result<Secret> {
        pin::passphrase(self.pin_source.as_deref(), chosen)
    }

    /// The key of a token, or the token alone.
    fn uri(&self) -> Result<Uri> {
        let token = self.token.as_deref().map(token_spec).transpose()?;
        let Some(key) = &self.key_label else { return Ok(token.unwrap_or_default()) };
        let key = named(key, Class::Secret)?;
        match token {
            None => Ok(key),
            Some(token) if key.token_part() == Uri::default() => Ok(key.on(&token)),
            Some(_) => Err(Failure::usage("the URI already names the token: drop -T")),
        }
    }

    fn in_token(&self, app: &App, purpose: Purpose) -> Result<(Session, ObjectHandle)> {
        let uri = self.uri()?;
        let login = self.login(app.token(&uri)?, &uri)?;
        let (session, _) = app.log_in(&login, Access::ReadOnly)?;
        let key = find::one::<Key>(&session, &login.token.uri(), &uri)?;
        let handle = usable(&session, &key, purpose)?;
        Ok((session, handle))
    }
}

/// The secret key that may be used so.
pub(crate) fn usable(session: &Session, key: &Key, purpose: Purpose) -> Result<ObjectHandle> {
    let missing = || Failure::not_found(format!("'{}' is no secret key", key.label));
    let handle = key.part(Class::Secret).ok_or_else(missing)?;
    match session.attribute_bool(handle, purpose.usage)? {
        true => Ok(handle),
        false => {
            let message = format!("the key '{}' may not be used for this", key.label);
            Err(Failure::failed(message))
        }
    }
}

/// A key by its label, or by its URI where several have the label.
pub(super) fn named(text: &str, class: Class) -> Result<Uri> {
    Ok(Uri { class: Some(class), ..key_uri(text)? })
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

/// A key from a file, if it has a length that such keys have.
pub(crate) fn fitting(path: &Path, purpose: Purpose) -> Result<Secret> {
    let key = read(path)?;
    if purpose.lengths.is_empty() || purpose.lengths.contains(&key.len()) {
        return Ok(key);
    }
    let lengths: Vec<String> = purpose.lengths.iter().map(ToString::to_string).collect();
    let (path, length) = (path.display(), key.len());
    Err(Failure::failed(format!("the key file {path} has {length} bytes"))
        .hint(format!("a key for this has {} bytes", lengths.join(" or "))))
}

/// What is in a key file.
pub(crate) fn read(path: &Path) -> Result<Secret> {
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

/// A key of the session's with this value.
pub(crate) fn imported(session: &Session, key: &Secret, purpose: Purpose) -> Result<ObjectHandle> {
    Ok(session.create(&template(purpose).bytes(ck::CKA_VALUE, key.expose()))?)
}

fn derived(
    session: &Session,
    passphrase: &Secret,
    template: Template,
    stretch: &Stretch<'_>,
) -> Result<ObjectHandle> {
    let params = Params::Pbkd2 {
        prf: stretch.prf,
        salt: stretch.salt,
        iterations: stretch.iterations,
        password: passphrase.expose(),
    };
    let mechanism = Mechanism::with(ck::CKM_PKCS5_PBKD2, params);
    let template = template.ulong(ck::CKA_VALUE_LEN, stretch.length);
    Ok(session.generate_key(&mechanism, &template)?)
}

/// A key of the session's that is made from a passphrase.
pub(crate) fn stretched_key(
    session: &Session,
    passphrase: &Secret,
    purpose: Purpose,
    stretch: &Stretch<'_>,
) -> Result<ObjectHandle> {
    derived(session, passphrase, template(purpose), stretch)
}

/// The bytes of a key that is made from a passphrase, for a key type that is made here no more.
pub(crate) fn stretched(
    session: &Session,
    passphrase: &Secret,
    stretch: &Stretch<'_>,
) -> Result<Secret> {
    let purpose = Purpose { key_type: ck::CKK_GENERIC_SECRET, usage: ck::CKA_DERIVE, lengths: &[] };
    let readable = template(purpose).bool(ck::CKA_SENSITIVE, false).bool(ck::CKA_EXTRACTABLE, true);
    let key = derived(session, passphrase, readable, stretch)?;
    Ok(Secret::taken(session.attribute(key, ck::CKA_VALUE)?))
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
