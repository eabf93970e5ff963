// SPDX-License-Identifier: Apache-2.0
//! The PIN of the configuration, as it stands in a file.

use metaslot_ck::{Error, Result};
use metaslot_client::{Result as Called, Session, User};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use std::fs::{File, metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The longest PIN, in bytes.
const LONGEST: usize = 255;

/// What the file says, a PIN or a password, without a newline at its end. A pipe or a device could keep the caller for ever.
///
/// # Errors
/// `CKR_PIN_INCORRECT` where it says none; the detail names the file, and why.
pub fn read(file: &Path) -> Result<Secret> {
    let mut room = Secret::try_zeroed(LONGEST + 2).ok_or(Error::DEVICE_MEMORY)?;
    let filled = match metadata(file) {
        Ok(found) if !found.is_file() => return Err(unfit(file, "is not a file")),
        Ok(_) => filled(file, room.expose_mut()),
        Err(error) => Err(error),
    };
    let length = filled.map_err(|error| {
        let said = error.to_string();
        let words = said.split_once(" (os error").map_or(&*said, |(words, _)| words);
        unfit(file, &format!("cannot be read: {words}"))
    })?;
    let said = room.expose().get(..length).unwrap_or_default();
    let pin = said.strip_suffix(b"\n").unwrap_or(said);
    match pin.len() {
        0 => Err(unfit(file, "is empty")),
        1..=LONGEST => Secret::try_copy_of(pin).ok_or(Error::DEVICE_MEMORY),
        _ => Err(unfit(file, &format!("has more than {LONGEST} bytes"))),
    }
}

/// No PIN comes from there.
fn unfit(file: &Path, why: &str) -> Error {
    detail::set(format_args!("{} {why}", file.display()));
    Error::PIN_INCORRECT
}

/// Whether that is what the file says; without a PIN, whether it says one.
pub(crate) fn is(file: Option<&Path>, pin: &[u8]) -> Result<bool> {
    let configured = file.map(read).transpose()?;
    Ok(configured.is_some_and(|other| pin.is_empty() || is_same(other.expose(), pin)))
}

/// Whether two PINs are one, in a time that depends on their lengths alone.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

/// Shows the PIN to the operation that has begun in a session.
pub(crate) fn unlock(session: &Session, pin: Option<&Secret>) -> Called<()> {
    pin.map_or(Ok(()), |pin| session.login(User::ContextSpecific, pin.expose()))
}

fn filled(file: &Path, room: &mut [u8]) -> io::Result<usize> {
    let mut file = File::open(file)?;
    let mut length = 0;
    while length < room.len() {
        match file.read(&mut room[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
