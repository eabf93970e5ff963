// SPDX-License-Identifier: Apache-2.0
//! Texts of fixed length, and versions, as the protocol writes them.

use metaslot_ck::{CK_VERSION, Result};
use metaslot_client::protocol::Writer;
use metaslot_wiring::text;

/// How long a token's label is.
const LABEL: usize = 32;
/// The newest version of the standard whose functions the protocol carries.
pub(super) const CRYPTOKI: CK_VERSION = metaslot_wiring::version::V3_0;

/// `text` padded with blanks.
pub(super) fn padded<const N: usize>(answer: &mut Writer, text: &str) {
    answer.counted(&text::padded::<N>(text));
}

pub(super) fn version(answer: &mut Writer, version: CK_VERSION) {
    answer.byte(version.major);
    answer.byte(version.minor);
}

/// A label without its padding, and without what some clients send behind it.
///
/// # Errors
/// `CKR_ARGUMENTS_BAD` when it is not UTF-8.
pub(super) fn label(bytes: &[u8]) -> Result<String> {
    text::label(bytes.get(..LABEL).unwrap_or(bytes))
}
