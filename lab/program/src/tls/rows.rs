// SPDX-License-Identifier: Apache-2.0
//! Kinds of keys, and the arms.

use metaslot_ck::*;

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsKey {
    pub(super) name: &'static str,
    /// What `openssl genpkey` is asked for.
    pub(super) generate: &'static [&'static str],
}

/// All of them.
pub(super) const KEYS: [TlsKey; 4] = [
    TlsKey {
        name: "rsa2048",
        generate: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    },
    TlsKey {
        name: "rsa4096",
        generate: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
    },
    TlsKey { name: "p384", generate: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"] },
    TlsKey { name: "p256", generate: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"] },
];

/// The mechanisms that signatures of TLS 1.3 may be counted under, and those of the loop.
pub(super) const MECHANISMS: [CK_MECHANISM_TYPE; 8] = [
    CKM_RSA_PKCS,
    CKM_RSA_X_509,
    CKM_RSA_PKCS_PSS,
    CKM_SHA256_RSA_PKCS_PSS,
    CKM_SHA384_RSA_PKCS_PSS,
    CKM_ECDSA,
    CKM_ECDSA_SHA256,
    CKM_ECDSA_SHA384,
];

/// Where the key is, and what the server waits for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Arm {
    /// In a file.
    File,
    /// In the token; every signature is made at once.
    Token,
    /// In the token; signatures pause OpenSSL's jobs.
    Jobs,
    /// In a file, for a server that runs its handshakes in jobs all the same: what those cost by themselves.
    FileJobs,
    /// In the token, without lanes: what batches of threads gain.
    Alone,
    /// In the token, which a daemon has; its processor time counts as the server's.
    Daemon,
}

impl Arm {
    pub(super) const ALL: [Self; 6] =
        [Self::File, Self::FileJobs, Self::Token, Self::Jobs, Self::Alone, Self::Daemon];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Token => "token",
            Self::Jobs => "jobs",
            Self::FileJobs => "file-jobs",
            Self::Alone => "no-lanes",
            Self::Daemon => "daemon",
        }
    }

    /// Whether the key is in the token.
    pub(super) const fn is_of_token(self) -> bool {
        !matches!(self, Self::File | Self::FileJobs)
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arm| arm.word() == word)
    }
}

pub(super) const SERVER: &str = "server";
pub(super) const KEY: &str = "key";
pub(super) const CONNECTIONS: &str = "connections";
/// Threads of HAProxy, processes of nginx.
pub(super) const WORKERS: &str = "workers";
/// Counters beside each sample.
pub(super) const BATCHES: &str = "batches";
pub(super) const BATCHED: &str = "batched";
/// The longest of 99 handshakes in 100, in milliseconds.
pub(super) const P99: &str = "latency_p99_ms";
