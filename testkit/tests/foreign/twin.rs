// SPDX-License-Identifier: Apache-2.0
//! Metaslot behind Metaslot: what a token of every mechanism does by its keys, we pass on, and what we compute beside it is the same.

use super::*;
use metaslot_client::{KdfParam, Mechanism, Params};

/// The label of the other one's token.
pub(super) const TWIN: &str = "twin";

/// A copy of our module behind ours, with a token under the policy `legacy`: it is as another module is.
pub(super) fn prepared(token: &mut TestToken, more: &str) -> Result<()> {
    compiled(token, "twin.c", "twin.so", "-shared -fPIC -ldl")?;
    std::fs::copy(token.module(), token.path("copy.so"))?;
    let home = token.home().display().to_string();
    let conf = format!(
        "[[token]]\npath = \"{home}/twin.db\"\npolicy = \"legacy\"\nkdf = \"weak-for-tests\"\n"
    );
    let conf = token.write("twin.toml", conf)?;
    let tool = || token.pkcs11_tool().env("METASLOT_CONF", &conf);
    tool()
        .args(["--init-token", "--slot-index", "0", "--label", TWIN, "--so-pin", SO_PIN])
        .run()?;
    tool()
        .args(["--token-label", TWIN, "--login", "--login-type", "so", "--so-pin", SO_PIN])
        .args(["--init-pin", "--pin", USER_PIN])
        .run()?;
    token.set("TWIN_MODULE", token.path("copy.so"));
    token.set("TWIN_CONF", conf);
    configure(token, &format!("name = \"twin\"\nmodule = \"{home}/twin.so\"\n{more}"))
}

/// Runs `work` in a process of its own, with sessions of the user in the twin's token and in ours.
pub(super) fn twin(
    what: &str,
    name: &str,
    more: &str,
    work: impl FnOnce(&Session, &Session) -> Result<()>,
) {
    apart(
        CLIENT,
        what,
        name,
        |token| prepared(token, more),
        || {
            let module = started()?;
            let open = |label| {
                let session = module.open_session(slot(&module, label)?, Access::ReadWrite)?;
                session.login(User::User, USER_PIN.as_bytes())?;
                anyhow::Ok(session)
            };
            work(&open(TWIN)?, &open("testing")?)
        },
    );
}

/// A pair in a session's token, of a mechanism and a parameter set.
pub(super) fn pair(
    session: &Session,
    mechanism: CK_MECHANISM_TYPE,
    set: CK_ULONG,
) -> Result<(ObjectHandle, ObjectHandle)> {
    let public = Template::new().token(true).ulong(CKA_PARAMETER_SET, set);
    Ok(session.generate_key_pair(&mechanism.into(), &public, &Template::new().token(true))?)
}

/// A session key of ours with the public value of a pair.
fn public(twin: &Session, key: ObjectHandle, ours: &Session) -> Result<ObjectHandle> {
    let kind = twin.attribute_ulong(key, CKA_KEY_TYPE)?;
    let template = Template::new().class(CKO_PUBLIC_KEY).key_type(kind).token(false);
    let template = template.ulong(CKA_PARAMETER_SET, twin.attribute_ulong(key, CKA_PARAMETER_SET)?);
    Ok(ours.create(&template.bytes(CKA_VALUE, twin.attribute(key, CKA_VALUE)?))?)
}

/// One value as a session key of ours and as a key of the twin's token.
pub(super) fn same(
    twin: &Session,
    ours: &Session,
    kind: CK_KEY_TYPE,
    length: usize,
    usages: &[CK_ATTRIBUTE_TYPE],
) -> Result<[ObjectHandle; 2]> {
    let value: Vec<u8> = (1..).step_by(7).map(|n: u32| n.to_le_bytes()[0]).take(length).collect();
    let template = Template::new().class(CKO_SECRET_KEY).key_type(kind).bytes(CKA_VALUE, value);
    let template = template.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
    let template = usages.iter().fold(template, |all, usage| all.bool(*usage, true));
    Ok([twin.create(&template.clone().token(true))?, ours.create(&template.token(false))?])
}

#[test]
fn signatures_of_every_length_are_right() {
    let name = "twin::signatures_of_every_length_are_right";
    twin("signatures of its keys", name, "", |twin, ours| {
        let context = Params::SignContext { hedge: CKH_HEDGE_PREFERRED, context: b"context" };
        let digest =
            Params::HashSignContext { hedge: CKH_HEDGE_PREFERRED, context: b"", hash: CKM_SHA256 };
        let signs = |make, set, plain, hashed: &[CK_MECHANISM_TYPE], length: usize| {
            let (its_public, private) = pair(twin, make, set)?;
            let public = public(twin, its_public, ours)?;
            let mut all = vec![Mechanism::new(plain), Mechanism::with(plain, context)];
            all.push(Mechanism::with(hashed[0], digest));
            all.extend(hashed[1..].iter().map(|number| Mechanism::with(*number, context)));
            for mechanism in &all {
                let data = &[7; 32];
                let signature = twin.sign(mechanism, private, data)?;
                ensure!(signature.len() == length, "{} bytes of {set}", signature.len());
                ours.verify(mechanism, public, data, &signature)?;
                twin.verify(mechanism, its_public, data, &signature)?;
                let wrong = ours.verify(mechanism, public, &[8; 32], &signature);
                fails_with(wrong, Error::SIGNATURE_INVALID)?;
            }
            twin.sign_init(&all[1], private)?;
            twin.sign_update(b"mess")?;
            twin.sign_update(b"age")?;
            let signature = twin.sign_final()?;
            Ok(ours.verify(&all[1], public, b"message", &signature)?)
        };
        let hashed: Vec<_> = std::iter::once(CKM_HASH_ML_DSA)
            .chain(CKM_HASH_ML_DSA_SHA224..=CKM_HASH_ML_DSA_SHAKE256)
            .collect();
        for (set, length) in [(CKP_ML_DSA_44, 2420), (CKP_ML_DSA_65, 3309), (CKP_ML_DSA_87, 4627)] {
            signs(CKM_ML_DSA_KEY_PAIR_GEN, set, CKM_ML_DSA, &hashed, length)?;
        }
        let hashed = [CKM_HASH_SLH_DSA, CKM_HASH_SLH_DSA_SHA256, CKM_HASH_SLH_DSA_SHAKE256];
        for (set, length) in [
            (CKP_SLH_DSA_SHA2_128F, 17_088),
            (CKP_SLH_DSA_SHAKE_128F, 17_088),
            (CKP_SLH_DSA_SHA2_192F, 35_664),
            (CKP_SLH_DSA_SHAKE_256F, 49_856),
        ] {
            signs(CKM_SLH_DSA_KEY_PAIR_GEN, set, CKM_SLH_DSA, &hashed, length)?;
        }
        Ok(())
    });
}

/// The slow sets: one signature each.
#[test]
fn small_signatures_are_right_too() {
    let name = "twin::small_signatures_are_right_too";
    twin("signatures of slow sets", name, "", |twin, ours| {
        for (set, length) in [
            (CKP_SLH_DSA_SHA2_128S, 7856),
            (CKP_SLH_DSA_SHA2_192S, 16_224),
            (CKP_SLH_DSA_SHA2_256S, 29_792),
        ] {
            let (its_public, private) = pair(twin, CKM_SLH_DSA_KEY_PAIR_GEN, set)?;
            let signature = twin.sign(&CKM_SLH_DSA.into(), private, b"message")?;
            ensure!(signature.len() == length, "{} bytes of {set}", signature.len());
            let public = public(twin, its_public, ours)?;
            ours.verify(&CKM_SLH_DSA.into(), public, b"message", &signature)?;
        }
        Ok(())
    });
}

#[test]
fn macs_are_the_same() {
    twin("MACs of its keys", "twin::macs_are_the_same", "", |twin, ours| {
        let usages = [CKA_SIGN, CKA_VERIFY];
        let (kind, aes) = (CKK_GENERIC_SECRET, CKK_AES);
        let general = Params::Ulong(11);
        for (number, kind, params) in [
            (CKM_SHA512_224_HMAC_GENERAL, kind, general),
            (CKM_SHA512_256_HMAC_GENERAL, kind, general),
            (CKM_SHA3_224_HMAC_GENERAL, kind, general),
            (CKM_SHA3_256_HMAC_GENERAL, kind, general),
            (CKM_SHA3_384_HMAC_GENERAL, kind, general),
            (CKM_SHA3_512_HMAC_GENERAL, kind, general),
            (CKM_BLAKE2B_256_HMAC_GENERAL, kind, general),
            (CKM_BLAKE2B_160_HMAC, kind, Params::None),
            (CKM_BLAKE2B_512_HMAC, kind, Params::None),
            (CKM_AES_XCBC_MAC, aes, Params::None),
            (CKM_AES_XCBC_MAC_96, aes, Params::None),
            (CKM_AES_CMAC_GENERAL, aes, general),
            (CKM_AES_GMAC, aes, Params::Bytes(&[3; 12])),
            (CKM_TLS12_MAC, kind, Params::TlsMac { prf: CKM_SHA384, length: 20, side: 1 }),
            (CKM_TLS12_MAC, kind, Params::TlsMac { prf: CKM_SHA256, length: 12, side: 2 }),
        ] {
            let length = if kind == aes { 16 } else { 40 };
            let [there, here] = same(twin, ours, kind, length, &usages)?;
            let mechanism = Mechanism::with(number, params);
            let mac = twin.sign(&mechanism, there, b"message")?;
            ensure!(mac == ours.sign(&mechanism, here, b"message")?, "{number:#x}");
            twin.verify(&mechanism, there, b"message", &mac)?;
        }
        Ok(())
    });
}

#[test]
fn ciphers_give_the_same() {
    let old = "allow = [\"weak-ciphers\"]";
    twin("ciphers of its keys", "twin::ciphers_give_the_same", old, |twin, ours| {
        let (iv, data) = ([9; 16], [5; 72]);
        let (aes, xts) = (CKK_AES, CKK_AES_XTS);
        let by_iv = Params::Bytes(&iv);
        let ccm = |mac_length| Params::Ccm {
            data_length: 72,
            nonce: &iv[..11],
            aad: b"head",
            mac_length,
        };
        for (number, kind, params) in [
            (CKM_AES_CTS, aes, by_iv),
            (CKM_AES_XTS, xts, by_iv),
            (CKM_AES_OFB, aes, by_iv),
            (CKM_AES_CFB8, aes, by_iv),
            (CKM_AES_CFB64, aes, by_iv),
            (CKM_AES_CFB128, aes, by_iv),
            (CKM_AES_CCM, aes, ccm(8)),
            (CKM_AES_CCM, aes, ccm(14)),
            (CKM_AES_KEY_WRAP, aes, Params::None),
            (CKM_AES_KEY_WRAP_KWP, aes, Params::None),
            (CKM_AES_KEY_WRAP_PKCS7, aes, Params::None),
            (CKM_CHACHA20, CKK_CHACHA20, Params::ChaCha20 { counter: 7, nonce: &iv[..12] }),
            (CKM_CHACHA20, CKK_CHACHA20, Params::ChaCha20 { counter: 1 << 40, nonce: &iv[..8] }),
            (CKM_CAMELLIA_CBC_PAD, CKK_CAMELLIA, by_iv),
            (CKM_ARIA_CBC_PAD, CKK_ARIA, by_iv),
            (CKM_SEED_CBC_PAD, CKK_SEED, by_iv),
        ] {
            let length = match kind {
                CKK_AES_XTS => 64,
                CKK_SEED => 16,
                _ => 32,
            };
            let mechanism = Mechanism::with(number, params);
            let keys = same(twin, ours, kind, length, &[CKA_ENCRYPT, CKA_DECRYPT])?;
            let sealed = twin.encrypt(&mechanism, keys[0], &data)?;
            // Old ciphers only open, under our policy.
            ensure!(ours.decrypt(&mechanism, keys[1], &sealed)? == data, "{number:#x}: ours");
            ensure!(twin.decrypt(&mechanism, keys[0], &sealed)? == data, "{number:#x}: its own");
            if matches!(params, Params::None) {
                continue;
            }
            twin.encrypt_init(&mechanism, keys[0])?;
            let mut parts = Vec::new();
            for part in data.chunks(33) {
                parts.extend(twin.encrypt_update(part)?);
            }
            parts.extend(twin.encrypt_final()?);
            ensure!(parts == sealed, "{number:#x}: in parts");
            twin.decrypt_init(&mechanism, keys[0])?;
            let mut parts = Vec::new();
            for part in sealed.chunks(29) {
                parts.extend(twin.decrypt_update(part)?);
            }
            parts.extend(twin.decrypt_final()?);
            ensure!(parts == data, "{number:#x}: back in parts");
        }
        Ok(())
    });
}

/// A template of a secret of ours that may be read.
pub(super) fn readable(length: Option<CK_ULONG>) -> Template {
    secret(length, false)
}

/// Of a session or of the token.
pub(super) fn secret(length: Option<CK_ULONG>, token: bool) -> Template {
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(token);
    let template = template.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
    match length {
        Some(length) => template.ulong(CKA_VALUE_LEN, length),
        None => template,
    }
}

/// Of which base, how long, and how much is derived.
type Step = (CK_MECHANISM_TYPE, (CK_KEY_TYPE, usize), Params<'static>, Option<CK_ULONG>);

/// Derivations of one step, those of IKE and those of TLS.
fn steps() -> Vec<Step> {
    let (any, aes) = (CKK_GENERIC_SECRET, CKK_AES);
    let data = Params::StringData { data: &[0x5a; 24] };
    let blocks = &[0x5a; 48][..];
    let mut all = vec![
        (CKM_CONCATENATE_BASE_AND_DATA, (any, 32), data, None),
        (CKM_CONCATENATE_DATA_AND_BASE, (any, 32), data, Some(40)),
        (CKM_XOR_BASE_AND_DATA, (any, 32), data, None),
        (CKM_XOR_BASE_AND_DATA, (any, 16), data, Some(16)),
        (CKM_EXTRACT_KEY_FROM_KEY, (any, 32), Params::Ulong(21), Some(16)),
        (CKM_AES_ECB_ENCRYPT_DATA, (aes, 32), Params::StringData { data: blocks }, None),
        (
            CKM_AES_CBC_ENCRYPT_DATA,
            (aes, 32),
            Params::CbcData { iv: &[3; 16], data: blocks },
            Some(20),
        ),
    ];
    let digests = [
        (CKM_SHA1_KEY_DERIVATION, 20),
        (CKM_SHA224_KEY_DERIVATION, 28),
        (CKM_SHA256_KEY_DERIVATION, 32),
        (CKM_SHA384_KEY_DERIVATION, 48),
        (CKM_SHA512_KEY_DERIVATION, 64),
        (CKM_SHA512_224_KEY_DERIVATION, 28),
        (CKM_SHA512_256_KEY_DERIVATION, 32),
        (CKM_SHA3_224_KEY_DERIVE, 28),
        (CKM_SHA3_256_KEY_DERIVE, 32),
        (CKM_SHA3_384_KEY_DERIVE, 48),
        (CKM_SHA3_512_KEY_DERIVE, 64),
        (CKM_BLAKE2B_160_KEY_DERIVE, 20),
        (CKM_BLAKE2B_256_KEY_DERIVE, 32),
        (CKM_BLAKE2B_384_KEY_DERIVE, 48),
        (CKM_BLAKE2B_512_KEY_DERIVE, 64),
        (CKM_SHAKE_128_KEY_DERIVE, 100),
        (CKM_SHAKE_256_KEY_DERIVE, 100),
    ];
    for (number, length) in digests {
        let most = Some(length).filter(|length| *length > 64);
        all.extend([None, Some(16), most].map(|length| (number, (any, 32), Params::None, length)));
    }
    let (initiator, responder) = (&b"initiator"[..], &b"responder"[..]);
    let prf = CKM_SHA256_HMAC;
    let first =
        |data_as_key| Params::IkePrf { prf, data_as_key, new_key: None, initiator, responder };
    all.extend([
        (CKM_IKE_PRF_DERIVE, (any, 32), first(false), None),
        (CKM_IKE_PRF_DERIVE, (any, 32), first(true), Some(32)),
        (
            CKM_IKE1_EXTENDED_DERIVE,
            (any, 32),
            Params::Ike1Extended { prf, agreed: None, extra: b"extra" },
            Some(70),
        ),
        (
            CKM_IKE2_PRF_PLUS_DERIVE,
            (any, 32),
            Params::Ike2PrfPlus { prf, seed_key: None, seed: b"seed" },
            Some(100),
        ),
    ]);
    let (prf, label, client, server) = (CKM_SHA256, &b"label"[..], &[1; 32][..], &[2; 32][..]);
    let exported = |context| Params::TlsKdf { prf, label, client, server, context };
    let by_hash = Params::Tls12Extended { prf, hash: &[4; 32] };
    let by_both = Params::Tls12Master { prf, client, server };
    all.extend([
        (CKM_TLS12_MASTER_KEY_DERIVE, (any, 48), by_both, None),
        (CKM_TLS12_MASTER_KEY_DERIVE_DH, (any, 32), by_both, None),
        (CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE, (any, 48), by_hash, None),
        (CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE_DH, (any, 32), by_hash, Some(48)),
        (CKM_TLS12_KDF, (any, 48), exported(None), Some(80)),
        (CKM_TLS12_KDF, (any, 48), exported(Some(b"")), Some(80)),
        (CKM_TLS_KDF, (any, 48), exported(Some(b"context")), Some(33)),
    ]);
    all
}

fn derives_in_a_step(twin: &Session, ours: &Session) -> Result<()> {
    let mut seen = Vec::new();
    for (number, (kind, base), params, length) in steps() {
        let what = || format!("{number:#x} of {base} bytes by {params:?}");
        let [there, here] = same(twin, ours, kind, base, &[CKA_DERIVE])?;
        let mechanism = Mechanism::with(number, params);
        let template = |token| secret(length, token);
        let one = twin.derive(&mechanism, there, &template(false)).with_context(what)?;
        let other = ours.derive(&mechanism, here, &template(false)).with_context(what)?;
        let value = twin.attribute(one, CKA_VALUE)?;
        ensure!(value == ours.attribute(other, CKA_VALUE)?, "{}", what());
        ensure!(length.is_none_or(|length| value.len() as u64 == length), "{}", what());
        // In the token it is made of the same.
        let kept = twin.derive(&mechanism, there, &template(true)).with_context(what)?;
        ensure!(twin.attribute_bool(kept, CKA_TOKEN)?, "{} is not there", what());
        ensure!(twin.attribute(kept, CKA_VALUE)? == value, "{} is another one there", what());
        // Nothing of the parameter is lost on its way.
        ensure!(!seen.contains(&(number, value.clone())) || length.is_none(), "{}", what());
        seen.push((number, value));
    }
    Ok(())
}

#[test]
fn what_is_derived_is_the_same() {
    twin("derivations", "twin::what_is_derived_is_the_same", "", |twin, ours| {
        let [there, here] = same(twin, ours, CKK_GENERIC_SECRET, 32, &[CKA_DERIVE])?;
        let hkdf = |extract, expand, salt_type, salt| Params::Hkdf {
            extract,
            expand,
            prf: CKM_SHA256,
            salt_type,
            salt,
            salt_key: ObjectHandle(0),
            info: b"info",
        };
        let salted = hkdf(true, true, CKF_HKDF_SALT_DATA, b"salt");
        let counter = KdfParam::Iteration { little_endian: false, bits: 32 };
        let optional = KdfParam::Counter { little_endian: true, bits: 16 };
        let length = KdfParam::DkmLength { sum_of_segments: false, little_endian: false, bits: 32 };
        let counted = [counter, KdfParam::Bytes(b"label"), length];
        let fed = [KdfParam::Previous, optional, KdfParam::Bytes(b"label")];
        let prf = CKM_SHA256_HMAC;
        for (number, params, length) in [
            (CKM_HKDF_DERIVE, salted, Some(50)),
            (CKM_HKDF_DERIVE, hkdf(false, true, CKF_HKDF_SALT_NULL, b""), Some(32)),
            (CKM_HKDF_DERIVE, hkdf(true, false, CKF_HKDF_SALT_NULL, b""), None),
            (CKM_SP800_108_COUNTER_KDF, Params::Sp800108 { prf, data: &counted }, Some(48)),
            (
                CKM_SP800_108_FEEDBACK_KDF,
                Params::Sp800108Feedback { prf, data: &fed, iv: &[7; 32] },
                Some(72),
            ),
            (CKM_SP800_108_DOUBLE_PIPELINE_KDF, Params::Sp800108 { prf, data: &fed }, Some(24)),
        ] {
            let mechanism = Mechanism::with(number, params);
            let template = readable(length);
            let one = twin.derive(&mechanism, there, &template)?;
            let other = ours.derive(&mechanism, here, &template)?;
            let value = twin.attribute(one, CKA_VALUE)?;
            ensure!(value == ours.attribute(other, CKA_VALUE)?, "{number:#x}");
            ensure!(length.is_none_or(|length| value.len() as u64 == length), "{number:#x}");
        }
        derives_in_a_step(twin, ours)?;
        let nothing = Mechanism::with(CKM_AES_ECB_ENCRYPT_DATA, Params::StringData { data: b"" });
        for (session, key) in
            [twin, ours].into_iter().zip(same(twin, ours, CKK_AES, 16, &[CKA_DERIVE])?)
        {
            let made = session.derive(&nothing, key, &readable(None));
            fails_with(made, Error::MECHANISM_PARAM_INVALID)?;
        }
        // A second key is not named to the module.
        let Params::Hkdf { info, .. } = salted else { anyhow::bail!("HKDF") };
        let by_key = Params::Hkdf {
            extract: true,
            expand: true,
            prf: CKM_SHA256,
            salt_type: CKF_HKDF_SALT_KEY,
            salt: b"",
            salt_key: there,
            info,
        };
        let refused =
            twin.derive(&Mechanism::with(CKM_HKDF_DERIVE, by_key), there, &readable(Some(16)));
        fails_with(refused, Error::MECHANISM_PARAM_INVALID)?;
        says(twin.module(), "a second key is not named to another module")?;
        // Of a protected key comes a protected one, which does the same.
        let template = Template::new().token(true).ulong(CKA_VALUE_LEN, 32).bool(CKA_DERIVE, true);
        let kept = twin.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &template)?;
        let derive = |template: Template| {
            twin.derive(&Mechanism::with(CKM_HKDF_DERIVE, salted), kept, &template)
        };
        fails_with(derive(readable(Some(32))), Error::TEMPLATE_INCONSISTENT)?;
        let said = || Template::new().ulong(CKA_VALUE_LEN, 32).bool(CKA_SIGN, true).token(false);
        let (one, other) = (derive(said())?, derive(said())?);
        let mac = |key| twin.sign(&CKM_SHA256_HMAC.into(), key, b"message");
        ensure!(mac(one)? == mac(other)?, "two derivations differ");
        ensure!(twin.attribute_bool(one, CKA_SENSITIVE)?, "it can be read");
        Ok(())
    });
}

/// The prime of ffdhe2048 (RFC 7919 appendix A.1).
const PRIME: &str = "\
    FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE249B3EF9\
    7D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3B557135E7F57C935\
    984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797ABC0AB182B324FB61D108A94BB2C8E3FB\
    B96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB190B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F61\
    9172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA\
    886B423861285C97FFFFFFFFFFFFFFFF";

/// The prime, and the order of the squares modulo it, which is half of it.
fn group() -> Result<(Vec<u8>, Vec<u8>)> {
    let digits = PRIME
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair)?, 16).map_err(anyhow::Error::from));
    let prime = digits.collect::<Result<Vec<_>>>()?;
    let before = std::iter::once(0).chain(prime.iter().copied());
    let half = before.zip(&prime).map(|(high, low)| high << 7 | low >> 1).collect();
    Ok((prime, half))
}

/// Other information of ANSI X9.42 for a key of AES, with the counter 1 (RFC 2631 §2.1.2).
const OTHER_INFO: &[u8] = &[
    0x30, 0x1b, 0x30, 0x11, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2d, 0x04,
    0x04, 0x00, 0x00, 0x00, 0x01, 0xa2, 0x06, 0x04, 0x04, 0x00, 0x00, 0x01, 0x00,
];

/// The same by ANSI X9.42, with both functions that make a key of the secret.
fn agrees_by_x9_42(twin: &Session, ours: &Session) -> Result<()> {
    let pair = |session: &Session, token| {
        let (prime, subprime) = group()?;
        let public = Template::new().token(token).bytes(CKA_PRIME, prime);
        let public = public.bytes(CKA_SUBPRIME, subprime).bytes(CKA_BASE, [2]);
        let private = Template::new().token(token).bool(CKA_DERIVE, true);
        let make = CKM_X9_42_DH_KEY_PAIR_GEN.into();
        anyhow::Ok(session.generate_key_pair(&make, &public, &private)?)
    };
    let ((its, there), (own, here)) = (pair(twin, true)?, pair(ours, false)?);
    let (its_value, own_value) = (twin.attribute(its, CKA_VALUE)?, ours.attribute(own, CKA_VALUE)?);
    for (kdf, info, length) in [
        (CKD_NULL, &b""[..], 256),
        (CKD_NULL, b"", 40),
        (CKD_SHA1_KDF_CONCATENATE, b"info", 77),
        (CKD_SHA1_KDF_ASN1, OTHER_INFO, 32),
    ] {
        let by = |public| Mechanism::with(CKM_X9_42_DH_DERIVE, Params::X942 { kdf, info, public });
        let one = twin.derive(&by(&own_value), there, &readable(Some(length)))?;
        let other = ours.derive(&by(&its_value), here, &readable(Some(length)))?;
        let same = twin.attribute(one, CKA_VALUE)? == ours.attribute(other, CKA_VALUE)?;
        ensure!(same, "{kdf:#x} of {length} bytes");
    }
    Ok(())
}

/// Diffie-Hellman in a known group: derived, and decapsulated by our own pair of one ciphertext.
fn agrees_in_a_group(twin: &Session, ours: &Session) -> Result<()> {
    let (prime, _) = group()?;
    let pair = |session: &Session, token| {
        let public = Template::new().token(token).bytes(CKA_PRIME, prime.clone());
        let public = public.bytes(CKA_BASE, [2]).bool(CKA_ENCAPSULATE, true);
        let private = Template::new().token(token).bool(CKA_DERIVE, true);
        let private = private.bool(CKA_DECAPSULATE, true);
        session.generate_key_pair(&CKM_DH_PKCS_KEY_PAIR_GEN.into(), &public, &private)
    };
    let ((its, there), (own, here)) = (pair(twin, true)?, pair(ours, false)?);
    let (its_value, own_value) = (twin.attribute(its, CKA_VALUE)?, ours.attribute(own, CKA_VALUE)?);
    let by = |public| Mechanism::with(CKM_DH_PKCS_DERIVE, Params::Bytes(public));
    for length in [256, 40] {
        let one = twin.derive(&by(&own_value), there, &readable(Some(length)))?;
        let other = ours.derive(&by(&its_value), here, &readable(Some(length)))?;
        let same = twin.attribute(one, CKA_VALUE)? == ours.attribute(other, CKA_VALUE)?;
        ensure!(same, "{length} bytes differ");
    }
    let (sealed, one) = twin.encapsulate(&by(&[]), its, &readable(None))?;
    let other = twin.decapsulate(&by(&[]), there, &sealed, &readable(None))?;
    ensure!(twin.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?, "encapsulated");
    Ok(())
}

#[test]
fn both_sides_agree() {
    twin("agreements", "twin::both_sides_agree", "", |twin, ours| {
        let x25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x6e];
        for (make, curve, field) in
            [(CKM_EC_KEY_PAIR_GEN, softhsm::P256, 32), (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, x25519, 32)]
        {
            let public = |token| {
                let template = Template::new().token(token).bytes(CKA_EC_PARAMS, curve);
                template.bool(CKA_ENCAPSULATE, true)
            };
            let private = |token| {
                Template::new().token(token).bool(CKA_DERIVE, true).bool(CKA_DECAPSULATE, true)
            };
            let pair = |session: &Session, token| {
                session.generate_key_pair(&make.into(), &public(token), &private(token))
            };
            let ((its, there), (own, here)) = (pair(twin, true)?, pair(ours, false)?);
            let point = |session: &Session, key| session.attribute(key, CKA_EC_POINT);
            let (its_point, own_point) = (point(twin, its)?, point(ours, own)?);
            for (kdf, shared, length) in
                [(CKD_NULL, &b""[..], field), (CKD_NULL, b"", 20), (CKD_SHA256_KDF, b"more", 77)]
            {
                let by = |public| {
                    Mechanism::with(CKM_ECDH1_DERIVE, Params::Ecdh1 { kdf, shared, public })
                };
                let one = twin.derive(&by(&own_point), there, &readable(Some(length)))?;
                let other = ours.derive(&by(&its_point), here, &readable(Some(length)))?;
                let same = twin.attribute(one, CKA_VALUE)? == ours.attribute(other, CKA_VALUE)?;
                ensure!(same, "{kdf:#x} of {length}");
                // Encapsulated by our providers, decapsulated by the token's key.
                let (sealed, one) = twin.encapsulate(&by(&[]), its, &readable(Some(length)))?;
                let other = twin.decapsulate(&by(&[]), there, &sealed, &readable(Some(length)))?;
                let same = twin.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?;
                ensure!(same, "{kdf:#x} of {length}, encapsulated");
            }
        }
        agrees_in_a_group(twin, ours)?;
        agrees_by_x9_42(twin, ours)?;
        for (set, length) in
            [(CKP_ML_KEM_512, 768), (CKP_ML_KEM_768, 1088), (CKP_ML_KEM_1024, 1568)]
        {
            let (its, there) = pair(twin, CKM_ML_KEM_KEY_PAIR_GEN, set)?;
            let public = public(twin, its, ours)?;
            let kem = CKM_ML_KEM.into();
            for (session, key) in [(ours, public), (twin, its)] {
                let (sealed, one) = session.encapsulate(&kem, key, &readable(None))?;
                ensure!(sealed.len() == length, "{} bytes", sealed.len());
                let other = twin.decapsulate(&kem, there, &sealed, &readable(None))?;
                ensure!(
                    session.attribute(one, CKA_VALUE)? == twin.attribute(other, CKA_VALUE)?,
                    "{set}"
                );
                let aes = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).token(false);
                twin.decapsulate(&kem, there, &sealed, &aes)?;
                let short = twin.decapsulate(&kem, there, &sealed[1..], &readable(None));
                fails_with(short, Error::WRAPPED_KEY_LEN_RANGE)?;
            }
        }
        Ok(())
    });
}
