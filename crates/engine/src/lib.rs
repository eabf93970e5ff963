// SPDX-License-Identifier: Apache-2.0
//! What PKCS#11 means: operations, sessions, objects and tokens. No file, no pointer and no cryptographic library is known here.
#![forbid(unsafe_code)]

mod engine;
mod find;
mod fixed;
mod keys;
mod login;
mod object;
mod objects;
mod operation;
mod output;
mod search;
mod session;
mod slots;
mod token;

pub use engine::{Config, Engine};
pub use keys::Apart;
pub use metaslot_router::Candidate;
pub use metaslot_rules::Policy;
pub use metaslot_rules::policy::{NonceBy, Refusal};
pub use object::{Answer, Object};
pub use operation::OperationKind;
pub use output::{Output, Room};
pub use slots::{SessionInfo, SlotInfo, TokenInfo};
pub use token::handles::MAX_SLOTS;
pub use token::{CACHED, SlotConfig};
