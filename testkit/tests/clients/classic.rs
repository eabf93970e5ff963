// SPDX-License-Identifier: Apache-2.0
//! OpenSC's spy for programs that ask for interfaces (PKCS#11 3.0), which version 0.23 does not survive.

use std::path::{Path, PathBuf};

use anyhow::Result;
use metaslot_testkit::TestToken;

/// Programs are given a module from now on that has the classic list of functions only, with the spy behind it: its path.
pub(crate) fn spy(token: &mut TestToken) -> Result<PathBuf> {
    token.spy()?;
    let (module, spy) = (token.path("classic.so"), token.module().display().to_string());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clients/classic.c");
    let gcc = token.program("gcc").line("-shared -fPIC -Wall -Wextra -Werror -o").arg(&module);
    gcc.arg(format!("-DNEXT=\"{spy}\"")).arg(source).arg("-ldl").run()?;
    Ok(module)
}
