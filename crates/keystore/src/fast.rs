// SPDX-License-Identifier: Apache-2.0
//! Fast login: a second wrap of the master key, for servers that fork a process per connection.
//!
//! Its key is made from the PIN and a random secret of this boot, which lies in the runtime
//! directory of the same user; without either it opens nothing. It expires, and a new PIN voids it.

use crate::crypto::{self, KEY, Serial};
use crate::error::{Error, Result};
use crate::gate::Database;
use crate::pin::now;
use crate::schema::{signed, unsigned};
use crate::store::Config;
use crate::wrap::role_byte;
use metaslot_awslc_wrapper::hkdf;
use metaslot_memory::Secret;
use metaslot_spi::store::Role;
use rusqlite::OptionalExtension;
use rustix::fs::{self, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The file in the runtime directory.
const NAME: &str = "login-secret";
/// Other secrets of this kind are shorter than this.
const LONGEST: u64 = 4096;
/// The shortest pepper.
const SHORTEST: usize = 16;

/// Where fast login is possible: a boot, a user, a secret.
pub(crate) struct Place {
    secret: Secret,
    boot: String,
    owner: u32,
    lifetime: u64,
}

/// A stored wrap.
pub(crate) struct Wrap {
    owner: u32,
    expires: u64,
    sealed: Vec<u8>,
}

impl Place {
    /// `None` where it is not configured, or where something that it needs is missing.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let lifetime = config.fast_login?.as_secs();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let secret = boot_secret(config.runtime.as_deref()?).ok()?;
        let owner = rustix::process::geteuid().as_raw();
        Some(Self { secret, boot, owner, lifetime })
    }

    /// The stored wrap of this user and role, unless it has expired.
    pub(crate) fn read(&self, database: &Database, role: Role) -> Result<Option<Wrap>> {
        let row = database
            .connection
            .prepare_cached("SELECT expires, wrap FROM fast_login WHERE owner = ?1 AND role = ?2")?
            .query_row((self.owner, role_byte(role)), |row| {
                Ok(Wrap { owner: self.owner, expires: unsigned(row, 0)?, sealed: row.get(1)? })
            })
            .optional()?;
        let now = now();
        // One that would last longer than any of ours was not written by this configuration.
        Ok(row.filter(|row| (now..=now + self.lifetime).contains(&row.expires)))
    }

    /// The master key, when PIN, secret and boot are right.
    pub(crate) fn open(
        &self,
        wrap: &Wrap,
        serial: &Serial,
        role: Role,
        pin: &[u8],
    ) -> Result<Option<Secret>> {
        let key = self.key(serial, role, pin)?;
        crypto::open_secret(&key, &self.aad(serial, role, wrap.expires), &wrap.sealed)
    }

    pub(crate) fn seal(
        &self,
        serial: &Serial,
        role: Role,
        pin: &[u8],
        master: &Secret,
    ) -> Result<Wrap> {
        let expires = now() + self.lifetime;
        let key = self.key(serial, role, pin)?;
        let sealed = crypto::seal(&key, &self.aad(serial, role, expires), master.expose())?;
        Ok(Wrap { owner: self.owner, expires, sealed })
    }

    fn key(&self, serial: &Serial, role: Role, pin: &[u8]) -> Result<Secret> {
        let mut material = Secret::zeroed(self.secret.len() + pin.len());
        let (secret, rest) = material.expose_mut().split_at_mut(self.secret.len());
        secret.copy_from_slice(self.secret.expose());
        rest.copy_from_slice(pin);
        let mut info = b"metaslot 1 fast login".to_vec();
        info.push(role_byte(role));
        info.extend_from_slice(self.boot.as_bytes());
        let mut key = Secret::zeroed(KEY);
        hkdf::sha256(material.expose(), serial, &info, key.expose_mut())?;
        Ok(key)
    }

    fn aad(&self, serial: &Serial, role: Role, expires: u64) -> Vec<u8> {
        let mut aad = b"metaslot 1 fast login".to_vec();
        aad.extend_from_slice(serial);
        aad.push(role_byte(role));
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

/// This user's secret in the runtime directory; made where it is missing. The directory is not.
fn boot_secret(runtime: &Path) -> Result<Secret> {
    let path = runtime.join(NAME);
    match read_secret(&path) {
        Err(Error::File { .. }) => {}
        read => return read,
    }
    let secret = crypto::random_key()?;
    let fresh = runtime.join(format!("{NAME}.{:016x}", u64::from_le_bytes(crypto::random()?)));
    let refused = |errno| Error::file(&path, "create", errno);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file =
        fs::open(&fresh, flags, Mode::RUSR | Mode::WUSR).map(File::from).map_err(refused)?;
    let written = file.write_all(secret.expose());
    let named = written.map_err(|error| Error::file(&path, "write", error)).and_then(|()| {
        fs::renameat_with(fs::CWD, &fresh, fs::CWD, &path, RenameFlags::NOREPLACE).map_err(refused)
    });
    if named.is_ok() {
        return Ok(secret);
    }
    fs::unlink(&fresh).unwrap_or_default();
    // Another process may have been faster.
    read_secret(&path)
}

/// A file that only this user (or root) may read and nobody else may write.
pub(crate) fn read_secret(path: &Path) -> Result<Secret> {
    let refuse =
        |reason: &str| Err(Error::Unsafe { path: path.to_owned(), reason: reason.to_owned() });
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return refuse("it is a link"),
        Err(errno) => return Err(Error::file(path, "open", errno)),
    };
    let stat = fs::fstat(&file).map_err(|errno| Error::file(path, "open", errno))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if stat.st_uid != rustix::process::geteuid().as_raw() && stat.st_uid != 0 {
        return refuse("it is somebody else's");
    }
    if mode.intersects(Mode::RWXO | Mode::WGRP) {
        return refuse("others may read it, or its group may write it");
    }
    let length = u64::try_from(stat.st_size).unwrap_or(0).min(LONGEST);
    let mut secret = Secret::zeroed(usize::try_from(length).unwrap_or(0));
    let mut reader: &File = &file;
    reader.read_exact(secret.expose_mut()).map_err(|error| Error::file(path, "read", error))?;
    if secret.len() < SHORTEST {
        return refuse("it is too short");
    }
    Ok(secret)
}
