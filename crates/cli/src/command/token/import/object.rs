// SPDX-License-Identifier: Apache-2.0
//! An object of another module's token, as attributes of one of ours.

use crate::encoding::der::{OCTET_STRING, element};
use crate::encoding::significant;
use crate::failure::Result;
use crate::key::{Kind, Usage, identified};
use crate::uri::{Class, Uri};
use metaslot_ck::attribute::{self, AttributeRow, CREATE, SO, USAGE, class_bit};
use metaslot_ck::*;
use metaslot_client::{Session, Template, Value};

/// What of an object can be seen.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) handle: ObjectHandle,
    pub(super) class: CK_OBJECT_CLASS,
    /// In words.
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) id: Vec<u8>,
    pub(super) private: bool,
    /// `CKA_SENSITIVE`, `CKA_EXTRACTABLE`, `CKA_WRAP_WITH_TRUSTED`, where it has them.
    pub(super) sensitive: Option<bool>,
    pub(super) extractable: Option<bool>,
    pub(super) only_under_trusted: bool,
    /// `CKA_VALUE_LEN` of a secret key, where it is told.
    pub(super) length: Option<CK_ULONG>,
    /// Attributes that an object of ours is not given.
    pub(super) lost: Vec<String>,
    values: Vec<(CK_ATTRIBUTE_TYPE, Value)>,
}

/// Classes of objects that a token of ours can have.
const CLASSES: &[(CK_OBJECT_CLASS, Class)] = &[
    (CKO_CERTIFICATE, Class::Certificate),
    (CKO_PRIVATE_KEY, Class::Private),
    (CKO_PUBLIC_KEY, Class::Public),
    (CKO_SECRET_KEY, Class::Secret),
    (CKO_DATA, Class::Data),
];

/// NSS's own.
const OTHERS: &[(CK_OBJECT_CLASS, &str)] =
    &[(0xce53_4351, "NSS CRL"), (0xce53_4352, "NSS S/MIME"), (0xce53_4353, "NSS trust")];

/// Restrictions that cannot be read through every module.
const TEMPLATES: [CK_ATTRIBUTE_TYPE; 5] = [
    CKA_WRAP_TEMPLATE,
    CKA_UNWRAP_TEMPLATE,
    CKA_DERIVE_TEMPLATE,
    CKA_ENCAPSULATE_TEMPLATE,
    CKA_DECAPSULATE_TEMPLATE,
];

/// What the new object gets otherwise: of us, or by what else it has.
const OURS: [CK_ATTRIBUTE_TYPE; 6] = [
    CKA_CLASS,
    CKA_TOKEN,
    CKA_CHECK_VALUE,
    CKA_VALUE_LEN,
    CKA_PUBLIC_KEY_INFO,
    CKA_PUBLIC_CRC64_VALUE,
];

impl Object {
    pub(super) fn read(session: &Session, handle: ObjectHandle) -> Result<Self> {
        let class = session.attribute_ulong(handle, CKA_CLASS)?;
        let rows = rows(class);
        let mut asked: Vec<_> = rows.iter().map(|row| row.number).collect();
        // Whom another token's officer trusts is nothing to ours.
        asked.push(CKA_TRUSTED);
        let told = session.attributes(handle, &asked)?;
        let value = |attribute| {
            asked.iter().position(|it| *it == attribute).and_then(|at| told[at].as_deref())
        };
        let flag = |attribute| value(attribute).map(|value| value == [CK_TRUE]);
        let text = |attribute| String::from_utf8_lossy(value(attribute).unwrap_or_default());
        let trusted = (flag(CKA_TRUSTED) == Some(true)).then(|| said(CKA_TRUSTED));
        let lost = trusted.into_iter().chain(templates(session, handle, class)).collect();
        let mut object = Self {
            handle,
            class,
            kind: String::new(),
            label: text(CKA_LABEL).into_owned(),
            id: value(CKA_ID).unwrap_or_default().to_vec(),
            private: flag(CKA_PRIVATE) == Some(true),
            sensitive: flag(CKA_SENSITIVE),
            extractable: flag(CKA_EXTRACTABLE),
            only_under_trusted: flag(CKA_WRAP_WITH_TRUSTED) == Some(true),
            length: None,
            lost,
            values: rows
                .iter()
                .zip(&told)
                .filter_map(|(row, value)| Some((row.number, converted(row, value.as_deref()?)?)))
                .collect(),
        };
        object.mend_points();
        let length = session.attribute_ulong(handle, CKA_VALUE_LEN).ok();
        object.length = length.filter(|_| class == CKO_SECRET_KEY);
        object.kind = object.words(object.length);
        Ok(object)
    }

    fn bytes(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        match self.values.iter().find(|row| row.0 == attribute) {
            Some((_, Value::Bytes(bytes))) => Some(bytes),
            _ => None,
        }
    }

    fn number(&self, attribute: CK_ATTRIBUTE_TYPE) -> Option<CK_ULONG> {
        match self.values.iter().find(|row| row.0 == attribute) {
            Some((_, Value::Ulong(number))) => Some(*number),
            _ => None,
        }
    }

    /// Whether [`Self::identity`] is of this object alone: a private or secret key has to show a part of its value for that.
    pub(super) fn is_told_apart(&self) -> bool {
        !self.has_secrets() || self.bytes(CKA_MODULUS).is_some()
    }

    pub(super) fn key_kind(&self, length: Option<CK_ULONG>) -> Kind {
        let key_type = self.number(CKA_KEY_TYPE).unwrap_or(CK_UNAVAILABLE_INFORMATION);
        match self.number(CKA_PARAMETER_SET) {
            Some(set) => Kind::of_set(key_type, set),
            None => Kind::of(key_type, self.bytes(CKA_EC_PARAMS), self.bytes(CKA_MODULUS), length),
        }
    }

    /// Curves by their identifiers, and points as the standard wants them: in an OCTET STRING.
    fn mend_points(&mut self) {
        for (attribute, value) in &mut self.values {
            if let (CKA_EC_PARAMS, Value::Bytes(params)) = (*attribute, value)
                && let Some(oid) = identified(params)
            {
                *params = oid.to_vec();
            }
        }
        let kind = self.key_kind(None);
        for (attribute, value) in &mut self.values {
            if let (CKA_EC_POINT, Value::Bytes(point)) = (*attribute, value)
                && !point.is_empty()
            {
                *point = element(OCTET_STRING, kind.point(point));
            }
        }
    }

    fn words(&self, length: Option<CK_ULONG>) -> String {
        let class = CLASSES.iter().find(|row| row.0 == self.class).map(|row| row.1.name());
        match (self.class, class) {
            (CKO_PUBLIC_KEY | CKO_PRIVATE_KEY | CKO_SECRET_KEY, Some(class)) => {
                format!("{class} {}", self.key_kind(length))
            }
            (_, Some(class)) => class.to_owned(),
            (other, None) => {
                let known = OTHERS.iter().find(|row| row.0 == other).map(|row| row.1);
                let known = known.or_else(|| object_class_name(other));
                known.map_or_else(|| format!("{other:#x}"), str::to_owned)
            }
        }
    }

    /// What it is sorted by: the halves of a pair and their certificate stand together.
    pub(super) fn place(&self) -> (usize, &[u8], &str, usize) {
        let class = CLASSES.iter().position(|row| row.0 == self.class).unwrap_or(CLASSES.len());
        let last = usize::from(self.id.is_empty()) + class / CLASSES.len();
        (last, &self.id, &self.label, class)
    }

    /// Whether it has values that are not among its attributes.
    pub(super) const fn has_secrets(&self) -> bool {
        matches!(self.class, CKO_PRIVATE_KEY | CKO_SECRET_KEY)
    }

    /// What cannot be seen of it: the attributes of its secret values.
    pub(super) fn secret_attributes(&self) -> Vec<CK_ATTRIBUTE_TYPE> {
        let bit = class_bit(self.class).unwrap_or(0);
        let rows = AttributeRow::all().iter().filter(|row| row.classes & bit != 0 && row.secret);
        rows.map(|row| row.number).collect()
    }

    /// `CKA_MODULUS`, where it has one.
    pub(super) fn modulus(&self) -> Option<&[u8]> {
        self.bytes(CKA_MODULUS)
    }

    /// What a private half is for, as the command calls it.
    pub(super) fn usages(&self) -> Vec<Usage> {
        let is_set = |attribute| {
            self.values.iter().any(|row| row.0 == attribute && row.1 == Value::Bool(true))
        };
        let usages = [
            (CKA_SIGN, Usage::Sign),
            (CKA_DECRYPT, Usage::Decrypt),
            (CKA_UNWRAP, Usage::Unwrap),
            (CKA_DERIVE, Usage::Derive),
            (CKA_DECAPSULATE, Usage::Decapsulate),
        ];
        usages.into_iter().filter(|row| is_set(row.0)).map(|row| row.1).collect()
    }

    /// All but secret values.
    pub(super) fn template(&self) -> std::result::Result<Template, String> {
        if CLASSES.iter().all(|row| row.0 != self.class) {
            return Err(String::from("objects of this class are the other module's own"));
        }
        let template = Template::new().class(self.class);
        Ok(self
            .values
            .iter()
            .fold(template, |all, (attribute, value)| all.with(*attribute, value.clone())))
    }

    /// What an object of ours has that is this one, as far as that can be seen.
    pub(super) fn identity(&self) -> Option<Template> {
        CLASSES.iter().find(|row| row.0 == self.class)?;
        let template = Template::new().class(self.class).token(true).label(&self.label);
        let told_by: &[_] = match self.class {
            CKO_DATA => &[CKA_APPLICATION, CKA_VALUE],
            CKO_CERTIFICATE => &[CKA_ID, CKA_VALUE],
            _ => &[CKA_ID, CKA_KEY_TYPE, CKA_MODULUS, CKA_EC_PARAMS, CKA_EC_POINT],
        };
        let told = self.values.iter().filter(|row| told_by.contains(&row.0));
        Some(told.fold(template, |all, (attribute, value)| all.with(*attribute, value.clone())))
    }

    /// Its name in our token.
    pub(super) fn uri(&self, token: &Uri) -> Option<Uri> {
        let class = CLASSES.iter().find(|row| row.0 == self.class)?.1;
        Some(Uri {
            object: Some(self.label.clone()).filter(|label| !label.is_empty()),
            id: Some(self.id.clone()).filter(|id| !id.is_empty()),
            class: Some(class),
            ..token.clone()
        })
    }
}

/// Keys without a label get that of the one certificate with their id: NSS calls them so, and programs look for it.
pub(super) fn name(objects: &mut [Object]) {
    let certificates: Vec<(Vec<u8>, String)> = objects
        .iter()
        .filter(|object| object.class == CKO_CERTIFICATE && !object.id.is_empty())
        .map(|object| (object.id.clone(), object.label.clone()))
        .collect();
    for object in objects.iter_mut().filter(|object| object.label.is_empty()) {
        let mut same = certificates.iter().filter(|(id, _)| *id == object.id);
        if let (Some((_, label)), None) = (same.next(), same.next()) {
            object.values.push((CKA_LABEL, Value::Bytes(label.as_bytes().to_vec())));
            object.label = label.clone();
        }
    }
}

/// What may stand in a template for an object of this class, and can be seen.
fn rows(class: CK_OBJECT_CLASS) -> Vec<&'static AttributeRow> {
    let bit = class_bit(class).unwrap_or(0);
    let is_wanted = |row: &&AttributeRow| {
        row.classes & bit != 0
            && row.may(CREATE)
            && !row.may(SO)
            && !row.secret
            && row.kind != attribute::Kind::Template
            && !OURS.contains(&row.number)
    };
    AttributeRow::all().iter().filter(is_wanted).collect()
}

/// A value as a template has it; none where it says nothing.
fn converted(row: &AttributeRow, value: &[u8]) -> Option<Value> {
    let numbers = |value: &[u8]| -> Option<Vec<CK_ULONG>> {
        let (words, rest) = value.as_chunks::<8>();
        rest.is_empty().then(|| words.iter().map(|word| CK_ULONG::from_ne_bytes(*word)).collect())
    };
    match row.kind {
        // A usage of the other half of a pair is mentioned where it is set, which some modules do.
        attribute::Kind::Bool if row.may(USAGE) && row.at_birth.is_none() => {
            (value == [CK_TRUE]).then_some(Value::Bool(true))
        }
        attribute::Kind::Bool => (value.len() == 1).then(|| Value::Bool(value == [CK_TRUE])),
        attribute::Kind::Ulong => {
            let number = numbers(value).and_then(|numbers| numbers.first().copied());
            number.filter(|number| *number != CK_UNAVAILABLE_INFORMATION).map(Value::Ulong)
        }
        attribute::Kind::Ulongs => {
            numbers(value).filter(|list| !list.is_empty()).map(Value::Mechanisms)
        }
        attribute::Kind::BigInteger => {
            Some(significant(value)).filter(|value| !value.is_empty()).map(bytes)
        }
        attribute::Kind::Bytes | attribute::Kind::Date => {
            Some(value).filter(|value| !value.is_empty()).map(bytes)
        }
        attribute::Kind::Template => None,
    }
}

fn bytes(value: &[u8]) -> Value {
    Value::Bytes(value.to_vec())
}

/// Restrictions by templates, which do not come along.
fn templates(
    session: &Session,
    handle: ObjectHandle,
    class: CK_OBJECT_CLASS,
) -> impl Iterator<Item = String> {
    let has = move |attribute: &CK_ATTRIBUTE_TYPE| {
        AttributeRow::of(*attribute, class).is_some()
            && match session.attribute(handle, *attribute) {
                Ok(value) => !value.is_empty(),
                Err(error) => ![Error::ATTRIBUTE_TYPE_INVALID, Error::ATTRIBUTE_SENSITIVE]
                    .contains(&error.code),
            }
    };
    TEMPLATES.into_iter().filter(has).map(said)
}

fn said(attribute: CK_ATTRIBUTE_TYPE) -> String {
    attribute_name(attribute).map_or_else(|| format!("{attribute:#x}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ED25519_OID;

    fn object(
        class: CK_OBJECT_CLASS,
        id: &[u8],
        values: Vec<(CK_ATTRIBUTE_TYPE, Value)>,
    ) -> Object {
        Object {
            handle: ObjectHandle(1),
            class,
            kind: String::new(),
            label: String::new(),
            id: id.to_vec(),
            private: false,
            sensitive: None,
            extractable: None,
            only_under_trusted: false,
            length: None,
            lost: Vec::new(),
            values,
        }
    }

    #[test]
    fn older_forms_of_curves_and_points_become_those_of_the_standard() {
        // P-256, and secp160r1, whose order is a byte longer than its coordinates.
        let p256 = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7][..];
        for (params, length) in [(p256, 64), (&[6, 5, 0x2b, 0x81, 4, 0, 8], 40)] {
            let point = [&[4], &vec![7; length][..]].concat();
            let mut ec = object(
                CKO_PUBLIC_KEY,
                &[],
                vec![
                    (CKA_KEY_TYPE, Value::Ulong(CKK_EC)),
                    (CKA_EC_PARAMS, bytes(params)),
                    (CKA_EC_POINT, bytes(&point)),
                ],
            );
            for _ in 0..2 {
                ec.mend_points();
                assert_eq!(ec.bytes(CKA_EC_POINT), Some(&element(OCTET_STRING, &point)[..]));
            }
        }
        let named = bytes(b"\x13\x0cedwards25519");
        let mut edwards = object(
            CKO_PUBLIC_KEY,
            &[],
            vec![(CKA_KEY_TYPE, Value::Ulong(CKK_EC_EDWARDS)), (CKA_EC_PARAMS, named)],
        );
        edwards.mend_points();
        assert_eq!(edwards.bytes(CKA_EC_PARAMS), Some(ED25519_OID));
        assert_eq!(edwards.words(None), "public ed25519");
    }

    #[test]
    fn a_key_without_a_label_gets_that_of_its_one_certificate() {
        let certificate = |id: &[u8], label: &str| Object {
            label: label.to_owned(),
            ..object(CKO_CERTIFICATE, id, Vec::new())
        };
        let key = |id: &[u8]| object(CKO_PRIVATE_KEY, id, Vec::new());
        let mut objects = [
            certificate(&[1], "one"),
            certificate(&[2], "old"),
            certificate(&[2], "new"),
            certificate(&[], "none"),
            key(&[1]),
            key(&[2]),
            key(&[]),
        ];
        name(&mut objects);
        assert_eq!(objects.each_ref().map(|object| object.label.as_str())[4..], ["one", "", ""]);
        assert_eq!(objects[4].bytes(CKA_LABEL), Some(&b"one"[..]));
    }

    #[test]
    fn what_is_not_said_is_not_in_a_template() {
        let row = |attribute, class| AttributeRow::of(attribute, class).expect("it is known");
        assert_eq!(converted(row(CKA_LABEL, CKO_DATA), b""), None);
        let date = row(CKA_START_DATE, CKO_CERTIFICATE);
        assert_eq!(converted(date, b"20260101"), Some(bytes(b"20260101")));
        let modulus = row(CKA_MODULUS, CKO_PUBLIC_KEY);
        assert_eq!(converted(modulus, &[0, 0, 5]), Some(bytes(&[5])));
        let kind = row(CKA_CERTIFICATE_CATEGORY, CKO_CERTIFICATE);
        assert_eq!(converted(kind, &CK_UNAVAILABLE_INFORMATION.to_ne_bytes()), None);
        // What a private half does not do is not mentioned, what a secret key does not do is.
        assert_eq!(converted(row(CKA_ENCRYPT, CKO_PRIVATE_KEY), &[CK_FALSE]), None);
        let off = Some(Value::Bool(false));
        assert_eq!(converted(row(CKA_DECRYPT, CKO_SECRET_KEY), &[CK_FALSE]), off);
        let asked = rows(CKO_PRIVATE_KEY);
        assert!(asked.iter().all(|row| !row.secret && row.number != CKA_TRUSTED));
        assert_eq!(object(CKO_SECRET_KEY, &[], Vec::new()).secret_attributes(), [CKA_VALUE]);
    }
}
