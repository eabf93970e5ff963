// SPDX-License-Identifier: Apache-2.0
//! The parameters of RSA-PSS (RFC 4055 §3.1): those of a signature, and those that a key is restricted to.

use crate::abi::{Builder, Given, Params};
use crate::failure::Result;
use crate::hash::{Hash, named};
use crate::public::PSS;
use metaslot_ck::CKM_SHA_1;
use metaslot_spi::der::Node;

/// id-mgf1
const MGF1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08";
/// What is usual where nothing is said.
pub(crate) const SALT_OF_SHA1: usize = 20;

/// Hash function, that of the mask, and length of the salt, of a key the least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pss {
    pub(crate) hash: &'static Hash,
    pub(crate) mgf: &'static Hash,
    pub(crate) salt: usize,
}

impl Pss {
    /// Takes what is said over what was said before; where nothing was, it is what is usual.
    pub(crate) fn update(before: &mut Option<Self>, params: &Params) -> Result<()> {
        let hash = |name| params.find(name).and_then(Given::text).map(named).transpose();
        let (given, mgf) = (hash(c"digest")?, hash(c"mgf1-digest")?);
        let salt = params.find(c"saltlen").and_then(Given::number);
        let salt = salt.and_then(|salt| usize::try_from(salt).ok());
        if given.is_none() && mgf.is_none() && salt.is_none() {
            return Ok(());
        }
        let sha1 = Hash::named("SHA1").unwrap_or_else(Hash::usual);
        let old = before.unwrap_or(Self { hash: sha1, mgf: sha1, salt: SALT_OF_SHA1 });
        *before = Some(Self {
            hash: given.unwrap_or(old.hash),
            mgf: mgf.unwrap_or(old.mgf),
            salt: salt.unwrap_or(old.salt),
        });
        Ok(())
    }

    /// As libcrypto imports it.
    pub(crate) fn send(&self, params: Builder) -> Builder {
        let salt = i32::try_from(self.salt).unwrap_or(i32::MAX);
        let params = params.text(c"digest", self.hash.names[0]);
        params.text(c"mgf1-digest", self.mgf.names[0]).number(c"saltlen", salt)
    }

    /// What stands in the `AlgorithmIdentifier`: what is usual stays away.
    pub(crate) fn identifier<T>(&self, with: impl FnOnce(&[Node<'_>]) -> T) -> T {
        let of_hash = [Node::Oid(self.hash.oid), Node::Null];
        let of_mgf = [Node::Oid(self.mgf.oid), Node::Null];
        let (of_hash, of_mgf) =
            (Node::Sequence(&of_hash), [Node::Oid(MGF1), Node::Sequence(&of_mgf)]);
        let salt_digits = u32::try_from(self.salt).unwrap_or_default().to_be_bytes();
        let (of_mgf, of_salt) = (Node::Sequence(&of_mgf), Node::Integer(&salt_digits));
        let mut fields = Vec::new();
        if self.hash.digest != CKM_SHA_1 {
            fields.push(Node::Explicit(0, &of_hash));
        }
        if self.mgf.digest != CKM_SHA_1 {
            fields.push(Node::Explicit(1, &of_mgf));
        }
        if self.salt != SALT_OF_SHA1 {
            fields.push(Node::Explicit(2, &of_salt));
        }
        with(&[Node::Oid(PSS), Node::Sequence(&fields)])
    }
}
