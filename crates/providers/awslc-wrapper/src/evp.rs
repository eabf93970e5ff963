// SPDX-License-Identifier: Apache-2.0
//! AWS-LC's general cipher contexts, for the modes that have no interface of their own.

use crate::{Failed, Result, check};
use aws_lc_sys::{
    EVP_CIPHER, EVP_CIPHER_CTX, EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_IVLEN,
    EVP_CTRL_AEAD_SET_TAG, EVP_CipherFinal_ex, EVP_CipherInit_ex, EVP_CipherUpdate,
};
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// A cipher context; what it holds lies in protected memory. Its functions change what is behind the
/// pointer, so it is for one thread at a time.
#[derive(Debug)]
pub(crate) struct Context(NonNull<EVP_CIPHER_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_CIPHER_CTX_new`, freed once; AWS-LC zeroises what it frees.
        unsafe { aws_lc_sys::EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}

/// Chooses a cipher by key length, 16, 24 or 32 bytes.
pub(crate) fn by_key_length(
    key: &[u8],
    ciphers: [unsafe extern "C" fn() -> *const EVP_CIPHER; 3],
) -> Result<*const EVP_CIPHER> {
    let cipher = match key.len() {
        16 => ciphers[0],
        24 => ciphers[1],
        32 => ciphers[2],
        _ => return Err(Failed),
    };
    // SAFETY: takes nothing and returns the address of a static.
    Ok(unsafe { cipher() })
}

impl Context {
    /// A context for this cipher, without key or IV.
    pub(crate) fn new(cipher: *const EVP_CIPHER, encrypt: bool) -> Result<Self> {
        // SAFETY: takes nothing; NULL when memory ran out.
        let context = NonNull::new(unsafe { aws_lc_sys::EVP_CIPHER_CTX_new() }).ok_or(Failed)?;
        let context = Self(context);
        context.init(cipher, None, None, encrypt)?;
        Ok(context)
    }

    fn init(
        &self,
        cipher: *const EVP_CIPHER,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        encrypt: bool,
    ) -> Result<()> {
        // SAFETY: the context is live; key and IV have the lengths that the cipher was chosen or
        // set to (callers' duty), and NULL leaves each as it was.
        check(unsafe {
            EVP_CipherInit_ex(
                self.0.as_ptr(),
                cipher,
                ptr::null_mut(),
                key.map_or(ptr::null(), <[u8]>::as_ptr),
                iv.map_or(ptr::null(), <[u8]>::as_ptr),
                c_int::from(encrypt),
            )
        })
    }

    /// Sets key and IV. The IV must be as long as was set with [`Self::set_iv_length`], or as the
    /// cipher has it.
    pub(crate) fn set_key(&self, key: &[u8], iv: Option<&[u8]>, encrypt: bool) -> Result<()> {
        // SAFETY: the context is live.
        let wanted = unsafe { aws_lc_sys::EVP_CIPHER_CTX_key_length(self.0.as_ptr()) };
        // SAFETY: the context is live.
        let iv_length = unsafe { aws_lc_sys::EVP_CIPHER_CTX_iv_length(self.0.as_ptr()) };
        let iv_fits = iv.is_none_or(|iv| iv.len() == iv_length as usize);
        if key.len() != wanted as usize || !iv_fits {
            return Err(Failed);
        }
        self.init(ptr::null(), Some(key), iv, encrypt)
    }

    /// Sets the IV alone, whose length was set with [`Self::set_iv_length`].
    pub(crate) fn set_aead_iv(&self, iv: &[u8], encrypt: bool) -> Result<()> {
        self.init(ptr::null(), None, Some(iv), encrypt)
    }

    /// No padding of the last block.
    pub(crate) fn without_padding(&self) -> Result<()> {
        // SAFETY: the context is live.
        check(unsafe { aws_lc_sys::EVP_CIPHER_CTX_set_padding(self.0.as_ptr(), 0) })
    }

    /// Length of the nonce of an AEAD, in bytes.
    pub(crate) fn set_iv_length(&self, length: usize) -> Result<()> {
        self.control(EVP_CTRL_AEAD_SET_IVLEN, length, ptr::null_mut())
    }

    /// Length of the tag of CCM while encrypting, in bytes.
    pub(crate) fn set_tag_length(&self, length: usize) -> Result<()> {
        self.control(EVP_CTRL_AEAD_SET_TAG, length, ptr::null_mut())
    }

    /// The tag that a decryption must find.
    pub(crate) fn set_tag(&self, tag: &[u8]) -> Result<()> {
        // AWS-LC only reads the tag.
        self.control(EVP_CTRL_AEAD_SET_TAG, tag.len(), tag.as_ptr().cast_mut())
    }

    /// The tag that an encryption made; `tag` says how much of it.
    pub(crate) fn tag(&self, tag: &mut [u8]) -> Result<()> {
        self.control(EVP_CTRL_AEAD_GET_TAG, tag.len(), tag.as_mut_ptr())
    }

    fn control(&self, command: c_int, length: usize, place: *mut u8) -> Result<()> {
        let length = c_int::try_from(length).map_err(|_| Failed)?;
        // SAFETY: the context is live; the commands used here touch `length` bytes at `place`.
        check(unsafe {
            aws_lc_sys::EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), command, length, place.cast())
        })
    }

    /// Additional data of an AEAD; `None` as `data` declares the message's length to CCM.
    pub(crate) fn aad(&self, data: Option<&[u8]>, length: usize) -> Result<()> {
        let length = c_int::try_from(length).map_err(|_| Failed)?;
        let mut written = 0;
        // SAFETY: the context is live; `data` is readable for `length`, or NULL, which CCM takes
        // for a declaration; nothing is written without an output.
        check(unsafe {
            EVP_CipherUpdate(
                self.0.as_ptr(),
                ptr::null_mut(),
                &raw mut written,
                data.map_or(ptr::null(), <[u8]>::as_ptr),
                length,
            )
        })
    }

    /// Processes `input` into `out`, which must be as long: for stream modes and whole blocks
    /// without padding.
    pub(crate) fn update(&self, input: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(input.len(), out.len());
        for (input, out) in input.chunks(LONGEST).zip(out.chunks_mut(LONGEST)) {
            self.update_part(input, out)?;
        }
        Ok(())
    }

    /// [`Self::update`] in one call of the library, for modes that must see all at once.
    pub(crate) fn update_part(&self, input: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(input.len(), out.len());
        let length = c_int::try_from(input.len()).map_err(|_| Failed)?;
        let mut written = 0;
        // SAFETY: the context is live, `input` and `out` are as long as said, and modes that do
        // not pad write as much as they read.
        check(unsafe {
            EVP_CipherUpdate(
                self.0.as_ptr(),
                out.as_mut_ptr(),
                &raw mut written,
                input.as_ptr(),
                length,
            )
        })
    }

    /// Ends an AEAD: makes the tag, or compares it.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut nothing = [0; 16];
        let mut written = 0;
        // SAFETY: the context is live; AEADs write nothing here, others at most a block.
        check(unsafe {
            EVP_CipherFinal_ex(self.0.as_ptr(), nothing.as_mut_ptr(), &raw mut written)
        })
    }
}

/// The most that one call of the library takes: its lengths are `int`. A whole number of blocks.
pub(crate) const LONGEST: usize = 1 << 30;
