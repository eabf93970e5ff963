// SPDX-License-Identifier: Apache-2.0
//! Mechanisms with typed parameters, laid out for the C ABI only during a call.

use crate::parameter::{KdfParam, Params, bool, of, pointer};
use crate::rare::Rare;
use crate::ulong;
use metaslot_ck::*;
use std::ptr;

/// A mechanism and its parameter. It borrows what the parameter points to.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism<'a> {
    /// `CKM_…`
    pub number: CK_MECHANISM_TYPE,
    /// Its parameter.
    pub params: Params<'a>,
}

impl<'a> Mechanism<'a> {
    /// A mechanism without a parameter.
    #[must_use]
    pub const fn new(number: CK_MECHANISM_TYPE) -> Self {
        Self { number, params: Params::None }
    }

    /// A mechanism with a parameter.
    #[must_use]
    pub const fn with(number: CK_MECHANISM_TYPE, params: Params<'a>) -> Self {
        Self { number, params }
    }
}

impl From<CK_MECHANISM_TYPE> for Mechanism<'_> {
    fn from(number: CK_MECHANISM_TYPE) -> Self {
        Self::new(number)
    }
}

/// The C layout of one parameter, kept where [`Encoded::raw`] can point to it. One variant is alive
/// during one call, on the stack, so their difference in size costs nothing.
#[derive(Debug)]
pub(crate) enum Layout {
    Bytes(*mut u8, usize),
    Ulong(CK_ULONG),
    Ctr(CK_AES_CTR_PARAMS),
    Gcm(CK_GCM_PARAMS),
    Ccm(CK_CCM_PARAMS),
    ChaCha20Poly1305(CK_SALSA20_CHACHA20_POLY1305_PARAMS),
    Oaep(CK_RSA_PKCS_OAEP_PARAMS),
    Pss(CK_RSA_PKCS_PSS_PARAMS),
    Ecdh1(CK_ECDH1_DERIVE_PARAMS),
    EdDsa(CK_EDDSA_PARAMS),
    SignContext(CK_SIGN_ADDITIONAL_CONTEXT),
    HashSignContext(CK_HASH_SIGN_ADDITIONAL_CONTEXT),
    Hkdf(CK_HKDF_PARAMS),
    Pbkd2(CK_PKCS5_PBKD2_PARAMS2),
    Sp800108(Box<Kdf<CK_SP800_108_KDF_PARAMS>>),
    Sp800108Feedback(Box<Kdf<CK_SP800_108_FEEDBACK_KDF_PARAMS>>),
    Rare(Rare),
}

/// The structure of an SP 800-108 mechanism and the arrays that it points to.
#[derive(Debug)]
pub(crate) struct Kdf<T> {
    params: T,
    _data: Vec<CK_PRF_DATA_PARAM>,
    _formats: Vec<Format>,
}

/// What one data parameter of SP 800-108 points to.
#[derive(Debug)]
enum Format {
    None,
    Counter(CK_SP800_108_COUNTER_FORMAT),
    DkmLength(CK_SP800_108_DKM_LENGTH_FORMAT),
    Bytes(*mut u8, usize),
}

/// A mechanism as the C ABI wants it.
#[derive(Debug)]
pub(crate) struct Encoded<'a> {
    number: CK_MECHANISM_TYPE,
    layout: Layout,
    _params: std::marker::PhantomData<&'a [u8]>,
}

impl Encoded<'_> {
    /// The structure for one call. It points into `self`, which must outlive the call.
    #[inline]
    pub(crate) const fn raw(&mut self) -> CK_MECHANISM {
        let (parameter, length) = self.parameter();
        CK_MECHANISM {
            mechanism: self.number,
            pParameter: parameter,
            ulParameterLen: ulong(length),
        }
    }

    /// Address and length of the parameter.
    const fn parameter(&mut self) -> (*mut std::ffi::c_void, usize) {
        match &mut self.layout {
            Layout::Bytes(pointer, length) => ((*pointer).cast(), *length),
            Layout::Ulong(params) => of(params),
            Layout::Ctr(params) => of(params),
            Layout::Gcm(params) => of(params),
            Layout::Ccm(params) => of(params),
            Layout::ChaCha20Poly1305(params) => of(params),
            Layout::Oaep(params) => of(params),
            Layout::Pss(params) => of(params),
            Layout::Ecdh1(params) => of(params),
            Layout::EdDsa(params) => of(params),
            Layout::SignContext(params) => of(params),
            Layout::HashSignContext(params) => of(params),
            Layout::Hkdf(params) => of(params),
            Layout::Pbkd2(params) => of(params),
            Layout::Sp800108(kdf) => of(&mut kdf.params),
            Layout::Sp800108Feedback(kdf) => of(&mut kdf.params),
            Layout::Rare(rare) => rare.parameter(),
        }
    }
}

impl<'a> Mechanism<'a> {
    /// What `call` does with the structure. What is needed often is put together here, so that it is not moved.
    #[inline(always)]
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(*mut CK_MECHANISM) -> T) -> T {
        let (mut counter, mut authenticated, mut encoded);
        let (parameter, length) = match self.params {
            Params::None => (ptr::null_mut(), 0),
            Params::Bytes(bytes) => (pointer(bytes).cast(), bytes.len()),
            Params::Ctr { bits, block } => {
                counter = CK_AES_CTR_PARAMS { ulCounterBits: bits, cb: block };
                of(&mut counter)
            }
            Params::Gcm { iv, aad, tag_bits } => {
                authenticated = gcm(iv, aad, tag_bits);
                of(&mut authenticated)
            }
            _ => {
                encoded = self.encode();
                encoded.parameter()
            }
        };
        call(&mut CK_MECHANISM {
            mechanism: self.number,
            pParameter: parameter,
            ulParameterLen: ulong(length),
        })
    }

    /// The C layout.
    #[inline]
    pub(crate) fn encode(&self) -> Encoded<'a> {
        let layout = match self.params {
            Params::None => Layout::Bytes(ptr::null_mut(), 0),
            Params::Bytes(bytes) => Layout::Bytes(pointer(bytes), bytes.len()),
            Params::Ulong(value) => Layout::Ulong(value),
            Params::Ctr { bits, block } => {
                Layout::Ctr(CK_AES_CTR_PARAMS { ulCounterBits: bits, cb: block })
            }
            Params::Gcm { iv, aad, tag_bits } => Layout::Gcm(gcm(iv, aad, tag_bits)),
            Params::Ccm { data_length, nonce, aad, mac_length } => Layout::Ccm(CK_CCM_PARAMS {
                ulDataLen: data_length,
                pNonce: pointer(nonce),
                ulNonceLen: ulong(nonce.len()),
                pAAD: pointer(aad),
                ulAADLen: ulong(aad.len()),
                ulMACLen: mac_length,
            }),
            Params::ChaCha20Poly1305 { nonce, aad } => {
                Layout::ChaCha20Poly1305(CK_SALSA20_CHACHA20_POLY1305_PARAMS {
                    pNonce: pointer(nonce),
                    ulNonceLen: ulong(nonce.len()),
                    pAAD: pointer(aad),
                    ulAADLen: ulong(aad.len()),
                })
            }
            Params::Oaep { hash, mgf, label } => Layout::Oaep(CK_RSA_PKCS_OAEP_PARAMS {
                hashAlg: hash,
                mgf,
                source: CKZ_DATA_SPECIFIED,
                pSourceData: pointer(label).cast(),
                ulSourceDataLen: ulong(label.len()),
            }),
            Params::Pss { hash, mgf, salt_length } => {
                Layout::Pss(CK_RSA_PKCS_PSS_PARAMS { hashAlg: hash, mgf, sLen: salt_length })
            }
            Params::Ecdh1 { kdf, shared, public } => Layout::Ecdh1(CK_ECDH1_DERIVE_PARAMS {
                kdf,
                ulSharedDataLen: ulong(shared.len()),
                pSharedData: pointer(shared),
                ulPublicDataLen: ulong(public.len()),
                pPublicData: pointer(public),
            }),
            Params::EdDsa { prehash, context } => Layout::EdDsa(CK_EDDSA_PARAMS {
                phFlag: bool(prehash),
                ulContextDataLen: ulong(context.len()),
                pContextData: pointer(context),
            }),
            Params::SignContext { hedge, context } => {
                Layout::SignContext(CK_SIGN_ADDITIONAL_CONTEXT {
                    hedgeVariant: hedge,
                    pContext: pointer(context),
                    ulContextLen: ulong(context.len()),
                })
            }
            Params::HashSignContext { hedge, context, hash } => {
                Layout::HashSignContext(CK_HASH_SIGN_ADDITIONAL_CONTEXT {
                    hedgeVariant: hedge,
                    pContext: pointer(context),
                    ulContextLen: ulong(context.len()),
                    hash,
                })
            }
            Params::Hkdf { .. } | Params::Pbkd2 { .. } => self.params.kdf(),
            Params::Sp800108 { prf, data } => sp800_108(prf, data),
            Params::Sp800108Feedback { prf, data, iv } => sp800_108_feedback(prf, data, iv),
            other => Layout::Rare(Rare::of(&other)),
        };
        Encoded { number: self.number, layout, _params: std::marker::PhantomData }
    }
}

const fn gcm(iv: &[u8], aad: &[u8], tag_bits: CK_ULONG) -> CK_GCM_PARAMS {
    CK_GCM_PARAMS {
        pIv: pointer(iv),
        ulIvLen: ulong(iv.len()),
        ulIvBits: ulong(iv.len()) * 8,
        pAAD: pointer(aad),
        ulAADLen: ulong(aad.len()),
        ulTagBits: tag_bits,
    }
}

impl Params<'_> {
    /// HKDF and PBKDF2.
    fn kdf(&self) -> Layout {
        match *self {
            Self::Hkdf { extract, expand, prf, salt_type, salt, salt_key, info } => {
                Layout::Hkdf(CK_HKDF_PARAMS {
                    bExtract: bool(extract),
                    bExpand: bool(expand),
                    prfHashMechanism: prf,
                    ulSaltType: salt_type,
                    pSalt: pointer(salt),
                    ulSaltLen: ulong(salt.len()),
                    hSaltKey: salt_key.0,
                    pInfo: pointer(info),
                    ulInfoLen: ulong(info.len()),
                })
            }
            Self::Pbkd2 { prf, salt, iterations, password } => {
                Layout::Pbkd2(CK_PKCS5_PBKD2_PARAMS2 {
                    saltSource: CKZ_SALT_SPECIFIED,
                    pSaltSourceData: pointer(salt).cast(),
                    ulSaltSourceDataLen: ulong(salt.len()),
                    iterations,
                    prf,
                    pPrfData: ptr::null_mut(),
                    ulPrfDataLen: 0,
                    pPassword: pointer(password),
                    ulPasswordLen: ulong(password.len()),
                })
            }
            _ => Layout::Bytes(ptr::null_mut(), 0),
        }
    }
}

fn sp800_108(prf: CK_MECHANISM_TYPE, data: &[KdfParam<'_>]) -> Layout {
    let (mut data, formats) = kdf_data(data);
    let params = CK_SP800_108_KDF_PARAMS {
        prfType: prf,
        ulNumberOfDataParams: ulong(data.len()),
        pDataParams: data.as_mut_ptr(),
        ulAdditionalDerivedKeys: 0,
        pAdditionalDerivedKeys: ptr::null_mut(),
    };
    Layout::Sp800108(Box::new(Kdf { params, _data: data, _formats: formats }))
}

fn sp800_108_feedback(prf: CK_MECHANISM_TYPE, data: &[KdfParam<'_>], iv: &[u8]) -> Layout {
    let (mut data, formats) = kdf_data(data);
    let params = CK_SP800_108_FEEDBACK_KDF_PARAMS {
        prfType: prf,
        ulNumberOfDataParams: ulong(data.len()),
        pDataParams: data.as_mut_ptr(),
        ulIVLen: ulong(iv.len()),
        pIV: pointer(iv),
        ulAdditionalDerivedKeys: 0,
        pAdditionalDerivedKeys: ptr::null_mut(),
    };
    Layout::Sp800108Feedback(Box::new(Kdf { params, _data: data, _formats: formats }))
}

/// The array of data parameters, and what its entries point to. Both are heap blocks that keep
/// their place when the vectors are moved.
fn kdf_data(data: &[KdfParam<'_>]) -> (Vec<CK_PRF_DATA_PARAM>, Vec<Format>) {
    let mut formats: Vec<Format> = data.iter().map(Format::from).collect();
    let entries = data.iter().zip(&mut formats).map(|(param, format)| {
        let type_ = match param {
            KdfParam::Previous | KdfParam::Iteration { .. } => CK_SP800_108_ITERATION_VARIABLE,
            KdfParam::Counter { .. } => CK_SP800_108_COUNTER,
            KdfParam::DkmLength { .. } => CK_SP800_108_DKM_LENGTH,
            KdfParam::Bytes(_) => CK_SP800_108_BYTE_ARRAY,
        };
        let (value, length) = match format {
            Format::None => (ptr::null_mut(), 0),
            Format::Counter(format) => of(format),
            Format::DkmLength(format) => of(format),
            Format::Bytes(pointer, length) => ((*pointer).cast(), *length),
        };
        CK_PRF_DATA_PARAM { type_, pValue: value, ulValueLen: ulong(length) }
    });
    let entries = entries.collect();
    (entries, formats)
}

impl From<&KdfParam<'_>> for Format {
    fn from(param: &KdfParam<'_>) -> Self {
        match *param {
            KdfParam::Previous => Self::None,
            KdfParam::Iteration { little_endian, bits }
            | KdfParam::Counter { little_endian, bits } => {
                Self::Counter(CK_SP800_108_COUNTER_FORMAT {
                    bLittleEndian: bool(little_endian),
                    ulWidthInBits: bits,
                })
            }
            KdfParam::DkmLength { sum_of_segments, little_endian, bits } => {
                Self::DkmLength(CK_SP800_108_DKM_LENGTH_FORMAT {
                    dkmLengthMethod: if sum_of_segments {
                        CK_SP800_108_DKM_LENGTH_SUM_OF_SEGMENTS
                    } else {
                        CK_SP800_108_DKM_LENGTH_SUM_OF_KEYS
                    },
                    bLittleEndian: bool(little_endian),
                    ulWidthInBits: bits,
                })
            }
            KdfParam::Bytes(bytes) => Self::Bytes(pointer(bytes), bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_without_a_parameter_is_null_and_zero() {
        let raw = Mechanism::new(CKM_SHA256).encode().raw();
        assert!(raw.pParameter.is_null());
        assert_eq!((raw.mechanism, raw.ulParameterLen), (CKM_SHA256, 0));
    }

    #[test]
    fn structures_have_the_length_of_their_layout() {
        let iv = [7; 12];
        let gcm = Mechanism::with(CKM_AES_GCM, Params::Gcm { iv: &iv, aad: &[], tag_bits: 128 });
        assert_eq!(gcm.encode().raw().ulParameterLen, 48);
        let ctr = Mechanism::with(CKM_AES_CTR, Params::Ctr { bits: 128, block: [0; 16] });
        assert_eq!(ctr.encode().raw().ulParameterLen, 24);
        let cbc = Mechanism::with(CKM_AES_CBC, Params::Bytes(&[0; 16]));
        assert_eq!(cbc.encode().raw().ulParameterLen, 16);
    }

    #[test]
    fn key_derivation_data_keeps_its_order() {
        let data = [
            KdfParam::Iteration { little_endian: false, bits: 32 },
            KdfParam::Bytes(b"label"),
            KdfParam::DkmLength { sum_of_segments: false, little_endian: false, bits: 32 },
        ];
        let (entries, _formats) = kdf_data(&data);
        let types: Vec<_> = entries.iter().map(|entry| entry.type_).collect();
        assert_eq!(
            types,
            [CK_SP800_108_ITERATION_VARIABLE, CK_SP800_108_BYTE_ARRAY, CK_SP800_108_DKM_LENGTH]
        );
        assert_eq!(entries[1].ulValueLen, 5);
    }
}
