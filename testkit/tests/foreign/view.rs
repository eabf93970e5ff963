// SPDX-License-Identifier: Apache-2.0
//! What is in other modules' tokens, seen and used in slot 0.

use super::softhsm::ours;
use super::*;
use metaslot_ck::attribute::CKA_METASLOT_HOME;
use metaslot_testkit::check;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const RSA: CK_MECHANISM_TYPE = CKM_SHA256_RSA_PKCS;

/// By then each step of a test is over, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work` with a token of SoftHSM whose PIN is configured, and with these variables of the environment.
pub(super) fn with_pin(
    what: &str,
    name: &str,
    variables: &[(&'static str, &str)],
    work: impl FnOnce(&Module) -> Result<()>,
) {
    let prepare = |token: &mut TestToken| {
        variables.iter().for_each(|(name, value)| token.set(name, value));
        with_softhsm(token, &format!("pin-source = \"file:{}\"", token.path("pin").display()))
    };
    apart(CLIENT, what, name, prepare, || work(&started()?));
}

/// A session in slot 0.
fn metaslot(module: &Module) -> Result<Session> {
    Ok(module.open_session(SlotId(0), Access::ReadWrite)?)
}

pub(super) fn user(module: &Module) -> Result<Session> {
    let session = metaslot(module)?;
    session.login(User::User, USER_PIN.as_bytes())?;
    Ok(session)
}

/// What is found with this label, and which of it are private keys.
fn found(session: &Session, label: &str) -> Result<(usize, Vec<ObjectHandle>)> {
    let all = session.find(&Template::new().label(label))?;
    let private = session.find(&Template::new().label(label).class(CKO_PRIVATE_KEY))?;
    Ok((all.len(), private))
}

/// The one private key with this label.
pub(super) fn private_key(session: &Session, label: &str) -> Result<ObjectHandle> {
    let (_, private) = found(session, label)?;
    let [key] = private[..] else { anyhow::bail!("{} keys {label:?}", private.len()) };
    Ok(key)
}

fn home(session: &Session, object: ObjectHandle) -> Option<String> {
    session.attribute_text(object, CKA_METASLOT_HOME).ok()
}

#[test]
fn keys_of_other_tokens_are_seen_and_used_in_slot_0() {
    let name = "view::keys_of_other_tokens_are_seen_and_used_in_slot_0";
    with_pin("its keys in slot 0", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        let here = user(module)?;
        let (public, own) = rsa_pair(&here, "own")?;
        ensure!(found(&there, "own")?.0 == 0, "what is made in slot 0 is its own token's");
        ensure!(home(&here, own).is_none(), "{:?}", home(&here, own));
        let key = private_key(&here, "theirs")?;
        ensure!(home(&here, key).as_deref() == Some("softhsm"), "{:?}", home(&here, key));
        let by_home = Template::new().bytes(CKA_METASLOT_HOME, b"softhsm");
        ensure!(here.find(&by_home)?.len() == 2, "a home is searched for");
        let signature = here.sign(&RSA.into(), key, b"message")?;
        let verifying = here.find(&Template::new().label("theirs").class(CKO_PUBLIC_KEY))?[0];
        let (other, copy) = ours(module, &here, verifying)?;
        other.verify(&RSA.into(), copy, b"message", &signature)?;
        here.verify(&RSA.into(), verifying, b"message", &signature)?;
        let sensitive = here.attribute(key, CKA_PRIVATE_EXPONENT);
        fails_with(sensitive, Error::ATTRIBUTE_SENSITIVE)?;
        // An operation in parts, and one beside it with a key of ours.
        here.sign_init(&RSA.into(), key)?;
        here.sign_update(b"mess")?;
        here.encrypt(&CKM_RSA_PKCS.into(), public, b"beside it")?;
        here.sign_update(b"age")?;
        ensure!(here.sign_final()? == signature, "PKCS#1 v1.5 is the same each time");
        Ok(())
    });
}

#[test]
fn objects_of_other_tokens_stay_there_when_slot_0_changes_them() {
    let name = "view::objects_of_other_tokens_stay_there_when_slot_0_changes_them";
    with_pin("its objects changed in slot 0", name, &[], |module| {
        let there = logged_in(module)?;
        let (_, at_home) = rsa_pair(&there, "theirs")?;
        let here = user(module)?;
        let key = private_key(&here, "theirs")?;
        here.set_attributes(key, &Template::new().label("renamed"))?;
        ensure!(there.attribute_text(at_home, CKA_LABEL)? == "renamed", "it is one object");
        let session_copy = here.copy(key, &Template::new().token(false));
        fails_with(session_copy, Error::ACTION_PROHIBITED)?;
        let copy = here.copy(key, &Template::new().token(true).label("copied"))?;
        ensure!(home(&here, copy).as_deref() == Some("softhsm"), "a copy stays");
        ensure!(private_key(&there, "copied").is_ok(), "a copy is there");
        here.sign(&RSA.into(), copy, b"message")?;
        // Neither of them carries the other's keys.
        let aes = |session: &Session| {
            let usage = [CKA_WRAP, CKA_UNWRAP, CKA_ENCRYPT].into_iter();
            let template = usage.fold(Template::new().token(true), |all, one| all.bool(one, true));
            let template = template.ulong(CKA_VALUE_LEN, 32).label("aes");
            session.generate_key(&CKM_AES_KEY_GEN.into(), &template)
        };
        let theirs = aes(&there)?;
        let wrapping = here.find(&Template::new().label("aes"))?[0];
        let own = aes(&here)?;
        for (by, key) in [(wrapping, own), (own, wrapping), (own, key)] {
            let wrapped = here.wrap(&CKM_AES_KEY_WRAP_KWP.into(), by, key);
            fails_with(wrapped.map(drop), Error::FUNCTION_NOT_SUPPORTED)?;
        }
        here.destroy(wrapping)?;
        ensure!(there.object_size(theirs).is_err(), "it is destroyed there");
        fails_with(here.sign(&RSA.into(), wrapping, b""), Error::KEY_HANDLE_INVALID)?;
        there.destroy(at_home)?;
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)
    });
}

#[test]
fn each_slot_has_its_login() {
    let name = "view::each_slot_has_its_login";
    with_pin("a token with two logins", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        let here = metaslot(module)?;
        ensure!(found(&here, "theirs")?.1.is_empty(), "slot 0 has no login");
        here.login(User::User, USER_PIN.as_bytes())?;
        let key = private_key(&here, "theirs")?;
        there.logout()?;
        here.sign(&RSA.into(), key, b"message")?;
        ensure!(found(&there, "theirs")?.1.is_empty(), "its own slot has no login");
        for _ in 0..2 {
            let wrong = there.login(User::User, b"another one");
            fails_with(wrong, Error::PIN_INCORRECT)?;
        }
        ensure!(found(&there, "theirs")?.1.is_empty(), "no login by a wrong PIN");
        there.login(User::User, USER_PIN.as_bytes())?;
        let at_home = private_key(&there, "theirs")?;
        here.logout()?;
        there.sign(&RSA.into(), at_home, b"message")?;
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)?;
        // By the configured PIN, without typing it.
        there.logout()?;
        here.login(User::User, USER_PIN.as_bytes())?;
        there.login_protected(User::User)?;
        private_key(&there, "theirs")?;
        there.logout()?;
        // The SO of the token goes before a login of slot 0, which is made again after that.
        fails_with(there.login(User::SecurityOfficer, b"no SO's PIN"), Error::PIN_INCORRECT)?;
        ensure!(found(&here, "theirs")?.1.len() == 1, "a wrong PIN of the SO ended slot 0's login");
        there.login(User::SecurityOfficer, SO_PIN.as_bytes())?;
        ensure!(found(&here, "theirs")?.1.is_empty(), "the SO sees no private key");
        there.logout()?;
        ensure!(found(&here, "theirs")?.1.len() == 1, "the SO has ended slot 0's login");
        // Also one that began meanwhile, and not one that ended meanwhile.
        for (begins, count) in [(true, 1), (false, 0)] {
            here.logout().ok();
            if !begins {
                here.login(User::User, USER_PIN.as_bytes())?;
            }
            there.login(User::SecurityOfficer, SO_PIN.as_bytes())?;
            match begins {
                true => here.login(User::User, USER_PIN.as_bytes())?,
                false => here.logout()?,
            }
            there.logout()?;
            ensure!(found(&here, "theirs")?.1.len() == count, "slot 0's login began: {begins}");
        }
        here.login(User::User, USER_PIN.as_bytes())?;
        let key = private_key(&here, "theirs")?;
        here.sign(&RSA.into(), key, b"message").map(drop)?;
        // As often as anyone likes.
        let (_, own) = rsa_pair(&here, "own")?;
        here.sign(&RSA.into(), own, b"message")?;
        for _ in 0..64 {
            here.logout()?;
            here.login(User::User, USER_PIN.as_bytes())?;
            private_key(&here, "theirs")?;
        }
        here.sign(&RSA.into(), private_key(&here, "own")?, b"message")?;
        // Slot 0 ends its login with its last session, and the token's with it.
        here.close()?;
        let again = metaslot(module)?;
        ensure!(found(&again, "theirs")?.1.is_empty(), "a login outlived its sessions");
        Ok(())
    });
}

#[test]
fn a_configured_pin_that_is_wrong_is_tried_once() {
    let name = "view::a_configured_pin_that_is_wrong_is_tried_once";
    with_pin("a wrong PIN in the configuration", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        there.set_pin(USER_PIN.as_bytes(), b"another one")?;
        there.logout()?;
        let low = |module: &Module| {
            let slot = slot(module, LABEL)?;
            anyhow::Ok(module.token_info(slot)?.has(CKF_USER_PIN_COUNT_LOW))
        };
        ensure!(!low(module)?, "no attempt so far");
        let here = user(module)?;
        let (all, private) = found(&here, "theirs")?;
        ensure!((all, private.len()) == (1, 0), "{all} {private:?}");
        let (public, own) = rsa_pair(&here, "own")?;
        let signature = here.sign(&RSA.into(), own, b"message")?;
        here.verify(&RSA.into(), public, b"message", &signature)?;
        ensure!(low(module)?, "the PIN was tried");
        // Its own slot takes the right one.
        there.login(User::User, b"another one")?;
        private_key(&there, "theirs").map(drop)
    });
}

#[test]
fn a_disabled_metaslot_shows_its_own_token() {
    let name = "view::a_disabled_metaslot_shows_its_own_token";
    let disabled = [("METASLOT_ENABLED", "False")];
    with_pin("METASLOT_ENABLED=false", name, &disabled, |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        let here = user(module)?;
        ensure!(found(&here, "theirs")?.0 == 0, "it shows another token");
        rsa_pair(&here, "own").map(drop)
    });
}

#[test]
fn what_no_variable_can_be_is_said() {
    let name = "view::what_no_variable_can_be_is_said";
    let cases: [(&str, &str, &str); 3] = [
        ("METASLOT_ENABLED", "maybe", "METASLOT_ENABLED: is true or false"),
        ("METASLOT_OBJECTSTORE_TOKEN", "none", "there is no token \"none\""),
        ("METASLOT_OBJECTSTORE_SLOT", "none", "there is no token in a slot \"none\""),
    ];
    let set = |name: &str| std::env::var_os(name).is_some();
    for (variable, value, says_so) in cases {
        if is_inside() && !set(variable) {
            continue;
        }
        with_pin(&format!("{variable}={value}"), name, &[(variable, value)], |module| {
            fails_with(module.slots(true), Error::DEVICE_ERROR)?;
            says(module, says_so)
        });
    }
}

#[test]
fn the_keystore_is_the_token_that_is_named() {
    let name = "view::the_keystore_is_the_token_that_is_named";
    let named = [("METASLOT_OBJECTSTORE_TOKEN", "soft  ")];
    with_pin("METASLOT_OBJECTSTORE_TOKEN", name, &named, |module| {
        ensure!(slot(module, LABEL)? == SlotId(0), "it is not slot 0");
        ensure!(slot(module, "testing")? == SlotId(1), "ours comes after it");
        let here = user(module)?;
        let (_, private) = rsa_pair(&here, "made")?;
        ensure!(home(&here, private).as_deref() == Some("softhsm"), "it was made elsewhere");
        here.sign(&RSA.into(), private, b"message")?;
        Ok(())
    });
}

#[test]
fn policies_that_differ_keep_a_token_apart() {
    let name = "view::policies_that_differ_keep_a_token_apart";
    let prepare = |token: &mut TestToken| with_softhsm(token, "policy = \"legacy\"");
    apart(CLIENT, "a token with another policy", name, prepare, || {
        let module = started()?;
        let there = logged_in(&module)?;
        rsa_pair(&there, "theirs")?;
        ensure!(found(&user(&module)?, "theirs")?.0 == 0, "it is shown under another policy");
        Ok(())
    });
}

#[test]
fn a_token_with_another_policy_is_not_shown() {
    let name = "view::a_token_with_another_policy_is_not_shown";
    let more = "policy = \"legacy\"\nmetaslot = true";
    let prepare = |token: &mut TestToken| with_softhsm(token, more);
    apart(CLIENT, "a token with another policy, shown", name, prepare, || {
        let module = started()?;
        fails_with(module.slots(true), Error::DEVICE_ERROR)?;
        says(&module, "slot 0 shows tokens with its own policy: softhsm has another")
    });
}

/// A key is under one policy, whichever slot it is used in, also when the configuration changes.
#[test]
fn policies_do_not_come_to_differ() {
    let name = "view::policies_do_not_come_to_differ";
    let prepare = |token: &mut TestToken| {
        with_softhsm(token, &format!("pin-source = \"file:{}\"", token.path("pin").display()))
    };
    apart(CLIENT, "policies that change", name, prepare, || {
        let module = started()?;
        let refused = |slot| {
            let rules = module.token_policy(SlotId(slot)).unwrap_or_default();
            rules.iter().filter(|rule| rule.refused).count()
        };
        let before = refused(0);
        ensure!(before > 0 && refused(1) == before, "{before} and {}", refused(1));
        let file = std::env::var_os("METASLOT_CONF").context("no configuration")?;
        let text = std::fs::read_to_string(&file)?;
        rsa_pair(&logged_in(&module)?, "theirs")?;
        let here = user(&module)?;
        let key = private_key(&here, "theirs")?;
        let until = |what: &str, it_is_so: &dyn Fn() -> Result<bool>| {
            let begin = Instant::now();
            while !it_is_so()? {
                ensure!(begin.elapsed() < PATIENCE, "not so: {what}");
            }
            Ok(())
        };
        std::fs::write(&file, format!("{text}policy = \"legacy\"\n"))?;
        until("its slot follows", &|| Ok(refused(1) != before && refused(0) == before))?;
        ensure!(found(&here, "theirs")?.0 == 0, "slot 0 shows it under another policy");
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)?;
        let both = text.replace("policy = \"default\"", "policy = \"legacy\"");
        std::fs::write(&file, format!("{both}policy = \"legacy\"\n"))?;
        until("it is shown again", &|| Ok(found(&here, "theirs")?.1.len() == 1))?;
        ensure!(refused(0) != before && refused(1) == refused(0), "{before}");
        here.sign(&RSA.into(), private_key(&here, "theirs")?, b"message")?;
        // Slot 0 alone goes back to what it was, without waiting for the other.
        std::fs::write(&file, format!("{text}policy = \"legacy\"\n"))?;
        until("slot 0 follows", &|| Ok(refused(0) == before && found(&here, "theirs")?.0 == 0))?;
        // What a configuration does not name any more stays under the policy that it had.
        let gone = ["awslc", "lanes"]
            .map(|name| format!("[provider.{name}]\ndisable = [\"CKM_CHACHA20*\"]\n"));
        let elsewhere = "[[token]]\npath = \"/elsewhere/token.db\"\n";
        std::fs::write(&file, format!("{elsewhere}{}", gone.concat()))?;
        let chacha =
            || module.mechanisms(SlotId(0)).map(|all| all.contains(&CKM_CHACHA20_POLY1305));
        until("it is taken over", &|| Ok(!chacha()?))?;
        ensure!(found(&here, "theirs")?.0 == 0, "it is shown under another policy");
        Ok(())
    });
}

#[test]
fn a_module_that_is_not_trusted_is_shown_where_that_is_said() {
    let name = "view::a_module_that_is_not_trusted_is_shown_where_that_is_said";
    let pin = |token: &TestToken| format!("pin-source = \"file:{}\"", token.path("pin").display());
    for shown in ["", "metaslot = true"] {
        let prepare = |token: &mut TestToken| {
            token.set("SHOWN", shown);
            with_softhsm(token, &format!("{}\ntrusted = false\n{shown}", pin(token)))
        };
        apart(CLIENT, &format!("a module that is not trusted: {shown:?}"), name, prepare, || {
            let module = started()?;
            rsa_pair(&logged_in(&module)?, "theirs")?;
            let shown = usize::from(!std::env::var("SHOWN")?.is_empty());
            let found = found(&user(&module)?, "theirs")?.1.len();
            ensure!(found == shown, "{found} keys and not {shown}");
            Ok(())
        });
        if is_inside() {
            return;
        }
    }
}

#[test]
fn a_key_that_wants_a_pin_for_each_use_wants_its_tokens() {
    let name = "view::a_key_that_wants_a_pin_for_each_use_wants_its_tokens";
    with_pin("a PIN for each use, in slot 0", name, &[], |module| {
        let there = logged_in(module)?;
        let public = Template::new().token(true).ulong(CKA_MODULUS_BITS, 2048);
        let public = public.bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
        let private = Template::new().token(true).bool(CKA_ALWAYS_AUTHENTICATE, true);
        let private = private.label("theirs");
        there.generate_key_pair(&CKM_RSA_PKCS_KEY_PAIR_GEN.into(), &public, &private)?;
        let here = user(module)?;
        here.set_pin(USER_PIN.as_bytes(), b"slot 0 has it")?;
        let key = private_key(&here, "theirs")?;
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::USER_NOT_LOGGED_IN)?;
        for (pin, is_its) in [(USER_PIN, true), ("slot 0 has it", false), (USER_PIN, true)] {
            here.sign_init(&RSA.into(), key)?;
            here.login(User::ContextSpecific, pin.as_bytes())?;
            match (here.sign_initialized(b"message"), is_its) {
                (Ok(signature), true) => ensure!(signature.len() == 256, "{}", signature.len()),
                (signature, _) => fails_with(signature, Error::PIN_INCORRECT)?,
            }
        }
        Ok(())
    });
}

/// More than a page of each token, in searches that go on while others begin.
#[test]
fn searches_go_through_every_token_once() {
    let name = "view::searches_go_through_every_token_once";
    with_pin("searches over two tokens", name, &[], |module| {
        const COUNT: usize = 300;
        let (there, here) = (logged_in(module)?, user(module)?);
        for session in [&there, &here] {
            for at in 0..COUNT {
                let data = Template::new().class(CKO_DATA).token(true).label("many");
                session.create(&data.bytes(CKA_VALUE, at.to_le_bytes()))?;
            }
        }
        let query = Template::new().label("many");
        for size in [1, 7, 256, 1000] {
            let mut search = here.search(&query)?;
            let (mut all, mut some) = (Vec::new(), vec![ObjectHandle(0); size]);
            loop {
                match search.read(&mut some)? {
                    0 => break,
                    count => all.extend_from_slice(&some[..count]),
                }
                if all.len() % 100 == 0 {
                    let beside = metaslot(module)?.find(&query)?.len();
                    ensure!(beside == 2 * COUNT, "{beside} beside it");
                }
            }
            search.finish()?;
            all.sort_unstable_by_key(|handle| handle.0);
            all.dedup();
            ensure!(all.len() == 2 * COUNT, "{} by {size}", all.len());
        }
        Ok(())
    });
}

/// Three tokens with one key, whose PIN is configured.
pub(super) fn three_tokens(token: &mut TestToken, more: &str) -> Result<()> {
    compiled(token, "tokens.c", "tokens.so", "-shared -fPIC -lpthread")?;
    let home = token.home().display().to_string();
    let pin = token.write("their-pin", "1234")?;
    token.set("FAKE_ORDERS", &home);
    let pin = format!("pin-source = \"file:{}\"", pin.display());
    configure(token, &format!("name = \"fake\"\nmodule = \"{home}/tokens.so\"\n{pin}\n{more}"))
}

/// One of them dies, beside slot 0 with a key of its own.
#[test]
fn a_token_that_dies_keeps_no_one_from_the_others() {
    let name = "view::a_token_that_dies_keeps_no_one_from_the_others";
    let prepare = |token: &mut TestToken| three_tokens(token, "");
    apart(CLIENT, "a token in slot 0 that dies", name, prepare, || {
        let module = started()?;
        let here = user(&module)?;
        rsa_pair(&here, "own")?;
        let dead = Path::new(&std::env::var_os("FAKE_ORDERS").context("no orders")?).join("dead-1");
        let keys = || anyhow::Ok(found(&here, "web")?.1);
        for way in ["removed", "present", "error"] {
            let all = keys()?;
            ensure!(all.len() == 3, "{all:?}");
            std::fs::write(&dead, way)?;
            let left = keys()?;
            ensure!(left.len() == 2, "{way}: {left:?}");
            for key in &left {
                here.sign(&RSA.into(), *key, b"message")?;
            }
            // It signs nothing; the first byte says which token has signed.
            let signed = all.iter().filter_map(|key| here.sign(&RSA.into(), *key, b"x").ok());
            let by: Vec<_> = signed.map(|signature| signature[0]).collect();
            ensure!(by.len() == 2 && !by.contains(&1), "{way}: signed by {by:?}");
            here.sign(&RSA.into(), private_key(&here, "own")?, b"message")?;
            std::fs::remove_file(&dead)?;
            let begin = Instant::now();
            while keys()?.len() < 3 {
                ensure!(begin.elapsed() < PATIENCE, "{way}: it does not come back");
            }
            for key in keys()? {
                here.sign(&RSA.into(), key, b"message")?;
            }
        }
        Ok(())
    });
}

/// A search that a module does not like hides nothing from the next one.
#[test]
fn a_search_that_is_refused_hides_no_key_from_others() {
    let name = "view::a_search_that_is_refused_hides_no_key_from_others";
    let prepare = |token: &mut TestToken| three_tokens(token, "");
    apart(CLIENT, "a search that is refused", name, prepare, || {
        let module = started()?;
        let here = user(&module)?;
        let order = std::env::var_os("FAKE_ORDERS").context("no orders")?;
        let order = Path::new(&order).join("no-search");
        for _ in 0..3 {
            std::fs::write(&order, "data's length is wrong")?;
            ensure!(found(&here, "web")?.0 == 0, "it was found all the same");
            std::fs::remove_file(&order)?;
            ensure!(found(&here, "web")?.0 == 3, "they are hidden");
        }
        Ok(())
    });
}

/// A failure while a key is found again says nothing about the key.
#[test]
fn a_key_that_is_not_found_again_at_once_is_found_later() {
    let name = "view::a_key_that_is_not_found_again_at_once_is_found_later";
    let prepare = |token: &mut TestToken| three_tokens(token, "");
    apart(CLIENT, "a search that fails after a loss", name, prepare, || {
        let module = started()?;
        let here = user(&module)?;
        let key = found(&here, "web")?.1[0];
        let signature = here.sign(&RSA.into(), key, b"message")?;
        let order = std::env::var_os("FAKE_ORDERS").context("no orders")?;
        let order = |name: &str| Path::new(&order).join(name);
        let dead = order(&format!("dead-{}", signature[0]));
        std::fs::write(&dead, "removed")?;
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::DEVICE_REMOVED)?;
        std::fs::write(order("no-search"), "error")?;
        std::fs::remove_file(dead)?;
        ensure!(here.sign(&RSA.into(), key, b"message").is_err(), "it was found all the same");
        std::fs::remove_file(order("no-search"))?;
        ensure!(here.sign(&RSA.into(), key, b"message")? == signature, "another signature");
        Ok(())
    });
}

#[test]
fn a_forked_child_sees_them_anew() {
    check(CLIENT, "fork, in slot 0", &["gcc", "softhsm2-util", "openssl"], |token| {
        let pin = format!("pin-source = \"file:{}\"", token.path("pin").display());
        with_softhsm(token, &pin)?;
        let key = token.path("key.pem");
        let new = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"];
        token.program("openssl").args(new).arg(&key).run()?;
        let import = ["--token", LABEL, "--label", "web", "--id", "01", "--pin", USER_PIN];
        token.program("softhsm2-util").arg("--import").arg(&key).args(import).run()?;
        compiled(token, "fork.c", "fork", "-ldl")?;
        let program = token.program("./fork").arg(token.module());
        let program = program.args(["testing", USER_PIN, "there"]);
        program.run()?.with(&["parent and child have signed"]).map(|_| ())
    });
}

#[test]
fn a_key_in_many_tokens_is_one_in_slot_0() {
    let name = "view::a_key_in_many_tokens_is_one_in_slot_0";
    let pool = "[[pool]]\nname = \"web\"\ntokens = [\"a\", \"b\", \"c\"]";
    let prepare = |token: &mut TestToken| three_tokens(token, pool);
    apart(CLIENT, "a pool in slot 0", name, prepare, || {
        let module = started()?;
        let here = metaslot(&module)?;
        ensure!(found(&here, "web")?.1.is_empty(), "slot 0 has no login");
        here.login(User::User, USER_PIN.as_bytes())?;
        let key = private_key(&here, "web")?;
        ensure!(home(&here, key).as_deref() == Some("web"), "{:?}", home(&here, key));
        let mut turns = [0; 3];
        for _ in 0..30 {
            turns[usize::from(here.sign(&RSA.into(), key, b"message")?[0])] += 1;
        }
        ensure!(turns == [10; 3], "{turns:?}");
        // The pool's own slot has its own login.
        let there = module.open_session(slot(&module, "web")?, Access::ReadOnly)?;
        ensure!(found(&there, "web")?.1.is_empty(), "its own slot has no login");
        fails_with(there.login(User::User, b"4321"), Error::PIN_INCORRECT)?;
        here.sign(&RSA.into(), key, b"message")?;
        there.login(User::User, b"1234")?;
        let orders = std::env::var_os("FAKE_ORDERS").context("no orders")?;
        let ended = Path::new(&orders).join("logged-out").exists();
        ensure!(!ended, "slot 0's login ended with one in the pool's own slot");
        here.sign(&RSA.into(), key, b"message")?;
        let at_home = private_key(&there, "web")?;
        here.logout()?;
        there.sign(&RSA.into(), at_home, b"message")?;
        here.login(User::User, USER_PIN.as_bytes())?;
        there.logout()?;
        let key = private_key(&here, "web")?;
        here.sign(&RSA.into(), key, b"message")?;
        here.logout()?;
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)?;
        module.finalize()?;
        module.initialize()?;
        let here = user(&module)?;
        here.sign(&RSA.into(), private_key(&here, "web")?, b"message")?;
        Ok(())
    });
}

/// A token that slot 0 has shown by itself, and that goes to a pool which is under another policy.
#[test]
fn a_late_token_that_goes_to_a_pool_takes_its_keys_with_it() {
    let name = "view::a_late_token_that_goes_to_a_pool_takes_its_keys_with_it";
    let pool = "[[pool]]\nname = \"web\"\ntokens = [\"a\", \"b\", \"c\"]\npolicy = \"fips\"";
    let prepare = |token: &mut TestToken| {
        token.write("dead-2", "removed")?;
        three_tokens(token, pool)
    };
    apart(CLIENT, "a late token of a pool in slot 0", name, prepare, || {
        let module = started()?;
        let here = user(&module)?;
        let orders = std::env::var_os("FAKE_ORDERS").context("no orders")?;
        std::fs::remove_file(Path::new(&orders).join("dead-2"))?;
        let key = private_key(&here, "web")?;
        ensure!(here.sign(&RSA.into(), key, b"message")?[0] == 2, "another token has signed");
        let begin = Instant::now();
        while slot(&module, "c").is_ok() {
            ensure!(begin.elapsed() < PATIENCE, "it does not join its pool");
        }
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)?;
        ensure!(found(&here, "web")?.0 == 0, "slot 0 shows what is under another policy");
        Ok(())
    });
}

/// Threads that log in and out of both slots, search and sign, and what each may answer then.
#[test]
fn threads_in_both_slots_harm_neither() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 150;
    let may = |code: Error| {
        matches!(
            code,
            Error::USER_NOT_LOGGED_IN
                | Error::USER_ALREADY_LOGGED_IN
                | Error::KEY_HANDLE_INVALID
                | Error::OBJECT_HANDLE_INVALID
                | Error::OPERATION_NOT_INITIALIZED
                | Error::KEY_FUNCTION_NOT_PERMITTED
        )
    };
    let name = "view::threads_in_both_slots_harm_neither";
    with_pin("eight threads in both slots", name, &[], |module| {
        rsa_pair(&logged_in(module)?, "theirs")?;
        let there = slot(module, LABEL)?;
        let signed = AtomicU64::new(0);
        let work = |thread: usize| -> Result<()> {
            let mut chance = thread as u64 + 1;
            for _ in 0..ROUNDS {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let slot = if chance >> 62 & 1 == 0 { SlotId(0) } else { there };
                let session = module.open_session(slot, Access::ReadOnly)?;
                let answer = match chance >> 40 & 7 {
                    0 => session.logout(),
                    // Our own token takes no PIN for a while after a wrong one.
                    1 if slot == there => session.login(User::User, b"another one"),
                    2..4 => session.login(User::User, USER_PIN.as_bytes()),
                    _ => session.find(&Template::new().class(CKO_PRIVATE_KEY)).and_then(|keys| {
                        for key in keys {
                            session.sign(&RSA.into(), key, b"message")?;
                            signed.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    }),
                };
                match answer {
                    Err(failure) if failure.code == Error::PIN_INCORRECT => {}
                    Err(failure) if !may(failure.code) => {
                        let detail = module.detail().unwrap_or_default();
                        // What SoftHSM says of a private key when a login has just ended.
                        if detail.ends_with("CKR_GENERAL_ERROR") {
                            continue;
                        }
                        anyhow::bail!("slot {slot}: {failure} ({detail})");
                    }
                    _ => {}
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| -> Result<()> {
            let threads: Vec<_> = (0..THREADS)
                .map(|at| {
                    let work = &work;
                    scope.spawn(move || work(at))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        println!("    {} signatures", signed.load(Ordering::Relaxed));
        // No session is open: nobody is logged in.
        for slot in [SlotId(0), there] {
            let session = module.open_session(slot, Access::ReadOnly)?;
            ensure!(found(&session, "theirs")?.1.is_empty(), "slot {slot}: a login is left");
        }
        // After wrong PINs a right one has to be shown by itself.
        logged_in(module)?.close()?;
        let here = user(module)?;
        here.sign(&RSA.into(), private_key(&here, "theirs")?, b"message")?;
        Ok(())
    });
}

/// What slot 0 opens at that moment makes no PIN right that is given in the token's own slot.
#[test]
fn a_wrong_pin_is_wrong_while_slot_0_logs_in() {
    const ROUNDS: usize = 20_000;
    let name = "view::a_wrong_pin_is_wrong_while_slot_0_logs_in";
    let prepare = |token: &mut TestToken| three_tokens(token, "");
    apart(CLIENT, "wrong PINs beside slot 0's login", name, prepare, || {
        let module = started()?;
        let (here, there) = (metaslot(&module)?, module.open_session(SlotId(1), Access::ReadOnly)?);
        let over = AtomicU64::new(0);
        std::thread::scope(|scope| -> Result<()> {
            let logs_in = scope.spawn(|| -> Result<()> {
                while over.load(Ordering::Relaxed) == 0 {
                    here.login(User::User, USER_PIN.as_bytes())?;
                    here.logout()?;
                }
                Ok(())
            });
            let searches = scope.spawn(|| -> Result<()> {
                let beside = metaslot(&module)?;
                while over.load(Ordering::Relaxed) == 0 {
                    beside.find(&Template::new())?;
                }
                Ok(())
            });
            let mut wrong = (0..ROUNDS).map(|_| there.login(User::User, b"4321"));
            let answer = wrong.try_for_each(|answer| fails_with(answer, Error::PIN_INCORRECT));
            over.store(1, Ordering::Relaxed);
            for thread in [logs_in, searches] {
                thread.join().expect("no panic")?;
            }
            answer
        })
    });
}

/// Slot 0's login by a wrong PIN, which it has not tried yet, is none that a right one is compared with.
#[test]
fn a_right_pin_counts_before_a_wrong_one_was_tried() {
    let name = "view::a_right_pin_counts_before_a_wrong_one_was_tried";
    with_pin("a wrong PIN that is not tried yet", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        there.set_pin(USER_PIN.as_bytes(), b"another one")?;
        there.logout()?;
        let here = user(module)?;
        there.login(User::User, b"another one")?;
        private_key(&there, "theirs")?;
        // What is open because of its own slot is open for as long as that.
        here.logout()?;
        here.login(User::User, USER_PIN.as_bytes())?;
        there.logout()?;
        ensure!(
            found(&here, "theirs")?.1.is_empty(),
            "slot 0 has a login by a PIN that it was not given"
        );
        Ok(())
    });
}

#[test]
fn a_pin_that_is_changed_in_its_own_slot_counts_there() {
    let name = "view::a_pin_that_is_changed_in_its_own_slot_counts_there";
    with_pin("a PIN that changes", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        let here = user(module)?;
        private_key(&here, "theirs")?;
        there.set_pin(USER_PIN.as_bytes(), b"another one")?;
        there.logout()?;
        fails_with(there.login(User::User, USER_PIN.as_bytes()), Error::PIN_INCORRECT)?;
        there.login(User::User, b"another one")?;
        private_key(&there, "theirs").map(drop)
    });
}

/// Who tries to initialise a token in its own slot takes nothing from slot 0 before that succeeds.
#[test]
fn a_token_that_is_not_initialised_after_all_stays_open() {
    let name = "view::a_token_that_is_not_initialised_after_all_stays_open";
    with_pin("a token that is nearly initialised", name, &[], |module| {
        let there = logged_in(module)?;
        rsa_pair(&there, "theirs")?;
        there.close()?;
        let (here, its) = (user(module)?, slot(module, LABEL)?);
        let key = private_key(&here, "theirs")?;
        let signature = here.sign(&RSA.into(), key, b"message")?;
        fails_with(module.init_token(its, b"another one", LABEL), Error::PIN_INCORRECT)?;
        ensure!(here.sign(&RSA.into(), key, b"message")? == signature, "another signature");
        here.sign_init(&RSA.into(), key)?;
        here.sign_update(b"mess")?;
        let busy = module.init_token(its, SO_PIN.as_bytes(), LABEL);
        fails_with(busy, Error::SESSION_EXISTS)?;
        here.sign_update(b"age")?;
        ensure!(here.sign_final()? == signature, "another signature");
        module.init_token(its, SO_PIN.as_bytes(), LABEL)?;
        ensure!(found(&here, "theirs")?.0 == 0, "it is there after the initialisation");
        fails_with(here.sign(&RSA.into(), key, b"message"), Error::KEY_HANDLE_INVALID)
    });
}
