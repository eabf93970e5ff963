// SPDX-License-Identifier: Apache-2.0
//! The tests of the provider over AWS-LC, for this one; what this one does not have is done by that one.
#![cfg(feature = "library")]

#[path = "../../awslc/tests/ed25519.rs"]
mod tests;

use metaslot_openssl::OPENSSL as PROVIDER;
