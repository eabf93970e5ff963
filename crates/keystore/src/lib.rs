// SPDX-License-Identifier: Apache-2.0
//! The encrypted token on disk: rows sealed, indexed and authenticated in a SQLite database.
//!
//! Nothing here knows what an attribute means; the engine hands over encoded rows and the terms
//! under which they shall be found. `docs/format-keystore.md` describes the file.
#![forbid(unsafe_code)]

mod anchor;
mod apply;
mod backup;
mod commit;
mod crypto;
mod descriptors;
pub mod elsewhere;
mod error;
mod exchange;
mod fast;
mod files;
pub mod fork;
mod format;
mod gate;
mod generation;
mod identity;
mod kdf;
mod label;
mod limit;
mod lock;
mod log;
mod named;
mod open;
mod pepper;
mod pin;
mod rows;
mod schema;
mod search;
mod state;
mod store;
mod survey;
mod tree;
mod uncounted;
mod unmoved;
mod v1;
mod verify;
mod volatile;
mod wrap;

pub use error::Error;
pub use fast::fast_login_place;
pub use kdf::{Cost, Kdf};
pub use open::{Config, SqliteStore, Statistics};
pub use verify::Report;
