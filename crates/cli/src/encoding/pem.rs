// SPDX-License-Identifier: Apache-2.0
//! PEM (RFC 7468).

use super::{base64, from_base64};

/// Lines of 64 characters between BEGIN and END.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = base64(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        lines.extend(line.iter().map(|byte| char::from(*byte)));
        lines.push('\n');
    }
    lines + &format!("-----END {label}-----\n")
}

/// The DER of a file that may be PEM, with one of these labels.
pub(crate) fn der_of(file: &[u8], labels: &[&str]) -> Option<Vec<u8>> {
    let text = str::from_utf8(file).ok().filter(|text| text.contains("-----BEGIN "));
    let Some(text) = text else { return Some(file.to_vec()) };
    labels.iter().find_map(|label| {
        let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
        let (content, _) = rest.split_once(&format!("-----END {label}-----"))?;
        from_base64(content.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_pem_or_der() {
        let text = format!("before\n{}", pem("THING", &[7; 100]));
        assert_eq!(der_of(text.as_bytes(), &["OTHER", "THING"]), Some(vec![7; 100]));
        assert_eq!(der_of(text.as_bytes(), &["OTHER"]), None);
        assert_eq!(der_of(&[0x30, 0x80, 0xff], &["THING"]), Some(vec![0x30, 0x80, 0xff]));
    }
}
