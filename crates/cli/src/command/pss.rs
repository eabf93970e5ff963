// SPDX-License-Identifier: Apache-2.0
//! RSA-PSS with a salt or a mask that are not those of its hash.

use crate::failure::{Failure, Result};
use crate::key::{Family, Kind};
use crate::scheme::{self, Scheme};
use metaslot_ck::CK_ULONG;
use metaslot_client::Params;

/// Both are of the parameter, not of the signature: who verifies says them, too.
#[derive(clap::Args, Debug)]
pub(crate) struct PssArg {
    /// For RSA-PSS: the bytes of the salt [default: as many as the hash has]
    #[arg(long, value_name = "BYTES")]
    salt_length: Option<CK_ULONG>,
    /// For RSA-PSS: the hash of the mask, MGF1 [default: the hash]
    #[arg(long, value_name = "NAME")]
    mgf: Option<String>,
}

impl PssArg {
    /// Whether something is said.
    pub(crate) const fn is_said(&self) -> bool {
        self.salt_length.is_some() || self.mgf.is_some()
    }

    /// A scheme with what is said.
    pub(crate) fn applied(&self, mut scheme: Scheme, kind: &Kind) -> Result<Scheme> {
        if !self.is_said() {
            return Ok(scheme);
        }
        let Params::Pss { mgf, salt_length, .. } = &mut scheme.mechanism.params else {
            let what = format!("{} has no --salt-length and no --mgf", scheme.name());
            return Err(Failure::usage(what).hint("RSA-PSS has: -m rsa-pss --hash sha256"));
        };
        if let Some(name) = &self.mgf {
            *mgf = scheme::mgf(name)?;
        }
        // RFC 8017, 9.1.1: beside the salt stand the hash and two bytes.
        let room =
            (kind.size as CK_ULONG).saturating_sub(1).div_ceil(8).saturating_sub(*salt_length + 2);
        *salt_length = self.salt_length.unwrap_or(*salt_length);
        if kind.family == Family::Rsa && kind.size != 0 && *salt_length > room {
            let what = format!("with this hash {kind} has room for {room} bytes of salt");
            return Err(Failure::usage(what));
        }
        Ok(scheme)
    }
}
