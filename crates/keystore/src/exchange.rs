// SPDX-License-Identifier: Apache-2.0
//! Tokens that move between another database and files, both ways: what is moved is what is stored, sealed as it is, and all of it
//! is looked at before it counts. A file is what `backup` makes.

use crate::backup::{Room, connect, mark};
use crate::elsewhere::Pins;
use crate::error::{Error, Result};
use crate::format::{APPLICATION, FORMAT};
use crate::named;
use crate::open::{Config, SqliteStore};
use crate::rows::RowsMut as _;
use crate::schema::{
    CREATE, CREATE_TREE, CREATE_UNVERIFIED, Head, Stored, Token, signed, unsigned,
};
use crate::survey::Table;
use metaslot_spi::store::{Examined, Remark, Role};
use rusqlite::Connection;
use rustix::fs::Mode;
use std::path::{Path, PathBuf};

/// So much is read at a time.
const PAGE: usize = 256;

/// A node of the tree: its number and its entries.
pub type Node = (i64, Vec<u8>);

/// All of a token, of one moment.
pub trait Source: Table {
    /// At most so many nodes of the tree whose numbers are above this one, in their order.
    ///
    /// # Errors
    /// What the database says.
    fn nodes(&self, after: i64, limit: usize) -> Result<Vec<Node>>;
}

/// Where a token is written.
pub trait Sink {
    /// The token's own row, which comes first.
    ///
    /// # Errors
    /// What the database says.
    fn token(&self, token: &Token, head: &Head) -> Result<()>;

    /// An object's row; it goes into the index, too.
    ///
    /// # Errors
    /// What the database says.
    fn row(&self, id: u64, row: &Stored) -> Result<()>;

    /// A node of the tree.
    ///
    /// # Errors
    /// What the database says.
    fn node(&self, node: &Node) -> Result<()>;
}

/// A store that has what is needed to look at a copy.
fn looking(pins: Pins<'_>, path: PathBuf) -> SqliteStore {
    let pepper = pins.pepper.map(Path::to_owned);
    SqliteStore::new(Config { kdf: pins.cost, pepper, ..Config::new(path) })
}

/// A file that a token is written into, and that has no name yet.
#[derive(Debug)]
pub struct Saving {
    room: Room,
    to: PathBuf,
}

impl Saving {
    /// Writes all of a token beside the file `to`, which must not be there.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Full`]; what the database says.
    pub fn of(source: &dyn Source, to: &Path) -> Result<Self> {
        if to.symlink_metadata().is_ok() {
            return Err(Error::file(to, "create", "it is there already"));
        }
        let room = Room::new(to)?;
        drop(room.create("token")?);
        write(source, &room.token()).map_err(|error| error.at(to))?;
        Ok(Self { room, to: to.to_owned() })
    }

    /// Looks at all of it by a PIN, and gives it its name where it is sound.
    ///
    /// # Errors
    /// As [`metaslot_spi::store::Store::examine`].
    pub fn finish(
        self,
        pins: Pins<'_>,
        (role, pin): (Role, &[u8]),
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        let store = looking(pins, self.to.clone());
        let (seen, keys) = self.room.examine(&store, role, pin, remark)?;
        if seen.findings == 0 {
            mark(&self.room.token(), &keys, 0)?;
            self.room.give(&self.to, Mode::RUSR | Mode::WUSR)?;
        }
        Ok(seen)
    }
}

fn write(source: &dyn Source, file: &Path) -> Result<()> {
    let mut connection = connect(file)?;
    let transaction = connection.transaction()?;
    for tables in [CREATE, CREATE_TREE, CREATE_UNVERIFIED] {
        transaction.execute_batch(tables)?;
    }
    let (token, head) = (source.token()?, source.head()?);
    transaction.execute(
        "INSERT INTO token VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        (
            token.serial,
            &token.label,
            head.key_id,
            &token.so.wrap,
            token.so.failures,
            signed(token.so.failed_at),
            &token.user.wrap,
            token.user.failures,
            signed(token.user.failed_at),
            signed(head.next_id),
            &head.state,
        ),
    )?;
    let mut after = 0;
    loop {
        let page = source.page(after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.id;
        for listed in page {
            let row = listed.row?;
            transaction.insert(listed.id, &row)?;
            transaction.list(listed.id, row.terms.as_chunks().0)?;
        }
    }
    let mut after = -1;
    loop {
        let page = source.nodes(after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        page.iter().try_for_each(|(number, entries)| transaction.write_node(*number, entries))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    if token.identities.iter().next().is_some() {
        named::create(&transaction)?;
        token.identities.iter().try_for_each(|identity| named::insert(&transaction, identity))?;
    }
    Ok(transaction.commit()?)
}

/// A file whose token is sound, as a copy that is written elsewhere.
#[derive(Debug)]
pub struct Loading(Room);

impl Loading {
    /// Looks at all of a file by a PIN; nothing is given where it is not sound.
    ///
    /// # Errors
    /// As [`metaslot_spi::store::Store::examine`].
    pub fn of(
        from: &Path,
        pins: Pins<'_>,
        (role, pin): (Role, &[u8]),
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<(Examined, Option<Self>)> {
        let room = Room::new(&std::env::temp_dir().join("token"))?;
        room.take(from)?;
        let store = looking(pins, from.to_owned());
        let examined = room.examine(&store, role, pin, remark);
        let (seen, keys) = examined.map_err(|error| error.of(from))?;
        if seen.findings > 0 {
            return Ok((seen, None));
        }
        mark(&room.token(), &keys, 1).map_err(|error| error.of(from))?;
        Ok((seen, Some(Self(room))))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// What the database says.
    pub fn write(&self, into: &dyn Sink) -> Result<()> {
        let connection = connect(&self.0.token())?;
        let token = Token::read(&connection)?;
        let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
        into.token(&token, &Head::read(&connection)?)?;
        for id in ids(&connection)? {
            let row = Stored::read(&connection, id)?.ok_or(Error::Gone { id })?;
            into.row(id, &row)?;
        }
        let mut statement = connection.prepare("SELECT node, entries FROM tree ORDER BY node")?;
        let mut nodes = statement.query(())?;
        while let Some(node) = nodes.next()? {
            into.node(&(node.get(0)?, node.get(1)?))?;
        }
        Ok(())
    }
}

fn ids(connection: &Connection) -> Result<Vec<u64>> {
    let mut statement = connection.prepare("SELECT id FROM object ORDER BY id")?;
    let ids = statement.query_map((), |row| unsigned(row, 0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
