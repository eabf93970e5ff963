// SPDX-License-Identifier: Apache-2.0
//! A provider that panics, for the test of what a caller sees of it (`tests/c/panics.c`).

use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Digest, DigestStream, Provider};

/// Has one mechanism, MD5, and panics when it should compute.
#[derive(Debug)]
pub struct Panicking;

static ROWS: &[Algorithm] =
    &[Algorithm { mechanism: CKM_MD5, digest: Some(&Panicking), ..Algorithm::NONE }];

impl Provider for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    /// Or its self test would panic, and no call of the caller's.
    fn answers_for_itself(&self) -> bool {
        true
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        ROWS
    }
}

impl Digest for Panicking {
    fn length(&self) -> usize {
        16
    }

    fn digest(&self, _: &[u8], _: &mut [u8]) -> Result<()> {
        panic!("a provider panics")
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Err(Error::DEVICE_ERROR)
    }

    fn restore(&self, _: &[u8]) -> Result<Box<dyn DigestStream>> {
        Err(Error::SAVED_STATE_INVALID)
    }
}
