// SPDX-License-Identifier: Apache-2.0
//! Tokens of other PKCS#11 modules.
//!
//! [`open`] loads and initialises a module and gives its tokens as stores, each with the
//! [`Home`](metaslot_spi::store::Home) that uses its keys. A key never leaves its token: what is done with it is done by its module, in a
//! session of a pool. Nothing here knows which of our sessions wants it. Where the configuration says so, a module is also
//! a provider for every caller, of what needs no key.
#![forbid(unsafe_code)]

mod cipher;
mod config;
mod derivation;
mod error;
mod hashed;
mod home;
mod isolated;
mod keyless;
mod loaded;
mod mechanism;
mod objects;
mod open;
mod params;
mod pin;
mod pool;
mod read;
mod rows;
mod signature;
mod store;
mod token;
mod transport;
mod value;
mod view;

pub use config::{Around, Config, Serves};
pub use isolated::Isolation;
pub use open::Opened;
pub use pin::read as pin_of_file;
pub use pool::PoolStore;
pub use store::ForeignStore;
pub use view::{Curtain, Guest, View};

/// Most modules in one process: each is known for as long as the process lives.
pub const MAX_MODULES: usize = loaded::MAX;

/// Loads and initialises a module.
pub fn open(config: &Config, around: Around) -> Opened {
    let mut opened = (Vec::new(), Some(String::from("was not asked")));
    around(&mut || opened = open::open(config, around));
    opened
}
