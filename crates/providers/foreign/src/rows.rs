// SPDX-License-Identifier: Apache-2.0
//! What a token can do, as a table: the mechanisms that it names, as far as we know what they are.

use crate::derivation::{agrees, derives, public_length};
use crate::error::is_loss;
use crate::hashed;
use crate::mechanism::{Length, Mechanism, Mode};
use crate::token::Token;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_client::{MechanismInfo, Result as Called};
use metaslot_spi::ephemeral::Ephemeral;
use metaslot_spi::provider::{Algorithm, Cipher, Encapsulation, Generate, GeneratePair, Signature};
use metaslot_spi::{Attributes, NewObject, Params};

/// Stands in a row for what a token makes: a key that is not given to us.
#[derive(Debug)]
struct Made;

impl Generate for Made {
    fn generate(&self, _: &Params, _: &Attributes) -> Result<NewObject> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

impl GeneratePair for Made {
    fn generate_pair(&self, _: &Params, _: &Attributes) -> Result<(NewObject, NewObject)> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }
}

/// The rows of a token, sorted by mechanism.
pub(crate) fn of(
    token: &'static Token,
    mechanisms: &[CK_MECHANISM_TYPE],
) -> Called<Vec<Algorithm>> {
    let known = mechanisms.iter().copied().filter(|number| MechanismRow::find(*number).is_some());
    let known: Vec<_> = known.collect();
    let infos = token.module.library.mechanism_infos(token.slot(), &known)?;
    let told = known.into_iter().zip(infos).map(|(number, info)| row(token, number, info));
    let told = told.collect::<Called<Vec<_>>>()?;
    let mut rows: Vec<_> = told.into_iter().flatten().collect();
    rows.extend(hashed::rows(token, mechanisms, &rows));
    rows.sort_unstable_by_key(|row| row.mechanism);
    rows.dedup_by_key(|row| row.mechanism);
    Ok(rows)
}

fn row(
    token: &'static Token,
    number: CK_MECHANISM_TYPE,
    info: Called<MechanismInfo>,
) -> Called<Option<Algorithm>> {
    let info = match info {
        Err(failure) if is_loss(failure.code) => return Err(failure),
        Err(_) => return Ok(None),
        Ok(info) => info,
    };
    let mechanism: &'static Mechanism = Box::leak(Box::new(Mechanism::new(token, number)));
    let has = |flag| info.flags & flag != 0;
    let signs = |flag| {
        (has(flag) && mechanism.length != Length::Unknown).then_some(mechanism as &dyn Signature)
    };
    let works = |flag| {
        (has(flag) && !matches!(mechanism.mode, Mode::Unknown | Mode::Asked | Mode::Carried))
            .then_some(mechanism as &dyn Cipher)
    };
    // What is made of a key, or taken out of a wrap, it would know; and a connection carries none of it.
    let tells = token.trusted && !token.module.is_apart();
    let derives = (tells && has(CKF_DERIVE) && derives(number)).then_some(mechanism);
    let wraps =
        |flag| (tells && has(flag) && mechanism.mode != Mode::Unknown).then_some(mechanism as _);
    let carries = matches!(number, CKM_ML_KEM | CKM_RSA_PKCS | CKM_RSA_PKCS_OAEP);
    let carried = (tells && carries).then_some(mechanism as &dyn Encapsulation);
    let agreed = derives.filter(|_| agrees(number)).map(|derive| {
        let agreed = Ephemeral { derive, pairs: |_| &Made, length: public_length };
        &*Box::leak(Box::new(agreed)) as &dyn Encapsulation
    });
    let sizes = (info.min_key_size, info.max_key_size.max(info.min_key_size));
    let row = Algorithm {
        mechanism: number,
        key_sizes: sizes,
        encrypt: works(CKF_ENCRYPT),
        decrypt: works(CKF_DECRYPT),
        sign: signs(CKF_SIGN),
        verify: signs(CKF_VERIFY),
        derive: derives.map(|derive| derive as _),
        encapsulate: agreed.or(carried).filter(|_| has(CKF_ENCAPSULATE)),
        decapsulate: agreed.or_else(|| carried.filter(|_| has(CKF_DECAPSULATE))),
        wrap: wraps(CKF_WRAP),
        unwrap: wraps(CKF_UNWRAP),
        generate: has(CKF_GENERATE).then_some(&Made),
        generate_pair: has(CKF_GENERATE_KEY_PAIR).then_some(&Made),
        ..Algorithm::NONE
    };
    Ok((row.flags() != 0).then_some(row))
}
