// SPDX-License-Identifier: Apache-2.0
//! The provider over the cryptography of the operating system's kernel (Linux's `AF_ALG`): one request at a time, on the thread that
//! calls.
//!
//! Its rows are those that this kernel has, found out when they are first asked for. Each file holds a table of rows and the
//! operations behind them.
#![forbid(unsafe_code)]

mod aead;
mod cipher;
mod digest;
mod failure;
mod mac;
mod offer;
mod pending;

use metaslot_ck::CK_MECHANISM_TYPE;
use metaslot_spi::provider::{Algorithm, Provider};
use offer::Table;
use std::sync::OnceLock;

/// The kernel as a provider beside a plain one, whose rows for AES-GCM and ChaCha20-Poly1305 do what the kernel's cannot.
#[derive(Debug)]
pub struct Kernel {
    plain: &'static dyn Provider,
    table: OnceLock<Table>,
}

impl Kernel {
    /// For a static.
    #[must_use]
    pub const fn beside(plain: &'static dyn Provider) -> Self {
        Self { plain, table: OnceLock::new() }
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let parts = [&digest::OFFERS[..], &mac::OFFERS, &cipher::OFFERS];
            Table::of(parts.concat().into_iter().chain(aead::offers(self.plain)))
        })
    }
}

impl Provider for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &self.table().rows
    }

    fn remark(&self, mechanism: CK_MECHANISM_TYPE) -> String {
        self.table().remark(mechanism)
    }
}
