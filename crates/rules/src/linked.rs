// SPDX-License-Identifier: Apache-2.0
//! `CKA_PUBLIC_CRC64_VALUE`: by what one half of a pair finds the other.

use metaslot_ck::*;
use metaslot_spi::field_key::public_value;
use metaslot_spi::{Attributes, Value, detail};

/// Of ECMA-182, without its highest bit.
const POLYNOMIAL: u64 = 0x42f0_e1eb_a9ea_3693;

/// A sum after as many more zero bits.
const fn after(mut sum: u64, bits: u32) -> u64 {
    let mut bit = 0;
    while bit < bits {
        sum = (sum << 1) ^ (POLYNOMIAL * (sum >> 63));
        bit += 1;
    }
    sum
}

/// What each half of a byte of a sum's upper word, the lowest first, is after 32 bits.
static HALVES: [[u64; 16]; 8] = {
    let mut halves = [[0; 16]; 8];
    let mut at = 0;
    while at < 128 {
        halves[at / 16][at % 16] = after((at as u64 % 16) << (32 + at / 16 * 4), 32);
        at += 1;
    }
    halves
};

/// CRC-64 of ECMA-182: from zero, the highest bit first. Four bytes at a time, for pairs that live as long as a handshake are summed, too.
fn crc64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(0_u64, |sum, word| {
        let upper = (sum >> 32) ^ u64::from(u32::from_be_bytes(*word));
        HALVES
            .iter()
            .enumerate()
            .fold(sum << 32, |all, (at, half)| all ^ half[(upper >> (4 * at) & 15) as usize])
    });
    rest.iter().fold(sum, |sum, byte| after(sum ^ (u64::from(*byte) << 56), 8))
}

/// Sets the attribute of a half of a pair: the sum of the public value, in the order of the network, of an RSA key of the modulus
/// (PKCS#11 3.2 §4.8, §4.9, §6.1). A public key on a curve has no `CKA_VALUE`, and the standard says nothing else of it: the sum is
/// that of the bits of its point.
///
/// # Errors
/// `CKR_ATTRIBUTE_VALUE_INVALID` where the application brought the sum of another key.
pub(crate) fn link(half: &mut Attributes) -> Result<()> {
    let info = half.bytes(CKA_PUBLIC_KEY_INFO);
    let value = info.and_then(|info| public_value(half.ulong(CKA_KEY_TYPE), info));
    let Some(value) = half.bytes(CKA_MODULUS).or(value) else {
        return Ok(());
    };
    let sum = Value::Bytes(crc64(value).to_be_bytes().to_vec());
    if half.get(CKA_PUBLIC_CRC64_VALUE).is_some_and(|said| *said != sum) {
        detail::set(format_args!("its CKA_PUBLIC_CRC64_VALUE is that of another key"));
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    half.set(CKA_PUBLIC_CRC64_VALUE, sum);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_ecma_182() {
        assert_eq!(crc64(b""), 0);
        assert_eq!(crc64(b"123456789"), 0x6c40_df5f_0b49_7347);
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..256 {
            let one = |sum: u64, byte: &u8| after(sum ^ (u64::from(*byte) << 56), 8);
            assert_eq!(crc64(&bytes[..length]), bytes[..length].iter().fold(0, one), "{length}");
        }
    }

    #[test]
    fn the_sum_is_of_the_modulus_and_of_the_bits_of_a_point() {
        let linked = |half: &[(CK_ATTRIBUTE_TYPE, Value)]| {
            let mut half: Attributes = half.iter().cloned().collect();
            link(&mut half).map(|()| half.bytes(CKA_PUBLIC_CRC64_VALUE).map(<[u8]>::to_vec))
        };
        let sum = Ok(Some(0x6c40_df5f_0b49_7347_u64.to_be_bytes().to_vec()));
        let digits = b"123456789";
        assert_eq!(linked(&[(CKA_MODULUS, Value::Bytes(digits.to_vec()))]), sum);
        let info = [&[0x30, 14, 0x30, 0, 3, 10, 0][..], digits].concat();
        let point =
            [(CKA_KEY_TYPE, Value::Ulong(CKK_EC)), (CKA_PUBLIC_KEY_INFO, Value::Bytes(info))];
        assert_eq!(linked(&point), sum);
    }
}
