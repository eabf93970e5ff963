// SPDX-License-Identifier: Apache-2.0
//! The names that the original commands give to mechanisms.

use crate::failure::{Failure, Result};
use crate::output::{self};
use metaslot_ck::*;
use metaslot_client::Module;

/// One row: the name, and what it is in PKCS#11.
#[derive(Debug)]
pub(crate) struct Algorithm {
    pub(crate) name: &'static str,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    /// The unit of the mechanism's key sizes, in bits.
    pub(crate) unit: u64,
}

const fn row(name: &'static str, mechanism: CK_MECHANISM_TYPE, unit: u64) -> Algorithm {
    Algorithm { name, mechanism, unit }
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

/// The row with this name; `command` is what lists them.
pub(crate) fn find(
    table: &'static [Algorithm],
    name: &str,
    command: &str,
) -> Result<&'static Algorithm> {
    table.iter().find(|row| row.name == name).ok_or_else(|| {
        let failure = Failure::usage(format!("unknown algorithm '{name}'"));
        match name {
            "des_mac" => failure.hint("there is no single DES here; sha256_hmac does its work"),
            _ => failure.hint(format!("'metaslot {command} -l' lists those that there are")),
        }
    })
}

/// `-l`: the names, with the sizes of keys where there are keys.
pub(crate) fn list(table: &[Algorithm], module: &Module, slot: SlotId) -> Result<()> {
    let keyed = table.iter().any(|row| row.unit != 0);
    let mut text = String::new();
    if keyed {
        text += "Algorithm       Keysize:  Min   Max (bits)\n";
        text += "------------------------------------------\n";
    }
    let offered = module.mechanisms(slot)?;
    for row in table.iter().filter(|row| offered.contains(&row.mechanism)) {
        if !keyed {
            text += &format!("{}\n", row.name);
            continue;
        }
        let info = module.mechanism_info(slot, row.mechanism)?;
        let (min, max) = (info.min_key_size * row.unit, info.max_key_size * row.unit);
        text += &format!("{:<15}         {min:>5} {max:>5}\n", row.name);
    }
    output::write_out(text.as_bytes())
}
