// SPDX-License-Identifier: Apache-2.0
//! An object of the module's, as ours are.

use crate::error::is_loss;
use crate::value;
use metaslot_ck::attribute::{
    AttributeRow, CKA_BIRTH_ROLES, CKA_FOREIGN_ROW, CKA_METASLOT_HOME, class_bit,
};
use metaslot_ck::*;
use metaslot_client::{Error as Failure, Result as Called, Session, Template, Value as Said};
use metaslot_spi::{Attributes, Value};
use std::collections::BTreeSet;

/// More objects than a token has: a module that names so many names more without end.
const MOST_OBJECTS: usize = 1 << 20;

/// The objects that match, each once.
pub(crate) fn find(session: &Session, template: &Template) -> Called<Vec<ObjectHandle>> {
    let mut search = session.search(template)?;
    let mut seen = BTreeSet::from([0]);
    let mut found = Vec::new();
    let mut batch = [ObjectHandle(0); 256];
    for _ in 0..MOST_OBJECTS / batch.len() {
        let count = search.read(&mut batch)?;
        if count == 0 {
            return search.finish().map(|()| found);
        }
        found.extend(batch[..count].iter().filter(|handle| seen.insert(handle.0)));
    }
    Err(Failure::new(Function::FindObjects, Error::HOST_MEMORY))
}

/// The attributes that objects of a class can have.
pub(crate) fn of_class(
    class: u64,
    wanted: impl Fn(&AttributeRow) -> bool,
) -> Vec<CK_ATTRIBUTE_TYPE> {
    let bit = class_bit(class).unwrap_or(0);
    let rows = AttributeRow::all().iter().filter(|row| row.classes & bit != 0 && wanted(row));
    rows.map(|row| row.number).collect()
}

/// Templates that a key imposes on what is made by it or wants of what it wraps, and the usage that does.
const IMPOSING: [(CK_ATTRIBUTE_TYPE, CK_ATTRIBUTE_TYPE); 5] = [
    (CKA_WRAP, CKA_WRAP_TEMPLATE),
    (CKA_ENCAPSULATE, CKA_ENCAPSULATE_TEMPLATE),
    (CKA_UNWRAP, CKA_UNWRAP_TEMPLATE),
    (CKA_DERIVE, CKA_DERIVE_TEMPLATE),
    (CKA_DECAPSULATE, CKA_DECAPSULATE_TEMPLATE),
];

/// What such a template says, as far as objects of ours can have it. A module that does not show it imposes it alone; one that speaks
/// our version of the protocol shows it, or there is none, and an error leaves open what it is.
fn imposed(
    session: &Session,
    handle: ObjectHandle,
    template: CK_ATTRIBUTE_TYPE,
) -> Called<Option<Attributes>> {
    let said = match session.template_attribute(handle, template) {
        Err(failure) if is_loss(failure.code) || session.module().shows_templates() => {
            return Err(failure);
        }
        said => said.ok().flatten(),
    };
    Ok(said.map(|said| known(&said)))
}

/// What of a template objects of ours can have.
fn known(said: &Template) -> Attributes {
    let mut known = Attributes::new();
    for (attribute, value) in said.iter() {
        let value = match value {
            Said::Bytes(bytes) => value::decoded(attribute, bytes.clone()),
            Said::Template(inner) => Some(Value::Template(self::known(inner))),
            _ => None,
        };
        if let Some(value) = value {
            known.set(attribute, value);
        }
    }
    known
}

/// All that may be shown of an object, as our own objects have it.
pub(crate) fn attributes(
    home: &str,
    session: &Session,
    handle: ObjectHandle,
    id: u64,
    private: bool,
) -> Called<Attributes> {
    let class = session.attributes(handle, &[CKA_CLASS])?.swap_remove(0);
    let class = class.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
    let class = class.ok_or(Failure::new(Function::GetAttributeValue, Error::DEVICE_ERROR))?;
    let ours = |attribute| {
        matches!(attribute, CKA_FOREIGN_ROW | CKA_METASLOT_HOME | CKA_BIRTH_ROLES)
            || matches!(attribute, attribute::CKA_PURPOSES | attribute::CKA_IV_SERIES)
            || attribute == attribute::CKA_COUNTED_SINCE
    };
    let mut wanted = of_class(class, |row| {
        !row.secret && row.kind != attribute::Kind::Template && !ours(row.number)
    });
    if class == CKO_PRIVATE_KEY {
        // The standard has it with public keys alone; a private key of ours tells its point, too.
        wanted.push(CKA_EC_POINT);
    }
    let values = session.attributes(handle, &wanted)?;
    let mut all = Attributes::new();
    for (attribute, bytes) in wanted.into_iter().zip(values) {
        if let Some(value) = bytes.and_then(|bytes| value::decoded(attribute, bytes)) {
            all.set(attribute, value);
        }
    }
    for (usage, template) in IMPOSING {
        if all.bool(usage)
            && let Some(imposed) = imposed(session, handle, template)?
        {
            all.set(template, Value::Template(imposed));
        }
    }
    all.set(CKA_CLASS, Value::Ulong(class));
    all.set(CKA_TOKEN, Value::Bool(true));
    all.set(CKA_METASLOT_HOME, Value::Bytes(home.as_bytes().to_vec()));
    // Older modules do not know these, and allow it.
    let usual = [CKA_MODIFIABLE, CKA_COPYABLE, CKA_DESTROYABLE].map(|attribute| (attribute, true));
    for (attribute, flag) in usual.into_iter().chain([(CKA_PRIVATE, private)]) {
        if all.get(attribute).is_none() {
            all.set(attribute, Value::Bool(flag));
        }
    }
    if class == CKO_PUBLIC_KEY || attribute::is_secret(class) {
        // What a key is for follows from its usages; the module does not know purposes.
        let roles = (0..).zip(attribute::ROLES).filter(|(_, role)| all.bool(**role));
        let roles = roles.fold(0, |bits, (bit, _)| bits | 1_u64 << bit);
        all.set(CKA_BIRTH_ROLES, Value::Ulong(roles));
        all.set(CKA_FOREIGN_ROW, Value::Ulong(id));
    }
    Ok(all)
}
