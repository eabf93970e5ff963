// SPDX-License-Identifier: Apache-2.0
//! What a sequence may not lead to, and what kind of attack one is that did.

use crate::alphabet::Mechanism;
use crate::knowledge::How;
use crate::stage::Facts;
use crate::step::{Function, Name, Step};
use crate::truth::{Standing, Value};
use metaslot_ck::*;

/// What the attacker came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Finding {
    /// The value of a protected key.
    Held(How, Standing),
    /// A use of a key that its birth forbade.
    Used(Breach),
}

/// What was forbidden.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Breach {
    /// The key was born without this usage.
    Usage(CK_ATTRIBUTE_TYPE),
    /// The mechanism is none of `CKA_ALLOWED_MECHANISMS`.
    Mechanism,
    /// The key wants the PIN for each use, and it was not given.
    Login,
    /// The key was born unextractable, and was wrapped.
    Extractable,
    /// Only trusted keys may wrap the key, and one that the SO does not trust did.
    Trust,
    /// The key was born to be the only one, and was copied.
    Copied,
    /// The key was born private, and can be used without a login.
    Shown,
    /// A key is not what its parent's template imposes.
    Imposed,
    /// What was derived from a protected key may be read.
    ReadableDerivative,
    /// What was derived from an unextractable key may be extracted.
    ExtractableDerivative,
}

/// The usage that a function needs of its first key.
pub(crate) const fn usage(function: Function) -> Option<CK_ATTRIBUTE_TYPE> {
    Some(match function {
        Function::Encrypt => CKA_ENCRYPT,
        Function::Decrypt => CKA_DECRYPT,
        Function::Sign => CKA_SIGN,
        Function::SignRecover => CKA_SIGN_RECOVER,
        Function::Verify => CKA_VERIFY,
        Function::Wrap => CKA_WRAP,
        Function::Unwrap => CKA_UNWRAP,
        Function::Derive => CKA_DERIVE,
        _ => return None,
    })
}

/// What is wrong with a use of `key` that succeeded; `other` is what it wrapped.
///
/// A key that encrypts wraps readable keys, and one that decrypts unwraps anything: anyone who may do
/// the one can do the other by himself.
pub(crate) fn breach(step: &Step, key: &Value, other: Option<&Value>) -> Option<Breach> {
    let used = usage(step.function)?;
    if key.standing != Standing::Protected
        || !matches!(key.birth.class, CKO_SECRET_KEY | CKO_PRIVATE_KEY)
    {
        return None;
    }
    let birth = &key.birth;
    let free = match used {
        CKA_WRAP => other.is_some_and(|other| !other.is_secret()),
        CKA_UNWRAP => birth.has(CKA_DECRYPT),
        _ => false,
    };
    let number = step.mechanism.map_or(UNAVAILABLE, |mechanism| mechanism.number);
    if !free && !birth.has(used) {
        Some(Breach::Usage(used))
    } else if !birth.allowed.is_empty() && !birth.allowed.contains(&number) {
        Some(Breach::Mechanism)
    } else if birth.has(CKA_ALWAYS_AUTHENTICATE) {
        Some(Breach::Login)
    } else {
        None
    }
}

/// What is wrong with `key` having been wrapped by `by`.
pub(crate) fn wrapped(key: &Value, by: &Value) -> Option<Breach> {
    let (protected, birth) = (key.standing == Standing::Protected, &key.birth);
    if protected && !birth.has(CKA_EXTRACTABLE) {
        Some(Breach::Extractable)
    } else if protected && birth.has(CKA_WRAP_WITH_TRUSTED) && !by.trusted {
        Some(Breach::Trust)
    } else {
        None
    }
}

/// What is wrong with a key that was derived from a protected one.
pub(crate) fn derived(base: &Facts, result: &Facts) -> Option<Breach> {
    if result.readable() {
        Some(Breach::ReadableDerivative)
    } else if base.class == CKO_SECRET_KEY
        && result.has(CKA_EXTRACTABLE)
        && !base.has(CKA_EXTRACTABLE)
    {
        Some(Breach::ExtractableDerivative)
    } else if base.has(CKA_PRIVATE) && !result.has(CKA_PRIVATE) {
        Some(Breach::Shown)
    } else {
        None
    }
}

/// Kinds that people thought of: `testkit/tests/attacks` or `testdata/attacks` has them by name.
pub(crate) const NAMED: [&str; 21] = [
    "wrapped and decrypted",
    "usage is switched on",
    "unwrapped as readable",
    "wrapped under a key that is known",
    "two wraps under one IV",
    "wrap is opened by a signature",
    "wrap is opened by MACs of the wrapping key",
    "piece of a wrapped key is guessed",
    "wrapped key comes back with more usages",
    "key wraps itself and comes back with more usages",
    "derived key is a MAC by its base",
    "derived key is computed by another derivation",
    "derived key is computed with what its base extracts",
    "derived key is computed with a digest of its base",
    "short derived key is guessed",
    "derived as readable",
    "derived key is a MAC by a derived twin of its base",
    "derived key is a MAC by an unwrapped twin of its base",
    "derived MAC key is known by a digest of its pieces",
    "agreed key is the digest of another",
    "what a key imposes is lost",
];

/// The kind of attack that these steps are, the last of which led to the finding.
pub(crate) fn kind(finding: Finding, steps: &[Step]) -> &'static str {
    let has = |function| steps.iter().any(|step| !step.owner && step.function == function);
    let Some(last) = steps.last() else { return "nothing" };
    // What made the key that the last step uses or makes.
    let maker = |name: &Name| steps.iter().find(|step| step.number == name.step);
    let origin = last.keys.first().and_then(maker).map(|step| step.function);
    let wraps_itself = steps
        .iter()
        .any(|step| step.function == Function::Wrap && step.keys.first() == step.keys.get(1));
    match finding {
        Finding::Held(How::Read, standing) => match (last.function, standing) {
            (Function::Unwrap, Standing::Derived) => "derived key is unwrapped as readable",
            (Function::Unwrap, _) => "unwrapped as readable",
            (Function::Derive, _) => "derived key is computed by another derivation",
            (Function::Copy, _) => "copied as readable",
            _ => "made readable",
        },
        Finding::Held(How::Given, standing) => match (last.function, standing) {
            (Function::State, _) => "value in a digest's state",
            (Function::Digest | Function::Sign, Standing::Derived) => derivative(last, steps),
            (Function::Digest, _) => "MAC key is known by its digest",
            (Function::Sign | Function::SignRecover, _) => "wrap is opened by a signature",
            (Function::Encrypt, Standing::Derived) if !has(Function::Wrap) => {
                "derived key is encrypted by its base"
            }
            (Function::Encrypt, _) => "wrap is opened by encryption",
            (Function::Decrypt, _) if has(Function::Set) => "wrapping key becomes a decryption key",
            (Function::Decrypt, _) if has(Function::Unwrap) => {
                "wrapping key comes back as a decryption key"
            }
            (Function::Decrypt, _) => "wrapped and decrypted",
            _ => "value given out",
        },
        Finding::Held(How::KnownKey, _) => "wrapped under a key that is known",
        Finding::Held(How::OneStream, _) if has(Function::Encrypt) => {
            "wrapped and encrypted under one IV"
        }
        Finding::Held(How::OneStream, _) => "two wraps under one IV",
        Finding::Held(How::Encoded, _) if last.function != Function::Decrypt => {
            "wrap is opened by a signature"
        }
        Finding::Held(How::Encoded, _) => "wrapped and decrypted",
        Finding::Held(How::Computed, _) if has(Function::Digest) => {
            "derived key is computed with a digest of its base"
        }
        Finding::Held(How::Computed, _) => "derived key is computed with what its base extracts",
        Finding::Held(How::Guessed, Standing::Piece) => "piece of a wrapped key is guessed",
        Finding::Held(How::Guessed, _) => "short derived key is guessed",
        Finding::Held(How::MacOracle, _) => "wrap is opened by MACs of the wrapping key",
        Finding::Used(Breach::Usage(_)) if wraps_itself && has(Function::Unwrap) => {
            "key wraps itself and comes back with more usages"
        }
        Finding::Used(Breach::Usage(_)) if last.function == Function::Resume => {
            "digest from a forged state is a MAC"
        }
        Finding::Used(Breach::Usage(_)) => match origin {
            Some(Function::Unwrap) => "wrapped key comes back with more usages",
            Some(Function::Copy) => "copy has more usages",
            _ => "usage is switched on",
        },
        Finding::Used(Breach::Mechanism) => "restriction of mechanisms is lost",
        Finding::Used(Breach::Login) => match last.function {
            Function::Derive | Function::Unwrap => "used without the login for each use",
            _ => "login for each use is lost",
        },
        Finding::Used(Breach::Extractable) => "unextractable key is wrapped",
        Finding::Used(Breach::Trust) => "wrapped by a key that the SO does not trust",
        Finding::Used(Breach::Copied) => "key that cannot be copied is copied",
        Finding::Used(Breach::Shown) => "private key is used without a login",
        Finding::Used(Breach::Imposed) => "what a key imposes is lost",
        Finding::Used(Breach::ReadableDerivative) => "derived as readable",
        Finding::Used(Breach::ExtractableDerivative) => "derived as extractable",
    }
}

/// The kind of attack that gives a derived key by a digest or a MAC, the last step.
fn derivative(last: &Step, steps: &[Step]) -> &'static str {
    let maker = |step: &Step| {
        let name = step.keys.first()?;
        steps.iter().find(|step| step.number == name.step)
    };
    let derives = || steps.iter().filter(|step| step.function == Function::Derive);
    let number = |step: &Step| step.mechanism.map(|mechanism| mechanism.number);
    if last.function == Function::Digest {
        return match derives().any(|step| number(step) == Some(CKM_ECDH1_DERIVE)) {
            true => "agreed key is the digest of another",
            false => "derived MAC key is known by a digest of its pieces",
        };
    }
    let unwraps = |step| maker(step).is_some_and(|step| step.function == Function::Unwrap);
    if derives().any(unwraps) {
        return "derived key is a MAC by an unwrapped twin of its base";
    }
    match maker(last).filter(|step| step.function == Function::Derive) {
        Some(step) if step.mechanism.is_some_and(Mechanism::extracts) => {
            "derived key is computed with what its base extracts"
        }
        Some(_) => "derived key is a MAC by a derived twin of its base",
        None => "derived key is a MAC by its base",
    }
}
