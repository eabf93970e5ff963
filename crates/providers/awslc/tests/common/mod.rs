// SPDX-License-Identifier: Apache-2.0
//! Keys and rows for the tests of this folder.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::{Attributes, Key, Material, NewObject, Params, Secrets, Value};
use std::sync::Arc;

/// Both halves.
pub(crate) struct Pair {
    pub(crate) public: Arc<Key>,
    pub(crate) private: Arc<Key>,
}

/// The provider that is tested.
pub(crate) fn provider() -> &'static dyn Provider {
    &PROVIDER
}

/// Whether the provider writes the states of a hash function: OpenSSL does not know how for the oldest, and the kernel keeps its own.
pub(crate) fn has_states(mechanism: CK_MECHANISM_TYPE) -> bool {
    match provider().name() {
        "openssl" => !matches!(mechanism, CKM_MD5 | CKM_SHA_1),
        "kernel" => provider().algorithms().iter().all(|row| row.mechanism != mechanism),
        _ => true,
    }
}

/// Whether the provider takes a nonce of this length for GCM: the standard has no limit, and OpenSSL has one.
pub(crate) fn takes_nonce(length: usize) -> bool {
    provider().name() != "openssl" || length <= 128
}

/// Whether it takes nonces of 192 bits for ChaCha20-Poly1305, as OpenSSL does not.
pub(crate) fn has_xchacha() -> bool {
    provider().name() != "openssl"
}

/// The row of the provider that is tested, with AWS-LC's operations where it has none.
pub(crate) fn algorithm(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    let row = |provider: &'static dyn Provider| {
        let mut rows = provider.algorithms().iter();
        rows.find(|row| row.mechanism == mechanism).copied().unwrap_or(Algorithm::NONE)
    };
    let (own, other) = (row(provider()), row(&AWSLC));
    Algorithm {
        digest: own.digest.or(other.digest),
        encrypt: own.encrypt.or(other.encrypt),
        decrypt: own.decrypt.or(other.decrypt),
        sign: own.sign.or(other.sign),
        verify: own.verify.or(other.verify),
        sign_recover: own.sign_recover.or(other.sign_recover),
        verify_recover: own.verify_recover.or(other.verify_recover),
        generate: own.generate.or(other.generate),
        generate_pair: own.generate_pair.or(other.generate_pair),
        wrap: own.wrap.or(other.wrap),
        unwrap: own.unwrap.or(other.unwrap),
        derive: own.derive.or(other.derive),
        encapsulate: own.encapsulate.or(other.encapsulate),
        decapsulate: own.decapsulate.or(other.decapsulate),
        ..other
    }
}

/// A key as the engine would make it of what a provider handed back.
pub(crate) fn key(class: u64, key_type: u64, object: NewObject) -> Arc<Key> {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// A new pair.
pub(crate) fn pair(
    mechanism: CK_MECHANISM_TYPE,
    key_type: u64,
    template: &[(CK_ATTRIBUTE_TYPE, Value)],
) -> Pair {
    let template: Attributes = template.iter().cloned().collect();
    let (public, private) = algorithm(mechanism)
        .generate_pair
        .unwrap()
        .generate_pair(&Params::None, &template)
        .unwrap();
    Pair {
        public: key(CKO_PUBLIC_KEY, key_type, public),
        private: key(CKO_PRIVATE_KEY, key_type, private),
    }
}

/// A key that the application brings.
pub(crate) fn imported(
    class: u64,
    key_type: u64,
    shown: &[(CK_ATTRIBUTE_TYPE, Vec<u8>)],
    secret: &[(CK_ATTRIBUTE_TYPE, &[u8])],
) -> Result<Arc<Key>> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(class));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    for (attribute, value) in shown {
        object.attributes.set(*attribute, Value::Bytes(value.clone()));
    }
    let mut secrets = Secrets::new();
    for (attribute, value) in secret {
        secrets.set(*attribute, Secret::copy_of(value));
    }
    object.secrets = secrets;
    AWSLC.complete(&mut object)?;
    Ok(key(class, key_type, object))
}
