// SPDX-License-Identifier: Apache-2.0
//! What a client has of a token without a PIN: some of its objects, and of what may be done with these a part.

use metaslot_ck::{
    CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CK_OBJECT_CLASS, CKA_ALLOWED_MECHANISMS, CKA_CLASS,
    CKA_COPYABLE, CKA_DECAPSULATE, CKA_DECRYPT, CKA_DERIVE, CKA_DESTROYABLE, CKA_ENCAPSULATE,
    CKA_ENCRYPT, CKA_EXTRACTABLE, CKA_LABEL, CKA_MODIFIABLE, CKA_PRIVATE, CKA_SENSITIVE, CKA_SIGN,
    CKA_SIGN_RECOVER, CKA_UNWRAP, CKA_VERIFY, CKA_VERIFY_RECOVER, CKA_WRAP, CKO_OTP_KEY,
    CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKO_SECRET_KEY, Error, Result,
};
use metaslot_spi::store::{ObjectRow, Term, TokenRow};
use metaslot_spi::{Attributes, Value};
use metaslot_wiring::config::ClientConfig;

/// Everything that a key can be for (PKCS#11 3.2 §4.7).
const USES: [CK_ATTRIBUTE_TYPE; 11] = [
    CKA_DECAPSULATE,
    CKA_DECRYPT,
    CKA_DERIVE,
    CKA_ENCAPSULATE,
    CKA_ENCRYPT,
    CKA_SIGN,
    CKA_SIGN_RECOVER,
    CKA_UNWRAP,
    CKA_VERIFY,
    CKA_VERIFY_RECOVER,
    CKA_WRAP,
];

/// What has mechanisms.
const KEYS: [CK_OBJECT_CLASS; 4] = [CKO_OTP_KEY, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKO_SECRET_KEY];

/// By which an object could become another, or its value known.
const CHANGES: [CK_ATTRIBUTE_TYPE; 4] =
    [CKA_COPYABLE, CKA_DESTROYABLE, CKA_EXTRACTABLE, CKA_MODIFIABLE];

/// What the configuration gives to a client of one token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rights {
    /// The label of the token: another one that has its place is not meant.
    label: String,
    rules: Vec<Rule>,
}

/// What one section says.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Rule {
    /// `None`: of all objects.
    labels: Option<Vec<String>>,
    uses: Vec<CK_ATTRIBUTE_TYPE>,
    /// `None`: by all that the key has.
    mechanisms: Option<Vec<CK_MECHANISM_TYPE>>,
}

impl Rights {
    /// What sections of the configuration say together of the token of this label; `None` where none is of it.
    pub fn of<'a>(label: &str, sections: impl Iterator<Item = &'a ClientConfig>) -> Option<Self> {
        let rule = |one: &ClientConfig| Rule {
            labels: one.keys.clone(),
            uses: one.uses.clone(),
            mechanisms: one.mechanisms.clone(),
        };
        let rules = Vec::from_iter(sections.filter(|one| one.token == label).map(rule));
        (!rules.is_empty()).then(|| Self { label: label.to_owned(), rules })
    }

    /// Whether they are those to a token.
    pub(crate) fn are_to(&self, token: &TokenRow) -> bool {
        token.label == self.label
    }

    /// The searches that find together what the client has of what one finds.
    pub(crate) fn queries(&self, query: &[Term]) -> Vec<Vec<Term>> {
        let Some(labels) = self.labels() else { return vec![query.to_vec()] };
        let wanted = query.iter().find(|term| term.0 == CKA_LABEL);
        let labels = labels.into_iter().map(str::as_bytes);
        let labels = labels.filter(|label| wanted.is_none_or(|(_, wanted)| wanted == label));
        let narrowed = |label: &[u8]| {
            let own = wanted.is_none().then(|| (CKA_LABEL, label.to_vec()));
            query.iter().cloned().chain(own).collect()
        };
        labels.map(narrowed).collect()
    }

    /// The labels of the objects; `None` for all.
    fn labels(&self) -> Option<Vec<&str>> {
        let lists = self.rules.iter().map(|rule| rule.labels.as_deref());
        let lists = lists.collect::<Option<Vec<&[String]>>>()?;
        let mut all: Vec<_> = lists.into_iter().flatten().map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// A row as the client has it; `None` where it has not.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` for a damaged row.
    pub(crate) fn narrowed(&self, mut row: ObjectRow) -> Result<Option<ObjectRow>> {
        let attributes = Attributes::decode(&row.attributes);
        let mut attributes = attributes.map_err(|_| Error::DEVICE_ERROR)?;
        let label = attributes.bytes(CKA_LABEL).unwrap_or_default();
        let rules = Vec::from_iter(self.rules.iter().filter(|rule| rule.is_of(label)));
        if rules.is_empty() {
            return Ok(None);
        }
        let mechanisms = rules.iter().map(|rule| rule.mechanisms.as_deref());
        let mechanisms = mechanisms.collect::<Option<Vec<_>>>().map(|lists| lists.concat());
        let by_any = mechanisms.is_none_or(|given| narrow_mechanisms(&mut attributes, given));
        let may = |usage| by_any && rules.iter().any(|rule| rule.uses.contains(&usage));
        let forbidden = USES.into_iter().filter(|usage| !may(*usage));
        for attribute in forbidden.chain(CHANGES) {
            if attributes.bool(attribute) {
                attributes.set(attribute, Value::Bool(false));
            }
        }
        if attributes.get(CKA_SENSITIVE).is_some() {
            attributes.set(CKA_SENSITIVE, Value::Bool(true));
        }
        // There is no login that would show it.
        attributes.set(CKA_PRIVATE, Value::Bool(false));
        row.private = false;
        row.attributes = attributes.encode();
        Ok(Some(row))
    }
}

/// Leaves a key those of its mechanisms that are given. Says whether there are any: none at all would stand for all (PKCS#11 3.2
/// §4.7).
fn narrow_mechanisms(attributes: &mut Attributes, given: Vec<CK_MECHANISM_TYPE>) -> bool {
    if !attributes.ulong(CKA_CLASS).is_some_and(|class| KEYS.contains(&class)) {
        return true;
    }
    let own = match attributes.get(CKA_ALLOWED_MECHANISMS) {
        Some(Value::Ulongs(own)) => own.clone(),
        _ => Vec::new(),
    };
    let mut both = given;
    both.retain(|one| own.is_empty() || own.contains(one));
    both.sort_unstable();
    both.dedup();
    let any = !both.is_empty();
    if any {
        attributes.set(CKA_ALLOWED_MECHANISMS, Value::Ulongs(both));
    }
    any
}

impl Rule {
    fn is_of(&self, label: &[u8]) -> bool {
        let is_it = |labels: &Vec<String>| labels.iter().any(|one| one.as_bytes() == label);
        self.labels.as_ref().is_none_or(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS_PSS, CKM_RSA_X_509, CKO_CERTIFICATE};

    fn row(label: &str, said: &[CK_ATTRIBUTE_TYPE]) -> ObjectRow {
        let mut attributes = Attributes::new();
        attributes.set(CKA_LABEL, Value::Bytes(label.into()));
        attributes.set(CKA_SENSITIVE, Value::Bool(false));
        for attribute in said {
            attributes.set(*attribute, Value::Bool(true));
        }
        let attributes = attributes.encode();
        ObjectRow { version: 1, private: true, verified: true, attributes, has_secrets: true }
    }

    fn rule(labels: Option<&[&str]>, uses: &[CK_ATTRIBUTE_TYPE]) -> Rule {
        let labels = labels.map(|labels| labels.iter().map(|label| (*label).to_owned()).collect());
        Rule { labels, uses: uses.to_vec(), mechanisms: None }
    }

    fn rights(rules: Vec<Rule>) -> Rights {
        Rights { label: String::from("web"), rules }
    }

    fn uses(rights: &Rights, row: ObjectRow) -> Option<Attributes> {
        let row = rights.narrowed(row).expect("it is whole")?;
        Some(Attributes::decode(&row.attributes).expect("it was written here"))
    }

    #[test]
    fn a_key_has_the_uses_of_all_rules_that_name_it() {
        let rights = rights(vec![
            rule(Some(&["site", "mail"]), &[CKA_SIGN]),
            rule(Some(&["site"]), &[CKA_DECRYPT]),
        ]);
        let all = [&USES[..], &CHANGES[..]].concat();
        let site = uses(&rights, row("site", &all)).expect("it is named");
        let left: Vec<_> = all.iter().copied().filter(|one| site.bool(*one)).collect();
        assert_eq!(left, [CKA_DECRYPT, CKA_SIGN]);
        assert!(site.bool(CKA_SENSITIVE), "its value is not shown");
        let mail = uses(&rights, row("mail", &all)).expect("it is named");
        assert!(mail.bool(CKA_SIGN) && !mail.bool(CKA_DECRYPT));
        assert!(
            uses(&rights, row("other", &all)).is_none() && uses(&rights, row("", &all)).is_none()
        );
        assert_eq!(rights.labels(), Some(vec!["mail", "site"]));
    }

    #[test]
    fn mechanisms_are_those_of_the_key_that_a_rule_gives() {
        let given = |all: &[CK_MECHANISM_TYPE]| Rule {
            mechanisms: Some(all.to_vec()),
            ..rule(None, &[CKA_SIGN, CKA_DECRYPT])
        };
        let narrowed = |rules: Vec<Rule>, own: &[CK_MECHANISM_TYPE], class| {
            let mut row = row("site", &[CKA_SIGN, CKA_DECRYPT]);
            let mut attributes = Attributes::decode(&row.attributes).expect("it was written here");
            attributes.set(CKA_CLASS, Value::Ulong(class));
            if !own.is_empty() {
                attributes.set(CKA_ALLOWED_MECHANISMS, Value::Ulongs(own.to_vec()));
            }
            row.attributes = attributes.encode();
            let left = uses(&rights(rules), row).expect("all are named");
            let mechanisms = match left.get(CKA_ALLOWED_MECHANISMS) {
                Some(Value::Ulongs(mechanisms)) => Some(mechanisms.clone()),
                _ => None,
            };
            (mechanisms, left.bool(CKA_SIGN))
        };
        let (pss, oaep, raw) = (CKM_RSA_PKCS_PSS, CKM_RSA_PKCS_OAEP, CKM_RSA_X_509);
        let key = CKO_PRIVATE_KEY;
        assert_eq!(narrowed(vec![given(&[pss, oaep])], &[], key), (Some(vec![oaep, pss]), true));
        assert_eq!(narrowed(vec![given(&[pss, oaep])], &[raw, pss], key), (Some(vec![pss]), true));
        // None is not said by an empty list, which is all.
        assert_eq!(narrowed(vec![given(&[pss])], &[raw], key), (Some(vec![raw]), false));
        assert_eq!(narrowed(vec![given(&[])], &[], key), (None, false));
        let two = vec![given(&[pss]), given(&[oaep])];
        assert_eq!(narrowed(two, &[], key), (Some(vec![oaep, pss]), true));
        let all = vec![given(&[pss]), rule(None, &[CKA_SIGN])];
        assert_eq!(narrowed(all, &[], key), (None, true));
        assert_eq!(narrowed(vec![given(&[pss])], &[], CKO_CERTIFICATE), (None, true));
    }

    #[test]
    fn rights_give_nothing_that_the_key_does_not_have() {
        let rights = rights(vec![rule(None, &USES)]);
        let verifier = uses(&rights, row("any", &[CKA_VERIFY])).expect("all are named");
        assert!(verifier.bool(CKA_VERIFY) && !verifier.bool(CKA_SIGN));
        assert_eq!(rights.labels(), None);
    }
}
