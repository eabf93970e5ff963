// SPDX-License-Identifier: Apache-2.0
//! The encrypted token in a PostgreSQL database that many machines share: rows sealed, indexed and authenticated as in a SQLite
//! database, so that who has the database learns no more than who has such a file. `docs/postgresql.md` says how it is set up.
//!
//! It has a thread of its own, and connections: it is for `metaslotd` and the command, never for the library in a program.
#![forbid(unsafe_code)]

mod address;
mod cache;
mod levels;
mod link;
mod named;
mod open;
mod pin;
mod rows;
mod schema;
mod search;
mod store;
mod table;
mod tls;

pub use address::Address;
pub use link::{Password, restart};
pub use open::{Config, PostgresStore};
pub use schema::ROLES;
pub use tls::certificates;
