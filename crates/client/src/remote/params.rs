// SPDX-License-Identifier: Apache-2.0
//! Mechanisms with their parameters in [the version that is Metaslot's own](super::version::OWN): the mechanism's number, behind it
//! the number of a kind of parameter, and its fields. Writer and reader come of one table.
//!
//! The mechanisms of [`has_no_parameter`] have nothing behind their number.

use super::kinds::has_no_parameter;
use super::wire::{MALFORMED, Reader, Writer};
use crate::{KdfParam, Mechanism, Params};
use metaslot_ck::{CK_MECHANISM_TYPE, Error, ObjectHandle};

type Result<T> = std::result::Result<T, Error>;

/// More steps than a key derivation has.
const MOST_STEPS: usize = 64;

/// A parameter that was read.
#[derive(Clone, Debug)]
pub struct ReadParams<'m> {
    /// The parameter; what SP 800-108 has an array of stands beside it.
    pub params: Params<'m>,
    /// The input of each step of SP 800-108, in order.
    pub steps: Vec<KdfParam<'m>>,
}

impl<'m> From<Params<'m>> for ReadParams<'m> {
    fn from(params: Params<'m>) -> Self {
        Self { params, steps: Vec::new() }
    }
}

/// What a parameter consists of.
trait Field<'m>: Sized {
    fn write(&self, parts: &mut Writer);
    fn read(parts: &mut Reader<'m>) -> Result<Self>;
}

impl Field<'_> for u64 {
    fn write(&self, parts: &mut Writer) {
        parts.number(*self);
    }

    fn read(parts: &mut Reader<'_>) -> Result<Self> {
        parts.number()
    }
}

impl Field<'_> for u8 {
    fn write(&self, parts: &mut Writer) {
        parts.byte(*self);
    }

    fn read(parts: &mut Reader<'_>) -> Result<Self> {
        parts.byte()
    }
}

/// What may not be there.
impl<'m, T: Field<'m>> Field<'m> for Option<T> {
    fn write(&self, parts: &mut Writer) {
        self.is_some().write(parts);
        if let Some(one) = self {
            one.write(parts);
        }
    }

    fn read(parts: &mut Reader<'m>) -> Result<Self> {
        let is_there = bool::read(parts)?;
        is_there.then(|| T::read(parts)).transpose()
    }
}

impl Field<'_> for bool {
    fn write(&self, parts: &mut Writer) {
        parts.byte(u8::from(*self));
    }

    fn read(parts: &mut Reader<'_>) -> Result<Self> {
        match parts.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MALFORMED),
        }
    }
}

impl<'m> Field<'m> for &'m [u8] {
    fn write(&self, parts: &mut Writer) {
        parts.counted(self);
    }

    fn read(parts: &mut Reader<'m>) -> Result<Self> {
        parts.counted()?.ok_or(MALFORMED)
    }
}

/// A block of AES.
impl Field<'_> for [u8; 16] {
    fn write(&self, parts: &mut Writer) {
        parts.raw(self);
    }

    fn read(parts: &mut Reader<'_>) -> Result<Self> {
        parts.array()
    }
}

impl Field<'_> for ObjectHandle {
    fn write(&self, parts: &mut Writer) {
        parts.number(self.0);
    }

    fn read(parts: &mut Reader<'_>) -> Result<Self> {
        parts.number().map(ObjectHandle)
    }
}

/// A table of kinds: each with its number, its variant, and the fields in their order.
macro_rules! kinds {
    ($value:ident: $($kind:literal $variant:ident { $($field:ident),* },)+) => {
        impl<'m> Field<'m> for $value<'m> {
            fn write(&self, parts: &mut Writer) {
                match self {
                    $($value::$variant { $($field),* } => {
                        parts.byte($kind);
                        $($field.write(parts);)*
                    })+
                    other => other.write_other(parts),
                }
            }

            fn read(parts: &mut Reader<'m>) -> Result<Self> {
                match parts.byte()? {
                    $($kind => {
                        $(let $field = Field::read(parts)?;)*
                        Ok($value::$variant { $($field),* })
                    })+
                    kind => Self::read_other(kind, parts),
                }
            }
        }
    };
}

kinds! { Params:
    3 Ctr { bits, block },
    4 Gcm { iv, aad, tag_bits },
    5 Ccm { data_length, nonce, aad, mac_length },
    6 ChaCha20Poly1305 { nonce, aad },
    7 Oaep { hash, mgf, label },
    8 Pss { hash, mgf, salt_length },
    9 Ecdh1 { kdf, shared, public },
    10 EdDsa { prehash, context },
    11 SignContext { hedge, context },
    12 HashSignContext { hedge, context, hash },
    13 Hkdf { extract, expand, prf, salt_type, salt, salt_key, info },
    14 Pbkd2 { prf, salt, iterations, password },
    17 RsaAes { bits, hash, mgf, label },
    18 EcdhAes { bits, kdf, shared },
    19 X942 { kdf, info, public },
    20 StringData { data },
    21 CbcData { iv, data },
    22 ChaCha20 { counter, nonce },
    23 XEdDsa { hash },
    24 IkePrf { prf, data_as_key, new_key, initiator, responder },
    25 Ike1Prf { prf, previous, agreed, initiator, responder, number },
    26 Ike1Extended { prf, agreed, extra },
    27 Ike2PrfPlus { prf, seed_key, seed },
    28 TlsMaster { client, server },
    29 Tls12Master { prf, client, server },
    30 Tls12Extended { prf, hash },
    31 TlsKdf { prf, label, client, server, context },
    32 TlsMac { prf, length, side },
}

kinds! { KdfParam:
    1 Iteration { little_endian, bits },
    2 Counter { little_endian, bits },
    3 DkmLength { sum_of_segments, little_endian, bits },
}

/// Those without names for their fields.
const NONE: u8 = 0;
const BYTES: u8 = 1;
const NUMBER: u8 = 2;
/// Those that have steps, which follow.
const SP800_108: u8 = 15;
const SP800_108_FEEDBACK: u8 = 16;

impl<'m> Params<'m> {
    fn write_other(&self, parts: &mut Writer) {
        match self {
            Self::Bytes(bytes) => {
                parts.byte(BYTES);
                bytes.write(parts);
            }
            Self::Ulong(number) => {
                parts.byte(NUMBER);
                number.write(parts);
            }
            Self::Sp800108 { prf, data } => {
                parts.byte(SP800_108);
                prf.write(parts);
                write_steps(data, parts);
            }
            Self::Sp800108Feedback { prf, data, iv } => {
                parts.byte(SP800_108_FEEDBACK);
                prf.write(parts);
                iv.write(parts);
                write_steps(data, parts);
            }
            // The table has all others.
            _ => parts.byte(NONE),
        }
    }

    fn read_other(kind: u8, parts: &mut Reader<'m>) -> Result<Self> {
        Ok(match kind {
            NONE => Self::None,
            BYTES => Self::Bytes(Field::read(parts)?),
            NUMBER => Self::Ulong(Field::read(parts)?),
            SP800_108 => Self::Sp800108 { prf: Field::read(parts)?, data: &[] },
            SP800_108_FEEDBACK => {
                let (prf, iv) = (Field::read(parts)?, Field::read(parts)?);
                Self::Sp800108Feedback { prf, data: &[], iv }
            }
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        })
    }
}

const PREVIOUS: u8 = 0;
const STEP_BYTES: u8 = 4;

impl<'m> KdfParam<'m> {
    fn write_other(&self, parts: &mut Writer) {
        match self {
            Self::Bytes(bytes) => {
                parts.byte(STEP_BYTES);
                bytes.write(parts);
            }
            _ => parts.byte(PREVIOUS),
        }
    }

    fn read_other(kind: u8, parts: &mut Reader<'m>) -> Result<Self> {
        match kind {
            PREVIOUS => Ok(Self::Previous),
            STEP_BYTES => Ok(Self::Bytes(Field::read(parts)?)),
            _ => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }
}

fn write_steps(steps: &[KdfParam<'_>], parts: &mut Writer) {
    parts.count(steps.len());
    steps.iter().for_each(|step| step.write(parts));
}

impl Writer {
    /// A mechanism with its parameter.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` where the protocol has no place for its number, `CKR_MECHANISM_PARAM_INVALID` for a parameter of one
    /// that has none.
    pub fn mechanism(&mut self, mechanism: &Mechanism<'_>) -> Result<()> {
        let number = u32::try_from(mechanism.number).map_err(|_| Error::MECHANISM_INVALID)?;
        self.half(number);
        match (has_no_parameter(mechanism.number), mechanism.params) {
            (true, Params::None) => {}
            (true, _) => return Err(Error::MECHANISM_PARAM_INVALID),
            (false, params) => params.write(self),
        }
        Ok(())
    }
}

impl<'m> Reader<'m> {
    /// The parameter of a mechanism whose number has been read.
    ///
    /// # Errors
    /// [`MALFORMED`], and `CKR_MECHANISM_PARAM_INVALID` for a kind that is not known or more steps than there can be.
    pub fn params(&mut self, mechanism: CK_MECHANISM_TYPE) -> Result<ReadParams<'m>> {
        if has_no_parameter(mechanism) {
            return Ok(Params::None.into());
        }
        let params = Params::read(self)?;
        let has_steps = matches!(params, Params::Sp800108 { .. } | Params::Sp800108Feedback { .. });
        let count = if has_steps { self.count()? } else { 0 };
        if count > MOST_STEPS {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let steps = (0..count).map(|_| KdfParam::read(self)).collect::<Result<_>>()?;
        Ok(ReadParams { params, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::{Result, *};
    use metaslot_ck::mechanism::{MechanismRow, Shape};
    use metaslot_ck::*;

    const STEPS: &[KdfParam<'_>] = &[
        KdfParam::Previous,
        KdfParam::Iteration { little_endian: true, bits: 8 },
        KdfParam::Counter { little_endian: false, bits: 16 },
        KdfParam::DkmLength { sum_of_segments: true, little_endian: false, bits: 32 },
        KdfParam::Bytes(b"label"),
    ];

    /// One of each kind.
    fn all() -> Vec<Params<'static>> {
        let (hash, context) = (CKM_SHA256, &b"context"[..]);
        [
            Params::None,
            Params::Bytes(&[7; 16]),
            Params::Ulong(11),
            Params::Ctr { bits: 32, block: [9; 16] },
            Params::Gcm { iv: &[1; 12], aad: b"beside", tag_bits: 96 },
            Params::Ccm { data_length: 5, nonce: &[2; 13], aad: b"", mac_length: 8 },
            Params::ChaCha20Poly1305 { nonce: &[3; 12], aad: b"beside" },
            Params::Oaep { hash, mgf: CKG_MGF1_SHA256, label: b"label" },
            Params::Pss { hash, mgf: CKG_MGF1_SHA256, salt_length: 20 },
            Params::Ecdh1 { kdf: CKD_NULL, shared: b"shared", public: &[4; 65] },
            Params::EdDsa { prehash: true, context },
            Params::SignContext { hedge: CKH_HEDGE_PREFERRED, context },
            Params::HashSignContext { hedge: CKH_HEDGE_REQUIRED, context, hash },
            Params::Hkdf {
                extract: true,
                expand: false,
                prf: hash,
                salt_type: CKF_HKDF_SALT_KEY,
                salt: b"salt",
                salt_key: ObjectHandle(17),
                info: b"info",
            },
            Params::Pbkd2 { prf: 4, salt: b"salt", iterations: 1000, password: b"password" },
            Params::Sp800108 { prf: hash, data: STEPS },
            Params::Sp800108Feedback { prf: hash, data: STEPS, iv: &[5; 32] },
            Params::RsaAes { bits: 256, hash, mgf: CKG_MGF1_SHA256, label: b"label" },
            Params::EcdhAes { bits: 192, kdf: CKD_SHA256_KDF, shared: b"shared" },
            Params::X942 { kdf: CKD_NULL, info: b"info", public: &[6; 128] },
            Params::StringData { data: b"data" },
            Params::CbcData { iv: &[7; 16], data: &[8; 32] },
            Params::ChaCha20 { counter: 9, nonce: &[10; 12] },
            Params::XEdDsa { hash },
        ]
        .into_iter()
        .chain(of_protocols())
        .collect()
    }

    /// Of IKE and TLS.
    fn of_protocols() -> [Params<'static>; 12] {
        let (prf, hash) = (CKM_SHA256_HMAC, CKM_SHA256);
        let (initiator, responder) = (&b"initiator"[..], &b"responder"[..]);
        let (client, server) = (&[1; 32][..], &[2; 32][..]);
        let key = Some(ObjectHandle(3));
        let kdf = |context| Params::TlsKdf { prf: hash, label: b"label", client, server, context };
        [
            Params::IkePrf { prf, data_as_key: true, new_key: None, initiator, responder },
            Params::IkePrf { prf, data_as_key: false, new_key: key, initiator, responder },
            Params::Ike1Prf {
                prf,
                previous: key,
                agreed: ObjectHandle(4),
                initiator,
                responder,
                number: 2,
            },
            Params::Ike1Extended { prf, agreed: key, extra: b"extra" },
            Params::Ike2PrfPlus { prf, seed_key: None, seed: b"seed" },
            Params::TlsMaster { client, server },
            Params::Tls12Master { prf: hash, client, server },
            Params::Tls12Extended { prf: hash, hash: &[4; 32] },
            kdf(None),
            kdf(Some(b"")),
            kdf(Some(b"context")),
            Params::TlsMac { prf: hash, length: 12, side: 1 },
        ]
    }

    /// One whose number says nothing of its parameter.
    const ANY: CK_MECHANISM_TYPE = CKM_AES_GCM;

    fn written(params: Params<'_>) -> Vec<u8> {
        let mut parts = Writer::default();
        parts.mechanism(&Mechanism::with(ANY, params)).expect("it has a place");
        parts.finish().as_ref().to_vec()
    }

    fn read(bytes: &[u8]) -> Result<String> {
        let mut parts = Reader::new(bytes);
        assert_eq!(parts.half(), Ok(u32::try_from(ANY).expect("short")));
        let ReadParams { params, steps } = parts.params(ANY)?;
        parts.end()?;
        Ok(match params {
            Params::Sp800108 { prf, .. } => format!("{:?}", Params::Sp800108 { prf, data: &steps }),
            Params::Sp800108Feedback { prf, iv, .. } => {
                format!("{:?}", Params::Sp800108Feedback { prf, data: &steps, iv })
            }
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn each_kind_is_read_as_it_was_written_and_not_when_it_is_cut() {
        for params in all() {
            let bytes = written(params);
            assert_eq!(read(&bytes), Ok(format!("{params:?}")));
            for length in 4..bytes.len() {
                assert_eq!(read(&bytes[..length]), Err(MALFORMED), "{params:?} to {length}");
            }
        }
    }

    #[test]
    fn kinds_that_are_not_known_and_too_many_steps_are_refused() {
        for kind in [33, 0x7f, 0xff] {
            let mut bytes = written(Params::None);
            bytes[4] = kind;
            assert_eq!(read(&bytes), Err(Error::MECHANISM_PARAM_INVALID), "{kind}");
        }
        let many = vec![KdfParam::Previous; MOST_STEPS + 1];
        let bytes = |data| written(Params::Sp800108 { prf: CKM_SHA256_HMAC, data });
        assert!(read(&bytes(&many[..MOST_STEPS])).is_ok());
        assert_eq!(read(&bytes(&many)), Err(Error::MECHANISM_PARAM_INVALID));
        let mut flag = written(Params::EdDsa { prehash: true, context: b"" });
        flag[5] = 2;
        assert_eq!(read(&flag), Err(MALFORMED));
    }

    #[test]
    fn what_is_asked_for_often_is_as_short_as_it_was() {
        let length = |mechanism: Mechanism<'_>| {
            let mut parts = Writer::default();
            parts.mechanism(&mechanism).map(|()| parts.length())
        };
        assert_eq!(length(CKM_ECDSA.into()), Ok(4));
        assert_eq!(length(CKM_SHA256.into()), Ok(4));
        assert_eq!(length(CKM_EDDSA.into()), Ok(5));
        let pss = Params::Pss { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, salt_length: 32 };
        assert_eq!(length(Mechanism::with(CKM_RSA_PKCS_PSS, pss)), Ok(4 + 1 + 24));
        let wrong = Mechanism::with(CKM_ECDSA, Params::Bytes(b"x"));
        assert_eq!(length(wrong), Err(Error::MECHANISM_PARAM_INVALID));
    }

    #[test]
    fn what_has_no_parameter_here_has_none_in_the_vocabulary() {
        let bare = MechanismRow::all().iter().filter(|row| has_no_parameter(row.number));
        bare.for_each(|row| assert_eq!(row.shape, Shape::None, "{:#x}", row.number));
    }
}
