// SPDX-License-Identifier: Apache-2.0
//! Another module beside our providers, so that the same tests run over several of them.

use std::fmt::Write;
use std::path::Path;

/// With this variable SoftHSM computes digests for every caller, and its token is shown in slot 0.
pub(crate) const VARIABLE: &str = "METASLOT_TEST_OTHERS";

/// What `softhsm2-util` is told to make its token, beside the PINs.
pub(crate) const INITIALIZES: [&str; 4] = ["--init-token", "--free", "--label", "guest"];

/// The section of the configuration, for slot 0 under `policy`.
pub(crate) fn section(pin: &Path, policy: &str) -> String {
    format!(
        "\n[[foreign]]\nname = \"softhsm\"\nmodule = \"/usr/lib/softhsm/libsofthsm2.so\"\n\
         serves = [\"digest\"]\npolicy = \"{policy}\"\npin-source = \"file:{}\"\n",
        pin.display()
    )
}

/// By these it is the cheapest for more than a block of what it digests. A digest that it has begun takes no key
/// (docs/configuration.md), and the attacks begin theirs with a block.
pub(crate) fn costs() -> String {
    let mut text = String::from("# metaslot costs 1\n");
    for digest in ["MD5", "SHA_1", "SHA224", "SHA256", "SHA384", "SHA512"] {
        for (provider, fixed, per_byte) in
            [("lanes", 1, 15_625), ("awslc", 1, 15_625), ("softhsm", 1_000_000, 0)]
        {
            // A string takes everything.
            let _unfailing =
                writeln!(text, "{provider} CKM_{digest} digest - {fixed} {per_byte} {fixed}");
        }
    }
    text
}
