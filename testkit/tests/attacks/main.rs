// SPDX-License-Identifier: Apache-2.0
//! Attacks on the interface itself. Each one first succeeds under the policy `legacy`, so that its
//! refusal under `default` means something.
//!
//! Sources: J. Clulow, "On the Security of PKCS #11" (2003); S. Delaune, S. Kremer, G. Steel,
//! "Formal Analysis of PKCS#11" (2008); M. Bortolozzo and others, "Attacking and Fixing PKCS#11
//! Security Tokens" (2010); R. Bardou and others, "Efficient Padding Oracle Attacks" (2012).
#![forbid(unsafe_code)]

mod always;
mod classics;
mod field;
mod groups;
mod keys;
mod purposes;
mod weak;

use anyhow::{Result, bail};
use metaslot_ck::*;
use metaslot_client::{Session, Template};
use metaslot_testkit::{TestToken, apart, is_inside, user_session};

const CLIENT: &str = "Attacks";
/// What the attacked key is worth.
const SECRET: &[u8; 32] = b"the value that must not be read!";
/// What this process should see: the attack succeeds, or it is refused.
const EXPECTED: &str = "METASLOT_TEST_EXPECTED";

/// `Ok(true)`: the attacker has what he wanted. An error: the module refused on the way.
type Attack = fn(&Session) -> metaslot_client::Result<bool>;

/// Runs an attack under both policies.
fn attack(what: &str, name: &str, attack: Attack) {
    attack_where(&[], what, name, attack);
}

/// The same where the default policy is told to allow something.
fn attack_where(allowed: &[&str], what: &str, name: &str, attack: Attack) {
    if is_inside() {
        apart(CLIENT, what, name, |_| Ok(()), || judge(attack));
        return;
    }
    for (policy, expected) in [("legacy", "succeeds"), ("default", "is refused")] {
        let prepare = |token: &mut TestToken| {
            token.set(EXPECTED, expected);
            token.policy_allowing(policy, if policy == "legacy" { &[] } else { allowed })
        };
        let what = format!("{what} {expected} under {policy}");
        apart(CLIENT, &what, name, prepare, || judge(attack));
    }
}

fn judge(attack: Attack) -> Result<()> {
    let expected = std::env::var(EXPECTED)?;
    let (_module, session) = user_session()?;
    match (attack(&session), expected.as_str()) {
        (Ok(true), "succeeds") | (Err(_), "is refused") => Ok(()),
        (Ok(got), _) => bail!("expected that it {expected}; no call failed, succeeded: {got}"),
        (Err(error), _) => bail!("expected that it {expected}; {error}"),
    }
}

/// A session AES-256 key with `roles`, sensitive and extractable.
fn aes(session: &Session, roles: &[CK_ATTRIBUTE_TYPE]) -> metaslot_client::Result<ObjectHandle> {
    aes_of(session, 32, roles)
}

fn aes_of(
    session: &Session,
    length: u64,
    roles: &[CK_ATTRIBUTE_TYPE],
) -> metaslot_client::Result<ObjectHandle> {
    let template = Template::new()
        .token(false)
        .ulong(CKA_VALUE_LEN, length)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, true);
    session.generate_key(&CKM_AES_KEY_GEN.into(), &with_roles(template, roles))
}

/// The usages of a secret key: those in `roles` and no other.
fn with_roles(template: Template, roles: &[CK_ATTRIBUTE_TYPE]) -> Template {
    [CKA_ENCRYPT, CKA_DECRYPT, CKA_WRAP, CKA_UNWRAP, CKA_SIGN, CKA_VERIFY, CKA_DERIVE]
        .into_iter()
        .fold(template, |template, role| template.bool(role, roles.contains(&role)))
}

/// The key that is attacked: sensitive, extractable, of known value so that success can be judged.
fn target(session: &Session) -> metaslot_client::Result<ObjectHandle> {
    let template = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, true)
        .bool(CKA_EXTRACTABLE, true)
        .bytes(CKA_VALUE, SECRET);
    session.create(&with_roles(template, &[CKA_SIGN, CKA_DERIVE]))
}

/// A readable generic secret, as an attacker would like to have it.
fn readable() -> Template {
    secret(false)
}

/// A generic secret.
fn secret(sensitive: bool) -> Template {
    Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, sensitive)
        .bool(CKA_EXTRACTABLE, true)
}

#[test]
fn wrapped_key_is_decrypted_with_the_same_key() {
    attack("wrap then decrypt", "wrapped_key_is_decrypted_with_the_same_key", keys::wrap_decrypt);
}

#[test]
fn wrapping_key_is_turned_into_a_decryption_key() {
    let name = "wrapping_key_is_turned_into_a_decryption_key";
    attack("change of roles", name, keys::role_flip);
}

#[test]
fn chosen_key_is_encrypted_and_unwrapped() {
    attack("encrypt then unwrap", "chosen_key_is_encrypted_and_unwrapped", keys::encrypt_unwrap);
}

#[test]
fn key_is_unwrapped_as_readable() {
    attack("unwrap to readable", "key_is_unwrapped_as_readable", keys::unwrap_readable);
}

#[test]
fn key_is_wrapped_under_one_that_the_attacker_knows() {
    let name = "key_is_wrapped_under_one_that_the_attacker_knows";
    attack("wrap under a known key", name, keys::wrap_under_known);
}

#[test]
fn long_key_is_wrapped_under_a_short_one() {
    attack("weak wrapping key", "long_key_is_wrapped_under_a_short_one", keys::weak_wrapping);
}

#[test]
fn long_key_is_wrapped_under_one_that_a_short_one_derives() {
    attack(
        "weak base of a wrapping key",
        "long_key_is_wrapped_under_one_that_a_short_one_derives",
        purposes::wrapped_by_a_derivative,
    );
}

#[test]
fn unwrapping_tells_whether_the_padding_is_right() {
    let name = "unwrapping_tells_whether_the_padding_is_right";
    attack("padding oracle of unwrapping", name, keys::padding_oracle);
}

#[test]
fn key_is_derived_as_readable() {
    attack("derivation to readable", "key_is_derived_as_readable", keys::derive_readable);
}

#[test]
fn key_is_cut_into_pieces_that_can_be_guessed() {
    let name = "key_is_cut_into_pieces_that_can_be_guessed";
    attack("derivation of short keys", name, keys::derive_short);
}

#[test]
fn two_keys_are_wrapped_under_one_iv() {
    attack("one IV for two wraps", "two_keys_are_wrapped_under_one_iv", purposes::one_iv_for_two);
}

#[test]
fn wrapped_key_is_opened_by_a_raw_signature() {
    attack(
        "raw signature of a wrap",
        "wrapped_key_is_opened_by_a_raw_signature",
        purposes::wrap_opened_by_signature,
    );
}

#[test]
fn wrapping_key_signs() {
    attack("GMAC by a wrapping key", "wrapping_key_signs", purposes::wrapping_key_signs);
}

#[test]
fn wrapped_key_is_unwrapped_in_pieces() {
    attack("unwrap in pieces", "wrapped_key_is_unwrapped_in_pieces", purposes::growing_pieces);
}

#[test]
fn key_comes_back_from_a_wrap_with_more_usages() {
    attack(
        "wrap and unwrap with more usages",
        "key_comes_back_from_a_wrap_with_more_usages",
        purposes::usages_by_rewrapping,
    );
}

#[test]
fn derived_key_is_computed_with_its_base() {
    attack("MAC by a base key", "derived_key_is_computed_with_its_base", purposes::base_key_signs);
}

#[test]
fn derived_key_is_computed_with_its_base_as_salt() {
    attack(
        "base key as salt",
        "derived_key_is_computed_with_its_base_as_salt",
        purposes::base_key_is_salt,
    );
}

#[test]
fn derived_key_is_computed_with_what_hkdf_extracts() {
    attack(
        "MAC by an extracted key",
        "derived_key_is_computed_with_what_hkdf_extracts",
        purposes::extracted_key_signs,
    );
}

#[test]
fn derived_key_is_computed_by_digesting_its_base() {
    attack(
        "digest of a base key",
        "derived_key_is_computed_by_digesting_its_base",
        purposes::base_key_is_digested,
    );
}

#[test]
fn key_that_verifies_makes_macs_by_digests() {
    attack(
        "MAC by a forged state of a digest",
        "key_that_verifies_makes_macs_by_digests",
        purposes::forged_state_signs,
    );
}

#[test]
fn key_that_verifies_makes_macs_by_md2() {
    let name = "key_that_verifies_makes_macs_by_md2";
    attack("MAC by the MD2 of a key", name, classics::digest_is_the_key_of_hmac_md2);
}

#[test]
fn key_that_verifies_makes_macs_of_ssl_3() {
    let name = "key_that_verifies_makes_macs_of_ssl_3";
    attack_where(&["old-tls"], "MACs of SSL 3.0 by digests", name, classics::digests_are_macs);
}

#[test]
fn tag_is_short_enough_to_be_guessed() {
    attack("short tag", "tag_is_short_enough_to_be_guessed", weak::short_tag);
}

#[test]
fn mac_is_short_enough_to_be_guessed() {
    attack("short MAC", "mac_is_short_enough_to_be_guessed", weak::short_mac);
}

#[test]
fn rsa_key_is_short_enough_to_be_factored() {
    attack("RSA-1024", "rsa_key_is_short_enough_to_be_factored", weak::short_rsa);
}

#[test]
fn curve_is_small_enough_to_be_solved() {
    attack("sect163k1", "curve_is_small_enough_to_be_solved", weak::weak_curve);
}

#[test]
fn rsa_exponent_is_three() {
    attack("exponent 3", "rsa_exponent_is_three", weak::small_exponent);
}

#[test]
fn signature_is_over_an_md5() {
    attack("MD5 signature", "signature_is_over_an_md5", weak::md5_signature);
}

#[test]
fn signature_of_pss_is_over_an_md5() {
    attack("MD5 signature by PSS", "signature_of_pss_is_over_an_md5", weak::md5_pss);
}

#[test]
fn parameters_name_what_is_not_approved() {
    let prepare = |token: &mut TestToken| token.policy("fips");
    apart(CLIENT, "hashes under fips", "parameters_name_what_is_not_approved", prepare, || {
        weak::parameters_name_what_is_not_approved(&user_session()?.1)
    });
}

#[test]
fn data_is_sealed_with_triple_des() {
    attack("triple DES", "data_is_sealed_with_triple_des", weak::triple_des);
}

#[test]
fn data_is_sealed_with_rc4() {
    attack("RC4", "data_is_sealed_with_rc4", weak::rc4);
}

#[test]
fn data_is_sealed_with_a_national_cipher() {
    attack("Camellia", "data_is_sealed_with_a_national_cipher", weak::national);
}

#[test]
fn transport_key_is_opened_by_oaep() {
    attack(
        "OAEP of a transport key",
        "transport_key_is_opened_by_oaep",
        classics::transport_key_is_opened,
    );
}

#[test]
fn key_is_extracted_byte_by_byte() {
    attack("extraction of a byte", "key_is_extracted_byte_by_byte", classics::extracted_byte);
}

#[test]
fn key_is_masked_by_what_is_known() {
    attack("key under a mask", "key_is_masked_by_what_is_known", classics::masked_key);
}

#[test]
fn data_are_encrypted_as_a_readable_key() {
    attack(
        "encryption to a readable key",
        "data_are_encrypted_as_a_readable_key",
        classics::encrypted_data_is_read,
    );
}

#[test]
fn digest_of_a_key_is_read() {
    attack("digest as a readable key", "digest_of_a_key_is_read", classics::digested_key_is_read);
}

#[test]
fn key_of_poly1305_makes_two_macs() {
    attack(
        "two MACs by Poly1305",
        "key_of_poly1305_makes_two_macs",
        classics::two_macs_of_poly1305,
    );
}

#[test]
fn secret_is_agreed_on_in_a_small_group() {
    attack("a small group", "secret_is_agreed_on_in_a_small_group", groups::small_group);
}

#[test]
fn pair_is_made_in_a_small_group() {
    attack(
        "a pair in a small group",
        "pair_is_made_in_a_small_group",
        groups::new_pair_in_a_small_group,
    );
}

#[test]
fn dsa_signs_something_new() {
    attack("DSA", "dsa_signs_something_new", groups::dsa);
}

#[test]
fn keys_of_a_connection_are_its_ivs() {
    attack("keys as IVs", "keys_of_a_connection_are_its_ivs", groups::keys_as_ivs);
}

#[test]
fn secret_of_tls_10_is_made() {
    attack("TLS 1.0", "secret_of_tls_10_is_made", groups::old_tls);
}

#[test]
fn what_travels_under_rsa_and_aes_is_opened_by_that_alone() {
    let name = "what_travels_under_rsa_and_aes_is_opened_by_that_alone";
    apart(
        CLIENT,
        "RSA and AES under default",
        name,
        |_| Ok(()),
        || classics::transport_under_default(&user_session()?.1),
    );
}

/// Refused under every policy: the standard itself forbids these.
fn never(what: &str, name: &str, work: fn(&Session) -> Result<()>) {
    let prepare = |token: &mut TestToken| token.policy("legacy");
    apart(CLIENT, what, name, prepare, || work(&user_session()?.1));
}

#[test]
fn protection_is_never_lowered() {
    never("lowering of protection", "protection_is_never_lowered", always::lowering);
}

#[test]
fn copies_are_never_less_protected() {
    never("less protected copies", "copies_are_never_less_protected", always::copies);
}

#[test]
fn usages_and_allowed_mechanisms_are_kept_to() {
    let name = "usages_and_allowed_mechanisms_are_kept_to";
    never("usage outside the template", name, always::usages);
}

#[test]
fn origin_of_a_key_is_never_forged() {
    never("forged origin", "origin_of_a_key_is_never_forged", always::origin);
}

#[test]
fn user_makes_a_wrapping_key_trusted() {
    never("trust by the user", "user_makes_a_wrapping_key_trusted", always::trust);
}

#[test]
fn saved_digest_shows_no_key() {
    never("state of a digested key", "saved_digest_shows_no_key", always::saved_digest);
}

#[test]
fn private_objects_are_hidden_after_logout() {
    never("use after logout", "private_objects_are_hidden_after_logout", always::logout);
}

#[test]
fn one_pin_is_for_one_plaintext() {
    never("many plaintexts for one PIN", "one_pin_is_for_one_plaintext", always::one_pin);
}

#[test]
fn wrong_rsa_padding_looks_like_a_message() {
    let name = "wrong_rsa_padding_looks_like_a_message";
    never("padding oracle of decryption", name, always::implicit_rejection);
}

#[test]
fn keys_that_hold_others_are_as_secret() {
    let name = "keys_that_hold_others_are_as_secret";
    never("readable combination", name, classics::results_are_as_secret);
}

#[test]
fn points_off_the_curve_are_refused() {
    never("point off the curve", "points_off_the_curve_are_refused", always::invalid_points);
}
