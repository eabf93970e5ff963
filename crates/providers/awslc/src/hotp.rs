// SPDX-License-Identifier: Apache-2.0
//! HOTP (RFC 4226; PKCS#11 3.2 §6.53): the key's next password, or that of a counter that the caller says.
//!
//! A key of the token counts in its row before a password leaves, and is not copied: no password comes out twice but for a caller
//! that says its counter. A key of a session has no place to count, so its caller does.

use crate::failure::device_error;
use crate::generate::{random, secret_key};
use crate::{mac, secret_key as lengths};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::{constant_time, hmac};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::parts::{self, Begun};
use metaslot_spi::provider::{Algorithm, Direction, Generate, Signature, SignatureStream};
use metaslot_spi::{Attributes, Key, NewObject, Otp, Params, Value, detail};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Of keys, in bytes.
const SIZES: (u64, u64) = (10, 64);
/// Of keys that are made here, in bytes (RFC 4226 §4).
const NEW: RangeInclusive<u64> = 16..=SIZES.1;
/// Of such a key where nothing says it: what RFC 4226 §4 recommends.
const USUAL: u64 = 20;
/// Digits: RFC 4226 §5.3 wants 6 at least, and the number that is cut to them has no more than 10.
const DIGITS: RangeInclusive<u64> = 6..=9;
/// Of a password where neither the key nor the caller says it, in digits.
const USUAL_DIGITS: u64 = 6;

pub(crate) const ROWS: [Algorithm; 2] = [
    Algorithm {
        mechanism: CKM_HOTP_KEY_GEN,
        key_sizes: (*NEW.start(), *NEW.end()),
        generate: Some(&Hotp),
        ..Algorithm::NONE
    },
    mac::row(CKM_HOTP, SIZES, &Hotp),
];

/// What a key has besides what its template says, and whether that is one of HOTP.
fn shown(said: &Attributes) -> Result<Attributes> {
    let number = |attribute, usual| said.ulong(attribute).unwrap_or(usual);
    let ignored = |attribute| number(attribute, CK_OTP_PARAM_IGNORED) == CK_OTP_PARAM_IGNORED;
    let counter = said.bytes(CKA_OTP_COUNTER).unwrap_or(&[0; 8]);
    let length = number(CKA_OTP_LENGTH, USUAL_DIGITS);
    let token = said.bool(CKA_TOKEN);
    let usual = if token { CK_OTP_PARAM_OPTIONAL } else { CK_OTP_PARAM_MANDATORY };
    let requirement = number(CKA_OTP_COUNTER_REQUIREMENT, usual);
    let known = number(CKA_OTP_FORMAT, CK_OTP_FORMAT_DECIMAL) == CK_OTP_FORMAT_DECIMAL
        && DIGITS.contains(&length)
        && counter.len() == 8
        && requirement <= CK_OTP_PARAM_MANDATORY
        && ignored(CKA_OTP_CHALLENGE_REQUIREMENT)
        && ignored(CKA_OTP_TIME_REQUIREMENT)
        && ignored(CKA_OTP_PIN_REQUIREMENT);
    if !known {
        detail::set(format_args!(
            "a password of HOTP is 6 to 9 decimal digits, made of a counter of 8 bytes and of no challenge, time or PIN"
        ));
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    let mut shown = Attributes::new();
    shown.set(CKA_OTP_LENGTH, Value::Ulong(length));
    shown.set(CKA_OTP_COUNTER, Value::Bytes(counter.to_vec()));
    shown.set(CKA_OTP_COUNTER_REQUIREMENT, Value::Ulong(requirement));
    if requirement != CK_OTP_PARAM_MANDATORY {
        // A row that is written without a login is not authenticated: its counter could be anything.
        let public = said.get(CKA_PRIVATE) == Some(&Value::Bool(false));
        if !token || public || said.bool(CKA_COPYABLE) {
            detail::set(format_args!(
                "a key that counts its passwords is a private one of the token and is not copied; with \
                 CKA_OTP_COUNTER_REQUIREMENT = CK_OTP_PARAM_MANDATORY the caller counts"
            ));
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        shown.set(CKA_PRIVATE, Value::Bool(true));
        shown.set(CKA_COPYABLE, Value::Bool(false));
    }
    Ok(shown)
}

/// As `Provider::complete`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    lengths::complete(object)?;
    for (attribute, value) in shown(&object.attributes)? {
        object.attributes.set(attribute, value);
    }
    Ok(())
}

fn asked(params: &Params) -> Otp {
    if let Params::Otp(asked) = params { *asked } else { Otp::default() }
}

/// How many digits a password has.
fn digits(key: &Key, asked: Otp) -> u64 {
    let own = || key.attributes().ulong(CKA_OTP_LENGTH);
    asked.length.or_else(own).unwrap_or(USUAL_DIGITS)
}

/// The counter that the caller says, where the key takes one.
fn said(key: &Key, asked: Otp) -> Option<u64> {
    let requirement = key.attributes().ulong(CKA_OTP_COUNTER_REQUIREMENT);
    asked.counter.filter(|_| requirement != Some(CK_OTP_PARAM_IGNORED))
}

/// The password of a counter (RFC 4226 §5.3), with zeros before it.
fn password(key: &Key, counter: u64) -> Result<[u8; 10]> {
    let mut mac = [0; 20];
    let by = hmac::Key::new(Hash::Sha1, key.secret(CKA_VALUE)?).map_err(device_error)?;
    by.mac(&[&counter.to_be_bytes()], &mut mac).map_err(device_error)?;
    let offset = usize::from(mac[19] & 15);
    let four = mac[offset..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
    let mut number = four & 0x7fff_ffff;
    let mut out = [b'0'; 10];
    for digit in out.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    Ok(out)
}

/// The last digits of a password.
fn last(password: &[u8; 10], digits: u64) -> &[u8] {
    let zeros = 10_usize.saturating_sub(usize::try_from(digits).unwrap_or(0));
    &password[zeros..]
}

/// Length of a `CK_OTP_SIGNATURE_INFO` with so many parameters, in bytes.
const fn info(count: usize) -> usize {
    size_of::<CK_OTP_SIGNATURE_INFO>() + count * size_of::<CK_OTP_PARAM>()
}

/// Writes a `CK_OTP_SIGNATURE_INFO`: it points into the memory of the caller's that it is in (PKCS#11 3.2 §6.53).
fn tell(params: &[(CK_ULONG, &[u8])], out: &mut [u8]) -> Result<()> {
    let address = out.as_ptr().expose_provenance();
    let mut place = info(params.len());
    let mut words = vec![(address + info(0)) as u64, params.len() as u64];
    for (kind, value) in params {
        let room = out.get_mut(place..place + value.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        room.copy_from_slice(value);
        words.extend([*kind, (address + place) as u64, value.len() as u64]);
        place += value.len();
    }
    let words: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
    out[..words.len()].copy_from_slice(&words);
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Hotp;

impl Generate for Hotp {
    fn generate(&self, _: &Params, template: &Attributes) -> Result<NewObject> {
        let shown = shown(template)?;
        let length = Some(template.ulong(CKA_VALUE_LEN).unwrap_or(USUAL));
        let length = length.filter(|length| NEW.contains(length)).ok_or(Error::KEY_SIZE_RANGE)?;
        let mut value = Secret::zeroed(usize::try_from(length).map_err(|_| Error::KEY_SIZE_RANGE)?);
        random(value.expose_mut())?;
        let mut made = secret_key(value);
        shown.into_iter().for_each(|(attribute, value)| made.attributes.set(attribute, value));
        Ok(made)
    }
}

/// What is asked; of no data.
struct Asked(Otp);

impl Begun for Asked {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if data.is_empty() { Ok(()) } else { Err(Error::DATA_LEN_RANGE) }
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        let counter = match said(key, self.0) {
            Some(counter) => counter,
            None => !(key.one_time()?.spend()? + 1),
        };
        let password = password(key, counter)?;
        let value = last(&password, digits(key, self.0));
        tell(&[(CK_OTP_VALUE, value), (CK_OTP_COUNTER, &counter.to_be_bytes())], out)?;
        Ok(out.len())
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        let password = password(key, self.0.counter.ok_or(Error::MECHANISM_PARAM_INVALID)?)?;
        let value = last(&password, digits(key, self.0));
        if signature.len() != value.len() {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        if constant_time::equal(value, signature) { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
    }
}

impl Signature for Hotp {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        key.secret(CKA_VALUE)?;
        key.check_class(CKO_OTP_KEY)?;
        let asked = asked(params);
        let mut flags = CKF_EXCLUDE_TIME | CKF_EXCLUDE_CHALLENGE | CKF_EXCLUDE_PIN;
        if key.attributes().bool(CKA_OTP_USER_FRIENDLY_MODE) {
            flags |= CKF_USER_FRIENDLY_OTP;
        }
        let known = asked.flags.unwrap_or(0) & !flags == 0
            && asked.format.is_none_or(|format| format == CK_OTP_FORMAT_DECIMAL)
            && DIGITS.contains(&digits(key, asked));
        let counted = match direction {
            Direction::Forward => said(key, asked).is_some() || key.one_time().is_ok(),
            Direction::Backward => asked.counter.is_some(),
        };
        if !counted {
            detail::set(format_args!(
                "nothing says the counter: a parameter CK_OTP_COUNTER does, and to sign a key that counts"
            ));
        }
        if known && counted { Ok(()) } else { Err(Error::MECHANISM_PARAM_INVALID) }
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        info(2) + usize::try_from(digits(key, asked(params))).unwrap_or(0) + size_of::<u64>()
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Asked(asked(params)).sign_all(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Asked(asked(params)).verify_all(key, data, signature)
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        Ok(parts::stream(key, Asked(asked(params))))
    }
}
