// SPDX-License-Identifier: Apache-2.0
//! From nothing to a TLS server whose key is in a token, with a table at the end. Everything is made
//! anew under `target/run`; only processes started here are ended.

mod counted;
mod process;
mod sandbox;
mod table;
mod tls;

use anyhow::Result;

use crate::cargo::{build, command};
use crate::packages::{self, FOR_RUN};
use sandbox::{KEYS, Sandbox};
use table::Table;

/// Runs the demonstration.
pub(crate) fn run() -> Result<()> {
    say("what is needed from Debian");
    packages::install(&[FOR_RUN])?;
    say("building the module, the command and the OpenSSL provider (release)");
    build()?;
    let place = Sandbox::make()?;
    let mut table = Table::default();
    say(&format!("a token in {}", place.path("token.db").display()));
    place.row(&mut table, "make a token (two PINs, Argon2id)", &place.make_token()?)?;
    for key in KEYS {
        say(&format!("a {} key pair in the token", key.shown));
        place.row(&mut table, &format!("generate {}", key.shown), &place.generate(key)?)?;
    }
    place.configure_openssl()?;
    for key in KEYS {
        say(&format!("a certificate signed by the {} key", key.shown));
        let made = tls::certificate(&place, key)?;
        place.row(&mut table, &format!("openssl req -x509, {}", key.shown), &made)?;
    }
    for key in KEYS {
        say(&format!("openssl s_server with the {} key, fetched by curl", key.shown));
        tls::serve(&place, key, &mut table)?;
    }
    for key in KEYS {
        say(&format!("the module's own file signed by the {} key", key.shown));
        let signed = place.sign(key)?;
        place.row(&mut table, &format!("metaslot sign, {}", key.shown), &signed)?;
        place.verify(key)?;
    }
    say("one signature beside the raw library (metaslot lab speed)");
    place.compare(&mut table)?;
    println!("\n{table}");
    println!("token, certificates, signatures and logs: {}", place.home.display());
    let (configuration, command) = (place.path("metaslot.toml"), command());
    println!(
        "look at it: METASLOT_CONF={} {} key list",
        configuration.display(),
        command.display()
    );
    Ok(())
}

fn say(what: &str) {
    println!("==> {what}");
}
