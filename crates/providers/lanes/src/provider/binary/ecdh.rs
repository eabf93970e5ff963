// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side (PKCS#11 3.2 §6.3.17, §6.3.18), with the cofactor and without.

use super::key::{KeyPair, curve, point, private};
use super::row::{Meetings, row, size};
use crate::binary::{self, Curve, PublicKey};
use crate::provider::batch::{Batch, Meeting};
use crate::provider::digest::expand;
use crate::provider::parts::{Held, Size, put};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::ephemeral::Ephemeral;
use metaslot_spi::provider::{Algorithm, Derive, Keys, Postponed};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

pub(super) fn rows() -> Vec<Algorithm> {
    let algorithm = |mechanism, own: &'static Ephemeral| Algorithm {
        derive: Some(own.derive),
        encapsulate: Some(own),
        decapsulate: Some(own),
        ..row(mechanism)
    };
    vec![
        algorithm(CKM_ECDH1_DERIVE, &const { ephemeral(&Ecdh { cofactor: false }) }),
        algorithm(CKM_ECDH1_COFACTOR_DERIVE, &const { ephemeral(&Ecdh { cofactor: true }) }),
    ]
}

const fn ephemeral(derive: &'static Ecdh) -> Ephemeral {
    let length = |key: &Key| {
        let curve = curve(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        Ok(1 + 2 * curve.field_length())
    };
    Ephemeral { derive, pairs: |_| &KeyPair, length }
}

static AGREE: Meetings<Agree> = [const { Meeting::new(Agree) }; Curve::ALL.len()];

#[derive(Debug)]
struct Ecdh {
    cofactor: bool,
}

impl Derive for Ecdh {
    fn serves(&self, key: &Key) -> bool {
        curve(key).is_some()
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        Agreement::read(params)?;
        private(key).map(drop)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let plain = Agreement::read(params).ok()?.is_plain();
        curve(key).filter(|_| plain).map(Curve::field_length)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        let agree = || {
            let (curve, work) = self.work(Held::Borrowed(key), agreement)?;
            AGREE[curve as usize].run(work).map(|work| work.secret)
        };
        agreement.derive(lengths, agree, expand)
    }

    fn derive_later(&self, key: &Arc<Key>, params: &Params, length: usize) -> Postponed {
        let agreement = Agreement::read(params)?;
        let (curve, work) = self.work(Held::Shared(Arc::clone(key)), agreement)?;
        let secret = AGREE[curve as usize].later(work);
        agreement.derive_later(length, curve.field_length(), secret, expand)
    }
}

impl Ecdh {
    fn work<'a>(&self, key: Held<'a>, agreement: Agreement<'_>) -> Result<(Curve, Agreed<'a>)> {
        let curve = private(&key)?.curve();
        let peer = point(curve, agreement.public).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let secret = Secret::zeroed(curve.field_length());
        Ok((curve, Agreed { key, peer, cofactor: self.cofactor, secret }))
    }
}

/// A secret to be agreed on.
struct Agreed<'a> {
    key: Held<'a>,
    peer: PublicKey,
    cofactor: bool,
    secret: Secret,
}

/// Agreements with one curve's keys.
#[derive(Debug)]
struct Agree;

impl Batch for Agree {
    type Work<'a> = Agreed<'a>;
    type Request<'r> = binary::Derive<'r>;

    const ONE_IN_A_LANE: bool = true;

    fn size(&self) -> Size {
        size()
    }

    fn request<'r>(&self, work: &'r mut Agreed<'_>) -> Option<binary::Derive<'r>> {
        let Agreed { key, peer, cofactor, secret } = work;
        Some(binary::Derive::new(private(key).ok()?, peer, *cofactor, secret.expose_mut()))
    }

    fn compute(&self, requests: &mut [binary::Derive<'_>]) {
        binary::derive(requests);
    }

    fn well(request: &binary::Derive<'_>) -> bool {
        request.answer.is_ok()
    }

    fn answer(work: Agreed<'_>, out: &mut [u8]) -> Result<usize> {
        put(work.secret.expose(), out)
    }
}
