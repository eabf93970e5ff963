// SPDX-License-Identifier: Apache-2.0
//! `C_GenerateKey` and `C_GenerateKeyPair` (PKCS#11 3.2 §5.18.1, §5.18.2).

use super::home::asks_for_token;
use super::set_parity;
use crate::engine::Engine;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_rules::Purposes;
use metaslot_rules::{self as rules, Birth, Origin};
use metaslot_spi::key_info::EcParams;
use metaslot_spi::{Params, Template, Value};

impl Engine {
    /// `C_GenerateKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.1 names them.
    pub fn generate_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let approved = token.policy().approving(mechanism, CKF_GENERATE, None)?;
        if let Some(home) = token.home.filter(|_| asks_for_token(&template)) {
            let chosen = (mechanism, params);
            let made = self.generate_at_home(&session, token, home, chosen, template)?;
            session.recent.completes(approved);
            return Ok(made);
        }
        let (count, algorithm) = self.route(mechanism, |row| row.generate)?;
        let class = MechanismRow::class_made(mechanism);
        let template = rules::generated_template(mechanism, class, template, token.login_state())?;
        token.policy().making(&template, true)?;
        let purposes = Purposes::at_birth(&template, class);
        let birth = Birth::new(Origin::Generated(mechanism), purposes, token.login_state());
        let watch = metaslot_counters::begin();
        let made = algorithm.generate(&params, &template).and_then(|mut made| {
            made.attributes
                .set(CKA_KEY_TYPE, template.get(CKA_KEY_TYPE).cloned().unwrap_or(Value::Ulong(0)));
            if let Some(value) = made.secrets.get_mut(CKA_VALUE) {
                set_parity(template.ulong(CKA_KEY_TYPE), value);
            }
            if mechanism == CKM_PKCS5_PBKD2 {
                // Alone it makes keys of a type that the caller chooses.
                made.attributes.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
                self.complete(&mut made)?;
            }
            let made = rules::complete(birth, class, template, made)?;
            let length = made.secrets.get(CKA_VALUE).map_or(0, <[u8]>::len);
            token.policy().generated(&made.attributes, length).map(|()| made)
        });
        count.done(0, made.is_ok(), watch);
        let handles = self.add(&mut session, vec![made.map_err(size)?])?;
        session.recent.completes(approved);
        Ok(handles[0])
    }

    /// `C_GenerateKeyPair`: the public key's handle first.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.2 names them.
    pub fn generate_key_pair(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        public: Template,
        private: Template,
    ) -> Result<(ObjectHandle, ObjectHandle)> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let approved = token.policy().approving(mechanism, CKF_GENERATE_KEY_PAIR, None)?;
        if let Some(home) = token.home.filter(|_| asks_for_token(&private)) {
            let (chosen, halves) = ((mechanism, params), (public, private));
            let made = self.generate_pair_at_home(&session, token, home, chosen, halves)?;
            session.recent.completes(approved);
            return Ok(made);
        }
        self.route(mechanism, |row| row.generate_pair)?;
        let login = token.login_state();
        let public = rules::generated_template(mechanism, CKO_PUBLIC_KEY, public, login)?;
        public.bytes(CKA_EC_PARAMS).map_or(Ok(()), |params| EcParams::parse(params).map(drop))?;
        token.policy().making(&public, true)?;
        let (count, algorithm) = self
            .route(mechanism, |row| row.generate_pair.filter(|algorithm| algorithm.serves(&public)))
            .map_err(|_| Error::CURVE_NOT_SUPPORTED)?;
        let private = rules::generated_template(mechanism, CKO_PRIVATE_KEY, private, login)?;
        rules::of_one_kind(&public, &private)?;
        token.policy().making(&private, true)?;
        let purposes = Purposes::of_pair(&public, &private);
        let birth = Birth::new(Origin::Generated(mechanism), purposes, login);
        let watch = metaslot_counters::begin();
        let made = algorithm.generate_halves(&params, &public, &private);
        count.done(0, made.is_ok(), watch);
        let (first, second) = made.map_err(size)?;
        let mut first = rules::complete(birth, CKO_PUBLIC_KEY, public, first)?;
        let second = rules::complete(birth, CKO_PRIVATE_KEY, private, second)?;
        rules::seal_as(&mut first, &second);
        let handles = self.add(&mut session, vec![first, second])?;
        session.recent.completes(approved);
        Ok((handles[0], handles[1]))
    }
}

/// These functions name a size that cannot be by the attribute that says it.
fn size(error: Error) -> Error {
    if error == Error::KEY_SIZE_RANGE { Error::ATTRIBUTE_VALUE_INVALID } else { error }
}
