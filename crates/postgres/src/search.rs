// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries, without opening any.

use crate::levels::{Asked, Levels};
use crate::link::{Open, lock};
use crate::open::Result;
use crate::rows::{OBJECT, Picture, signed};
use metaslot_counters as counters;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{Keys, Reading, Stored, values};
use metaslot_spi::store::{Found, Scope, Term};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio_postgres::types::ToSql;

/// So many rows are asked for first, as nearly all searches find fewer: each brings all that shows it, also what it has in common
/// with others. To leave that out takes longer than to send it a few times. Where there may be more, all are asked for at once.
const FEW: usize = 16;

/// What is searched for, as the index has it: of open rows and of private ones.
#[derive(Debug)]
pub(crate) struct Wanted {
    scope: Scope,
    terms: usize,
    open: Vec<[u8; 16]>,
    private: Vec<[u8; 16]>,
    /// Whether there are keys, by which what is found can be compared with what was asked for, and anything was.
    is_shown: bool,
}

impl Wanted {
    /// Private rows are named with `keys`.
    pub(crate) fn new(keys: Option<&Keys>, query: &[Term], scope: Scope) -> Result<Self> {
        let (mut open, mut private) = (Vec::new(), Vec::new());
        if scope != Scope::Private {
            open = values(None, query)?;
        }
        if scope != Scope::Public {
            private = values(keys, query)?;
        }
        let is_shown = keys.is_some() && !query.is_empty();
        Ok(Self { scope, terms: query.len(), open, private, is_shown })
    }

    /// How many rows to ask for first, where there may be so many.
    pub(crate) fn first(&self, limit: usize) -> usize {
        if self.is_shown { limit.min(FEW) } else { limit }
    }

    /// The levels to ask for first, where any are.
    pub(crate) fn levels(&self, levels: &Levels, generation: Option<u64>) -> Asked {
        if self.is_shown { levels.usual(generation) } else { levels.whole() }
    }
}

/// Rows above `after`, ascending, at most `limit`. With keys comes what shows that they have what was asked for, where anything was
/// and is found: as far as `levels` have it.
pub(crate) fn search(
    open: &Open<'_>,
    wanted: &Wanted,
    (after, limit): (u64, usize),
    levels: Asked,
) -> Result<(Vec<Found>, Option<Picture>)> {
    let (name, above) = (open.name(), signed(after));
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let named = wanted.open.iter().chain(&wanted.private);
    let named = Vec::from_iter(named.map(<[u8; 16]>::as_slice));
    let mut with: Vec<&(dyn ToSql + Sync)> = vec![&name, &above, &most];
    with.extend(named.iter().map(|value| value as &(dyn ToSql + Sync)));
    let way = wanted.is_shown.then_some(Way { tree: levels, is_few: limit <= FEW });
    let mut rows = open.read(&text(wanted.terms, wanted.scope, way), &with)?;
    // Few come in whatever order.
    rows.sort_by_key(|row| row.try_get::<_, i64>(0).ok());
    if rows.len() > limit {
        return Err(Error::not_token("a search finds more than was asked for"));
    }
    let mut found: Vec<Found> = Vec::with_capacity(rows.len());
    for row in &rows {
        let wrong = |_| Error::not_token("a search finds what is no object");
        let id: i64 = row.try_get(0).map_err(wrong)?;
        let id =
            u64::try_from(id).map_err(|_| Error::not_token("an object has a negative number"))?;
        if found.last().map_or(after, |last| last.id) >= id {
            return Err(Error::not_token("a search goes in circles"));
        }
        let private = row.try_get(1).map_err(wrong)?;
        // There is no value of the index that it could be compared by.
        if matches!((wanted.scope, private), (Scope::Public, true) | (Scope::Private, false)) {
            return Err(Error::not_token("a search finds an object of another kind"));
        }
        found.push(Found { id, private });
    }
    let picture = way.filter(|_| !rows.is_empty()).map(|way| match way.is_few {
        true => Picture::of_each(&rows, 2, &found, levels.levels),
        false => Picture::of(&rows, 2),
    });
    Ok((found, picture.transpose()?))
}

/// Refuses a row that has not all that a search asked for: who has the database's tables may have moved entries of the index. Gives the
/// row; none where it is damaged, or not the one that was written last, and the others are found.
pub(crate) fn check(
    reading: &mut Reading<'_>,
    wanted: &Wanted,
    found: Found,
) -> Result<Option<Stored>> {
    let wrong = || Error::damaged(found.id, "a search finds it by what it does not have");
    let row = match reading.row(found.id) {
        Err(Error::Damaged { .. }) => {
            counters::event(counters::Event::DamagedRow);
            return Ok(None);
        }
        row => row?.ok_or_else(wrong)?,
    };
    let asked = if found.private { &wanted.private } else { &wanted.open };
    let has: &[[u8; 16]] = row.terms.as_chunks().0;
    match row.private == found.private && asked.iter().all(|value| has.contains(value)) {
        true => Ok(Some(row)),
        false => Err(wrong()),
    }
}

/// How what is found is shown: the levels of the tree, and whether it is for few rows.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Way {
    tree: Asked,
    is_few: bool,
}

/// The statement for so many terms, with what shows what is found. Those of nearly all searches are written once.
fn text(terms: usize, scope: Scope, way: Option<Way>) -> Arc<str> {
    type Key = (usize, u8, Option<Way>);
    static TEXTS: Mutex<BTreeMap<Key, Arc<str>>> = Mutex::new(BTreeMap::new());
    let asked = (terms, scope as u8, way);
    if let Some(text) = lock(&TEXTS).get(&asked) {
        return Arc::clone(text);
    }
    let search = statement(terms, scope);
    let text: Arc<str> = way.map_or_else(|| plain(&search), |way| shown(&search, way)).into();
    if terms < 4 {
        lock(&TEXTS).insert(asked, Arc::clone(&text));
    }
    text
}

/// The search alone, of the token `t`.
fn plain(search: &str) -> String {
    format!("SELECT f.* FROM metaslot.token t, LATERAL({search}) f WHERE t.name = $1 ORDER BY 1")
}

/// The search with the rows that it finds, and what shows that they are the token's: its head, and the nodes of the tree that
/// [`metaslot_keystore::elsewhere::path`] numbers. Each row of few has both; of many the first has the head, and each node is in
/// the first row that it leads to. Written so that rows are taken by their keys whatever the planner thinks of their count.
fn shown(search: &str, Way { tree, is_few }: Way) -> String {
    let of_levels = |of: &dyn Fn(u8) -> String| Vec::from_iter((0..tree.levels).map(of));
    let is_first = |level| {
        let bits = 6 * (level + 1);
        format!("AND (f.before >> {bits} = f.id >> {bits}) IS NOT TRUE")
    };
    let nodes = of_levels(&|level| {
        let number = number(level, tree.height);
        let is_first = if is_few { String::new() } else { is_first(level) };
        format!(
            "LEFT JOIN LATERAL(SELECT n.node, n.entries FROM metaslot.tree n
               WHERE n.token = t.id AND n.node = {number} {is_first} LIMIT 1) n{level} ON true"
        )
    });
    let entries = of_levels(&|level| format!("n{level}.entries"));
    let numbers = of_levels(&|level| format!("n{level}.node")).join(", ");
    let (columns, found, order) = match is_few {
        true => {
            let head = ["t.key_id", "t.next_id", "t.row_set"].map(String::from);
            let columns = Vec::from_iter(head.into_iter().chain(entries)).join(", ");
            (columns, format!("({search}) f(id, private)"), "")
        }
        false => {
            let head = ["key_id", "next_id", "row_set"];
            let head = head.map(|column| format!("CASE WHEN f.before IS NULL THEN t.{column} END"));
            let (head, entries) = (head.join(", "), entries.join(", "));
            let columns =
                format!("{head}, ARRAY[{numbers}]::bigint[], ARRAY[{entries}]::bytea[], o.id");
            let before = "SELECT s.*, lag(s.id) OVER(ORDER BY s.id) AS before";
            (columns, format!("({before} FROM ({search}) s(id, private)) f"), "ORDER BY f.id")
        }
    };
    format!(
        "SELECT f.id, f.private, {columns}, {OBJECT}
           FROM metaslot.token t
                CROSS JOIN LATERAL {found}
                LEFT JOIN LATERAL(SELECT * FROM metaslot.object o
                  WHERE o.token = t.id AND o.id = f.id LIMIT 1) o ON true
                {}
          WHERE t.name = $1 {order}",
        nodes.join(" ")
    )
}

/// The number of the node of a level that leads to `f.id`, in a tree of this height.
fn number(level: u8, height: u8) -> String {
    let (own, times, before) = steps(level, height);
    let before: String = before.map(|bits| format!(" + (f.id >> {bits})")).collect();
    format!("((f.id >> {own}) + 1) * {times}{before} - 1")
}

/// How it is computed: the bits of a row's number that are not of the node's own, how many nodes are at or below each of its level,
/// and the same bits for the nodes above that are complete before it.
fn steps(level: u8, height: u8) -> (u8, u64, impl Iterator<Item = u8>) {
    let bits = |level| 6 * (level + 1);
    let times = (0..=u32::from(level)).map(|below| 64_u64.pow(below)).sum();
    (bits(level), times, (level + 1..height).map(bits))
}

/// What finds rows of the token `t` by so many terms: parameters 1 to 3 are the token's name, where to begin and how many, then come the values,
/// the public ones first.
fn statement(terms: usize, scope: Scope) -> String {
    let parts = match scope {
        Scope::Public => vec![part(terms, 0, Some(false))],
        Scope::Private => vec![part(terms, 0, Some(true))],
        Scope::Both if terms == 0 => vec![part(0, 0, None)],
        Scope::Both => vec![part(terms, 0, Some(false)), part(terms, terms, Some(true))],
    };
    // Each is in the order of its index, and read no further than it has to be.
    let parts = parts.iter().map(|part| format!("{part} ORDER BY 1 LIMIT $3"));
    match &*Vec::from_iter(parts) {
        [public, private] => format!("({public}) UNION ALL ({private}) ORDER BY 1 LIMIT $3"),
        parts => parts.concat(),
    }
}

/// The rows of one kind, or of both; `before` values belong to the other.
fn part(terms: usize, before: usize, private: Option<bool>) -> String {
    if terms == 0 {
        let kind = private.map_or_else(String::new, |kind| format!(" AND private = {kind}"));
        return format!(
            "SELECT id, private FROM metaslot.object WHERE token = t.id AND id > $2{kind}"
        );
    }
    let first = before + 4;
    let others = (first + 1..first + terms).map(|at| {
        format!(
            " AND EXISTS(SELECT 1 FROM metaslot.lookup b
                          WHERE b.token = a.token AND b.value = ${at} AND b.object = a.object)"
        )
    });
    format!(
        "SELECT a.object, {} FROM metaslot.lookup a
           WHERE a.token = t.id AND a.value = ${first} AND a.object > $2{}",
        private == Some(true),
        others.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_keystore::elsewhere::path;

    #[test]
    fn nodes_have_the_numbers_of_the_tree() {
        for height in 1..=10 {
            let most = 64_u64.saturating_pow(u32::from(height) + 1).min(i64::MAX.unsigned_abs());
            for id in [0, 1, 63, 64, most / 65, most / 64, most / 2, most - 1] {
                let numbers = (0..height).map(|level| {
                    let (own, times, before) = steps(level, height);
                    ((id >> own) + 1) * times + before.map(|bits| id >> bits).sum::<u64>() - 1
                });
                let expected = path(id).into_iter().map(i64::cast_unsigned);
                assert!(numbers.eq(expected.take(usize::from(height))), "{id} in {height}");
            }
        }
    }
}
