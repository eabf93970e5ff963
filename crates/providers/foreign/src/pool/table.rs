// SPDX-License-Identifier: Apache-2.0
//! Which objects of which tokens are one object of a pool.

use crate::store::ForeignStore;
use metaslot_ck::attribute::{CKA_FOREIGN_ROW, CKA_METASLOT_HOME};
use metaslot_ck::*;
use metaslot_spi::store::{Found, Scope, Store, Term};
use metaslot_spi::{Attributes, Key, Material, Secrets, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an object is, whatever token it is in: class, type, and what is public of it.
type Identity = (u64, u64, Vec<u8>);

/// An object of one token.
pub(super) struct Seen {
    identity: Identity,
    private: bool,
    attributes: Attributes,
}

/// Whether the user is logged in, as far as the callers know, and how often that has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Login {
    pub(super) user: bool,
    pub(super) epoch: u64,
}

#[derive(Debug)]
pub(super) struct Table {
    /// The pool's name.
    home: &'static str,
    members: usize,
    /// What was looked at in another one is not entered.
    pub(super) login: Login,
    last: u64,
    /// Goes up by two with every change.
    pub(super) generation: Arc<AtomicU64>,
    rows: BTreeMap<u64, Row>,
    by_identity: BTreeMap<Identity, u64>,
}

#[derive(Debug)]
struct Row {
    private: bool,
    version: u64,
    /// As our callers see it.
    attributes: Attributes,
    /// What each token calls it, as a key.
    keys: Vec<Option<Arc<Key>>>,
    /// Whether each token ever had it.
    had: Vec<bool>,
}

impl Table {
    pub(super) fn new(home: &'static str, members: usize) -> Self {
        Self {
            home,
            members,
            login: Login { user: false, epoch: 0 },
            last: 0,
            generation: Arc::new(AtomicU64::new(0)),
            rows: BTreeMap::new(),
            by_identity: BTreeMap::new(),
        }
    }

    /// What a member has now; says whether it had more that others still have.
    pub(super) fn enter(&mut self, at: usize, seen: Vec<Seen>) -> bool {
        let mut now = BTreeMap::new();
        for Seen { identity, private, attributes } in seen {
            let id = *self.by_identity.entry(identity).or_insert_with(|| {
                self.last += 1;
                self.last
            });
            let row = self.rows.entry(id).or_insert_with(|| Row {
                private,
                version: 0,
                attributes: Attributes::new(),
                keys: vec![None; self.members],
                had: vec![false; self.members],
            });
            if row.private == private {
                now.entry(id).or_insert(attributes);
            }
        }
        for (id, row) in &mut self.rows {
            let Some(attributes) = now.remove(id) else {
                row.keys[at] = None;
                continue;
            };
            let shown = shown(*id, self.home, &attributes);
            let first = row.keys[..at].iter().all(Option::is_none);
            if first && row.attributes != shown {
                row.attributes = shown;
                row.version += 1;
                self.generation.fetch_add(2, Ordering::AcqRel);
            }
            let material = Arc::new(Material::new(Secrets::new()));
            row.keys[at] = Some(Arc::new(Key::new(Arc::new(attributes), material)));
            row.had[at] = true;
        }
        self.keep(|row| row.keys.iter().any(Option::is_some));
        self.rows.values().any(|row| row.had[at] && row.keys[at].is_none())
    }

    pub(super) fn forget_private(&mut self) {
        self.keep(|row| !row.private);
    }

    pub(super) fn forget_all(&mut self) {
        self.keep(|_| false);
    }

    fn keep(&mut self, stays: impl Fn(&Row) -> bool) {
        let before = self.rows.len();
        self.rows.retain(|_, row| stays(row));
        self.by_identity.retain(|_, id| self.rows.contains_key(id));
        if self.rows.len() != before {
            self.generation.fetch_add(2, Ordering::AcqRel);
        }
    }

    /// A row's version, privacy and attributes.
    pub(super) fn read(&self, id: u64) -> Option<(u64, bool, &Attributes)> {
        self.rows.get(&id).map(|row| (row.version, row.private, &row.attributes))
    }

    /// What the tokens that have a row call it; never none.
    pub(super) fn keys(&self, id: u64) -> Option<Vec<(usize, Arc<Key>)>> {
        let keys = self.rows.get(&id)?.keys.iter().enumerate();
        let keys: Vec<_> = keys.filter_map(|(at, key)| Some((at, key.clone()?))).collect();
        (!keys.is_empty()).then_some(keys)
    }

    pub(super) fn search(
        &self,
        query: &[Term],
        scope: Scope,
        after: u64,
        limit: usize,
    ) -> Vec<Found> {
        let rows = self.rows.range(after.saturating_add(1)..).filter(|(_, row)| {
            let in_scope = match scope {
                Scope::Both => true,
                Scope::Private => row.private,
                Scope::Public => !row.private,
            };
            in_scope && query.iter().all(|term| has(&row.attributes, term))
        });
        rows.map(|(id, row)| Found { id: *id, private: row.private }).take(limit).collect()
    }
}

fn has(attributes: &Attributes, (attribute, wanted): &Term) -> bool {
    match attributes.get(*attribute) {
        Some(Value::Ulong(number)) => number.to_le_bytes() == wanted[..],
        Some(Value::Bytes(bytes)) => bytes == wanted,
        _ => false,
    }
}

/// Nothing of it is changed here.
fn shown(id: u64, home: &str, attributes: &Attributes) -> Attributes {
    let mut shown = attributes.clone();
    shown.set(CKA_METASLOT_HOME, Value::Bytes(home.as_bytes().to_vec()));
    for attribute in [CKA_MODIFIABLE, CKA_COPYABLE, CKA_DESTROYABLE] {
        shown.set(attribute, Value::Bool(false));
    }
    if shown.get(CKA_FOREIGN_ROW).is_some() {
        shown.set(CKA_FOREIGN_ROW, Value::Ulong(id));
    }
    shown
}

/// The objects of a token that can be known again in another: key pairs and certificates.
pub(super) fn seen(token: &ForeignStore, scope: Scope) -> Result<Vec<Seen>> {
    let mut all = Vec::new();
    for Found { id, private } in token.search(&[], scope, 0, usize::MAX)? {
        if let Some(row) = token.read(id)? {
            all.push((private, Attributes::decode(&row.attributes)?));
        }
    }
    let points: Vec<_> = all.iter().filter_map(|(_, attributes)| point_by_id(attributes)).collect();
    let seen = all.into_iter().filter_map(|(private, attributes)| {
        let identity = identity(&attributes, &points)?;
        Some(Seen { identity, private, attributes })
    });
    Ok(seen.collect())
}

/// A point, and by which `CKA_ID` and curve the private key is found that has it.
type Point = (Vec<u8>, Vec<u8>, Vec<u8>);

fn point_by_id(attributes: &Attributes) -> Option<Point> {
    let part = |attribute| attributes.bytes(attribute).filter(|bytes| !bytes.is_empty());
    let public = attributes.ulong(CKA_CLASS) == Some(CKO_PUBLIC_KEY);
    let point = part(CKA_EC_POINT).filter(|_| public)?;
    Some((part(CKA_ID)?.to_vec(), part(CKA_EC_PARAMS)?.to_vec(), point.to_vec()))
}

fn identity(attributes: &Attributes, points: &[Point]) -> Option<Identity> {
    let class = attributes.ulong(CKA_CLASS)?;
    let part = |attribute| attributes.bytes(attribute).filter(|bytes| !bytes.is_empty());
    if class == CKO_CERTIFICATE {
        return Some((class, attributes.ulong(CKA_CERTIFICATE_TYPE)?, part(CKA_VALUE)?.to_vec()));
    }
    // A key that wants its PIN for each use has no other token to go to.
    let wants = attributes.bool(CKA_ALWAYS_AUTHENTICATE);
    if wants || !matches!(class, CKO_PUBLIC_KEY | CKO_PRIVATE_KEY) {
        return None;
    }
    let known = match part(CKA_MODULUS) {
        Some(modulus) => modulus.to_vec(),
        None => {
            let params = part(CKA_EC_PARAMS)?;
            let by_id = |(id, curve, _): &&Point| Some(&id[..]) == part(CKA_ID) && curve == params;
            let mut found = points.iter().filter(by_id).map(|(_, _, point)| &point[..]);
            let point =
                part(CKA_EC_POINT).or_else(|| found.next().filter(|_| found.next().is_none()))?;
            [params, bare(point)].concat()
        }
    };
    Some((class, attributes.ulong(CKA_KEY_TYPE)?, known))
}

/// A point without the OCTET STRING around it, which some modules leave out. A bare one begins with 4, too,
/// and may go on like a length.
fn bare(point: &[u8]) -> &[u8] {
    match point {
        [4, length, rest @ ..] | [4, 0x81, length, rest @ ..]
            if usize::from(*length) == rest.len() && is_point(rest) =>
        {
            rest
        }
        point => point,
    }
}

/// SEC 1 §2.3.3 has the first byte; RFC 7748 and RFC 8032 have lengths that no bare point of SEC 1 has with
/// two bytes more.
const fn is_point(bytes: &[u8]) -> bool {
    matches!(bytes, [2..=4, ..]) || matches!(bytes.len(), 32 | 56 | 57)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(class: u64, id: u8, point: Option<&[u8]>) -> Attributes {
        let mut key = Attributes::new();
        key.set(CKA_CLASS, Value::Ulong(class));
        key.set(CKA_KEY_TYPE, Value::Ulong(CKK_EC));
        key.set(CKA_ID, Value::Bytes(vec![id]));
        key.set(CKA_EC_PARAMS, Value::Bytes(vec![6, 1, 9]));
        if let Some(point) = point {
            key.set(CKA_EC_POINT, Value::Bytes(point.to_vec()));
        }
        key
    }

    fn seen(attributes: &Attributes, points: &[Point]) -> Option<Seen> {
        let identity = identity(attributes, points)?;
        Some(Seen { identity, private: true, attributes: attributes.clone() })
    }

    #[test]
    fn a_bare_point_that_goes_on_like_a_length_is_one() {
        let mut point = [7; 65];
        point[..2].copy_from_slice(&[4, 63]);
        assert_eq!(bare(&point), point);
        assert_eq!(bare(&[&[4, 65][..], &point].concat()), point);
        let edwards = [30; 32];
        assert_eq!(bare(&edwards), edwards);
        assert_eq!(bare(&[&[4, 32][..], &edwards].concat()), edwards);
    }

    #[test]
    fn private_key_is_known_by_the_point_beside_it() {
        let wrapped = [4, 3, 4, 7, 8];
        let points = [point_by_id(&key(CKO_PUBLIC_KEY, 1, Some(&wrapped))).expect("a point")];
        let with = seen(&key(CKO_PRIVATE_KEY, 9, Some(&wrapped[2..])), &[]).expect("its own point");
        let beside = seen(&key(CKO_PRIVATE_KEY, 1, None), &points).expect("the point of its id");
        assert_eq!(with.identity, beside.identity);
        assert!(seen(&key(CKO_PRIVATE_KEY, 2, None), &points).is_none());
        // Which of two is meant is not known.
        let two = [points[0].clone(), (vec![1], vec![6, 1, 9], vec![4, 3, 4, 1, 2])];
        assert!(seen(&key(CKO_PRIVATE_KEY, 1, None), &two).is_none());
    }

    #[test]
    fn object_stays_while_one_token_has_it_and_does_not_come_back() {
        let here = || seen(&key(CKO_PRIVATE_KEY, 1, Some(&[4, 1])), &[]).into_iter().collect();
        let mut table = Table::new("pool", 2);
        table.enter(0, here());
        table.enter(1, here());
        let found = table.search(&[], Scope::Both, 0, 9);
        assert_eq!(found, [Found { id: 1, private: true }]);
        assert_eq!(table.keys(1).map(|keys| keys.len()), Some(2));
        assert!(table.enter(0, Vec::new()), "the other one has it");
        assert_eq!(table.keys(1).map(|keys| keys.len()), Some(1));
        assert!(!table.enter(1, Vec::new()), "none has it");
        assert!(table.keys(1).is_none() && table.search(&[], Scope::Both, 0, 9).is_empty());
        table.enter(0, here());
        assert_eq!(table.search(&[], Scope::Both, 0, 9), [Found { id: 2, private: true }]);
        table.forget_private();
        assert!(table.read(2).is_none());
    }
}
