// SPDX-License-Identifier: Apache-2.0
//! Texts of fixed length, padded with blanks, and versions (PKCS#11 3.2 §3).

use metaslot_ck::{CK_VERSION, Error, Result};
use metaslot_client::protocol::Writer;

/// How long a token's label is.
pub(super) const LABEL: usize = 32;
/// Who made this.
pub(super) const MANUFACTURER: &str = "Metaslot";
/// The newest version of the standard whose functions the protocol carries.
pub(super) const CRYPTOKI: CK_VERSION = CK_VERSION { major: 3, minor: 0 };
/// Of a slot's hardware, where there is none.
pub(super) const NONE: CK_VERSION = CK_VERSION { major: 0, minor: 0 };
/// Ours.
pub(super) const LIBRARY: CK_VERSION = CK_VERSION {
    major: number(env!("CARGO_PKG_VERSION_MAJOR")),
    minor: number(env!("CARGO_PKG_VERSION_MINOR")),
};

const fn number(text: &str) -> u8 {
    match u8::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version that does not fit into CK_VERSION"),
    }
}

/// `text` padded with blanks; cut between characters where it is too long.
pub(super) fn padded<const N: usize>(answer: &mut Writer, text: &str) {
    let mut bytes = [b' '; N];
    let length = text.floor_char_boundary(N);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    answer.counted(&bytes);
}

pub(super) fn version(answer: &mut Writer, version: CK_VERSION) {
    answer.byte(version.major);
    answer.byte(version.minor);
}

/// A label without its padding, and without what some clients send behind it.
///
/// # Errors
/// `CKR_ARGUMENTS_BAD` when it is not UTF-8.
pub(super) fn label(bytes: &[u8]) -> Result<&str> {
    let bytes = bytes.get(..LABEL).unwrap_or(bytes);
    let text = str::from_utf8(bytes).map_err(|_| Error::ARGUMENTS_BAD)?;
    Ok(text.trim_end_matches([' ', '\0']))
}
