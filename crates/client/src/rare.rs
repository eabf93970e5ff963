// SPDX-License-Identifier: Apache-2.0
//! The C layout of parameters of mechanisms that make a key of another or bring one to another place, and of some that few ask for.

use crate::parameter::{Params, bool, of, pointer};
use crate::ulong;
use metaslot_ck::*;
use std::ffi::c_void;
use std::ptr;

/// One parameter, where its address can be taken.
#[derive(Debug)]
pub(crate) enum Rare {
    None,
    /// The second is what the first points to.
    RsaAes(CK_RSA_AES_KEY_WRAP_PARAMS, CK_RSA_PKCS_OAEP_PARAMS),
    EcdhAes(CK_ECDH_AES_KEY_WRAP_PARAMS),
    X942(CK_X9_42_DH1_DERIVE_PARAMS),
    StringData(CK_KEY_DERIVATION_STRING_DATA),
    CbcData(CK_AES_CBC_ENCRYPT_DATA_PARAMS),
    DesCbcData(CK_DES_CBC_ENCRYPT_DATA_PARAMS),
    /// The counter is what the structure points to.
    ChaCha20(CK_CHACHA20_PARAMS, [u8; 8]),
    XEdDsa(CK_XEDDSA_PARAMS),
    IkePrf(CK_IKE_PRF_DERIVE_PARAMS),
    Ike1Prf(CK_IKE1_PRF_DERIVE_PARAMS),
    Ike1Extended(CK_IKE1_EXTENDED_DERIVE_PARAMS),
    Ike2PrfPlus(CK_IKE2_PRF_PLUS_DERIVE_PARAMS),
    TlsMaster(CK_SSL3_MASTER_KEY_DERIVE_PARAMS),
    Tls12Master(CK_TLS12_MASTER_KEY_DERIVE_PARAMS),
    Tls12Extended(CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS),
    TlsKdf(CK_TLS_KDF_PARAMS),
    TlsMac(CK_TLS_MAC_PARAMS),
}

impl Rare {
    /// The layout of a parameter that has one here.
    pub(crate) fn of(params: &Params<'_>) -> Self {
        match *params {
            Params::RsaAes { bits, hash, mgf, label } => Self::RsaAes(
                CK_RSA_AES_KEY_WRAP_PARAMS { ulAESKeyBits: bits, pOAEPParams: ptr::null_mut() },
                CK_RSA_PKCS_OAEP_PARAMS {
                    hashAlg: hash,
                    mgf,
                    source: CKZ_DATA_SPECIFIED,
                    pSourceData: pointer(label).cast(),
                    ulSourceDataLen: ulong(label.len()),
                },
            ),
            Params::EcdhAes { bits, kdf, shared } => Self::EcdhAes(CK_ECDH_AES_KEY_WRAP_PARAMS {
                ulAESKeyBits: bits,
                kdf,
                ulSharedDataLen: ulong(shared.len()),
                pSharedData: pointer(shared),
            }),
            Params::X942 { kdf, info, public } => Self::X942(CK_X9_42_DH1_DERIVE_PARAMS {
                kdf,
                ulOtherInfoLen: ulong(info.len()),
                pOtherInfo: pointer(info),
                ulPublicDataLen: ulong(public.len()),
                pPublicData: pointer(public),
            }),
            Params::StringData { data } => Self::StringData(CK_KEY_DERIVATION_STRING_DATA {
                pData: pointer(data),
                ulLen: ulong(data.len()),
            }),
            Params::CbcData { iv, data } => cbc_data(iv, data),
            Params::ChaCha20 { counter, nonce } => Self::ChaCha20(
                CK_CHACHA20_PARAMS {
                    pBlockCounter: ptr::null_mut(),
                    blockCounterBits: if nonce.len() == 12 { 32 } else { 64 },
                    pNonce: pointer(nonce),
                    ulNonceBits: ulong(nonce.len()) * 8,
                },
                counter.to_le_bytes(),
            ),
            Params::XEdDsa { hash } => Self::XEdDsa(CK_XEDDSA_PARAMS { hash }),
            Params::TlsMac { prf, length, side } => Self::TlsMac(CK_TLS_MAC_PARAMS {
                prfHashMechanism: prf,
                ulMacLength: length,
                ulServerOrClient: side,
            }),
            _ => ike(params).or_else(|| tls(params)).unwrap_or(Self::None),
        }
    }

    /// Address and length.
    pub(crate) const fn parameter(&mut self) -> (*mut c_void, usize) {
        match self {
            Self::None => (ptr::null_mut(), 0),
            Self::RsaAes(params, by) => {
                params.pOAEPParams = ptr::from_mut(by);
                of(params)
            }
            Self::EcdhAes(params) => of(params),
            Self::X942(params) => of(params),
            Self::StringData(params) => of(params),
            Self::CbcData(params) => of(params),
            Self::DesCbcData(params) => of(params),
            Self::ChaCha20(params, counter) => {
                params.pBlockCounter = counter.as_mut_ptr();
                of(params)
            }
            Self::XEdDsa(params) => of(params),
            Self::IkePrf(params) => of(params),
            Self::Ike1Prf(params) => of(params),
            Self::Ike1Extended(params) => of(params),
            Self::Ike2PrfPlus(params) => of(params),
            Self::TlsMaster(params) => of(params),
            Self::Tls12Master(params) => of(params),
            Self::Tls12Extended(params) => of(params),
            Self::TlsKdf(params) => of(params),
            Self::TlsMac(params) => of(params),
        }
    }
}

/// By the length of the IV one of two structures; of another length there is none.
fn cbc_data(iv: &[u8], data: &[u8]) -> Rare {
    let (at, length) = (pointer(data), ulong(data.len()));
    if let Ok(iv) = iv.try_into() {
        return Rare::CbcData(CK_AES_CBC_ENCRYPT_DATA_PARAMS { iv, pData: at, length });
    }
    iv.try_into().map_or(Rare::None, |iv| {
        Rare::DesCbcData(CK_DES_CBC_ENCRYPT_DATA_PARAMS { iv, pData: at, length })
    })
}

/// Whether a key is named, and which.
fn named(key: Option<ObjectHandle>) -> (CK_BBOOL, CK_OBJECT_HANDLE) {
    (bool(key.is_some()), key.map_or(CK_INVALID_HANDLE, |key| key.0))
}

fn ike(params: &Params<'_>) -> Option<Rare> {
    Some(match *params {
        Params::IkePrf { prf, data_as_key, new_key, initiator, responder } => {
            let (rekey, new_key) = named(new_key);
            Rare::IkePrf(CK_IKE_PRF_DERIVE_PARAMS {
                prfMechanism: prf,
                bDataAsKey: bool(data_as_key),
                bRekey: rekey,
                pNi: pointer(initiator),
                ulNiLen: ulong(initiator.len()),
                pNr: pointer(responder),
                ulNrLen: ulong(responder.len()),
                hNewKey: new_key,
            })
        }
        Params::Ike1Prf { prf, previous, agreed, initiator, responder, number } => {
            let (has_previous, previous) = named(previous);
            Rare::Ike1Prf(CK_IKE1_PRF_DERIVE_PARAMS {
                prfMechanism: prf,
                bHasPrevKey: has_previous,
                hKeygxy: agreed.0,
                hPrevKey: previous,
                pCKYi: pointer(initiator),
                ulCKYiLen: ulong(initiator.len()),
                pCKYr: pointer(responder),
                ulCKYrLen: ulong(responder.len()),
                keyNumber: number,
            })
        }
        Params::Ike1Extended { prf, agreed, extra } => {
            let (has_agreed, agreed) = named(agreed);
            Rare::Ike1Extended(CK_IKE1_EXTENDED_DERIVE_PARAMS {
                prfMechanism: prf,
                bHasKeygxy: has_agreed,
                hKeygxy: agreed,
                pExtraData: pointer(extra),
                ulExtraDataLen: ulong(extra.len()),
            })
        }
        Params::Ike2PrfPlus { prf, seed_key, seed } => {
            let (has_seed, seed_key) = named(seed_key);
            Rare::Ike2PrfPlus(CK_IKE2_PRF_PLUS_DERIVE_PARAMS {
                prfMechanism: prf,
                bHasSeedKey: has_seed,
                hSeedKey: seed_key,
                pSeedData: pointer(seed),
                ulSeedDataLen: ulong(seed.len()),
            })
        }
        _ => return None,
    })
}

const fn random(client: &[u8], server: &[u8]) -> CK_SSL3_RANDOM_DATA {
    CK_SSL3_RANDOM_DATA {
        pClientRandom: pointer(client),
        ulClientRandomLen: ulong(client.len()),
        pServerRandom: pointer(server),
        ulServerRandomLen: ulong(server.len()),
    }
}

fn tls(params: &Params<'_>) -> Option<Rare> {
    Some(match *params {
        Params::TlsMaster { client, server } => Rare::TlsMaster(CK_SSL3_MASTER_KEY_DERIVE_PARAMS {
            RandomInfo: random(client, server),
            pVersion: ptr::null_mut(),
        }),
        Params::Tls12Master { prf, client, server } => {
            Rare::Tls12Master(CK_TLS12_MASTER_KEY_DERIVE_PARAMS {
                RandomInfo: random(client, server),
                pVersion: ptr::null_mut(),
                prfHashMechanism: prf,
            })
        }
        Params::Tls12Extended { prf, hash } => {
            Rare::Tls12Extended(CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS {
                prfHashMechanism: prf,
                pSessionHash: pointer(hash),
                ulSessionHashLen: ulong(hash.len()),
                pVersion: ptr::null_mut(),
            })
        }
        Params::TlsKdf { prf, label, client, server, context } => {
            Rare::TlsKdf(CK_TLS_KDF_PARAMS {
                prfMechanism: prf,
                pLabel: pointer(label),
                ulLabelLength: ulong(label.len()),
                RandomInfo: random(client, server),
                // An empty context has an address, too.
                pContextData: context
                    .map_or(ptr::null_mut(), |context| context.as_ptr().cast_mut()),
                ulContextDataLength: ulong(context.map_or(0, <[u8]>::len)),
            })
        }
        _ => return None,
    })
}
