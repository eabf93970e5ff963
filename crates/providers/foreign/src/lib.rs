// SPDX-License-Identifier: Apache-2.0
//! Tokens of other PKCS#11 modules.
//!
//! [`open`] loads and initialises a module and gives its tokens as stores, each with the
//! [`Home`](metaslot_spi::home::Home) that uses its keys. A key never leaves its token: what is done with it is done by its module, in a
//! session of a pool. Nothing here knows which of our sessions wants it.
#![forbid(unsafe_code)]

mod cipher;
mod error;
mod home;
mod module;
mod objects;
mod params;
mod rows;
mod signature;
mod store;
mod token;
mod value;

pub use store::ForeignStore;

use std::path::PathBuf;

/// Runs what it is given: where a thread must not be cancelled, say. Every call of a module goes
/// through it.
pub type Around = fn(&mut dyn FnMut());

/// Most modules in one process: each is known for as long as the process lives.
pub const MAX_MODULES: usize = module::MAX;

/// One module.
#[derive(Clone, Debug)]
pub struct Config {
    /// Short and lower case: its name in counters and explanations.
    pub name: String,
    /// The library's file.
    pub module: PathBuf,
    /// A file with the user's PIN, for logins without one.
    pub pin_source: Option<PathBuf>,
    /// What `C_Initialize` is given in `pReserved` (NSS).
    pub parameters: Option<String>,
}

/// The tokens that the module has at this moment, in its order.
///
/// # Errors
/// Why there are none, in a sentence.
pub fn open(config: &Config, around: Around) -> Result<Vec<ForeignStore>, String> {
    let mut tokens = Err(String::from("was not asked"));
    around(&mut || tokens = module::open(config, around));
    tokens
}
