// SPDX-License-Identifier: Apache-2.0
//! Records of TLS by CBC, which have a MAC and padding inside (RFC 5246 §6.2.3.2): both are taken off in the same time, whatever they are, so
//! that no one who changes a record learns where it is wrong.

/// Numbers of versions; DTLS's are larger.
pub(crate) const SSL3: i64 = 0x300;
pub(crate) const TLS1: i64 = 0x301;

/// The longest MAC.
pub(crate) const MAC: usize = 64;

/// Where the data ends, as long as the padding is right, and the MAC, or what is random where it is wrong. `None` where the record is too short for
/// any, as everybody sees, or has no MAC and a wrong padding.
pub(crate) fn opened(
    record: &[u8],
    block: usize,
    mac: usize,
    version: i64,
    random: &[u8; MAC],
) -> Option<(usize, Vec<u8>)> {
    let (whole, random) = (record.len(), random.get(..mac)?);
    let least = whole.checked_sub(mac + 1)?;
    let padding = usize::from(*record.last()?);
    let mut wrong = above(padding, least);
    if version == SSL3 {
        wrong |= above(padding + 1, block);
    } else {
        // Every byte that may be of the padding is looked at.
        for (place, byte) in record.iter().rev().take(256).enumerate() {
            let is_padding = !above(place, padding);
            wrong |= is_padding & differs(usize::from(*byte), padding);
        }
    }
    if mac == 0 && wrong != 0 {
        // What is encrypted was authenticated before: no one else learns by this that the padding is wrong.
        return None;
    }
    // Of a wrong padding nothing is taken off.
    let end = whole - mac - (!wrong & (padding + 1));
    let mut found = vec![0; mac];
    // Where the MAC may begin.
    let first = whole.saturating_sub(mac + 256);
    for (place, byte) in record.iter().enumerate().skip(first) {
        for (at, out) in found.iter_mut().enumerate() {
            let is_here = !differs(place, end + at);
            *out |= byte & low(is_here);
        }
    }
    for (byte, other) in found.iter_mut().zip(random) {
        *byte = *byte & !low(wrong) | other & low(wrong);
    }
    Some((end, found))
}

/// All bits where one number is larger than the other, else none. Both are far from the largest.
fn above(one: usize, other: usize) -> usize {
    let difference = std::hint::black_box(other.wrapping_sub(one));
    (difference >> (usize::BITS - 1)).wrapping_neg()
}

/// All bits where they differ, else none.
fn differs(one: usize, other: usize) -> usize {
    let difference = std::hint::black_box(one ^ other);
    ((difference | difference.wrapping_neg()) >> (usize::BITS - 1)).wrapping_neg()
}

const fn low(mask: usize) -> u8 {
    mask.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_and_mac_are_taken_off_where_they_are_right() {
        for data in 0..40 {
            for padding in
                (0..=255_u8).filter(|padding| (data + 20 + usize::from(*padding) + 1) % 16 == 0)
            {
                let mut record = vec![1; data];
                record.extend(0..20);
                record.resize(record.len() + usize::from(padding) + 1, padding);
                let random = [0xee; MAC];
                let right = opened(&record, 16, 20, 0x303, &random).expect("long enough");
                assert_eq!(right, (data, (0..20).collect()), "{padding}");
                for changed in [1, usize::from(padding) / 2 + 1, usize::from(padding)] {
                    if changed > usize::from(padding) {
                        continue;
                    }
                    let mut wrong = record.clone();
                    let place = wrong.len() - 1 - changed;
                    wrong[place] ^= 1;
                    let (length, mac) =
                        opened(&wrong, 16, 20, 0x303, &random).expect("long enough");
                    assert_eq!((length, mac), (record.len() - 20, vec![0xee; 20]));
                }
            }
        }
        assert_eq!(opened(&[0; 20], 16, 20, 0x303, &[0; MAC]), None);
        assert_eq!(opened(&[15; 16], 16, 0, 0x303, &[0; MAC]), Some((0, vec![])));
        assert_eq!(opened(&[16; 16], 16, 0, 0x303, &[0; MAC]), None);
        let wrong = [[7; 16], [2; 16]].concat();
        assert_eq!(opened(&wrong, 16, 0, 0x303, &[0; MAC]), Some((29, vec![])));
        assert_eq!(opened(&wrong[..20], 16, 0, 0x303, &[0; MAC]), Some((17, vec![])));
        assert_eq!(opened(&[[7; 16], [9; 16]].concat()[..20], 16, 0, 0x303, &[0; MAC]), None);
    }
}
