// SPDX-License-Identifier: Apache-2.0
//! AES-CCM (NIST SP 800-38C), whole messages only: the mode must know the length beforehand.

use crate::evp::{Context, by_key_length};
use crate::{Result, cleanse};

fn context(key: &[u8], nonce: &[u8], encrypt: bool) -> Result<Context> {
    let ciphers =
        [aws_lc_sys::EVP_aes_128_ccm, aws_lc_sys::EVP_aes_192_ccm, aws_lc_sys::EVP_aes_256_ccm];
    let context = Context::new(by_key_length(key, ciphers)?, encrypt)?;
    context.set_iv_length(nonce.len())?;
    Ok(context)
}

/// Encrypts `plain` into `sealed` and makes a tag of 4 to 16 bytes.
///
/// # Errors
/// For a nonce not of 7 to 13 bytes, an odd length of the tag, a message too long for the nonce.
///
/// # Panics
/// When `sealed` is not as long as `plain`.
pub fn ccm_seal(
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    plain: &[u8],
    sealed: &mut [u8],
    tag: &mut [u8],
) -> Result<()> {
    let context = context(key, nonce, true)?;
    context.set_tag_length(tag.len())?;
    context.set_key(key, None, true)?;
    context.set_aead_iv(nonce, true)?;
    context.aad(None, plain.len())?;
    if !aad.is_empty() {
        context.aad(Some(aad), aad.len())?;
    }
    context.update_part(plain, sealed)?;
    context.finish()?;
    context.tag(tag)
}

/// Decrypts `sealed` into `out`; nothing is left there when the tag does not match.
///
/// # Errors
/// When the tag does not match, and as [`ccm_seal`].
///
/// # Panics
/// When `out` is not as long as `sealed`.
pub fn ccm_open(
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    sealed: &[u8],
    tag: &[u8],
    out: &mut [u8],
) -> Result<()> {
    let context = context(key, nonce, false)?;
    context.set_tag(tag)?;
    context.set_key(key, None, false)?;
    context.set_aead_iv(nonce, false)?;
    context.aad(None, sealed.len())?;
    if !aad.is_empty() {
        context.aad(Some(aad), aad.len())?;
    }
    let opened = context.update_part(sealed, out);
    if opened.is_err() {
        cleanse(out);
    }
    opened
}
