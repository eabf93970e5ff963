// SPDX-License-Identifier: Apache-2.0
//! What is made of a shared secret (PKCS#11 3.2 §6.3.16), for every provider that agrees on one.

use crate::der::{self, Malformed, Reader, tag};
use crate::provider::{Digest, Pending, Postponed};
use crate::{Bytes, Params, hashes};
use metaslot_ck::*;
use metaslot_memory::Secret;

/// The parameters of an agreement, read.
#[derive(Clone, Copy, Debug)]
pub struct Agreement<'a> {
    kdf: Kdf,
    shared: &'a [u8],
    /// The other side's public point, raw or as a DER OCTET STRING.
    pub public: &'a [u8],
}

/// A derivation function, and the digest mechanism under it.
#[derive(Clone, Copy, Debug)]
enum Kdf {
    /// `CKD_NULL`: the secret itself.
    None,
    /// ANSI X9.63: secret, counter, shared data.
    X963(CK_MECHANISM_TYPE),
    /// SP 800-56A, concatenation: counter, secret, other information.
    Sp800(CK_MECHANISM_TYPE),
    /// ANSI X9.42 by ASN.1: secret, and other information with the counter in it, at this place.
    Asn1(usize),
}

/// No derived key is longer, in bytes.
pub(crate) const MAX_LENGTH: usize = 1 << 16;

impl<'a> Agreement<'a> {
    /// Reads those of an agreement on a curve (PKCS#11 3.2 §6.3.16).
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for another mechanism's, an unknown function, and shared data without a function.
    pub fn read(params: &'a Params) -> Result<Self> {
        match Self::in_group(params)? {
            Self { kdf: Kdf::Asn1(_), .. } => Err(Error::MECHANISM_PARAM_INVALID),
            read => Ok(read),
        }
    }

    /// The same modulo a prime, where `CKD_SHA1_KDF_ASN1` is another function (PKCS#11 3.2 §6.4).
    ///
    /// # Errors
    /// As [`Self::read`]; for other information that is not `OtherInfo` of ANSI X9.42 (RFC 2631 §2.1.2) with the counter 1.
    pub fn in_group(params: &'a Params) -> Result<Self> {
        let Params::Ecdh1 { kdf: number, shared, public } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let kdf = match *number {
            CKD_NULL if shared.is_empty() => Some(Kdf::None),
            CKD_SHA1_KDF_ASN1 => counter_place(shared).ok().map(Kdf::Asn1),
            number => hashes::of_x963(number)
                .map(Kdf::X963)
                .or_else(|| hashes::of_sp800(number).map(Kdf::Sp800)),
        };
        Ok(Self { kdf: kdf.ok_or(Error::MECHANISM_PARAM_INVALID)?, shared, public })
    }

    /// Whether the key is the secret itself, so that the curve says how long it is.
    #[must_use]
    pub const fn is_plain(self) -> bool {
        matches!(self.kdf, Kdf::None)
    }

    /// The one key that is wanted, of what `agree` says. `expand` gives so many bytes of the hashes of what comes first, a
    /// counter, and the rest, by the function of a digest mechanism.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE` for no length, several or too long ones; what `agree` and `expand` say.
    pub fn derive(
        self,
        lengths: &[usize],
        agree: impl FnOnce() -> Result<Secret>,
        expand: impl FnOnce(CK_MECHANISM_TYPE, usize, &[u8], &[&[u8]]) -> Result<Secret>,
    ) -> Result<Vec<Secret>> {
        let &[length @ 1..=MAX_LENGTH] = lengths else { return Err(Error::KEY_SIZE_RANGE) };
        let secret = agree()?;
        let secret = secret.expose();
        let derived = match self.kdf {
            Kdf::None => {
                // §6.3.17: truncation takes bytes off the leading end.
                let surplus = secret.len().checked_sub(length).ok_or(Error::KEY_SIZE_RANGE)?;
                Secret::copy_of(&secret[surplus..])
            }
            Kdf::X963(hash) => expand(hash, length, secret, &[self.shared])?,
            Kdf::Sp800(hash) => expand(hash, length, &[], &[secret, self.shared])?,
            Kdf::Asn1(place) => {
                let (before, rest) = self.shared.split_at(place);
                let head = Secret::try_zeroed(secret.len() + place);
                let mut head = head.ok_or(Error::DEVICE_MEMORY)?;
                let (first, second) = head.expose_mut().split_at_mut(secret.len());
                first.copy_from_slice(secret);
                second.copy_from_slice(before);
                expand(CKM_SHA_1, length, head.expose(), &[&rest[COUNTER.len()..]])?
            }
        };
        Ok(vec![derived])
    }

    /// The same of a secret of `secret_length` bytes that is agreed on later.
    ///
    /// # Errors
    /// `CKR_KEY_SIZE_RANGE` for a key that is longer than the secret and made of nothing else; why there is no secret.
    pub fn derive_later(
        self,
        length: usize,
        secret_length: usize,
        secret: Postponed,
        expand: Expand,
    ) -> Postponed {
        if self.is_plain() && length > secret_length {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let (kdf, shared) = (self.kdf, Bytes::from_slice(self.shared));
        let later = |secret| Later { secret, secret_length, kdf, shared, length, expand };
        Ok(secret?.map(|secret| Box::new(later(secret)) as Box<dyn Pending>))
    }
}

/// Whether this is the content of an OBJECT IDENTIFIER: numbers to the base of 128, none of which begins with a zero (X.690 §8.19).
fn is_identifier(content: &[u8]) -> bool {
    content.last().is_some_and(|last| *last < 0x80)
        && content.split_inclusive(|byte| *byte < 0x80).all(|number| number[0] != 0x80)
}

/// What the counter of the first block is.
const COUNTER: [u8; 4] = [0, 0, 0, 1];

/// Where the counter stands in the DER of `OtherInfo`: an algorithm with the counter, then up to four tagged strings.
fn counter_place(info: &[u8]) -> std::result::Result<usize, Malformed> {
    let mut fields = Reader::new(der::only(info, tag::SEQUENCE)?);
    let mut algorithm = fields.sequence()?;
    let place = info.len() - fields.rest().len() - COUNTER.len();
    if !is_identifier(algorithm.element(tag::OID)?) {
        return Err(Malformed);
    }
    if algorithm.element(tag::OCTET_STRING)? != COUNTER {
        return Err(Malformed);
    }
    algorithm.end()?;
    for number in 0..4 {
        if fields.peek() == Some(tag::constructed(number)) {
            der::only(fields.element(tag::constructed(number))?, tag::OCTET_STRING)?;
        }
    }
    fields.end()?;
    Ok(place)
}

/// As [`Agreement::derive`] has it.
pub type Expand = fn(CK_MECHANISM_TYPE, usize, &[u8], &[&[u8]]) -> Result<Secret>;

/// A key of a secret that is not there yet.
struct Later {
    secret: Box<dyn Pending>,
    secret_length: usize,
    kdf: Kdf,
    shared: Bytes,
    length: usize,
    expand: Expand,
}

impl Pending for Later {
    fn poll(&mut self) -> bool {
        self.secret.poll()
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<usize> {
        let Self { secret: work, secret_length, kdf, shared, length, expand } = *self;
        let mut secret = Secret::try_zeroed(secret_length).ok_or(Error::DEVICE_MEMORY)?;
        work.finish(secret.expose_mut())?;
        let agreement = Agreement { kdf, shared: &shared, public: &[] };
        let made = agreement.derive(&[length], || Ok(secret), expand)?;
        let made = made.first().ok_or(Error::GENERAL_ERROR)?.expose();
        out.get_mut(..length).ok_or(Error::BUFFER_TOO_SMALL)?.copy_from_slice(made);
        Ok(length)
    }
}

/// `length` bytes of the hashes of `head`, a counter of four bytes that begins at 1, and `tail`, one after the other: ANSI X9.63
/// (SEC 1 §3.6.1) and the one-step function of SP 800-56C §4.
///
/// # Errors
/// `CKR_DEVICE_MEMORY`, and what the hash function says.
pub fn expand(digest: &dyn Digest, length: usize, head: &[u8], tail: &[&[u8]]) -> Result<Secret> {
    let width = digest.length();
    let whole = Secret::try_zeroed(length.next_multiple_of(width));
    let mut whole = whole.ok_or(Error::DEVICE_MEMORY)?;
    for (counter, block) in (1_u32..).zip(whole.expose_mut().chunks_mut(width)) {
        let mut stream = digest.start()?;
        stream.update(head)?;
        stream.update(&counter.to_be_bytes())?;
        tail.iter().try_for_each(|part| stream.update(part))?;
        stream.finish(block)?;
    }
    Ok(whole.truncated(length))
}
