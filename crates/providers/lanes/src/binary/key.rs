// SPDX-License-Identifier: Apache-2.0
//! Keys: checked when they are made, so that the operations need not.

use super::bytes::{from_bytes, to_bytes};
use super::curve::{Curve, Kind, Work, work};
use super::params::{Affine, Params};
use super::point::Points;
use super::{BATCH, Error, MAX_WORDS};
use metaslot_memory::{Secret, wiping};

/// A number from 1 to n - 1.
#[derive(Debug)]
pub struct PrivateKey {
    curve: Curve,
    /// Words, the lowest first, in the machine's order of bytes.
    words: Secret,
}

impl PrivateKey {
    /// From big-endian bytes, leading zeros or not.
    ///
    /// # Errors
    /// [`Error::Key`] when it is not in range.
    pub fn from_bytes(curve: Curve, bytes: &[u8]) -> Result<Self, Error> {
        struct Parse<'a>(Curve, &'a [u8]);
        impl Work for Parse<'_> {
            type Answer = Result<PrivateKey, Error>;
            fn run<const W: usize>(
                self,
                _: &dyn Points<W>,
                curve: &'static Params<W>,
            ) -> Self::Answer {
                let words = curve.order.parse(self.1).ok_or(Error::Key)?;
                Ok(PrivateKey::from_words(self.0, &words))
            }
        }
        wiping(|| work(curve, Kind::Portable, Parse(curve, bytes)))
    }

    pub(super) fn from_words<const W: usize>(curve: Curve, words: &[u64; W]) -> Self {
        let mut secret = Secret::zeroed(8 * W);
        for (bytes, word) in secret.expose_mut().chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        Self { curve, words: secret }
    }

    pub(super) fn words<const W: usize>(&self) -> [u64; W] {
        let mut out = [0; W];
        for (out, bytes) in out.iter_mut().zip(self.words.expose().as_chunks().0) {
            *out = u64::from_ne_bytes(*bytes);
        }
        out
    }

    /// Its curve.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// As [`Curve::order_length`] big-endian bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Secret {
        let mut out = Secret::zeroed(self.curve.order_length());
        wiping(|| to_bytes(&self.words::<MAX_WORDS>(), out.expose_mut()));
        out
    }
}

/// A point of order n.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PublicKey {
    curve: Curve,
    point: Affine<MAX_WORDS>,
}

impl PublicKey {
    /// [`Self::parse`] of one.
    ///
    /// # Errors
    /// [`Error::Point`] when it is no encoding of a point of order n.
    pub fn from_bytes(curve: Curve, encoding: &[u8]) -> Result<Self, Error> {
        Self::parse(curve, &[encoding]).pop().unwrap_or(Err(Error::Point))
    }

    /// Points in the encoding of SEC 1, 2.3.4, compressed or not, each validated as in 3.2.2.1: coordinates in the field, on
    /// the curve, not infinity, of order n. Eight at a time cost little more than one.
    ///
    /// # Errors
    /// Each on its own: [`Error::Point`].
    #[must_use]
    pub fn parse(curve: Curve, encodings: &[&[u8]]) -> Vec<Result<Self, Error>> {
        Self::parse_with(Kind::best(), curve, encodings)
    }

    pub(super) fn parse_with(
        kind: Kind,
        curve: Curve,
        encodings: &[&[u8]],
    ) -> Vec<Result<Self, Error>> {
        let mut keys = Vec::with_capacity(encodings.len());
        work(curve, kind, Parse { name: curve, encodings, keys: &mut keys });
        keys
    }

    pub(super) fn from_point<const W: usize>(curve: Curve, point: &Affine<W>) -> Self {
        let mut wide = Affine::ZERO;
        wide.x[..W].copy_from_slice(&point.x);
        wide.y[..W].copy_from_slice(&point.y);
        Self { curve, point: wide }
    }

    pub(super) fn point<const W: usize>(&self) -> Affine<W> {
        let mut point = Affine::ZERO;
        point.x.copy_from_slice(&self.point.x[..W]);
        point.y.copy_from_slice(&self.point.y[..W]);
        point
    }

    /// Its curve.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// 04, x, y.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = self.curve.field_length();
        let mut out = vec![4; 1 + 2 * length];
        to_bytes(&self.point.x, &mut out[1..=length]);
        to_bytes(&self.point.y, &mut out[1 + length..]);
        out
    }
}

struct Parse<'a> {
    name: Curve,
    encodings: &'a [&'a [u8]],
    keys: &'a mut Vec<Result<PublicKey, Error>>,
}

impl Work for Parse<'_> {
    type Answer = ();

    fn run<const W: usize>(self, points: &dyn Points<W>, curve: &'static Params<W>) {
        for encodings in self.encodings.chunks(points.lanes()) {
            let mut found = [Affine::ZERO; BATCH];
            for (point, encoding) in found.iter_mut().zip(encodings) {
                // Zeros are refused as a point with x = 0.
                *point = decode(points, curve, encoding).unwrap_or(Affine::ZERO);
            }
            let found = &found[..encodings.len()];
            for (point, valid) in found.iter().zip(points.are_valid(curve, found)) {
                let key = PublicKey::from_point(self.name, point);
                self.keys.push(if valid { Ok(key) } else { Err(Error::Point) });
            }
        }
    }
}

/// Coordinates that are in the field.
fn decode<const W: usize>(
    points: &dyn Points<W>,
    curve: &Params<W>,
    encoding: &[u8],
) -> Option<Affine<W>> {
    let (tag, rest) = encoding.split_first()?;
    let length = points.degree().div_ceil(8);
    let coordinate = |bytes| {
        let value: [u64; W] = from_bytes(bytes);
        (value[W - 1] >> (points.degree() % 64) == 0).then_some(value)
    };
    match tag {
        2 | 3 if rest.len() == length => {
            points.decompress(curve, &coordinate(rest)?, u64::from(tag & 1))
        }
        4 if rest.len() == 2 * length => {
            let (x, y) = rest.split_at(length);
            Some(Affine { x: coordinate(x)?, y: coordinate(y)? })
        }
        _ => None,
    }
}

/// New key pairs.
///
/// # Errors
/// [`Error::Random`] when there are no random numbers.
pub fn generate(curve: Curve, count: usize) -> Result<Vec<(PrivateKey, PublicKey)>, Error> {
    let mut pairs = Vec::with_capacity(count);
    while pairs.len() < count {
        let mut keys = Vec::with_capacity(BATCH);
        let draw = Draw { curve, count: BATCH.min(count - pairs.len()), keys: &mut keys };
        wiping(|| work(curve, Kind::Portable, draw))?;
        let public = public_keys_with(Kind::best(), &keys.iter().collect::<Vec<_>>());
        pairs.extend(keys.into_iter().zip(public));
    }
    Ok(pairs)
}

/// Random private keys, at most [`BATCH`].
struct Draw<'a> {
    curve: Curve,
    count: usize,
    keys: &'a mut Vec<PrivateKey>,
}

impl Work for Draw<'_> {
    type Answer = Result<(), Error>;

    fn run<const W: usize>(self, _: &dyn Points<W>, curve: &'static Params<W>) -> Self::Answer {
        let mut words = [[0; W]; BATCH];
        let words = &mut words[..self.count];
        curve.order.random(words).map_err(|_| Error::Random)?;
        self.keys.extend(words.iter().map(|words| PrivateKey::from_words(self.curve, words)));
        Ok(())
    }
}

/// The public keys that belong to private keys, which may be of different curves; those of the same curve that stand side
/// by side are computed together.
#[must_use]
pub fn public_keys(keys: &[&PrivateKey]) -> Vec<PublicKey> {
    let mut public = Vec::with_capacity(keys.len());
    for keys in keys.chunk_by(|a, b| a.curve == b.curve) {
        for keys in keys.chunks(BATCH) {
            public.extend(public_keys_with(Kind::best(), keys));
        }
    }
    public
}

/// Up to [`BATCH`] keys of one curve.
pub(super) fn public_keys_with(kind: Kind, keys: &[&PrivateKey]) -> Vec<PublicKey> {
    struct Multiply<'a>(&'a [&'a PrivateKey]);
    impl Work for Multiply<'_> {
        type Answer = Vec<PublicKey>;
        fn run<const W: usize>(
            self,
            points: &dyn Points<W>,
            curve: &'static Params<W>,
        ) -> Self::Answer {
            let mut scalars = [[0; W]; BATCH];
            for (scalar, key) in scalars.iter_mut().zip(self.0) {
                *scalar = key.words();
            }
            let mut products = [Affine::ZERO; BATCH];
            let count = self.0.len();
            let base = &[curve.base; BATCH][..count];
            points.multiply(curve, base, &scalars[..count], &mut products);
            let keys = self.0.iter().zip(&products);
            keys.map(|(key, point)| PublicKey::from_point(key.curve, point)).collect()
        }
    }
    let Some(first) = keys.first() else { return Vec::new() };
    wiping(|| work(first.curve, kind, Multiply(keys)))
}
