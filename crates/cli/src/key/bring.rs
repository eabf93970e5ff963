// SPDX-License-Identifier: Apache-2.0
//! Keys that come from outside, as objects of a token: both halves, or none.

use super::{Family, Kind, Usage, usage};
use crate::failure::{Failure, Result};
use crate::keyfile::{Pair, public_values};
use crate::x509;
use metaslot_ck::*;
use metaslot_client::{Session, Template};
use metaslot_memory::Secret;

/// How a key that is brought is to be.
#[derive(Clone, Debug)]
pub(crate) struct Brought<'a> {
    pub(crate) label: &'a str,
    pub(crate) id: &'a [u8],
    /// Whose pair it is: the DER of a name.
    pub(crate) subject: Option<&'a [u8]>,
    /// What it is for; none for what its type is for.
    pub(crate) usages: Option<&'a [Usage]>,
    pub(crate) sensitive: bool,
    pub(crate) extractable: bool,
}

impl Brought<'_> {
    /// A half of a pair with its subject.
    fn of_subject(&self, half: Template) -> Template {
        self.subject.iter().fold(half, |half, subject| half.bytes(CKA_SUBJECT, subject))
    }
}

/// `CKA_ID` of a key: the SHA-1 of its public half, as certificates have it (RFC 5280, 4.2.1.2, method 1).
pub(crate) fn identifier(session: &Session, public_key: &[u8]) -> Result<Vec<u8>> {
    let bits = x509::key_bits(public_key).ok_or_else(|| Failure::failed("that is no key"))?;
    Ok(session.digest(&CKM_SHA_1.into(), bits)?)
}

/// A key that the token took for the length of a session: nothing of it is kept yet.
#[derive(Debug)]
pub(crate) struct Trial<'a> {
    pair: &'a Pair,
    /// `SubjectPublicKeyInfo`: that of the file, or that the module made of the private half.
    pub(crate) public_key: Vec<u8>,
}

impl<'a> Trial<'a> {
    /// What the token refuses, and halves that are not of one key, are seen before anything is stored.
    pub(crate) fn of(session: &Session, pair: &'a Pair, usages: Option<&[Usage]>) -> Result<Self> {
        pair.kind.check_usages(usages)?;
        let how = Brought {
            label: "",
            id: &[],
            subject: None,
            usages,
            sensitive: true,
            extractable: false,
        };
        let made = match &pair.private {
            Some(values) => {
                public_of(session, &pair.kind, &private(values, &pair.kind, &how, false))?
            }
            None => None,
        };
        let is_binary = pair.kind.to_string().starts_with("ec:sect");
        let public_key = match (made, pair.public.clone()) {
            (None, None) => {
                return Err(Failure::failed("it has no public half, and the module makes none")
                    .hint("OpenSSL writes EC keys with it, and OpenSSH Ed25519 keys"));
            }
            (Some(made), Some(said)) if made != said && !is_compressed(&said, &made, is_binary) => {
                return Err(Failure::failed("its two halves are not of one key"));
            }
            (Some(made), _) => made,
            (None, Some(said)) => said,
        };
        let public = public(&public_key, &pair.kind, &how, false)?;
        session.destroy(create(session, &pair.kind, &public)?)?;
        Ok(Self { pair, public_key })
    }

    /// Stores both halves, the private one first; their handles.
    pub(crate) fn store(&self, session: &Session, how: &Brought<'_>) -> Result<Vec<ObjectHandle>> {
        let values = self.pair.private.as_ref();
        let private = values.map(|values| private(values, &self.pair.kind, how, true));
        let public = public(&self.public_key, &self.pair.kind, how, true)?;
        let halves = private.into_iter().chain([public]);
        all_or_none(session, halves.map(|template| session.create(&template)))
    }

    /// Whether there is a private half.
    pub(crate) const fn is_private(&self) -> bool {
        self.pair.private.is_some()
    }
}

/// The objects that are made one after the other; where one fails none of them stays.
pub(crate) fn all_or_none(
    session: &Session,
    making: impl Iterator<Item = metaslot_client::Result<ObjectHandle>>,
) -> Result<Vec<ObjectHandle>> {
    let mut made = Vec::new();
    for one in making {
        match one {
            Ok(handle) => made.push(handle),
            Err(error) => {
                // Before the module's words for it are replaced by those of the next call.
                let failure = Failure::from(error);
                made.into_iter().for_each(|handle| {
                    session.destroy(handle).ok();
                });
                return Err(failure);
            }
        }
    }
    Ok(made)
}

/// Whether a public key has the point of another one in short: one coordinate, and whether the other is odd.
fn is_compressed(short: &[u8], whole: &[u8], is_binary: bool) -> bool {
    let (Some([sign, x @ ..]), Some([4, point @ ..])) =
        (x509::key_bits(short), x509::key_bits(whole))
    else {
        return false;
    };
    // Of fields of characteristic two it says something else, which takes a division.
    let odd = point.last().map_or(0, |byte| byte & 1);
    let fits = if is_binary { matches!(sign, 2 | 3) } else { *sign == 2 | odd };
    fits && point.len() == 2 * x.len() && point.starts_with(x)
}

/// What a module knows of the public half of a private key.
fn public_of(session: &Session, kind: &Kind, private: &Template) -> Result<Option<Vec<u8>>> {
    let handle = create(session, kind, private)?;
    let info = session.attribute(handle, CKA_PUBLIC_KEY_INFO);
    session.destroy(handle)?;
    Ok(info.ok().filter(|info| !info.is_empty()))
}

/// What an object of a key is called.
pub(super) fn named(how: &Brought<'_>, token: bool) -> Template {
    Template::new().token(token).label(how.label).bytes(CKA_ID, how.id)
}

/// The same of one that has a secret.
pub(crate) fn protected(how: &Brought<'_>, token: bool) -> Template {
    named(how, token)
        .bool(CKA_PRIVATE, true)
        .bool(CKA_SENSITIVE, how.sensitive)
        .bool(CKA_EXTRACTABLE, how.extractable)
}

fn private(values: &Template, kind: &Kind, how: &Brought<'_>, token: bool) -> Template {
    let usages = kind.usages(how.usages);
    let template = how.of_subject(protected(how, token).class(CKO_PRIVATE_KEY));
    with(usage::private(template, usages), values)
}

fn public(public_key: &[u8], kind: &Kind, how: &Brought<'_>, token: bool) -> Result<Template> {
    let usages = kind.usages(how.usages);
    let values = public_values(public_key).map_err(Failure::failed)?;
    let template = named(how, token).class(CKO_PUBLIC_KEY).bool(CKA_PRIVATE, false);
    let template = how.of_subject(template);
    Ok(with(usage::public(template, usages), &values))
}

/// A template with the values of another one, too.
pub(crate) fn with(mut template: Template, values: &Template) -> Template {
    template.extend(values.iter().map(|(number, value)| (number, value.clone())));
    template
}

/// The public half of a key that came otherwise.
pub(crate) fn public_half(
    session: &Session,
    public_key: &[u8],
    kind: &Kind,
    how: &Brought<'_>,
) -> Result<ObjectHandle> {
    create(session, kind, &public(public_key, kind, how, true)?)
}

/// A public key of a file, to encapsulate for, for the length of a session.
pub(crate) fn for_session(session: &Session, pair: &Pair) -> Result<ObjectHandle> {
    let how = Brought {
        label: "",
        id: &[],
        subject: None,
        usages: Some(&[Usage::Decapsulate]),
        sensitive: true,
        extractable: false,
    };
    let public_key = pair.public.as_deref().unwrap_or_default();
    create(session, &pair.kind, &public(public_key, &pair.kind, &how, false)?)
}

/// A secret key of these bytes.
pub(crate) fn secret(
    session: &Session,
    kind: &Kind,
    value: &Secret,
    how: &Brought<'_>,
) -> Result<ObjectHandle> {
    let template = protected(how, true).class(kind.class()).key_type(kind.key_type());
    let usages = kind.usages(how.usages);
    let template = usage::secret(template, usages).bytes(CKA_VALUE, value.expose());
    create(session, kind, &template)
}

/// What modules answer that do not know a key's type: that something in the template is wrong.
const UNKNOWN: [Error; 3] =
    [Error::ATTRIBUTE_TYPE_INVALID, Error::ATTRIBUTE_VALUE_INVALID, Error::TEMPLATE_INCONSISTENT];

/// Makes an object of this type, and says so where the module has no keys of it.
pub(crate) fn create(session: &Session, kind: &Kind, template: &Template) -> Result<ObjectHandle> {
    session.create(template).map_err(|error| {
        let failure = Failure::from(error);
        match UNKNOWN.contains(&error.code).then(|| missing(session, kind)).flatten() {
            Some(mechanism) => failure
                .saying(&format!("the module has no {kind} keys"))
                .hint(format!("it lists no {mechanism}, which makes them")),
            None => failure,
        }
    })
}

/// What makes keys of this type, where the module does not have it.
fn missing(session: &Session, kind: &Kind) -> Option<&'static str> {
    let mechanism = kind.generation().mechanism;
    let slot = session.info().ok().filter(|_| kind.family != Family::Other)?.slot;
    let info = session.module().mechanism_info(slot, mechanism);
    let is_missing = info.is_err_and(|error| error.code == Error::MECHANISM_INVALID);
    mechanism_name(mechanism).filter(|_| is_missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::der;

    #[test]
    fn a_short_point_is_that_of_one_key() {
        let info = |point: &[u8]| der::ec_public_key(&[6, 1, 1], point);
        let whole = info(&[4, 7, 8, 1, 9]);
        for (point, is_prime, is_binary) in [
            (&[3, 7, 8][..], true, true),
            (&[2, 7, 8], false, true),
            (&[3, 7, 9], false, false),
            (&[3, 7], false, false),
            (&[5, 7, 8], false, false),
            (&[], false, false),
        ] {
            assert_eq!(is_compressed(&info(point), &whole, false), is_prime, "{point:?}");
            assert_eq!(is_compressed(&info(point), &whole, true), is_binary, "{point:?}");
        }
    }
}
