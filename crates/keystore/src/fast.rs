// SPDX-License-Identifier: Apache-2.0
//! Fast login: a second wrap of the master key, for servers that fork a process per connection.
//!
//! Its key is made from the PIN and a random secret that the kernel keeps for this user, not longer
//! than the wrap shall last; without either it opens nothing. A new PIN voids it. Where the kernel keeps none (in containers),
//! the secret is a file in memory.

use crate::crypto::{self, KEY, Serial};
use crate::error::Result;
use crate::gate::Database;
use crate::open::Config;
use crate::schema::{Token, now, signed, unsigned};
use crate::volatile::{self, Volatile};
use crate::wrap::role_byte;
use metaslot_awslc_wrapper::hkdf;
use metaslot_memory::{Secret, keyring};
use metaslot_spi::store::Role;
use rusqlite::OptionalExtension;
use rustix::fs;
use std::ffi::CString;
use std::path::PathBuf;

/// Where releases before this one had the secret: a file in the runtime directory.
const FORMER: &str = "login-secret";
/// With the secret, guessing a PIN costs a microsecond: anyone who is this user and has the files tries
/// every shorter one within seconds.
const SHORTEST_PIN: usize = 8;
/// Length of the secret, in bytes.
const SECRET: usize = 32;

/// Where fast login is possible: a user, a token, a role.
pub(crate) struct FastLogin {
    /// Of the secret in the user's keyring.
    name: CString,
    /// Of its file.
    file: String,
    /// Where a directory of this user's may be.
    bases: Vec<PathBuf>,
    owner: u32,
    role: Role,
    serial: Serial,
    /// Names the long wrap: with another PIN it is another, and what was made before opens no more.
    long: [u8; 16],
    lifetime: u64,
}

/// A stored wrap.
pub(crate) struct Wrap {
    owner: u32,
    expires: u64,
    sealed: Vec<u8>,
}

impl FastLogin {
    /// `None` where it is not configured, and for a PIN that is too short for it.
    pub(crate) fn new(config: &Config, token: &Token, role: Role, pin: &[u8]) -> Option<Self> {
        let lifetime = config.fast_login.filter(|_| pin.len() >= SHORTEST_PIN)?.as_secs();
        let long = match role {
            Role::So => &token.so.wrap,
            Role::User => &token.user.wrap,
        };
        let serial = token.serial;
        let serial_number = u64::from_be_bytes(serial);
        let name = format!("metaslot:{serial_number:016x}:{}", role_byte(role));
        let file = format!("{serial_number:016x}-{}{}", role_byte(role), volatile::SECRET);
        let bases = config.volatile.clone();
        let owner = rustix::process::geteuid().as_raw();
        let name = CString::new(name).ok()?;
        let long = crate::state::name(long.as_deref());
        Some(Self { name, file, bases, owner, role, serial, long, lifetime })
    }

    /// The stored wrap of this user and role, unless it has expired.
    pub(crate) fn read(&self, database: &Database) -> Result<Option<Wrap>> {
        let row = database
            .connection
            .prepare_cached("SELECT expires, wrap FROM fast_login WHERE owner = ?1 AND role = ?2")?
            .query_row((self.owner, role_byte(self.role)), |row| {
                Ok(Wrap { owner: self.owner, expires: unsigned(row, 0)?, sealed: row.get(1)? })
            })
            .optional()?;
        let now = now();
        // One that would last longer than any of ours was not written by this configuration.
        Ok(row.filter(|row| (now..=now + self.lifetime).contains(&row.expires)))
    }

    /// The master key, when PIN and secret are right.
    pub(crate) fn open(&self, wrap: &Wrap, pin: &[u8]) -> Result<Option<Secret>> {
        let Some(secret) = self.secret() else { return Ok(None) };
        let key = self.key(&secret, pin)?;
        crypto::open_secret(&key, &self.aad(wrap.expires), &wrap.sealed)
    }

    fn secret(&self) -> Option<Secret> {
        let kept = keyring::find(&self.name, SECRET).ok().flatten();
        kept.or_else(|| Volatile::find(&self.bases)?.secret(&self.file, SECRET, now()))
    }

    fn keep(&self, secret: &Secret, expires: u64) -> bool {
        let seconds = u32::try_from(self.lifetime).unwrap_or(u32::MAX);
        if keyring::keep(&self.name, secret, seconds).is_ok() {
            // What was kept elsewhere while the kernel kept nothing.
            if let Some(place) = Volatile::find(&self.bases) {
                place.forget(&self.file);
            }
            return true;
        }
        let place = Volatile::make(&self.bases);
        place.is_ok_and(|place| place.keep(&self.file, secret, expires).is_ok())
    }

    /// A wrap under a fresh secret; `None` where there is no place for one.
    pub(crate) fn seal(&self, pin: &[u8], master: &Secret) -> Result<Option<Wrap>> {
        let (secret, expires) = (crypto::random_key()?, now() + self.lifetime);
        if !self.keep(&secret, expires) {
            return Ok(None);
        }
        let key = self.key(&secret, pin)?;
        let sealed = crypto::seal(&key, &self.aad(expires), master.expose())?;
        Ok(Some(Wrap { owner: self.owner, expires, sealed }))
    }

    fn key(&self, secret: &Secret, pin: &[u8]) -> Result<Secret> {
        let mut material = Secret::zeroed(secret.len() + pin.len());
        let (first, rest) = material.expose_mut().split_at_mut(secret.len());
        first.copy_from_slice(secret.expose());
        rest.copy_from_slice(pin);
        let mut info = b"metaslot 2 fast login".to_vec();
        info.push(role_byte(self.role));
        let mut key = Secret::zeroed(KEY);
        hkdf::sha256(material.expose(), &self.serial, &info, key.expose_mut())?;
        Ok(key)
    }

    fn aad(&self, expires: u64) -> Vec<u8> {
        let mut aad = b"metaslot 2 fast login".to_vec();
        aad.extend_from_slice(&self.serial);
        aad.push(role_byte(self.role));
        aad.extend_from_slice(&self.long);
        aad.extend_from_slice(&self.owner.to_le_bytes());
        aad.extend_from_slice(&expires.to_le_bytes());
        aad
    }
}

impl Wrap {
    pub(crate) fn write(&self, database: &Database, role: Role) -> Result<()> {
        database
            .connection
            .prepare_cached(
                "INSERT OR REPLACE INTO fast_login(owner, role, expires, wrap)
                 VALUES(?1, ?2, ?3, ?4)",
            )?
            .execute((self.owner, role_byte(role), signed(self.expires), &self.sealed))?;
        Ok(())
    }
}

/// Where secrets of this user's fast logins are kept, when one of these directories may have them; nothing is made.
///
/// # Errors
/// Why nowhere.
pub fn fast_login_place(bases: &[PathBuf]) -> std::result::Result<String, String> {
    match keyring::find(c"metaslot:place", SECRET) {
        Ok(_) => Ok(String::from("the kernel's keyring")),
        Err(error) => {
            volatile::place(bases).map(|path| path.display().to_string()).map_err(|unfit| {
                let reason = unfit.reason;
                format!("the kernel's keyring: {}; {reason}", volatile::words(error))
            })
        }
    }
}

/// Takes away the wraps that have expired, whosever.
pub(crate) fn expire(database: &Database) -> Result<()> {
    let expire = "DELETE FROM fast_login WHERE expires < ?1";
    database.connection.prepare_cached(expire)?.execute([signed(now())])?;
    Ok(())
}

/// Takes away what this user's logins have left where no fast login is possible now: the wrap of this role.
pub(crate) fn tidy(database: &Database, role: Role, is_possible: bool) -> Result<()> {
    let owner = rustix::process::geteuid().as_raw();
    database
        .connection
        .prepare_cached(
            "DELETE FROM fast_login
             WHERE ?1 AND owner = ?2 AND role = ?3",
        )?
        .execute((!is_possible, owner, role_byte(role)))?;
    Ok(())
}

/// Takes away the secrets in memory whose time is over, and the one that releases before this one kept on the disk.
pub(crate) fn remove_old_secrets(config: &Config) {
    for base in &config.volatile {
        Volatile::find(std::slice::from_ref(base)).inspect(|place| place.sweep(now()));
    }
    if let Some(runtime) = &config.runtime {
        // It is not there, or it is another user's, whose login takes it away.
        fs::unlink(runtime.join(FORMER)).unwrap_or_default();
    }
}
