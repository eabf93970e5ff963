// SPDX-License-Identifier: Apache-2.0
//! The provider of ciphers of old, and of some countries: block ciphers that AWS-LC does not have, over modes that are here once.
//!
//! `uses` is the table: a row says which cipher a mechanism is in which mode. `ciphers` says how each is keyed. They look up tables by
//! what is secret, and take another time for another key: who can measure this process closely, or its caches, learns of the keys.
//! They are here to open what exists.
#![forbid(unsafe_code)]

mod blocks;
mod ciphers;
mod derive;
mod generate;
mod mac;
mod mechanism;
mod modes;
mod rc5;
mod salsa20;
mod seed;
mod uses;

use metaslot_spi::provider::{Algorithm, Provider};

/// The provider.
pub static CLASSICS: Classics = Classics;

/// Old and national ciphers as a provider; it has no state.
#[derive(Clone, Copy, Debug)]
pub struct Classics;

impl Provider for Classics {
    fn name(&self) -> &'static str {
        "classics"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &uses::ALGORITHMS
    }
}
