// SPDX-License-Identifier: Apache-2.0
//! Keys: generate, wrap, unwrap, derive, encapsulate.

use crate::{Error, Mechanism, Result, Session, Template, length, room, ulong};
use metaslot_ck::*;
use std::ptr;

impl Session {
    /// `C_GenerateKey`
    ///
    /// # Errors
    /// The module's code.
    pub fn generate_key(
        &self,
        mechanism: &Mechanism<'_>,
        template: &Template,
    ) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            return remote
                .make(Function::GenerateKey, &[self.handle().0], Some(mechanism), &[template])
                .map(|[key]| key);
        }
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut template = template.encode();
        let (attributes, count) = template.raw();
        let function = self.list().C_GenerateKey;
        let handle = self.module().fill(Function::GenerateKey, function, |f, handle| {
            // SAFETY: a mechanism and a template of this frame, and a handle to be written.
            unsafe { f(self.handle().0, &raw mut raw, attributes, count, handle) }
        })?;
        Ok(ObjectHandle(handle))
    }

    /// `C_GenerateKeyPair`: the public and the private key, in this order.
    ///
    /// # Errors
    /// The module's code.
    pub fn generate_key_pair(
        &self,
        mechanism: &Mechanism<'_>,
        public: &Template,
        private: &Template,
    ) -> Result<(ObjectHandle, ObjectHandle)> {
        if let Some(remote) = self.module().other_process() {
            let (function, session) = (Function::GenerateKeyPair, &[self.handle().0]);
            return remote
                .make(function, session, Some(mechanism), &[public, private])
                .map(|[public, private]| (public, private));
        }
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let (mut public, mut private) = (public.encode(), private.encode());
        let (public, public_count) = public.raw();
        let (private, private_count) = private.raw();
        let mut handles: [CK_OBJECT_HANDLE; 2] = [0; 2];
        let [public_key, private_key] = &mut handles;
        self.call(Function::GenerateKeyPair, self.list().C_GenerateKeyPair, |f, session| {
            // SAFETY: a mechanism and two templates of this frame, and two handles to be written.
            unsafe {
                f(
                    session,
                    &raw mut raw,
                    public,
                    public_count,
                    private,
                    private_count,
                    public_key,
                    private_key,
                )
            }
        })?;
        Ok((ObjectHandle(handles[0]), ObjectHandle(handles[1])))
    }

    /// `C_WrapKey`, after asking for the length.
    ///
    /// # Errors
    /// The module's code.
    pub fn wrap(
        &self,
        mechanism: &Mechanism<'_>,
        wrapping_key: ObjectHandle,
        key: ObjectHandle,
    ) -> Result<Vec<u8>> {
        if let Some(remote) = self.module().other_process() {
            return remote.wrap(self.handle().0, mechanism, [wrapping_key, key]);
        }
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut used: CK_ULONG = 0;
        let function = self.list().C_WrapKey;
        self.call(Function::WrapKey, function, |f, session| {
            let out = ptr::null_mut();
            // SAFETY: a mechanism of this frame; NULL asks for the length.
            unsafe { f(session, &raw mut raw, wrapping_key.0, key.0, out, &raw mut used) }
        })?;
        let mut wrapped = room(Function::WrapKey, used, 0)?;
        self.call(Function::WrapKey, function, |f, session| {
            let out = wrapped.as_mut_ptr();
            // SAFETY: a mechanism of this frame, and room for `used` bytes.
            unsafe { f(session, &raw mut raw, wrapping_key.0, key.0, out, &raw mut used) }
        })?;
        wrapped.truncate(length(used));
        Ok(wrapped)
    }

    /// `C_UnwrapKey`
    ///
    /// # Errors
    /// The module's code.
    pub fn unwrap(
        &self,
        mechanism: &Mechanism<'_>,
        unwrapping_key: ObjectHandle,
        wrapped: &[u8],
        template: &Template,
    ) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            let by = (unwrapping_key, Some(wrapped));
            return remote.make_by(Function::UnwrapKey, self.handle().0, mechanism, by, template);
        }
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut template = template.encode();
        let (attributes, count) = template.raw();
        let (data, data_length) = (wrapped.as_ptr().cast_mut(), ulong(wrapped.len()));
        let function = self.list().C_UnwrapKey;
        let handle = self.module().fill(Function::UnwrapKey, function, |f, handle| {
            let session = self.handle().0;
            // SAFETY: mechanism, data and template of this frame, and a handle to be written.
            unsafe {
                f(
                    session,
                    &raw mut raw,
                    unwrapping_key.0,
                    data,
                    data_length,
                    attributes,
                    count,
                    handle,
                )
            }
        })?;
        Ok(ObjectHandle(handle))
    }

    /// `C_DeriveKey`
    ///
    /// # Errors
    /// The module's code.
    pub fn derive(
        &self,
        mechanism: &Mechanism<'_>,
        base_key: ObjectHandle,
        template: &Template,
    ) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            let by = (base_key, None);
            return remote.make_by(Function::DeriveKey, self.handle().0, mechanism, by, template);
        }
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut template = template.encode();
        let (attributes, count) = template.raw();
        let function = self.list().C_DeriveKey;
        let handle = self.module().fill(Function::DeriveKey, function, |f, handle| {
            // SAFETY: a mechanism and a template of this frame, and a handle to be written.
            unsafe { f(self.handle().0, &raw mut raw, base_key.0, attributes, count, handle) }
        })?;
        Ok(ObjectHandle(handle))
    }

    /// `C_EncapsulateKey` (PKCS#11 3.2): the ciphertext and the shared key.
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` on an older module.
    pub fn encapsulate(
        &self,
        mechanism: &Mechanism<'_>,
        public_key: ObjectHandle,
        template: &Template,
    ) -> Result<(Vec<u8>, ObjectHandle)> {
        if let Some(remote) = self.module().other_process() {
            return remote.encapsulate(self.handle().0, mechanism, public_key, template);
        }
        let function = self.module().lists().v3_2.as_ref().and_then(|list| list.C_EncapsulateKey);
        let function = function.ok_or_else(|| Error::missing(Function::EncapsulateKey))?;
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut template = template.encode();
        let (attributes, count) = template.raw();
        let mut used: CK_ULONG = 0;
        let mut handle: CK_OBJECT_HANDLE = 0;
        let mut ciphertext = Vec::new();
        for ask in [true, false] {
            ciphertext.resize(if ask { 0 } else { length(used) }, 0);
            let out = if ask { ptr::null_mut() } else { ciphertext.as_mut_ptr() };
            self.call(Function::EncapsulateKey, Some(function), |f, session| {
                // SAFETY: mechanism and template of this frame; NULL asks for the length, else
                // there is room for `used` bytes; a handle to be written.
                unsafe {
                    f(
                        session,
                        &raw mut raw,
                        public_key.0,
                        attributes,
                        count,
                        out,
                        &raw mut used,
                        &raw mut handle,
                    )
                }
            })?;
        }
        ciphertext.truncate(length(used));
        Ok((ciphertext, ObjectHandle(handle)))
    }

    /// `C_DecapsulateKey` (PKCS#11 3.2): the shared key.
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` on an older module.
    pub fn decapsulate(
        &self,
        mechanism: &Mechanism<'_>,
        private_key: ObjectHandle,
        ciphertext: &[u8],
        template: &Template,
    ) -> Result<ObjectHandle> {
        if let Some(remote) = self.module().other_process() {
            let (function, by) = (Function::DecapsulateKey, (private_key, Some(ciphertext)));
            return remote.make_by(function, self.handle().0, mechanism, by, template);
        }
        let function = self.module().lists().v3_2.as_ref().and_then(|list| list.C_DecapsulateKey);
        let mut encoded = mechanism.encode();
        let mut raw = encoded.raw();
        let mut template = template.encode();
        let (attributes, count) = template.raw();
        let (data, data_length) = (ciphertext.as_ptr().cast_mut(), ulong(ciphertext.len()));
        let handle = self.module().fill(Function::DecapsulateKey, function, |f, handle| {
            let session = self.handle().0;
            // SAFETY: mechanism, data and template of this frame, and a handle to be written.
            unsafe {
                f(
                    session,
                    &raw mut raw,
                    private_key.0,
                    attributes,
                    count,
                    data,
                    data_length,
                    handle,
                )
            }
        })?;
        Ok(ObjectHandle(handle))
    }
}
