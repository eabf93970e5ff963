// SPDX-License-Identifier: Apache-2.0
//! NSS's softoken, which wants parameters: a database of its own, made here.

use super::*;
use metaslot_client::Initialize;
use std::ffi::CString;

pub(super) const SOFTOKEN: &str = "/usr/lib/x86_64-linux-gnu/libsoftokn3.so";
/// What NSS calls the token of a database.
pub(super) const TOKEN: &str = "NSS Certificate DB";

fn parameters(directory: &Path) -> String {
    let directory = directory.display();
    format!("configdir='sql:{directory}' certPrefix='' keyPrefix='' secmod='secmod.db' flags=")
}

/// A database with a PIN: softoken makes it, by calls that only its own tools make.
pub(super) fn prepared(token: &mut TestToken) -> Result<String> {
    let directory = token.path("nss");
    std::fs::create_dir_all(&directory)?;
    let parameters = parameters(&directory);
    let softoken = Module::load(SOFTOKEN)?;
    let reserved = CString::new(parameters.clone())?;
    softoken.initialize_with(Initialize::Flags(CKF_OS_LOCKING_OK, Some(&reserved)))?;
    let slot = *softoken.slots(true)?.last().context("no slot")?;
    let session = softoken.open_session(slot, Access::ReadWrite)?;
    session.login(User::SecurityOfficer, b"")?;
    session.init_pin(USER_PIN.as_bytes())?;
    session.close()?;
    softoken.finalize()?;
    Ok(format!("parameters = \"{parameters}\""))
}
