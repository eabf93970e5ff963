// SPDX-License-Identifier: Apache-2.0
//! From nothing to a TLS server whose key is in a token, with a table at the end.

use anyhow::Result;

use crate::packages::{self, FOR_RUN};
use crate::test::build;

/// Runs the demonstration; it can be run again and again.
pub(crate) fn run() -> Result<()> {
    packages::install(&[FOR_RUN])?;
    build()
}
