// SPDX-License-Identifier: Apache-2.0
//! Cipher suites: the names of the original, and what becomes of each today.

use crate::failure::{Failure, Result};

/// A name, and what is offered for it.
struct Suite {
    name: &'static str,
    /// Of TLS 1.3 and of TLS 1.2, or why none is.
    today: std::result::Result<(&'static [&'static str], &'static [&'static str]), &'static str>,
}

const fn row(
    name: &'static str,
    tls13: &'static [&'static str],
    tls12: &'static [&'static str],
) -> Suite {
    Suite { name, today: Ok((tls13, tls12)) }
}

const fn refused(name: &'static str, why: &'static str) -> Suite {
    Suite { name, today: Err(why) }
}

const RC4: &str = "RC4 is prohibited in TLS (RFC 7465)";
const TRIPLE: &str =
    "triple DES has blocks of 64 bits, which long connections wear out (CVE-2016-2183)";
const DES: &str = "DES has keys of 56 bits, which are found by trying";

/// The original's six, and then those that are offered without `-c`, in the order in which they are.
const SUITES: &[Suite] = &[
    row(
        "rsa_aes_128_cbc_sha",
        &["TLS_AES_128_GCM_SHA256"],
        &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
    ),
    row(
        "rsa_aes_256_cbc_sha",
        &["TLS_AES_256_GCM_SHA384"],
        &["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
    ),
    refused("rsa_rc4_128_sha", RC4),
    refused("rsa_rc4_128_md5", RC4),
    refused("rsa_3des_ede_cbc_sha", TRIPLE),
    refused("rsa_des_cbc_sha", DES),
    row("tls_aes_128_gcm_sha256", &["TLS_AES_128_GCM_SHA256"], &[]),
    row("tls_aes_256_gcm_sha384", &["TLS_AES_256_GCM_SHA384"], &[]),
    row("tls_chacha20_poly1305_sha256", &["TLS_CHACHA20_POLY1305_SHA256"], &[]),
    row("ecdhe-ecdsa-aes128-gcm-sha256", &[], &["ECDHE-ECDSA-AES128-GCM-SHA256"]),
    row("ecdhe-rsa-aes128-gcm-sha256", &[], &["ECDHE-RSA-AES128-GCM-SHA256"]),
    row("ecdhe-ecdsa-aes256-gcm-sha384", &[], &["ECDHE-ECDSA-AES256-GCM-SHA384"]),
    row("ecdhe-rsa-aes256-gcm-sha384", &[], &["ECDHE-RSA-AES256-GCM-SHA384"]),
    row("ecdhe-ecdsa-chacha20-poly1305", &[], &["ECDHE-ECDSA-CHACHA20-POLY1305"]),
    row("ecdhe-rsa-chacha20-poly1305", &[], &["ECDHE-RSA-CHACHA20-POLY1305"]),
];

/// How many names are the original's.
const OLD: usize = 6;

/// What is offered, in the order of preference.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Offer {
    tls13: Vec<&'static str>,
    tls12: Vec<&'static str>,
}

impl Offer {
    /// A list with commas, or everything.
    pub(super) fn parse(list: Option<&str>) -> Result<Self> {
        let mut offer = Self::default();
        let Some(list) = list else {
            SUITES[OLD..].iter().for_each(|suite| offer.add(suite));
            return Ok(offer);
        };
        for word in list.split(',').map(str::trim) {
            let known = SUITES.iter().find(|suite| suite.name.eq_ignore_ascii_case(word));
            match known.map(|suite| (suite, suite.today)) {
                Some((suite, Ok(_))) => offer.add(suite),
                Some((suite, Err(why))) => {
                    return Err(Failure::failed(format!("{} is not offered: {why}", suite.name))
                        .hint(format!("take it out of -c; there is {}", served())));
                }
                None => {
                    return Err(Failure::usage(format!("there is no cipher suite '{word}'"))
                        .hint(format!("there is {}", served())));
                }
            }
        }
        Ok(offer)
    }

    fn add(&mut self, suite: &Suite) {
        let Ok((tls13, tls12)) = suite.today else { return };
        for (all, new) in [(&mut self.tls13, tls13), (&mut self.tls12, tls12)] {
            all.extend(new);
            let mut seen = Vec::new();
            all.retain(|name| {
                !seen.contains(name) && {
                    seen.push(*name);
                    true
                }
            });
        }
    }

    /// As OpenSSL reads them. A version that is not offered has those that there are: a server wants some.
    pub(super) fn names(&self) -> [String; 2] {
        let every = |all: &[&str], at: usize| match all {
            [] => SUITES[OLD..]
                .iter()
                .filter_map(|suite| suite.today.ok())
                .flat_map(|both| [both.0, both.1][at])
                .copied()
                .collect::<Vec<_>>()
                .join(":"),
            some => some.join(":"),
        };
        [every(&self.tls13, 0), every(&self.tls12, 1)]
    }

    /// The versions, from the oldest to the newest.
    pub(super) fn versions(&self) -> Vec<&'static str> {
        let both = [("TLSv1.2", &self.tls12), ("TLSv1.3", &self.tls13)];
        both.into_iter().filter(|row| !row.1.is_empty()).map(|row| row.0).collect()
    }
}

fn served() -> String {
    let names = SUITES.iter().filter(|suite| suite.today.is_ok()).map(|suite| suite.name);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_original_is_todays_of_its_cipher() {
        let offer = Offer::parse(Some("RSA_AES_128_CBC_SHA, tls_aes_128_gcm_sha256")).unwrap();
        let tls12 = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
        assert_eq!(offer.names(), ["TLS_AES_128_GCM_SHA256", tls12]);
        assert_eq!(offer.versions(), ["TLSv1.2", "TLSv1.3"]);
        let offer = Offer::parse(Some("ecdhe-rsa-aes256-gcm-sha384")).unwrap();
        assert_eq!(offer.versions(), ["TLSv1.2"]);
        assert_eq!(offer.names()[1], "ECDHE-RSA-AES256-GCM-SHA384");
    }

    #[test]
    fn what_is_not_offered_is_said_with_its_reason() {
        for (name, words) in [
            ("rsa_rc4_128_md5", "RFC 7465"),
            ("rsa_3des_ede_cbc_sha", "64 bits"),
            ("rsa_des_cbc_sha", "56 bits"),
            ("rsa_null", "no cipher suite"),
            ("", "no cipher suite"),
        ] {
            let failure = Offer::parse(Some(name)).expect_err(name);
            assert!(failure.message().contains(words), "{}", failure.message());
        }
    }

    #[test]
    fn the_page_has_every_name() {
        let page = include_str!("../../../../../docs/kssl.md");
        for suite in SUITES {
            assert!(page.contains(&format!("`{}`", suite.name)), "{}", suite.name);
        }
    }
}
