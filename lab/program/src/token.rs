// SPDX-License-Identifier: Apache-2.0
//! A fresh token of any module, made and opened through the C ABI.

use crate::{Failure, Result};
use metaslot_ck::*;
use metaslot_client::{Access, LIBRARY, Mechanism, Module, Session, Template, User};
use std::path::{Path, PathBuf};

/// The label of every token that the lab makes.
pub(crate) const LABEL: &str = "lab";
const SO_PIN: &[u8] = b"lab-so-1357";
/// The user PIN of every token that the lab makes.
pub(crate) const PIN: &[u8] = b"lab-user-2468";

/// SoftHSM as Debian installs it: the rival by default.
pub(crate) const RIVAL: &str = "/usr/lib/softhsm/libsofthsm2.so";

/// A module with an open token; the session keeps the login alive.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) module: Module,
    pub(crate) slot: SlotId,
    pub(crate) session: Session,
}

impl Token {
    /// Loads and initialises the module, and makes a new token in its first slot.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn make(path: &Path) -> Result<Self> {
        let module = load(path)?;
        Self::new_token(&module).map_err(|failure| explained(failure, &module))
    }

    fn new_token(module: &Module) -> Result<Self> {
        let slots = module.slots(false)?;
        let slot = *slots
            .first()
            .ok_or_else(|| Failure::new(format!("{} has no slot", module.path().display())))?;
        module.init_token(slot, SO_PIN, LABEL)?;
        // SoftHSM moves a new token to a slot of its own.
        let slot = slot_of_token(module)?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        session.login(User::SecurityOfficer, SO_PIN)?;
        session.init_pin(PIN)?;
        session.logout()?;
        session.login(User::User, PIN)?;
        Ok(Self { module: module.clone(), slot, session })
    }

    /// Opens the token that [`Token::make`] made, in another process.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let module = load(path)?;
        let open = || {
            let slot = slot_of_token(&module)?;
            let session = module.open_session(slot, Access::ReadWrite)?;
            session.login(User::User, PIN)?;
            Ok(Self { module: module.clone(), slot, session })
        };
        open().map_err(|failure| explained(failure, &module))
    }

    /// Another session on the same token, logged in as the whole process is.
    ///
    /// # Errors
    /// The module's code.
    pub(crate) fn session(&self) -> Result<Session> {
        Ok(self.module.open_session(self.slot, Access::ReadWrite)?)
    }
}

/// The failure with the module's own words, where it has any.
fn explained(mut failure: Failure, module: &Module) -> Failure {
    if let Some(detail) = module.detail() {
        failure.message = format!("{}: {detail}", failure.message);
    }
    failure
}

fn load(path: &Path) -> Result<Module> {
    let module = Module::load(path)?;
    match module.initialize() {
        Err(error) if error.code != Error::CRYPTOKI_ALREADY_INITIALIZED => {
            Err(Failure::from(error).context(path.display()))
        }
        _ => Ok(module),
    }
}

/// The slot whose token carries the lab's label.
pub(crate) fn slot_of_token(module: &Module) -> Result<SlotId> {
    let slots = module.slots(true)?;
    let ours = |slot: &&SlotId| module.token_info(**slot).is_ok_and(|info| info.label == LABEL);
    slots.iter().find(ours).copied().ok_or_else(|| {
        Failure::new(format!("{} does not show the token that was made", module.path().display()))
    })
}

/// The module to measure: the one that was named, the one in `METASLOT_MODULE` (as for every other
/// command), the one beside this program, or an installed one.
///
/// # Errors
/// There is none.
pub(crate) fn own_module(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_path_buf());
    }
    if let Some(path) = std::env::var_os("METASLOT_MODULE").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    metaslot_client::installed().ok_or_else(|| {
        Failure::new(format!("{LIBRARY} is neither beside this program nor installed"))
            .hint("name it with --module")
    })
}

/// The rival: the one that was named, none, or SoftHSM where it is installed; never `own` itself,
/// because a library is loaded once.
pub(crate) fn rival_module(named: Option<&str>, own: &Path) -> Option<PathBuf> {
    let path = match named {
        Some("none") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(RIVAL)).filter(|path| path.exists()),
    };
    path.filter(|path| path.canonicalize().ok() != own.canonicalize().ok())
}

/// A key pair's handles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) public: ObjectHandle,
    pub(crate) private: ObjectHandle,
}

/// Attributes of a private token key that signs.
fn private_key(label: &str) -> Template {
    Template::new()
        .token(true)
        .label(label)
        .bool(CKA_PRIVATE, true)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_SIGN, true)
}

fn public_key(label: &str) -> Template {
    Template::new().token(true).label(label).bool(CKA_VERIFY, true)
}

/// The DER of the object identifier of P-256.
pub(crate) const P256: &[u8] = &[6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7];
/// The DER of the object identifier of Ed25519.
const ED25519: &[u8] = &[6, 3, 0x2B, 0x65, 0x70];
/// The older form that some modules want.
const ED25519_NAME: &[u8] = b"\x13\x0cedwards25519";

/// A P-256 token key pair.
pub(crate) fn p256(session: &Session) -> Result<Pair> {
    let public = public_key("ec").bytes(CKA_EC_PARAMS, P256);
    pair(session, CKM_EC_KEY_PAIR_GEN, &public, "ec")
}

/// An Ed25519 token key pair.
pub(crate) fn ed25519(session: &Session) -> Result<Pair> {
    let with = |params: &[u8]| {
        let public = public_key("ed").bytes(CKA_EC_PARAMS, params);
        pair(session, CKM_EC_EDWARDS_KEY_PAIR_GEN, &public, "ed")
    };
    with(ED25519).or_else(|first| with(ED25519_NAME).map_err(|_| first))
}

/// A token key pair of ML-DSA-65.
pub(crate) fn ml_dsa_65(session: &Session) -> Result<Pair> {
    let public = public_key("ml-dsa").ulong(CKA_PARAMETER_SET, CKP_ML_DSA_65);
    pair(session, CKM_ML_DSA_KEY_PAIR_GEN, &public, "ml-dsa")
}

/// A token key pair of ML-KEM-768.
pub(crate) fn ml_kem_768(session: &Session) -> Result<Pair> {
    let (public, private) = (Template::new().token(true), Template::new().token(true));
    let public = public.ulong(CKA_PARAMETER_SET, CKP_ML_KEM_768).bool(CKA_ENCAPSULATE, true);
    let private = private.bool(CKA_PRIVATE, true).bool(CKA_SENSITIVE, true);
    let private = private.bool(CKA_DECAPSULATE, true).label("ml-kem");
    let mechanism = Mechanism::new(CKM_ML_KEM_KEY_PAIR_GEN);
    let (public, private) = session.generate_key_pair(&mechanism, &public, &private)?;
    Ok(Pair { public, private })
}

fn pair(
    session: &Session,
    mechanism: CK_MECHANISM_TYPE,
    public: &Template,
    label: &str,
) -> Result<Pair> {
    let mechanism = Mechanism::new(mechanism);
    let (public, private) = session.generate_key_pair(&mechanism, public, &private_key(label))?;
    Ok(Pair { public, private })
}

/// Attributes of an AES-256 key.
pub(crate) fn aes_template(label: &str, token: bool) -> Template {
    Template::new()
        .token(token)
        .label(label)
        .ulong(CKA_VALUE_LEN, 32)
        .bool(CKA_PRIVATE, true)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_ENCRYPT, true)
        .bool(CKA_DECRYPT, true)
}
