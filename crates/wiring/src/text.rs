// SPDX-License-Identifier: Apache-2.0
//! Texts of fixed length, padded with blanks (PKCS#11 3.2 §3), and those of the system.

use metaslot_ck::{CK_ULONG, Error, Result};
use std::fmt::Display;

/// How long a token's label is.
pub const LABEL: CK_ULONG = 32;

/// `text` padded with blanks; cut between characters where it is too long.
#[must_use]
pub fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    let length = (0..=text.len().min(N)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// A label without its padding.
///
/// # Errors
/// `CKR_ARGUMENTS_BAD` when it is not UTF-8.
pub fn label(bytes: &[u8]) -> Result<String> {
    let text = str::from_utf8(bytes).map_err(|_| Error::ARGUMENTS_BAD)?;
    Ok(text.trim_end_matches([' ', '\0']).to_owned())
}

/// What the system says, without the number that [`std::io::Error`] adds.
#[must_use]
pub fn words(error: &impl Display) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map(|(words, _)| words.to_owned()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_padded_or_cut_between_characters() {
        assert_eq!(&padded::<6>("abc"), b"abc   ");
        assert_eq!(&padded::<3>("abcdef"), b"abc");
        assert_eq!(&padded::<4>("abcé"), b"abc ");
    }

    #[test]
    fn an_error_of_the_system_loses_its_number_only() {
        assert_eq!(words(&std::io::Error::from_raw_os_error(2)), "No such file or directory");
        assert_eq!(words(&"unfit"), "unfit");
    }

    #[test]
    fn a_label_loses_its_padding_only() {
        assert_eq!(label(b"my token    ").as_deref(), Ok("my token"));
        assert!(label(&[0xff; 32]).is_err());
    }
}
