// SPDX-License-Identifier: Apache-2.0
//! What a key may be used for, in five words: each covers what the two halves of a pair do.

use crate::uri::Class;
use metaslot_ck::*;
use metaslot_client::Template;
use std::str::FromStr;

/// One use, named after its private half.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Usage {
    /// `CKA_SIGN` and `CKA_VERIFY`
    Sign,
    /// `CKA_DECRYPT` and `CKA_ENCRYPT`
    Decrypt,
    /// `CKA_UNWRAP` and `CKA_WRAP`
    Unwrap,
    /// `CKA_DERIVE`
    Derive,
    /// `CKA_DECAPSULATE` and `CKA_ENCAPSULATE`
    Decapsulate,
}

/// Uses that older modules do not know: only templates of keys that have one name it.
const RECENT: [Usage; 1] = [Usage::Decapsulate];

/// A use: its attribute on the private half and on the public one, and its names, the second an alias.
struct UsageRow {
    usage: Usage,
    private: CK_ATTRIBUTE_TYPE,
    public: Option<CK_ATTRIBUTE_TYPE>,
    names: [&'static str; 2],
}

const USAGES: [UsageRow; 5] = [
    UsageRow {
        usage: Usage::Sign,
        private: CKA_SIGN,
        public: Some(CKA_VERIFY),
        names: ["sign", "verify"],
    },
    UsageRow {
        usage: Usage::Decrypt,
        private: CKA_DECRYPT,
        public: Some(CKA_ENCRYPT),
        names: ["decrypt", "encrypt"],
    },
    UsageRow {
        usage: Usage::Unwrap,
        private: CKA_UNWRAP,
        public: Some(CKA_WRAP),
        names: ["unwrap", "wrap"],
    },
    UsageRow {
        usage: Usage::Derive,
        private: CKA_DERIVE,
        public: None,
        names: ["derive", "derive"],
    },
    UsageRow {
        usage: Usage::Decapsulate,
        private: CKA_DECAPSULATE,
        public: Some(CKA_ENCAPSULATE),
        names: ["decapsulate", "encapsulate"],
    },
];

impl FromStr for Usage {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let row = USAGES.iter().find(|row| row.names.contains(&text));
        row.map(|row| row.usage)
            .ok_or_else(|| "one of sign, decrypt, unwrap, derive, decapsulate".to_owned())
    }
}

impl Usage {
    /// Its first name.
    pub(crate) fn name(self) -> &'static str {
        USAGES.iter().find(|row| row.usage == self).map_or("", |row| row.names[0])
    }
}

/// Their first names.
pub(crate) fn usage_names() -> impl Iterator<Item = &'static str> {
    USAGES.iter().map(|row| row.names[0])
}

/// Programs state uses that they do not need, so our module takes them, and refuses them when asked. Who asks for them here
/// is told.
pub(crate) fn warning(asked: Option<&[Usage]>, pair: bool) -> Option<String> {
    let asked = asked?;
    let beyond = beyond_purpose(asked, pair);
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

/// The uses among `asked` that go beyond the key's one purpose, as our module has it (docs/policy.md):
/// use before transport before derivation. Agreement, what the derive of a pair is, is a use.
fn beyond_purpose(asked: &[Usage], pair: bool) -> Vec<Usage> {
    let purpose = |usage: &Usage| match usage {
        Usage::Sign | Usage::Decrypt | Usage::Decapsulate => 0,
        Usage::Derive if pair => 0,
        Usage::Unwrap => 1,
        Usage::Derive => 2,
    };
    let first = asked.iter().map(purpose).min();
    asked.iter().copied().filter(|usage| Some(purpose(usage)) != first).collect()
}

/// The attributes that are read, in the order of [`Usages::from_flags`].
pub(crate) const ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 9] = [
    CKA_SIGN,
    CKA_VERIFY,
    CKA_DECRYPT,
    CKA_ENCRYPT,
    CKA_UNWRAP,
    CKA_WRAP,
    CKA_DERIVE,
    CKA_DECAPSULATE,
    CKA_ENCAPSULATE,
];

/// A set of uses, as attributes that are true.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Usages(Vec<CK_ATTRIBUTE_TYPE>);

impl Usages {
    /// From the values of [`ATTRIBUTES`].
    pub(crate) fn from_flags(flags: &[bool]) -> Self {
        let set = ATTRIBUTES.iter().zip(flags).filter(|(_, set)| **set);
        Self(set.map(|(attribute, _)| *attribute).collect())
    }

    /// Together with those of the other half.
    pub(crate) fn join(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Whether this attribute is true.
    pub(crate) fn has(&self, attribute: CK_ATTRIBUTE_TYPE) -> bool {
        self.0.contains(&attribute)
    }

    /// What the private half is for.
    pub(crate) fn of_private(&self) -> Vec<Usage> {
        USAGES.iter().filter(|row| self.has(row.private)).map(|row| row.usage).collect()
    }

    /// The words of `CKA_…`, in a fixed order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let name = |attribute: CK_ATTRIBUTE_TYPE| {
            let row =
                USAGES.iter().find(|row| row.private == attribute || row.public == Some(attribute));
            row.map_or("", |row| row.names[usize::from(row.private != attribute)])
        };
        let set = ATTRIBUTES.iter().filter(|attribute| self.0.contains(attribute));
        set.map(|attribute| name(*attribute)).collect()
    }
}

/// The attributes of an object of a class, and whether these uses switch them on.
pub(crate) fn of_class(
    class: Class,
    usages: &[Usage],
) -> impl Iterator<Item = (CK_ATTRIBUTE_TYPE, bool)> {
    let private = matches!(class, Class::Private | Class::Secret);
    let public = matches!(class, Class::Public | Class::Secret);
    stated(usages).flat_map(move |row| {
        let is_on = usages.contains(&row.usage);
        let attributes = [Some(row.private).filter(|_| private), row.public.filter(|_| public)];
        attributes.into_iter().flatten().map(move |attribute| (attribute, is_on))
    })
}

/// The rows that a template states, on or off.
fn stated(usages: &[Usage]) -> impl Iterator<Item = &'static UsageRow> {
    USAGES.iter().filter(|row| !RECENT.contains(&row.usage) || usages.contains(&row.usage))
}

/// Sets every use of the private half, or of a secret key, explicitly: modules differ in what they
/// take a silent template to mean.
pub(crate) fn private(template: Template, usages: &[Usage]) -> Template {
    stated(usages)
        .fold(template, |template, row| template.bool(row.private, usages.contains(&row.usage)))
}

/// The same for the public half.
pub(crate) fn public(template: Template, usages: &[Usage]) -> Template {
    let rows = stated(usages).filter_map(|row| row.public.map(|attribute| (row, attribute)));
    rows.fold(template, |template, (row, attribute)| {
        template.bool(attribute, usages.contains(&row.usage))
    })
}

/// A secret key is both halves.
pub(crate) fn secret(template: Template, usages: &[Usage]) -> Template {
    public(private(template, usages), usages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_a_use_are_read() {
        for row in &USAGES {
            for name in row.names {
                assert_eq!(name.parse(), Ok(row.usage));
            }
        }
        assert!("signing".parse::<Usage>().is_err());
    }

    #[test]
    fn a_key_is_for_the_first_purpose_that_is_asked_for() {
        use Usage::*;
        let rows: [(&[Usage], bool, &[Usage]); 7] = [
            (&[Sign, Decrypt], true, &[]),
            (&[Sign, Derive], true, &[]),
            (&[Sign, Derive], false, &[Derive]),
            (&[Unwrap, Sign], false, &[Unwrap]),
            (&[Derive, Unwrap], false, &[Derive]),
            (&[Derive], false, &[]),
            (&[Decapsulate], true, &[]),
        ];
        for (asked, pair, beyond) in rows {
            assert_eq!(beyond_purpose(asked, pair), beyond, "{asked:?}");
        }
    }

    #[test]
    fn older_modules_are_told_of_no_use_that_they_do_not_know() {
        let of = |usages: &[Usage]| of_class(Class::Private, usages).map(|row| row.0).collect();
        let (signs, opens): (Vec<_>, Vec<_>) = (of(&[Usage::Sign]), of(&[Usage::Decapsulate]));
        assert!(!signs.contains(&CKA_DECAPSULATE));
        assert!(opens.contains(&CKA_DECAPSULATE));
    }

    #[test]
    fn names_come_in_a_fixed_order() {
        let mut usages = Usages::from_flags(&[true, false, false, false, false, false, true]);
        usages.join(&Usages::from_flags(&[false, true]));
        assert_eq!(usages.names(), ["sign", "verify", "derive"]);
    }
}
