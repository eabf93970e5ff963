// SPDX-License-Identifier: Apache-2.0
//! Encryption by RSA: PKCS #1, OAEP, none, and the premaster secret of TLS before 1.3.

use crate::abi::{Answer, Given, Params};
use crate::failure::{Failure, Result};
use crate::hash::{Hash, named};
use crate::host::Lease;
use crate::key::Key;
use crate::operation::{Operation, key_of};
use crate::provider::Provider;
use crate::sign::Padding;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use std::sync::Arc;

/// Length of the secret that a TLS client sends (RFC 5246 §7.4.7.1).
pub(crate) const PREMASTER: usize = 48;

/// One that is being used.
#[derive(Clone, Debug)]
pub(crate) struct Cipher {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    padding: Padding,
    hash: Option<&'static Hash>,
    mgf: Option<&'static Hash>,
    label: Vec<u8>,
    client_version: u16,
    negotiated_version: u16,
}

impl Operation for Cipher {
    fn new(provider: Arc<Provider>) -> Self {
        Self {
            provider,
            key: None,
            padding: Padding::Pkcs1,
            hash: None,
            mgf: None,
            label: Vec::new(),
            client_version: 0,
            negotiated_version: 0,
        }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn set(&mut self, params: &Params) -> Result<()> {
        if let Some(padding) = params.find(c"pad-mode") {
            self.padding = Padding::of(padding)?;
            if self.padding == Padding::Pss {
                return Err(Failure::unsupported("PSS does not encrypt"));
            }
        }
        for (name, place) in [(c"digest", &mut self.hash), (c"mgf1-digest", &mut self.mgf)] {
            if let Some(name) = params.find(name).and_then(Given::text) {
                *place = Some(named(name)?);
            }
        }
        if let Some(label) = params.find(c"oaep-label").and_then(Given::octets) {
            self.label = label.to_vec();
        }
        let versions = [
            (c"tls-client-version", &mut self.client_version),
            (c"tls-negotiated-version", &mut self.negotiated_version),
        ];
        for (name, place) in versions {
            if let Some(version) = params.find(name).and_then(Given::number) {
                *place = u16::try_from(version)
                    .map_err(|_| Failure::input("this is no version of TLS"))?;
            }
        }
        Ok(())
    }

    fn answer(&self, name: &[u8], wants_text: bool) -> Option<Answer<'_>> {
        let constant = |hash: &Hash| Answer::Text(hash.names[0].to_owned());
        match name {
            b"pad-mode" if wants_text => Some(Answer::Constant(self.padding.shown().1)),
            b"pad-mode" => Some(Answer::Number(self.padding.shown().0)),
            b"digest" => self.hash.map(constant),
            b"mgf1-digest" => self.mgf.or(self.hash).map(constant),
            b"oaep-label" => Some(Answer::Octets(&self.label)),
            b"tls-client-version" => Some(Answer::Number(self.client_version.into())),
            b"tls-negotiated-version" => Some(Answer::Number(self.negotiated_version.into())),
            _ => None,
        }
    }
}

impl Cipher {
    pub(crate) fn begin(&mut self, key: Option<Arc<Key>>, params: &Params) -> Result<()> {
        let key = key.filter(|key| key.is_rsa() && !key.signs_by_pss_only());
        let refused = || Failure::unsupported("a key of this kind does not encrypt");
        self.key = Some(key.ok_or_else(refused)?);
        self.set(params)
    }

    fn key(&self) -> Result<&Arc<Key>> {
        key_of(self.key.as_ref())
    }

    /// The longest answer.
    pub(crate) fn length(&self) -> Result<usize> {
        let whole = self.key()?.answer_length();
        Ok(if self.padding == Padding::Tls { PREMASTER } else { whole })
    }

    fn mechanism(&self) -> Mechanism<'_> {
        match self.padding {
            Padding::Oaep => {
                // What libcrypto takes where none is named.
                let hash = self.hash.or_else(|| Hash::named("SHA1")).unwrap_or_else(Hash::usual);
                let mgf = self.mgf.unwrap_or(hash).mgf;
                let params = Parameter::Oaep { hash: hash.digest, mgf, label: &self.label };
                Mechanism::with(CKM_RSA_PKCS_OAEP, params)
            }
            Padding::None => Mechanism::new(CKM_RSA_X_509),
            _ => Mechanism::new(CKM_RSA_PKCS),
        }
    }

    pub(crate) fn encrypt(&self, data: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        if self.padding == Padding::None && data.len() < key.answer_length() {
            return Err(Failure::input("without padding the data is as long as the key"));
        }
        key.with_public("encrypt", |lease, handle| {
            lease.encrypt_init(&self.mechanism(), handle)?;
            let mut room = vec![0; key.answer_length()];
            let length = lease.encrypt_into(data, &mut room)?;
            room.truncate(length);
            Ok(room)
        })
    }

    pub(crate) fn decrypt(&self, data: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        // A number may come without the zeros that it begins with: libcrypto takes it, and a token wants all of it.
        let mut whole = vec![0; key.answer_length().saturating_sub(data.len())];
        whole.extend_from_slice(data);
        let data = &whole[..];
        if self.padding != Padding::Tls {
            return key
                .with_private("decrypt", |lease, handle| self.opened(key, lease, handle, data));
        }
        if self.client_version == 0 {
            return Err(Failure::input("the client's version of TLS is not said"));
        }
        // A wrong padding must not be told from a right one (RFC 5246 §7.4.7.1): what fails here is no failure.
        key.with_private("decrypt", |lease, handle| {
            let mut made_up = [0; PREMASTER];
            lease.random(&mut made_up)?;
            match self.opened(key, lease, handle, data) {
                Ok(mut opened) => {
                    let premaster = self.premaster(&opened, &made_up);
                    opened.fill(0);
                    std::hint::black_box(&opened);
                    Ok(premaster)
                }
                Err(error) if error.function == Function::Decrypt => {
                    Ok(self.premaster(&[], &made_up))
                }
                Err(error) => Err(error),
            }
        })
    }

    fn opened(
        &self,
        key: &Key,
        lease: &Lease,
        handle: ObjectHandle,
        data: &[u8],
    ) -> metaslot_client::Result<Vec<u8>> {
        lease.decrypt_init(&self.mechanism(), handle)?;
        key.authorize(lease)?;
        let mut room = vec![0; key.answer_length()];
        let length = lease.decrypt_into(data, &mut room)?;
        room.truncate(length);
        Ok(room)
    }

    /// What was opened, if it is a secret of this handshake, else what was made up; in the same time.
    fn premaster(&self, opened: &[u8], made_up: &[u8; PREMASTER]) -> Vec<u8> {
        let mut padded = [0; PREMASTER];
        let used = opened.len().min(PREMASTER);
        padded[..used].copy_from_slice(&opened[..used]);
        let version = |version: u16| {
            let [major, minor] = version.to_be_bytes();
            differs(padded[0], major) | differs(padded[1], minor)
        };
        let same_length = opened.len() ^ PREMASTER;
        let mut wrong = version(self.client_version);
        // Clients that are wrong about the version, where the program puts up with them.
        if self.negotiated_version != 0 {
            wrong &= version(self.negotiated_version);
        }
        wrong |= differs(same_length.to_le_bytes().into_iter().fold(0, |sum, byte| sum | byte), 0);
        padded.iter().zip(made_up).map(|(right, other)| right & !wrong | other & wrong).collect()
    }
}

/// 0xff where two bytes differ, else 0.
fn differs(one: u8, other: u8) -> u8 {
    let difference = std::hint::black_box(one ^ other);
    ((difference | difference.wrapping_neg()) >> 7).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_differ_or_not() {
        for one in 0..=255 {
            assert_eq!(differs(one, 7), if one == 7 { 0 } else { 0xff });
        }
    }
}
