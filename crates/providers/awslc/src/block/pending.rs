// SPDX-License-Identifier: Apache-2.0
//! Cutting a stream into whole blocks.

/// Bytes that wait for their block to be full.
#[derive(Debug)]
pub(super) struct Pending<const N: usize> {
    block: [u8; N],
    length: usize,
    /// Keep the last full block back: its padding must be looked at.
    hold_last: bool,
}

impl<const N: usize> Drop for Pending<N> {
    fn drop(&mut self) {
        metaslot_awslc_wrapper::cleanse(&mut self.block);
    }
}

impl<const N: usize> Pending<N> {
    pub(super) const fn new(hold_last: bool) -> Self {
        Self { block: [0; N], length: 0, hold_last }
    }

    /// What waits.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.block[..self.length]
    }

    /// How many bytes [`Self::update`] will write.
    pub(super) const fn ready(&self, input: usize) -> usize {
        let total = self.length + input;
        let rest = total % N;
        if self.hold_last && rest == 0 && total > 0 { total - N } else { total - rest }
    }

    /// Hands whole blocks to `process` and keeps the rest.
    pub(super) fn update(
        &mut self,
        mut input: &[u8],
        mut out: &mut [u8],
        mut process: impl FnMut(&[u8], &mut [u8]),
    ) {
        let mut ready = self.ready(input.len());
        if ready > 0 && self.length > 0 {
            let (head, rest) = input.split_at(N - self.length);
            self.block[self.length..].copy_from_slice(head);
            let (first, others) = out.split_at_mut(N);
            process(&self.block, first);
            (input, out, ready) = (rest, others, ready - N);
            self.length = 0;
        }
        let (whole, rest) = input.split_at(ready);
        process(whole, &mut out[..ready]);
        self.block[self.length..self.length + rest.len()].copy_from_slice(rest);
        self.length += rest.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_gives_the_same_blocks() {
        let data: Vec<u8> = (0..64).collect();
        for hold in [false, true] {
            for cut in 0..=64 {
                for second in cut..=64 {
                    let mut pending = Pending::<16>::new(hold);
                    let mut out = Vec::new();
                    for part in [&data[..cut], &data[cut..second], &data[second..]] {
                        let mut place = vec![0; pending.ready(part.len())];
                        pending.update(part, &mut place, |from, to| to.copy_from_slice(from));
                        out.extend_from_slice(&place);
                    }
                    let held = if hold { 16 } else { 0 };
                    assert_eq!(out, data[..64 - held]);
                    assert_eq!(pending.bytes(), &data[64 - held..]);
                }
            }
        }
    }
}
