// SPDX-License-Identifier: Apache-2.0
//! Parameters of TLS and SSL (PKCS#11 3.2 §6.39, §6.40), of what gives one key or a MAC.

use super::derivation::{short, together};
use metaslot_ck::mechanism::Shape;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_client::Params as Read;
use metaslot_spi::{Params, Tls};

/// One as the engine takes it.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` where it is not one of this shape.
pub(super) fn params(
    mechanism: CK_MECHANISM_TYPE,
    shape: Shape,
    params: &Read<'_>,
) -> Result<Params> {
    // What a key is for its mechanism says, and not its caller.
    let (master, extended) = (&b"master secret"[..], &b"extended master secret"[..]);
    let (prf, label, seed) = match (shape, *params) {
        (Shape::TlsMaster, Read::TlsMaster { client, server }) => {
            (Tls::old_function(mechanism), master, together([client, server])?)
        }
        (Shape::Tls12Master, Read::Tls12Master { prf, client, server }) => {
            (prf, master, together([client, server])?)
        }
        (Shape::Tls12Extended, Read::Tls12Extended { prf, hash }) => (prf, extended, short(hash)?),
        (Shape::TlsKdf, Read::TlsKdf { prf, label, client, server, context }) => {
            (prf, label, Tls::exported(together([client, server])?, context)?)
        }
        (Shape::TlsMac, Read::TlsMac { prf, length, side }) => {
            return Tls::finished(mechanism, prf, (length, side));
        }
        (Shape::Tls10Mac, Read::None) => return Tls::finished_of_old(mechanism),
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    Tls::params(mechanism, prf, [short(label)?, seed], (0, 0))
}
