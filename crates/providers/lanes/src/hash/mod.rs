// SPDX-License-Identifier: Apache-2.0
//! MD5, SHA-1, SHA-2, SHA-3 and HMAC over them: a message per lane, each of its own length, each HMAC with its own key.
//!
//! With AVX-512 there are 16 lanes of 32-bit words (MD5: 32) and 8 of 64-bit words, with AVX2 half as many. The functions are
//! written once, over a vector of words ([`vector::Vector`]).
//!
//! Constant time: additions, rotations and logic of whole vectors only. What the time depends on is the lengths, which are
//! no secret. States and copies of messages are wiped before a call returns; prepared keys lie in protected memory.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
pub(crate) mod beside;
mod chain;
mod hmac;
mod keccak;
mod kernel;
mod key;
pub(crate) mod many;
#[cfg(target_arch = "x86_64")]
mod md5;
mod one;
#[cfg(target_arch = "x86_64")]
mod pair;
mod rows;
#[cfg(target_arch = "x86_64")]
mod sha1;
mod sha2;
mod shape;
#[cfg(target_arch = "x86_64")]
mod short;
pub(crate) mod squeeze;
#[rustfmt::skip]
mod tables;
#[cfg(test)]
mod tests;
mod vector;

use crate::cpu::{Cpu, cpu};
use batch::Job;
use kernel::Kernel;
pub use key::Key;
pub use metaslot_awslc_wrapper::digest::Hash;
use metaslot_memory::wiping;
use shape::Shape;

/// A message to be hashed.
#[derive(Debug)]
pub struct Request<'a> {
    /// The whole message.
    pub data: &'a [u8],
    /// Takes the digest: exactly [`Hash::length`] bytes.
    pub output: &'a mut [u8],
}

/// A message to be authenticated.
#[derive(Debug)]
pub struct MacRequest<'a> {
    /// The key, prepared for the function of the call.
    pub key: &'a Key,
    /// The whole message.
    pub data: &'a [u8],
    /// Takes the MAC, at most [`Hash::length`] bytes; a shorter one is truncated.
    pub output: &'a mut [u8],
}

/// The instructions that it takes at least; [`Cpu::AVX512`] doubles the lanes.
pub const NEEDS: Cpu = Cpu::AVX2;

/// How many requests the function takes side by side on this processor; 0 when there are no instructions for it.
#[must_use]
pub fn lanes(hash: Hash) -> usize {
    Kernel::choose(Shape::of(hash).core, cpu(), usize::MAX).map_or(0, |kernel| kernel.lanes)
}

/// Whether this processor has the instructions for [`digest`] and [`hmac`].
#[must_use]
pub fn available() -> bool {
    Hash::ALL.into_iter().all(|hash| lanes(hash) > 0)
}

/// Hashes any number of messages, [`lanes`] at a time. A message of another length is welcome: the lane of a short one takes
/// the next.
///
/// # Panics
/// When [`lanes`] is 0, or an output has not the digest's length.
pub fn digest(hash: Hash, requests: &mut [Request<'_>]) {
    let length = hash.length();
    assert!(requests.iter().all(|request| request.output.len() == length));
    run(hash, requests);
}

/// The MACs of any number of messages, [`lanes`] at a time.
///
/// # Panics
/// When [`lanes`] is 0, a key is for another function, or an output is longer than the digest.
pub fn hmac(hash: Hash, requests: &mut [MacRequest<'_>]) {
    let length = hash.length();
    assert!(requests.iter().all(|request| request.output.len() <= length));
    assert!(requests.iter().all(|request| request.key.hash() == hash));
    wiping(|| run(hash, requests));
}

fn run<J: Job>(hash: Hash, jobs: &mut [J]) {
    let shape = Shape::of(hash);
    let kernel = Kernel::choose(shape.core, cpu(), jobs.len()).expect("the function has lanes");
    batch::run(shape, kernel, jobs);
}

impl Job for Request<'_> {
    fn data(&self) -> &[u8] {
        self.data
    }

    fn output(&mut self) -> &mut [u8] {
        self.output
    }

    fn key(&self) -> Option<&Key> {
        None
    }
}

impl Job for MacRequest<'_> {
    fn data(&self) -> &[u8] {
        self.data
    }

    fn output(&mut self) -> &mut [u8] {
        self.output
    }

    fn key(&self) -> Option<&Key> {
        Some(self.key)
    }
}
