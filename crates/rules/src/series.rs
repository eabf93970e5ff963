// SPDX-License-Identifier: Apache-2.0
//! Series of IVs: which numbers of a key were taken. What a key was used for once it is not used for again, so a number is
//! noted before it is used, and none is given back.
//!
//! IVs of one length are `base XOR number`; those of a key have all as many fixed bits, or two series could meet.

use metaslot_ck::attribute::CKA_IV_SERIES;
use metaslot_ck::{Error, Result};
use metaslot_spi::{Attributes, Bytes, detail};
use std::ops::Range;

/// IVs of one key that differ in a number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Series {
    /// Empty for random IVs, which are only counted.
    base: Bytes,
    fixed_bits: u16,
    next: u64,
    end: u64,
    /// How many were taken from the store last.
    block: u64,
}

/// The series of a key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SeriesOfKey(Vec<Series>);

/// No key has more.
const MOST: usize = 256;
/// So many random IVs of one key (SP 800-38D §8.3).
const MOST_RANDOM: u64 = 1 << 32;
/// So many numbers a process takes from the store at first, or fewer where there are not 2^22 times as many: what it does not
/// use of them is lost. Afterwards it takes twice as many each time, so that it loses no more than it has used.
const FIRST_BLOCK: u64 = 1024;
const FIRST_BLOCKS: u32 = 22;
const LAST_BLOCK: u64 = 1 << 16;
const LAST_BLOCKS: u32 = 16;

impl Series {
    /// Random IVs.
    pub fn random() -> Self {
        Self { base: Bytes::new(), fixed_bits: 0, next: 0, end: MOST_RANDOM, block: 0 }
    }

    /// What makes a key that is a copy known: of its series nobody knows what the other has taken.
    fn copied() -> Self {
        Self { base: Bytes::new(), fixed_bits: 1, next: 0, end: 0, block: 0 }
    }

    /// IVs of a base whose first bits are fixed.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`
    pub fn counted(base: &[u8], fixed_bits: u64) -> Result<Self> {
        let bits = 8 * base.len() as u64;
        let (Some(free), Ok(fixed_bits), 1..=255) =
            (bits.checked_sub(fixed_bits), u16::try_from(fixed_bits), base.len())
        else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let end = u32::try_from(free).ok().and_then(|free| 1_u64.checked_shl(free));
        Ok(Self {
            base: Bytes::from_slice(base),
            fixed_bits,
            next: 0,
            end: end.unwrap_or(u64::MAX),
            block: 0,
        })
    }

    /// How many numbers of it to take from a store, after so many.
    fn block(&self, last: u64) -> u64 {
        let first = (self.end >> FIRST_BLOCKS).clamp(1, FIRST_BLOCK);
        let most = (self.end >> LAST_BLOCKS).clamp(first, LAST_BLOCK);
        last.saturating_mul(2).clamp(first, most)
    }

    /// Whether its IVs are random.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.base.is_empty()
    }

    /// The IV of a number.
    pub fn iv(&self, number: u64) -> Bytes {
        let mut iv = self.base.clone();
        for (byte, bits) in iv.iter_mut().rev().zip(number.to_le_bytes()) {
            *byte ^= bits;
        }
        iv
    }

    fn is(&self, other: &Self) -> bool {
        self.base == other.base && self.fixed_bits == other.fixed_bits
    }

    /// Whether both could give the same IV.
    fn meets(&self, other: &Self) -> bool {
        self.base.len() == other.base.len()
            && !self.is_random()
            && (self.fixed_bits != other.fixed_bits || self.begins_as(other))
    }

    fn begins_as(&self, other: &Self) -> bool {
        let same = self.base.iter().zip(&other.base).zip(0_u64..);
        same.fold(true, |all, ((one, two), at)| {
            all & ((one ^ two) & !free_bits(at, self.fixed_bits.into()) == 0)
        })
    }
}

/// No random part of an IV is shorter, in bits (SP 800-38D §8.2.2).
pub const RANDOM_BITS: u64 = 96;

/// Puts random bits behind the fixed ones.
pub fn randomize(iv: &mut [u8], fixed_bits: u64, random: &[u8]) {
    for ((byte, random), at) in iv.iter_mut().zip(random).zip(0..) {
        let free = free_bits(at, fixed_bits);
        *byte = *byte & !free | random & free;
    }
}

/// Which bits of a byte of an IV are not fixed.
pub fn free_bits(byte: u64, fixed_bits: u64) -> u8 {
    let fixed = fixed_bits.saturating_sub(8 * byte).min(8);
    u8::try_from(0xff_u16 >> fixed).unwrap_or(0)
}

impl SeriesOfKey {
    /// Those of a copy.
    pub fn of_copy() -> Self {
        Self(vec![Series::copied()])
    }

    /// Those that a key's attributes name.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn of(attributes: &Attributes) -> Result<Self> {
        attributes.bytes(CKA_IV_SERIES).map_or_else(|| Ok(Self::default()), Self::decode)
    }

    /// Refuses a series whose IVs could be those of another one.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`
    pub fn admits(&self, wanted: &Series) -> Result<()> {
        if !wanted.is_random() && self.0.iter().any(|series| series.is(&Series::copied())) {
            detail::set(format_args!(
                "the key is a copy: its counter would begin where that of the other one began"
            ));
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        if self.0.iter().any(|series| series.meets(wanted)) {
            detail::set(format_args!(
                "the key has counted IVs of this length from another base or fixed part: some would be the same"
            ));
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        Ok(())
    }

    /// Takes numbers of a series, as many as `most`.
    ///
    /// # Errors
    /// `CKR_KEY_EXHAUSTED`; `CKR_MECHANISM_PARAM_INVALID` where IVs of another series could be the same.
    pub fn take(&mut self, wanted: &Series, most: u64) -> Result<Range<u64>> {
        if let Some(series) = self.0.iter_mut().find(|series| series.is(wanted)) {
            return series.take(wanted.end, most);
        }
        self.admits(wanted)?;
        if self.0.len() >= MOST {
            return Err(Error::KEY_EXHAUSTED);
        }
        let mut series = wanted.clone();
        let range = series.take(wanted.end, most)?;
        self.0.push(series);
        Ok(range)
    }

    /// The next number of those that were taken of a series.
    pub fn next(&mut self, wanted: &Series) -> Option<u64> {
        let series = self.0.iter_mut().find(|series| series.is(wanted))?;
        series.take(series.end, 1).ok().map(|range| range.start)
    }

    /// How many numbers of a series to take from the store now.
    ///
    /// # Errors
    /// As [`Self::admits`], whatever the store knows: it may be an older one.
    pub fn block(&self, wanted: &Series) -> Result<u64> {
        let last = match self.0.iter().find(|series| series.is(wanted)) {
            Some(series) => series.block,
            None => self.admits(wanted).map(|()| 0)?,
        };
        Ok(wanted.block(last))
    }

    /// Notes that these were taken. What was used before is not used again, where an older copy of the store gives it.
    pub fn put(&mut self, wanted: &Series, range: Range<u64>) {
        let used = self.0.iter().find(|series| series.is(wanted)).map_or(0, |series| series.next);
        self.0.retain(|series| !series.is(wanted));
        let block = range.end - range.start;
        let (next, end) = (range.start.max(used), range.end.max(used));
        self.0.push(Series { next, end, block, ..wanted.clone() });
    }

    /// As an attribute has them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for Series { base, fixed_bits, next, .. } in &self.0 {
            out.push(u8::try_from(base.len()).unwrap_or(0));
            out.extend_from_slice(&fixed_bits.to_le_bytes());
            out.extend_from_slice(&next.to_le_bytes());
            out.extend_from_slice(base);
        }
        out
    }

    /// Those of an attribute.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` for what is none.
    pub fn decode(mut from: &[u8]) -> Result<Self> {
        let mut all = Vec::new();
        while let Some(([length, bits @ .., _, _, _, _, _, _, _, _], rest)) =
            from.split_first_chunk::<11>()
        {
            let next = from.get(3..).and_then(|from| from.first_chunk()).copied();
            let next = u64::from_le_bytes(next.unwrap_or_default());
            let (base, rest) =
                rest.split_at_checked(usize::from(*length)).ok_or(Error::DEVICE_ERROR)?;
            let (base, fixed_bits) = (Bytes::from_slice(base), u16::from_le_bytes(*bits));
            all.push(Series { base, fixed_bits, next, end: 0, block: 0 });
            from = rest;
        }
        if from.is_empty() { Ok(Self(all)) } else { Err(Error::DEVICE_ERROR) }
    }
}

impl Series {
    fn take(&mut self, end: u64, most: u64) -> Result<Range<u64>> {
        let start = self.next;
        if start >= end {
            return Err(Error::KEY_EXHAUSTED);
        }
        self.next = start.saturating_add(most).min(end);
        Ok(start..self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(base: &[u8], fixed_bits: u64) -> Series {
        Series::counted(base, fixed_bits).unwrap()
    }

    #[test]
    fn numbers_go_up_and_end() {
        let (mut key, wanted) = (SeriesOfKey::default(), counted(&[7, 0], 8));
        assert_eq!(key.take(&wanted, 200), Ok(0..200));
        let mut key = SeriesOfKey::decode(&key.encode()).unwrap();
        assert_eq!(key.take(&wanted, 200), Ok(200..256));
        assert_eq!(key.take(&wanted, 200), Err(Error::KEY_EXHAUSTED));
        assert_eq!(key.take(&counted(&[8, 0], 8), 1), Ok(0..1));
        assert_eq!(*wanted.iv(255), [7, 255]);
        assert_eq!(counted(&[0; 12], 96).end, 1);
        assert_eq!(Series::counted(&[0; 12], 97), Err(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(Series::counted(&[0; 256], 0), Err(Error::MECHANISM_PARAM_INVALID));
    }

    #[test]
    fn no_number_is_used_again_that_an_older_store_gives() {
        let (mut key, wanted) = (SeriesOfKey::default(), counted(&[0; 12], 64));
        let mut used = |range: Range<u64>| {
            key.put(&wanted, range);
            std::iter::from_fn(|| key.next(&wanted)).collect::<Vec<u64>>()
        };
        assert_eq!(used(4..6), [4, 5]);
        assert_eq!(used(0..4), [0; 0]);
        assert_eq!(used(4..8), [6, 7]);
        assert_eq!(used(8..9), [8]);
    }

    #[test]
    fn a_block_is_as_long_as_what_was_used_and_a_small_part_of_the_series() {
        let blocks = |fixed: u64| {
            let (mut key, wanted) = (SeriesOfKey::default(), counted(&[0; 12], fixed));
            let mut next = 0;
            [(); 8].map(|()| {
                let block = key.block(&wanted).unwrap();
                key.put(&wanted, next..next + block);
                next += block;
                block
            })
        };
        assert_eq!(blocks(0), [1024, 2048, 4096, 8192, 16384, 32768, 65536, 65536]);
        assert_eq!(blocks(64), blocks(0));
        assert_eq!(blocks(72), [4, 8, 16, 32, 64, 128, 256, 256]);
        assert_eq!(blocks(80), [1; 8]);
    }

    #[test]
    fn series_that_could_meet_are_refused() {
        let mut key = SeriesOfKey::default();
        key.take(&counted(&[0x70, 0], 4), 1).unwrap();
        let same = counted(&[0x71, 0], 4);
        assert_eq!(key.take(&same, 1), Err(Error::MECHANISM_PARAM_INVALID), "another base");
        let other = counted(&[0x80, 0], 5);
        assert_eq!(key.take(&other, 1), Err(Error::MECHANISM_PARAM_INVALID), "another length");
        assert_eq!(key.take(&counted(&[0x80, 1], 4), 1), Ok(0..1));
        assert_eq!(key.take(&counted(&[0x70, 0, 0], 8), 1), Ok(0..1));
        assert_eq!(key.take(&Series::random(), 1), Ok(0..1));
        assert_eq!(SeriesOfKey::of_copy().take(&same, 1), Err(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(SeriesOfKey::of_copy().take(&Series::random(), 1), Ok(0..1));
    }

    #[test]
    fn random_ivs_of_a_key_are_counted_to_their_end() {
        let mut stored = vec![0; 3];
        stored.extend((MOST_RANDOM - 1).to_le_bytes());
        let mut key = SeriesOfKey::decode(&stored).unwrap();
        let wanted = Series::random();
        assert_eq!(key.take(&wanted, 1024), Ok(MOST_RANDOM - 1..MOST_RANDOM));
        let before = key.encode();
        assert_eq!(key.take(&wanted, 1024), Err(Error::KEY_EXHAUSTED));
        assert_eq!(key.encode(), before);
    }

    #[test]
    fn a_key_has_so_many_series_and_no_more() {
        let mut key = SeriesOfKey::default();
        let wanted = |number: usize| counted(&number.to_be_bytes(), 56);
        for number in 0..MOST {
            key.take(&wanted(number << 8), 1).unwrap();
        }
        assert_eq!(key.take(&wanted(MOST << 8), 1), Err(Error::KEY_EXHAUSTED));
        assert_eq!(key.take(&wanted(0), 1), Ok(1..2));
    }

    #[test]
    fn what_is_no_series_is_an_error() {
        let mut key = SeriesOfKey::of_copy();
        key.take(&Series::random(), 3).unwrap();
        let whole = key.encode();
        for length in 0..whole.len() {
            let there = SeriesOfKey::decode(&whole[..length]).is_ok();
            assert_eq!(there, length == 0 || length == 11, "{length}");
        }
        assert_eq!(SeriesOfKey::decode(&whole).unwrap().encode(), whole);
    }

    #[test]
    fn of_each_byte_the_bits_after_the_fixed_ones_are_free() {
        assert_eq!([0, 1, 2].map(|byte| free_bits(byte, 12)), [0, 0x0f, 0xff]);
    }
}
