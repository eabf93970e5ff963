// SPDX-License-Identifier: Apache-2.0
//! `CKA_PUBLIC_CRC64_VALUE`: by what one half of a pair finds the other.

use metaslot_ck::*;
use metaslot_spi::field_key::public_value;
use metaslot_spi::{Attributes, Value, detail};

/// Of ECMA-182, without its highest bit.
const POLYNOMIAL: u64 = 0x42f0_e1eb_a9ea_3693;

/// What each byte makes of a sum of zero.
static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut sum, mut bit) = ((byte as u64) << 56, 0);
        while bit < 8 {
            sum = (sum << 1) ^ (POLYNOMIAL * (sum >> 63));
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// CRC-64 of ECMA-182: from zero, the highest bit first.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, byte| (sum << 8) ^ TABLE[usize::from((sum >> 56) as u8 ^ byte)])
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
    }
}
