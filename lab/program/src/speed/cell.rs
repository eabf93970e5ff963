// SPDX-License-Identifier: Apache-2.0
//! What is measured: one row per operation and size.

use serde::{Deserialize, Serialize};

/// One operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    RsaSign,
    RsaVerify,
    EcSign,
    EcVerify,
    EdSign,
    EdVerify,
    GcmSeal,
    Ctr,
    Sha256,
    Session,
    Random,
    GenerateAes,
    GenerateEc,
    GenerateRsa,
}

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
    pub(crate) work: Work,
    pub(crate) mechanism: &'static str,
    /// Bytes per operation.
    pub(crate) size: usize,
    pub(crate) goal: Option<Goal>,
    /// Measured at every number of threads, not at one only.
    pub(crate) threads: bool,
    /// The scaling over raw's own that it has to reach.
    pub(crate) scaling: Option<f64>,
}

impl Cell {
    const fn new(name: &'static str, work: Work, mechanism: &'static str, size: usize) -> Self {
        Self { name, work, mechanism, size, goal: None, threads: false, scaling: None }
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

const RATIO: Goal = Goal::Ratio(0.97);
const ADDED: Goal = Goal::AddedNs(120.0);
const SCALING: f64 = 0.97;

#[rustfmt::skip]
pub(crate) const CELLS: &[Cell] = &[
    Cell::new("rsa2048-sign", Work::RsaSign, "CKM_SHA256_RSA_PKCS", 32).goal(RATIO),
    Cell::new("rsa2048-verify", Work::RsaVerify, "CKM_SHA256_RSA_PKCS", 32).goal(RATIO),
    Cell::new("p256-sign", Work::EcSign, "CKM_ECDSA", 32).goal(RATIO).scales(),
    Cell::new("p256-verify", Work::EcVerify, "CKM_ECDSA", 32).goal(RATIO),
    Cell::new("ed25519-sign", Work::EdSign, "CKM_EDDSA", 32).goal(RATIO),
    Cell::new("ed25519-verify", Work::EdVerify, "CKM_EDDSA", 32).goal(RATIO),
    Cell::new("aes256-gcm-1k", Work::GcmSeal, "CKM_AES_GCM", 1 << 10).scales(),
    Cell::new("aes256-gcm-8k", Work::GcmSeal, "CKM_AES_GCM", 8 << 10).goal(ADDED),
    Cell::new("aes256-gcm-64k", Work::GcmSeal, "CKM_AES_GCM", 64 << 10).goal(RATIO),
    Cell::new("aes256-gcm-1m", Work::GcmSeal, "CKM_AES_GCM", 1 << 20).goal(RATIO),
    Cell::new("aes256-ctr-16", Work::Ctr, "CKM_AES_CTR", 16).goal(ADDED),
    Cell::new("sha256-16", Work::Sha256, "CKM_SHA256", 16).goal(ADDED),
    Cell::new("sha256-64", Work::Sha256, "CKM_SHA256", 64).scales(),
    Cell::new("sha256-8k", Work::Sha256, "CKM_SHA256", 8 << 10).goal(RATIO),
    Cell::new("session-open-close", Work::Session, "", 0).goal(Goal::CpuGrowth(1.1)).threads(),
    Cell::new("random-32", Work::Random, "", 32),
    Cell::new("random-4k", Work::Random, "", 4 << 10),
    Cell::new("generate-aes256", Work::GenerateAes, "CKM_AES_KEY_GEN", 32),
    Cell::new("generate-p256", Work::GenerateEc, "CKM_EC_KEY_PAIR_GEN", 32),
    Cell::new("generate-rsa2048", Work::GenerateRsa, "CKM_RSA_PKCS_KEY_PAIR_GEN", 256),
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
    fn every_mechanism_is_the_standards() {
        for cell in CELLS.iter().filter(|cell| !cell.mechanism.is_empty()) {
            assert!(metaslot_ck::mechanism_by_name(cell.mechanism).is_some(), "{}", cell.mechanism);
        }
    }
}
