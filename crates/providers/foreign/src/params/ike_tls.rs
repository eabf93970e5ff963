// SPDX-License-Identifier: Apache-2.0
//! Parameters of IKE and TLS. What the edge has put together is taken apart again for TLS; of IKE both nonces go as the initiator's, and
//! none as the responder's: the two are hashed one behind the other (PKCS#11 3.2 §6.64), and a module may want both.

use metaslot_ck::*;
use metaslot_client::Params as Foreign;
use metaslot_spi::{Tls, detail};

/// Bytes of a random value of TLS (RFC 5246 §7.4.1.2).
const RANDOM: usize = 32;

/// That of a derivation of IKE without another key.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for another mechanism.
pub(super) const fn ike(
    number: CK_MECHANISM_TYPE,
    prf: CK_MECHANISM_TYPE,
    data: &[u8],
    data_as_key: bool,
) -> Result<Foreign<'_>> {
    Ok(match number {
        CKM_IKE_PRF_DERIVE => {
            Foreign::IkePrf { prf, data_as_key, new_key: None, initiator: data, responder: &[] }
        }
        CKM_IKE1_EXTENDED_DERIVE => Foreign::Ike1Extended { prf, agreed: None, extra: data },
        CKM_IKE2_PRF_PLUS_DERIVE => Foreign::Ike2PrfPlus { prf, seed_key: None, seed: data },
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    })
}

/// That of a derivation of TLS which gives one key and tells nothing besides.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for another.
pub(super) fn tls(number: CK_MECHANISM_TYPE, tls: &Tls) -> Result<Foreign<'_>> {
    if tls.beside.is_some() || !tls.further.is_empty() {
        detail::set(format_args!(
            "another module is asked for one key at a time, and nothing besides"
        ));
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    let prf = tls.prf;
    let (client, rest) = tls.seed.split_at(tls.seed.len().min(RANDOM));
    Ok(match number {
        CKM_SSL3_MASTER_KEY_DERIVE
        | CKM_SSL3_MASTER_KEY_DERIVE_DH
        | CKM_TLS_MASTER_KEY_DERIVE
        | CKM_TLS_MASTER_KEY_DERIVE_DH => Foreign::TlsMaster { client, server: rest },
        CKM_TLS12_MASTER_KEY_DERIVE | CKM_TLS12_MASTER_KEY_DERIVE_DH => {
            Foreign::Tls12Master { prf, client, server: rest }
        }
        CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE | CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE_DH => {
            Foreign::Tls12Extended { prf, hash: &tls.seed }
        }
        CKM_TLS_KDF | CKM_TLS12_KDF => {
            let (server, context) = rest.split_at(rest.len().min(RANDOM));
            // Behind random values of the usual length stands the length of a context, and that.
            let context = context.split_first_chunk();
            let context = context.map(|(length, context)| (u16::from_be_bytes(*length), context));
            let (server, context) = match context {
                Some((length, context)) if usize::from(length) == context.len() => {
                    (server, Some(context))
                }
                _ => (rest, None),
            };
            Foreign::TlsKdf { prf, label: &tls.label, client, server, context }
        }
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    })
}

/// That of the MAC at the end of a handshake.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` for another mechanism.
pub(super) fn finished(number: CK_MECHANISM_TYPE, tls: &Tls) -> Result<Foreign<'_>> {
    match number {
        CKM_TLS10_MAC_SERVER | CKM_TLS10_MAC_CLIENT => Ok(Foreign::None),
        CKM_TLS_MAC | CKM_TLS12_MAC => Ok(Foreign::TlsMac {
            prf: tls.prf,
            length: tls.mac_length as u64,
            side: if tls.label.starts_with(b"server") { 1 } else { 2 },
        }),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}
