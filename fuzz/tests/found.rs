// SPDX-License-Identifier: Apache-2.0
//! What the targets have found in more than one crate.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_lanes::provider::Lanes;
use metaslot_spi::provider::Provider;
use metaslot_spi::{Key, Material, Params};
use std::sync::Arc;

static LANES: Lanes = Lanes::beside(&AWSLC);

/// PKCS#11 3.2 §6.1.12: 0, 1 and n−1 are numbers like others, though their own powers.
#[test]
fn the_bare_operation_takes_every_number_with_the_lanes_too() {
    let der = include_bytes!("../../testdata/fuzz/der/rsa-1024");
    let found = AWSLC.decode_private_key(der).unwrap();
    let key = Key::new(Arc::new(found.attributes), Arc::new(Material::new(found.secrets)));
    let row = LANES.algorithms().iter().find(|row| row.mechanism == CKM_RSA_X_509).unwrap();
    let sign = row.sign.unwrap();
    sign.check(metaslot_spi::provider::Direction::Forward, &key, &Params::None).unwrap();
    let modulus = key.bytes(CKA_MODULUS).unwrap().to_vec();
    let mut last = modulus.clone();
    *last.last_mut().unwrap() -= 1;
    for number in [&[][..], &[0; 128], &[1], &last] {
        let mut out = [0xee; 128];
        assert_eq!(sign.sign(&key, &Params::None, number, &mut out), Ok(128));
        assert_eq!(out[..128 - number.len()], [0; 128][number.len()..]);
        assert_eq!(out[128 - number.len()..], number[..]);
    }
    let above = sign.sign(&key, &Params::None, &modulus, &mut [0; 128]);
    assert_eq!(above, Err(Error::DATA_INVALID));
}
