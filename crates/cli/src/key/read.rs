// SPDX-License-Identifier: Apache-2.0
//! From objects of a session to [`Key`]s.

use super::{Family, Key, Kind, Part, Usages, pairs, usage};
use crate::failure::{Failure, Result};
use crate::find::Object;
use crate::uri::{Class, Uri};
use metaslot_ck::attribute::CKA_METASLOT_HOME;
use metaslot_ck::*;
use metaslot_client::{Session, Template};
use metaslot_memory::Secret;
use std::collections::HashSet;

/// A key of one-time passwords is a secret one: URIs have no other name for it.
const CLASSES: [(Class, CK_OBJECT_CLASS); 4] = [
    (Class::Private, CKO_PRIVATE_KEY),
    (Class::Secret, CKO_SECRET_KEY),
    (Class::Secret, CKO_OTP_KEY),
    (Class::Public, CKO_PUBLIC_KEY),
];

/// The attributes that are read in one call, before those of [`usage::ATTRIBUTES`].
const ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 13] = [
    CKA_KEY_TYPE,
    CKA_LABEL,
    CKA_ID,
    CKA_EC_PARAMS,
    CKA_MODULUS,
    CKA_VALUE_LEN,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CKA_ALWAYS_AUTHENTICATE,
    CKA_METASLOT_HOME,
    CKA_PARAMETER_SET,
    CKA_PRIME,
    CKA_SUBPRIME,
];

/// What a URI describes: the keys, and the objects that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) keys: Vec<Key>,
    pub(crate) unreadable: Vec<Failure>,
}

/// Every key that a URI describes, both halves even if its type names one.
pub(crate) fn search(session: &Session, uri: &Uri) -> Result<Vec<Key>> {
    let Found { keys, unreadable } = search_all(session, uri)?;
    match unreadable.into_iter().next() {
        Some(failure) if keys.is_empty() => Err(failure),
        _ => Ok(keys),
    }
}

/// The same, with what cannot be read: one object that is damaged must not hide the others.
pub(crate) fn search_all(session: &Session, uri: &Uri) -> Result<Found> {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    for (class, number) in CLASSES {
        if wanted(uri.class, class) {
            let mut template = Template::new().class(number).token(true);
            if let Some(label) = &uri.object {
                template = template.label(label);
            }
            if let Some(id) = &uri.id {
                template = template.bytes(CKA_ID, id);
            }
            for handle in session.find(&template)? {
                seen.insert(handle);
                match read(session, class, handle) {
                    Ok(key) => found.keys.extend(key),
                    Err(failure) => found.unreadable.push(failure),
                }
            }
        }
    }
    if uri.class.is_none() && uri.object.is_none() && uri.id.is_none() {
        found.unreadable.extend(without_class(session, &seen)?);
    }
    found.keys = pairs::join(found.keys);
    Ok(found)
}

/// Why the class of other objects cannot be read: no search for one finds what is damaged.
fn without_class(session: &Session, seen: &HashSet<ObjectHandle>) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    for handle in session.find(&Template::new().token(true))? {
        if !seen.contains(&handle)
            && let Err(error) = session.attribute(handle, CKA_CLASS)
            && error.code != Error::OBJECT_HANDLE_INVALID
        {
            failures.push(error.into());
        }
    }
    Ok(failures)
}

impl Object for Key {
    const NAMES: [&'static str; 2] = ["key", "keys"];
    const HINT: &'static str = "'metaslot key list' shows the keys of a token";

    fn search(session: &Session, uri: &Uri) -> Result<Vec<Self>> {
        search(session, uri)
    }

    fn uri(&self, token: &Uri) -> Uri {
        self.uri(token)
    }
}

/// The value of a readable secret key.
pub(crate) fn value(session: &Session, handle: ObjectHandle) -> Result<Secret> {
    Ok(Secret::taken(session.attribute(handle, CKA_VALUE)?))
}

/// The mechanisms that a key is limited to, by name; none where it is not.
pub(crate) fn only_mechanisms(session: &Session, handle: ObjectHandle) -> Vec<String> {
    let numbers = session.attribute(handle, CKA_ALLOWED_MECHANISMS).unwrap_or_default();
    let (numbers, _) = numbers.as_chunks::<8>();
    let numbers = numbers.iter().map(|bytes| CK_MECHANISM_TYPE::from_ne_bytes(*bytes));
    numbers
        .map(|it| mechanism_name(it).map_or_else(|| format!("0x{it:x}"), str::to_owned))
        .collect()
}

/// How many one-time keys a private key of such has left.
pub(crate) fn one_time_left(session: &Session, key: &Key) -> Option<CK_ULONG> {
    let counts = matches!(key.kind.family, Family::Hss | Family::Xmss | Family::Xmssmt);
    let private = key.part(Class::Private).filter(|_| counts)?;
    number(&session.attribute(private, CKA_HSS_KEYS_REMAINING).ok()?)
}

/// As many as a module says (PKCS#11 3.2 §6.65.3).
const TOLD: CK_ULONG = u32::MAX as CK_ULONG;

/// Whether there may be more one-time keys than this, which a module has said.
pub(crate) const fn is_all_told(left: CK_ULONG) -> bool {
    left == TOLD
}

/// Whether no module says that so many are left.
pub(crate) const fn is_beyond_told(left: CK_ULONG) -> bool {
    left > TOLD
}

/// The same failure, unless the code for a mechanism that is not there means one that the key is not to do.
pub(crate) fn limited(
    session: &Session,
    key: &Key,
    handle: ObjectHandle,
    failure: Failure,
) -> Failure {
    if failure.code() != Some(Error::MECHANISM_INVALID) {
        return failure;
    }
    let only = only_mechanisms(session, handle);
    if only.is_empty() {
        return failure;
    }
    failure
        .saying(&format!("'{}' is limited to other mechanisms (CKA_ALLOWED_MECHANISMS)", key.label))
        .hint(format!("it does {}", only.join(", ")))
}

const fn wanted(asked: Option<Class>, class: Class) -> bool {
    match asked {
        None => true,
        Some(Class::Private | Class::Public) => matches!(class, Class::Private | Class::Public),
        Some(Class::Secret) => matches!(class, Class::Secret),
        Some(Class::Certificate | Class::Data) => false,
    }
}

/// One object; `None` when it went away in the meantime.
fn read(session: &Session, class: Class, handle: ObjectHandle) -> Result<Option<Key>> {
    let asked: Vec<CK_ATTRIBUTE_TYPE> = ATTRIBUTES.into_iter().chain(usage::ATTRIBUTES).collect();
    let values = match session.attributes(handle, &asked) {
        Err(error) if error.code == Error::OBJECT_HANDLE_INVALID => return Ok(None),
        other => other?,
    };
    let bytes = |at: usize| values[at].as_deref();
    let flag = |at: usize| bytes(at).map(|value| value == [CK_TRUE]);
    let text = |at: usize| bytes(at).map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    let non_empty = |at: usize| bytes(at).filter(|value| !value.is_empty());
    let flags: Vec<bool> =
        (ATTRIBUTES.len()..asked.len()).map(|at| flag(at) == Some(true)).collect();
    let key_type = bytes(0).and_then(number).unwrap_or(CK_UNAVAILABLE_INFORMATION);
    let of_group = Kind::of_group(key_type, non_empty(11), non_empty(12));
    let kind = match (of_group, bytes(10).and_then(number)) {
        (Some(kind), _) => kind,
        (None, Some(set)) => Kind::of_set(key_type, set),
        (None, None) => Kind::of(key_type, non_empty(3), non_empty(4), bytes(5).and_then(number)),
    };
    Ok(Some(Key {
        parts: vec![Part { class, handle }],
        kind,
        label: text(1),
        id: bytes(2).unwrap_or_default().to_vec(),
        usages: Usages::from_flags(&flags),
        sensitive: flag(6),
        extractable: flag(7),
        always_authenticate: flag(8) == Some(true),
        home: non_empty(9).map(|name| String::from_utf8_lossy(name).into_owned()),
    }))
}

fn number(value: &[u8]) -> Option<CK_ULONG> {
    value.try_into().ok().map(CK_ULONG::from_ne_bytes)
}
