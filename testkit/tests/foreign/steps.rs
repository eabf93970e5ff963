// SPDX-License-Identifier: Apache-2.0
//! What every other module is to do behind ours, one step after another in one process.

use super::modules::Other;
use super::*;
use metaslot_client::{Mechanism, Params, Value};
use std::process::Command;
use std::time::Instant;

const DATA: &[u8] = &[6; 32];

/// One module's token.
struct Steps<'a> {
    module: &'a Module,
    other: &'a Other,
    slot: SlotId,
    session: Session,
}

pub(super) fn all(other: &Other) -> Result<()> {
    let module = &started()?;
    let slot = slot(module, other.label)?;
    let session = module.open_session(slot, Access::ReadWrite)?;
    let steps = Steps { module, other, slot, session };
    let step = |name: &str, step: &dyn Fn() -> Result<()>| {
        let begin = Instant::now();
        let done = step().with_context(|| {
            format!("{}, {name}: {}", other.name, module.detail().unwrap_or_default())
        });
        println!("    {}, {name}: {:.2} s", other.name, begin.elapsed().as_secs_f64());
        done
    };
    step("slot", &|| steps.is_a_slot())?;
    step("login", &|| steps.logs_in())?;
    step("RSA", &|| steps.signs_by_rsa())?;
    step("curves", &|| steps.signs_by_a_curve())?;
    step("AES", &|| steps.encrypts())?;
    step("objects", &|| steps.finds_and_changes())?;
    step("wrong PIN", &|| steps.refuses_another_pin())?;
    step("daemons", &|| steps.comes_back())?;
    Ok(())
}

impl Steps<'_> {
    fn is_a_slot(&self) -> Result<()> {
        ensure!(self.slot.0 > 0, "ours comes first");
        let info = self.module.token_info(self.slot)?;
        ensure!(info.manufacturer == self.other.manufacturer, "{}", info.manufacturer);
        ensure!(info.has(CKF_TOKEN_INITIALIZED | CKF_LOGIN_REQUIRED), "{:#x}", info.flags);
        ensure!(info.has(CKF_PROTECTED_AUTHENTICATION_PATH), "its PIN is configured");
        let description = self.module.slot_info(self.slot)?.description;
        ensure!(description.starts_with(self.other.name), "{description:?}");
        let mechanisms = self.module.mechanisms(self.slot)?;
        for one in self.other.lists {
            ensure!(mechanisms.contains(one), "{one:#x} is not listed: {mechanisms:x?}");
            let candidates = self.module.candidates(*one).context("candidates")?;
            let named = candidates.iter().any(|row| row.provider == self.other.name);
            ensure!(named, "{one:#x}: {candidates:?}");
        }
        Ok(())
    }

    fn logs_in(&self) -> Result<()> {
        self.session.login(User::User, USER_PIN.as_bytes())?;
        self.session.logout()?;
        Ok(self.session.login_protected(User::User)?)
    }

    /// A TPM's module does not get over it: what it had loaded stays loaded.
    fn refuses_another_pin(&self) -> Result<()> {
        self.session.logout()?;
        let wrong = self.session.login(User::User, b"999999");
        fails_with(wrong, Error::PIN_INCORRECT)?;
        let low = self.module.token_info(self.slot)?.has(CKF_USER_PIN_COUNT_LOW);
        ensure!(low == self.other.counts_pins, "the token counts: {low}");
        Ok(self.session.login_protected(User::User)?)
    }

    /// What a key is for that does not say it, each module decides.
    fn signing_pair(&self, label: &str) -> Result<(ObjectHandle, ObjectHandle)> {
        let common = || Template::new().token(true).label(label);
        let public = common().ulong(CKA_MODULUS_BITS, 2048).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let (public, private) = (public.bool(CKA_VERIFY, true), common().bool(CKA_SIGN, true));
        let mechanism = &CKM_RSA_PKCS_KEY_PAIR_GEN.into();
        Ok(self.session.generate_key_pair(mechanism, &public, &private)?)
    }

    fn signs_by_rsa(&self) -> Result<()> {
        let pair = self.signing_pair("rsa")?;
        self.other.signs.iter().try_for_each(|number| self.signs(*number, pair))
    }

    fn signs_by_a_curve(&self) -> Result<()> {
        if !self.other.has_curves {
            return Ok(());
        }
        let common = || Template::new().token(true).label("ec");
        let public = common().bytes(CKA_EC_PARAMS, softhsm::P256).bool(CKA_VERIFY, true);
        let private = common().bool(CKA_SIGN, true);
        let mechanism = &CKM_EC_KEY_PAIR_GEN.into();
        let pair = self.session.generate_key_pair(mechanism, &public, &private)?;
        self.signs(CKM_ECDSA, pair)
    }

    /// Who verifies is the module, and our own token.
    fn signs(&self, number: CK_MECHANISM_TYPE, pair: (ObjectHandle, ObjectHandle)) -> Result<()> {
        let (mechanism, session) = (&number.into(), &self.session);
        let signature = session.sign(mechanism, pair.1, DATA)?;
        let (ours, public) = softhsm::ours(self.module, session, pair.0)?;
        ours.verify(mechanism, public, DATA, &signature)?;
        session.verify(mechanism, pair.0, DATA, &signature)?;
        let wrong = session.verify(mechanism, pair.0, &[7; 32], &signature);
        fails_with(wrong, Error::SIGNATURE_INVALID).with_context(|| format!("{number:#x}"))
    }

    fn encrypts(&self) -> Result<()> {
        if self.other.ciphers.is_empty() {
            return Ok(());
        }
        let template = Template::new().token(true).label("aes").ulong(CKA_VALUE_LEN, 32);
        let template = template.bool(CKA_ENCRYPT, true).bool(CKA_DECRYPT, true);
        let aes = self.session.generate_key(&CKM_AES_KEY_GEN.into(), &template)?;
        for number in self.other.ciphers {
            let mechanism = Mechanism::with(*number, Params::Bytes(&[9; 16]));
            let sealed = self.session.encrypt(&mechanism, aes, DATA)?;
            let padded = if *number == CKM_AES_CBC_PAD { 48 } else { 32 };
            ensure!(sealed.len() == padded && sealed != DATA, "{number:#x}: {sealed:x?}");
            ensure!(self.session.decrypt(&mechanism, aes, &sealed)? == DATA, "{number:#x}");
            self.session.encrypt_init(&mechanism, aes)?;
            let mut parts = Vec::new();
            // NSS takes whole blocks only where nothing is padded.
            for part in DATA.chunks(if padded == 48 { 11 } else { 16 }) {
                parts.extend(self.session.encrypt_update(part)?);
            }
            parts.extend(self.session.encrypt_final()?);
            ensure!(parts == sealed, "{number:#x} in parts");
        }
        Ok(())
    }

    fn finds_and_changes(&self) -> Result<()> {
        let session = &self.session;
        let find = |label: &str| session.find(&Template::new().label(label));
        ensure!(find("rsa")?.len() == 2, "both halves: {:?}", find("rsa")?);
        let class = Template::new().class(CKO_PRIVATE_KEY).label("rsa");
        let [private] = session.find(&class)?[..] else { anyhow::bail!("not one private key") };
        ensure!(session.attribute_bool(private, CKA_SENSITIVE)?, "it is sensitive");
        ensure!(session.attribute_bool(private, CKA_PRIVATE)?, "it is private");
        ensure!(!session.attribute_bool(private, CKA_EXTRACTABLE)?, "it stays");
        fails_with(session.attribute(private, CKA_PRIME_1), Error::ATTRIBUTE_SENSITIVE)?;
        session.set_attribute(private, CKA_LABEL, Value::Bytes(b"second".to_vec()))?;
        ensure!(find("second")? == [private], "the new label");
        session.destroy(private)?;
        ensure!(find("second")?.is_empty(), "it is destroyed");
        let gone = session.sign_init(&CKM_RSA_PKCS.into(), private);
        fails_with(gone, Error::KEY_HANDLE_INVALID)
    }

    /// Its daemons die and are started again: sessions, the login and the key are there without a word from us.
    fn comes_back(&self) -> Result<()> {
        if self.other.daemons.is_empty() {
            return Ok(());
        }
        let (public, private) = self.signing_pair("kept")?;
        let mechanism = &CKM_RSA_PKCS.into();
        let home = std::env::var("HOME")?;
        let mine = self.module.open_session(SlotId(0), Access::ReadOnly)?;
        for _ in 0..3 {
            let numbers = std::fs::read_to_string(format!("{home}/daemons.pid"))?;
            let kill = Command::new("kill").arg("-9").args(numbers.split_whitespace()).status()?;
            ensure!(kill.success(), "no daemons");
            // Whether it works meanwhile is the module's affair; our own token does.
            self.session.sign(mechanism, private, DATA).ok();
            ensure!(mine.random(&mut [0; 8]).is_ok(), "ours");
            let script = format!("{home}/daemons.sh");
            ensure!(Command::new("sh").args(["-eu", &script]).status()?.success(), "no daemons");
            let signature = self.session.sign(mechanism, private, DATA)?;
            self.session.verify(mechanism, public, DATA, &signature)?;
        }
        Ok(())
    }
}
