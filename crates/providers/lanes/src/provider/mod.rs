// SPDX-License-Identifier: Apache-2.0
//! The provider: rows for what the kernels compute, over the rows of a plain provider, which does the same one at a time.
//!
//! An operation that waits (`C_Sign` in an ordinary session) goes through the combiner's blocking door where a
//! batch can win over a switch of threads; one of an asynchronous session through the other. What neither suits, the
//! plain provider's row does, with the key that it has prepared.

#[cfg(target_arch = "x86_64")]
mod aes;
mod agree;
mod batch;
mod binary;
#[cfg(target_arch = "x86_64")]
mod des;
mod digest;
mod ecdh;
mod ecdsa;
mod eddsa;
mod hashed;
mod hmac;
mod one_of;
mod over;
mod prime;
#[cfg(target_arch = "x86_64")]
mod rc4;
mod rsa;
mod x25519;

use self::over::{Ciphering, Over};
use crate::cpu::{self, Cpu};
#[cfg(target_arch = "x86_64")]
use crate::data::Way;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Direction, Provider};
use metaslot_spi::{Key, NewObject};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The kernels as a provider beside a plain one.
#[derive(Debug)]
pub struct Lanes {
    plain: &'static dyn Provider,
    table: OnceLock<Table>,
}

/// The rows, and for each mechanism the instructions without which its lanes do nothing.
#[derive(Debug)]
struct Table {
    rows: Vec<Algorithm>,
    needs: Vec<(CK_MECHANISM_TYPE, Cpu)>,
}

impl Lanes {
    /// For a static.
    #[must_use]
    pub const fn beside(plain: &'static dyn Provider) -> Self {
        Self { plain, table: OnceLock::new() }
    }
}

impl Lanes {
    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let families = families(Plain(self.plain.algorithms()));
            let needs = |(rows, needs): &(Vec<Algorithm>, Cpu)| -> Vec<_> {
                rows.iter().map(|row| (row.mechanism, *needs)).collect()
            };
            let needs = families.iter().flat_map(needs).collect();
            let rows = families.into_iter().flat_map(|family| family.0).collect();
            Table { rows: one_of::joined(rows), needs }
        })
    }
}

/// The rows of each family of kernels, and what it needs.
fn families(plain: Plain) -> Vec<(Vec<Algorithm>, Cpu)> {
    vec![
        #[cfg(target_arch = "x86_64")]
        (aes::rows(plain), crate::aes::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (des::rows(plain), crate::des::NEEDS),
        (digest::rows(plain), crate::hash::NEEDS),
        (ecdh::rows(plain), crate::p256::NEEDS),
        (ecdsa::rows(plain), crate::p256::NEEDS),
        (eddsa::rows(plain), crate::curve25519::NEEDS),
        (hmac::rows(plain), crate::hash::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (rc4::rows(plain), Cpu::NONE),
        (rsa::rows(plain), crate::rsa::NEEDS),
        (x25519::rows(plain), crate::curve25519::NEEDS),
        // After those of prime curves, which are asked first and far more often.
        (binary::rows(), Cpu::NONE),
    ]
}

impl Provider for Lanes {
    fn name(&self) -> &'static str {
        "lanes"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &self.table().rows
    }

    fn remark(&self, mechanism: CK_MECHANISM_TYPE) -> String {
        let row = self.table().needs.iter().find(|row| row.0 == mechanism);
        row.and_then(|row| cpu::lacks(row.1)).unwrap_or_default()
    }

    fn complete(&self, key: &mut NewObject) -> Result<()> {
        binary::complete(key)
    }

    fn encode_private_key(&self, key: &Key) -> Result<Secret> {
        binary::encode(key)
    }

    fn decode_private_key(&self, der: &[u8]) -> Result<NewObject> {
        binary::decode(der)
    }
}

/// In the place of [`Lanes`] where the configuration leaves them out.
#[derive(Debug)]
pub struct Off;

impl Provider for Off {
    fn name(&self) -> &'static str {
        "lanes"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &[]
    }

    fn remark(&self, _: CK_MECHANISM_TYPE) -> String {
        String::from("the configuration leaves the lanes out")
    }
}

/// The rows beneath.
#[derive(Clone, Copy)]
struct Plain(&'static [Algorithm]);

impl Plain {
    fn row(self, mechanism: CK_MECHANISM_TYPE) -> Option<&'static Algorithm> {
        self.0.iter().find(|row| row.mechanism == mechanism)
    }

    /// A row over that of a cipher, for both directions.
    fn cipher<C: Ciphering + 'static>(
        self,
        mechanism: CK_MECHANISM_TYPE,
        over: impl FnOnce(&'static dyn Cipher) -> C,
    ) -> Option<Algorithm> {
        let row = self.row(mechanism)?;
        let cipher = kept(Over(over(row.encrypt?)));
        Some(Algorithm {
            mechanism,
            key_sizes: row.key_sizes,
            encrypt: Some(cipher),
            decrypt: Some(cipher),
            ..Algorithm::NONE
        })
    }
}

#[cfg(target_arch = "x86_64")]
impl From<Direction> for Way {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Encrypt,
            Direction::Backward => Self::Decrypt,
        }
    }
}

/// A value that lives as long as the process, as rows need it; each is made once.
fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A key for the time of a job: borrowed while a thread waits, shared when nobody does.
enum Held<'a> {
    Borrowed(&'a Key),
    Shared(Arc<Key>),
}

impl Deref for Held<'_> {
    type Target = Key;

    fn deref(&self) -> &Key {
        match self {
            Self::Borrowed(key) => key,
            Self::Shared(key) => key,
        }
    }
}

/// Requests side by side in a vector of 64-bit words; more in one call share an inversion at most.
const WIDTH: usize = 8;

/// From how many jobs on the lanes take less processor time than one job after the other, and from how many threads per core on
/// that pays for their waiting; measured (`metaslot lab lanes`).
#[derive(Clone, Copy, Debug)]
struct Wins {
    jobs: usize,
    threads: usize,
}

impl From<usize> for Wins {
    /// Where so many jobs pay for their waiting too.
    fn from(jobs: usize) -> Self {
        Self { jobs, threads: jobs }
    }
}

impl Wins {
    /// Without the instructions nothing wins.
    const fn when(self, available: bool) -> Self {
        if available { self } else { Self { jobs: usize::MAX, threads: usize::MAX } }
    }
}

/// A message for the time of a job: borrowed while a thread waits, a copy that is wiped when nobody does.
enum Message<'a> {
    Borrowed(&'a [u8]),
    Copied(Secret),
}

impl Message<'_> {
    fn copy(data: &[u8]) -> Result<Self> {
        Secret::try_copy_of(data).map(Self::Copied).ok_or(Error::DEVICE_MEMORY)
    }
}

impl Deref for Message<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(data) => data,
            Self::Copied(copy) => copy.expose(),
        }
    }
}

/// Writes a result to where the caller wants it.
fn put(result: &[u8], out: &mut [u8]) -> Result<usize> {
    out.get_mut(..result.len()).ok_or(Error::BUFFER_TOO_SMALL)?.copy_from_slice(result);
    Ok(result.len())
}

/// For failures that no input explains.
fn device_error(_: metaslot_awslc_wrapper::Failed) -> Error {
    Error::DEVICE_ERROR
}
