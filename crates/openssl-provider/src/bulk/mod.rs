// SPDX-License-Identifier: Apache-2.0
//! What the module does where no key of a token is meant (mode `all`): digests, and what is done with secrets that the program itself has. The calls
//! are many and short: a session is taken for a call, or for as long as a message is in it.

pub(crate) mod aead;
pub(crate) mod cipher;
pub(crate) mod digest;
pub(crate) mod kdf;
pub(crate) mod key;
pub(crate) mod mac;
pub(crate) mod message;
mod names;
pub(crate) mod plain;
pub(crate) mod random;
pub(crate) mod sessions;
pub(crate) mod tls;

use crate::abi::{Answer, Lent, Params};
use crate::failure::Result;
use crate::provider::Provider;
use std::sync::Arc;

/// The provider of a context.
pub(crate) type Owner = Lent<Arc<Provider>>;

/// What the contexts of all these operations have in common.
pub(crate) trait Work {
    fn provider(&self) -> &Arc<Provider>;

    /// Takes what libcrypto says.
    fn set(&mut self, _params: &Params) -> Result<()> {
        Ok(())
    }

    /// What it says by libcrypto's name.
    fn answer(&self, _name: &[u8]) -> Option<Answer<'_>> {
        None
    }
}
