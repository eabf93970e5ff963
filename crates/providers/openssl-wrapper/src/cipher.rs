// SPDX-License-Identifier: Apache-2.0
//! AES in its modes, and ChaCha20-Poly1305.

use crate::mode::Mode;
use crate::raw::{
    self, EVP_CIPHER_CTX, EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_IVLEN, EVP_CTRL_AEAD_SET_TAG,
};
use crate::start::methods;
use crate::{Failed, Result, check, not_null};
use metaslot_memory::{Secret, wipe_shallow_stack};
use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Length of a block of AES, in bytes.
pub const BLOCK: usize = 16;

/// Length of a whole tag, in bytes.
pub const TAG: usize = 16;

/// The most that one call of the library takes: its lengths are `int`. A whole number of blocks.
const LONGEST: usize = 1 << 30;

/// A prepared key for one mode: shared by any number of threads.
#[derive(Debug)]
pub struct Key {
    mode: Mode,
    value: Secret,
    /// With the key set, for each direction that was used.
    forward: OnceLock<Context>,
    backward: OnceLock<Context>,
}

#[derive(Debug)]
struct Context(NonNull<EVP_CIPHER_CTX>);

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Context {}
// SAFETY: a context that is shared is only copied from.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; the key in it is zeroised.
        unsafe { raw::EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}

impl Context {
    /// A context for a key of this length, without it.
    fn new(mode: Mode, key: usize, encrypt: bool) -> Result<Self> {
        let method = methods()?.cipher(mode, key).ok_or(Failed)?;
        // SAFETY: takes nothing; NULL when memory ran out.
        let context = Self(not_null(unsafe { raw::EVP_CIPHER_CTX_new() })?);
        context.init(method, None, None, encrypt)?;
        // SAFETY: the context is live.
        check(unsafe { raw::EVP_CIPHER_CTX_set_padding(context.0.as_ptr(), 0) })?;
        Ok(context)
    }

    fn init(
        &self,
        method: *const raw::EVP_CIPHER,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        encrypt: bool,
    ) -> Result<()> {
        // SAFETY: the context is live, and key and IV have the lengths that the context wants (callers' duty);
        // NULL leaves each as it was.
        check(unsafe {
            raw::EVP_CipherInit_ex2(
                self.0.as_ptr(),
                method,
                key.map_or(ptr::null(), <[u8]>::as_ptr),
                iv.map_or(ptr::null(), <[u8]>::as_ptr),
                c_int::from(encrypt),
                ptr::null(),
            )
        })
    }

    fn set_key(&self, key: &[u8], encrypt: bool) -> Result<()> {
        // SAFETY: the context is live.
        let wanted = unsafe { raw::EVP_CIPHER_CTX_get_key_length(self.0.as_ptr()) };
        if usize::try_from(wanted) != Ok(key.len()) {
            return Err(Failed);
        }
        let done = self.init(ptr::null(), Some(key), None, encrypt);
        wipe_shallow_stack();
        done
    }

    fn set_iv(&self, iv: &[u8], encrypt: bool) -> Result<()> {
        // SAFETY: the context is live.
        let there = unsafe { raw::EVP_CIPHER_CTX_get_iv_length(self.0.as_ptr()) };
        if usize::try_from(there) != Ok(iv.len()) {
            self.control(EVP_CTRL_AEAD_SET_IVLEN, iv.len(), ptr::null_mut())?;
        }
        self.init(ptr::null(), None, Some(iv), encrypt)
    }

    fn copied(&self) -> Result<Self> {
        // SAFETY: the context is live and only read.
        not_null(unsafe { raw::EVP_CIPHER_CTX_dup(self.0.as_ptr()) }).map(Self)
    }

    fn control(&self, command: c_int, length: usize, place: *mut u8) -> Result<()> {
        let length = c_int::try_from(length).map_err(|_| Failed)?;
        // SAFETY: the context is live; the commands used here touch `length` bytes at `place`.
        check(unsafe { raw::EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), command, length, place.cast()) })
    }

    /// Gives the library `input`; NULL as `out` declares additional data.
    ///
    /// # Safety
    /// `out` is NULL or writable for what comes out.
    unsafe fn update(&self, out: *mut u8, input: &[u8]) -> Result<usize> {
        let length = c_int::try_from(input.len()).map_err(|_| Failed)?;
        let mut written = 0;
        // SAFETY: the context is live, `input` readable for its length; the rest is the caller's promise.
        check(unsafe {
            raw::EVP_CipherUpdate(self.0.as_ptr(), out, &raw mut written, input.as_ptr(), length)
        })?;
        usize::try_from(written).map_err(|_| Failed)
    }

    fn aad(&self, data: &[u8]) -> Result<()> {
        for part in data.chunks(LONGEST) {
            // SAFETY: without a place nothing is written.
            unsafe { self.update(ptr::null_mut(), part) }?;
        }
        Ok(())
    }

    /// Ends a computation whose blocks have all come out.
    fn finish(&self) -> Result<()> {
        let (mut nothing, mut written) = ([0; BLOCK], 0);
        // SAFETY: the context is live; at most a block is written.
        check(unsafe {
            raw::EVP_CipherFinal_ex(self.0.as_ptr(), nothing.as_mut_ptr(), &raw mut written)
        })
    }
}

impl Key {
    /// A key of a length that the mode has.
    ///
    /// # Errors
    /// For another length.
    ///
    /// # Panics
    /// For CCM, which knows the message's length before the key.
    pub fn new(mode: Mode, key: &[u8]) -> Result<Self> {
        assert!(mode != Mode::Ccm);
        methods()?.cipher(mode, key.len()).ok_or(Failed)?;
        let (forward, backward) = (OnceLock::new(), OnceLock::new());
        Ok(Self { mode, value: Secret::copy_of(key), forward, backward })
    }

    fn context(&self, encrypt: bool) -> Result<Context> {
        let place = if encrypt { &self.forward } else { &self.backward };
        if let Some(context) = place.get() {
            return context.copied();
        }
        let context = Context::new(self.mode, self.value.len(), encrypt)?;
        context.set_key(self.value.expose(), encrypt)?;
        let copy = context.copied()?;
        // Another thread may have been faster: its context is as good.
        drop(place.set(context));
        Ok(copy)
    }

    /// Begins; ECB has an empty IV, and an empty one of key wrapping is the standard's.
    ///
    /// # Errors
    /// For an IV that the mode cannot have.
    pub fn start(&self, encrypt: bool, iv: &[u8]) -> Result<Stream> {
        let context = self.context(encrypt)?;
        if iv.is_empty() {
            context.init(ptr::null(), None, None, encrypt)?;
        } else {
            context.set_iv(iv, encrypt)?;
        }
        Ok(Stream { context, blocks: self.mode.has_blocks(), pending: 0 })
    }

    /// Wraps or unwraps a key in one call; `out` is longer than `input` by a block. Returns the length of the result.
    ///
    /// # Errors
    /// When the lengths do not fit, or what is unwrapped is no wrapped key.
    ///
    /// # Panics
    /// For other modes than key wrapping, and when `out` is too short.
    pub fn wrap(&self, encrypt: bool, iv: &[u8], input: &[u8], out: &mut [u8]) -> Result<usize> {
        assert!(matches!(self.mode, Mode::Wrap | Mode::WrapPad));
        assert!(out.len() >= input.len() + BLOCK);
        let stream = self.start(encrypt, iv)?;
        // SAFETY: wrapping writes two semiblocks more than it reads at most.
        unsafe { stream.context.update(out.as_mut_ptr(), input) }
    }
}

/// Encryption or decryption in the middle.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    /// Whether what comes out is whole blocks.
    blocks: bool,
    pending: usize,
}

impl Stream {
    /// How many bytes [`Self::update`] writes for `input` more.
    #[must_use]
    pub const fn ready(&self, input: usize) -> usize {
        if self.blocks { (self.pending + input) / BLOCK * BLOCK } else { input }
    }

    /// How many bytes of a block wait for the others.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.pending
    }

    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails, for one by the length of the message.
    ///
    /// # Panics
    /// When `out` is not as long as [`Self::ready`] says.
    pub fn update(&mut self, input: &[u8], mut out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), self.ready(input.len()));
        for part in input.chunks(LONGEST) {
            let ready = self.ready(part.len());
            let (now, later) = out.split_at_mut(ready);
            // SAFETY: without padding the library writes each block when it is whole, and other modes as much as they
            // read: `ready` says how much, and `now` is as long.
            let written = unsafe { self.context.update(now.as_mut_ptr(), part) }?;
            assert_eq!(written, ready);
            if self.blocks {
                self.pending = (self.pending + part.len()) % BLOCK;
            }
            out = later;
        }
        Ok(())
    }

    /// The unit of XTS, in one call.
    ///
    /// # Errors
    /// When the unit has not the right length.
    ///
    /// # Panics
    /// When `out` has another length than `input`.
    pub fn unit(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(input.len(), out.len());
        // SAFETY: a unit is as long as it was.
        let written = unsafe { self.context.update(out.as_mut_ptr(), input) }?;
        if written == out.len() { Ok(()) } else { Err(Failed) }
    }

    /// Additional data of an AEAD, before all other.
    ///
    /// # Errors
    /// When the library fails.
    pub fn aad(&mut self, data: &[u8]) -> Result<()> {
        self.context.aad(data)
    }

    /// Ends an AEAD's encryption and writes the tag, truncated to `tag`.
    ///
    /// # Errors
    /// When the library fails.
    pub fn seal(&mut self, tag: &mut [u8]) -> Result<()> {
        self.context.finish()?;
        self.context.control(EVP_CTRL_AEAD_GET_TAG, tag.len(), tag.as_mut_ptr())
    }

    /// Ends an AEAD's decryption: what came out is true if this succeeds.
    ///
    /// # Errors
    /// When the tag is wrong.
    pub fn open(&mut self, tag: &[u8]) -> Result<()> {
        // The library only reads the tag.
        self.context.control(EVP_CTRL_AEAD_SET_TAG, tag.len(), tag.as_ptr().cast_mut())?;
        self.context.finish()
    }
}

/// One message of CCM; the tag is the length that `tag` has.
#[derive(Debug)]
pub struct Ccm<'a> {
    /// 16, 24 or 32 bytes.
    pub key: &'a [u8],
    /// 7 to 13 bytes.
    pub nonce: &'a [u8],
    /// Additional data.
    pub aad: &'a [u8],
}

impl Ccm<'_> {
    fn begin(&self, encrypt: bool, tag: (usize, *mut u8), length: usize) -> Result<Context> {
        let context = Context::new(Mode::Ccm, self.key.len(), encrypt)?;
        context.control(EVP_CTRL_AEAD_SET_IVLEN, self.nonce.len(), ptr::null_mut())?;
        context.control(EVP_CTRL_AEAD_SET_TAG, tag.0, tag.1)?;
        context.set_key(self.key, encrypt)?;
        context.init(ptr::null(), None, Some(self.nonce), encrypt)?;
        let length = c_int::try_from(length).map_err(|_| Failed)?;
        let mut written = 0;
        // SAFETY: the context is live; NULL for both places declares the length of the message.
        check(unsafe {
            raw::EVP_CipherUpdate(
                context.0.as_ptr(),
                ptr::null_mut(),
                &raw mut written,
                ptr::null(),
                length,
            )
        })?;
        context.aad(self.aad)?;
        Ok(context)
    }

    /// Encrypts.
    ///
    /// # Errors
    /// For lengths that the mode does not have.
    ///
    /// # Panics
    /// When `out` has another length than `plain`.
    pub fn seal(&self, plain: &[u8], out: &mut [u8], tag: &mut [u8]) -> Result<()> {
        assert_eq!(plain.len(), out.len());
        let context = self.begin(true, (tag.len(), ptr::null_mut()), plain.len())?;
        // SAFETY: as much comes out as went in.
        unsafe { context.update(out.as_mut_ptr(), plain) }?;
        context.control(EVP_CTRL_AEAD_GET_TAG, tag.len(), tag.as_mut_ptr())
    }

    /// Decrypts; nothing is left in `out` when the tag is wrong.
    ///
    /// # Errors
    /// When the tag is wrong, and for lengths that the mode does not have.
    ///
    /// # Panics
    /// When `out` has another length than `sealed`.
    pub fn open(&self, sealed: &[u8], tag: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(sealed.len(), out.len());
        // The library only reads the tag.
        let context = self.begin(false, (tag.len(), tag.as_ptr().cast_mut()), sealed.len())?;
        // SAFETY: as much comes out as went in.
        let opened = unsafe { context.update(out.as_mut_ptr(), sealed) };
        if opened.is_err() {
            metaslot_awslc_wrapper::cleanse(out);
        }
        opened.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_come_out_whatever_the_cuts_are() {
        let data: Vec<u8> = (0..64).collect();
        for mode in [Mode::Ecb, Mode::Cbc, Mode::Ctr, Mode::Cfb] {
            let key = Key::new(mode, &[3; 24]).unwrap();
            let iv = if mode == Mode::Ecb { &[][..] } else { &[4; 16] };
            let mut whole = [0; 64];
            key.start(true, iv).unwrap().update(&data, &mut whole).unwrap();
            for (one, two) in (0..=64).flat_map(|one| (one..=64).map(move |two| (one, two))) {
                for (encrypt, from, to) in [(true, &data[..], &whole[..]), (false, &whole, &data)] {
                    let (mut stream, mut out) = (key.start(encrypt, iv).unwrap(), Vec::new());
                    for part in [&from[..one], &from[one..two], &from[two..]] {
                        let mut place = vec![0; stream.ready(part.len())];
                        stream.update(part, &mut place).unwrap();
                        out.extend(place);
                    }
                    assert_eq!(out, to, "{mode:?} {one} {two}");
                    assert_eq!(stream.pending(), 0);
                }
            }
        }
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for mode in [Mode::Ecb, Mode::Gcm, Mode::Xts, Mode::ChaCha20Poly1305] {
            for length in [0, 15, 17, 33, 128] {
                assert!(Key::new(mode, &vec![1; length]).is_err(), "{mode:?} {length}");
            }
        }
        assert!(
            Ccm { key: &[1; 17], nonce: &[0; 12], aad: &[] }
                .seal(&[], &mut [], &mut [0; 16])
                .is_err()
        );
    }
}
