// SPDX-License-Identifier: Apache-2.0
//! Key pairs of a token, as SSH writes their public halves (RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4).

use metaslot_ck::*;
use metaslot_client::protocol::Writer;
use metaslot_engine::{Answer, Engine, Object};
use metaslot_spi::curves::Curve;
use metaslot_spi::der::without_zeros;
use metaslot_spi::key_info::number_point;
use metaslot_spi::{RawValue, Template, Value};

/// No token's keys are all of interest where it has more.
const MOST: usize = 1 << 10;

/// A pair whose private half signs.
pub(super) struct Pair {
    pub(super) blob: Vec<u8>,
    pub(super) comment: String,
    pub(super) kind: Kind,
    pub(super) private: ObjectHandle,
}

/// What signs, and how.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Rsa,
    Ecdsa(&'static EcdsaCurve),
    Ed25519,
}

/// A curve of RFC 5656 §10.1.
pub(super) struct EcdsaCurve {
    /// What its standard calls it.
    curve: &'static str,
    /// What SSH calls it.
    name: &'static str,
    /// What SSH calls keys on it, and signatures by them.
    pub(super) algorithm: &'static str,
    pub(super) mechanism: CK_MECHANISM_TYPE,
}

static ECDSA: [EcdsaCurve; 3] = [
    ecdsa("secp256r1", "nistp256", "ecdsa-sha2-nistp256", CKM_ECDSA_SHA256),
    ecdsa("secp384r1", "nistp384", "ecdsa-sha2-nistp384", CKM_ECDSA_SHA384),
    ecdsa("secp521r1", "nistp521", "ecdsa-sha2-nistp521", CKM_ECDSA_SHA512),
];

const fn ecdsa(
    curve: &'static str,
    name: &'static str,
    algorithm: &'static str,
    mechanism: CK_MECHANISM_TYPE,
) -> EcdsaCurve {
    EcdsaCurve { curve, name, algorithm, mechanism }
}

/// Those that can be used in this session.
pub(super) fn all(engine: &Engine, session: SessionHandle) -> Result<impl Iterator<Item = Pair>> {
    let public = found(engine, session, vec![number(CKA_CLASS, CKO_PUBLIC_KEY)])?;
    Ok(public.into_iter().filter_map(move |public| pair(engine, session, public)))
}

fn number(attribute: CK_ATTRIBUTE_TYPE, number: u64) -> (CK_ATTRIBUTE_TYPE, RawValue) {
    (attribute, RawValue::Bytes(number.to_ne_bytes().to_vec()))
}

fn found(engine: &Engine, session: SessionHandle, wanted: Template) -> Result<Vec<ObjectHandle>> {
    engine.find_init(session, wanted)?;
    let found = engine.find(session, MOST);
    engine.find_final(session)?;
    found
}

fn bytes(object: &Object, attribute: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
    match object.answer(attribute) {
        Ok(Answer::Value(Value::Bytes(bytes))) if !bytes.is_empty() => Some(bytes),
        _ => None,
    }
}

/// The pair whose public half this is; `None` where SSH has no name for it, or its private half is not there.
fn pair(engine: &Engine, session: SessionHandle, public: ObjectHandle) -> Option<Pair> {
    let public = engine.object(session, public).ok()?;
    let Ok(Answer::Value(Value::Ulong(key_type))) = public.answer(CKA_KEY_TYPE) else {
        return None;
    };
    let (kind, blob) = blob(*key_type, &public)?;
    let id = bytes(&public, CKA_ID)?;
    let wanted = vec![
        number(CKA_CLASS, CKO_PRIVATE_KEY),
        number(CKA_KEY_TYPE, *key_type),
        (CKA_ID, RawValue::Bytes(id.to_vec())),
        (CKA_SIGN, RawValue::Bytes(vec![CK_TRUE])),
    ];
    let info = bytes(&public, CKA_PUBLIC_KEY_INFO);
    let is_its_other_half = |private: &ObjectHandle| {
        // Of two pairs with one identifier each half has its own.
        engine.object(session, *private).is_ok_and(|private| {
            bytes(&private, CKA_PUBLIC_KEY_INFO).zip(info).is_none_or(|(one, other)| one == other)
        })
    };
    let private = found(engine, session, wanted).ok()?.into_iter().find(is_its_other_half)?;
    let label = bytes(&public, CKA_LABEL).unwrap_or_default();
    Some(Pair { blob, comment: String::from_utf8_lossy(label).into_owned(), kind, private })
}

fn blob(key_type: CK_KEY_TYPE, public: &Object) -> Option<(Kind, Vec<u8>)> {
    let mut blob = Writer::default();
    let kind = match key_type {
        CKK_RSA => {
            blob.counted(b"ssh-rsa");
            mpint(&mut blob, bytes(public, CKA_PUBLIC_EXPONENT)?);
            mpint(&mut blob, bytes(public, CKA_MODULUS)?);
            Kind::Rsa
        }
        CKK_EC => {
            let curve = Curve::named(bytes(public, CKA_EC_PARAMS)?).ok()?;
            let row = ECDSA.iter().find(|row| curve.name.to_bytes() == row.curve.as_bytes())?;
            blob.counted(row.algorithm.as_bytes());
            blob.counted(row.name.as_bytes());
            blob.counted(curve.point(bytes(public, CKA_EC_POINT)?));
            Kind::Ecdsa(row)
        }
        CKK_EC_EDWARDS => {
            blob.counted(b"ssh-ed25519");
            blob.counted(number_point::<32>(bytes(public, CKA_EC_POINT)?)?);
            Kind::Ed25519
        }
        _ => return None,
    };
    Some((kind, blob.finish().as_ref().to_vec()))
}

/// A number that is not negative (RFC 4251 §5).
pub(super) fn mpint(writer: &mut Writer, bytes: &[u8]) {
    let bytes = without_zeros(bytes);
    match bytes.first() {
        Some(0x80..) => writer.counted(&[&[0], bytes].concat()),
        _ => writer.counted(bytes),
    }
}
