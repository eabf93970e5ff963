// SPDX-License-Identifier: Apache-2.0
//! The vectors of `testdata/openssl/classics.json` and of files like it: each says its mechanism, the parameter as it lies in
//! memory, and what comes out.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use metaslot_testkit::user_session;
use serde_json::Value;

use crate::cipher::{both_ways, wraps_alike};
use crate::derive::value_is;
use crate::file::{Verdict, hex};

/// Without `.json`, in `testdata`.
const FILES: [&str; 14] = [
    "nist/agreement",
    "nist/ciphers",
    "nist/ike",
    "nist/lms",
    "nist/ml_kem",
    "nist/one_step",
    "nist/tls",
    "nist/x963",
    "openssl/classics",
    "openssl/encapsulation",
    "openssl/groups",
    "openssl/old_ciphers",
    "openssl/tls",
    "rfc/old_ciphers",
];

/// Of these a wrapped key is the ciphertext of its bytes, whatever their length (PKCS#11 3.2 §6.10, §6.12, §6.58, §6.59).
const WRAPPING_STREAMS: [&str; 7] = [
    "CKM_AES_CFB1",
    "CKM_AES_CFB8",
    "CKM_AES_CFB64",
    "CKM_AES_OFB",
    "CKM_AES_CTS",
    "CKM_CHACHA20",
    "CKM_SALSA20",
];

/// Every vector.
pub(crate) fn run() -> Result<()> {
    let (_module, session) = user_session()?;
    FILES.iter().try_for_each(|name| run_file(&session, name))
}

fn run_file(session: &Session, name: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(name);
    let path = path.with_extension("json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).context("read the vectors")?)?;
    let tests = file["tests"].as_array().context("no vectors")?;
    for (at, vector) in tests.iter().enumerate() {
        let verdict = one(session, vector)
            .with_context(|| format!("vector {at}: {}", vector["mechanism"]))?;
        let right = vector["wrong"].is_null();
        ensure!(verdict.is_accepted() == right, "vector {at}: {} {verdict:?}", vector["mechanism"]);
    }
    println!("    {name:<48} {:>5} passed", tests.len());
    Ok(())
}

/// A parameter in memory, and what it points to.
#[derive(Default)]
struct Laid {
    bytes: Vec<u8>,
    others: Vec<Self>,
}

impl Laid {
    fn out(session: &Session, fields: &Value) -> Result<Self> {
        let mut laid = Self::default();
        for field in fields.as_array().context("no parameter")? {
            let word = match field {
                Value::Number(number) => number.as_u64().context("no word")?,
                Value::Array(_) => laid.points_to(Self::out(session, field)?),
                Value::String(text) => {
                    let bytes = hex(&Value::String(text[1..].to_owned()))?;
                    match text.as_bytes()[0] {
                        b'=' => {
                            laid.bytes.extend_from_slice(&bytes);
                            continue;
                        }
                        b'&' => laid.points_to(Self { bytes, others: Vec::new() }),
                        _ => secret(session, CKK_GENERIC_SECRET, &bytes)?.0,
                    }
                }
                _ => bail!("an unknown field"),
            };
            laid.bytes.extend_from_slice(&word.to_ne_bytes());
        }
        Ok(laid)
    }

    fn points_to(&mut self, mut other: Self) -> u64 {
        let at = other.bytes.as_mut_ptr().expose_provenance() as u64;
        self.others.push(other);
        at
    }

    /// What the last pointer points to, where a call may have written.
    fn told(&self) -> Result<&Self> {
        self.others.last().context("nothing is told")
    }
}

fn number(name: &Value) -> Result<u64> {
    let name = name.as_str().context("no name")?;
    let known = [
        ("CKK_GENERIC_SECRET", CKK_GENERIC_SECRET),
        ("CKK_AES", CKK_AES),
        ("CKK_DES2", CKK_DES2),
        ("CKK_DES3", CKK_DES3),
        ("CKK_POLY1305", CKK_POLY1305),
        ("CKK_CHACHA20", CKK_CHACHA20),
        ("CKK_RSA", CKK_RSA),
        ("CKK_EC", CKK_EC),
        ("CKK_EC_MONTGOMERY", CKK_EC_MONTGOMERY),
        ("CKK_DSA", CKK_DSA),
        ("CKK_DH", CKK_DH),
        ("CKK_X9_42_DH", CKK_X9_42_DH),
        ("CKA_KEY_TYPE", CKA_KEY_TYPE),
        ("CKA_PRIME", CKA_PRIME),
        ("CKA_SUBPRIME", CKA_SUBPRIME),
        ("CKA_BASE", CKA_BASE),
        ("CKA_MODULUS", CKA_MODULUS),
        ("CKA_PUBLIC_EXPONENT", CKA_PUBLIC_EXPONENT),
        ("CKA_PRIVATE_EXPONENT", CKA_PRIVATE_EXPONENT),
        ("CKA_PRIME_1", CKA_PRIME_1),
        ("CKA_PRIME_2", CKA_PRIME_2),
        ("CKA_EXPONENT_1", CKA_EXPONENT_1),
        ("CKA_EXPONENT_2", CKA_EXPONENT_2),
        ("CKA_COEFFICIENT", CKA_COEFFICIENT),
        ("CKA_EC_PARAMS", CKA_EC_PARAMS),
        ("CKA_EC_POINT", CKA_EC_POINT),
        ("CKA_PARAMETER_SET", CKA_PARAMETER_SET),
        ("CKA_SEED", CKA_SEED),
        ("CKA_VALUE", CKA_VALUE),
    ];
    let found = known.iter().find(|row| row.0 == name);
    let key_type = || (0..=CKK_SLH_DSA).find(|number| key_type_name(*number) == Some(name));
    found.map(|row| row.1).or_else(key_type).with_context(|| format!("an unknown name: {name}"))
}

/// A readable session key that may do everything.
fn secret(session: &Session, key_type: u64, value: &[u8]) -> Result<ObjectHandle> {
    let template = readable(CKO_SECRET_KEY)
        .key_type(key_type)
        .bool(CKA_SIGN, true)
        .bool(CKA_VERIFY, true)
        .bool(CKA_ENCRYPT, true)
        .bool(CKA_DECRYPT, true)
        .bool(CKA_DERIVE, true)
        .bool(CKA_WRAP, true)
        .bool(CKA_UNWRAP, true)
        .bytes(CKA_VALUE, value);
    Ok(session.create(&template)?)
}

fn readable(class: u64) -> Template {
    Template::new().class(class).token(false).bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true)
}

fn one(session: &Session, vector: &Value) -> Result<Verdict> {
    let name = vector["mechanism"].as_str().context("no mechanism")?;
    let mechanism = mechanism_by_name(name).context("an unknown mechanism")?;
    if vector["does"] == "digest" {
        let digest = session.digest(&mechanism.into(), &hex(&vector["msg"])?);
        return Ok(Verdict::of(digest, &hex(&vector["digest"])?));
    }
    let laid = Laid::out(session, &vector["params"])?;
    let params = match laid.bytes.as_slice() {
        [] => Params::None,
        bytes => Params::Bytes(bytes),
    };
    let mechanism = Mechanism::with(mechanism, params);
    match vector["does"].as_str() {
        Some("unwrap") => return unwrapped(session, &mechanism, vector),
        Some("sign") => return signed(session, &mechanism, vector),
        Some("check") => {
            let public = half(session, CKO_PUBLIC_KEY, &vector["public"])?;
            let (message, signature) = (hex(&vector["msg"])?, hex(&vector["sig"])?);
            let verdict = session.verify(&mechanism, public, &message, &signature);
            session.destroy(public)?;
            return Ok(Verdict::of_check(verdict));
        }
        Some("decapsulate") => return decapsulated(session, &mechanism, vector),
        Some("create") => return created(session, vector),
        Some("wrap") => return wraps(session, &mechanism, vector),
        Some("generate") => return generated(session, &mechanism, &laid, vector),
        _ => {}
    }
    if vector["does"] == "verify" {
        return verified(session, &mechanism, vector);
    }
    let key = match &vector["private"] {
        Value::Null => secret(session, number(&vector["type"])?, &hex(&vector["key"])?)?,
        said => half(session, CKO_PRIVATE_KEY, said)?,
    };
    let verdict = match vector["does"].as_str() {
        Some("derive") => {
            let template = readable(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
            let template = match vector["length"].as_u64() {
                Some(length) => template.ulong(CKA_VALUE_LEN, length),
                None => template,
            };
            let made = session.derive(&mechanism, key, &template);
            if vector["version"].is_string() {
                ensure!(laid.told()?.bytes == hex(&vector["version"])?, "another version");
            }
            value_is(session, made, &hex(&vector["value"])?)
        }
        Some("connection") => connection(session, (&mechanism, &laid), key, vector)?,
        Some("mac") => maced(session, &mechanism, key, vector)?,
        Some("encrypt") if vector["msg"].is_null() => {
            let opened = session.decrypt(&mechanism, key, &hex(&vector["ct"])?);
            Verdict::of_check(opened.map(drop))
        }
        Some("encrypt") => {
            let (message, sealed) = (hex(&vector["msg"])?, hex(&vector["ct"])?);
            if WRAPPING_STREAMS.contains(&name) && !message.is_empty() {
                wraps_alike(session, &mechanism, key, &message, &sealed)?;
            }
            both_ways(session, &mechanism, key, &message, &sealed)
        }
        _ => bail!("an unknown operation"),
    };
    session.destroy(key)?;
    Ok(verdict)
}

/// Verifies a MAC, and makes it in one part and in several.
fn maced(
    session: &Session,
    mechanism: &Mechanism<'_>,
    key: ObjectHandle,
    vector: &Value,
) -> Result<Verdict> {
    let (message, tag) = (hex(&vector["msg"])?, hex(&vector["tag"])?);
    let verified = Verdict::of_check(session.verify(mechanism, key, &message, &tag));
    if !verified.is_accepted() {
        return Ok(verified);
    }
    let signed = Verdict::of(session.sign(mechanism, key, &message), &tag);
    ensure!(signed.is_accepted(), "not signed: {signed:?}");
    session.sign_init(mechanism, key)?;
    for part in message.chunks(message.len() / 3 + 1) {
        session.sign_update(part)?;
    }
    Ok(Verdict::of(session.sign_final(), &tag))
}

/// Makes a key of this value, and writes its IV to where the parameter points first.
fn generated(
    session: &Session,
    mechanism: &Mechanism<'_>,
    laid: &Laid,
    vector: &Value,
) -> Result<Verdict> {
    let made = session.generate_key(mechanism, &readable(CKO_SECRET_KEY))?;
    ensure!(laid.others[0].bytes == hex(&vector["iv"])?, "another IV");
    let verdict = Verdict::of(session.attribute(made, CKA_VALUE), &hex(&vector["value"])?);
    session.destroy(made)?;
    Ok(verdict)
}

/// Signs to these bytes, in one call and in parts, and verifies them.
fn signed(session: &Session, mechanism: &Mechanism<'_>, vector: &Value) -> Result<Verdict> {
    let (message, signature) = (hex(&vector["msg"])?, hex(&vector["sig"])?);
    let (private, public) = halves(session, &vector["private"])?;
    session.verify(mechanism, public, &message, &signature)?;
    ensure!(session.verify(mechanism, public, b"another", &signature).is_err(), "verified");
    ensure!(session.sign(mechanism, private, &message)? == signature, "other bytes");
    session.sign_init(mechanism, private)?;
    message.chunks(2).try_for_each(|part| session.sign_update(part))?;
    Ok(Verdict::of(session.sign_final(), &signature))
}

/// The keys of a connection, whose handles and IVs are where the parameter says.
fn connection(
    session: &Session,
    (mechanism, laid): (&Mechanism<'_>, &Laid),
    master: ObjectHandle,
    vector: &Value,
) -> Result<Verdict> {
    let template = readable(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    if let Err(error) = session.derive(mechanism, master, &template) {
        return Ok(Verdict::Refused(error.to_string()));
    }
    let told = laid.told()?;
    let words = told.bytes.as_chunks().0.iter().take(4);
    let handles: Vec<_> = words.map(|word| ObjectHandle(u64::from_ne_bytes(*word))).collect();
    let said = |of: &Value| of.as_array().cloned().context("no array");
    for (handle, said) in handles.iter().zip(said(&vector["keys"])?) {
        ensure!((handle.0 == 0) == said.is_null(), "{said}: {}", handle.0);
        if handle.0 != 0 {
            ensure!(session.attribute(*handle, CKA_VALUE)? == hex(&said)?, "another key");
            session.destroy(*handle)?;
        }
    }
    for (iv, said) in told.others.iter().zip(said(&vector["ivs"])?) {
        ensure!(said.is_null() || iv.bytes == hex(&said)?, "another IV");
    }
    Ok(Verdict::Accepted)
}

/// A half of a pair as its attributes say it.
fn half(session: &Session, class: u64, said: &Value) -> Result<ObjectHandle> {
    let mut template = match class {
        CKO_PRIVATE_KEY => {
            readable(class).bool(CKA_SIGN, true).bool(CKA_DERIVE, true).bool(CKA_DECAPSULATE, true)
        }
        _ => Template::new()
            .class(class)
            .token(false)
            .bool(CKA_VERIFY, true)
            .bool(CKA_ENCAPSULATE, true),
    };
    for (name, value) in said.as_object().context("no key")? {
        template = match name.as_str() {
            "CKA_KEY_TYPE" => template.key_type(number(value)?),
            name => template.bytes(number(&Value::String(name.to_owned()))?, hex(value)?),
        };
    }
    Ok(session.create(&template)?)
}

/// Is a half taken as a key, and is its value this one?
fn created(session: &Session, vector: &Value) -> Result<Verdict> {
    let (class, said) = match &vector["private"] {
        Value::Null => (CKO_PUBLIC_KEY, &vector["public"]),
        said => (CKO_PRIVATE_KEY, said),
    };
    let value = hex(vector.get("value").unwrap_or_else(|| &said["CKA_VALUE"]))?;
    match half(session, class, said) {
        Ok(key) => {
            let verdict = Verdict::of(session.attribute(key, CKA_VALUE), &value);
            session.destroy(key)?;
            Ok(verdict)
        }
        Err(error) if error.is::<metaslot_client::Error>() => {
            Ok(Verdict::Refused(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Verifies; then signs by the other half and verifies that, and nothing that was changed.
fn verified(session: &Session, mechanism: &Mechanism<'_>, vector: &Value) -> Result<Verdict> {
    let (message, signature) = (hex(&vector["msg"])?, hex(&vector["sig"])?);
    let private = half(session, CKO_PRIVATE_KEY, &vector["private"])?;
    let public = half(session, CKO_PUBLIC_KEY, &vector["public"])?;
    let own = session.sign(mechanism, private, &message)?;
    session.verify(mechanism, public, &message, &own).context("our own")?;
    ensure!(vector["same"] != true || own == signature, "signed otherwise");
    for at in [0, own.len() / 2, own.len() - 1] {
        let mut changed = own.clone();
        changed[at] ^= 4;
        ensure!(session.verify(mechanism, public, &message, &changed).is_err(), "changed at {at}");
    }
    let verdict = session.verify(mechanism, public, &message, &signature);
    [private, public].into_iter().try_for_each(|key| session.destroy(key))?;
    Ok(Verdict::of_check(verdict))
}

/// Opens; then wraps what came out by the other half, and opens that.
fn unwrapped(session: &Session, mechanism: &Mechanism<'_>, vector: &Value) -> Result<Verdict> {
    let wrapped = hex(&vector["wrapped"])?;
    let (private, public) = halves(session, &vector["private"])?;
    let template = readable(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let opened = match session.unwrap(mechanism, private, &wrapped, &template) {
        Ok(opened) => opened,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    if vector["value"].is_null() {
        return Ok(Verdict::Accepted);
    }
    let value = hex(&vector["value"])?;
    let verdict = Verdict::of(session.attribute(opened, CKA_VALUE), &value);
    if !verdict.is_accepted() || vector["sure"].is_null() {
        return Ok(verdict);
    }
    let again = session.wrap(mechanism, public, opened)?;
    ensure!(vector["sure"] != true || again == wrapped, "wrapped to other bytes");
    let twice = session.unwrap(mechanism, private, &again, &template)?;
    let verdict = Verdict::of(session.attribute(twice, CKA_VALUE), &value);
    for at in [0, wrapped.len() / 2, wrapped.len() - 1] {
        let mut changed = wrapped.clone();
        changed[at] ^= 4;
        let opened = session.unwrap(mechanism, private, &changed, &template);
        ensure!(opened.is_err(), "opened although the byte at {at} was changed");
    }
    for length in [0, 1, wrapped.len() - 1, wrapped.len() - 8] {
        let opened = session.unwrap(mechanism, private, &wrapped[..length], &template);
        ensure!(opened.is_err(), "opened although it was cut to {length}");
    }
    Ok(verdict)
}

/// Opens a ciphertext; then encapsulates for the other half, and opens that.
fn decapsulated(session: &Session, mechanism: &Mechanism<'_>, vector: &Value) -> Result<Verdict> {
    let (ciphertext, value) = (hex(&vector["ct"])?, hex(&vector["value"])?);
    let private = half(session, CKO_PRIVATE_KEY, &vector["private"])?;
    let public = half(session, CKO_PUBLIC_KEY, &vector["public"])?;
    let template = readable(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let said = match vector["length"].as_u64() {
        Some(length) => template.clone().ulong(CKA_VALUE_LEN, length),
        None => template.clone(),
    };
    let opened = session.decapsulate(mechanism, private, &ciphertext, &said);
    let verdict = value_is(session, opened, &value);
    if verdict.is_accepted() {
        let said = template.ulong(CKA_VALUE_LEN, value.len() as u64);
        let (sealed, own) = session.encapsulate(mechanism, public, &said)?;
        let value = session.attribute(own, CKA_VALUE)?;
        let opened = session.decapsulate(mechanism, private, &sealed, &said);
        ensure!(value_is(session, opened, &value).is_accepted(), "our own opens otherwise");
        let (again, other) = session.encapsulate(mechanism, public, &said)?;
        ensure!(again != sealed && session.attribute(other, CKA_VALUE)? != value, "it comes twice");
        [own, other].into_iter().try_for_each(|key| session.destroy(key))?;
    }
    [private, public].into_iter().try_for_each(|key| session.destroy(key))?;
    Ok(verdict)
}

/// Wraps a secret key to these bytes, padded with zeros; what comes back is as long as its type or its template says. Private keys
/// are not wrapped so (PKCS#11 3.2 §6.10.4).
fn wraps(session: &Session, mechanism: &Mechanism<'_>, vector: &Value) -> Result<Verdict> {
    let (value, wrapped) = (hex(&vector["value"])?, hex(&vector["wrapped"])?);
    let by = secret(session, number(&vector["type"])?, &hex(&vector["key"])?)?;
    let plain = readable(CKO_SECRET_KEY).key_type(number(&vector["as"])?);
    let key = session.create(&plain.clone().bytes(CKA_VALUE, value.clone()))?;
    let verdict = Verdict::of(session.wrap(mechanism, by, key), &wrapped);
    let said = plain.clone().ulong(CKA_VALUE_LEN, value.len() as u64);
    let always = matches!(vector["as"].as_str(), Some("CKK_DES3" | "CKK_SEED"));
    for template in [Some(said), always.then_some(plain.clone())].into_iter().flatten() {
        let opened = session.unwrap(mechanism, by, &wrapped, &template)?;
        ensure!(session.attribute(opened, CKA_VALUE)? == value, "opened otherwise");
        session.destroy(opened)?;
    }
    for length in [0, wrapped.len() - 1] {
        let opened = session.unwrap(mechanism, by, &wrapped[..length], &plain);
        ensure!(opened.is_err(), "opened although it was cut to {length}");
    }
    // Its encoding has 48 bytes, which are whole blocks of every cipher.
    let ed25519 = Template::new().bytes(CKA_EC_PARAMS, [6, 3, 0x2b, 0x65, 0x70]).token(false);
    let halves = readable(CKO_PRIVATE_KEY).bool(CKA_SIGN, true);
    let made = session.generate_key_pair(&CKM_EC_EDWARDS_KEY_PAIR_GEN.into(), &ed25519, &halves)?;
    let refused = session.wrap(mechanism, by, made.1).err().map(|error| error.code);
    ensure!(refused == Some(Error::KEY_NOT_WRAPPABLE), "a private key: {refused:?}");
    let half = readable(CKO_PRIVATE_KEY).key_type(CKK_EC_EDWARDS);
    let refused = session.unwrap(mechanism, by, &wrapped, &half).err().map(|error| error.code);
    ensure!(refused == Some(Error::TEMPLATE_INCONSISTENT), "into one: {refused:?}");
    [by, key, made.0, made.1].into_iter().try_for_each(|key| session.destroy(key))?;
    Ok(verdict)
}

/// What unwraps and what wraps: two halves, or one key.
fn halves(session: &Session, said: &Value) -> Result<(ObjectHandle, ObjectHandle)> {
    let said = said.as_object().context("no key")?;
    let key_type = number(said.get("CKA_KEY_TYPE").context("no type")?)?;
    if key_type == CKK_AES {
        let key = secret(session, key_type, &hex(&said["CKA_VALUE"])?)?;
        return Ok((key, key));
    }
    let mut private = readable(CKO_PRIVATE_KEY).key_type(key_type).bool(CKA_UNWRAP, true);
    private = private.bool(CKA_SIGN, true);
    let mut public =
        Template::new().class(CKO_PUBLIC_KEY).token(false).key_type(key_type).bool(CKA_WRAP, true);
    public = public.bool(CKA_VERIFY, true);
    for (name, value) in said {
        match name.as_str() {
            "CKA_KEY_TYPE" => {}
            "point" => public = public.bytes(CKA_EC_POINT, hex(value)?),
            name => {
                let attribute = number(&Value::String(name.to_owned()))?;
                private = private.bytes(attribute, hex(value)?);
                if matches!(attribute, CKA_MODULUS | CKA_PUBLIC_EXPONENT | CKA_EC_PARAMS) {
                    public = public.bytes(attribute, hex(value)?);
                }
            }
        }
    }
    Ok((session.create(&private)?, session.create(&public)?))
}

/// The public half of a private key shows what the one that was made with it shows.
pub(crate) fn public_halves() -> Result<()> {
    let (_module, session) = user_session()?;
    let p256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let rsa = Template::new().ulong(CKA_MODULUS_BITS, 2048).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
    for (by, template) in [
        (CKM_RSA_PKCS_KEY_PAIR_GEN, rsa),
        (CKM_EC_KEY_PAIR_GEN, Template::new().bytes(CKA_EC_PARAMS, p256)),
        (
            CKM_EC_EDWARDS_KEY_PAIR_GEN,
            Template::new().bytes(CKA_EC_PARAMS, [6, 3, 0x2b, 0x65, 0x70]),
        ),
        (CKM_ML_DSA_KEY_PAIR_GEN, Template::new().ulong(CKA_PARAMETER_SET, CKP_ML_DSA_44)),
    ] {
        let private = Template::new().token(false).bool(CKA_SENSITIVE, true);
        let (public, private) =
            session.generate_key_pair(&by.into(), &template.token(false), &private)?;
        let template = Template::new().class(CKO_PUBLIC_KEY).token(false).bool(CKA_VERIFY, true);
        let made = session.derive(&CKM_PUB_KEY_FROM_PRIV_KEY.into(), private, &template)?;
        let shown = |key| session.attribute(key, CKA_PUBLIC_KEY_INFO);
        ensure!(shown(made)? == shown(public)?, "{by:#x}: another key");
        let wrong = Template::new().class(CKO_SECRET_KEY).token(false);
        let refused = session.derive(&CKM_PUB_KEY_FROM_PRIV_KEY.into(), private, &wrong);
        ensure!(refused.is_err(), "{by:#x}: a secret key came out");
        ensure!(
            session.derive(&CKM_PUB_KEY_FROM_PRIV_KEY.into(), public, &template).is_err(),
            "{by:#x}: of a public key"
        );
    }
    Ok(())
}
