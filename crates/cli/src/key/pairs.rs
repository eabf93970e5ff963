// SPDX-License-Identifier: Apache-2.0
//! Which public key belongs to which private one: same home, same type and same `CKA_ID`, or where there is no
//! id the same label.

use super::Key;
use crate::uri::Class;
use std::collections::HashMap;

/// Joins halves; every other key stays as it is. The order of the private and secret keys is kept;
/// public keys without a private one come last.
pub(crate) fn join(keys: Vec<Key>) -> Vec<Key> {
    let (publics, mut rest): (Vec<Key>, Vec<Key>) =
        keys.into_iter().partition(|key| key.part(Class::Public).is_some());
    let mut by_name: HashMap<Name, Vec<usize>> = HashMap::new();
    for (at, public) in publics.iter().enumerate() {
        by_name.entry(Name::of(public)).or_default().push(at);
    }
    let mut publics: Vec<Option<Key>> = publics.into_iter().map(Some).collect();
    for key in &mut rest {
        if key.part(Class::Private).is_none() {
            continue;
        }
        let candidates = by_name.get(&Name::of(key)).map(Vec::as_slice).unwrap_or_default();
        let fits = |at: &&usize| publics[**at].as_ref().is_some_and(|it| belongs(it, key));
        if let Some(public) = candidates.iter().find(fits).and_then(|at| publics[*at].take()) {
            key.usages.join(&public.usages);
            key.parts.extend(public.parts);
        }
    }
    rest.extend(publics.into_iter().flatten());
    rest
}

/// What both halves have in common.
#[derive(Eq, Hash, PartialEq)]
enum Name {
    Id(Vec<u8>),
    Label(String),
}

impl Name {
    fn of(key: &Key) -> Self {
        match key.id.is_empty() {
            true => Self::Label(key.label.clone()),
            false => Self::Id(key.id.clone()),
        }
    }
}

/// A private key whose module does not show its modulus or curve has a type without a size.
fn belongs(public: &Key, private: &Key) -> bool {
    let same_kind = public.kind == private.kind
        || public.kind.family == private.kind.family && private.kind.size == 0;
    same_kind && public.home == private.home
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Part, Usages};
    use metaslot_ck::ObjectHandle;

    fn key(class: Class, kind: &str, id: &[u8], label: &str) -> Key {
        Key {
            parts: vec![Part { class, handle: ObjectHandle(1) }],
            kind: kind.parse().unwrap(),
            label: label.to_owned(),
            id: id.to_vec(),
            usages: Usages::default(),
            sensitive: None,
            extractable: None,
            always_authenticate: false,
            home: None,
        }
    }

    fn parts(keys: &[Key]) -> Vec<Vec<&'static str>> {
        keys.iter().map(Key::part_names).collect()
    }

    #[test]
    fn halves_with_the_same_id_are_one_key() {
        let keys = join(vec![
            key(Class::Public, "ec:p256", &[1], "a"),
            key(Class::Private, "ec:p256", &[2], "b"),
            key(Class::Private, "ec:p256", &[1], "other label"),
        ]);
        assert_eq!(parts(&keys), [vec!["private"], vec!["private", "public"]]);
    }

    #[test]
    fn halves_in_two_tokens_are_two_keys() {
        let public = key(Class::Public, "ec:p256", &[1], "a");
        let home = Some(String::from("hsm"));
        let private = Key { home, ..key(Class::Private, "ec:p256", &[1], "a") };
        assert_eq!(parts(&join(vec![public, private])), [vec!["private"], vec!["public"]]);
    }

    #[test]
    fn without_an_id_the_label_decides() {
        let keys = join(vec![
            key(Class::Private, "ec:p256", &[], "a"),
            key(Class::Public, "ec:p256", &[], "b"),
            key(Class::Public, "ec:p256", &[], "a"),
        ]);
        assert_eq!(parts(&keys), [vec!["private", "public"], vec!["public"]]);
    }

    #[test]
    fn keys_of_different_types_are_never_joined() {
        let keys = join(vec![
            key(Class::Private, "ec:p256", &[1], "a"),
            key(Class::Public, "rsa:2048", &[1], "a"),
            key(Class::Secret, "aes:256", &[1], "a"),
        ]);
        assert_eq!(keys.len(), 3);
    }
}
