// SPDX-License-Identifier: Apache-2.0
//! RC2 (RFC 2268) in CBC mode, to open old files.

use metaslot_memory::Secret;
use rc2::Rc2;
use rc2::cipher::{Array, BlockCipherDecrypt};

const BLOCK: usize = 8;

/// What was encrypted; `None` where the padding says that the key is another one.
pub(super) fn decrypted(key: &Secret, iv: &[u8], data: &[u8]) -> Option<Secret> {
    if data.is_empty() || !data.len().is_multiple_of(BLOCK) || iv.len() != BLOCK {
        return None;
    }
    let cipher = Rc2::new_with_eff_key_len(key.expose(), 8 * key.len());
    let mut plain = Secret::copy_of(data);
    let mut previous = iv;
    for (block, sealed) in plain.expose_mut().chunks_exact_mut(BLOCK).zip(data.chunks_exact(BLOCK))
    {
        let mut opened = Array::try_from(&*block).ok()?;
        cipher.decrypt_block(&mut opened);
        for ((to, from), before) in block.iter_mut().zip(opened).zip(previous) {
            *to = from ^ before;
        }
        previous = sealed;
    }
    let count = *plain.expose().last()?;
    let length = plain.len().checked_sub(usize::from(count))?;
    let is_padding =
        (1..=8).contains(&count) && plain.expose()[length..].iter().all(|byte| *byte == count);
    is_padding.then(|| plain.truncated(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_openssl_encrypted_is_opened() {
        // printf 'a letter' | openssl enc -provider legacy -rc2-40-cbc -K 0001020304 -iv 0000000000000000
        let sealed = [
            0xa9, 0xab, 0x4a, 0xab, 0x30, 0x18, 0x70, 0x67, 0x71, 0x00, 0x81, 0xb5, 0xd6, 0x14,
            0x09, 0xfc,
        ];
        let key = Secret::copy_of(&[0, 1, 2, 3, 4]);
        let opened = decrypted(&key, &[0; 8], &sealed).map(|it| it.expose().to_vec());
        assert_eq!(opened.as_deref(), Some(&b"a letter"[..]));
        assert!(decrypted(&key, &[0; 8], &sealed[..15]).is_none());
        assert!(decrypted(&key, &[0; 8], &[]).is_none());
        assert!(decrypted(&Secret::copy_of(&[1; 5]), &[0; 8], &sealed).is_none());
    }
}
