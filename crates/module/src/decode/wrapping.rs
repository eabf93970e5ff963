// SPDX-License-Identifier: Apache-2.0
//! Parameters of authenticated ciphers that wrap, through which the caller is told a nonce and a tag (PKCS#11 3.2 §6.13.3,
//! §6.13.5).

use super::mechanism::Chosen;
use super::{Caller, Given, check_room};
use metaslot_ck::*;
use metaslot_engine::Apart;
use metaslot_spi::{Bytes, Params};

/// No tag is longer, in bytes.
const LONGEST_TAG: CK_ULONG = 16;

/// Where the caller is told what was used.
pub(crate) struct Told<'a> {
    nonce: Given<'a, u8>,
    fixed_bits: CK_ULONG,
    generator: CK_GENERATOR_FUNCTION,
    /// Where the tag is, and how long; nowhere, where it follows the bytes.
    tag: Option<(Given<'a, u8>, CK_ULONG)>,
}

/// The four structures as one.
struct Fields {
    nonce: (*const u8, CK_ULONG),
    fixed_bits: CK_ULONG,
    generator: CK_GENERATOR_FUNCTION,
    aad: (*const u8, CK_ULONG),
    tag: *const u8,
    /// In bits for GCM, in bytes for CCM.
    tag_length: CK_ULONG,
}

impl<'a> Caller<'a> {
    /// The mechanism of `C_WrapKey` and `C_UnwrapKey`.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn wrapping(
        self,
        at: Given<'a, CK_MECHANISM>,
    ) -> Result<(Chosen, Option<Told<'a>>)> {
        let raw = at.read()?;
        let fields = match raw.mechanism {
            CKM_AES_GCM if raw.ulParameterLen == size_of::<CK_GCM_WRAP_PARAMS>() as CK_ULONG => {
                let p = self.parameter::<CK_GCM_WRAP_PARAMS>(&raw)?;
                Fields {
                    nonce: (p.pIv, p.ulIvLen),
                    fixed_bits: p.ulIvFixedBits,
                    generator: p.ivGenerator,
                    aad: (p.pAAD, p.ulAADLen),
                    tag: std::ptr::null(),
                    tag_length: p.ulTagBits,
                }
            }
            CKM_AES_CCM if raw.ulParameterLen == size_of::<CK_CCM_WRAP_PARAMS>() as CK_ULONG => {
                let p = self.parameter::<CK_CCM_WRAP_PARAMS>(&raw)?;
                Fields {
                    nonce: (p.pNonce, p.ulNonceLen),
                    fixed_bits: p.ulNonceFixedBits,
                    generator: p.nonceGenerator,
                    aad: (p.pAAD, p.ulAADLen),
                    tag: std::ptr::null(),
                    tag_length: p.ulMACLen,
                }
            }
            _ => return Ok((self.mechanism(at)?, None)),
        };
        let (chosen, told) = self.told(raw.mechanism, &fields, false)?;
        Ok((chosen, Some(told)))
    }

    /// The mechanism of `C_WrapKeyAuthenticated` and `C_UnwrapKeyAuthenticated`, and the associated data that they are given.
    ///
    /// # Errors
    /// As [`Self::mechanism`]; `CKR_MECHANISM_INVALID` for what the standard does not wrap so.
    pub(crate) fn wrapping_apart(
        self,
        at: Given<'a, CK_MECHANISM>,
        data: Given<'a, u8>,
        length: CK_ULONG,
    ) -> Result<(Chosen, Told<'a>)> {
        let raw = at.read()?;
        let aad = (data.pointer().cast_const(), length);
        self.bytes(data, length)?;
        let fields = match raw.mechanism {
            CKM_AES_GCM => {
                let p = self.parameter::<CK_GCM_MESSAGE_PARAMS>(&raw)?;
                Fields {
                    nonce: (p.pIv, p.ulIvLen),
                    fixed_bits: p.ulIvFixedBits,
                    generator: p.ivGenerator,
                    aad,
                    tag: p.pTag,
                    tag_length: p.ulTagBits,
                }
            }
            CKM_AES_CCM => {
                let p = self.parameter::<CK_CCM_MESSAGE_PARAMS>(&raw)?;
                Fields {
                    nonce: (p.pNonce, p.ulNonceLen),
                    fixed_bits: p.ulNonceFixedBits,
                    generator: p.nonceGenerator,
                    aad,
                    tag: p.pMAC,
                    tag_length: p.ulMACLen,
                }
            }
            _ => return Err(Error::MECHANISM_INVALID),
        };
        self.told(raw.mechanism, &fields, true)
    }

    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`, also where the nonce or the tag has no place.
    fn told(
        self,
        mechanism: CK_MECHANISM_TYPE,
        fields: &Fields,
        apart: bool,
    ) -> Result<(Chosen, Told<'a>)> {
        let owned = |(at, length): (*const u8, CK_ULONG)| {
            self.owned(at, length).map_err(|error| match error {
                Error::ARGUMENTS_BAD => Error::MECHANISM_PARAM_INVALID,
                other => other,
            })
        };
        let (nonce, aad) = (owned(fields.nonce)?, owned(fields.aad)?);
        let params = match mechanism {
            CKM_AES_GCM => Params::Gcm { iv: nonce, aad, tag_bits: fields.tag_length },
            _ => Params::Ccm { data_length: 0, nonce, aad, mac_length: fields.tag_length },
        };
        let tag_length = match mechanism {
            CKM_AES_GCM => fields.tag_length.div_ceil(8),
            _ => fields.tag_length,
        };
        if fields.nonce.1 == 0 || tag_length > LONGEST_TAG || apart && fields.tag.is_null() {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let told = Told {
            nonce: Given::inside(fields.nonce.0),
            fixed_bits: fields.fixed_bits,
            generator: fields.generator,
            tag: apart.then(|| (Given::inside(fields.tag), tag_length)),
        };
        Ok(((mechanism, params), told))
    }
}

impl<'a> Told<'a> {
    /// How the key is to be wrapped.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for a generator that is not served: twins of a key would count twice, and one nonce for two keys gives
    /// both away.
    pub(crate) fn apart(&self) -> Result<Apart> {
        let fixed_bits = match self.generator {
            CKG_NO_GENERATE => None,
            CKG_GENERATE | CKG_GENERATE_RANDOM => Some(self.fixed_bits),
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        Ok(Apart { fixed_bits, tag_apart: self.tag.is_some(), ..Apart::default() })
    }

    /// Tells the caller what was used, where something was wrapped.
    ///
    /// # Errors
    /// None: that there are places was seen before.
    pub(crate) fn tell(self, caller: Caller<'a>, apart: Apart) -> Result<()> {
        caller.items(apart.nonce, self.nonce)?;
        match self.tag {
            Some((at, _)) => caller.items(apart.tag, at),
            None => Ok(()),
        }
    }

    /// What was wrapped, with its tag behind it.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_HOST_MEMORY`
    pub(crate) fn whole(self, caller: Caller<'a>, wrapped: &[u8]) -> Result<Bytes> {
        check_room(wrapped.len())?;
        let mut whole = Bytes::from_slice(wrapped);
        if let Some((at, length)) = self.tag {
            whole.extend_from_slice(caller.bytes(at, length)?);
        }
        Ok(whole)
    }
}
