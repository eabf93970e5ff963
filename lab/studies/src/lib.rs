// SPDX-License-Identifier: Apache-2.0
//! Code that the lab measures and nothing else may use: copies of memory by every instruction there is,
//! and ciphers as they were written years ago. The ciphers are insecure or leak through the cache; that
//! is the point of studying them.

pub mod aes;
#[cfg(target_arch = "x86_64")]
pub mod copy;
pub mod kasumi;
pub mod rc4;
pub mod rsa;
pub mod sha1;
#[cfg(test)]
mod testing;
#[cfg(target_arch = "x86_64")]
mod vector;
