// SPDX-License-Identifier: Apache-2.0
//! A user of a token, and what its templates and parameters are.

use metaslot_ck::*;
use metaslot_engine::{Answer, Engine, Policy};
use metaslot_models::{aes, collect, logged_in_under, row};
use metaslot_spi::{Bytes, Params, RawValue, Template, Value};

pub(crate) type TemplateRow = (CK_ATTRIBUTE_TYPE, RawValue);

/// A logged-in user's session.
pub(crate) struct User {
    pub(crate) engine: Engine,
    pub(crate) session: SessionHandle,
}

impl User {
    pub(crate) fn under(policy: Policy) -> Self {
        let (engine, session) = logged_in_under(policy);
        Self { engine, session }
    }

    pub(crate) fn aes(&self, template: Template) -> Result<ObjectHandle> {
        aes(&self.engine, self.session, template)
    }

    pub(crate) fn generic(&self, template: Template) -> Result<ObjectHandle> {
        let mut all = vec![row(CKA_VALUE_LEN, 32)];
        all.extend(template);
        let mechanism = CKM_GENERIC_SECRET_KEY_GEN;
        self.engine.generate_key(self.session, mechanism, Params::None, all)
    }

    pub(crate) fn brought(
        &self,
        key_type: u64,
        value: &[u8],
        more: Template,
    ) -> Result<ObjectHandle> {
        let mut template = secret(key_type);
        template.push(row(CKA_VALUE, value));
        template.extend(more);
        self.engine.create_object(self.session, template)
    }

    pub(crate) fn rsa(
        &self,
        public: Template,
        private: Template,
    ) -> Result<(ObjectHandle, ObjectHandle)> {
        let mut all = vec![row(CKA_MODULUS_BITS, 2048)];
        all.extend(public);
        let mechanism = CKM_RSA_PKCS_KEY_PAIR_GEN;
        self.engine.generate_key_pair(self.session, mechanism, Params::None, all, private)
    }

    pub(crate) fn p256(&self, private: Template) -> Result<(ObjectHandle, ObjectHandle)> {
        let (mechanism, public) = (CKM_EC_KEY_PAIR_GEN, vec![row(CKA_EC_PARAMS, &P256[..])]);
        self.engine.generate_key_pair(self.session, mechanism, Params::None, public, private)
    }

    pub(crate) fn wrap(
        &self,
        (mechanism, params): (u64, impl Fn() -> Params),
        by: ObjectHandle,
        key: ObjectHandle,
    ) -> Result<Vec<u8>> {
        collect(|out| self.engine.wrap_key(self.session, mechanism, params(), by, key, out))
    }

    pub(crate) fn unwrap(
        &self,
        (mechanism, params): (u64, impl Fn() -> Params),
        by: ObjectHandle,
        wrapped: &[u8],
        template: Template,
    ) -> Result<ObjectHandle> {
        self.engine.unwrap_key(self.session, mechanism, params(), by, wrapped, template)
    }

    pub(crate) fn derive(
        &self,
        params: Params,
        base: ObjectHandle,
        more: Template,
    ) -> Result<ObjectHandle> {
        let mut template = secret(CKK_GENERIC_SECRET);
        template.push(row(CKA_VALUE_LEN, 32));
        template.extend(more);
        let derived = self.engine.derive_key(self.session, CKM_HKDF_DERIVE, params, base, template);
        derived.map(|keys| keys.0)
    }

    pub(crate) fn sign(
        &self,
        mechanism: u64,
        params: Params,
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.engine.sign_init(self.session, mechanism, params, key)?;
        collect(|out| self.engine.sign(self.session, data, out))
    }

    pub(crate) fn hmac(&self, key: ObjectHandle, data: &[u8]) -> Result<Vec<u8>> {
        self.sign(CKM_SHA256_HMAC, Params::None, key, data)
    }

    pub(crate) fn cipher(
        &self,
        direction: metaslot_spi::provider::Direction,
        (mechanism, params): (u64, impl Fn() -> Params),
        key: ObjectHandle,
        data: &[u8],
    ) -> Result<Vec<u8>> {
        self.engine.cipher_init(direction, self.session, mechanism, params(), key)?;
        collect(|out| self.engine.cipher(direction, self.session, data, out))
    }

    pub(crate) fn bool(&self, object: ObjectHandle, attribute: u64) -> bool {
        let object = self.engine.object(self.session, object).expect("it is there");
        matches!(object.answer(attribute), Ok(Answer::Value(Value::Bool(true))))
    }

    pub(crate) fn found(&self, label: &str) -> Result<ObjectHandle> {
        self.engine.find_init(self.session, vec![row(CKA_LABEL, label)])?;
        let found = self.engine.find(self.session, 1);
        self.engine.find_final(self.session)?;
        found?.first().copied().ok_or(Error::OBJECT_HANDLE_INVALID)
    }

    /// The SO trusts the public object of this label, whose handle may be another then.
    pub(crate) fn trusts(&self, label: &str) -> Result<ObjectHandle> {
        self.engine.logout(self.session)?;
        self.engine.login(self.session, CKU_SO, b"so-pin")?;
        self.engine.set_attributes(self.session, self.found(label)?, vec![on(CKA_TRUSTED)])?;
        self.engine.logout(self.session)?;
        self.engine.login(self.session, CKU_USER, b"user-pin")?;
        self.found(label)
    }

    pub(crate) fn value(&self, object: ObjectHandle) -> Result<Vec<u8>> {
        match self.engine.object(self.session, object)?.answer(CKA_VALUE)? {
            Answer::Secret(value) => Ok(value.to_vec()),
            Answer::Value(_) => Err(Error::GENERAL_ERROR),
        }
    }
}

pub(crate) fn secret(key_type: u64) -> Template {
    vec![row(CKA_CLASS, CKO_SECRET_KEY), row(CKA_KEY_TYPE, key_type)]
}

pub(crate) const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
pub(crate) const KW: (u64, fn() -> Params) = (CKM_AES_KEY_WRAP, || Params::None);
pub(crate) const KWP: (u64, fn() -> Params) = (CKM_AES_KEY_WRAP_KWP, || Params::None);
pub(crate) const CBC_PAD: (u64, fn() -> Params) =
    (CKM_AES_CBC_PAD, || Params::Iv(Bytes::from_slice(&[0; 16])));
pub(crate) const CTR: (u64, fn() -> Params) =
    (CKM_AES_CTR, || Params::Ctr { bits: 32, block: [0; 16] });
/// GCM under an IV of the caller's.
pub(crate) const GCM: (u64, fn() -> Params) = (CKM_AES_GCM, || gcm(&[7; 12]));
/// GCM under an IV of the token's.
pub(crate) const BOUND: (u64, fn() -> Params) = (CKM_AES_GCM, || gcm(&[]));
pub(crate) const OAEP: (u64, fn() -> Params) = (CKM_RSA_PKCS_OAEP, || Params::Oaep {
    hash: CKM_SHA256,
    mgf: CKG_MGF1_SHA256,
    label: Bytes::new(),
});

pub(crate) fn gcm(iv: &[u8]) -> Params {
    Params::Gcm { iv: Bytes::from_slice(iv), aad: Bytes::from_slice(b"aad"), tag_bits: 128 }
}

pub(crate) fn hkdf(extract: bool, expand: bool) -> Params {
    salted(extract, expand, ObjectHandle(0))
}

pub(crate) fn salted(extract: bool, expand: bool, salt_key: ObjectHandle) -> Params {
    let salt_type = if salt_key.0 == 0 { CKF_HKDF_SALT_NULL } else { CKF_HKDF_SALT_KEY };
    Params::Hkdf {
        extract,
        expand,
        prf: CKM_SHA256,
        salt_type,
        salt: Bytes::new(),
        salt_key,
        info: Bytes::from_slice(b"info"),
    }
}

pub(crate) fn on(usage: CK_ATTRIBUTE_TYPE) -> TemplateRow {
    row(usage, true)
}

pub(crate) fn transport() -> Template {
    vec![on(CKA_WRAP), on(CKA_UNWRAP)]
}

pub(crate) fn target() -> Template {
    vec![on(CKA_SENSITIVE), on(CKA_EXTRACTABLE)]
}

pub(crate) fn readable() -> Template {
    vec![row(CKA_SENSITIVE, false), on(CKA_EXTRACTABLE)]
}
