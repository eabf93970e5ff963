// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA through the provider's traits.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_lanes::provider::Lanes;
use metaslot_spi::buffer::MOST_HELD;
use metaslot_spi::provider::{Algorithm, Direction, Provider};
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Value};
use std::sync::Arc;

/// Nothing is beneath: what is served here is served by this provider alone.
#[derive(Debug)]
struct Nothing;

impl Provider for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &[]
    }
}

static LANES: Lanes = Lanes::beside(&Nothing);

fn row(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    LANES.algorithms().iter().find(|row| row.mechanism == mechanism).unwrap()
}

fn key(class: u64, NewObject { mut attributes, secrets }: NewObject) -> Arc<Key> {
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_SLH_DSA));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

fn generated(set: u64) -> [Arc<Key>; 2] {
    let mut template = Attributes::default();
    template.set(CKA_PARAMETER_SET, Value::Ulong(set));
    let pair = row(CKM_SLH_DSA_KEY_PAIR_GEN).generate_pair.unwrap();
    let (public, private) = pair.generate_pair(&Params::None, &template).unwrap();
    [key(CKO_PUBLIC_KEY, public), key(CKO_PRIVATE_KEY, private)]
}

const MESSAGE: &[u8] = b"a message in parts";

/// In one call and in parts; both are equal, where they are deterministic.
fn signed(mechanism: CK_MECHANISM_TYPE, key: &Arc<Key>, params: &Params) -> Vec<u8> {
    let sign = row(mechanism).sign.unwrap();
    sign.check(Direction::Forward, key, params).unwrap();
    let mut out = vec![0; sign.length(key, params)];
    assert_eq!(sign.sign(key, params, MESSAGE, &mut out), Ok(out.len()));
    let mut again = out.clone();
    let mut stream = sign.start(Direction::Forward, key, params).unwrap();
    MESSAGE.chunks(5).for_each(|part| stream.update(part).unwrap());
    assert_eq!(stream.sign(&mut again), Ok(out.len()));
    let deterministic =
        matches!(params, Params::SignContext { hedge: CKH_DETERMINISTIC_REQUIRED, .. });
    assert_eq!(out == again, deterministic);
    again
}

fn verified(
    mechanism: CK_MECHANISM_TYPE,
    key: &Arc<Key>,
    params: &Params,
    by: &[u8],
) -> Result<()> {
    let verify = row(mechanism).verify.unwrap();
    verify.check(Direction::Backward, key, params)?;
    let whole = verify.verify(key, params, MESSAGE, by);
    let mut stream = verify.start(Direction::Backward, key, params).unwrap();
    MESSAGE.chunks(7).for_each(|part| stream.update(part).unwrap());
    assert_eq!(stream.verify(by), whole);
    whole
}

fn context(hedge: u64, length: usize) -> Params {
    Params::SignContext { hedge, context: Bytes::from_elem(7, length) }
}

#[test]
fn each_form_signs_what_it_verifies_and_no_other() {
    let [public, private] = generated(CKP_SLH_DSA_SHAKE_128F);
    let params =
        [Params::None, context(CKH_HEDGE_REQUIRED, 255), context(CKH_DETERMINISTIC_REQUIRED, 0)];
    let forms = [CKM_SLH_DSA, CKM_HASH_SLH_DSA_SHA256, CKM_HASH_SLH_DSA_SHAKE128];
    for mechanism in forms {
        for params in &params {
            let signature = signed(mechanism, &private, params);
            for other in forms {
                let expected =
                    if other == mechanism { Ok(()) } else { Err(Error::SIGNATURE_INVALID) };
                assert_eq!(verified(other, &public, params, &signature), expected);
            }
            let bound = context(CKH_HEDGE_PREFERRED, 3);
            let other = verified(mechanism, &public, &bound, &signature);
            assert_eq!(other, Err(Error::SIGNATURE_INVALID));
            let short = verified(mechanism, &public, params, &signature[1..]);
            assert_eq!(short, Err(Error::SIGNATURE_LEN_RANGE));
        }
    }
}

/// A digest that comes from outside is signed as the one that is computed here.
#[test]
fn a_digest_is_as_good_as_its_message() {
    let [public, private] = generated(CKP_SLH_DSA_SHA2_128F);
    let given = |hash| Params::HashSignContext {
        hash,
        hedge: CKH_HEDGE_PREFERRED,
        context: Bytes::from_slice(b"context"),
    };
    let params =
        Params::SignContext { hedge: CKH_HEDGE_PREFERRED, context: Bytes::from_slice(b"context") };
    for (hash, digest, whole) in [
        (Hash::Sha256, CKM_SHA256, CKM_HASH_SLH_DSA_SHA256),
        (Hash::Sha3_512, CKM_SHA3_512, CKM_HASH_SLH_DSA_SHA3_512),
    ] {
        let mut value = vec![0; hash.length()];
        hash.digest(MESSAGE, &mut value).unwrap();
        let signature = signed(whole, &private, &params);
        let verify = row(CKM_HASH_SLH_DSA).verify.unwrap();
        verify.check(Direction::Backward, &public, &given(digest)).unwrap();
        assert_eq!(verify.verify(&public, &given(digest), &value, &signature), Ok(()));
        let short = verify.verify(&public, &given(digest), &value[1..], &signature);
        assert_eq!(short, Err(Error::DATA_LEN_RANGE));
    }
    let sign = row(CKM_HASH_SLH_DSA).sign.unwrap();
    for params in [Params::None, params, given(CKM_SHA_1), given(CKM_MD5)] {
        let refused = sign.check(Direction::Forward, &private, &params);
        assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    }
    assert!(sign.start(Direction::Forward, &private, &given(CKM_SHA256)).is_err());
}

#[test]
fn a_pair_survives_its_encoding() {
    for set in CKP_SLH_DSA_SHA2_128S..=CKP_SLH_DSA_SHAKE_256F {
        // The keys of the small sets take as long as their signatures do in parts; one of each hash function is enough.
        if set > CKP_SLH_DSA_SHAKE_128F && set % 4 < 3 && set % 4 > 0 {
            continue;
        }
        let [public, private] = generated(set);
        let der = LANES.encode_private_key(&private).unwrap();
        let again = LANES.decode_private_key(der.expose()).unwrap();
        assert_eq!(again.secrets.get(CKA_VALUE), private.secret(CKA_VALUE).ok());
        assert_eq!(again.attributes.ulong(CKA_PARAMETER_SET), Some(set));
        let info = public.bytes(CKA_PUBLIC_KEY_INFO).ok();
        assert_eq!(again.attributes.bytes(CKA_PUBLIC_KEY_INFO), info);
        // A root that is not that of the seeds.
        let mut broken = der.expose().to_vec();
        *broken.last_mut().unwrap() ^= 1;
        let refused = LANES.decode_private_key(&broken).map(drop);
        assert_eq!(refused, Err(Error::WRAPPED_KEY_INVALID));
    }
}

#[test]
fn halves_and_lengths_are_checked() {
    let [public, private] = generated(CKP_SLH_DSA_SHA2_128F);
    let slh = row(CKM_SLH_DSA);
    let inconsistent = Err(Error::KEY_TYPE_INCONSISTENT);
    assert_eq!(slh.sign.unwrap().check(Direction::Forward, &public, &Params::None), inconsistent);
    let verify = slh.verify.unwrap();
    assert_eq!(verify.check(Direction::Backward, &private, &Params::None), inconsistent);
    let long = context(CKH_HEDGE_PREFERRED, 256);
    let refused = verify.check(Direction::Backward, &public, &long);
    assert_eq!(refused, Err(Error::MECHANISM_PARAM_INVALID));
    let template = Attributes::default();
    let pair = row(CKM_SLH_DSA_KEY_PAIR_GEN).generate_pair.unwrap();
    let made = pair.generate_pair(&Params::None, &template).map(drop);
    assert_eq!(made, Err(Error::TEMPLATE_INCOMPLETE));
    for set in [0, 13, u64::MAX] {
        let template = [(CKA_PARAMETER_SET, Value::Ulong(set))].into_iter().collect();
        let made = pair.generate_pair(&Params::None, &template).map(drop);
        assert_eq!(made, Err(Error::PARAMETER_SET_NOT_SUPPORTED));
    }
}

#[test]
fn a_message_that_is_kept_is_no_longer_than_others_may_be() {
    let [_, private] = generated(CKP_SLH_DSA_SHA2_128F);
    let sign = row(CKM_SLH_DSA).sign.unwrap();
    let mut stream = sign.start(Direction::Forward, &private, &Params::None).unwrap();
    assert_eq!(stream.update(b"begun"), Ok(()));
    assert_eq!(stream.update(&vec![0; MOST_HELD]), Err(Error::DATA_LEN_RANGE));
}
