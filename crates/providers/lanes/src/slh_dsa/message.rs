// SPDX-License-Identifier: Apache-2.0
//! What is made of the message: the randomizer, and the digest that chooses the leaves (FIPS 205 §11).

use super::set::Set;
use crate::hash::many::Function;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::{Result, hmac};

/// Parts that are one message.
pub(super) type Parts<'a> = &'a [&'a [u8]];

const fn hash(set: &Set) -> Hash {
    if set.node == 16 { Hash::Sha256 } else { Hash::Sha512 }
}

/// PRF_msg: `out` is a node.
pub(super) fn randomizer(
    set: &Set,
    secret: &[u8],
    random: &[u8],
    message: Parts<'_>,
    out: &mut [u8],
) -> Result<()> {
    if set.shake {
        return Function::Shake256.digest(&[&[secret, random], message].concat(), out);
    }
    let mut mac = hmac::Key::new(hash(set), secret)?.start()?;
    mac.update(random)?;
    message.iter().try_for_each(|part| mac.update(part))?;
    let mut whole = [0; 64];
    let whole = &mut whole[..hash(set).length()];
    mac.finish(whole)?;
    out.copy_from_slice(&whole[..out.len()]);
    Ok(())
}

/// H_msg: `public` is the seed and the root.
pub(super) fn digest(
    set: &Set,
    randomizer: &[u8],
    public: &[u8],
    message: Parts<'_>,
    out: &mut [u8],
) -> Result<()> {
    if set.shake {
        return Function::Shake256.digest(&[&[randomizer, public], message].concat(), out);
    }
    let function = if set.node == 16 { Function::Sha256 } else { Function::Sha512 };
    let mut inner = [0; 64];
    let inner = &mut inner[..hash(set).length()];
    function.digest(&[&[randomizer, public], message].concat(), inner)?;
    // MGF1 (RFC 8017 §B.2.1).
    for (counter, out) in (0_u32..).zip(out.chunks_mut(inner.len())) {
        function.digest(&[randomizer, &public[..set.node], inner, &counter.to_be_bytes()], out)?;
    }
    Ok(())
}
