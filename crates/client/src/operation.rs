// SPDX-License-Identifier: Apache-2.0
//! Encrypt, decrypt, sign, verify, digest: one-shot, multi-part, and into the caller's buffer.
//!
//! Each public method is one line over four shapes of C function: start with a key, data in and
//! out, data in, data out.

use crate::vendor::Vendor;
use crate::{Mechanism, Module, Result, Session, length, room, ulong};
use metaslot_ck::*;
use std::ptr;

/// Room for what most operations give last.
const USUAL: usize = 512;

type Init =
    Option<unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) -> CK_RV>;
pub(crate) type Transform = Option<
    unsafe extern "C" fn(
        CK_SESSION_HANDLE,
        *mut CK_BYTE,
        CK_ULONG,
        *mut CK_BYTE,
        *mut CK_ULONG,
    ) -> CK_RV,
>;
type Input = Option<unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG) -> CK_RV>;
type Output = Option<unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_BYTE, *mut CK_ULONG) -> CK_RV>;

/// What is done with data that is whole.
#[derive(Clone, Copy, Debug)]
pub enum Whole {
    /// `C_DigestInit`, `C_Digest`
    Digest,
    /// `C_EncryptInit`, `C_Encrypt`
    Encrypt(ObjectHandle),
    /// `C_DecryptInit`, `C_Decrypt`
    Decrypt(ObjectHandle),
    /// `C_SignInit`, `C_Sign`
    Sign(ObjectHandle),
}

impl Module {
    /// Whether it has [`Self::whole`] for that.
    #[must_use]
    #[inline]
    pub fn has_whole(&self, what: Whole) -> bool {
        let signs = matches!(what, Whole::Sign(_));
        self.vendor()
            .is_some_and(|vendor| vendor.whole().is_some() && (!signs || vendor.signs_whole()))
    }

    /// Both functions in one call, which threads may make in one session at the same time, into `out`; how many bytes were written. Nothing goes on in
    /// the session afterwards.
    ///
    /// # Errors
    /// The module's code, of the second function; `CKR_FUNCTION_NOT_SUPPORTED` where it is not a Metaslot that has it.
    #[inline(always)]
    pub fn whole(
        &self,
        session: SessionHandle,
        what: Whole,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let (function, operation, key) = match what {
            Whole::Digest => (Function::Digest, CKF_DIGEST, 0),
            Whole::Encrypt(key) => (Function::Encrypt, CKF_ENCRYPT, key.0),
            Whole::Decrypt(key) => (Function::Decrypt, CKF_DECRYPT, key.0),
            Whole::Sign(key) => (Function::Sign, CKF_SIGN, key.0),
        };
        let mut used = ulong(out.len());
        self.call(function, self.vendor().and_then(Vendor::whole), |f| {
            let (data, data_length) = (data.as_ptr().cast_mut(), ulong(data.len()));
            let (out, used) = (out.as_mut_ptr(), &raw mut used);
            // SAFETY: `raw` and the parameter behind it live until it returns; readable data with its length, and writable room with its.
            mechanism.with_raw(|raw| unsafe {
                f(session.0, operation, raw, key, data, data_length, out, used)
            })
        })?;
        Ok(length(used))
    }
}

impl Session {
    /// A function that starts an operation with a key.
    #[inline]
    pub(crate) fn init(
        &self,
        function: Function,
        pointer: Init,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
    ) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.with_key(function, self.handle().0, mechanism, &[key.0]);
        }
        self.call(function, pointer, |f, session| {
            // SAFETY: `raw` and the parameter behind it live until it returns.
            mechanism.with_raw(|raw| unsafe { f(session, raw, key.0) })
        })
    }

    /// What [`Module::whole`] does, by the two functions.
    ///
    /// # Errors
    /// The module's code. Where it is not that of the first one, the operation may still be there.
    pub fn whole_in_two(
        &self,
        what: Whole,
        mechanism: &Mechanism<'_>,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        match what {
            Whole::Digest => {
                self.digest_init(mechanism)?;
                self.digest_into(data, out)
            }
            Whole::Encrypt(key) => {
                self.encrypt_init(mechanism, key)?;
                self.encrypt_into(data, out)
            }
            Whole::Decrypt(key) => {
                self.decrypt_init(mechanism, key)?;
                self.decrypt_into(data, out)
            }
            Whole::Sign(key) => {
                self.sign_init(mechanism, key)?;
                self.sign_into(data, out)
            }
        }
    }

    /// A function that takes data and gives data, into `out`. How many bytes were written.
    #[inline]
    fn transform_into(
        &self,
        function: Function,
        pointer: Transform,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        if let Some(remote) = self.module().other_process() {
            return remote.output_into(function, self.handle().0, Some(data), out);
        }
        let mut used = ulong(out.len());
        self.transform_at(function, pointer, data, out.as_mut_ptr(), &raw mut used)?;
        Ok(length(used))
    }

    /// The same, with room at `out` for as many bytes as stand at `used`; NULL asks for the length.
    #[inline]
    pub(crate) fn transform_at(
        &self,
        function: Function,
        pointer: Transform,
        data: &[u8],
        out: *mut u8,
        used: *mut CK_ULONG,
    ) -> Result<()> {
        self.call(function, pointer, |f, session| {
            let (data, data_length) = (data.as_ptr().cast_mut(), ulong(data.len()));
            // SAFETY: readable data with its length, and what this crate names: NULL, or writable room with its length.
            unsafe { f(session, data, data_length, out, used) }
        })
    }

    /// The same, after asking for the length.
    fn transform(&self, function: Function, pointer: Transform, data: &[u8]) -> Result<Vec<u8>> {
        if let Some(remote) = self.module().other_process() {
            return remote.output_of(function, self.handle().0, Some(data));
        }
        let mut used: CK_ULONG = 0;
        self.transform_at(function, pointer, data, ptr::null_mut(), &raw mut used)?;
        // A length of zero must still be answered with a pointer that is not NULL.
        let mut out = room(function, used, 0)?;
        let used = self.transform_into(function, pointer, data, &mut out)?;
        out.truncate(used);
        Ok(out)
    }

    /// A function that takes data.
    pub(crate) fn input(&self, function: Function, pointer: Input, data: &[u8]) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.input(function, self.handle().0, &[data]);
        }
        self.call(function, pointer, |f, session| {
            // SAFETY: readable data with its length.
            unsafe { f(session, data.as_ptr().cast_mut(), ulong(data.len())) }
        })
    }

    /// A function that gives data. Room is offered first: NSS ends an operation without padding when it is asked for a length.
    fn output(&self, function: Function, pointer: Output) -> Result<Vec<u8>> {
        if let Some(remote) = self.module().other_process() {
            return remote.output_of(function, self.handle().0, None);
        }
        let mut used = ulong(USUAL);
        let mut out = room(function, used, 0)?;
        match self.output_at(function, pointer, &mut out, &mut used) {
            Err(failure) if failure.code == Error::BUFFER_TOO_SMALL => {
                out = room(function, used, 0)?;
                self.output_at(function, pointer, &mut out, &mut used)?;
            }
            filled => filled?,
        }
        if length(used) > out.len() {
            return Err(crate::Error::new(function, Error::GENERAL_ERROR));
        }
        out.truncate(length(used));
        Ok(out)
    }

    /// The same, into `out`, which has room for `used` bytes.
    #[inline]
    fn output_at(
        &self,
        function: Function,
        pointer: Output,
        out: &mut [u8],
        used: &mut CK_ULONG,
    ) -> Result<()> {
        self.call(function, pointer, |f, session| {
            // SAFETY: room for `used` bytes.
            unsafe { f(session, out.as_mut_ptr(), used) }
        })
    }

    /// The same; how many bytes were written.
    #[inline]
    fn output_into(&self, function: Function, pointer: Output, out: &mut [u8]) -> Result<usize> {
        if let Some(remote) = self.module().other_process() {
            return remote.output_into(function, self.handle().0, None, out);
        }
        let mut used = ulong(out.len());
        self.output_at(function, pointer, out, &mut used)?;
        Ok(length(used))
    }

    /// `C_EncryptInit` and `C_Encrypt`.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn encrypt(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.encrypt_init(mechanism, key)?;
        self.transform(Function::Encrypt, self.list().C_Encrypt, data)
    }

    /// `C_EncryptInit`
    ///
    /// # Errors
    /// The module's code.
    #[inline]
    pub fn encrypt_init(&self, mechanism: &Mechanism<'_>, key: ObjectHandle) -> Result<()> {
        self.init(Function::EncryptInit, self.list().C_EncryptInit, mechanism, key)
    }

    /// `C_Encrypt` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn encrypt_into(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.transform_into(Function::Encrypt, self.list().C_Encrypt, data, out)
    }

    /// `C_EncryptUpdate`
    ///
    /// # Errors
    /// The module's code.
    pub fn encrypt_update(&self, data: &[u8]) -> Result<Vec<u8>> {
        self.transform(Function::EncryptUpdate, self.list().C_EncryptUpdate, data)
    }

    /// `C_EncryptUpdate` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn encrypt_update_into(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.transform_into(Function::EncryptUpdate, self.list().C_EncryptUpdate, data, out)
    }

    /// `C_EncryptFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn encrypt_final(&self) -> Result<Vec<u8>> {
        self.output(Function::EncryptFinal, self.list().C_EncryptFinal)
    }

    /// `C_EncryptFinal` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn encrypt_final_into(&self, out: &mut [u8]) -> Result<usize> {
        self.output_into(Function::EncryptFinal, self.list().C_EncryptFinal, out)
    }

    /// `C_DecryptInit` and `C_Decrypt`.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn decrypt(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.decrypt_init(mechanism, key)?;
        self.transform(Function::Decrypt, self.list().C_Decrypt, data)
    }

    /// `C_DecryptInit`
    ///
    /// # Errors
    /// The module's code.
    #[inline]
    pub fn decrypt_init(&self, mechanism: &Mechanism<'_>, key: ObjectHandle) -> Result<()> {
        self.init(Function::DecryptInit, self.list().C_DecryptInit, mechanism, key)
    }

    /// `C_Decrypt` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn decrypt_into(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.transform_into(Function::Decrypt, self.list().C_Decrypt, data, out)
    }

    /// `C_DecryptUpdate`
    ///
    /// # Errors
    /// The module's code.
    pub fn decrypt_update(&self, data: &[u8]) -> Result<Vec<u8>> {
        self.transform(Function::DecryptUpdate, self.list().C_DecryptUpdate, data)
    }

    /// `C_DecryptFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn decrypt_final(&self) -> Result<Vec<u8>> {
        self.output(Function::DecryptFinal, self.list().C_DecryptFinal)
    }

    /// `C_DigestInit` and `C_Digest`.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn digest(&self, mechanism: &Mechanism<'_>, data: &[u8]) -> Result<Vec<u8>> {
        self.digest_init(mechanism)?;
        self.transform(Function::Digest, self.list().C_Digest, data)
    }

    /// `C_DigestInit`
    ///
    /// # Errors
    /// The module's code.
    #[inline]
    pub fn digest_init(&self, mechanism: &Mechanism<'_>) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.with_key(Function::DigestInit, self.handle().0, mechanism, &[]);
        }
        self.call(Function::DigestInit, self.list().C_DigestInit, |f, session| {
            // SAFETY: `raw` and the parameter behind it live until it returns.
            mechanism.with_raw(|raw| unsafe { f(session, raw) })
        })
    }

    /// `C_Digest` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn digest_into(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.transform_into(Function::Digest, self.list().C_Digest, data, out)
    }

    /// `C_DigestUpdate`
    ///
    /// # Errors
    /// The module's code.
    pub fn digest_update(&self, data: &[u8]) -> Result<()> {
        self.input(Function::DigestUpdate, self.list().C_DigestUpdate, data)
    }

    /// `C_DigestKey`: digests the value of a secret key.
    ///
    /// # Errors
    /// The module's code.
    pub fn digest_key(&self, key: ObjectHandle) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.tell(Function::DigestKey, &[self.handle().0, key.0]);
        }
        self.call(Function::DigestKey, self.list().C_DigestKey, |f, session| {
            // SAFETY: takes numbers only.
            unsafe { f(session, key.0) }
        })
    }

    /// `C_DigestFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn digest_final(&self) -> Result<Vec<u8>> {
        self.output(Function::DigestFinal, self.list().C_DigestFinal)
    }

    /// `C_DigestFinal` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn digest_final_into(&self, out: &mut [u8]) -> Result<usize> {
        self.output_into(Function::DigestFinal, self.list().C_DigestFinal, out)
    }

    /// `C_SignInit` and `C_Sign`.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn sign(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.sign_init(mechanism, key)?;
        self.transform(Function::Sign, self.list().C_Sign, data)
    }

    /// `C_SignInit`
    ///
    /// # Errors
    /// The module's code.
    #[inline]
    pub fn sign_init(&self, mechanism: &Mechanism<'_>, key: ObjectHandle) -> Result<()> {
        self.init(Function::SignInit, self.list().C_SignInit, mechanism, key)
    }

    /// `C_Sign` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn sign_into(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.transform_into(Function::Sign, self.list().C_Sign, data, out)
    }

    /// The answer of an operation that [`Session::sign_init`] started (after a context-specific
    /// login, say): `C_Sign`.
    ///
    /// # Errors
    /// The module's code.
    pub fn sign_initialized(&self, data: &[u8]) -> Result<Vec<u8>> {
        self.transform(Function::Sign, self.list().C_Sign, data)
    }

    /// `C_SignUpdate`
    ///
    /// # Errors
    /// The module's code.
    pub fn sign_update(&self, data: &[u8]) -> Result<()> {
        self.input(Function::SignUpdate, self.list().C_SignUpdate, data)
    }

    /// `C_SignFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn sign_final(&self) -> Result<Vec<u8>> {
        self.output(Function::SignFinal, self.list().C_SignFinal)
    }

    /// `C_SignFinal` into `out`; how many bytes were written.
    ///
    /// # Errors
    /// The module's code; `CKR_BUFFER_TOO_SMALL` keeps the operation.
    #[inline]
    pub fn sign_final_into(&self, out: &mut [u8]) -> Result<usize> {
        self.output_into(Function::SignFinal, self.list().C_SignFinal, out)
    }

    /// `C_VerifyInit` and `C_Verify`.
    ///
    /// # Errors
    /// `CKR_SIGNATURE_INVALID` or `CKR_SIGNATURE_LEN_RANGE` when the signature is not that of
    /// `data`; any other code is a failure to check it.
    pub fn verify(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        self.verify_init(mechanism, key)?;
        self.verify_initialized(data, signature)
    }

    /// `C_VerifyInit`
    ///
    /// # Errors
    /// The module's code.
    #[inline]
    pub fn verify_init(&self, mechanism: &Mechanism<'_>, key: ObjectHandle) -> Result<()> {
        self.init(Function::VerifyInit, self.list().C_VerifyInit, mechanism, key)
    }

    /// `C_Verify`
    ///
    /// # Errors
    /// As [`Session::verify`].
    #[inline]
    pub fn verify_initialized(&self, data: &[u8], signature: &[u8]) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            return remote.input(Function::Verify, self.handle().0, &[data, signature]);
        }
        self.call(Function::Verify, self.list().C_Verify, |f, session| {
            let (data, data_length) = (data.as_ptr().cast_mut(), ulong(data.len()));
            let (signature, signature_length) =
                (signature.as_ptr().cast_mut(), ulong(signature.len()));
            // SAFETY: readable data and a readable signature with their lengths.
            unsafe { f(session, data, data_length, signature, signature_length) }
        })
    }

    /// `C_VerifyUpdate`
    ///
    /// # Errors
    /// The module's code.
    pub fn verify_update(&self, data: &[u8]) -> Result<()> {
        self.input(Function::VerifyUpdate, self.list().C_VerifyUpdate, data)
    }

    /// `C_VerifyFinal`
    ///
    /// # Errors
    /// As [`Session::verify`].
    pub fn verify_final(&self, signature: &[u8]) -> Result<()> {
        self.input(Function::VerifyFinal, self.list().C_VerifyFinal, signature)
    }

    /// `C_SignRecoverInit` and `C_SignRecover`.
    ///
    /// # Errors
    /// The code of whichever call failed.
    pub fn sign_recover(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.init(Function::SignRecoverInit, self.list().C_SignRecoverInit, mechanism, key)?;
        self.transform(Function::SignRecover, self.list().C_SignRecover, data)
    }

    /// `C_VerifyRecoverInit` and `C_VerifyRecover`: the data that was signed.
    ///
    /// # Errors
    /// As [`Session::verify`].
    pub fn verify_recover(
        &self,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        signature: &[u8],
    ) -> Result<Vec<u8>> {
        self.init(Function::VerifyRecoverInit, self.list().C_VerifyRecoverInit, mechanism, key)?;
        self.transform(Function::VerifyRecover, self.list().C_VerifyRecover, signature)
    }

    /// `C_GetOperationState`: the state of the active operation, to be continued elsewhere.
    ///
    /// # Errors
    /// The module's code.
    pub fn operation_state(&self) -> Result<Vec<u8>> {
        self.output(Function::GetOperationState, self.list().C_GetOperationState)
    }

    /// `C_SetOperationState`; keys are 0 where the operation needs none.
    ///
    /// # Errors
    /// The module's code.
    pub fn set_operation_state(
        &self,
        state: &[u8],
        encryption_key: ObjectHandle,
        authentication_key: ObjectHandle,
    ) -> Result<()> {
        if let Some(remote) = self.module().other_process() {
            let keys = [encryption_key, authentication_key];
            return remote.set_operation_state(self.handle().0, state, keys);
        }
        let function = self.list().C_SetOperationState;
        self.call(Function::SetOperationState, function, |f, session| {
            let (state, state_length) = (state.as_ptr().cast_mut(), ulong(state.len()));
            // SAFETY: a readable state with its length.
            unsafe { f(session, state, state_length, encryption_key.0, authentication_key.0) }
        })
    }
}
