// SPDX-License-Identifier: Apache-2.0
//! HSS keys and signatures (RFC 8554; PKCS#11 3.2 §6.65). A private key is a seed and a name.

use super::one_time::{self, OneTime, Trees};
use crate::hss::{self, HIGHEST, ID, MOST_LEVELS, Private, Set};
use metaslot_awslc_wrapper::Failed;
use metaslot_ck::*;
use metaslot_spi::key_info;
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, Value, detail};

pub(super) const ROWS: [Algorithm; 2] = checked([
    Algorithm { mechanism: CKM_HSS_KEY_PAIR_GEN, generate_pair: Some(&KeyPair), ..Algorithm::NONE },
    Algorithm::signature(CKM_HSS, (0, 0), &OneTime(Hss)),
]);

/// id-alg-hss-lms-hashsig (RFC 9708 §4), whose public key stands there as it is.
const OID: [u8; 11] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x03, 0x11];

/// The sets of all levels.
fn sets(private: &Attributes) -> Result<Vec<Set>> {
    let (Some(Value::Ulongs(trees)), Some(Value::Ulongs(chains))) =
        (private.get(CKA_HSS_LMS_TYPES), private.get(CKA_HSS_LMOTS_TYPES))
    else {
        return Err(Error::TEMPLATE_INCOMPLETE);
    };
    let levels = private.ulong(CKA_HSS_LEVELS).unwrap_or(trees.len() as u64);
    if !(1..=MOST_LEVELS).contains(&trees.len())
        || trees.len() != chains.len()
        || levels != trees.len() as u64
    {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let number = |number: &u64| u32::try_from(*number).ok();
    let set = |(tree, chain)| Set::new(number(tree)?, number(chain)?);
    let sets: Option<Vec<Set>> = trees.iter().zip(chains).map(set).collect();
    let sets = sets.ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)?;
    if sets.iter().any(|set| !set.has_hash_of(&sets[0])) {
        detail::set(format_args!("all levels of a key have one hash function (SP 800-208 §4)"));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    Ok(sets)
}

/// What both halves of a pair show.
fn shown(levels: usize, public: &[u8]) -> Attributes {
    [
        (CKA_HSS_LEVELS, Value::Ulong(levels as u64)),
        (CKA_PUBLIC_KEY_INFO, Value::Bytes(key_info::bare_public(&OID, public))),
    ]
    .into_iter()
    .collect()
}

/// What the public half shows besides.
pub(super) fn shown_in_public(public: &[u8]) -> Option<Attributes> {
    let (levels, top) = hss::parse_public(public)?;
    let mut attributes = shown(levels, public);
    attributes.set(CKA_HSS_LMS_TYPE, Value::Ulong(top.tree_type.into()));
    attributes.set(CKA_HSS_LMOTS_TYPE, Value::Ulong(top.chain_type.into()));
    Some(attributes)
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, _: &Attributes) -> Result<(NewObject, NewObject)> {
        Err(Error::TEMPLATE_INCOMPLETE)
    }

    fn generate_halves(
        &self,
        _: &Params,
        _: &Attributes,
        private: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        let sets = sets(private)?;
        if sets.iter().any(|set| set.height > HIGHEST) {
            detail::set(format_args!(
                "trees of more than 15 levels verify and are not made: use several levels of trees"
            ));
            return Err(Error::PARAMETER_SET_NOT_SUPPORTED);
        }
        let signatures = hss::signatures(&sets).ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)?;
        let value = one_time::seeds(private, sets[0].node + ID)?;
        let public = grown(&sets, value.expose())?.public();
        let first = shown_in_public(&public).ok_or(Error::GENERAL_ERROR)?;
        let mut second = shown(sets.len(), &public);
        let types =
            |of: fn(&Set) -> u32| Value::Ulongs(sets.iter().map(|set| of(set).into()).collect());
        second.set(CKA_HSS_LMS_TYPES, types(|set| set.tree_type));
        second.set(CKA_HSS_LMOTS_TYPES, types(|set| set.chain_type));
        Ok(one_time::pair([first, second], public, value, signatures))
    }
}

/// Of a seed with its name.
fn grown(sets: &[Set], value: &[u8]) -> Result<Private> {
    let (seed, id) = value.split_last_chunk::<ID>().ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    if seed.len() != sets[0].node {
        return Err(Error::KEY_TYPE_INCONSISTENT);
    }
    room(&sets[..1])?;
    Ok(Private::new(sets, seed, id))
}

fn room(sets: &[Set]) -> Result<()> {
    if hss::has_room(sets) { Ok(()) } else { Err(Error::HOST_MEMORY) }
}

/// `CKM_HSS`
#[derive(Clone, Copy, Debug)]
struct Hss;

impl Trees for Hss {
    type Private = Private;

    fn grown(self, key: &Key) -> Result<Private> {
        let sets = sets(key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        grown(&sets, key.secret(CKA_VALUE)?)
    }

    fn room(self, private: &Private) -> Result<()> {
        room(&private.sets()[1..])
    }

    fn signatures(self, private: &Private) -> Option<u64> {
        hss::signatures(private.sets())
    }

    fn sign(
        self,
        private: &mut Private,
        number: u64,
        message: &[u8],
    ) -> std::result::Result<Vec<u8>, Failed> {
        private.sign(number, &[message])
    }

    fn verify(
        self,
        public: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> std::result::Result<bool, Failed> {
        hss::verify(public, &[message], signature)
    }

    fn is_public(self, public: &[u8]) -> bool {
        hss::parse_public(public).is_some()
    }

    fn length(self, key: &Key) -> usize {
        let of_public = || match hss::parse_public(key.bytes(CKA_VALUE).ok()?)? {
            (1, set) => Some(hss::signature_length(&[set])),
            _ => None,
        };
        let of_private = sets(key.attributes()).ok().map(|sets| hss::signature_length(&sets));
        of_private.or_else(of_public).unwrap_or(0)
    }
}
