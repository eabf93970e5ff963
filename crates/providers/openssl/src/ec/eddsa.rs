// SPDX-License-Identifier: Apache-2.0
//! Ed25519 and Ed448 keys and signatures (PKCS#11 3.2 §6.3.10 and §6.3.14).

use super::number::{generate, public_half, random};
use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::number_key::{Curve, EdDsa as Form, MAX_SIGNATURE, NumberKey};
use metaslot_spi::buffer::hold;
use metaslot_spi::number_key::{self, NumberCurve};
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Bytes, Key, NewObject, Params, key_info};
use std::sync::Arc;

const SIZES: (u64, u64) = (255, 448);
const FLAGS: u64 = CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME;

pub(super) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_EC_EDWARDS_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        extra_flags: FLAGS,
        ..Algorithm::NONE
    },
    Algorithm { extra_flags: FLAGS, ..Algorithm::signature(CKM_EDDSA, SIZES, &EdDsa) },
]);

/// Both curves.
pub(super) static CURVES: [NumberCurve; 2] = [
    NumberCurve {
        oid: number_key::ED25519,
        length: Curve::Ed25519.length(),
        public: |private| public_half(Curve::Ed25519, private),
        random,
    },
    NumberCurve {
        oid: number_key::ED448,
        length: Curve::Ed448.length(),
        public: |private| public_half(Curve::Ed448, private),
        random,
    },
];

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        generate(&CURVES, template)
    }
}

/// A key with its curve.
type Prepared = (Curve, NumberKey);

/// The prepared form of a public or private key.
fn prepared(key: &Key) -> Result<&Prepared> {
    key.prepared(|key| {
        let private = key.class() == CKO_PRIVATE_KEY;
        let said = if private { key.secret(CKA_VALUE)? } else { key.bytes(CKA_EC_POINT)? };
        let made = [Curve::Ed25519, Curve::Ed448].into_iter().find_map(|curve| {
            let made = match private {
                true => NumberKey::private(curve, said),
                false => NumberKey::public(curve, key_info::number(curve.length(), said)?),
            };
            Some((curve, made.ok()?))
        });
        made.ok_or(Error::KEY_TYPE_INCONSISTENT)
    })
}

/// The form that the parameters ask for and its context (§6.3.14): for Ed25519 absent ones mean Ed25519 itself, given ones
/// Ed25519ctx or Ed25519ph. Ed25519ctx without a context, which RFC 8032 §5.1 advises against and which is not Ed25519, is
/// refused rather than mistaken for either. For Ed448 absent ones can only mean no context.
fn form(curve: Curve, params: &Params) -> Result<(Form, &[u8])> {
    let (prehash, context) = match params {
        Params::None if curve == Curve::Ed25519 => return Ok((Form::Ed25519, &[])),
        Params::None => (false, &[][..]),
        Params::EdDsa { prehash, context } if context.len() <= 255 => (*prehash, &context[..]),
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    match (curve, prehash) {
        (Curve::Ed448, false) => Ok((Form::Ed448, context)),
        (Curve::Ed448, true) => Ok((Form::Ed448Ph, context)),
        (_, true) => Ok((Form::Ed25519Ph, context)),
        (_, false) if context.is_empty() => Err(Error::MECHANISM_PARAM_INVALID),
        (_, false) => Ok((Form::Ed25519Ctx, context)),
    }
}

const fn length(curve: Curve) -> usize {
    2 * curve.length()
}

fn sign(
    key: &Key,
    (form, context): (Form, &[u8]),
    message: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let ((curve, key), mut made) = (prepared(key)?, [0; MAX_SIGNATURE]);
    let out = out.get_mut(..length(*curve)).ok_or(Error::BUFFER_TOO_SMALL)?;
    let made_length = key.sign(form, context, message, &mut made).map_err(device_error)?;
    if made_length != out.len() {
        return Err(Error::DEVICE_ERROR);
    }
    out.copy_from_slice(&made[..made_length]);
    Ok(made_length)
}

fn verify(
    key: &Key,
    (form, context): (Form, &[u8]),
    message: &[u8],
    signature: &[u8],
) -> Result<()> {
    let (curve, key) = prepared(key)?;
    if signature.len() != length(*curve) {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    key.verify(form, context, message, signature).map_err(|_| Error::SIGNATURE_INVALID)
}

#[derive(Debug)]
struct EdDsa;

impl Signature for EdDsa {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.check_class(direction.signature_class())?;
        form(prepared(key)?.0, params).map(|_| ())
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        prepared(key).map_or(0, |(curve, _)| length(*curve))
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        // What another thread makes of it between both readings would be signed with the same number, which gives the key away.
        let mut message = Vec::new();
        hold(&mut message, data, Error::DATA_LEN_RANGE)?;
        sign(key, form(prepared(key)?.0, params)?, &message, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, form(prepared(key)?.0, params)?, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (form, context) = form(prepared(key)?.0, params)?;
        let (key, context) = (Arc::clone(key), Bytes::from_slice(context));
        Ok(Box::new(Collected { key, form, context, message: Vec::new() }))
    }
}

/// OpenSSL takes a message as a whole: it has to be kept until the end.
#[derive(Debug)]
struct Collected {
    key: Arc<Key>,
    form: Form,
    context: Bytes,
    message: Vec<u8>,
}

impl SignatureStream for Collected {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        hold(&mut self.message, data, Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        sign(&self.key, (self.form, &self.context), &self.message, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        verify(&self.key, (self.form, &self.context), &self.message, signature)
    }
}
