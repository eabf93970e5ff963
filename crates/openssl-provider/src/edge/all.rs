// SPDX-License-Identifier: Apache-2.0
//! Which operations without a key of a token there are.

use super::work::offered;
use super::{cipher, digest, kdf, mac, random};
use crate::abi::numbers::operation;
use crate::abi::{Algorithm, Table};
use crate::provider::{Mode, Provider};
use metaslot_client::Module;
use std::ffi::c_int;
use std::sync::Arc;

/// What is offered of an operation in mode `all`.
pub(super) fn algorithms(provider: &Arc<Provider>, asked: c_int) -> Table<Algorithm> {
    if provider.mode != Mode::All || is_of_libcrypto(provider) {
        return Table::null();
    }
    match asked {
        operation::DIGEST => offered(provider, &mut digest::rows()),
        operation::CIPHER => offered(provider, &mut cipher::rows()),
        operation::MAC => offered(provider, &mut mac::rows()),
        operation::KDF => offered(provider, &mut kdf::rows()),
        operation::RAND => offered(provider, &mut random::rows()),
        _ => Table::null(),
    }
}

/// A module that is made of libcrypto would ask for algorithms, find these, and be called for what it is doing.
fn is_of_libcrypto(provider: &Provider) -> bool {
    let made = |module: Module| !module.is_metaslot() && module.has_function(c"EVP_DigestInit_ex");
    provider.module().is_ok_and(made)
}
