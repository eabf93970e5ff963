// SPDX-License-Identifier: Apache-2.0
//! Cutting a stream into whole blocks.

use metaslot_awslc_wrapper::cleanse;
use metaslot_ck::Result;
use metaslot_kernel_wrapper::cipher::BLOCK;

/// Bytes that wait for their block to be full.
#[derive(Debug)]
pub(crate) struct Pending {
    block: [u8; BLOCK],
    length: usize,
    /// Keep the last full block back: its padding must be looked at.
    hold_last: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        cleanse(&mut self.block);
    }
}

impl Pending {
    pub(crate) const fn new(hold_last: bool) -> Self {
        Self { block: [0; BLOCK], length: 0, hold_last }
    }

    /// What waits.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block[..self.length]
    }

    /// How many bytes [`Self::update`] will write.
    pub(crate) const fn ready(&self, input: usize) -> usize {
        let total = self.length + input;
        let rest = total % BLOCK;
        if self.hold_last && rest == 0 && total > 0 { total - BLOCK } else { total - rest }
    }

    /// Hands whole blocks to `process` and keeps the rest.
    pub(crate) fn update(
        &mut self,
        mut input: &[u8],
        mut out: &mut [u8],
        mut process: impl FnMut(&[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut ready = self.ready(input.len());
        if ready > 0 && self.length > 0 {
            let (head, rest) = input.split_at(BLOCK - self.length);
            self.block[self.length..].copy_from_slice(head);
            let (first, others) = out.split_at_mut(BLOCK);
            process(&self.block, first)?;
            (input, out, ready) = (rest, others, ready - BLOCK);
            self.length = 0;
        }
        let (whole, rest) = input.split_at(ready);
        process(whole, &mut out[..ready])?;
        self.block[self.length..self.length + rest.len()].copy_from_slice(rest);
        self.length += rest.len();
        Ok(())
    }
}
