// SPDX-License-Identifier: Apache-2.0
//! Keys of asymmetric algorithms, and what is done with each kind.

use crate::params::Params;
use crate::raw::{self, EVP_PKEY, EVP_PKEY_CTX, EVP_SIGNATURE, Param};
use crate::{Failed, Result, check, not_null};
use metaslot_memory::wiping;
use std::ffi::{CStr, c_int, c_uint};
use std::ptr::{self, NonNull};

/// A key: shared by any number of threads.
#[derive(Debug)]
pub(crate) struct Pkey(NonNull<EVP_PKEY>);

// SAFETY: the library counts references with atomics, and locks what it computes of a key when that is first needed.
unsafe impl Send for Pkey {}
// SAFETY: as above.
unsafe impl Sync for Pkey {}

impl Drop for Pkey {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once; private numbers are zeroised.
        unsafe { raw::EVP_PKEY_free(self.0.as_ptr()) };
    }
}

/// What is done with a key by one call.
#[derive(Debug)]
struct Context(NonNull<EVP_PKEY_CTX>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once.
        unsafe { raw::EVP_PKEY_CTX_free(self.0.as_ptr()) };
    }
}

/// How an operation begins.
#[derive(Clone, Copy)]
enum Init {
    /// With the algorithm of the key.
    Own(unsafe extern "C" fn(*mut EVP_PKEY_CTX, *const Param) -> c_int),
    /// With one of those that the key has; the library takes the message.
    Message(
        unsafe extern "C" fn(*mut EVP_PKEY_CTX, *mut EVP_SIGNATURE, *const Param) -> c_int,
        NonNull<EVP_SIGNATURE>,
    ),
}

/// An operation that writes its result.
type Make = unsafe extern "C" fn(*mut EVP_PKEY_CTX, *mut u8, *mut usize, *const u8, usize) -> c_int;

impl Pkey {
    /// A key of these numbers.
    pub(crate) fn new(kind: &CStr, private: bool, params: Params<'_>) -> Result<Self> {
        let (library, properties) = (ptr::null_mut(), ptr::null());
        // SAFETY: a string; the default library and no properties.
        let context = not_null(unsafe {
            raw::EVP_PKEY_CTX_new_from_name(library, kind.as_ptr(), properties)
        })?;
        let context = Context(context);
        // SAFETY: the context is live.
        check(unsafe { raw::EVP_PKEY_fromdata_init(context.0.as_ptr()) })?;
        let selection = if private { raw::EVP_PKEY_KEYPAIR } else { raw::EVP_PKEY_PUBLIC_KEY };
        let mut key = ptr::null_mut();
        let done = wiping(|| {
            // SAFETY: the context is begun; the parameters are a list with its end, whose values outlive the call.
            params.give(|params| unsafe {
                raw::EVP_PKEY_fromdata(context.0.as_ptr(), &raw mut key, selection, params)
            })
        });
        check(done)?;
        not_null(key).map(Self)
    }

    fn context(&self) -> Result<Context> {
        let properties = ptr::null();
        // SAFETY: the key is live, and the context keeps a reference to it.
        let context = unsafe {
            raw::EVP_PKEY_CTX_new_from_pkey(ptr::null_mut(), self.0.as_ptr(), properties)
        };
        not_null(context).map(Context)
    }

    fn begin(&self, init: Init, params: Params<'_>) -> Result<Context> {
        let context = self.context()?;
        check(params.give(|params| match init {
            // SAFETY: the context is fresh; the parameters are a list with its end, whose values outlive the call.
            Init::Own(init) => unsafe { init(context.0.as_ptr(), params) },
            // SAFETY: as above; the algorithm stays.
            Init::Message(init, algorithm) => unsafe {
                init(context.0.as_ptr(), algorithm.as_ptr(), params)
            },
        }))?;
        Ok(context)
    }

    fn make(
        &self,
        (init, make): (Init, Make),
        params: Params<'_>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let mut length = out.len();
        let done = wiping(|| {
            let context = self.begin(init, params)?;
            // SAFETY: the context is begun with this operation, `input` readable for its length, `out` writable for `length`.
            check(unsafe {
                make(
                    context.0.as_ptr(),
                    out.as_mut_ptr(),
                    &raw mut length,
                    input.as_ptr(),
                    input.len(),
                )
            })
        });
        done?;
        if length <= out.len() { Ok(length) } else { Err(Failed) }
    }

    /// Signs `input`; returns the length of the signature.
    pub(crate) fn sign(&self, params: Params<'_>, input: &[u8], out: &mut [u8]) -> Result<usize> {
        self.make((Init::Own(raw::EVP_PKEY_sign_init_ex), raw::EVP_PKEY_sign), params, input, out)
    }

    /// Whether `signature` is good; an error when it is not.
    pub(crate) fn verify(&self, params: Params<'_>, input: &[u8], signature: &[u8]) -> Result<()> {
        self.verify_as(Init::Own(raw::EVP_PKEY_verify_init_ex), params, input, signature)
    }

    /// Signs a message by one of the key's algorithms; returns the length of the signature.
    pub(crate) fn sign_message(
        &self,
        algorithm: NonNull<EVP_SIGNATURE>,
        params: Params<'_>,
        message: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let init = Init::Message(raw::EVP_PKEY_sign_message_init, algorithm);
        self.make((init, raw::EVP_PKEY_sign), params, message, out)
    }

    /// As [`Self::verify`], of a message by one of the key's algorithms.
    pub(crate) fn verify_message(
        &self,
        algorithm: NonNull<EVP_SIGNATURE>,
        params: Params<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let init = Init::Message(raw::EVP_PKEY_verify_message_init, algorithm);
        self.verify_as(init, params, message, signature)
    }

    fn verify_as(
        &self,
        init: Init,
        params: Params<'_>,
        input: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let context = self.begin(init, params)?;
        // SAFETY: the context is begun, both are readable for their lengths.
        check(unsafe {
            raw::EVP_PKEY_verify(
                context.0.as_ptr(),
                signature.as_ptr(),
                signature.len(),
                input.as_ptr(),
                input.len(),
            )
        })
    }

    /// Encrypts `input`; returns the length of the result.
    pub(crate) fn encrypt(
        &self,
        params: Params<'_>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.make(
            (Init::Own(raw::EVP_PKEY_encrypt_init_ex), raw::EVP_PKEY_encrypt),
            params,
            input,
            out,
        )
    }

    /// Decrypts `input`; returns the length of the result.
    pub(crate) fn decrypt(
        &self,
        params: Params<'_>,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.make(
            (Init::Own(raw::EVP_PKEY_decrypt_init_ex), raw::EVP_PKEY_decrypt),
            params,
            input,
            out,
        )
    }

    /// The secret that both sides have: this key's holder and `peer`'s. `out` is as long as it is.
    pub(crate) fn agree(&self, params: Params<'_>, peer: &Self, out: &mut [u8]) -> Result<()> {
        let mut length = out.len();
        let done = wiping(|| {
            let context = self.begin(Init::Own(raw::EVP_PKEY_derive_init_ex), params)?;
            // SAFETY: the context is begun, the peer's key live; it was looked at when it was made.
            check(unsafe {
                raw::EVP_PKEY_derive_set_peer_ex(context.0.as_ptr(), peer.0.as_ptr(), 0)
            })?;
            // SAFETY: the context has both keys, `out` is writable for `length`.
            check(unsafe {
                raw::EVP_PKEY_derive(context.0.as_ptr(), out.as_mut_ptr(), &raw mut length)
            })
        });
        done?;
        if length == out.len() { Ok(()) } else { Err(Failed) }
    }

    /// Whether the point of a public key is one of its curve, and not at infinity.
    pub(crate) fn check_point(&self) -> Result<()> {
        self.check(raw::EVP_PKEY_public_check_quick)
    }

    /// The same, and whether the order times the point is at infinity.
    pub(crate) fn check_point_and_order(&self) -> Result<()> {
        self.check(raw::EVP_PKEY_public_check)
    }

    /// Whether the scalar of a private key is between zero and the order.
    pub(crate) fn check_scalar(&self) -> Result<()> {
        self.check(raw::EVP_PKEY_private_check)
    }

    fn check(&self, look: unsafe extern "C" fn(*mut EVP_PKEY_CTX) -> c_int) -> Result<()> {
        let context = self.context()?;
        // SAFETY: the context is fresh.
        check(unsafe { look(context.0.as_ptr()) })
    }

    /// Reads bytes of the key, which fill `out`.
    pub(crate) fn read_bytes(&self, name: &CStr, out: &mut [u8]) -> Result<()> {
        self.read(name, raw::OCTET_STRING, out)
    }

    /// Reads a number of the key, big-endian and as long as `out`.
    pub(crate) fn read_number(&self, name: &CStr, out: &mut [u8]) -> Result<()> {
        self.read(name, raw::UNSIGNED_INTEGER, out)?;
        if cfg!(target_endian = "little") {
            out.reverse();
        }
        Ok(())
    }

    fn read(&self, name: &CStr, what: c_uint, out: &mut [u8]) -> Result<()> {
        let length = out.len();
        let params = Params::new().place(name, what, out);
        wiping(|| {
            params.give(|params| {
                // SAFETY: the key is live; the parameters are a list with its end, whose place outlives the call.
                check(unsafe { raw::EVP_PKEY_get_params(self.0.as_ptr(), params) })?;
                // SAFETY: the list has an element before its end.
                if unsafe { (*params).return_size } == length { Ok(()) } else { Err(Failed) }
            })
        })
    }

    /// Begins a verification and ends it: what the library fetches for that is there afterwards.
    pub(crate) fn warm(&self, params: Params<'_>) -> Result<()> {
        self.begin(Init::Own(raw::EVP_PKEY_verify_init_ex), params).map(|_| ())
    }

    /// The same with an encryption.
    pub(crate) fn warm_encryption(&self) -> Result<()> {
        self.begin(Init::Own(raw::EVP_PKEY_encrypt_init_ex), Params::new()).map(|_| ())
    }

    /// Length of a signature or a block, in bytes, at most.
    pub(crate) fn size(&self) -> usize {
        // SAFETY: the key is live.
        usize::try_from(unsafe { raw::EVP_PKEY_get_size(self.0.as_ptr()) }).unwrap_or(0)
    }

    /// Length of the modulus or of the order, in bits.
    pub(crate) fn bits(&self) -> usize {
        // SAFETY: the key is live.
        usize::try_from(unsafe { raw::EVP_PKEY_get_bits(self.0.as_ptr()) }).unwrap_or(0)
    }
}
