// SPDX-License-Identifier: Apache-2.0
//! The provider: rows for what the kernels compute, over the rows of a plain provider, which does the same one at a time.
//!
//! An operation that waits (`C_Sign` in an ordinary session) goes through the combiner's blocking door where a
//! batch can win over a switch of threads; one of an asynchronous session through the other. What neither suits, the
//! plain provider's row does. Only its rows are used: the form in which it keeps a key is its own.

#[cfg(target_arch = "x86_64")]
mod aes;
mod agree;
mod batch;
mod binary;
#[cfg(target_arch = "x86_64")]
mod chacha;
#[cfg(target_arch = "x86_64")]
mod des;
mod digest;
mod ecdh;
mod ecdsa;
mod eddsa;
mod form;
mod hashed;
mod hmac;
mod hss;
mod ml_dsa;
#[cfg(target_arch = "x86_64")]
mod ml_kem;
mod one_time;
mod over;
mod parts;
mod prime;
#[cfg(target_arch = "x86_64")]
mod rc4;
mod rsa;
mod slh_dsa;
mod x25519;
mod xmss;

use self::parts::Plain;
use crate::cpu::{self, Cpu};
use crate::xmss::Scheme::{Multi, Single};
use metaslot_ck::{
    CK_MECHANISM_TYPE, CKA_CLASS, CKA_KEY_TYPE, CKK_HSS, CKK_SLH_DSA, CKK_XMSS, CKK_XMSSMT,
    CKO_SECRET_KEY, Error, Result,
};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::{Key, NewObject};
use std::sync::OnceLock;

/// The kernels as a provider beside a plain one.
#[derive(Debug)]
pub struct Lanes {
    plain: &'static dyn Provider,
    table: OnceLock<Table>,
}

/// The rows, and for each mechanism the instructions without which its lanes do nothing.
#[derive(Debug)]
struct Table {
    rows: Vec<Algorithm>,
    needs: Vec<(CK_MECHANISM_TYPE, Cpu)>,
}

impl Lanes {
    /// For a static.
    #[must_use]
    pub const fn beside(plain: &'static dyn Provider) -> Self {
        Self { plain, table: OnceLock::new() }
    }
}

impl Lanes {
    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            // In a virtual machine each question costs 2 to 20 µs: 80 µs that a server's children inherit with the table.
            _ = cpu::cpu();
            let families = families(Plain(self.plain.algorithms()));
            let needs = |(rows, needs): &(Vec<Algorithm>, Cpu)| -> Vec<_> {
                rows.iter().map(|row| (row.mechanism, *needs)).collect()
            };
            let needs = families.iter().flat_map(needs).collect();
            let mut rows: Vec<_> = families.into_iter().flat_map(|family| family.0).collect();
            rows.sort_by_key(|row| row.mechanism);
            Table { rows, needs }
        })
    }
}

/// The rows of each family of kernels, and what it needs.
fn families(plain: Plain) -> Vec<(Vec<Algorithm>, Cpu)> {
    vec![
        #[cfg(target_arch = "x86_64")]
        (aes::rows(plain), crate::aes::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (chacha::rows(plain), crate::chacha::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (des::rows(plain), crate::des::NEEDS),
        (digest::rows(plain), crate::hash::NEEDS),
        (ecdh::rows(plain), crate::p256::NEEDS),
        (ecdsa::rows(plain), crate::p256::NEEDS),
        (eddsa::rows(plain), crate::curve25519::NEEDS),
        (hmac::rows(plain), crate::hash::NEEDS),
        (ml_dsa::rows(plain), crate::ml_dsa::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (ml_kem::rows(plain), crate::ml_kem::NEEDS),
        #[cfg(target_arch = "x86_64")]
        (rc4::rows(plain), Cpu::NONE),
        (rsa::rows(plain), crate::rsa::NEEDS),
        (x25519::rows(plain), crate::curve25519::NEEDS),
        // After those of prime curves, which are asked first and far more often.
        (binary::rows(), Cpu::NONE),
        (slh_dsa::ROWS.to_vec(), Cpu::NONE),
        (hss::ROWS.to_vec(), Cpu::NONE),
        (xmss::ROWS.to_vec(), Cpu::NONE),
    ]
}

impl Provider for Lanes {
    fn name(&self) -> &'static str {
        "lanes"
    }

    fn depends_on_company(&self) -> bool {
        true
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        &self.table().rows
    }

    fn remark(&self, mechanism: CK_MECHANISM_TYPE) -> String {
        let row = self.table().needs.iter().find(|row| row.0 == mechanism);
        row.and_then(|row| cpu::lacks(row.1)).unwrap_or_default()
    }

    fn complete(&self, key: &mut NewObject) -> Result<()> {
        // A secret key of this type is none, and not ours to judge.
        let is_pair = key.attributes.ulong(CKA_CLASS) != Some(CKO_SECRET_KEY);
        match key.attributes.ulong(CKA_KEY_TYPE) {
            Some(CKK_SLH_DSA) if is_pair => slh_dsa::complete(key),
            Some(CKK_HSS) if is_pair => one_time::complete(key, hss::shown_in_public),
            Some(CKK_XMSS) if is_pair => one_time::complete(key, |it| xmss::shown(Single, it)),
            Some(CKK_XMSSMT) if is_pair => one_time::complete(key, |it| xmss::shown(Multi, it)),
            _ => binary::complete(key),
        }
    }

    fn encode_private_key(&self, key: &Key) -> Result<Secret> {
        if key.key_type() == CKK_SLH_DSA { slh_dsa::encode(key) } else { binary::encode(key) }
    }

    fn decode_private_key(&self, der: &[u8]) -> Result<NewObject> {
        match slh_dsa::decode(der) {
            Err(Error::WRAPPED_KEY_INVALID) => binary::decode(der),
            decoded => decoded,
        }
    }
}
