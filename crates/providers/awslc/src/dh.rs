// SPDX-License-Identifier: Apache-2.0
//! Diffie-Hellman modulo a prime, as PKCS #3 and ANSI X9.42 have it (PKCS#11 3.2 §6.4).

use crate::ecdh::expand;
use crate::field::{Pairs, SIZES_BITS, group, pair_row};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::field::Group;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::ephemeral::Ephemeral;
use metaslot_spi::field_key::FieldKind;
use metaslot_spi::provider::{Algorithm, Derive, Keys, checked};
use metaslot_spi::{Key, Params};

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES_BITS,
        derive: Some(&Dh),
        encapsulate: Some(&EPHEMERAL),
        decapsulate: Some(&EPHEMERAL),
        ..Algorithm::NONE
    }
}

const EPHEMERAL: Ephemeral = Ephemeral {
    derive: &Dh,
    pairs: |key| if key.key_type() == CKK_DH { &Pairs(CKK_DH) } else { &Pairs(CKK_X9_42_DH) },
    length: |key| key.bytes(CKA_PRIME).map(<[u8]>::len),
};

pub(crate) const ROWS: [Algorithm; 4] = checked([
    pair_row(CKM_DH_PKCS_KEY_PAIR_GEN, &Pairs(CKK_DH)),
    row(CKM_DH_PKCS_DERIVE),
    pair_row(CKM_X9_42_DH_KEY_PAIR_GEN, &Pairs(CKK_X9_42_DH)),
    row(CKM_X9_42_DH_DERIVE),
]);

#[derive(Debug)]
struct Dh;

fn of(key: &Key) -> Result<Group> {
    let kind = FieldKind::of(key.key_type()).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    group(kind, key.attributes()).map(|(_, group)| group)
}

impl Derive for Dh {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        key.secret(CKA_VALUE)?;
        Agreement::in_group(params).map(drop)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let plain = Agreement::in_group(params).ok()?.is_plain();
        key.bytes(CKA_PRIME).ok().filter(|_| plain).map(<[u8]>::len)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::in_group(params)?;
        let agree = || {
            let shared = of(key)?.agree(key.secret(CKA_VALUE)?, agreement.public);
            shared.map_err(|Failed| Error::MECHANISM_PARAM_INVALID)
        };
        agreement.derive(lengths, agree, expand)
    }
}
