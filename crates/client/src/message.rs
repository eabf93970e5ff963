// SPDX-License-Identifier: Apache-2.0
//! Several messages under one key (PKCS#11 3.0): each has its own parameter, in which IV and tag stand.

use crate::{Error, Mechanism, Result, Session, length, room, ulong};
use metaslot_ck::*;
use std::ffi::c_void;
use std::ptr;

/// What is done with messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// `C_MessageEncryptInit`, `C_EncryptMessage`, …
    Encrypt,
    /// `C_MessageDecryptInit`, `C_DecryptMessage`, …
    Decrypt,
}

/// The parameter of one message. Lengths are in bytes unless their name says bits.
#[derive(Debug)]
pub enum MessageParams<'a> {
    /// `CK_GCM_MESSAGE_PARAMS`
    Gcm {
        /// The IV, or room for it behind its fixed part.
        iv: &'a mut [u8],
        /// Length of the fixed part, in bits.
        fixed_bits: CK_ULONG,
        /// `CKG_…`
        generator: CK_ULONG,
        /// The tag, or room for it.
        tag: &'a mut [u8],
    },
    /// `CK_CCM_MESSAGE_PARAMS`
    Ccm {
        /// Length of the plaintext.
        data_length: CK_ULONG,
        /// The nonce, or room for it behind its fixed part.
        nonce: &'a mut [u8],
        /// Length of the fixed part, in bits.
        fixed_bits: CK_ULONG,
        /// `CKG_…`
        generator: CK_ULONG,
        /// The MAC, or room for it.
        mac: &'a mut [u8],
    },
    /// `CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS`
    ChaCha20Poly1305 {
        /// The nonce.
        nonce: &'a mut [u8],
        /// The tag, or room for it: 16 bytes.
        tag: &'a mut [u8; 16],
    },
}

/// A parameter as the C ABI has it.
enum Raw {
    Gcm(CK_GCM_MESSAGE_PARAMS),
    Ccm(CK_CCM_MESSAGE_PARAMS),
    ChaCha20Poly1305(CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS),
}

impl MessageParams<'_> {
    fn raw(&mut self) -> Raw {
        match self {
            Self::Gcm { iv, fixed_bits, generator, tag } => Raw::Gcm(CK_GCM_MESSAGE_PARAMS {
                pIv: iv.as_mut_ptr(),
                ulIvLen: ulong(iv.len()),
                ulIvFixedBits: *fixed_bits,
                ivGenerator: *generator,
                pTag: tag.as_mut_ptr(),
                ulTagBits: ulong(8 * tag.len()),
            }),
            Self::Ccm { data_length, nonce, fixed_bits, generator, mac } => {
                Raw::Ccm(CK_CCM_MESSAGE_PARAMS {
                    ulDataLen: *data_length,
                    pNonce: nonce.as_mut_ptr(),
                    ulNonceLen: ulong(nonce.len()),
                    ulNonceFixedBits: *fixed_bits,
                    nonceGenerator: *generator,
                    pMAC: mac.as_mut_ptr(),
                    ulMACLen: ulong(mac.len()),
                })
            }
            Self::ChaCha20Poly1305 { nonce, tag } => {
                Raw::ChaCha20Poly1305(CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS {
                    pNonce: nonce.as_mut_ptr(),
                    ulNonceLen: ulong(nonce.len()),
                    pTag: tag.as_mut_ptr(),
                })
            }
        }
    }
}

impl Raw {
    fn at(&mut self) -> (*mut c_void, CK_ULONG) {
        match self {
            Self::Gcm(raw) => (ptr::from_mut(raw).cast(), ulong(size_of_val(raw))),
            Self::Ccm(raw) => (ptr::from_mut(raw).cast(), ulong(size_of_val(raw))),
            Self::ChaCha20Poly1305(raw) => (ptr::from_mut(raw).cast(), ulong(size_of_val(raw))),
        }
    }
}

impl Session {
    fn list_of(&self, function: Function) -> Result<&CK_FUNCTION_LIST_3_0> {
        self.module().lists().v3_0.as_ref().ok_or_else(|| Error::missing(function))
    }

    /// `C_MessageEncryptInit`, `C_MessageDecryptInit`
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` on a 2.40 module.
    pub fn message_init(
        &self,
        way: Way,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
    ) -> Result<()> {
        let list = self.list_of(Function::MessageEncryptInit)?;
        match way {
            Way::Encrypt => {
                self.init(Function::MessageEncryptInit, list.C_MessageEncryptInit, mechanism, key)
            }
            Way::Decrypt => {
                self.init(Function::MessageDecryptInit, list.C_MessageDecryptInit, mechanism, key)
            }
        }
    }

    /// `C_EncryptMessage`, `C_DecryptMessage`
    ///
    /// # Errors
    /// The module's code.
    pub fn message(
        &self,
        way: Way,
        params: &mut MessageParams<'_>,
        aad: &[u8],
        data: &[u8],
    ) -> Result<Vec<u8>> {
        let list = self.list_of(Function::EncryptMessage)?;
        let (function, pointer) = match way {
            Way::Encrypt => (Function::EncryptMessage, list.C_EncryptMessage),
            Way::Decrypt => (Function::DecryptMessage, list.C_DecryptMessage),
        };
        let mut raw = params.raw();
        let (parameter, parameter_length) = raw.at();
        let (aad, aad_length) = (aad.as_ptr().cast_mut(), ulong(aad.len()));
        let (data, data_length) = (data.as_ptr().cast_mut(), ulong(data.len()));
        offered(function, data_length, |out, used| {
            self.call(function, pointer, |f, session| {
                // SAFETY: a parameter of this frame with what it points to, readable bytes with their lengths, and room for `used` bytes.
                unsafe {
                    f(
                        session,
                        parameter,
                        parameter_length,
                        aad,
                        aad_length,
                        data,
                        data_length,
                        out.as_mut_ptr(),
                        used,
                    )
                }
            })
        })
    }

    /// `C_EncryptMessageBegin`, `C_DecryptMessageBegin`
    ///
    /// # Errors
    /// The module's code.
    pub fn message_begin(
        &self,
        way: Way,
        params: &mut MessageParams<'_>,
        aad: &[u8],
    ) -> Result<()> {
        let list = self.list_of(Function::EncryptMessageBegin)?;
        let (function, pointer) = match way {
            Way::Encrypt => (Function::EncryptMessageBegin, list.C_EncryptMessageBegin),
            Way::Decrypt => (Function::DecryptMessageBegin, list.C_DecryptMessageBegin),
        };
        let mut raw = params.raw();
        let (parameter, parameter_length) = raw.at();
        self.call(function, pointer, |f, session| {
            let (aad, aad_length) = (aad.as_ptr().cast_mut(), ulong(aad.len()));
            // SAFETY: a parameter of this frame with what it points to, and readable bytes with their length.
            unsafe { f(session, parameter, parameter_length, aad, aad_length) }
        })
    }

    /// `C_EncryptMessageNext`, `C_DecryptMessageNext`
    ///
    /// # Errors
    /// The module's code.
    pub fn message_next(
        &self,
        way: Way,
        params: &mut MessageParams<'_>,
        data: &[u8],
        flags: CK_FLAGS,
    ) -> Result<Vec<u8>> {
        let list = self.list_of(Function::EncryptMessageNext)?;
        let (function, pointer) = match way {
            Way::Encrypt => (Function::EncryptMessageNext, list.C_EncryptMessageNext),
            Way::Decrypt => (Function::DecryptMessageNext, list.C_DecryptMessageNext),
        };
        let mut raw = params.raw();
        let (parameter, parameter_length) = raw.at();
        let (data, data_length) = (data.as_ptr().cast_mut(), ulong(data.len()));
        offered(function, data_length, |out, used| {
            self.call(function, pointer, |f, session| {
                let out = out.as_mut_ptr();
                // SAFETY: as in `message`.
                unsafe {
                    f(session, parameter, parameter_length, data, data_length, out, used, flags)
                }
            })
        })
    }

    /// `C_MessageEncryptFinal`, `C_MessageDecryptFinal`
    ///
    /// # Errors
    /// The module's code.
    pub fn message_final(&self, way: Way) -> Result<()> {
        let list = self.list_of(Function::MessageEncryptFinal)?;
        let (function, pointer) = match way {
            Way::Encrypt => (Function::MessageEncryptFinal, list.C_MessageEncryptFinal),
            Way::Decrypt => (Function::MessageDecryptFinal, list.C_MessageDecryptFinal),
        };
        self.call(function, pointer, |f, session| {
            // SAFETY: takes a number only.
            unsafe { f(session) }
        })
    }
}

/// What a call gives into room for as much as it was given, or for more where it says so.
fn offered(
    function: Function,
    usual: CK_ULONG,
    mut fill: impl FnMut(&mut [u8], &mut CK_ULONG) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut used = usual;
    let mut out = room(function, used, 0)?;
    match fill(&mut out, &mut used) {
        Err(failure) if failure.code == metaslot_ck::Error::BUFFER_TOO_SMALL => {
            out = room(function, used, 0)?;
            fill(&mut out, &mut used)?;
        }
        filled => filled?,
    }
    if length(used) > out.len() {
        return Err(Error::new(function, metaslot_ck::Error::GENERAL_ERROR));
    }
    out.truncate(length(used));
    Ok(out)
}
