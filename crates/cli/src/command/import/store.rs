// SPDX-License-Identifier: Apache-2.0
//! The Solaris keystore on disk (docs/commands/import.md), read and verified.

use crate::failure::{Failure, Result};
use crate::personality::material::{Purpose, Stretch, stretched_key};
use metaslot_ck::{self as ck, ObjectHandle};
use metaslot_client::{Mechanism, Params, Session};
use metaslot_memory::Secret;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const DESCRIPTION: &str = "objstore_info";
const FORMAT: &[u8] = b"2.20";

/// Bytes of the description before the PIN's hash.
const FIXED: usize = 72;
/// Bytes of an object's file before its data, and of the name before the data of a private object.
const HEADER: usize = 36;
const NAME: usize = 1024;

const ITERATIONS: u64 = 1000;

/// No file of a keystore is longer, nor are all of its objects together.
const LONGEST: u64 = 1 << 20;
const MOST: usize = 64 << 20;

/// A keystore whose description was read.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) directory: PathBuf,
    encryption_salt: Vec<u8>,
    authentication_salt: Vec<u8>,
    /// Paths below the directory.
    public: Vec<PathBuf>,
    private: Vec<PathBuf>,
    /// What else is there, which is no object.
    pub(super) others: Vec<PathBuf>,
}

/// One object, verified as far as the format can.
#[derive(Debug)]
pub(super) struct Stored {
    /// Its path below the directory.
    pub(super) path: PathBuf,
    pub(super) is_private: bool,
    file: Secret,
    start: usize,
}

impl Stored {
    /// What was packed.
    pub(super) fn packed(&self) -> &[u8] {
        &self.file.expose()[self.start..]
    }
}

/// The two keys that a passphrase becomes.
struct Keys {
    decrypting: ObjectHandle,
    verifying: ObjectHandle,
}

impl Store {
    /// Reads the description and the names of the objects.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(DESCRIPTION);
        let bytes = read(&path)?;
        let bytes = bytes.expose();
        let wrong = |words: &str| Failure::failed(format!("{}: {words}", path.display()));
        let Some(fixed) = bytes.get(..FIXED) else { return Err(wrong("it ends too early")) };
        let version = fixed[..32].split(|byte| *byte == 0).next().unwrap_or_default();
        if version != FORMAT {
            return Err(wrong("it is no keystore of format 2.20"));
        }
        // The salt of the PIN's hash, and the hash.
        let mut rest = bytes;
        rest = &rest[FIXED..];
        rest = after(rest).and_then(after).ok_or_else(|| wrong("it ends too early"))?;
        if !rest.is_empty() {
            return Err(wrong("there is more than a description has"));
        }
        let mut store = Self {
            directory: directory.to_owned(),
            encryption_salt: fixed[40..56].to_vec(),
            authentication_salt: fixed[56..72].to_vec(),
            public: Vec::new(),
            private: Vec::new(),
            others: Vec::new(),
        };
        store.public = store.names("public")?;
        store.private = store.names("private")?;
        if directory.join("t_info").exists() {
            store.others.push("t_info".into());
        }
        Ok(store)
    }

    /// Every object. The passphrase is asked for where there are private ones.
    pub(super) fn objects(
        &self,
        session: &Session,
        passphrase: impl FnOnce() -> Result<Secret>,
    ) -> Result<Vec<Stored>> {
        let mut objects = Vec::new();
        let mut room = MOST;
        for path in &self.public {
            let (path, file) = (path.clone(), self.read(path, &mut room)?);
            objects.push(Stored { path, is_private: false, file, start: HEADER });
        }
        if self.private.is_empty() {
            return Ok(objects);
        }
        if self.encryption_salt.iter().all(|byte| *byte == 0) {
            return Err(Failure::failed("the keystore has no passphrase, but private objects"));
        }
        let keys = self.keys(session, &passphrase()?)?;
        let files = self.private.iter().map(|path| Ok((path, self.read(path, &mut room)?)));
        let files: Vec<(&PathBuf, Secret)> = files.collect::<Result<_>>()?;
        let mut changed = Vec::new();
        for (path, file) in &files {
            if !keys.verified(session, file.expose())? {
                changed.push(path.display().to_string());
            }
        }
        if changed.len() == files.len() {
            return Err(Failure::pin("no private object opens: the passphrase is wrong")
                .hint("or objstore_info, or every object, was changed"));
        }
        if !changed.is_empty() {
            return Err(Failure::failed(format!("changed or cut: {}", changed.join(", ")))
                .hint("or sealed under another passphrase, when a change of it was interrupted"));
        }
        for (path, file) in files {
            let file = keys.opened(session, path, file.expose())?;
            objects.push(Stored { path: path.clone(), is_private: true, file, start: NAME });
        }
        Ok(objects)
    }

    /// The objects in one of the two directories, by number.
    fn names(&mut self, kind: &str) -> Result<Vec<PathBuf>> {
        let path = self.directory.join(kind);
        let cannot =
            |error: io::Error| Failure::io(format!("cannot read {}", path.display()), &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&path).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            let path = Path::new(kind).join(&name);
            match number(&name, "obj") {
                Some(number) => found.push((number, path)),
                None => self.others.push(path),
            }
        }
        found.sort();
        self.others.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    fn read(&self, path: &Path, room: &mut usize) -> Result<Secret> {
        let wrong = |words: &str| Failure::failed(format!("{}: {words}", path.display()));
        let file = read(&self.directory.join(path))?;
        let left = room.checked_sub(file.len());
        *room = left.ok_or_else(|| wrong("the objects are more than 64 MiB"))?;
        match file.len() {
            0..HEADER => Err(wrong("it ends too early")),
            _ => Ok(file),
        }
    }

    fn keys(&self, session: &Session, passphrase: &Secret) -> Result<Keys> {
        let key = |key_type, usage, salt| {
            let purpose = Purpose { key_type, usage, lengths: &[] };
            let prf = ck::CKP_PKCS5_PBKD2_HMAC_SHA1;
            let stretch = Stretch { prf, salt, iterations: ITERATIONS, length: 16 };
            stretched_key(session, passphrase, purpose, &stretch)
        };
        Ok(Keys {
            decrypting: key(ck::CKK_AES, ck::CKA_DECRYPT, &self.encryption_salt)?,
            verifying: key(ck::CKK_GENERIC_SECRET, ck::CKA_VERIFY, &self.authentication_salt)?,
        })
    }
}

impl Keys {
    /// Whether the data is what was written.
    fn verified(&self, session: &Session, file: &[u8]) -> Result<bool> {
        let (header, data) = file.split_at(HEADER);
        let mechanism = Mechanism::new(ck::CKM_MD5_HMAC);
        match session.verify(&mechanism, self.verifying, data, &header[20..]) {
            Ok(()) => Ok(true),
            Err(error) if error.code == ck::Error::SIGNATURE_INVALID => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The data, which begins with the file's name.
    fn opened(&self, session: &Session, path: &Path, file: &[u8]) -> Result<Secret> {
        let (header, data) = file.split_at(HEADER);
        let mechanism = Mechanism::with(ck::CKM_AES_CBC_PAD, Params::Bytes(&header[4..20]));
        session.decrypt_init(&mechanism, self.decrypting)?;
        let mut opened = Secret::zeroed(data.len());
        let length = session.decrypt_into(data, opened.expose_mut()).map_err(|error| {
            // It verified, under a key that is made from another salt.
            Failure::from(error).context(path.display()).hint("objstore_info was changed")
        })?;
        let opened = opened.truncated(length.min(data.len()));
        let wrong = |words: &str| Failure::failed(format!("{}: {words}", path.display()));
        let Some(name) = opened.expose().get(..NAME) else {
            return Err(wrong("it ends too early"));
        };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = Path::new(std::str::from_utf8(name).unwrap_or_default()).file_name();
        // It may have been written under the name of a temporary file.
        let named = |name: &OsStr| number(name, "obj").or_else(|| number(name, "t_o"));
        if name.and_then(named) != path.file_name().and_then(named) {
            return Err(wrong("it was written as another object"));
        }
        Ok(opened)
    }
}

/// The number in `prefix` and a number, as the keystore writes it.
fn number(name: &OsStr, prefix: &str) -> Option<u32> {
    let digits = name.to_str()?.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// What follows a length of 8 bytes and so many bytes.
fn after(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.get(usize::try_from(u64::from_be_bytes(*length)).ok()?..)
}

/// A file, if it is one: a pipe in its place must not hold us up, and a link not lead to a device, which may do
/// something when it is opened.
fn read(path: &Path) -> Result<Secret> {
    let what = format!("cannot read {}", path.display());
    let cannot = |error: io::Error| Failure::io(&what, &error);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let mut file = File::from(file.map_err(|error| cannot(error.into()))?);
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Err(Failure::failed(format!("{what}: it is no file of a keystore")));
    }
    let mut bytes = Secret::zeroed(usize::try_from(metadata.len()).unwrap_or(0));
    file.read_exact(bytes.expose_mut()).map_err(cannot)?;
    Ok(bytes)
}
