// SPDX-License-Identifier: Apache-2.0
//! The rows of Sun's table.

use crate::speed::openssl::Arguments;
use crate::speed::part::{Function, Job, Key, Parameter};
use metaslot_ck::*;

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SunRow {
    pub(crate) name: &'static str,
    pub(crate) job: Job,
    /// What `openssl speed` is asked for.
    pub(crate) openssl: Arguments,
    /// Operations, or millions of bytes, in a second: with 1 thread and with 16, on a Xeon X5560.
    pub(super) sun: [f64; 2],
}

/// Bytes that ciphers and digests do at a time.
const BULK: usize = 8192;
/// What is signed.
const SIGNED: usize = 32;

const fn rsa(function: Function) -> Job {
    Job {
        mechanism: CKM_SHA256_RSA_PKCS,
        function,
        key: Key::Rsa(1024),
        parameter: Parameter::None,
        bytes: SIGNED,
    }
}

const fn bulk(
    mechanism: CK_MECHANISM_TYPE,
    function: Function,
    key: Key,
    parameter: Parameter,
) -> Job {
    Job { mechanism, function, key, parameter, bytes: BULK }
}

const RSA_1024: &[&str] = &["rsa1024"];
const RC4: &[&str] =
    &["-bytes", "8192", "-evp", "rc4", "-provider", "legacy", "-provider", "default"];

/// Sun's table, in its order.
#[rustfmt::skip]
pub(crate) const ROWS: [SunRow; 6] = [
    SunRow { name: "rsa1024-public", job: rsa(Function::Verify), openssl: RSA_1024, sun: [24_900.0, 199_200.0] },
    SunRow { name: "rsa1024-private", job: rsa(Function::Sign), openssl: RSA_1024, sun: [1_760.0, 14_048.0] },
    SunRow {
        name: "rc4-8K",
        job: bulk(CKM_RC4, Function::Encrypt, Key::Secret(CKK_RC4, 16), Parameter::None),
        openssl: RC4,
        sun: [317.0, 2_265.0],
    },
    SunRow {
        name: "md5-8K",
        job: bulk(CKM_MD5, Function::Digest, Key::None, Parameter::None),
        openssl: &["-bytes", "8192", "-evp", "md5"],
        sun: [531.0, 6_085.0],
    },
    SunRow {
        name: "sha1-8K",
        job: bulk(CKM_SHA_1, Function::Digest, Key::None, Parameter::None),
        openssl: &["-bytes", "8192", "-evp", "sha1"],
        sun: [356.0, 2_545.0],
    },
    SunRow {
        name: "aes256-cbc-8K",
        job: bulk(CKM_AES_CBC, Function::Encrypt, Key::Secret(CKK_AES, 32), Parameter::Iv(16)),
        openssl: &["-bytes", "8192", "-evp", "aes-256-cbc"],
        sun: [136.9, 1_212.6],
    },
];

impl SunRow {
    /// Whether it is counted in bytes.
    pub(super) const fn bulk(&self) -> bool {
        self.job.bytes == BULK
    }

    /// A rate of operations as the table has it: millions of bytes, or operations.
    pub(super) const fn shown(&self, operations: f64) -> f64 {
        if self.bulk() { operations * BULK as f64 / 1e6 } else { operations }
    }
}

pub(super) const OPERATION: &str = "operation";

pub(super) const THREADS: &str = "threads";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suns_ratios_are_those_of_its_figures() {
        let ratios = ROWS.map(|row| format!("{:.1}", row.sun[1] / row.sun[0]));
        assert_eq!(ratios, ["8.0", "8.0", "7.1", "11.5", "7.1", "8.9"]);
    }
}
