// SPDX-License-Identifier: Apache-2.0
//! A block cipher with its key, as the modes see it: one type for all, so that the modes are compiled once.

use cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use metaslot_awslc_wrapper::aes::Way;
use metaslot_awslc_wrapper::des;
use metaslot_ck::{Error, Result};
use metaslot_memory::Held;
use std::fmt::Debug;
use std::sync::Arc;

/// The longest block, in bytes.
pub(crate) const LONGEST: usize = 16;

/// A key schedule in protected memory.
pub(crate) trait Blocks: Debug + Send + Sync {
    /// Length of a block, in bytes.
    fn length(&self) -> usize;

    /// Whole blocks in their place, each on its own. What that leaves in the stack is the caller's to wipe.
    fn run(&self, way: Way, blocks: &mut [u8]) -> Result<()>;
}

/// A cipher that is a Rust library's.
pub(crate) trait Library:
    BlockCipherEncrypt + BlockCipherDecrypt + Send + Sync + 'static
{
}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt + Send + Sync + 'static> Library for C {}

impl<C: Library> Blocks for Held<C> {
    fn length(&self) -> usize {
        C::block_size()
    }

    fn run(&self, way: Way, blocks: &mut [u8]) -> Result<()> {
        let cipher = self.get().ok_or(Error::DEVICE_REMOVED)?;
        for block in blocks.chunks_exact_mut(C::block_size()) {
            let block = <&mut Block<C>>::try_from(block).map_err(|_| Error::DATA_LEN_RANGE)?;
            match way {
                Way::Encrypt => cipher.encrypt_block(block),
                Way::Decrypt => cipher.decrypt_block(block),
            }
        }
        Ok(())
    }
}

/// The schedule of a library's cipher.
pub(crate) fn held<C: Library>(make: impl FnOnce() -> Option<C>) -> Result<Arc<dyn Blocks>> {
    let made = Held::new(Error::DEVICE_MEMORY, || make().ok_or(Error::KEY_SIZE_RANGE))?;
    Ok(Arc::new(made))
}

/// The schedule of a library's cipher that takes a key and nothing else.
pub(crate) fn keyed<C: Library + KeyInit>(key: &[u8]) -> Result<Arc<dyn Blocks>> {
    held(|| C::new_from_slice(key).ok())
}

impl Blocks for des::Keys {
    fn length(&self) -> usize {
        des::BLOCK
    }

    fn run(&self, way: Way, blocks: &mut [u8]) -> Result<()> {
        self.in_place(way, blocks);
        Ok(())
    }
}
