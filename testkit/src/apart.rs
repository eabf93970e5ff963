// SPDX-License-Identifier: Apache-2.0
//! Tests that use the module inside their own process. A module reads its configuration from the
//! environment, so each of them runs its own binary again, with the environment of its token.

use anyhow::{Context, Result, ensure};
use metaslot_client::{Access, Module, Session, User};

use crate::outcome::check;
use crate::token::{TestToken, USER_PIN, module_path};

/// Set where a test binary runs for the second time.
const INSIDE: &str = "METASLOT_TEST_INSIDE";

/// Is this process the second run of a test's binary?
#[must_use]
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs `work` in a process of its own, with a token that `prepare` may have changed first. `name`
/// is the path of the calling test function inside its binary.
///
/// # Panics
///
/// When the work fails.
pub fn apart(
    client: &str,
    what: &str,
    name: &str,
    prepare: impl FnOnce(&mut TestToken) -> Result<()>,
    work: impl FnOnce() -> Result<()>,
) {
    if is_inside() {
        if let Err(error) = work() {
            panic!("{error:#}");
        }
        return;
    }
    check(client, what, &["pkcs11-tool"], |token| {
        prepare(token)?;
        inside(token, name)
    });
}

/// Runs the test `name` of this binary again, in a process of its own with the environment of `token`.
///
/// # Errors
///
/// When it fails there: then with all it wrote.
pub fn inside(token: &TestToken, name: &str) -> Result<()> {
    let own = std::env::current_exe().context("find the test's own binary")?;
    let output = token
        .program(&own.to_string_lossy())
        .env(INSIDE, "1")
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .output()?;
    let told: String = output
        .all()
        .lines()
        .filter(|line| line.starts_with("    "))
        .fold(String::new(), |all, line| all + line + "\n");
    print!("{told}");
    ensure!(output.status == 0, "{}", output.told());
    output.with(&["1 passed"]).map(|_| ())
}

/// The module with the user logged in to its first token, inside a process started by [`apart`].
///
/// # Errors
///
/// When there is no module or it refuses.
pub fn user_session() -> Result<(Module, Session)> {
    let path = module_path().context("no module")?;
    let module = Module::load(path)?;
    module.initialize()?;
    let slot = *module.slots(true)?.first().context("no slot with a token")?;
    let session = module.open_session(slot, Access::ReadWrite)?;
    session.login(User::User, USER_PIN.as_bytes())?;
    Ok((module, session))
}
