// SPDX-License-Identifier: Apache-2.0
//! PKCS#11 URIs: what is read and written again is the same.

use crate::input::Seen;
use metaslot_client::uri::Uri;

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Uri>() {
        Ok(uri) => {
            // A PIN is read and never written.
            let shown = Uri { pin_value: None, ..uri };
            let written = shown.to_string();
            assert_eq!(written.parse::<Uri>().as_ref(), Ok(&shown), "{written}");
            seen.note(written.len() / 8);
        }
        Err(error) => seen.note(std::mem::discriminant(&error)),
    }
    seen.finish()
}
