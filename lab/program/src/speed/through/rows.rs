// SPDX-License-Identifier: Apache-2.0
//! What is done, and who does it.

use metaslot_ck::*;

/// An operation with a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThroughRow {
    pub(super) name: &'static str,
    /// What `openssl speed` is asked for, in words; the first figure that it then makes is this operation's, and it makes more, so that
    /// none of its processes ends before all have theirs.
    pub(super) algorithm: &'static str,
    /// What `openssl genpkey` is asked for.
    pub(super) key: &'static [&'static str],
    /// The other side's group, where it is an agreement.
    pub(super) group: Option<&'static str>,
    /// The mechanism that the module then counts.
    pub(super) mechanism: CK_MECHANISM_TYPE,
    /// Operations in a second, with 1 process and with 16, by `openssl speed -engine pkcs11`: Sun, 2008–2009.
    pub(super) sun: Option<[f64; 2]>,
}

const fn row(
    name: &'static str,
    algorithm: &'static str,
    key: &'static [&'static str],
    group: Option<&'static str>,
    mechanism: CK_MECHANISM_TYPE,
) -> ThroughRow {
    ThroughRow { name, algorithm, key, group, mechanism, sun: None }
}

const RSA_1024: &[&str] = &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"];
const RSA_2048: &[&str] = &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
const P256: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
const P384: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"];
const B571: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:sect571r1"];

/// All of them.
#[rustfmt::skip]
pub(super) const ROWS: [ThroughRow; 9] = [
    ThroughRow { sun: Some([1_760.0, 14_048.0]), ..row("rsa1024-sign", "rsa1024", RSA_1024, None, CKM_RSA_PKCS) },
    row("rsa2048-sign", "rsa2048", RSA_2048, None, CKM_RSA_PKCS),
    row("p256-sign", "ecdsap256", P256, None, CKM_ECDSA),
    row("p384-sign", "ecdsap384", P384, None, CKM_ECDSA),
    row("sect571r1-sign", "ecdsab571", B571, None, CKM_ECDSA),
    row("ed25519-sign", "ed25519", &["-algorithm", "ED25519"], None, CKM_EDDSA),
    row("x25519-agree", "ecdhx25519 ed25519", &["-algorithm", "X25519"], Some("X25519"), CKM_ECDH1_DERIVE),
    row("p256-agree", "ecdhp256 ed25519", P256, Some("P-256"), CKM_ECDH1_DERIVE),
    row("sect571r1-agree", "ecdhb571 ed25519", B571, Some("sect571r1"), CKM_ECDH1_DERIVE),
];

pub(super) const OPERATION: &str = "operation";
pub(super) const PROCESSES: &str = "processes";
pub(super) const JOBS: &str = "jobs";

/// Who does it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Doer {
    /// `openssl speed` as it is installed.
    Plain,
    /// `openssl speed -engine pkcs11`.
    Engine,
    /// `openssl speed` with the provider.
    Provider,
    /// Its loop with a key in a file.
    File,
    /// Its loop with a key of the token, by the provider.
    Token,
}

impl Doer {
    pub(super) const ALL: [Self; 5] =
        [Self::Plain, Self::Engine, Self::Provider, Self::File, Self::Token];

    /// The level of the factor.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Engine => "engine",
            Self::Provider => "provider",
            Self::File => "file",
            Self::Token => "token",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Plain => "openssl speed, as it is installed",
            Self::Engine => "openssl speed -engine pkcs11, libp11's engine over the module",
            Self::Provider => "openssl speed, this project's provider over the module",
            Self::File => {
                "the loop of openssl speed, by the installed libcrypto, with a key in a file"
            }
            Self::Token => "the same loop with a key of the token, by this project's provider",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|doer| doer.word() == word)
    }

    /// What it is compared with.
    pub(super) const fn beside(self) -> Option<Self> {
        match self {
            Self::Plain | Self::File => None,
            Self::Engine | Self::Provider => Some(Self::Plain),
            Self::Token => Some(Self::File),
        }
    }

    /// Whether the module has to have done it, or the figure is of something else.
    pub(super) const fn by_module(self) -> bool {
        self.beside().is_some()
    }

    /// Whether jobs of OpenSSL's can make a difference.
    pub(super) const fn pauses(self) -> bool {
        matches!(self, Self::Provider | Self::Token)
    }

    /// Whether it is `openssl speed` itself.
    pub(super) const fn is_speed(self) -> bool {
        matches!(self, Self::Plain | Self::Engine | Self::Provider)
    }
}
