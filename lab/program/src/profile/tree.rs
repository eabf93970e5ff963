// SPDX-License-Identifier: Apache-2.0
//! Folded stacks as a tree: what a flame graph draws.

use super::Folded;
use std::collections::BTreeMap;

/// A function in one place of the tree, and the samples in it and below.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) samples: u64,
    pub(super) below: BTreeMap<String, Self>,
}

impl Node {
    /// The root of all stacks.
    pub(super) fn of(folded: &Folded) -> Self {
        let mut root = Self::default();
        for (stack, count) in folded.stacks() {
            let mut node = &mut root;
            node.samples += count;
            for name in stack {
                node = node.below.entry(name.clone()).or_default();
                node.samples += count;
            }
        }
        root
    }

    /// How many rows the frames with at least so many samples take.
    pub(super) fn depth(&self, fewest: f64) -> usize {
        let drawn = self.below.values().filter(|node| node.samples as f64 >= fewest);
        drawn.map(|node| 1 + node.depth(fewest)).max().unwrap_or(0)
    }
}
