// SPDX-License-Identifier: Apache-2.0
//! Several streams in one loop: what one of them waits for, another one can do meanwhile.

use super::versions::version_2;
use super::{Element, State};

/// Bytes that are gathered before they are stored.
const WORD: usize = 8;

/// Applies each stream to its data. As long as all have data they take turns byte by byte; what a
/// longer one has left is done alone.
#[inline(never)]
pub(super) fn interleaved<T: Element, const N: usize>(
    states: &mut [State<T>; N],
    mut data: [&mut [u8]; N],
) {
    let common = data.iter().map(|data| data.len() / WORD).min().unwrap_or(0);
    let mut i = states.each_ref().map(|state| usize::from(state.i));
    let mut j = states.each_ref().map(|state| usize::from(state.j));
    for place in (0..common * WORD).step_by(WORD) {
        let mut words = [0_u64; N];
        for at in 0..WORD {
            for n in 0..N {
                let state = &mut states[n];
                i[n] = (i[n] + 1) & 0xff;
                let x = state.at(i[n]);
                j[n] = (j[n] + x) & 0xff;
                let y = state.at(j[n]);
                state.put(i[n], y);
                state.put(j[n], x);
                words[n] |= (state.at(x + y) as u64) << (8 * at);
            }
        }
        for (data, word) in data.iter_mut().zip(words) {
            let data = &mut data[place..place + WORD];
            data.iter_mut().zip(word.to_le_bytes()).for_each(|(byte, stream)| *byte ^= stream);
        }
    }
    for n in 0..N {
        (states[n].i, states[n].j) = (i[n].to_le_bytes()[0], j[n].to_le_bytes()[0]);
        version_2(&mut states[n], &mut data[n][common * WORD..]);
    }
}
