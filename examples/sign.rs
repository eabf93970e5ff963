// SPDX-License-Identifier: Apache-2.0
//! Finds a key by its URI and signs with it; makes an AES key and seals with that. With the `cryptoki` crate:
//!
//! ```text
//! metaslot key generate --label site
//! cargo run -p metaslot-testkit --example sign -- \
//!     /usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so 'pkcs11:token=web;object=site' pin-file
//! ```

use anyhow::{Context, Result, ensure};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;

/// What a PKCS#11 URI (RFC 7512) says under a name.
fn said(uri: &str, name: &str) -> Result<String> {
    let path = uri.trim_start_matches("pkcs11:").split('?').next().unwrap_or_default();
    let pairs = path.split(';').filter_map(|part| part.split_once('='));
    let value = pairs.into_iter().find(|pair| pair.0 == name).map(|pair| pair.1);
    let mut parts = value.with_context(|| format!("the URI says no {name}"))?.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).context("a % without digits")?;
        bytes.push(u8::from_str_radix(digits, 16)?);
        bytes.extend(rest.as_bytes());
    }
    Ok(String::from_utf8(bytes)?)
}

fn find(session: &Session, class: ObjectClass, label: &str) -> Result<ObjectHandle> {
    let label = Attribute::Label(label.into());
    let found = session.find_objects(&[Attribute::Class(class), label])?;
    ensure!(found.len() == 1, "{} keys match", found.len());
    Ok(found[0])
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, module, uri, pin_file] = &arguments[..] else {
        anyhow::bail!("usage: sign MODULE URI PIN-FILE");
    };
    let (token, label) = (said(uri, "token")?, said(uri, "object")?);
    let module = Pkcs11::new(module)?;
    module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))?;
    let is_it = |slot: &_| module.get_token_info(*slot).is_ok_and(|info| info.label() == token);
    let slots = module.get_slots_with_initialized_token()?;
    let slot = slots.into_iter().find(is_it).context("no token is called so")?;
    let session = module.open_ro_session(slot)?;
    let pin = std::fs::read_to_string(pin_file)?.trim_end().to_owned();
    session.login(UserType::User, Some(&AuthPin::new(pin.into())))?;

    let private = find(&session, ObjectClass::PRIVATE_KEY, &label)?;
    let signature = session.sign(&Mechanism::EcdsaSha256, private, b"message")?;
    let public = find(&session, ObjectClass::PUBLIC_KEY, &label)?;
    session.verify(&Mechanism::EcdsaSha256, public, b"message", &signature)?;
    let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("signature: {digits}");

    // A session object: it is gone when the program ends.
    let template = [Attribute::Token(false), Attribute::ValueLen(32.into())];
    let key = session.generate_key(&Mechanism::AesKeyGen, &template)?;
    let mut nonce = session.generate_random_vec(12)?;
    let gcm = Mechanism::AesGcm(GcmParams::new(&mut nonce, b"", 128.into())?);
    let sealed = session.encrypt(&gcm, key, b"secret")?;
    ensure!(session.decrypt(&gcm, key, &sealed)? == b"secret", "not what was sealed");
    println!("{} bytes sealed and opened", sealed.len());
    Ok(())
}
