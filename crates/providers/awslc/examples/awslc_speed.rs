// SPDX-License-Identifier: Apache-2.0
//! Signatures through the provider's traits, in nanoseconds each: the smallest of some rounds. The
//! same without any of our code, for the ratio: `cargo run --release -p metaslot-bare --example bare_speed`.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Provider};
use metaslot_spi::{Key, Material, NewObject, Params, Value};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 25;

fn row(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    AWSLC.algorithms().iter().find(|row| row.mechanism == mechanism).expect("a row of the provider")
}

fn key(class: u64, key_type: u64, object: NewObject) -> Key {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)))
}

fn fastest(name: &str, count: u32, mut operation: impl FnMut() -> Result<()>) -> Result<()> {
    let mut best = u128::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..count {
            operation()?;
        }
        best = best.min(start.elapsed().as_nanos() / u128::from(count));
    }
    println!("{name} {best}");
    Ok(())
}

fn measure(
    name: &str,
    count: u32,
    generate: CK_MECHANISM_TYPE,
    key_type: u64,
    template: (CK_ATTRIBUTE_TYPE, Value),
    mechanism: CK_MECHANISM_TYPE,
) -> Result<()> {
    let template = [template].into_iter().collect();
    let pair = row(generate).generate_pair.ok_or(Error::MECHANISM_INVALID)?;
    let (public, private) = pair.generate_pair(&Params::None, &template)?;
    let public = key(CKO_PUBLIC_KEY, key_type, public);
    let private = key(CKO_PRIVATE_KEY, key_type, private);
    let sign = row(mechanism).sign.ok_or(Error::MECHANISM_INVALID)?;
    let verify = row(mechanism).verify.ok_or(Error::MECHANISM_INVALID)?;
    let (data, mut signature) = ([5; 32], vec![0; sign.length(&private, &Params::None)]);
    fastest(&format!("{name}-sign"), count, || {
        sign.check(Direction::Forward, &private, &Params::None)?;
        sign.sign(&private, &Params::None, &data, &mut signature).map(|_| ())
    })?;
    fastest(&format!("{name}-verify"), count, || {
        verify.check(Direction::Backward, &public, &Params::None)?;
        verify.verify(&public, &Params::None, &data, &signature)
    })
}

fn main() -> Result<()> {
    let p256 = Value::Bytes(vec![6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let ed25519 = Value::Bytes(vec![6, 3, 0x2b, 0x65, 0x70]);
    let bits = Value::Ulong(2048);
    let (rsa, ec, ed) =
        (CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_EC_KEY_PAIR_GEN, CKM_EC_EDWARDS_KEY_PAIR_GEN);
    measure("rsa-2048", 40, rsa, CKK_RSA, (CKA_MODULUS_BITS, bits), CKM_SHA256_RSA_PKCS)?;
    measure("p-256", 800, ec, CKK_EC, (CKA_EC_PARAMS, p256), CKM_ECDSA)?;
    measure("ed25519", 800, ed, CKK_EC_EDWARDS, (CKA_EC_PARAMS, ed25519), CKM_EDDSA)
}
