// SPDX-License-Identifier: Apache-2.0
//! The key schedule (3GPP TS 35.202, section 4.6).

use std::array;

/// The keys of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) kl: [u16; 2],
    pub(super) ko: [u16; 3],
    pub(super) ki: [u16; 3],
}

/// What the key is added to for its second form.
const CONSTANTS: [u16; 8] = [0x0123, 0x4567, 0x89ab, 0xcdef, 0xfedc, 0xba98, 0x7654, 0x3210];

pub(super) fn expand(key: &[u8; 16]) -> [Round; 8] {
    let plain: [u16; 8] = array::from_fn(|n| u16::from_be_bytes([key[2 * n], key[2 * n + 1]]));
    let added: [u16; 8] = array::from_fn(|n| plain[n] ^ CONSTANTS[n]);
    array::from_fn(|n| {
        let plain = |ahead: usize| plain[(n + ahead) % 8];
        let added = |ahead: usize| added[(n + ahead) % 8];
        Round {
            kl: [plain(0).rotate_left(1), added(2)],
            ko: [plain(1).rotate_left(5), plain(5).rotate_left(8), plain(6).rotate_left(13)],
            ki: [added(4), added(3), added(7)],
        }
    })
}
