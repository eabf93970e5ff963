// SPDX-License-Identifier: Apache-2.0
//! `encrypt` and `decrypt` with a key of a token and a mechanism, as other programs have them: no format around the data.

use super::arguments::TokenArg;
use super::payload::Payload;
use super::target::Target;
use crate::app::{App, Login};
use crate::encoding::from_hex;
use crate::failure::{Failure, Result};
use crate::find;
use crate::key::{self, Family, Key};
use crate::personality::material::{Purpose, usable};
use crate::scheme::{mechanism_number, oaep};
use crate::uri::{Class, Uri};
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Params, Session, User};
use metaslot_memory::Secret;

/// The options.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "A key of a token, and its mechanism")]
pub(crate) struct CipherArg {
    /// The key: a PKCS#11 URI or its label. An AES key without --mechanism is as with -K; an RSA key's is OAEP
    #[arg(long, value_name = "URI|LABEL", conflicts_with_all = ["key_file", "key_label", "algorithm"])]
    key: Option<String>,
    /// The mechanism: rsa-oaep, rsa-pkcs, aes-gcm, aes-cbc-pad, aes-ctr, ..., or its name. The data is no more than memory
    /// holds
    #[arg(long, short, value_name = "NAME", requires = "key")]
    mechanism: Option<String>,
    /// The hash of rsa-oaep [default: sha256]
    #[arg(long, value_name = "NAME", requires = "key")]
    hash: Option<String>,
    /// The IV in hexadecimal [default: random, and written before the data]
    #[arg(long, value_name = "HEX", requires = "mechanism")]
    iv: Option<String>,
    /// What is authenticated beside the data, in hexadecimal
    #[arg(long, value_name = "HEX", requires = "mechanism")]
    aad: Option<String>,
    /// The token of --key: its label or a PKCS#11 URI [default: the one that shows the key]
    #[arg(long = "token", value_name = "LABEL|URI", requires = "key")]
    key_token: Option<String>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

/// What a mechanism's parameter is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Nothing,
    Oaep,
    Iv,
    Counter,
    Gcm,
    ChaCha20Poly1305,
}

/// A mechanism: bytes of its IV.
struct Row(CK_MECHANISM_TYPE, Shape, usize);

const ROWS: &[Row] = &[
    Row(CKM_RSA_PKCS_OAEP, Shape::Oaep, 0),
    Row(CKM_RSA_PKCS, Shape::Nothing, 0),
    Row(CKM_RSA_X_509, Shape::Nothing, 0),
    Row(CKM_AES_GCM, Shape::Gcm, 12),
    Row(CKM_AES_CBC_PAD, Shape::Iv, 16),
    Row(CKM_AES_CBC, Shape::Iv, 16),
    Row(CKM_AES_CFB128, Shape::Iv, 16),
    Row(CKM_AES_CTR, Shape::Counter, 16),
    Row(CKM_AES_ECB, Shape::Nothing, 0),
    Row(CKM_CHACHA20_POLY1305, Shape::ChaCha20Poly1305, 12),
    Row(CKM_DES3_CBC_PAD, Shape::Iv, 8),
    Row(CKM_DES3_CBC, Shape::Iv, 8),
    Row(CKM_DES3_ECB, Shape::Nothing, 0),
    Row(CKM_CAMELLIA_CTR, Shape::Counter, 16),
    Row(CKM_CAMELLIA_CBC_PAD, Shape::Iv, 16),
    Row(CKM_CAMELLIA_CBC, Shape::Iv, 16),
    Row(CKM_CAMELLIA_ECB, Shape::Nothing, 0),
    Row(CKM_ARIA_CBC_PAD, Shape::Iv, 16),
    Row(CKM_ARIA_CBC, Shape::Iv, 16),
    Row(CKM_ARIA_ECB, Shape::Nothing, 0),
    Row(CKM_SEED_CBC_PAD, Shape::Iv, 16),
    Row(CKM_SEED_CBC, Shape::Iv, 16),
    Row(CKM_SEED_ECB, Shape::Nothing, 0),
    Row(CKM_TWOFISH_CBC_PAD, Shape::Iv, 16),
    Row(CKM_TWOFISH_CBC, Shape::Iv, 16),
    Row(CKM_CAST5_CBC_PAD, Shape::Iv, 8),
    Row(CKM_CAST5_CBC, Shape::Iv, 8),
    Row(CKM_CAST5_ECB, Shape::Nothing, 0),
    Row(CKM_BLOWFISH_CBC_PAD, Shape::Iv, 8),
    Row(CKM_BLOWFISH_CBC, Shape::Iv, 8),
    Row(CKM_IDEA_CBC_PAD, Shape::Iv, 8),
    Row(CKM_IDEA_CBC, Shape::Iv, 8),
    Row(CKM_IDEA_ECB, Shape::Nothing, 0),
    Row(CKM_DES_CBC_PAD, Shape::Iv, 8),
    Row(CKM_DES_CBC, Shape::Iv, 8),
    Row(CKM_DES_ECB, Shape::Nothing, 0),
    Row(CKM_DES_CFB64, Shape::Iv, 8),
    Row(CKM_DES_CFB8, Shape::Iv, 8),
    Row(CKM_DES_OFB64, Shape::Iv, 8),
    Row(CKM_DES_OFB8, Shape::Iv, 8),
];

/// Whether a mechanism encrypts here.
pub(super) fn serves(number: CK_MECHANISM_TYPE) -> bool {
    ROWS.iter().any(|row| row.0 == number)
}

impl CipherArg {
    /// Whether a key is named here; then where it is.
    pub(crate) fn key(&self) -> Result<Option<Uri>> {
        let token = TokenArg::new(self.key_token.clone());
        self.key.as_deref().map(|key| token.key(key)).transpose()
    }

    /// Does it, unless it is for the format of files that needs no mechanism: then the key, which is open.
    pub(crate) fn run(
        &self,
        app: &App,
        login: &Login<'_>,
        direction: Direction,
        files: (&mut Payload, &mut Target),
    ) -> Result<Option<Opened>> {
        let opened = self.open(app, login, direction)?;
        let number = match &self.mechanism {
            Some(name) => mechanism_number(name)?,
            None => match opened.key.kind.family {
                Family::Rsa => CKM_RSA_PKCS_OAEP,
                Family::Aes if self.hash.is_some() => return Err(no_hash()),
                Family::Aes => return Ok(Some(opened)),
                _ => {
                    let message = format!("{} keys have no usual cipher", opened.key.kind);
                    return Err(Failure::usage(message).hint("name one with --mechanism"));
                }
            },
        };
        let row = ROWS.iter().find(|row| row.0 == number).ok_or_else(unserved)?;
        let (payload, target) = files;
        self.transform(&opened, row, direction, payload, target)?;
        Ok(None)
    }

    /// A public half encrypts without a login.
    fn open(&self, app: &App, login: &Login<'_>, direction: Direction) -> Result<Opened> {
        let token = login.token.uri();
        if direction == Direction::Encrypt {
            let module = app.host(login.uri)?.module();
            let session = module.open_session(login.token.slot, Access::ReadOnly)?;
            let mut keys = key::search(&session, login.uri)?;
            keys.retain(|key| key.part(Class::Public).is_some());
            if !keys.is_empty() {
                let key = key::only(keys, login.uri, &token)?;
                return Opened::new(session, key, Secret::zeroed(0), direction);
            }
        }
        let (session, pin) = app.log_in(login, Access::ReadOnly)?;
        let key = find::one::<Key>(&session, &token, login.uri)?;
        Opened::new(session, key, pin, direction)
    }

    fn transform(
        &self,
        Opened { session, key, handle, pin }: &Opened,
        Row(number, shape, length): &Row,
        direction: Direction,
        payload: &mut Payload,
        target: &mut Target,
    ) -> Result<()> {
        let data = payload.all_secret()?;
        let iv = self.iv.as_deref().map(|iv| hexadecimal("--iv", iv)).transpose()?;
        if iv.is_some() && *length == 0 {
            return Err(Failure::usage("this mechanism has no IV"));
        }
        let (iv, data, is_before) = match (iv, direction) {
            (Some(iv), _) => (iv, data.expose(), false),
            (None, Direction::Encrypt) => {
                let mut iv = vec![0; *length];
                session.random(&mut iv)?;
                (iv, data.expose(), true)
            }
            (None, Direction::Decrypt) => {
                let (iv, rest) = data.expose().split_at_checked(*length).ok_or_else(|| {
                    Failure::failed(format!("{} is shorter than an IV", payload.name()))
                })?;
                (iv.to_vec(), rest, false)
            }
        };
        let aad = self.aad.as_deref().map(|aad| hexadecimal("--aad", aad)).transpose()?;
        let params = self.params(*shape, &iv, aad.as_deref())?;
        let mechanism = Mechanism::with(*number, params);
        if direction == Direction::Encrypt {
            let sealed = session.encrypt(&mechanism, *handle, data)?;
            target.write(if is_before { &iv } else { &[] })?;
            return target.write(&sealed);
        }
        session.decrypt_init(&mechanism, *handle)?;
        if key.always_authenticate {
            session.login(User::ContextSpecific, pin.expose())?;
        }
        // RSA's block may be longer than what is in it.
        let mut plain = Secret::zeroed(data.len());
        let length = session.decrypt_into(data, plain.expose_mut())?;
        target.write(&plain.expose()[..length.min(data.len())])
    }

    fn params<'a>(&self, shape: Shape, iv: &'a [u8], aad: Option<&'a [u8]>) -> Result<Params<'a>> {
        if self.hash.is_some() && shape != Shape::Oaep {
            return Err(no_hash());
        }
        if aad.is_some() && !matches!(shape, Shape::Gcm | Shape::ChaCha20Poly1305) {
            return Err(Failure::usage("this mechanism authenticates nothing: drop --aad"));
        }
        let aad = aad.unwrap_or_default();
        Ok(match shape {
            Shape::Nothing => Params::None,
            Shape::Oaep => oaep(self.hash.as_deref().unwrap_or("sha256"))?,
            Shape::Iv => Params::Bytes(iv),
            Shape::Gcm => Params::Gcm { iv, aad, tag_bits: 128 },
            Shape::ChaCha20Poly1305 => Params::ChaCha20Poly1305 { nonce: iv, aad },
            Shape::Counter => {
                let wrong = |_| Failure::usage("the counter block of this mechanism has 16 bytes");
                Params::Ctr { bits: 128, block: iv.try_into().map_err(wrong)? }
            }
        })
    }
}

/// A key that is ready.
pub(crate) struct Opened {
    pub(crate) session: Session,
    key: Key,
    handle: ObjectHandle,
    pin: Secret,
}

impl Opened {
    /// For the format of files: the session, and the key in it.
    pub(crate) fn usable(self, purpose: Purpose) -> Result<(Session, ObjectHandle)> {
        let handle = usable(&self.session, &self.key, purpose)?;
        Ok((self.session, handle))
    }

    fn new(session: Session, key: Key, pin: Secret, direction: Direction) -> Result<Self> {
        let half = match direction {
            Direction::Encrypt => Class::Public,
            Direction::Decrypt => Class::Private,
        };
        let handle = key.part(Class::Secret).or_else(|| key.part(half)).ok_or_else(|| {
            Failure::not_found(format!("the token has no {} half of '{}'", half.name(), key.label))
        })?;
        Ok(Self { session, key, handle, pin })
    }
}

fn no_hash() -> Failure {
    Failure::usage("--hash is for rsa-oaep")
}

fn unserved() -> Failure {
    let names = ROWS.iter().filter_map(|row| mechanism_name(row.0));
    let names: Vec<&str> = names.filter_map(|name| name.strip_prefix("CKM_")).collect();
    Failure::usage("that mechanism does not encrypt here")
        .hint(format!("one of {}", names.join(", ")))
}

fn hexadecimal(option: &str, text: &str) -> Result<Vec<u8>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    from_hex(text).ok_or_else(|| Failure::usage(format!("{option} is no hexadecimal")))
}
