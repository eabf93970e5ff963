// SPDX-License-Identifier: Apache-2.0
//! Tokens in databases that several machines share.

use crate::ask;
use metaslot_memory::Secret;
use metaslot_postgres::{Address, Config, PostgresStore};
use metaslot_spi::detail;
use metaslot_spi::store::Store;
use metaslot_wiring::config::{self, Reach};
use metaslot_wiring::remote::Remote;
use std::path::Path;
use std::sync::Arc;

/// Opens one. Its password is read here: later it is out of reach.
///
/// # Errors
/// What is wrong with the URL, or why there is no password.
pub fn open(remote: Remote) -> Result<Box<dyn Store>, String> {
    let address = address(&remote.url)?;
    let asked = format!("password of the role in {address}");
    let read = remote.password.map(|source| ask::secret(&source, &asked)).transpose();
    let lacks = |reason: &str| format!("{address}: there is no password of the role: {reason}");
    let password = read.map_err(|_| detail::with(lacks))?;
    let usual = Config::new(address);
    let config = Config {
        password: password.map(|password| -> metaslot_postgres::Password {
            Arc::new(move || Ok(Secret::copy_of(password.expose())))
        }),
        away: remote.away.unwrap_or(usual.away),
        kdf: remote.kdf,
        pepper: remote.pepper,
        shortest_pin: remote.shortest_pin,
        anchor: remote.anchor,
        ..usual
    };
    Ok(Box::new(PostgresStore::new(config)))
}

fn address(url: &str) -> Result<Address, String> {
    url.parse().map_err(|wrong| format!("the URL of a token's store: {wrong}"))
}

/// With what connections to these databases need.
///
/// # Errors
/// What is wrong with a URL.
pub(crate) fn reach(config: &config::Config) -> Result<Reach, String> {
    let mut reach = config.reach();
    for url in config.databases() {
        let address = address(url)?;
        reach.read.extend(address.files().into_iter().map(Path::to_owned));
        reach.ports.extend(address.ports());
    }
    Ok(reach)
}
