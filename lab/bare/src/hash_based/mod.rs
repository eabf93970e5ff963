// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA, HSS and XMSS as their standards write them down, one hash after the other by the library's functions: it has none of
//! them itself. Each hash is of its whole input; what many inputs have in common is hashed anew each time.

mod slh_dsa;
mod trees;

pub use slh_dsa::SlhDsa;
pub use trees::{hss_public, xmss_public};

/// A node of `N` bytes: the beginning of a hash.
type Node<const N: usize> = [u8; N];

/// The beginning of SHA-256 of the parts.
#[inline(always)]
fn sha256<const N: usize>(parts: &[&[u8]]) -> Node<N> {
    let mut digest = [0; 32];
    whole(parts, |whole| crate::sha256(whole, &mut digest));
    std::array::from_fn(|at| digest[at])
}

/// What the longest of all but few is, and what all ends of the chains of a key are at most, in bytes.
const USUAL: usize = 128;
const LONGEST: usize = 1024;

/// Hashes the parts as one. What makes them one should cost little beside the hash, which takes some dozens of nanoseconds: so there
/// is no more room than is needed, and where the parts' lengths are known to the compiler it need not ask for them.
#[inline(always)]
fn whole(parts: &[&[u8]], hash: impl FnOnce(&[u8])) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length <= USUAL {
        hash(joined(&mut [0; USUAL], parts));
    } else {
        hash(joined(&mut [0; LONGEST], parts));
    }
}

#[inline(always)]
fn joined<'a>(room: &'a mut [u8], parts: &[&[u8]]) -> &'a [u8] {
    let mut length = 0;
    for part in parts {
        room[length..][..part.len()].copy_from_slice(part);
        length += part.len();
    }
    &room[..length]
}

/// A tree over its leaves: its root, and the nodes beside the way up from one leaf. `join` is told the height of the node that it
/// makes, and its place from the left.
fn grow<const N: usize>(
    height: u32,
    from: u32,
    leaf: impl Fn(u32) -> Node<N>,
    join: impl Fn(u32, u32, &Node<N>, &Node<N>) -> Node<N>,
) -> (Node<N>, Vec<Node<N>>) {
    let mut nodes: Vec<Node<N>> = (0..1 << height).map(leaf).collect();
    let mut path = Vec::new();
    for level in 0..height {
        path.push(nodes[(from >> level ^ 1) as usize]);
        let pairs = (0..).zip(nodes.as_chunks::<2>().0);
        nodes = pairs.map(|(at, [left, right])| join(level + 1, at, left, right)).collect();
    }
    (nodes[0], path)
}

/// The digits of four bits of a node, and of the sum of what they lack.
fn digits(node: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = node.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let sum: u16 = digits.iter().map(|digit| u16::from(15 - digit)).sum();
    let [high, low] = sum.to_be_bytes();
    digits.extend([high & 15, low >> 4, low & 15]);
    digits
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    pub(super) fn vectors(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    pub(super) fn hex(value: &Value) -> Vec<u8> {
        let digits = value.as_str().unwrap().as_bytes();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }
}
