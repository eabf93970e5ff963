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

/// One part of a PEM file.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Block<'a> {
    pub(crate) label: &'a str,
    /// `Name: value` lines, which encrypted keys of old programs have.
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    /// Base64.
    pub(crate) content: &'a str,
}

/// The parts of a PEM file in their order, and the label of the last one where its END is missing.
pub(crate) fn blocks(text: &str) -> (Vec<Block<'_>>, Option<&str>) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((label, after)) = after.split_once("-----") else { return (found, Some("?")) };
        let Some((body, after)) = after.split_once(&format!("-----END {label}-----")) else {
            return (found, Some(label));
        };
        let (headers, content) =
            match body.split_once("\n\n").or_else(|| body.split_once("\r\n\r\n")) {
                Some((headers, content)) if headers.contains(": ") => (headers, content),
                _ => ("", body),
            };
        let headers = headers.lines().filter_map(|line| line.split_once(": ")).collect();
        found.push(Block { label, headers, content });
        rest = after;
    }
    (found, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_many_blocks_and_may_be_cut() {
        let old = "-----BEGIN OLD-----\nDEK-Info: AES,00\n\nAAAA\n-----END OLD-----\n";
        let text = format!("remark\n{}{old}", pem("THING", &[7; 3]));
        let (found, cut) = blocks(&text);
        assert_eq!(found.iter().map(|block| block.label).collect::<Vec<_>>(), ["THING", "OLD"]);
        assert_eq!(found[1].headers, [("DEK-Info", "AES,00")]);
        assert_eq!(found[1].content.trim(), "AAAA");
        assert_eq!(cut, None);
        let (found, cut) = blocks(&text[..text.len() - 3]);
        assert_eq!((found.len(), cut), (1, Some("OLD")));
    }

    #[test]
    fn a_file_is_pem_or_der() {
        let text = format!("before\n{}", pem("THING", &[7; 100]));
        assert_eq!(der_of(text.as_bytes(), &["OTHER", "THING"]), Some(vec![7; 100]));
        assert_eq!(der_of(text.as_bytes(), &["OTHER"]), None);
        assert_eq!(der_of(&[0x30, 0x80, 0xff], &["THING"]), Some(vec![0x30, 0x80, 0xff]));
    }
}
