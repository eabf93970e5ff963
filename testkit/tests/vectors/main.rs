// SPDX-License-Identifier: Apache-2.0
//! Project Wycheproof's vectors through the C ABI: every file in `testdata/wycheproof`, judged by
//! the family that its algorithm belongs to. A file of an unknown family is a failure.
#![forbid(unsafe_code)]

mod binary;
mod cipher;
mod classics;
mod derive;
mod file;
mod lattice;
mod mac;
mod openssl;
mod rsa;
mod signature;
mod xeddsa;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use metaslot_client::{Mechanism, Session};
use metaslot_testkit::{apart, user_session};

use file::{Expected, File, Vector, Verdict};

const CLIENT: &str = "Wycheproof vectors";

/// What judges the vectors of some algorithms.
struct Family {
    /// How the files' names begin.
    prefixes: &'static [&'static str],
    judge: fn(&Session, &Vector<'_>) -> Result<Verdict>,
}

const AEAD: Family = Family {
    prefixes: &["aes_gcm_", "aes_ccm_", "chacha20_poly1305_", "xchacha20_poly1305_"],
    judge: cipher::aead,
};
const CIPHERS: Family = Family {
    prefixes: &["aes_cbc_", "aria_cbc_", "camellia_cbc_", "aes_xts_"],
    judge: cipher::plain,
};
const KEY_WRAP: Family = Family { prefixes: &["aes_wrap_", "aes_kwp_"], judge: cipher::key_wrap };
const MACS: Family = Family { prefixes: &["hmac_", "aes_cmac_", "aes_gmac_"], judge: mac::mac };
const KDFS: Family = Family { prefixes: &["hkdf_", "pbkdf2_", "pbes2_"], judge: derive::kdf };
const AGREEMENT: Family = Family { prefixes: &["ecdh_", "x25519_"], judge: derive::agreement };
const CURVES: Family = Family { prefixes: &["ecdsa_", "ed25519_"], judge: signature::curve };
const DSA: Family = Family { prefixes: &["dsa_"], judge: signature::dsa };
const ML_KEM: Family = Family { prefixes: &["mlkem_"], judge: lattice::ml_kem };
const ML_DSA: Family = Family { prefixes: &["mldsa_"], judge: lattice::ml_dsa };
const RSA_SIGNATURES: Family =
    Family { prefixes: &["rsa_signature_", "rsa_pss_"], judge: rsa::verify };
const RSA_DECRYPTION: Family =
    Family { prefixes: &["rsa_oaep_", "rsa_pkcs1_"], judge: rsa::private };
const FAMILIES: &[&Family] = &[
    &AEAD,
    &CIPHERS,
    &KEY_WRAP,
    &MACS,
    &KDFS,
    &AGREEMENT,
    &CURVES,
    &DSA,
    &ML_DSA,
    &ML_KEM,
    &RSA_SIGNATURES,
    &RSA_DECRYPTION,
];

fn directory() -> PathBuf {
    std::env::var_os("METASLOT_TEST_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/wycheproof"),
        PathBuf::from,
    )
}

/// Where files are that are for a provider which is not in every build, and the curves among them that every build has.
const ELSEWHERE: (&str, &str) = ("openssl/", "openssl/ecdh_sect");

/// The names of the files, in order.
fn files() -> Result<Vec<String>> {
    let mut names = Vec::new();
    let (place, ours) = ELSEWHERE;
    for place in ["", place] {
        let directory = directory().join(place);
        for entry in std::fs::read_dir(directory).context("read the directory of vectors")? {
            let name = format!("{place}{}", entry?.file_name().display());
            if name.ends_with(".json") && (place.is_empty() || name.starts_with(ours)) {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

impl Family {
    fn has(&self, name: &str) -> bool {
        let name = name.strip_prefix(ELSEWHERE.0).unwrap_or(name);
        self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Runs every file of the family and prints a line for each.
    fn run(&self) -> Result<()> {
        let (_module, session) = user_session()?;
        let mut wrong = Vec::new();
        for name in files()?.iter().filter(|name| self.has(name)) {
            let file = File::read(&directory().join(name))?;
            let mut count = [0_usize; 4];
            for vector in file.vectors() {
                let at = match self.one(&session, &vector) {
                    Ok(at) => at,
                    Err(error) => {
                        wrong.push(format!("{name} {}: {error:#}", vector.number()));
                        3
                    }
                };
                count[at] += 1;
            }
            let [passed, acceptable, skipped, failed] = count;
            println!(
                "    {name:<48} {passed:>5} passed {acceptable:>4} acceptable {skipped:>4} not \
                 applicable {failed:>4} failed"
            );
        }
        let shown: Vec<&String> = wrong.iter().take(20).collect();
        ensure!(wrong.is_empty(), "{} vectors failed, among them {shown:#?}", wrong.len());
        Ok(())
    }

    fn one(&self, session: &Session, vector: &Vector<'_>) -> Result<usize> {
        let verdict = (self.judge)(session, vector).context("no verdict")?;
        match (vector.expected(), verdict) {
            (_, Verdict::NotApplicable) => Ok(2),
            (Expected::Valid, Verdict::Accepted) | (Expected::Invalid, Verdict::Refused(_)) => {
                Ok(0)
            }
            (Expected::Acceptable, _) => Ok(1),
            (Expected::Valid, Verdict::Refused(why)) => bail!("valid, and refused: {why}"),
            (Expected::Invalid, Verdict::Accepted) => {
                bail!("invalid, and accepted ({})", vector.comment())
            }
        }
    }
}

fn family(what: &str, name: &str, family: &'static Family) {
    let legacy = |token: &mut metaslot_testkit::TestToken| token.policy("legacy");
    apart(CLIENT, what, name, legacy, || family.run());
}

/// A mechanism without a parameter.
const fn bare(number: metaslot_ck::CK_MECHANISM_TYPE) -> Mechanism<'static> {
    Mechanism::new(number)
}

#[test]
fn every_file_belongs_to_one_family() {
    let names = files().expect("the directory of vectors");
    assert!(!names.is_empty());
    for name in names {
        let owners = FAMILIES.iter().filter(|family| family.has(&name)).count();
        assert_eq!(owners, 1, "{name}");
    }
}

/// `testdata/wycheproof/files.txt`: what upstream has is in the directory, or under a reason.
#[test]
fn every_file_of_upstream_is_here_or_has_a_reason() {
    let list = std::fs::read_to_string(directory().join("files.txt")).expect("the list");
    let (mut reason, mut here, mut absent) = ("", BTreeSet::new(), BTreeSet::new());
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => reason = line,
            Some(name) if reason.starts_with("Here, or in") => assert!(here.insert(name), "{name}"),
            Some(name) => assert!(!reason.is_empty() && absent.insert(name), "{name}"),
        }
    }
    let mut found = BTreeSet::new();
    for place in ["", ELSEWHERE.0] {
        let entries = std::fs::read_dir(directory().join(place)).expect("the directory of vectors");
        let names = entries.map(|entry| entry.expect("an entry").file_name().display().to_string());
        found.extend(names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)));
    }
    assert_eq!(here, found.iter().map(String::as_str).collect());
    assert_eq!((here.is_disjoint(&absent), here.len() + absent.len()), (true, 343));
}

#[test]
fn authenticated_ciphers() {
    family("authenticated ciphers", "authenticated_ciphers", &AEAD);
}

#[test]
fn plain_ciphers() {
    family("ciphers", "plain_ciphers", &CIPHERS);
}

#[test]
fn key_wrap() {
    family("key wrap", "key_wrap", &KEY_WRAP);
}

#[test]
fn message_authentication() {
    family("message authentication", "message_authentication", &MACS);
}

#[test]
fn key_derivation() {
    family("key derivation", "key_derivation", &KDFS);
}

#[test]
fn key_agreement() {
    family("key agreement", "key_agreement", &AGREEMENT);
}

#[test]
fn signatures_on_curves() {
    family("signatures on curves", "signatures_on_curves", &CURVES);
}

#[test]
fn dsa() {
    family("DSA", "dsa", &DSA);
}

#[test]
fn ml_dsa() {
    family("ML-DSA", "ml_dsa", &ML_DSA);
}

#[test]
fn ml_kem() {
    family("ML-KEM", "ml_kem", &ML_KEM);
}

#[test]
fn ml_dsa_by_nist() {
    let legacy = |token: &mut metaslot_testkit::TestToken| token.policy("legacy");
    apart(CLIENT, "ML-DSA, by NIST", "ml_dsa_by_nist", legacy, lattice::nist);
}

#[test]
fn binary_curves() {
    let legacy = |token: &mut metaslot_testkit::TestToken| token.policy("legacy");
    apart(CLIENT, "binary curves, by OpenSSL", "binary_curves", legacy, binary::run);
}

#[test]
fn signatures_by_keys_for_agreement() {
    apart(CLIENT, "XEdDSA", "signatures_by_keys_for_agreement", |_| Ok(()), xeddsa::run);
}

#[test]
fn ciphers_by_openssl() {
    let legacy = |token: &mut metaslot_testkit::TestToken| token.policy("legacy");
    apart(CLIENT, "ciphers, by OpenSSL", "ciphers_by_openssl", legacy, openssl::run);
}

#[test]
fn classics() {
    let legacy = |token: &mut metaslot_testkit::TestToken| token.policy("legacy");
    apart(CLIENT, "classics, by RFCs and OpenSSL", "classics", legacy, classics::run);
}

#[test]
fn public_halves() {
    apart(CLIENT, "public halves", "public_halves", |_| Ok(()), classics::public_halves);
}

#[test]
fn rsa_signatures() {
    family("RSA signatures", "rsa_signatures", &RSA_SIGNATURES);
}

#[test]
fn rsa_decryption_and_generation_of_signatures() {
    family(
        "RSA decryption and generation of signatures",
        "rsa_decryption_and_generation_of_signatures",
        &RSA_DECRYPTION,
    );
}
