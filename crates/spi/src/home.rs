// SPDX-License-Identifier: Apache-2.0
//! A token that keeps its keys: another module's. They are made, used and changed there.

use crate::provider::Algorithm;
use crate::store::Found;
use crate::{Attributes, Params, Secrets};
use metaslot_ck::{CK_MECHANISM_TYPE, Result};
use std::fmt::Debug;

/// What serves the keys of such a token. The engine has checked what its own rules and policy say; the
/// module checks again.
pub trait Home: Sync + Debug {
    /// Short and lower case, as the configuration has it.
    fn name(&self) -> &'static str;

    /// What it does with its keys, sorted by mechanism. Each key that it is given carries
    /// [`CKA_FOREIGN_ROW`](metaslot_ck::attribute::CKA_FOREIGN_ROW).
    fn algorithms(&'static self) -> &'static [Algorithm];

    /// `C_CreateObject`: what the caller wrote.
    ///
    /// # Errors
    /// The module's code.
    fn create(&self, template: &Attributes, secrets: &Secrets) -> Result<Found>;

    /// `C_CopyObject`: row and changes.
    ///
    /// # Errors
    /// The module's code.
    fn copy(&self, row: u64, changes: &Attributes) -> Result<Found>;

    /// `C_GenerateKey`
    ///
    /// # Errors
    /// The module's code.
    fn generate(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        template: &Attributes,
    ) -> Result<Found>;

    /// `C_GenerateKeyPair`: the public key first.
    ///
    /// # Errors
    /// The module's code.
    fn generate_pair(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        public: &Attributes,
        private: &Attributes,
    ) -> Result<[Found; 2]>;
}
