// SPDX-License-Identifier: Apache-2.0
//! Mechanisms and their parameters, by the shape that the vocabulary names. Everything is copied:
//! the caller may free its own after `*Init`.

use super::{Caller, Fields, Given, OutPointer, check_room, mapped};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::mechanism::Shape;
use metaslot_ck::*;
use metaslot_spi::{Bytes, KdfParam, Params, Template};
use std::mem::offset_of;

/// A mechanism as the engine takes it.
pub(crate) type Chosen = (CK_MECHANISM_TYPE, Params);

/// `CK_GCM_PARAMS` as it was before 2.40's errata, without `ulIvBits`; still in many headers.
#[derive(Clone, Copy)]
#[repr(C)]
struct ShortGcmParams {
    iv: *const u8,
    iv_length: CK_ULONG,
    aad: *const u8,
    aad_length: CK_ULONG,
    tag_bits: CK_ULONG,
}

/// Length of the only IV that GMAC takes bare, in bytes.
const GMAC_IV: CK_ULONG = 12;
/// No KDF has more inputs or makes more keys in one call.
const MAX_KDF_ENTRIES: CK_ULONG = 64;
/// No field of a parameter is longer, in bytes.
const LONGEST: CK_ULONG = 1 << 28;
/// What older headers have in the place of a password's length is a pointer, and no pointer is so
/// small.
pub(super) const NO_POINTER: usize = 1 << 16;

// Inlined by force: a parameter that is handed from function to function through memory is read each time in pieces other than
// those it was written in, and each time waits for the writes.
/// Bytes of the nonce of ChaCha20-Poly1305, whose length the standard counts in bits (PKCS#11 3.2 §6.61), and programs in bytes: no
/// nonce that there is has a length that is one of the other.
pub(super) const fn nonce_bytes(length: CK_ULONG) -> CK_ULONG {
    match length {
        64 | 96 | 192 => length / 8,
        bytes => bytes,
    }
}

impl<'a> Caller<'a> {
    /// A mechanism with its parameter.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    #[inline(always)]
    pub(crate) fn mechanism(self, at: Given<'a, CK_MECHANISM>) -> Result<Chosen> {
        let mechanism = at.read()?;
        let row = MechanismRow::find(mechanism.mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let params = self.params(row.shape, &mechanism).map_err(|error| match error {
            Error::ARGUMENTS_BAD => Error::MECHANISM_PARAM_INVALID,
            other => other,
        })?;
        Ok((mechanism.mechanism, params))
    }

    /// A mechanism that takes no parameter, as no digest does: nothing is made of one.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    pub(crate) fn mechanism_alone(self, at: Given<'a, CK_MECHANISM>) -> Result<CK_MECHANISM_TYPE> {
        let mechanism = at.read()?;
        let row = MechanismRow::find(mechanism.mechanism).ok_or(Error::MECHANISM_INVALID)?;
        if row.shape == Shape::None && mechanism.ulParameterLen != 0 {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        Ok(mechanism.mechanism)
    }

    #[inline(always)]
    fn params(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        match shape {
            Shape::None if raw.ulParameterLen == 0 => Ok(Params::None),
            Shape::None => Err(Error::MECHANISM_PARAM_INVALID),
            Shape::Iv(length) => self.iv(raw, length),
            Shape::OptionalIv(_) if raw.ulParameterLen == 0 => Ok(Params::None),
            Shape::OptionalIv(length) => self.iv(raw, length),
            // PKCS#11 3.2 §6.13.6 has the structure of GCM; callers also pass a bare IV.
            Shape::Nonce if raw.ulParameterLen == GMAC_IV => {
                self.parameter_bytes(raw).map(Params::Iv)
            }
            Shape::Nonce => self.gcm(raw),
            Shape::Ulong => Ok(Params::Ulong(self.parameter::<CK_ULONG>(raw)?)),
            Shape::Ctr => {
                let ctr = self.parameter::<CK_AES_CTR_PARAMS>(raw)?;
                Ok(Params::Ctr { bits: ctr.ulCounterBits, block: ctr.cb })
            }
            Shape::Gcm => self.gcm(raw),
            Shape::Ccm => self.ccm(raw),
            Shape::ChaCha20Poly1305 => {
                let p = self.parameter::<CK_SALSA20_CHACHA20_POLY1305_PARAMS>(raw)?;
                let nonce = self.owned(p.pNonce, nonce_bytes(p.ulNonceLen))?;
                Ok(Params::ChaCha20Poly1305 { nonce, aad: self.owned(p.pAAD, p.ulAADLen)? })
            }
            Shape::Oaep => self.oaep(raw),
            Shape::Pss => {
                let p = self.parameter::<CK_RSA_PKCS_PSS_PARAMS>(raw)?;
                Ok(Params::Pss { hash: p.hashAlg, mgf: p.mgf, salt_length: p.sLen })
            }
            Shape::Ecdh1 => {
                let p = self.parameter::<CK_ECDH1_DERIVE_PARAMS>(raw)?;
                let shared = self.owned(p.pSharedData, p.ulSharedDataLen)?;
                let public = self.owned(p.pPublicData, p.ulPublicDataLen)?;
                Ok(Params::Ecdh1 { kdf: p.kdf, shared, public })
            }
            Shape::EdDsa if raw.ulParameterLen == 0 => Ok(Params::None),
            Shape::EdDsa => {
                let p = self.parameter::<CK_EDDSA_PARAMS>(raw)?;
                let context = self.owned(p.pContextData, p.ulContextDataLen)?;
                Ok(Params::EdDsa { prehash: p.phFlag != CK_FALSE, context })
            }
            Shape::SignContext if raw.ulParameterLen == 0 => Ok(Params::None),
            Shape::SignContext => {
                let p = self.parameter::<CK_SIGN_ADDITIONAL_CONTEXT>(raw)?;
                let context = self.owned(p.pContext, p.ulContextLen)?;
                Ok(Params::SignContext { hedge: p.hedgeVariant, context })
            }
            Shape::HashSignContext => {
                let p = self.parameter::<CK_HASH_SIGN_ADDITIONAL_CONTEXT>(raw)?;
                let context = self.owned(p.pContext, p.ulContextLen)?;
                Ok(Params::HashSignContext { hedge: p.hedgeVariant, context, hash: p.hash })
            }
            Shape::Hkdf => self.hkdf(raw),
            Shape::Pbkd2 => self.pbkd2(raw),
            Shape::Sp800108Counter | Shape::Sp800108DoublePipeline => {
                let p = self.parameter::<CK_SP800_108_KDF_PARAMS>(raw)?;
                let counter = shape == Shape::Sp800108Counter;
                let data = self.kdf_data(p.pDataParams, p.ulNumberOfDataParams, counter)?;
                let additional =
                    self.derived_keys(p.pAdditionalDerivedKeys, p.ulAdditionalDerivedKeys)?;
                Ok(Params::Sp800108 { prf: p.prfType, data, iv: Bytes::new(), additional })
            }
            Shape::Handle => {
                Ok(Params::Key(ObjectHandle(self.parameter::<CK_OBJECT_HANDLE>(raw)?)))
            }
            _ => self.classic(shape, raw),
        }
    }

    /// What is not asked for often, or takes its time anyway.
    #[inline(never)]
    fn classic(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        match shape {
            Shape::RsaAes => {
                let p = self.parameter::<CK_RSA_AES_KEY_WRAP_PARAMS>(raw)?;
                let by = self.oaep_at(Given::inside(p.pOAEPParams))?;
                Ok(Params::Transport { bits: p.ulAESKeyBits, by: Box::new(by) })
            }
            Shape::EcdhAes => {
                let p = self.parameter::<CK_ECDH_AES_KEY_WRAP_PARAMS>(raw)?;
                let shared = self.owned(p.pSharedData, p.ulSharedDataLen)?;
                let by = Params::Ecdh1 { kdf: p.kdf, shared, public: Bytes::new() };
                Ok(Params::Transport { bits: p.ulAESKeyBits, by: Box::new(by) })
            }
            Shape::PublicValue => {
                let public = self.parameter_bytes(raw)?;
                Ok(Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public })
            }
            Shape::X942 => {
                let p = self.parameter::<CK_X9_42_DH1_DERIVE_PARAMS>(raw)?;
                let shared = self.owned(p.pOtherInfo, p.ulOtherInfoLen)?;
                let public = self.owned(p.pPublicData, p.ulPublicDataLen)?;
                let kdf = match p.kdf {
                    CKD_NULL | CKD_SHA1_KDF_ASN1 => p.kdf,
                    // The same as ANSI X9.63's.
                    CKD_SHA1_KDF_CONCATENATE => CKD_SHA1_KDF,
                    _ => return Err(Error::MECHANISM_PARAM_INVALID),
                };
                Ok(Params::Ecdh1 { kdf, shared, public })
            }
            Shape::StringData => {
                let p = self.parameter::<CK_KEY_DERIVATION_STRING_DATA>(raw)?;
                Ok(Params::Data { iv: Bytes::new(), data: self.owned(p.pData, p.ulLen)? })
            }
            Shape::CbcData(8) => {
                let p = self.parameter::<CK_DES_CBC_ENCRYPT_DATA_PARAMS>(raw)?;
                let data = self.owned(p.pData, p.length)?;
                Ok(Params::Data { iv: Bytes::from_slice(&p.iv), data })
            }
            Shape::CbcData(_) => {
                let p = self.parameter::<CK_AES_CBC_ENCRYPT_DATA_PARAMS>(raw)?;
                let data = self.owned(p.pData, p.length)?;
                Ok(Params::Data { iv: Bytes::from_slice(&p.iv), data })
            }
            Shape::ChaCha20 => {
                let p = self.parameter::<CK_CHACHA20_PARAMS>(raw)?;
                let length = match (p.blockCounterBits, p.ulNonceBits) {
                    (32, 96) => 4,
                    (64, 64 | 192) => 8,
                    _ => return Err(Error::MECHANISM_PARAM_INVALID),
                };
                let mut counter = [0; 8];
                counter[..length]
                    .copy_from_slice(&self.owned(p.pBlockCounter, length as CK_ULONG)?);
                let nonce = self.owned(p.pNonce, p.ulNonceBits / 8)?;
                Ok(Params::ChaCha20 { counter: u64::from_le_bytes(counter), nonce })
            }
            Shape::IkePrf | Shape::Ike1Prf | Shape::Ike1Extended | Shape::Ike2PrfPlus => {
                self.ike(shape, raw)
            }
            Shape::TlsMaster
            | Shape::Tls12Master
            | Shape::Tls12Extended
            | Shape::TlsKeys
            | Shape::Tls12Keys
            | Shape::TlsKdf
            | Shape::TlsMac
            | Shape::Tls10Mac => self.tls(shape, raw),
            Shape::XEdDsa => {
                Ok(Params::XEdDsa { hash: self.parameter::<CK_XEDDSA_PARAMS>(raw)?.hash })
            }
            Shape::Otp => self.otp(raw).map(Params::Otp),
            Shape::DsaSeed { given } => self.dsa_seed(given, raw),
            Shape::Sp800108Feedback => {
                let p = self.parameter::<CK_SP800_108_FEEDBACK_KDF_PARAMS>(raw)?;
                let data = self.kdf_data(p.pDataParams, p.ulNumberOfDataParams, false)?;
                let iv = self.owned(p.pIV, p.ulIVLen)?;
                let additional =
                    self.derived_keys(p.pAdditionalDerivedKeys, p.ulAdditionalDerivedKeys)?;
                Ok(Params::Sp800108 { prf: p.prfType, data, iv, additional })
            }
            _ => self.old(shape, raw),
        }
    }

    fn ike(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        let mut data_as_key = false;
        let (prf, keys, parts, number) = match shape {
            Shape::IkePrf => {
                let p = self.parameter::<CK_IKE_PRF_DERIVE_PARAMS>(raw)?;
                data_as_key = p.bDataAsKey != CK_FALSE;
                let keys = [(p.bRekey, p.hNewKey), (CK_FALSE, 0)];
                (p.prfMechanism, keys, [(p.pNi, p.ulNiLen), (p.pNr, p.ulNrLen)], None)
            }
            Shape::Ike1Prf => {
                let p = self.parameter::<CK_IKE1_PRF_DERIVE_PARAMS>(raw)?;
                let keys = [(p.bHasPrevKey, p.hPrevKey), (CK_TRUE, p.hKeygxy)];
                let parts = [(p.pCKYi, p.ulCKYiLen), (p.pCKYr, p.ulCKYrLen)];
                (p.prfMechanism, keys, parts, Some(p.keyNumber))
            }
            Shape::Ike1Extended => {
                let p = self.parameter::<CK_IKE1_EXTENDED_DERIVE_PARAMS>(raw)?;
                let keys = [(p.bHasKeygxy, p.hKeygxy), (CK_FALSE, 0)];
                let parts = [(p.pExtraData, p.ulExtraDataLen), (std::ptr::null_mut(), 0)];
                (p.prfMechanism, keys, parts, None)
            }
            _ => {
                let p = self.parameter::<CK_IKE2_PRF_PLUS_DERIVE_PARAMS>(raw)?;
                let keys = [(p.bHasSeedKey, p.hSeedKey), (CK_FALSE, 0)];
                let parts = [(p.pSeedData, p.ulSeedDataLen), (std::ptr::null_mut(), 0)];
                (p.prfMechanism, keys, parts, None)
            }
        };
        let mut data = Bytes::new();
        for (at, length) in parts {
            data.extend_from_slice(&self.owned(at, length)?);
        }
        data.extend(number);
        let there = keys.into_iter().filter(|(there, _)| *there != CK_FALSE);
        let before = there.map(|(_, handle)| ObjectHandle(handle)).collect();
        Ok(Params::Ike { prf, data, data_as_key, before })
    }

    /// A parameter that is one structure.
    #[inline(always)]
    pub(super) fn parameter<T: Copy>(self, raw: &CK_MECHANISM) -> Result<T> {
        if raw.ulParameterLen != size_of::<T>() as CK_ULONG {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        Given::inside(raw.pParameter.cast()).read()
    }

    fn parameter_bytes(self, raw: &CK_MECHANISM) -> Result<Bytes> {
        self.owned(raw.pParameter.cast(), raw.ulParameterLen)
    }

    /// What a pointer in a parameter points to.
    #[inline(always)]
    pub(super) fn owned(self, at: *const u8, length: CK_ULONG) -> Result<Bytes> {
        if length > LONGEST {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let bytes = self.bytes(Given::inside(at), length)?;
        check_room(bytes.len())?;
        Ok(Bytes::from_slice(bytes))
    }

    fn iv(self, raw: &CK_MECHANISM, length: usize) -> Result<Params> {
        if raw.ulParameterLen != length as CK_ULONG {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        self.parameter_bytes(raw).map(Params::Iv)
    }

    #[inline(always)]
    fn gcm(self, raw: &CK_MECHANISM) -> Result<Params> {
        if raw.ulParameterLen == size_of::<ShortGcmParams>() as CK_ULONG {
            let p = self.parameter::<ShortGcmParams>(raw)?;
            let iv = self.owned(p.iv, p.iv_length)?;
            let aad = self.owned(p.aad, p.aad_length)?;
            return Ok(Params::Gcm { iv, aad, tag_bits: p.tag_bits });
        }
        if raw.ulParameterLen != size_of::<CK_GCM_PARAMS>() as CK_ULONG {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        // Word by word, as the caller has written it just now: a wider load would wait until its stores are in the cache.
        let p = Fields::<CK_GCM_PARAMS>::new(Given::inside(raw.pParameter.cast()))?;
        // Some callers give the length of the IV in bits only.
        let iv_length = match p.get(offset_of!(CK_GCM_PARAMS, ulIvLen))? {
            0 => p.get::<CK_ULONG>(offset_of!(CK_GCM_PARAMS, ulIvBits))? / 8,
            length => length,
        };
        let iv = self.owned(p.get(offset_of!(CK_GCM_PARAMS, pIv))?, iv_length)?;
        let aad_length = p.get(offset_of!(CK_GCM_PARAMS, ulAADLen))?;
        let aad = self.owned(p.get(offset_of!(CK_GCM_PARAMS, pAAD))?, aad_length)?;
        Ok(Params::Gcm { iv, aad, tag_bits: p.get(offset_of!(CK_GCM_PARAMS, ulTagBits))? })
    }

    fn ccm(self, raw: &CK_MECHANISM) -> Result<Params> {
        let p = self.parameter::<CK_CCM_PARAMS>(raw)?;
        let nonce = self.owned(p.pNonce, p.ulNonceLen)?;
        let aad = self.owned(p.pAAD, p.ulAADLen)?;
        Ok(Params::Ccm { data_length: p.ulDataLen, nonce, aad, mac_length: p.ulMACLen })
    }

    fn oaep(self, raw: &CK_MECHANISM) -> Result<Params> {
        if raw.ulParameterLen != size_of::<CK_RSA_PKCS_OAEP_PARAMS>() as CK_ULONG {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        self.oaep_at(Given::inside(raw.pParameter.cast()))
    }

    fn oaep_at(self, at: Given<'a, CK_RSA_PKCS_OAEP_PARAMS>) -> Result<Params> {
        let p = at.read()?;
        let label = self.owned(p.pSourceData.cast_const().cast(), p.ulSourceDataLen)?;
        if !matches!(p.source, 0 | CKZ_DATA_SPECIFIED) || (p.source == 0 && !label.is_empty()) {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        // Zeros mean the defaults of PKCS #1; a widespread OpenSSL provider sends them.
        let hash = if p.hashAlg == 0 { CKM_SHA_1 } else { p.hashAlg };
        let mgf = if p.mgf == 0 { CKG_MGF1_SHA1 } else { p.mgf };
        Ok(Params::Oaep { hash, mgf, label })
    }

    fn hkdf(self, raw: &CK_MECHANISM) -> Result<Params> {
        let p = self.parameter::<CK_HKDF_PARAMS>(raw)?;
        Ok(Params::Hkdf {
            extract: p.bExtract != CK_FALSE,
            expand: p.bExpand != CK_FALSE,
            prf: p.prfHashMechanism,
            salt_type: p.ulSaltType,
            salt: if p.ulSaltType == CKF_HKDF_SALT_DATA {
                self.owned(p.pSalt, p.ulSaltLen)?
            } else {
                Bytes::new()
            },
            salt_key: ObjectHandle(p.hSaltKey),
            info: self.owned(p.pInfo, p.ulInfoLen)?,
        })
    }

    fn pbkd2(self, raw: &CK_MECHANISM) -> Result<Params> {
        let p = self.parameter::<CK_PKCS5_PBKD2_PARAMS2>(raw)?;
        if p.saltSource != CKZ_SALT_SPECIFIED || p.ulPrfDataLen != 0 {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let salt = self.owned(p.pSaltSourceData.cast_const().cast(), p.ulSaltSourceDataLen)?;
        // 2.40 had a pointer to the length here, and the structure has the same size.
        let at = usize::try_from(p.ulPasswordLen).unwrap_or(0);
        let length = if at >= NO_POINTER {
            let pointer = std::ptr::with_exposed_provenance::<CK_ULONG>(at);
            if !mapped(pointer.cast(), size_of::<CK_ULONG>()) {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
            Given::inside(pointer).read()?
        } else {
            p.ulPasswordLen
        };
        if length > NO_POINTER as CK_ULONG {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let password = self.secret(Given::inside(p.pPassword), length)?;
        Ok(Params::Pbkd2 { prf: p.prf, salt, iterations: p.iterations, password })
    }

    fn kdf_data(
        self,
        at: *const CK_PRF_DATA_PARAM,
        count: CK_ULONG,
        counter: bool,
    ) -> Result<Vec<KdfParam>> {
        if count > MAX_KDF_ENTRIES {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let at = Given::inside(at);
        (0..usize::try_from(count).unwrap_or(0))
            .map(|index| self.kdf_datum(at.nth(index)?.read()?, counter))
            .collect()
    }

    fn kdf_datum(self, datum: CK_PRF_DATA_PARAM, counter: bool) -> Result<KdfParam> {
        let (at, length) = (datum.pValue.cast_const(), datum.ulValueLen);
        let sized = |size: usize| {
            if length == size as CK_ULONG { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
        };
        match datum.type_ {
            CK_SP800_108_ITERATION_VARIABLE if !counter => {
                // In the feedback modes this is the previous block, and has no format.
                sized(0)?;
                Ok(KdfParam::Iteration { little_endian: false, bits: 0 })
            }
            CK_SP800_108_ITERATION_VARIABLE | CK_SP800_108_COUNTER => {
                sized(size_of::<CK_SP800_108_COUNTER_FORMAT>())?;
                let format = Given::<CK_SP800_108_COUNTER_FORMAT>::inside(at.cast()).read()?;
                let little_endian = format.bLittleEndian != CK_FALSE;
                let bits = format.ulWidthInBits;
                Ok(if datum.type_ == CK_SP800_108_COUNTER {
                    KdfParam::Counter { little_endian, bits }
                } else {
                    KdfParam::Iteration { little_endian, bits }
                })
            }
            CK_SP800_108_DKM_LENGTH => {
                sized(size_of::<CK_SP800_108_DKM_LENGTH_FORMAT>())?;
                let format = Given::<CK_SP800_108_DKM_LENGTH_FORMAT>::inside(at.cast()).read()?;
                let sum_of_segments = match format.dkmLengthMethod {
                    CK_SP800_108_DKM_LENGTH_SUM_OF_KEYS => false,
                    CK_SP800_108_DKM_LENGTH_SUM_OF_SEGMENTS => true,
                    _ => return Err(Error::MECHANISM_PARAM_INVALID),
                };
                Ok(KdfParam::DkmLength {
                    sum_of_segments,
                    little_endian: format.bLittleEndian != CK_FALSE,
                    bits: format.ulWidthInBits,
                })
            }
            CK_SP800_108_BYTE_ARRAY => self.owned(at.cast(), length).map(KdfParam::Bytes),
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    fn derived_keys(self, at: *const CK_DERIVED_KEY, count: CK_ULONG) -> Result<Vec<Template>> {
        let keys = self.derived_key_rows(at, count)?;
        keys.into_iter()
            .map(|key| self.template(Given::inside(key.pTemplate), key.ulAttributeCount))
            .collect()
    }

    fn derived_key_rows(
        self,
        at: *const CK_DERIVED_KEY,
        count: CK_ULONG,
    ) -> Result<Vec<CK_DERIVED_KEY>> {
        if count > MAX_KDF_ENTRIES {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let at = Given::inside(at);
        let rows = (0..usize::try_from(count).unwrap_or(0)).map(|index| {
            let row = at.nth(index)?.read()?;
            if row.phKey.is_null() { Err(Error::ARGUMENTS_BAD) } else { Ok(row) }
        });
        rows.collect()
    }

    /// Where the handles of additional derived keys go (PKCS#11 3.2 §6.42), in their order.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn additional_keys(
        self,
        at: &Given<'a, CK_MECHANISM>,
    ) -> Result<Vec<OutPointer<'a, CK_OBJECT_HANDLE>>> {
        let raw = at.read()?;
        let (keys, count) = match MechanismRow::find(raw.mechanism).map(|row| row.shape) {
            Some(Shape::Sp800108Counter | Shape::Sp800108DoublePipeline) => {
                let p = self.parameter::<CK_SP800_108_KDF_PARAMS>(&raw)?;
                (p.pAdditionalDerivedKeys, p.ulAdditionalDerivedKeys)
            }
            Some(Shape::Sp800108Feedback) => {
                let p = self.parameter::<CK_SP800_108_FEEDBACK_KDF_PARAMS>(&raw)?;
                (p.pAdditionalDerivedKeys, p.ulAdditionalDerivedKeys)
            }
            _ => return Ok(Vec::new()),
        };
        let rows = self.derived_key_rows(keys, count)?;
        rows.into_iter().map(|row| self.place(Given::inside(row.phKey))).collect()
    }
}

const _: () = assert!(size_of::<ShortGcmParams>() == 40 && size_of::<CK_GCM_PARAMS>() == 48);
const _: () = assert!(size_of::<CK_PKCS5_PBKD2_PARAMS>() == size_of::<CK_PKCS5_PBKD2_PARAMS2>());
