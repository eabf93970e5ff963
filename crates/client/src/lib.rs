// SPDX-License-Identifier: Apache-2.0
//! Safe use of any PKCS#11 module through its C ABI.
//!
//! [`Module::load`] opens the library, [`Module::open_session`] gives a [`Session`], and every
//! method of a session is one call of the standard, or the usual pair of them. A failure is an
//! [`Error`]: which C function returned which code.
//!
//! ```no_run
//! use metaslot_ck::{CKA_LABEL, CKM_ECDSA_SHA256, CKO_PRIVATE_KEY};
//! use metaslot_client::{Access, Mechanism, Module, Template, User};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = Module::load("/usr/lib/libmetaslot.so")?;
//! module.initialize()?;
//! let slot = module.slots(true)?[0];
//! let session = module.open_session(slot, Access::ReadOnly)?;
//! session.login(User::User, b"1234")?;
//! let template = Template::new().class(CKO_PRIVATE_KEY).bytes(CKA_LABEL, "web");
//! let key = session.find(&template)?[0];
//! let signature = session.sign(&Mechanism::new(CKM_ECDSA_SHA256), key, b"message")?;
//! # Ok(()) }
//! ```
//!
//! Two forms of each operation: `encrypt` allocates its answer after asking for its length, while
//! `encrypt_init` and `encrypt_into` write where the caller says and allocate nothing.
//!
//! What is trusted: a module is native code in the same process, and this crate believes that it
//! keeps to the standard's rules about pointers and lengths. What is deliberately absent: callbacks
//! (mutexes, notifications) and any policy.

mod asynchronous;
mod error;
mod info;
mod installed;
mod interface;
mod key;
mod mechanism;
mod message;
mod module;
mod object;
mod operation;
mod parameter;
mod rare;
mod remote;
mod session;
mod template;
pub mod uri;
mod user;
mod vendor;

pub use asynchronous::{AsyncSession, PendingSignature, Progress};
pub use error::{Error, LoadError, Result};
pub use info::{Info, Interface, MechanismInfo, SessionInfo, SlotInfo, TokenInfo};
pub use installed::{DIRECTORIES, LIBRARY, installed};
pub use mechanism::Mechanism;
pub use message::{MessageParams, Way};
pub use module::{Initialize, Module};
pub use object::Search;
pub use operation::Whole;
pub use parameter::{KdfParam, Params};
pub use remote::{Carrier, Found, Lane, Lanes, Message, Once, Patience};

/// What p11-kit's protocol consists of, for who speaks it from the other side.
pub mod protocol {
    pub use crate::remote::calls::{Call, GREETING};
    pub use crate::remote::kinds::{Form, Kind, form, kind, kind_in};
    pub use crate::remote::params::ReadParams;
    pub use crate::remote::version::{OFFER, OWN, SAYS_PARAMETERS, VERSION};
    pub use crate::remote::wire::{MALFORMED, NO_BYTES, Reader, Writer};
}
pub use session::{Access, Session};
pub use template::{Template, Value};
pub use user::User;
pub use vendor::{
    Candidate, Estimate, Examined, FastLogin, Identity, IdentityAct, Job, PinCost, PinStatus,
    Remark, Rule, TokenCost, TokenStatus,
};

use metaslot_ck::{CK_ULONG, Function};

/// A length of ours as the C ABI writes it.
const fn ulong(length: usize) -> CK_ULONG {
    length as CK_ULONG
}

/// The most that a module's answer may be long, in bytes: a module that names more is wrong, and
/// believing it would end the process.
const MAX_ANSWER: usize = 1 << 30;

/// Room for an answer of so many elements.
fn room<T: Clone>(function: Function, length: CK_ULONG, empty: T) -> Result<Vec<T>> {
    let length = self::length(length);
    let mut room = Vec::new();
    if length > MAX_ANSWER / size_of::<T>() || room.try_reserve_exact(length).is_err() {
        return Err(Error::new(function, metaslot_ck::Error::HOST_MEMORY));
    }
    room.resize(length, empty);
    Ok(room)
}

/// A length of the C ABI as ours; what cannot be one becomes the largest.
fn length(length: CK_ULONG) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
