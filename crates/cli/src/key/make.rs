// SPDX-License-Identifier: Apache-2.0
//! New keys.

use super::bring::named;
use super::{Brought, Family, Generation, Key, Kind, Usage, protected, search, usage, with};
use crate::failure::{Failure, Result};
use crate::uri::Uri;
use metaslot_ck::*;
use metaslot_client::{Session, Template};

/// Bytes of a random id: enough for no two keys to have the same.
const ID_LENGTH: usize = 8;

/// What is to be made.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) label: &'a str,
    pub(crate) kind: &'a Kind,
    /// `CKA_ID`; none for a random one.
    pub(crate) id: Option<Vec<u8>>,
    /// What it is for; none for what its type is for.
    pub(crate) usages: Option<&'a [Usage]>,
    pub(crate) sensitive: bool,
    pub(crate) extractable: bool,
    /// Whether another key may have the label.
    pub(crate) same_label: bool,
    /// What else the private half, or the secret key, is to have.
    pub(crate) limits: Template,
}

/// Makes a key or a pair; the list has it alone.
pub(crate) fn make(session: &Session, slot: SlotId, order: Order<'_>) -> Result<Vec<Key>> {
    if !order.same_label {
        refuse_same_label(session, order.label)?;
    }
    let id = match &order.id {
        Some(id) => id.clone(),
        None => random_id(session)?,
    };
    let how = order.kind.generation();
    order.kind.check_usages(order.usages)?;
    check_size(session, slot, order.kind)?;
    let made = generate(session, &order, &how, &id);
    let made = made.map_err(|failure| {
        failure.context(format!("cannot generate {} key", with_article(order.kind)))
    })?;
    self::made(session, (order.label, &id), &made)
}

/// The keys of a label and an id that have one of these objects.
pub(crate) fn made(
    session: &Session,
    (label, id): (&str, &[u8]),
    handles: &[ObjectHandle],
) -> Result<Vec<Key>> {
    let (id, object) = (Some(id.to_vec()), Some(label.to_owned()));
    let mut keys = search(session, &Uri { id, object, ..Uri::default() })?;
    keys.retain(|key| key.parts.iter().any(|part| handles.contains(&part.handle)));
    Ok(keys)
}

fn with_article(kind: &Kind) -> String {
    let name = kind.to_string();
    let vowel = name.starts_with(['a', 'e', 'r', 'x']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}

pub(crate) fn random_id(session: &Session) -> Result<Vec<u8>> {
    let mut id = vec![0; ID_LENGTH];
    session.random(&mut id)?;
    Ok(id)
}

pub(crate) fn refuse_same_label(session: &Session, label: &str) -> Result<()> {
    let same = Uri { object: Some(label.to_owned()), ..Uri::default() };
    if search(session, &same)?.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("the token already has a key '{label}'"))
        .hint("choose another label, or allow two with --same-label"))
}

/// How long these keys may be is the token's to say; the other types have their sizes by name.
fn check_size(session: &Session, slot: SlotId, kind: &Kind) -> Result<()> {
    let (mechanism, what, unit) = match kind.family {
        Family::Rsa => (CKM_RSA_PKCS_KEY_PAIR_GEN, "RSA keys", "bits"),
        Family::Hotp => (CKM_HOTP_KEY_GEN, "new HOTP keys", "bytes"),
        _ => return Ok(()),
    };
    let info = session.module().mechanism_info(slot, mechanism)?;
    let (least, most) = (info.min_key_size, info.max_key_size);
    if (least..=most).contains(&(kind.size as u64)) {
        return Ok(());
    }
    Err(Failure::usage(format!("{what} of this token have {least} to {most} {unit}")))
}

fn generate(
    session: &Session,
    order: &Order<'_>,
    how: &Generation,
    id: &[u8],
) -> Result<Vec<ObjectHandle>> {
    let usages = order.kind.usages(order.usages);
    let Order { label, sensitive, extractable, .. } = *order;
    let brought =
        Brought { label, id, subject: None, usages: Some(usages), sensitive, extractable };
    let limited = || with(protected(&brought, true), &order.limits);
    let mechanism = how.mechanism.into();
    if !how.pair {
        let template = with(usage::secret(limited(), usages), &how.template);
        return Ok(vec![session.generate_key(&mechanism, &template)?]);
    }
    let public = usage::public(named(&brought, true).bool(CKA_PRIVATE, false), usages);
    let public = with(public, &how.template);
    let private = with(usage::private(limited(), usages), &how.private);
    let (public, private) = session.generate_key_pair(&mechanism, &public, &private)?;
    Ok(vec![private, public])
}
