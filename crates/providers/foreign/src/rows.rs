// SPDX-License-Identifier: Apache-2.0
//! What a token can do, as a table: the mechanisms that it names, as far as we know what they are.

use crate::error::is_loss;
use crate::hashed;
use crate::mechanism::{Length, Mechanism, Mode};
use crate::token::Token;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_client::{MechanismInfo, Result as Called};
use metaslot_spi::provider::{Algorithm, Cipher, Derive, Generate, GeneratePair, Signature};
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
        (has(flag) && !matches!(mechanism.mode, Mode::Unknown | Mode::Asked))
            .then_some(mechanism as &dyn Cipher)
    };
    let agrees = |flag| {
        let mechanism: &'static dyn Derive = mechanism;
        let known = matches!(number, CKM_ECDH1_DERIVE | CKM_ECDH1_COFACTOR_DERIVE);
        // It would know what is agreed on.
        (has(flag) && known && token.trusted).then_some(mechanism)
    };
    let sizes = (info.min_key_size, info.max_key_size.max(info.min_key_size));
    let row = Algorithm {
        mechanism: number,
        key_sizes: sizes,
        encrypt: works(CKF_ENCRYPT),
        decrypt: works(CKF_DECRYPT),
        sign: signs(CKF_SIGN),
        verify: signs(CKF_VERIFY),
        derive: agrees(CKF_DERIVE),
        generate: has(CKF_GENERATE).then_some(&Made),
        generate_pair: has(CKF_GENERATE_KEY_PAIR).then_some(&Made),
        ..Algorithm::NONE
    };
    Ok((row.flags() != 0).then_some(row))
}
