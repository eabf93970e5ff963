// SPDX-License-Identifier: Apache-2.0
//! Which public key belongs to which private one: same type and same `CKA_ID`, or where there is no
//! id the same label.

use super::Key;
use crate::uri::Class;

/// Joins halves; every other key stays as it is. The order of the private and secret keys is kept;
/// public keys without a private one come last.
pub(crate) fn join(keys: Vec<Key>) -> Vec<Key> {
    let (mut publics, mut rest): (Vec<Key>, Vec<Key>) =
        keys.into_iter().partition(|key| key.part(Class::Public).is_some());
    for key in &mut rest {
        if key.part(Class::Private).is_none() {
            continue;
        }
        if let Some(at) = publics.iter().position(|public| belong(public, key)) {
            let public = publics.remove(at);
            key.usages.join(&public.usages);
            key.parts.extend(public.parts);
        }
    }
    rest.extend(publics);
    rest
}

fn belong(public: &Key, private: &Key) -> bool {
    // A private key whose module does not show its modulus or curve has a type without a size.
    let same_kind = public.kind == private.kind
        || public.kind.family == private.kind.family && private.kind.size == 0;
    same_kind
        && public.id == private.id
        && (!private.id.is_empty() || public.label == private.label)
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
