// SPDX-License-Identifier: Apache-2.0
//! What is made of the message: the randomizer, and the digest that chooses the leaves (FIPS 205 §11).

use super::set::Set;
use metaslot_awslc_wrapper::digest::{Hash, Stream};
use metaslot_awslc_wrapper::shake::{Function, Shake};
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
        return shake(&[secret, random], message, out);
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
        return shake(&[randomizer, public], message, out);
    }
    let mut inner = [0; 64];
    let inner = &mut inner[..hash(set).length()];
    let mut stream = Stream::new(hash(set))?;
    for part in [randomizer, public].iter().chain(message) {
        stream.update(part)?;
    }
    stream.finish(inner)?;
    // MGF1 (RFC 8017 §B.2.1).
    for (counter, out) in (0_u32..).zip(out.chunks_mut(inner.len())) {
        let mut block = [0; 64];
        let block = &mut block[..hash(set).length()];
        let mut stream = Stream::new(hash(set))?;
        for part in [randomizer, &public[..set.node], inner, &counter.to_be_bytes()] {
            stream.update(part)?;
        }
        stream.finish(block)?;
        out.copy_from_slice(&block[..out.len()]);
    }
    Ok(())
}

fn shake(first: Parts<'_>, message: Parts<'_>, out: &mut [u8]) -> Result<()> {
    let mut shake = Shake::new(Function::Shake256)?;
    first.iter().chain(message).try_for_each(|part| shake.update(part))?;
    shake.finish(out)
}
