// SPDX-License-Identifier: Apache-2.0
//! Agreement with one key pair a side (PKCS#11 3.2 §6.3.17, §6.3.18) over the plain provider's rows: kernels make the shared
//! secret.

use super::batch::{Batch, Meeting};
use super::digest::expand;
use super::parts::{Held, Message, Plain, kept, put};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::ephemeral::NoKeys;
use metaslot_spi::provider::{Algorithm, Derive, Keys, Postponed};
use metaslot_spi::{Bytes, Key, Params};
use std::fmt::Debug;
use std::sync::Arc;

/// A kernel's agreements with keys of one kind.
pub(super) trait Agreeing: for<'a> Batch<Work<'a> = Agreed<'a>> + Debug {
    /// Length of a shared secret, in bytes.
    const LENGTH: usize;

    /// As [`Derive::serves`].
    fn serves(key: &Key) -> bool;
}

/// The row of a mechanism, where the plain provider has it too.
pub(super) fn row<A: Agreeing>(
    plain: Plain,
    mechanism: CK_MECHANISM_TYPE,
    extra_flags: CK_FLAGS,
    meeting: &'static Meeting<A>,
) -> Option<Algorithm> {
    let plain = plain.row(mechanism)?.derive?;
    let bits = 8 * A::LENGTH as u64;
    Some(Algorithm {
        mechanism,
        key_sizes: (bits, bits),
        derive: Some(kept(Derivation { plain, meeting })),
        extra_flags,
        ..Algorithm::NONE
    })
}

#[derive(Debug)]
struct Derivation<A: Agreeing> {
    plain: &'static dyn Derive,
    meeting: &'static Meeting<A>,
}

impl<A: Agreeing> Derive for Derivation<A> {
    fn serves(&self, key: &Key) -> bool {
        A::serves(key)
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(key, params)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        self.plain.natural_length(key, params)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        let (key, peer) = (Held::Borrowed(key), Message::Borrowed(agreement.public));
        let work = Agreed::new::<A>(self.plain, key, peer);
        let agree = || self.meeting.run(work).map(|work| work.secret);
        agreement.derive(lengths, agree, expand)
    }

    fn derive_later(&self, key: &Arc<Key>, params: &Params, length: usize) -> Postponed {
        let agreement = Agreement::read(params)?;
        let (key, peer) = (Held::Shared(Arc::clone(key)), Message::copy(agreement.public)?);
        let work = Agreed::new::<A>(self.plain, key, peer);
        agreement.derive_later(length, A::LENGTH, self.meeting.later(work), expand)
    }
}

/// A secret to be agreed on.
pub(super) struct Agreed<'a> {
    plain: &'static dyn Derive,
    key: Held<'a>,
    /// The other side's point, raw or as a DER OCTET STRING.
    peer: Message<'a>,
    length: usize,
    secret: Secret,
}

impl<'a> Agreed<'a> {
    fn new<A: Agreeing>(plain: &'static dyn Derive, key: Held<'a>, peer: Message<'a>) -> Self {
        Self { plain, key, peer, length: A::LENGTH, secret: Secret::zeroed(0) }
    }

    /// What a kernel wants to know: the key, the other side's point, and where to write the secret.
    pub(super) fn asked(&mut self) -> (&Key, &[u8], &mut [u8]) {
        self.secret = Secret::zeroed(self.length);
        (&self.key, &self.peer, self.secret.expose_mut())
    }

    /// What the plain provider finds.
    pub(super) fn alone(&mut self) -> Result<()> {
        let public = Bytes::from_slice(&self.peer);
        let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
        let secrets = self.plain.derive(&self.key, &params, &[self.length], &NoKeys)?;
        self.secret = secrets.into_iter().next().ok_or(Error::DEVICE_ERROR)?;
        Ok(())
    }

    /// Writes it.
    pub(super) fn answer(&self, out: &mut [u8]) -> Result<usize> {
        put(self.secret.expose(), out)
    }
}

/// Agrees on secrets in a full batch, where every third peer sends no point of the curve, and compares with the plain provider.
#[cfg(test)]
pub(super) fn bad_points_fail_alone<A: Agreeing>(
    batch: A,
    generate: CK_MECHANISM_TYPE,
    key_type: CK_KEY_TYPE,
    curve: &[u8],
) {
    use metaslot_awslc::AWSLC;
    use metaslot_spi::provider::Provider;
    use metaslot_spi::{Attributes, Material, NewObject, Value};

    let plain = Plain(AWSLC.algorithms());
    let (generate, derive) = (plain.row(generate).unwrap(), plain.row(CKM_ECDH1_DERIVE).unwrap());
    let params: Attributes = [(CKA_EC_PARAMS, Value::Bytes(curve.to_vec()))].into_iter().collect();
    let pair = |at: usize| {
        let pair = generate.generate_pair.unwrap().generate_pair(&Params::None, &params);
        let (public, NewObject { mut attributes, secrets }) = pair.unwrap();
        attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
        attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
        let key = Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)));
        let mut point = public.attributes.bytes(CKA_EC_POINT).unwrap().to_vec();
        if at.is_multiple_of(3) {
            point.fill(0);
        }
        (key, point)
    };
    let pairs: Vec<_> = (0..batch.size().lanes).map(pair).collect();
    if !A::serves(&pairs[0].0) {
        return;
    }
    let work = |(key, peer)| {
        Agreed::new::<A>(derive.derive.unwrap(), Held::Borrowed(key), Message::Borrowed(peer))
    };
    let works = || pairs.iter().map(|(key, peer)| work((key, peer)));
    for (at, (met, mut alone)) in
        super::batch::together(batch, works().collect()).into_iter().zip(works()).enumerate()
    {
        let right = alone.alone().map(|()| alone.secret);
        assert_eq!(right.is_err(), at.is_multiple_of(3), "lane {at}");
        let shown = |secret: Secret| secret.expose().to_vec();
        assert_eq!(met.map(|work| shown(work.secret)), right.map(shown), "lane {at}");
    }
}
