// SPDX-License-Identifier: Apache-2.0
//! What keys on the Edwards and Montgomery forms have in common.

use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::number_key::{Curve, NumberKey};
use metaslot_spi::number_key::NumberCurve;
use metaslot_spi::{Attributes, NewObject};

/// Fills `out` with random bytes fit for keys.
pub(super) fn random(out: &mut [u8]) -> Result<()> {
    metaslot_openssl_wrapper::random::fill(out).map_err(|_| Error::DEVICE_ERROR)
}

/// The public half of a private one.
pub(super) fn public_half(curve: Curve, private: &[u8]) -> Result<Vec<u8>> {
    let key = NumberKey::private(curve, private).map_err(device_error)?;
    let mut public = vec![0; curve.length()];
    key.write_public(&mut public).map_err(device_error)?;
    Ok(public)
}

/// Of two curves the one that attributes name.
pub(super) fn named(
    curves: &'static [NumberCurve; 2],
    attributes: &Attributes,
) -> Result<&'static NumberCurve> {
    let [one, two] = curves;
    match one.check_params(attributes) {
        Err(Error::CURVE_NOT_SUPPORTED) => two.check_params(attributes).map(|()| two),
        other => other.map(|()| one),
    }
}

/// A new pair on one of two curves.
pub(super) fn generate(
    curves: &'static [NumberCurve; 2],
    template: &Attributes,
) -> Result<(NewObject, NewObject)> {
    named(curves, template)?.generate(template)
}
