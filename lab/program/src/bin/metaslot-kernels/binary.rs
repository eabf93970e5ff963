// SPDX-License-Identifier: Apache-2.0
//! The binary curves, which AWS-LC does not have: OpenSSL is asked to verify the signatures.

use crate::row::{Result, Work, each, failed, random, same, without};
use metaslot_lab::kernels::Claim;
use metaslot_lanes::binary::{
    BATCH, Curve, Derive, PrivateKey, PublicKey, Sign, derive, generate, sign,
};
use metaslot_lanes::cpu::{self, Cpu};

type Pairs = Vec<(PrivateKey, PublicKey)>;

/// Two curves by number, because a function's parameter cannot be a name.
pub(crate) const SECT233K1: usize = 0;
pub(crate) const SECT571R1: usize = 1;
const CURVES: [Curve; 2] = [Curve::Sect233k1, Curve::Sect571r1];

struct Signer {
    curve: Curve,
    pairs: Pairs,
    digests: Vec<Vec<u8>>,
    out: Vec<Vec<u8>>,
}

pub(crate) fn signer<const CURVE: usize>() -> Result<Box<dyn Work>> {
    let curve = CURVES[CURVE];
    let pairs = generate(curve, BATCH).map_err(failed("keys"))?;
    let out = vec![vec![0; 2 * curve.order_length()]; BATCH];
    Ok(Box::new(Signer { curve, pairs, digests: each(BATCH, |_| random(32))?, out }))
}

impl Work for Signer {
    fn raw(&mut self) {
        unreachable!("AWS-LC has no binary curves");
    }

    fn batch(&mut self, filled: usize) {
        let lanes = self.pairs.iter().zip(&self.digests).zip(&mut self.out).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|(((key, _), digest), out)| Sign::new(key, digest, out)).collect();
        sign(&mut requests);
        assert!(requests.iter().all(|request| request.answer.is_ok()), "the kernel signs");
    }

    fn check(&mut self) -> Result<()> {
        same(self.out.iter().all(|out| out.iter().any(|byte| *byte != 0)), "a signature of zeros")
    }

    fn claims(&self) -> Vec<Claim> {
        let lanes = self.pairs.iter().zip(&self.digests).zip(&self.out);
        lanes
            .map(|(((_, key), digest), signature)| Claim {
                curve: self.curve.name().to_owned(),
                point: key.to_bytes(),
                digest: digest.clone(),
                signature: signature.clone(),
            })
            .collect()
    }
}

struct Deriver {
    pairs: Pairs,
    out: Vec<Vec<u8>>,
}

pub(crate) fn deriver<const CURVE: usize>() -> Result<Box<dyn Work>> {
    let curve = CURVES[CURVE];
    let pairs = generate(curve, BATCH).map_err(failed("keys"))?;
    Ok(Box::new(Deriver { pairs, out: vec![vec![0; curve.field_length()]; BATCH] }))
}

impl Deriver {
    /// Each lane with the public key of the one before it.
    fn derive(pairs: &Pairs, out: &mut [Vec<u8>]) {
        let peers = pairs.iter().map(|(_, public)| public).cycle().skip(BATCH - 1);
        let lanes = pairs.iter().zip(peers).zip(out);
        let mut requests: Vec<_> =
            lanes.map(|(((key, _), peer), out)| Derive::new(key, peer, false, out)).collect();
        derive(&mut requests);
        assert!(requests.iter().all(|request| request.answer.is_ok()), "the kernel derives");
    }
}

impl Work for Deriver {
    fn raw(&mut self) {
        unreachable!("AWS-LC has no binary curves");
    }

    fn batch(&mut self, filled: usize) {
        Self::derive(&self.pairs, &mut self.out[..filled]);
    }

    /// The form of the kernel for other processors is written apart from the one in vectors.
    fn check(&mut self) -> Result<()> {
        let mut portable = self.out.clone();
        portable.iter_mut().for_each(|out| out.fill(0));
        cpu::mask(without().and(Cpu::VPCLMUL).and(Cpu::AES));
        Self::derive(&self.pairs, &mut portable);
        cpu::mask(without());
        same(portable == self.out, "a shared secret")
    }
}
