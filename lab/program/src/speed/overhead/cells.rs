// SPDX-License-Identifier: Apache-2.0
//! What is measured: one row per operation and size.

use crate::speed::openssl::Arguments;
use crate::speed::part::{Function, Hashing, Job, Key, Parameter};
use metaslot_ck::*;
use serde::{Deserialize, Serialize};

/// What a cell has to reach.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// Speed over the raw library, at least.
    Ratio(f64),
    /// CPU time added to the raw library's, at most, in nanoseconds.
    AddedNs(f64),
    /// CPU time per operation at the highest number of threads over that at one, at most.
    CpuGrowth(f64),
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    /// Where one is called.
    pub(crate) mechanism: Option<CK_MECHANISM_TYPE>,
    /// Where the mechanism does not say it.
    pub(crate) key: Option<Key>,
    /// Bytes per operation.
    pub(crate) bytes: usize,
    pub(crate) goal: Option<Goal>,
    /// Measured at every number of threads, not at one only.
    pub(crate) threads: bool,
    /// The scaling over raw's own that it has to reach.
    pub(crate) scaling: Option<f64>,
    /// What `openssl speed` is asked for, where it measures the same.
    pub(crate) openssl: Arguments,
    /// Takes so long that it is measured only where it is named.
    pub(crate) named: bool,
}

impl Cell {
    const fn plain(name: &'static str, function: Function, bytes: usize) -> Self {
        Self {
            name,
            function,
            mechanism: None,
            key: None,
            bytes,
            goal: None,
            threads: false,
            scaling: None,
            openssl: &[],
            named: false,
        }
    }

    const fn new(
        name: &'static str,
        function: Function,
        mechanism: CK_MECHANISM_TYPE,
        bytes: usize,
    ) -> Self {
        let mut cell = Self::plain(name, function, bytes);
        cell.mechanism = Some(mechanism);
        cell
    }

    /// With a key of hashes, which the raw library does not have: a plain implementation over it is called.
    const fn hashes(
        name: &'static str,
        function: Function,
        mechanism: CK_MECHANISM_TYPE,
        key: Key,
    ) -> Self {
        Self { key: Some(key), named: true, ..Self::new(name, function, mechanism, 32) }
    }

    const fn openssl(mut self, arguments: Arguments) -> Self {
        self.openssl = arguments;
        self
    }

    /// The standard's name of the mechanism; empty where none is called.
    pub(crate) fn mechanism_name(&self) -> &'static str {
        self.mechanism.and_then(mechanism_name).unwrap_or_default()
    }

    /// What is done.
    pub(crate) fn job(&self) -> Option<Job> {
        let Self { function, bytes, .. } = *self;
        match (self.mechanism, self.key) {
            (Some(mechanism), Some(key)) => {
                let signs = function == Function::Sign;
                let parameter = if signs { Parameter::Deterministic } else { Parameter::None };
                Some(Job { mechanism, function, key, parameter, bytes })
            }
            (Some(mechanism), None) => Job::usual(mechanism, function, bytes),
            (None, _) => Some(Job::without_key(function, bytes)),
        }
    }

    const fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    const fn scales(mut self) -> Self {
        self.threads = true;
        self.scaling = Some(SCALING);
        self
    }

    const fn threads(mut self) -> Self {
        self.threads = true;
        self
    }
}

const ML_DSA_65: Arguments = &["-signature-algorithms", "ML-DSA-65"];
const ML_KEM_768: Arguments = &["-kem-algorithms", "ML-KEM-768"];
const SLH_DSA_SHA2: Arguments = &["-signature-algorithms", "SLH-DSA-SHA2-128s"];
const SLH_DSA_SHAKE: Arguments = &["-signature-algorithms", "SLH-DSA-SHAKE-128s"];
const SHA256: Arguments = &["-bytes", "8192", "-evp", "sha256"];
const RATIO: Goal = Goal::Ratio(0.97);
const ADDED: Goal = Goal::AddedNs(120.0);
const SCALING: f64 = 0.97;

#[rustfmt::skip]
pub(crate) const CELLS: &[Cell] = &[
    Cell::new("rsa2048-sign", Function::Sign, CKM_SHA256_RSA_PKCS, 32).goal(RATIO).openssl(&["rsa2048"]),
    Cell::new("rsa2048-verify", Function::Verify, CKM_SHA256_RSA_PKCS, 32).goal(RATIO),
    Cell::new("p256-sign", Function::Sign, CKM_ECDSA, 32).goal(RATIO).scales(),
    Cell::new("p256-verify", Function::Verify, CKM_ECDSA, 32).goal(RATIO),
    Cell::new("ed25519-sign", Function::Sign, CKM_EDDSA, 32).goal(RATIO),
    Cell::new("ed25519-verify", Function::Verify, CKM_EDDSA, 32).goal(RATIO),
    Cell::new("ml-dsa-65-sign", Function::Sign, CKM_ML_DSA, 32).goal(RATIO).openssl(ML_DSA_65),
    Cell::new("ml-dsa-65-verify", Function::Verify, CKM_ML_DSA, 32).goal(RATIO).openssl(ML_DSA_65),
    Cell::new("ml-kem-768-encapsulate", Function::Encapsulate, CKM_ML_KEM, 32).goal(RATIO).openssl(ML_KEM_768),
    Cell::new("ml-kem-768-decapsulate", Function::Decapsulate, CKM_ML_KEM, 32).goal(RATIO).openssl(ML_KEM_768),
    Cell::hashes("slh-dsa-sha2-128s-sign", Function::Sign, CKM_SLH_DSA, Key::SlhDsa(Hashing::Sha2)).openssl(SLH_DSA_SHA2),
    Cell::hashes("slh-dsa-shake-128s-sign", Function::Sign, CKM_SLH_DSA, Key::SlhDsa(Hashing::Shake)).openssl(SLH_DSA_SHAKE),
    Cell::new("aes256-gcm-1k", Function::Encrypt, CKM_AES_GCM, 1 << 10).scales(),
    Cell::new("aes256-gcm-8k", Function::Encrypt, CKM_AES_GCM, 8 << 10).goal(ADDED),
    Cell::new("aes256-gcm-64k", Function::Encrypt, CKM_AES_GCM, 64 << 10).goal(RATIO),
    Cell::new("aes256-gcm-1m", Function::Encrypt, CKM_AES_GCM, 1 << 20).goal(RATIO),
    Cell::new("aes256-ctr-16", Function::Encrypt, CKM_AES_CTR, 16).goal(ADDED),
    Cell::new("sha256-16", Function::Digest, CKM_SHA256, 16).goal(ADDED),
    Cell::new("sha256-64", Function::Digest, CKM_SHA256, 64).scales(),
    Cell::new("sha256-8k", Function::Digest, CKM_SHA256, 8 << 10).goal(RATIO).openssl(SHA256),
    Cell::plain("session-open-close", Function::Session, 0).goal(Goal::CpuGrowth(1.1)).threads(),
    Cell::plain("random-32", Function::Random, 32),
    Cell::plain("random-4k", Function::Random, 4 << 10),
    Cell::new("generate-aes256", Function::Generate, CKM_AES_KEY_GEN, 32),
    Cell::new("generate-p256", Function::Generate, CKM_EC_KEY_PAIR_GEN, 32),
    Cell::new("generate-rsa2048", Function::Generate, CKM_RSA_PKCS_KEY_PAIR_GEN, 256),
    Cell::hashes("generate-hss-h10w8-h10w8", Function::Generate, CKM_HSS_KEY_PAIR_GEN, Key::Hss).goal(Goal::Ratio(6.0)),
    Cell::hashes("generate-xmss-sha2-10-256", Function::Generate, CKM_XMSS_KEY_PAIR_GEN, Key::Xmss).goal(Goal::Ratio(6.0)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CELLS.len());
    }

    #[test]
    fn every_cell_has_a_job() {
        for cell in CELLS {
            assert!(cell.job().is_some(), "{}", cell.name);
            assert_eq!(cell.mechanism.is_some(), !cell.mechanism_name().is_empty());
        }
    }
}
