// SPDX-License-Identifier: Apache-2.0
//! XMSS and XMSS^MT (RFC 8391, SP 800-208): their parameter sets, such as `xmss:sha2-10-192` and `xmssmt:sha2-20/2-192`.

use super::family::Family;
use metaslot_ck::*;

/// In the order of the numbers: the hash function and the bits of its output.
const HASHES: [(&str, &str); 7] = [
    ("sha2", "256"),
    ("sha2", "512"),
    ("shake", "256"),
    ("shake", "512"),
    ("sha2", "192"),
    ("shake256", "256"),
    ("shake256", "192"),
];
/// Levels of one tree; levels of all trees, and how many layers of trees.
const SINGLE: &[&str] = &["10", "16", "20"];
const MULTI: &[&str] = &["20/2", "20/4", "40/2", "40/4", "40/8", "60/3", "60/6", "60/12"];
/// Those whose trees have 20 levels verify and are not made.
const TOO_HIGH: [&str; 3] = ["20", "40/2", "60/3"];

/// For errors: what is taken.
pub(super) const FORM: &str = "XMSS keys are xmss:HASH-LEVELS-BITS with 10 or 16 levels, XMSS^MT keys xmssmt:HASH-LEVELS/LAYERS-BITS with \
     20/2, 20/4, 40/4, 40/8, 60/6 or 60/12; HASH-…-BITS is sha2-…-192, sha2-…-256, sha2-…-512, shake256-…-192, shake256-…-256, \
     shake-…-256 or shake-…-512";

/// The name of a family, and the shapes of its trees.
const fn shapes(family: Family) -> (&'static str, &'static [&'static str]) {
    match family {
        Family::Xmss => ("xmss", SINGLE),
        _ => ("xmssmt", MULTI),
    }
}

/// `CKA_PARAMETER_SET`, from what follows the colon.
pub(super) fn number(family: Family, text: &str) -> Option<usize> {
    let shapes = shapes(family).1;
    let (hash, rest) = text.split_once('-')?;
    let (shape, bits) = rest.split_once('-')?;
    let hash = HASHES.iter().position(|it| *it == (hash, bits))?;
    let shape = shapes.iter().position(|it| *it == shape)?;
    Some(hash * shapes.len() + shape + 1)
}

/// The type of keys of a set.
pub(super) fn name(family: Family, number: CK_ULONG) -> Option<String> {
    let (name, shapes) = shapes(family);
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    let (hash, bits) = HASHES.get(at / shapes.len())?;
    Some(format!("{name}:{hash}-{}-{bits}", shapes[at % shapes.len()]))
}

/// The types of which keys are made.
pub(super) fn types() -> impl Iterator<Item = String> {
    [Family::Xmss, Family::Xmssmt].into_iter().flat_map(|family| {
        let shapes = shapes(family).1;
        let made = move |at: &usize| !TOO_HIGH.contains(&shapes[at % shapes.len()]);
        let all = (0..HASHES.len() * shapes.len()).filter(made);
        all.filter_map(move |at| name(family, at as CK_ULONG + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_numbers_of_the_standard() {
        for (family, text, value) in [
            (Family::Xmss, "sha2-10-256", 1),
            (Family::Xmss, "shake-20-512", 12),
            (Family::Xmss, "sha2-10-192", 13),
            (Family::Xmss, "shake256-20-192", 21),
            (Family::Xmssmt, "sha2-20/2-256", 1),
            (Family::Xmssmt, "sha2-20/2-192", 0x21),
            (Family::Xmssmt, "shake256-60/12-192", 0x38),
        ] {
            assert_eq!(number(family, text), Some(value), "{text}");
            let name = name(family, value as CK_ULONG).unwrap();
            assert_eq!(name.split_once(':').unwrap().1, text);
        }
        for wrong in ["", "sha2", "sha2-10", "sha2-10-224", "sha2-20/2-192", "sha2-10-192-1"] {
            assert_eq!(number(Family::Xmss, wrong), None, "{wrong}");
        }
        assert_eq!(name(Family::Xmss, 0), None);
        assert_eq!(name(Family::Xmss, 22), None);
        assert_eq!(name(Family::Xmssmt, 57), None);
        assert_eq!(types().count(), 7 * (2 + 6));
    }
}
