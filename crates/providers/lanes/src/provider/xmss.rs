// SPDX-License-Identifier: Apache-2.0
//! XMSS and XMSS^MT keys and signatures (RFC 8391, SP 800-208; PKCS#11 3.2 §6.66). A private key is its three seeds.

use super::one_time::{self, OneTime, Trees};
use crate::xmss::{self, HIGHEST, Private, Scheme, Set};
use metaslot_awslc_wrapper::Failed;
use metaslot_ck::*;
use metaslot_spi::key_info;
use metaslot_spi::provider::{Algorithm, GeneratePair, checked};
use metaslot_spi::{Attributes, Key, NewObject, Params, Value, detail};

const fn generating(mechanism: CK_MECHANISM_TYPE, pair: &'static KeyPair) -> Algorithm {
    Algorithm { mechanism, generate_pair: Some(pair), ..Algorithm::NONE }
}

const fn signing(mechanism: CK_MECHANISM_TYPE, trees: &'static OneTime<Xmss>) -> Algorithm {
    Algorithm { mechanism, sign: Some(trees), verify: Some(trees), ..Algorithm::NONE }
}

pub(super) const ROWS: [Algorithm; 4] = checked([
    generating(CKM_XMSS_KEY_PAIR_GEN, &KeyPair(Scheme::Single)),
    generating(CKM_XMSSMT_KEY_PAIR_GEN, &KeyPair(Scheme::Multi)),
    signing(CKM_XMSS, &OneTime(Xmss(Scheme::Single))),
    signing(CKM_XMSSMT, &OneTime(Xmss(Scheme::Multi))),
]);

/// id-alg-xmss-hashsig and id-alg-xmssmt-hashsig (RFC 9802 §3), whose public keys stand there as they are.
const fn oid(scheme: Scheme) -> [u8; 8] {
    let last = match scheme {
        Scheme::Single => 34,
        Scheme::Multi => 35,
    };
    [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x06, last]
}

/// The set that a template or a key names.
fn set(scheme: Scheme, attributes: &Attributes) -> Result<Set> {
    let said = attributes.ulong(CKA_PARAMETER_SET).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let set = u32::try_from(said).ok().and_then(|number| Set::new(scheme, number));
    set.ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)
}

/// What both halves of a pair show.
pub(super) fn shown(scheme: Scheme, public: &[u8]) -> Option<Attributes> {
    let set = xmss::parse_public(scheme, public)?;
    let shown = [
        (CKA_PARAMETER_SET, Value::Ulong(set.number.into())),
        (CKA_PUBLIC_KEY_INFO, Value::Bytes(key_info::bare_public(&oid(scheme), public))),
    ];
    Some(shown.into_iter().collect())
}

#[derive(Debug)]
struct KeyPair(Scheme);

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, _: &Attributes) -> Result<(NewObject, NewObject)> {
        Err(Error::TEMPLATE_INCOMPLETE)
    }

    fn generate_halves(
        &self,
        _: &Params,
        public: &Attributes,
        private: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        let set = set(self.0, public)?;
        if set.tree_height() > HIGHEST {
            detail::set(format_args!(
                "trees of 20 levels verify and are not made: XMSS^MT has as many signatures in smaller ones"
            ));
            return Err(Error::PARAMETER_SET_NOT_SUPPORTED);
        }
        let seeds = one_time::seeds(private, set.seeds_length())?;
        let public = grown(&set, seeds.expose())?.public();
        let shown = shown(self.0, &public).ok_or(Error::GENERAL_ERROR)?;
        Ok(one_time::pair([shown.clone(), shown], public, seeds, set.signatures()))
    }
}

/// Of its seeds.
fn grown(set: &Set, seeds: &[u8]) -> Result<Private> {
    if seeds.len() != set.seeds_length() || set.tree_height() > HIGHEST {
        return Err(Error::KEY_TYPE_INCONSISTENT);
    }
    room(set, 1)?;
    Ok(Private::new(set, seeds))
}

fn room(set: &Set, layers: usize) -> Result<()> {
    if xmss::has_room(set, layers) { Ok(()) } else { Err(Error::HOST_MEMORY) }
}

/// `CKM_XMSS` and `CKM_XMSSMT`
#[derive(Clone, Copy, Debug)]
struct Xmss(Scheme);

impl Trees for Xmss {
    type Private = Private;

    fn grown(self, key: &Key) -> Result<Private> {
        let set = set(self.0, key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        grown(&set, key.secret(CKA_VALUE)?)
    }

    fn room(self, private: &Private) -> Result<()> {
        room(private.set(), xmss::layers(private.set()) - 1)
    }

    fn signatures(self, private: &Private) -> Option<u64> {
        Some(private.set().signatures())
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
        xmss::verify(self.0, public, &[message], signature)
    }

    fn is_public(self, public: &[u8]) -> bool {
        xmss::parse_public(self.0, public).is_some()
    }

    fn length(self, key: &Key) -> usize {
        set(self.0, key.attributes()).map_or(0, |set| set.signature_length())
    }
}
