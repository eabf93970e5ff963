// SPDX-License-Identifier: Apache-2.0
//! The names that the original commands give to mechanisms.

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{self, Report};
use crate::uri::Uri;
use metaslot_ck::*;
use metaslot_client::Module;
use serde_json::json;

/// The options that all these commands begin with.
#[derive(clap::Args, Debug)]
pub(crate) struct Choice {
    /// List the algorithms
    #[arg(short = 'l', required_unless_present = "algorithm", conflicts_with = "algorithm")]
    list: bool,
    /// The algorithm
    #[arg(short = 'a', value_name = "ALGORITHM")]
    algorithm: Option<String>,
}

impl Choice {
    /// The algorithm; nothing when it was to list them, which is done then.
    pub(crate) fn made(
        &self,
        app: &App,
        table: &'static [Algorithm],
        command: &str,
    ) -> Result<Option<&'static Algorithm>> {
        let Some(name) = &self.algorithm else {
            let module = app.host(&Uri::default())?.module();
            let slot = module.slots(true)?.into_iter().next();
            let slot = slot.ok_or_else(|| Failure::not_found("the module has no slot"))?;
            list(app, table, module, slot)?;
            return Ok(None);
        };
        find(table, name, command).map(Some)
    }
}

/// One row: the name, and what it is in PKCS#11.
#[derive(Debug)]
pub(crate) struct Algorithm {
    pub(crate) name: &'static str,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    /// The unit of the mechanism's key sizes, in bits.
    pub(crate) unit: u64,
    /// The one size of its keys, in bits, where the mechanism has others too.
    bits: Option<u64>,
}

const fn row(name: &'static str, mechanism: CK_MECHANISM_TYPE, unit: u64) -> Algorithm {
    Algorithm { name, mechanism, unit, bits: None }
}

/// `digest -a`
pub(crate) const DIGESTS: &[Algorithm] = &[
    row("sha1", CKM_SHA_1, 0),
    row("md5", CKM_MD5, 0),
    row("sha224", CKM_SHA224, 0),
    row("sha256", CKM_SHA256, 0),
    row("sha384", CKM_SHA384, 0),
    row("sha512", CKM_SHA512, 0),
    row("sha3-224", CKM_SHA3_224, 0),
    row("sha3-256", CKM_SHA3_256, 0),
    row("sha3-384", CKM_SHA3_384, 0),
    row("sha3-512", CKM_SHA3_512, 0),
];

/// `mac -a`
pub(crate) const MACS: &[Algorithm] = &[
    row("sha1_hmac", CKM_SHA_1_HMAC, 8),
    row("md5_hmac", CKM_MD5_HMAC, 8),
    row("sha224_hmac", CKM_SHA224_HMAC, 8),
    row("sha256_hmac", CKM_SHA256_HMAC, 8),
    row("sha384_hmac", CKM_SHA384_HMAC, 8),
    row("sha512_hmac", CKM_SHA512_HMAC, 8),
];

/// `encrypt -a`
pub(crate) const SEALS: &[Algorithm] = &[row("aes", CKM_AES_GCM, 8)];

/// `decrypt -a`: as they were in version 1 of the format; version 2 has the first one's name. DES is triple DES
/// with the same key three times.
pub(crate) const CIPHERS: &[Algorithm] = &[
    row("aes", CKM_AES_CBC_PAD, 8),
    row("arcfour", CKM_RC4, 1),
    Algorithm { bits: Some(64), ..row("des", CKM_DES3_CBC_PAD, 8) },
    Algorithm { bits: Some(192), ..row("3des", CKM_DES3_CBC_PAD, 8) },
];

/// The row with this name; `command` is what lists them.
fn find(table: &'static [Algorithm], name: &str, command: &str) -> Result<&'static Algorithm> {
    if let Some(row) = table.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    let unknown = Failure::usage(format!("unknown algorithm '{name}'"));
    Err(match name {
        "des_mac" => unknown.hint("there is no single DES here; sha256_hmac does its work"),
        "arcfour" | "des" | "3des" => {
            Failure::usage(format!("nothing new is encrypted with '{name}'"))
                .hint("'-a aes' is what to use; 'metaslot decrypt' reads what is old")
        }
        _ => unknown.hint(format!("'metaslot {command} -l' lists those that there are")),
    })
}

/// `-l`: the names, with the sizes of keys where there are keys.
fn list(app: &App, table: &[Algorithm], module: &Module, slot: SlotId) -> Result<()> {
    let keyed = table.iter().any(|row| row.unit != 0);
    let mut text = String::new();
    if keyed {
        text += "Algorithm       Keysize:  Min   Max (bits)\n";
        text += "------------------------------------------\n";
    }
    let mut document = Vec::new();
    let offered = module.mechanisms(slot)?;
    for row in table.iter().filter(|row| offered.contains(&row.mechanism)) {
        if !keyed {
            text += &format!("{}\n", row.name);
            document.push(json!({"algorithm": row.name}));
            continue;
        }
        let info = module.mechanism_info(slot, row.mechanism)?;
        let size = |offered: u64| row.bits.unwrap_or(offered * row.unit);
        let (min, max) = (size(info.min_key_size), size(info.max_key_size));
        text += &format!("{:<15}         {min:>5} {max:>5}\n", row.name);
        document.push(json!({"algorithm": row.name, "bits": [min, max]}));
    }
    match app.output.json {
        true => app.output.print(&Report { json: document.into(), ..Report::default() }),
        false => output::write_out(text.as_bytes()),
    }
}
