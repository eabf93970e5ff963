// SPDX-License-Identifier: Apache-2.0
//! What callers ask for.

use super::{PrivateKey, PublicKey};
use metaslot_awslc_wrapper::Failed;

/// A private operation.
#[derive(Debug)]
pub struct PrivateRequest<'a> {
    /// Of whom.
    pub key: &'a PrivateKey,
    /// As long as the modulus, big-endian, and below it.
    pub input: &'a [u8],
    /// As long as the modulus; written only when all is well.
    pub output: &'a mut [u8],
    /// How it went.
    pub result: Result<(), Failed>,
}

/// A public operation.
#[derive(Debug)]
pub struct PublicRequest<'a> {
    /// For whom.
    pub key: &'a PublicKey,
    /// As long as the modulus, big-endian, and below it.
    pub input: &'a [u8],
    /// As long as the modulus; written only when all is well.
    pub output: &'a mut [u8],
    /// How it went.
    pub result: Result<(), Failed>,
}
