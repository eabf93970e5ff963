// SPDX-License-Identifier: Apache-2.0
//! What takes the same time whatever the bytes are: comparison, and a look at padding.

use crate::{Failed, Result, cleanse};

/// Whether two byte strings are equal. Their lengths are not secret.
#[must_use]
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // SAFETY: both are readable for the common length.
    unsafe { aws_lc_sys::CRYPTO_memcmp(a.as_ptr().cast(), b.as_ptr().cast(), a.len()) == 0 }
}

/// Takes the PKCS #7 padding of at most `block` bytes off the end of `plain`: writes zeros over it and returns how many bytes
/// are before it.
///
/// It is looked at in the same time whatever it is. What happens then still tells the caller whether it was right: policy
/// decides who may ask.
///
/// # Errors
/// When it is not padding; then all of `plain` is wiped.
pub fn unpad(plain: &mut [u8], block: usize) -> Result<usize> {
    let Some(padding) = padding(plain, block) else {
        cleanse(plain);
        return Err(Failed);
    };
    let rest = plain.len() - padding;
    plain[rest..].fill(0);
    Ok(rest)
}

/// The length of the padding.
fn padding(plain: &[u8], block: usize) -> Option<usize> {
    let (last, block) = (plain.last()?, &plain[plain.len().checked_sub(block)?..]);
    let length = usize::from(*last);
    let mut wrong = u32::from(length == 0) | u32::from(length > block.len());
    for (from_end, byte) in (1..).zip(block.iter().rev()) {
        wrong |= u32::from(from_end <= length) & u32::from(usize::from(*byte) != length);
    }
    if wrong == 0 { Some(length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_padding_is_taken() {
        for block in [4, 8, 16] {
            for length in 1..=block {
                let start = usize::from(2 * block - length);
                let mut right = vec![0xee; usize::from(2 * block)];
                right[start..].fill(length);
                let mut wrong = right.clone();
                wrong[start] ^= 1;
                assert_eq!(unpad(&mut right, usize::from(block)), Ok(start));
                assert!(right[start..].iter().all(|byte| *byte == 0));
                if length > 1 {
                    assert_eq!(unpad(&mut wrong, usize::from(block)), Err(Failed));
                    assert!(wrong.iter().all(|byte| *byte == 0));
                }
            }
            for byte in [0, block + 1] {
                let mut wrong = vec![byte; usize::from(block)];
                assert_eq!(unpad(&mut wrong, usize::from(block)), Err(Failed));
            }
        }
        assert_eq!(unpad(&mut [1; 15], 16), Err(Failed));
        assert_eq!(unpad(&mut [], 16), Err(Failed));
    }
}
