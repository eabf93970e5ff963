// SPDX-License-Identifier: Apache-2.0
//! What a derivation says of the key that it makes, by its mechanism alone.

use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Attributes, Params, Value};

/// Whether a mechanism makes keys of passwords, which the caller knows.
pub(crate) fn of_password(mechanism: CK_MECHANISM_TYPE) -> bool {
    let shape = MechanismRow::find(mechanism).map(|row| row.shape);
    matches!(shape, Some(Shape::Pbkd2 | Shape::Pbe { .. }))
}

/// Takes over what protects the keys that a result is made of, where the standard says so whatever the policy is, and refuses a
/// template that says otherwise.
///
/// # Errors
/// `CKR_TEMPLATE_INCONSISTENT`
pub fn oblige<'a>(
    mechanism: CK_MECHANISM_TYPE,
    params: &Params,
    parents: impl Iterator<Item = &'a Attributes> + Clone,
    template: &mut Attributes,
) -> Result<()> {
    let connection = of_connection(mechanism);
    if !connection && !keeps_secrecy(mechanism, params) {
        return Ok(());
    }
    for (attribute, secret) in [(CKA_SENSITIVE, true), (CKA_EXTRACTABLE, false)] {
        // One that cannot be extracted is not shown either: the keys of a connection are as sensitive.
        let keeps = |by: &Attributes| {
            by.bool(attribute) == secret || (connection && !by.bool(CKA_EXTRACTABLE))
        };
        let value = match parents.clone().any(keeps) {
            true => Value::Bool(secret),
            false if connection => Value::Bool(!secret),
            false => continue,
        };
        if template.get(attribute).is_some_and(|said| said != &value) {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        template.set(attribute, value);
    }
    Ok(())
}

/// The keys of a connection: neither less nor more protected than the secret that they are made of (PKCS#11 3.2 §6.39, §6.40).
const fn of_connection(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_SSL3_KEY_AND_MAC_DERIVE
            | CKM_TLS_KEY_AND_MAC_DERIVE
            | CKM_TLS12_KEY_AND_MAC_DERIVE
            | CKM_TLS12_KEY_SAFE_DERIVE
    )
}

/// Of these the standard says that the result is as secret as all that it is made of (PKCS#11 3.2 §6.43): it holds the value of the
/// key, or a part of it.
fn keeps_secrecy(mechanism: CK_MECHANISM_TYPE, params: &Params) -> bool {
    match (mechanism, params) {
        // What is extended by nothing is cut.
        (CKM_IKE1_EXTENDED_DERIVE, Params::Ike { data, before, .. }) => {
            data.is_empty() && before.is_empty()
        }
        _ => matches!(
            mechanism,
            CKM_CONCATENATE_BASE_AND_KEY
                | CKM_CONCATENATE_BASE_AND_DATA
                | CKM_CONCATENATE_DATA_AND_BASE
                | CKM_XOR_BASE_AND_DATA
                | CKM_EXTRACT_KEY_FROM_KEY
        ),
    }
}

/// Derivations of one step, where a key type that has several lengths wants one to be said (PKCS#11 3.2 §6.17, §6.20, §6.43);
/// agreements, HKDF and IKE give it what comes out.
pub(crate) const fn of_one_step(params: &Params) -> bool {
    matches!(params, Params::None | Params::Data { .. } | Params::Key(_) | Params::Ulong(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(sensitive: Option<bool>, extractable: Option<bool>) -> Attributes {
        let said = [(CKA_SENSITIVE, sensitive), (CKA_EXTRACTABLE, extractable)];
        let said = said.into_iter().filter_map(|(name, value)| Some((name, Value::Bool(value?))));
        said.collect()
    }

    #[test]
    fn the_keys_of_a_connection_are_protected_as_their_secret_is() {
        let some = [None, Some(false), Some(true)];
        for mechanism in [
            CKM_SSL3_KEY_AND_MAC_DERIVE,
            CKM_TLS_KEY_AND_MAC_DERIVE,
            CKM_TLS12_KEY_AND_MAC_DERIVE,
            CKM_TLS12_KEY_SAFE_DERIVE,
        ] {
            for (sensitive, extractable) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                let base = protection(Some(sensitive), Some(extractable));
                let inherits =
                    [(CKA_SENSITIVE, sensitive || !extractable), (CKA_EXTRACTABLE, extractable)];
                for said in some.into_iter().flat_map(|one| some.map(|other| [one, other])) {
                    let mut template = protection(said[0], said[1]);
                    let made = oblige(mechanism, &Params::None, [&base].into_iter(), &mut template);
                    let pairs = said.into_iter().zip(inherits);
                    let differs = pairs
                        .into_iter()
                        .any(|(said, (_, own))| said.is_some_and(|said| said != own));
                    let expected = if differs { Err(Error::TEMPLATE_INCONSISTENT) } else { Ok(()) };
                    assert_eq!(made, expected, "{mechanism:#x} {base:?} {said:?}");
                    for (attribute, own) in inherits.into_iter().filter(|_| !differs) {
                        assert_eq!(template.get(attribute), Some(&Value::Bool(own)));
                    }
                }
            }
        }
    }

    #[test]
    fn what_holds_a_key_may_be_more_protected_than_it() {
        let base = protection(Some(false), Some(true));
        let mut template = protection(Some(true), Some(false));
        let made = oblige(CKM_XOR_BASE_AND_DATA, &Params::None, [&base].into_iter(), &mut template);
        assert_eq!(made, Ok(()));
        let mut template = protection(Some(false), None);
        let base = protection(Some(true), Some(true));
        let made = oblige(CKM_XOR_BASE_AND_DATA, &Params::None, [&base].into_iter(), &mut template);
        assert_eq!(made, Err(Error::TEMPLATE_INCONSISTENT));
    }
}
