// SPDX-License-Identifier: Apache-2.0
//! Puts the tables of a provider's files together, at compile time.

use crate::provider::Algorithm;

/// How many rows the parts have together.
#[must_use]
pub const fn count(parts: &[&[Algorithm]]) -> usize {
    let mut sum = 0;
    let mut part = 0;
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// The rows of all parts, sorted by mechanism.
#[must_use]
pub const fn merged<const N: usize>(parts: &[&[Algorithm]]) -> [Algorithm; N] {
    let mut rows = [Algorithm::NONE; N];
    let mut filled = 0;
    let mut part = 0;
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            let row = parts[part][at];
            let mut place = filled;
            while place > 0 && rows[place - 1].mechanism > row.mechanism {
                rows[place] = rows[place - 1];
                place -= 1;
            }
            rows[place] = row;
            filled += 1;
            at += 1;
        }
        part += 1;
    }
    rows
}
