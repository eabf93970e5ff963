// SPDX-License-Identifier: Apache-2.0
//! How a key is wrapped: the mechanism and its parameter.

use crate::failure::{Failure, Result};
use crate::key::{Family, Kind};
use crate::scheme::{mechanism_number, oaep, oaep_room};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session};

/// What both directions take.
#[derive(clap::Args, Debug)]
pub(super) struct WayArg {
    /// The mechanism: bound, kwp, kw or oaep, or its name [default: bound for AES keys of a Metaslot, kwp or kw of another token,
    /// oaep for RSA]
    #[arg(long, short, value_name = "NAME")]
    mechanism: Option<String>,
    /// The hash of oaep [default: sha256]
    #[arg(long, value_name = "NAME")]
    hash: Option<String>,
}

/// A mechanism that wraps, by a short name.
struct Row(&'static str, CK_MECHANISM_TYPE, Family);

const ROWS: &[Row] = &[
    Row("bound", CKM_AES_GCM, Family::Aes),
    Row("kwp", CKM_AES_KEY_WRAP_KWP, Family::Aes),
    Row("kw", CKM_AES_KEY_WRAP, Family::Aes),
    Row("oaep", CKM_RSA_PKCS_OAEP, Family::Rsa),
];

/// One way.
#[derive(Debug)]
pub(super) struct Way {
    mechanism: Mechanism<'static>,
    /// The most bytes that go under it, where that is known.
    room: Option<usize>,
}

/// The hash of OAEP where none is named.
const HASH: &str = "sha256";

impl Way {
    pub(super) fn choose(
        by: &Kind,
        args: &WayArg,
        session: &Session,
        slot: SlotId,
    ) -> Result<Self> {
        let number = match &args.mechanism {
            Some(name) => Self::named(name)?,
            None => match by.family {
                Family::Aes if session.module().is_metaslot() => CKM_AES_GCM,
                // What some modules have under this number, others do not.
                Family::Aes => {
                    match session.module().mechanisms(slot)?.contains(&CKM_AES_KEY_WRAP_KWP) {
                        true => CKM_AES_KEY_WRAP_KWP,
                        false => CKM_AES_KEY_WRAP,
                    }
                }
                Family::Rsa => CKM_RSA_PKCS_OAEP,
                _ => {
                    return Err(Failure::usage(format!("{by} keys wrap nothing"))
                        .hint("AES keys with --usage unwrap do, and RSA keys"));
                }
            },
        };
        let row = ROWS.iter().find(|row| row.1 == number);
        let Row(name, _, family) = row.ok_or_else(|| {
            Failure::usage("that mechanism does not wrap here")
                .hint(format!("one of {}", ways().collect::<Vec<_>>().join(", ")))
        })?;
        if *family != by.family {
            return Err(Failure::usage(format!("{name} does not go with {by} keys")));
        }
        if args.hash.is_some() && number != CKM_RSA_PKCS_OAEP {
            return Err(Failure::usage(format!("{name} takes no --hash")));
        }
        let params = match number {
            // PKCS#11 3.2 §6.13.3 has an IV of the token's; without one the form says what the key is.
            CKM_AES_GCM => Params::Gcm { iv: &[], aad: &[], tag_bits: 128 },
            CKM_RSA_PKCS_OAEP => oaep(args.hash.as_deref().unwrap_or(HASH))?,
            _ => Params::None,
        };
        let room = (number == CKM_RSA_PKCS_OAEP)
            .then(|| oaep_room(by, args.hash.as_deref().unwrap_or(HASH)));
        Ok(Self { mechanism: Mechanism::with(number, params), room: room.flatten() })
    }

    fn named(name: &str) -> Result<CK_MECHANISM_TYPE> {
        let row = ROWS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        row.map_or_else(|| mechanism_number(name), |row| Ok(row.1))
    }

    pub(super) const fn mechanism(&self) -> Mechanism<'static> {
        self.mechanism
    }

    /// Why a key of this kind, of which the module says that it is too long or too short, does not go under one of the other.
    pub(super) fn explained(&self, failure: Failure, key: &Kind, by: &Kind) -> Failure {
        let is_size = failure.code() == Some(Error::KEY_SIZE_RANGE);
        let Some(most) = self.room.filter(|_| is_size && failure.advice().is_none()) else {
            return failure;
        };
        let (name, length) = (self.name(), key.secret_length());
        let has = length.map_or_else(|| String::from("more"), |length| length.to_string());
        failure
            .saying(&format!("{by} carries up to {most} bytes by {name}, and {key} has {has}"))
            .hint("an AES key made with '--usage unwrap' wraps keys of any length")
    }

    /// Whether the wrapped form says what the key is.
    pub(super) const fn is_bound(&self) -> bool {
        self.mechanism.number == CKM_AES_GCM
    }

    /// Whether zeros may follow the key, so that its length must be said where its type has several (PKCS#11 3.2 §5.18.4).
    pub(super) const fn fills(&self) -> bool {
        self.mechanism.number == CKM_AES_KEY_WRAP
    }

    /// Of the mechanism, for messages and JSON.
    pub(super) fn name(&self) -> String {
        mechanism_name(self.mechanism.number)
            .map_or_else(|| format!("0x{:x}", self.mechanism.number), str::to_owned)
    }
}

/// The short names.
pub(in crate::command) fn ways() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.0)
}
