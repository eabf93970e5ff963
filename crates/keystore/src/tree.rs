// SPDX-License-Identifier: Apache-2.0
//! The tree of hashes over the authenticated rows: which rows there are, and which version of each.
//!
//! A leaf has a place for each of 64 successive ids, with the beginning of the row's tag; a node
//! above has a place for each of 64 nodes, with their hashes. What is empty is not stored. The
//! topmost node, the root, stands in the token's own row, which is authenticated as a whole.
//! A row is believed when the path from its leaf to the root is as it was last written: a read costs
//! one short hash for each level, a change one more.

use crate::crypto::Keys;
use crate::error::{Error, Result};
use crate::rows::{LONGEST_NODE, Rows, RowsMut};
use std::collections::BTreeMap;

/// Length of an entry, in bytes.
const ENTRY: usize = 16;
/// Entries of a node.
const ENTRIES: usize = LONGEST_NODE / ENTRY;
const FAN: u64 = ENTRIES as u64;
/// Ids are below 2⁶³: the root is never higher.
pub(crate) const HIGHEST: u8 = 10;

/// A row's, or a node's, short name.
pub(crate) type Entry = [u8; ENTRY];
/// No row, no node.
const NONE: Entry = [0; ENTRY];

/// The entry of a row with this tag.
pub(crate) fn entry(tag: &[u8]) -> Result<Entry> {
    Ok(*tag.first_chunk().ok_or(Error::Cryptography)?)
}

/// A node's entries, without empty ones at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Node(Vec<u8>);

impl Node {
    /// `None` when no node is written so.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let fits = bytes.len() <= LONGEST_NODE && bytes.len().is_multiple_of(ENTRY);
        (fits && !bytes.ends_with(&NONE)).then(|| Self(bytes.to_vec()))
    }

    pub(crate) fn encode(&self) -> &[u8] {
        &self.0
    }

    fn get(&self, at: usize) -> Entry {
        self.0.as_chunks().0.get(at).copied().unwrap_or(NONE)
    }

    fn set(&mut self, at: usize, entry: Entry) {
        let needed = (at + 1) * ENTRY;
        if self.0.len() < needed {
            self.0.resize(needed, 0);
        }
        self.0[needed - ENTRY..needed].copy_from_slice(&entry);
        while self.0.ends_with(&NONE) {
            self.0.truncate(self.0.len() - ENTRY);
        }
    }
}

/// Which node: 0 is the level of leaves.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct NodePlace {
    level: u8,
    number: u64,
}

impl NodePlace {
    const fn above(self) -> Self {
        Self { level: self.level + 1, number: self.number / FAN }
    }

    /// Where the node above has this one.
    const fn at(self) -> usize {
        (self.number % FAN) as usize
    }

    /// The number of nodes before this one where each comes right after those below it: the path of
    /// the newest row is then nearly always in one page of the table.
    fn key(self) -> i64 {
        let mut before = 0_u64;
        let mut of_level = self.number + 1;
        for _ in 0..=self.level {
            before = before.saturating_add(of_level);
            of_level = of_level.saturating_mul(FAN);
        }
        let mut complete = self.number / FAN;
        while complete > 0 {
            before = before.saturating_add(complete);
            complete /= FAN;
        }
        crate::schema::signed(before - 1)
    }
}

/// The numbers of the nodes that lead to a row, however high the tree is.
pub(crate) fn path(id: u64) -> Vec<i64> {
    let leaf = NodePlace { level: 0, number: id / FAN };
    let mut path = Vec::with_capacity(usize::from(HIGHEST));
    let mut place = leaf;
    while place.level < HIGHEST {
        path.push(place.key());
        place = place.above();
    }
    path
}

/// The tree within one transaction, or one snapshot. Every node was compared with the one above it
/// when it was read, up to the root.
#[derive(Debug)]
pub(crate) struct Tree {
    height: u8,
    root: Node,
    nodes: BTreeMap<NodePlace, (Node, Changed)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Changed(bool);

impl Tree {
    /// The tree under an authenticated root, so many levels above the leaves.
    pub(crate) const fn new(height: u8, root: Node) -> Self {
        Self { height, root, nodes: BTreeMap::new() }
    }

    /// The tree of no rows.
    pub(crate) fn empty() -> Self {
        Self::new(0, Node::default())
    }

    pub(crate) const fn height(&self) -> u8 {
        self.height
    }

    pub(crate) const fn root(&self) -> &Node {
        &self.root
    }

    /// How many nodes it has in memory, besides the root.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The entry of row `id`; `None` where there is no authenticated row.
    pub(crate) fn get(
        &mut self,
        connection: &dyn Rows,
        keys: &Keys,
        id: u64,
    ) -> Result<Option<Entry>> {
        if !self.reaches(id) {
            return Ok(None);
        }
        let leaf = NodePlace { level: 0, number: id / FAN };
        let entry = self.node(connection, keys, leaf)?.get((id % FAN) as usize);
        Ok((entry != NONE).then_some(entry))
    }

    /// The same, where no node has to be read for it.
    pub(crate) fn remembered(&self, id: u64) -> Option<Option<Entry>> {
        if !self.reaches(id) {
            return Some(None);
        }
        let leaf = match self.height {
            0 => &self.root,
            _ => &self.nodes.get(&NodePlace { level: 0, number: id / FAN })?.0,
        };
        let entry = leaf.get((id % FAN) as usize);
        Some((entry != NONE).then_some(entry))
    }

    /// How many levels, from the lowest on, have nodes on the way to `id` that are not in memory.
    pub(crate) fn unread(&self, id: u64) -> u8 {
        if !self.reaches(id) {
            return 0;
        }
        let mut place = NodePlace { level: 0, number: id / FAN };
        while place.level < self.height && !self.nodes.contains_key(&place) {
            place = place.above();
        }
        place.level
    }

    /// Another entry for row `id`, or none. Gives what was there.
    pub(crate) fn set(
        &mut self,
        connection: &dyn Rows,
        keys: &Keys,
        id: u64,
        entry: Option<Entry>,
    ) -> Result<Option<Entry>> {
        while !self.reaches(id) {
            self.grow(keys)?;
        }
        let leaf = NodePlace { level: 0, number: id / FAN };
        let node = self.node(connection, keys, leaf)?;
        let at = (id % FAN) as usize;
        let old = node.get(at);
        node.set(at, entry.unwrap_or(NONE));
        self.touch(leaf);
        Ok((old != NONE).then_some(old))
    }

    /// Writes what has changed, from the leaves upwards.
    pub(crate) fn finish(&mut self, connection: &dyn RowsMut, keys: &Keys) -> Result<()> {
        for level in 0..self.height {
            let changed: Vec<(NodePlace, Node)> = self
                .nodes
                .iter()
                .filter(|(place, (_, changed))| place.level == level && changed.0)
                .map(|(place, (node, _))| (*place, node.clone()))
                .collect();
            for (place, node) in changed {
                connection.write_node(place.key(), &node.0)?;
                let hash = hash(keys, place, &node)?;
                self.node(connection, keys, place.above())?.set(place.at(), hash);
                self.touch(place.above());
            }
        }
        for (_, changed) in self.nodes.values_mut() {
            *changed = Changed(false);
        }
        Ok(())
    }

    /// Whether `id` is below the root.
    fn reaches(&self, id: u64) -> bool {
        (0..=self.height).fold(id, |rest, _| rest / FAN) == 0
    }

    /// One level more: the root becomes the first node under a new one.
    fn grow(&mut self, keys: &Keys) -> Result<()> {
        let place = NodePlace { level: self.height, number: 0 };
        let old = std::mem::take(&mut self.root);
        self.root.set(0, hash(keys, place, &old)?);
        self.nodes.insert(place, (old, Changed(true)));
        self.height += 1;
        Ok(())
    }

    fn touch(&mut self, place: NodePlace) {
        if let Some((_, changed)) = self.nodes.get_mut(&place) {
            *changed = Changed(true);
        }
    }

    /// A node that is known to be right.
    fn node(&mut self, connection: &dyn Rows, keys: &Keys, place: NodePlace) -> Result<&mut Node> {
        if place.level == self.height {
            return Ok(&mut self.root);
        }
        if !self.nodes.contains_key(&place) {
            let expected = self.node(connection, keys, place.above())?.get(place.at());
            let node = read(connection, keys, place, expected)?;
            self.nodes.insert(place, (node, Changed(false)));
        }
        self.nodes.get_mut(&place).map(|(node, _)| node).ok_or(Error::Cryptography)
    }

    /// Forgets the nodes that are not on the way to the ids above `id`: for anyone who goes through all
    /// rows in order.
    pub(crate) fn forget_below(&mut self, id: u64) {
        self.nodes.retain(|place, _| {
            let last = (0..=place.level).fold(place.number + 1, |end, _| end.saturating_mul(FAN));
            last > id
        });
    }

    /// Forgets the nodes of this level, which are written, and of those below it.
    pub(crate) fn forget_level(&mut self, level: u8) {
        self.nodes = self.nodes.split_off(&NodePlace { level: level + 1, number: 0 });
    }

    /// Goes through the rows that should be there, in the order of their ids. Where a node is
    /// damaged, `row` gets the ids below it, from and to, instead of an entry.
    pub(crate) fn visit(
        &self,
        connection: &dyn Rows,
        keys: &Keys,
        row: &mut dyn FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        descend(connection, keys, NodePlace { level: self.height, number: 0 }, &self.root, row)
    }
}

/// What [`Tree::visit`] finds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// A row with this id.
    Row(u64, Entry),
    /// It is not known which rows there should be between these ids.
    Damage(u64, u64),
}

fn descend(
    connection: &dyn Rows,
    keys: &Keys,
    place: NodePlace,
    node: &Node,
    row: &mut dyn FnMut(Found) -> Result<()>,
) -> Result<()> {
    let entries = node.0.as_chunks().0.iter().zip(place.number * FAN..);
    for (entry, number) in entries.filter(|(entry, _)| **entry != NONE) {
        let Some(level) = place.level.checked_sub(1) else {
            row(Found::Row(number, *entry))?;
            continue;
        };
        let below = NodePlace { level, number };
        match read(connection, keys, below, *entry) {
            Ok(node) => descend(connection, keys, below, &node, row)?,
            Err(Error::Tampered { .. }) => {
                let from = |number| (0..=level).fold(number, |id: u64, _| id.saturating_mul(FAN));
                row(Found::Damage(from(number), from(number + 1) - 1))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read(connection: &dyn Rows, keys: &Keys, place: NodePlace, expected: Entry) -> Result<Node> {
    if expected == NONE {
        return Ok(Node::default());
    }
    let stored = connection.node(place.key())?.as_deref().and_then(Node::decode);
    match stored {
        Some(node) if hash(keys, place, &node)? == expected => Ok(node),
        _ => Err(Error::tampered("its tree of hashes was changed or is damaged")),
    }
}

/// What the node above has of a node.
fn hash(keys: &Keys, place: NodePlace, node: &Node) -> Result<Entry> {
    match node.0.is_empty() {
        true => Ok(NONE),
        false => keys.node(place.level, place.number, &node.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{self, Known, State};
    use metaslot_memory::Secret;
    use metaslot_spi::store::Role;
    use rusqlite::Connection;

    fn place() -> (Connection, Keys) {
        let connection = Connection::open_in_memory().expect("it opens");
        connection.execute_batch(crate::schema::CREATE_TREE).expect("it is made");
        let keys = Keys::new(Secret::copy_of(&[7; 32]), [1; 8], Role::User).expect("they are made");
        (connection, keys)
    }

    #[test]
    fn nodes_are_numbered_after_those_below_them() {
        let key = |level, number| NodePlace { level, number }.key();
        assert_eq!((key(0, 0), key(0, 63), key(1, 0), key(0, 64)), (0, 63, 64, 65));
        assert_eq!((key(0, 4095), key(1, 63), key(2, 0), key(0, 4096)), (4158, 4159, 4160, 4161));
    }

    #[test]
    fn nodes_that_lead_to_more_rows_are_remembered_where_there_are_too_many() {
        let (connection, keys) = place();
        let (mut tree, memory) = (Tree::empty(), state::Memory::default());
        let ids = || (0..300).map(|leaf| leaf * FAN);
        for id in ids() {
            tree.set(&connection, &keys, id, Some([1; ENTRY])).expect("it is set");
        }
        tree.finish(&connection, &keys).expect("it is written");
        let mut state = State::new(0, "", &[]);
        state.plant(&tree);
        let sealed = state.seal(&keys).expect("it is sealed");
        let read = |id| {
            let mut known = Known::recall(&memory, &keys, &sealed).expect("it is the state");
            let found = known.tree.get(&connection, &keys, id);
            known.keep(&memory);
            found
        };
        ids().for_each(|id| assert!(read(id).expect("it is read").is_some()));
        for number in 0..5 {
            let above = NodePlace { level: 1, number }.key();
            connection.execute("DELETE FROM tree WHERE node = ?1", [above]).expect("it goes");
        }
        ids().for_each(|id| assert!(read(id).expect("its leaf is read alone").is_some()));
    }

    #[test]
    fn what_was_set_is_found_from_the_root_alone() {
        let (connection, keys) = place();
        let mut tree = Tree::empty();
        let ids = [1, 63, 64, 4095, 4096, 300_000, 1 << 40];
        for id in ids {
            let entry = Some([u8::try_from(id % 251 + 1).expect("it is small"); ENTRY]);
            assert_eq!(tree.set(&connection, &keys, id, entry).expect("it is set"), None);
            tree.finish(&connection, &keys).expect("it is written");
        }
        for id in ids {
            let mut tree = Tree::new(tree.height(), tree.root().clone());
            let found = tree.get(&connection, &keys, id).expect("it is read");
            assert_eq!(found.map(|entry| u64::from(entry[0])), Some(id % 251 + 1));
            assert_eq!(tree.get(&connection, &keys, 2 * id + 5).expect("it is read"), None);
        }
        for id in ids {
            tree.set(&connection, &keys, id, None).expect("it is set");
        }
        tree.finish(&connection, &keys).expect("it is written");
        assert_eq!(tree.root(), &Node::default());
        let left: i64 = connection
            .query_row("SELECT count(*) FROM tree", (), |row| row.get(0))
            .expect("it counts");
        assert_eq!(left, 0);
    }

    #[test]
    fn what_is_in_memory_and_what_is_above_it_need_not_be_read() {
        let (connection, keys) = place();
        let mut written = Tree::empty();
        let ids = [1, 4096, 300_000];
        for id in ids {
            written.set(&connection, &keys, id, Some([1; ENTRY])).expect("it is set");
        }
        written.finish(&connection, &keys).expect("it is written");
        let mut tree = Tree::new(written.height(), written.root().clone());
        assert_eq!(ids.map(|id| tree.unread(id)), [3; 3]);
        tree.get(&connection, &keys, 1).expect("it is read");
        assert_eq!([1, 63, 64, 4096, 300_000].map(|id| tree.unread(id)), [0, 0, 1, 2, 3]);
        // No row can be there.
        assert_eq!(tree.unread(1 << 40), 0);
        tree.forget_level(0);
        assert_eq!(tree.unread(1), 1);
        connection.execute_batch("DELETE FROM tree WHERE node > 0").expect("they go");
        assert!(tree.get(&connection, &keys, 1).expect("its leaf is read alone").is_some());
    }

    #[test]
    fn an_old_node_is_refused() {
        let (connection, keys) = place();
        let mut tree = Tree::empty();
        tree.set(&connection, &keys, 70, Some([1; ENTRY])).expect("it is set");
        tree.finish(&connection, &keys).expect("it is written");
        connection.execute_batch("CREATE TABLE old AS SELECT * FROM tree").expect("it is copied");
        tree.set(&connection, &keys, 70, Some([2; ENTRY])).expect("it is set");
        tree.finish(&connection, &keys).expect("it is written");
        connection
            .execute_batch("DELETE FROM tree; INSERT INTO tree SELECT * FROM old")
            .expect("so");
        let mut tree = Tree::new(tree.height(), tree.root().clone());
        assert!(matches!(tree.get(&connection, &keys, 70), Err(Error::Tampered { .. })));
    }
}
