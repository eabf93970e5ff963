// SPDX-License-Identifier: Apache-2.0
//! Signatures as SSH writes them (RFC 8332 §3, RFC 5656 §3.1.2, RFC 8709 §6).

use super::keys::{Kind, Pair, mpint};
use metaslot_ck::*;
use metaslot_client::protocol::Writer;
use metaslot_engine::{Engine, Output};
use metaslot_spi::Params;

/// By which hash function RSA signs; SHA-1 without any.
const RSA_SHA2_256: u32 = 2;
const RSA_SHA2_512: u32 = 4;

/// A signature, with the name of its algorithm before it.
pub(super) fn signature(
    engine: &Engine,
    session: SessionHandle,
    key: &Pair,
    data: &[u8],
    flags: u32,
) -> Result<Vec<u8>> {
    let (algorithm, mechanism) = match key.kind {
        Kind::Rsa if flags & RSA_SHA2_512 != 0 => ("rsa-sha2-512", CKM_SHA512_RSA_PKCS),
        Kind::Rsa if flags & RSA_SHA2_256 != 0 => ("rsa-sha2-256", CKM_SHA256_RSA_PKCS),
        Kind::Rsa => ("ssh-rsa", CKM_SHA1_RSA_PKCS),
        Kind::Ecdsa(row) => (row.algorithm, row.mechanism),
        Kind::Ed25519 => ("ssh-ed25519", CKM_EDDSA),
    };
    engine.sign_init(session, mechanism, Params::None, key.private)?;
    let mut length = Output::ask();
    engine.sign(session, data, &mut length)?;
    let mut made = vec![0; length.length()];
    let mut out = Output::buffer(&mut made);
    engine.sign(session, data, &mut out)?;
    let length = out.length();
    made.truncate(length);
    let mut signature = Writer::default();
    signature.counted(algorithm.as_bytes());
    match key.kind {
        Kind::Ecdsa(_) => signature.counted(&halves(&made)),
        Kind::Rsa | Kind::Ed25519 => signature.counted(&made),
    }
    Ok(signature.finish().as_ref().to_vec())
}

/// `r` and `s`, which the standard has one behind the other.
fn halves(made: &[u8]) -> Vec<u8> {
    let mut halves = Writer::default();
    let (r, s) = made.split_at(made.len() / 2);
    mpint(&mut halves, r);
    mpint(&mut halves, s);
    halves.finish().as_ref().to_vec()
}
