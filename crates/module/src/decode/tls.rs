// SPDX-License-Identifier: Apache-2.0
//! Parameters of TLS and SSL (PKCS#11 3.2 §6.39, §6.40), and where the caller is told the keys of a connection and what comes beside
//! them.

use super::mechanism::Chosen;
use super::{Caller, Given, OutPointer};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Beside, Bytes, Params, RawValue, Template, Tls};
use std::mem::offset_of;

/// No key and no IV of a connection is longer, in bits.
const LONGEST: CK_ULONG = 1 << 13;
/// How long the version in a secret is.
const VERSION: usize = 2;

/// `CK_SSL3_KEY_MAT_PARAMS` and its successor as one.
struct KeyMaterial {
    prf: CK_MECHANISM_TYPE,
    /// Lengths in bytes: of MAC keys, of keys, of IVs.
    lengths: [usize; 3],
    random: CK_SSL3_RANDOM_DATA,
    out: *mut CK_SSL3_KEY_MAT_OUT,
}

/// Where the keys of a connection go, and beside them the IVs.
pub(crate) struct Connection<'a> {
    /// Handles: of two MAC keys and two keys.
    places: [OutPointer<'a, CK_OBJECT_HANDLE>; 4],
    /// Which of them are made.
    made: [bool; 4],
    ivs: [Given<'a, u8>; 2],
}

/// What a derivation of TLS tells beside a key.
pub(crate) enum Aside<'a> {
    /// The keys of a connection.
    Connection(Connection<'a>),
    /// The version in a secret.
    Version(Given<'a, u8>),
}

impl<'a> Caller<'a> {
    /// A parameter of one of these shapes.
    pub(super) fn tls(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Params> {
        let version = |at: *mut CK_VERSION| match (says_version(raw.mechanism), at.is_null()) {
            (_, true) => Ok(0),
            (true, false) => Ok(VERSION),
            (false, false) => Err(Error::MECHANISM_PARAM_INVALID),
        };
        let old = Tls::old_function(raw.mechanism);
        let (prf, label, seed, beside): (_, &[u8], _, _) = match shape {
            Shape::TlsMaster => {
                let p = self.parameter::<CK_SSL3_MASTER_KEY_DERIVE_PARAMS>(raw)?;
                let beside = version(p.pVersion)?;
                (old, b"master secret", self.random(&p.RandomInfo, true)?, beside)
            }
            Shape::Tls12Master => {
                let p = self.parameter::<CK_TLS12_MASTER_KEY_DERIVE_PARAMS>(raw)?;
                let (beside, random) = (version(p.pVersion)?, self.random(&p.RandomInfo, true)?);
                (p.prfHashMechanism, b"master secret", random, beside)
            }
            Shape::Tls12Extended => {
                let p = self.parameter::<CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS>(raw)?;
                let beside = version(p.pVersion)?;
                let hash = self.string(p.pSessionHash, p.ulSessionHashLen)?;
                (p.prfHashMechanism, b"extended master secret", hash, beside)
            }
            Shape::TlsKeys | Shape::Tls12Keys => {
                let p = self.key_material(shape, raw)?;
                let ivs = 2 * p.lengths[2];
                (p.prf, b"key expansion", self.random(&p.random, false)?, ivs)
            }
            Shape::TlsKdf => {
                let p = self.parameter::<CK_TLS_KDF_PARAMS>(raw)?;
                let random = self.random(&p.RandomInfo, true)?;
                let context = match p.pContextData.is_null() {
                    true => None,
                    false => Some(self.string(p.pContextData, p.ulContextDataLength)?),
                };
                let seed = Tls::exported(random, context.as_deref())?;
                let label = self.string(p.pLabel, p.ulLabelLength)?;
                return Tls::params(raw.mechanism, p.prfMechanism, [label, seed], (0, 0));
            }
            Shape::TlsMac => {
                let p = self.parameter::<CK_TLS_MAC_PARAMS>(raw)?;
                let said = (p.ulMacLength, p.ulServerOrClient);
                return Tls::finished(raw.mechanism, p.prfHashMechanism, said);
            }
            _ if raw.ulParameterLen != 0 => return Err(Error::MECHANISM_PARAM_INVALID),
            _ => return Tls::finished_of_old(raw.mechanism),
        };
        Tls::params(raw.mechanism, prf, [Bytes::from_slice(label), seed], (0, beside))
    }

    /// Part of what is hashed, copied where it is not too long by itself.
    fn string(self, at: *const u8, length: CK_ULONG) -> Result<Bytes> {
        match length > Tls::LONGEST_STRING as CK_ULONG {
            true => Err(Error::MECHANISM_PARAM_INVALID),
            false => self.owned(at, length),
        }
    }

    /// Both sides' random values, the client's first or last.
    fn random(self, said: &CK_SSL3_RANDOM_DATA, client_first: bool) -> Result<Bytes> {
        let mut parts = [
            self.string(said.pClientRandom, said.ulClientRandomLen)?,
            self.string(said.pServerRandom, said.ulServerRandomLen)?,
        ];
        if !client_first {
            parts.reverse();
        }
        let [mut all, second] = parts;
        all.extend_from_slice(&second);
        Ok(all)
    }

    fn key_material(self, shape: Shape, raw: &CK_MECHANISM) -> Result<KeyMaterial> {
        let (prf, sizes, export, random, out) = if shape == Shape::Tls12Keys {
            let p = self.parameter::<CK_TLS12_KEY_MAT_PARAMS>(raw)?;
            let sizes = [p.ulMacSizeInBits, p.ulKeySizeInBits, p.ulIVSizeInBits];
            (p.prfHashMechanism, sizes, p.bIsExport, p.RandomInfo, p.pReturnedKeyMaterial)
        } else {
            let p = self.parameter::<CK_SSL3_KEY_MAT_PARAMS>(raw)?;
            let sizes = [p.ulMacSizeInBits, p.ulKeySizeInBits, p.ulIVSizeInBits];
            let ssl = raw.mechanism == CKM_SSL3_KEY_AND_MAC_DERIVE;
            let prf = if ssl { CKM_SSL3_MASTER_KEY_DERIVE } else { CKM_TLS_PRF };
            (prf, sizes, p.bIsExport, p.RandomInfo, p.pReturnedKeyMaterial)
        };
        let mut lengths = [0; 3];
        for (length, bits) in lengths.iter_mut().zip(sizes) {
            if bits > LONGEST || !bits.is_multiple_of(8) {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
            *length = usize::try_from(bits / 8).unwrap_or(0);
        }
        if raw.mechanism == CKM_TLS12_KEY_SAFE_DERIVE {
            lengths[2] = 0;
        }
        // Keys of 40 bits for export are of another century.
        if export != CK_FALSE || out.is_null() || lengths[..2] == [0, 0] {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        Ok(KeyMaterial { prf, lengths, random, out })
    }

    /// What a derivation tells the caller beside its key; nothing, where it is none of TLS.
    ///
    /// # Errors
    /// As [`Self::mechanism`].
    pub(crate) fn aside(self, at: &Given<'a, CK_MECHANISM>) -> Result<Option<Aside<'a>>> {
        let raw = at.read()?;
        let shape = MechanismRow::find(raw.mechanism).map(|row| row.shape);
        let version = match shape {
            Some(shape @ (Shape::TlsKeys | Shape::Tls12Keys)) => {
                return self.connection(shape, &raw).map(Aside::Connection).map(Some);
            }
            Some(Shape::TlsMaster) => {
                self.parameter::<CK_SSL3_MASTER_KEY_DERIVE_PARAMS>(&raw)?.pVersion
            }
            Some(Shape::Tls12Master) => {
                self.parameter::<CK_TLS12_MASTER_KEY_DERIVE_PARAMS>(&raw)?.pVersion
            }
            Some(Shape::Tls12Extended) => {
                self.parameter::<CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS>(&raw)?.pVersion
            }
            _ => return Ok(None),
        };
        if version.is_null() || !says_version(raw.mechanism) {
            return Ok(None);
        }
        self.takes(version.cast(), VERSION)?;
        Ok(Some(Aside::Version(Given::inside(version.cast()))))
    }

    /// Whether so many bytes can be at `at`: looked at before a key is made, which would be lost.
    pub(super) fn takes(self, at: *const u8, length: usize) -> Result<()> {
        let there = self.bytes(Given::inside(at), length as CK_ULONG);
        there.map(drop).map_err(|_| Error::MECHANISM_PARAM_INVALID)
    }

    fn connection(self, shape: Shape, raw: &CK_MECHANISM) -> Result<Connection<'a>> {
        let material = self.key_material(shape, raw)?;
        let [macs, keys, ivs] = material.lengths;
        let at = Given::inside(material.out);
        let out = at.read()?;
        let place = |offset: usize| {
            self.place(Given::inside(material.out.wrapping_byte_add(offset).cast_const().cast()))
        };
        for at in [out.pIVClient, out.pIVServer] {
            self.takes(at, ivs)?;
        }
        Ok(Connection {
            places: [
                place(offset_of!(CK_SSL3_KEY_MAT_OUT, hClientMacSecret))?,
                place(offset_of!(CK_SSL3_KEY_MAT_OUT, hServerMacSecret))?,
                place(offset_of!(CK_SSL3_KEY_MAT_OUT, hClientKey))?,
                place(offset_of!(CK_SSL3_KEY_MAT_OUT, hServerKey))?,
            ],
            made: [macs > 0, macs > 0, keys > 0, keys > 0],
            ivs: [Given::inside(out.pIVClient), Given::inside(out.pIVServer)],
        })
    }

    /// The templates of a connection's keys in the order in which they are cut off: the first is handed back, the others go into the
    /// parameter. `templates` are twice the caller's.
    ///
    /// # Errors
    /// `CKR_TEMPLATE_INCONSISTENT` where one says another length than the parameter.
    pub(crate) fn share_out(
        self,
        at: &Given<'a, CK_MECHANISM>,
        (_, params): &mut Chosen,
        templates: [Template; 2],
    ) -> Result<Template> {
        let raw = at.read()?;
        let shape = MechanismRow::find(raw.mechanism).map_or(Shape::None, |row| row.shape);
        let [mac, key, _] = self.key_material(shape, &raw)?.lengths;
        let mut all = Vec::new();
        if mac > 0 {
            all.extend(templates.iter().map(|said| mac_template(said, mac)));
        }
        for mut template in templates.into_iter().filter(|_| key > 0) {
            let length = number(key as CK_ULONG);
            let said = template.iter().find(|(attribute, _)| *attribute == CKA_VALUE_LEN);
            match said.map(|(_, said)| said.bytes() == length.bytes()) {
                Some(false) => return Err(Error::TEMPLATE_INCONSISTENT),
                Some(true) => {}
                None => template.push((CKA_VALUE_LEN, length)),
            }
            all.push(template);
        }
        let first = all.remove(0);
        if let Params::Tls(tls) = params {
            tls.further = all;
        }
        Ok(first)
    }
}

/// Of a secret that comes over RSA, whose first two bytes are a version.
const fn says_version(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_SSL3_MASTER_KEY_DERIVE
            | CKM_TLS_MASTER_KEY_DERIVE
            | CKM_TLS12_MASTER_KEY_DERIVE
            | CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE
    )
}

fn number(value: CK_ULONG) -> RawValue {
    RawValue::Bytes(value.to_ne_bytes().to_vec())
}

/// A MAC key beside a key of this template: where and how that is kept it is kept, too.
fn mac_template(key: &Template, length: usize) -> Template {
    let kept = [
        CKA_TOKEN,
        CKA_PRIVATE,
        CKA_SENSITIVE,
        CKA_EXTRACTABLE,
        CKA_WRAP_WITH_TRUSTED,
        CKA_COPYABLE,
        CKA_MODIFIABLE,
    ];
    let same = key.iter().filter(|(attribute, _)| kept.contains(attribute));
    let same = same.filter_map(|(attribute, value)| {
        Some((*attribute, RawValue::Bytes(value.bytes().ok()?.to_vec())))
    });
    let own = [
        (CKA_CLASS, number(CKO_SECRET_KEY)),
        (CKA_KEY_TYPE, number(CKK_GENERIC_SECRET)),
        (CKA_VALUE_LEN, number(length as CK_ULONG)),
        (CKA_SIGN, RawValue::Bytes(vec![CK_TRUE])),
        (CKA_VERIFY, RawValue::Bytes(vec![CK_TRUE])),
    ];
    same.chain(own).collect()
}

impl Aside<'_> {
    /// Tells the caller.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` where what it shall be told is not there.
    pub(crate) fn tell(
        self,
        caller: Caller<'_>,
        handles: &[ObjectHandle],
        beside: Option<&Beside>,
    ) -> Result<()> {
        let told = beside.map(|beside| beside.told.get().ok_or(Error::DEVICE_ERROR)).transpose()?;
        let told: &[u8] = told.map_or(&[], |told| told);
        let write = |at: Given<'_, u8>, bytes: &[u8]| {
            if !bytes.is_empty() {
                caller.bytes_mut(at, bytes.len() as CK_ULONG)?.copy_from_slice(bytes);
            }
            Ok(())
        };
        let Connection { places, made, ivs } = match self {
            Self::Version(at) => return write(at, told),
            Self::Connection(connection) => connection,
        };
        let mut handles = handles.iter();
        for (place, made) in places.into_iter().zip(made) {
            let handle = if made { handles.next().copied() } else { Some(ObjectHandle(0)) };
            place.set_object(handle.ok_or(Error::DEVICE_ERROR)?);
        }
        let (client, server) = told.split_at(told.len() / 2);
        let [to_client, to_server] = ivs;
        write(to_client, client)?;
        write(to_server, server)
    }
}
