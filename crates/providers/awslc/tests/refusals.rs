// SPDX-License-Identifier: Apache-2.0
//! Keys that no operation may see: refused when they are made or brought.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{algorithm, imported, pair};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_spi::provider::{Direction, Provider};
use metaslot_spi::{Params, Value};

const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// The order of P-256.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
    0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

#[test]
fn rsa_pairs_of_sizes_out_of_range_and_even_exponents_are_not_made() {
    let generate = algorithm(CKM_RSA_PKCS_KEY_PAIR_GEN).generate_pair.unwrap();
    let make = |bits: Option<u64>, exponent: Option<&[u8]>| {
        let template = [
            bits.map(|bits| (CKA_MODULUS_BITS, Value::Ulong(bits))),
            exponent.map(|bytes| (CKA_PUBLIC_EXPONENT, Value::Bytes(bytes.to_vec()))),
        ];
        let template = template.into_iter().flatten().collect();
        generate.generate_pair(&Params::None, &template).map(|_| ())
    };
    assert_eq!(make(None, None), Err(Error::TEMPLATE_INCOMPLETE));
    for bits in [0, 384, 511, 8193, 8320, u64::MAX] {
        assert_eq!(make(Some(bits), None), Err(Error::KEY_SIZE_RANGE), "{bits}");
    }
    for exponent in [&[][..], &[0], &[1], &[1, 0, 0], &[0xff; 5]] {
        let made = make(Some(512), Some(exponent));
        assert_eq!(made, Err(Error::ATTRIBUTE_VALUE_INVALID), "{exponent:?}");
    }
    assert_eq!(make(Some(512), Some(&[3])), Ok(()));
}

#[test]
fn rsa_numbers_that_do_not_belong_together_are_refused() {
    let bits = [(CKA_MODULUS_BITS, Value::Ulong(1024))];
    let one = pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &bits);
    let other = pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &bits);
    let shown: Vec<_> = [CKA_MODULUS, CKA_PUBLIC_EXPONENT]
        .map(|number| (number, one.private.bytes(number).unwrap().to_vec()))
        .into();
    let secret: Vec<_> = one.private.secrets().iter().collect();
    assert!(imported(CKO_PRIVATE_KEY, CKK_RSA, &shown, &secret).is_ok());
    for at in 0..secret.len() {
        let mut mixed = secret.clone();
        mixed[at].1 = other.private.secret(mixed[at].0).unwrap();
        let error = imported(CKO_PRIVATE_KEY, CKK_RSA, &shown, &mixed).unwrap_err();
        assert_eq!(error, Error::ATTRIBUTE_VALUE_INVALID, "{:x}", mixed[at].0);
    }
    for (number, length) in [(CKA_PRIME_1, 130), (CKA_PRIVATE_EXPONENT, 1 << 20)] {
        let number_of_ones = vec![0xff; length];
        let huge = [&secret[..], &[(number, number_of_ones.as_slice())]].concat();
        let error = imported(CKO_PRIVATE_KEY, CKK_RSA, &shown, &huge).unwrap_err();
        assert_eq!(error, Error::ATTRIBUTE_VALUE_INVALID);
    }
    let without_d: Vec<_> =
        secret.iter().copied().filter(|(number, _)| *number != CKA_PRIVATE_EXPONENT).collect();
    let error = imported(CKO_PRIVATE_KEY, CKK_RSA, &shown, &without_d).unwrap_err();
    assert_eq!(error, Error::TEMPLATE_INCOMPLETE);
    let error = imported(CKO_PRIVATE_KEY, CKK_RSA, &shown[..1], &secret).unwrap_err();
    assert_eq!(error, Error::TEMPLATE_INCOMPLETE);
}

/// d may be any inverse of e, as long as it is below n: the library takes others and computes nothing with them.
#[test]
fn a_private_exponent_that_is_longer_than_the_modulus_is_refused() {
    let reduced = include_bytes!("../../../../testdata/fuzz/der/rsa-1024-d-mod-lcm");
    assert!(AWSLC.decode_private_key(reduced).is_ok());
    let longer = include_bytes!("../../../../testdata/fuzz/der/rsa-1024-d-too-large");
    assert_eq!(AWSLC.decode_private_key(longer).unwrap_err(), Error::WRAPPED_KEY_INVALID);
}

#[test]
fn an_rsa_key_with_its_primes_alone_is_completed() {
    let bits = [(CKA_MODULUS_BITS, Value::Ulong(1024))];
    let keys = pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &bits);
    // With a zero in front, as Java writes its numbers.
    let shown: Vec<_> = [CKA_MODULUS, CKA_PUBLIC_EXPONENT]
        .map(|number| (number, [&[0], keys.private.bytes(number).unwrap()].concat()))
        .into();
    let secret = [CKA_PRIVATE_EXPONENT, CKA_PRIME_1, CKA_PRIME_2]
        .map(|number| (number, keys.private.secret(number).unwrap()));
    let key = imported(CKO_PRIVATE_KEY, CKK_RSA, &shown, &secret).unwrap();
    assert!(key.secrets().iter().eq(keys.private.secrets().iter()));
    assert_eq!(key.bytes(CKA_MODULUS), keys.private.bytes(CKA_MODULUS));
}

#[test]
fn ec_scalars_outside_the_order_are_refused() {
    let import = |scalar: &[u8]| {
        let shown = [(CKA_EC_PARAMS, P256.to_vec())];
        imported(CKO_PRIVATE_KEY, CKK_EC, &shown, &[(CKA_VALUE, scalar)]).map(|_| ())
    };
    for bad in [&[][..], &[0], &[0; 32], &ORDER, &[0xff; 32], &[1; 33]] {
        assert_eq!(import(bad), Err(Error::ATTRIBUTE_VALUE_INVALID), "{bad:?}");
    }
    let mut last = ORDER;
    last[31] -= 1;
    for good in [&[1][..], &[0, 0, 1], &last] {
        assert_eq!(import(good), Ok(()), "{good:?}");
    }
}

#[test]
fn ec_points_off_the_curve_are_refused() {
    let import = |point: &[u8]| {
        let shown = [(CKA_EC_PARAMS, P256.to_vec()), (CKA_EC_POINT, point.to_vec())];
        imported(CKO_PUBLIC_KEY, CKK_EC, &shown, &[]).map(|_| ())
    };
    let keys = pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &[(CKA_EC_PARAMS, Value::Bytes(P256.to_vec()))]);
    let point = keys.public.bytes(CKA_EC_POINT).unwrap();
    assert_eq!(import(point), Ok(()));
    assert_eq!(import(&point[2..]), Ok(()), "raw");
    let mut off = point.to_vec();
    off[66] ^= 1;
    let compressed = [&[2 + (point[66] & 1)], &point[3..35]].concat();
    assert_eq!(import(&compressed), Ok(()));
    for bad in [&off, &off[2..], &[0], &[4, 1, 0], &[4; 67], &[]] {
        assert_eq!(import(bad), Err(Error::ATTRIBUTE_VALUE_INVALID), "{bad:?}");
    }
}

#[test]
fn secret_keys_have_the_lengths_of_their_type() {
    let import = |key_type, length| {
        imported(CKO_SECRET_KEY, key_type, &[], &[(CKA_VALUE, &vec![1; length])])
            .map(|key| key.attributes().ulong(CKA_VALUE_LEN))
    };
    for (key_type, good, bad) in [
        (CKK_AES, &[16, 24, 32][..], &[0, 15, 33][..]),
        (CKK_AES_XTS, &[32, 64], &[16, 48]),
        (CKK_CHACHA20, &[32], &[16, 64]),
        (CKK_RC4, &[1, 256], &[0, 257]),
        (CKK_DES2, &[16], &[8, 24]),
        (CKK_DES3, &[24], &[8, 16, 23]),
        (CKK_GENERIC_SECRET, &[1, 300], &[0]),
    ] {
        for length in good {
            assert_eq!(import(key_type, *length), Ok(Some(*length as u64)));
        }
        for length in bad {
            assert_eq!(import(key_type, *length), Err(Error::ATTRIBUTE_VALUE_INVALID));
        }
    }
}

#[test]
fn a_public_key_does_not_sign_and_a_private_one_does_not_verify() {
    let keys = pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &[(CKA_EC_PARAMS, Value::Bytes(P256.to_vec()))]);
    let row = algorithm(CKM_ECDSA);
    let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
    let refused = Err(Error::KEY_TYPE_INCONSISTENT);
    assert_eq!(sign.check(Direction::Forward, &keys.public, &Params::None), refused);
    assert_eq!(verify.check(Direction::Backward, &keys.private, &Params::None), refused);
}
