// SPDX-License-Identifier: Apache-2.0
//! Keys of one-time keys (RFC 8554): how their trees are written, such as `hss:sha256-192:h10w8/h10w8`.

use metaslot_ck::*;
use metaslot_client::{Template, Value};

/// What `hss` alone stands for: a million signatures of 2,856 bytes.
const USUAL: &str = "sha256-192:h10w8/h10w8";
/// In the order of the types (RFC 8554 §8, SP 800-208 §4).
const HASHES: [&str; 4] = ["sha256-256", "sha256-192", "shake256-256", "shake256-192"];
const HEIGHTS: [&str; 3] = ["h5", "h10", "h15"];
const WIDTHS: [&str; 4] = ["w1", "w2", "w4", "w8"];
const MOST_LEVELS: usize = 8;
/// `LMS_SHA256_M32_H5` and `LMOTS_SHA256_N32_W1`
const FIRST: (CK_ULONG, CK_ULONG) = (5, 1);

/// For errors: what is taken.
pub(super) const FORM: &str = "HSS keys are hss:HASH:TREES, where HASH is sha256-192, sha256-256, shake256-192 or shake256-256, and \
     TREES are one to eight as h10w8, from the top and with '/' between them: h5, h10 or h15 levels, w1, w2, w4 or w8 bits in a step";

/// The types of the trees and of their one-time keys, from the top.
pub(super) fn types(text: &str) -> Option<(Vec<CK_ULONG>, Vec<CK_ULONG>)> {
    let (hash, trees) = if text.is_empty() { USUAL } else { text }.split_once(':')?;
    fn place(names: &[&str], name: &str) -> Option<usize> {
        names.iter().position(|it| *it == name)
    }
    let hash = place(&HASHES, hash)? as CK_ULONG;
    let one = |tree: &str| {
        let (height, width) = tree.split_at_checked(tree.find('w')?)?;
        let (height, width) = (place(&HEIGHTS, height)?, place(&WIDTHS, width)?);
        Some((FIRST.0 + 5 * hash + height as CK_ULONG, FIRST.1 + 4 * hash + width as CK_ULONG))
    };
    let (trees, chains): (Vec<_>, Vec<_>) =
        trees.split('/').map(one).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    (trees.len() <= MOST_LEVELS).then_some((trees, chains))
}

/// What the private half says of them.
pub(super) fn template(name: &str) -> Template {
    let text = name.strip_prefix("hss").unwrap_or_default().trim_start_matches(':');
    let (trees, chains) = types(text).unwrap_or_default();
    Template::new()
        .with(CKA_HSS_LMS_TYPES, Value::Mechanisms(trees))
        .with(CKA_HSS_LMOTS_TYPES, Value::Mechanisms(chains))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_read() {
        assert_eq!(types("sha256-256:h5w1"), Some((vec![5], vec![1])));
        assert_eq!(types("shake256-192:h15w8/h5w4"), Some((vec![22, 20], vec![16, 15])));
        assert_eq!(types(""), types("sha256-192:h10w8/h10w8"));
        for wrong in ["h10w8", "sha256-192:", "sha256:h10w8", "sha256-192:h10", "sha256-192:h20w8"]
        {
            assert_eq!(types(wrong), None, "{wrong}");
        }
        assert_eq!(types(&format!("sha256-192:{}h5w8", "h5w8/".repeat(8))), None);
    }
}
