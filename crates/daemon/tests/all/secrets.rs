// SPDX-License-Identifier: Apache-2.0
//! What keys of the daemon's tokens are worth is never in the memory of a program that makes, derives, wraps, unwraps, encapsulates
//! and decapsulates them by `libmetaslot.so`; and of a key of its session, which it has, nothing is left when it was destroyed.

use crate::common::{Place, USER, initialized, started};
use crate::derived::{CASES, Case};
use crate::itself::{self, Itself};
use metaslot_ck::*;
use metaslot_client::{KdfParam, Mechanism, Params, Session, Template};
use metaslot_spi::store::{ObjectRow, Role, Scope, Store as _};
use metaslot_testkit::{copies, module_path, not_run};
use std::collections::BTreeSet;
use std::fs;

const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const X25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x6e];
/// A group for Diffie-Hellman that is small enough for a test: its prime, the order of a subgroup, and its base.
const PRIME: &str = "fca682ce8e12caba26efccf7110e526db078b05edecbcd1eb4a208f3ae1617ae01f35b91a47e6df63413c5e12ed0899bcd132acd50d99151bdc43ee737592e17";
const ORDER: &str = "962eddcc369cba8ebb260ee6b6a126d9346e38c5";
const BASE: &str = "678471b27a9cf44ee91a49c5147db1a9aaf244f05a434d6486931d2d14271b9e35030b71fd73da179069b32e2935630e1c2062354d0da20a6c416e50be794ca4";

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Says what was done, and goes on when the memory was looked at.
fn done(what: &str) {
    itself::say(what);
    itself::heard();
}

/// A key of the token that stays there.
fn kept(label: &str, length: u64) -> Template {
    secret(length).label(label).token(true)
}

/// A key of the session otherwise.
fn secret(length: u64) -> Template {
    let secret = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    let secret = secret.ulong(CKA_VALUE_LEN, length).bool(CKA_SENSITIVE, true);
    secret.bool(CKA_PRIVATE, true).bool(CKA_EXTRACTABLE, true).bool(CKA_DERIVE, true)
}

type Made = metaslot_client::Result<ObjectHandle>;

/// What is said of it where the step fails.
fn right<T>(made: metaslot_client::Result<T>, what: &str) -> T {
    made.unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn pair(
    session: &Session,
    (label, generate): (&str, CK_MECHANISM_TYPE),
    public: Template,
    usage: CK_ATTRIBUTE_TYPE,
) -> [ObjectHandle; 2] {
    let public = public.label(label).token(true);
    let private = Template::new().label(label).token(true).bool(CKA_SENSITIVE, true);
    let private = private.bool(usage, true).bool(CKA_EXTRACTABLE, true);
    let made = session.generate_key_pair(&generate.into(), &public, &private);
    let (public, private) = right(made, label);
    done(label);
    [public, private]
}

/// Makes one in the token, and the same one of the session, which is destroyed again.
fn twice(session: &Session, name: &str, length: u64, make: impl Fn(&Template) -> Made) {
    right(make(&kept(name, length)), name);
    done(name);
    let own = match make(&secret(length)) {
        // What it is made of may be read by none, nor may this.
        Err(failed) if failed.code == Error::TEMPLATE_INCONSISTENT => return,
        own => right(own, name),
    };
    done(&format!("held {name}"));
    session.destroy(own).expect("it is destroyed");
    done(&format!("destroyed {name}"));
}

/// From secret keys.
fn derives(session: &Session) {
    let [base, aes] = ["base", "aes"].map(|label| {
        let (generate, key) = match label {
            "aes" => (CKM_AES_KEY_GEN, Template::new().label(label).ulong(CKA_VALUE_LEN, 32)),
            _ => {
                (CKM_GENERIC_SECRET_KEY_GEN, Template::new().label(label).ulong(CKA_VALUE_LEN, 48))
            }
        };
        let key = key.token(true).bool(CKA_DERIVE, true).bool(CKA_EXTRACTABLE, true);
        let key = key.bool(CKA_SENSITIVE, true);
        let made = right(session.generate_key(&generate.into(), &key), label);
        done(label);
        made
    });
    let by = |number, params: Params<'_>, base, length| {
        let mechanism = Mechanism::with(number, params);
        let name = format!("derived by {number:#x}");
        twice(session, &name, length, |template| session.derive(&mechanism, base, template));
    };
    // A second key is named to no daemon.
    const OF_TWO: [CK_MECHANISM_TYPE; 4] = [
        CKM_CONCATENATE_BASE_AND_KEY,
        CKM_IKE1_PRF_DERIVE,
        CKM_IKE1_EXTENDED_DERIVE,
        CKM_IKE2_PRF_PLUS_DERIVE,
    ];
    let none = ObjectHandle(CK_INVALID_HANDLE);
    let of_one = |case: &&Case| !OF_TWO.contains(&case.mechanism) && case.length >= 32;
    for case in CASES.iter().filter(of_one) {
        let base = if case.kind == CKK_AES { aes } else { base };
        by(case.mechanism, (case.told)(none), base, case.length);
    }
    let prf = CKM_SHA256_HMAC;
    by(
        CKM_IKE1_EXTENDED_DERIVE,
        Params::Ike1Extended { prf, agreed: None, extra: b"extra" },
        base,
        70,
    );
    by(
        CKM_IKE2_PRF_PLUS_DERIVE,
        Params::Ike2PrfPlus { prf, seed_key: None, seed: b"seed" },
        base,
        99,
    );
    let hkdf = Params::Hkdf {
        extract: true,
        expand: true,
        prf: CKM_SHA256,
        salt_type: CKF_HKDF_SALT_DATA,
        salt: b"salt",
        salt_key: none,
        info: b"info",
    };
    by(CKM_HKDF_DERIVE, hkdf, base, 64);
    let steps = [
        KdfParam::Iteration { little_endian: false, bits: 32 },
        KdfParam::Bytes(b"label"),
        KdfParam::DkmLength { sum_of_segments: false, little_endian: false, bits: 32 },
    ];
    let counter = Params::Sp800108 { prf: CKM_SHA256_HMAC, data: &steps };
    by(CKM_SP800_108_COUNTER_KDF, counter, base, 64);
    let back = [KdfParam::Previous, KdfParam::Bytes(b"label")];
    let pipeline = Params::Sp800108 { prf: CKM_SHA256_HMAC, data: &back };
    by(CKM_SP800_108_DOUBLE_PIPELINE_KDF, pipeline, base, 64);
    let feedback = Params::Sp800108Feedback { prf: CKM_SHA256_HMAC, data: &back, iv: &[1; 32] };
    by(CKM_SP800_108_FEEDBACK_KDF, feedback, base, 64);
    let copy = Template::new().label("copy").token(true);
    right(session.copy(base, &copy), "copy");
    done("copy");
}

/// With private keys.
fn agrees(session: &Session) {
    let on = |curve| Template::new().bytes(CKA_EC_PARAMS, curve);
    let of_kem = Template::new().ulong(CKA_PARAMETER_SET, CKP_ML_KEM_768);
    for (label, generate, curve) in
        [("p256", CKM_EC_KEY_PAIR_GEN, P256), ("x25519", CKM_EC_MONTGOMERY_KEY_PAIR_GEN, X25519)]
    {
        let [_, private] = pair(session, (label, generate), on(curve), CKA_DERIVE);
        let [other, _] =
            pair(session, (&format!("other {label}"), generate), on(curve), CKA_DERIVE);
        let public = right(session.attribute(other, CKA_EC_POINT), label);
        for (kdf, length) in [(CKD_NULL, 32), (CKD_SHA256_KDF, 48)] {
            let params = Params::Ecdh1 { kdf, shared: b"", public: &public };
            let mechanism = Mechanism::with(CKM_ECDH1_DERIVE, params);
            let name = format!("agreed on by {label} and {kdf}");
            twice(session, &name, length, |key| session.derive(&mechanism, private, key));
        }
    }
    let group = || {
        let group = Template::new().bytes(CKA_PRIME, bytes(PRIME)).bytes(CKA_BASE, bytes(BASE));
        group.bytes(CKA_SUBPRIME, bytes(ORDER))
    };
    let generate = CKM_X9_42_DH_KEY_PAIR_GEN;
    let [_, private] = pair(session, ("x942", generate), group(), CKA_DERIVE);
    let [other, _] = pair(session, ("other x942", generate), group(), CKA_DERIVE);
    let public = right(session.attribute(other, CKA_VALUE), "x942");
    let params = Params::X942 { kdf: CKD_NULL, info: b"", public: &public };
    let mechanism = Mechanism::with(CKM_X9_42_DH_DERIVE, params);
    twice(session, "agreed on by x942", 64, |key| session.derive(&mechanism, private, key));
    let public = of_kem.bool(CKA_ENCAPSULATE, true);
    let kem = ("ml-kem", CKM_ML_KEM_KEY_PAIR_GEN);
    let [public, private] = pair(session, kem, public, CKA_DECAPSULATE);
    let kem = Mechanism::new(CKM_ML_KEM);
    let made = session.encapsulate(&kem, public, &kept("encapsulated", 32));
    let (ciphertext, _) = right(made, "encapsulated");
    done("encapsulated");
    twice(session, "decapsulated", 32, |key| session.decapsulate(&kem, private, &ciphertext, key));
}

/// What is made above, under keys of the token.
fn wraps(session: &Session) {
    let usages = |template: Template| template.bool(CKA_WRAP, true);
    let kek = Template::new().label("kek").token(true).ulong(CKA_VALUE_LEN, 32);
    let kek = usages(kek).bool(CKA_UNWRAP, true);
    let kek = right(session.generate_key(&CKM_AES_KEY_GEN.into(), &kek), "kek");
    done("kek");
    let rsa = usages(Template::new().ulong(CKA_MODULUS_BITS, 2048));
    let rsa = pair(session, ("rsa", CKM_RSA_PKCS_KEY_PAIR_GEN), rsa, CKA_UNWRAP);
    let curve = usages(Template::new().bytes(CKA_EC_PARAMS, P256));
    let curve = pair(session, ("opens", CKM_EC_KEY_PAIR_GEN), curve, CKA_UNWRAP);
    let wanted = Template::new().class(CKO_SECRET_KEY).label("base");
    let base = session.find_one(&wanted).expect("a search").expect("it is there");
    let (hash, mgf, label) = (CKM_SHA256, CKG_MGF1_SHA256, &b"label"[..]);
    let gcm = Params::Gcm { iv: &[1; 12], aad: b"", tag_bits: 128 };
    let agreed = Params::EcdhAes { bits: 256, kdf: CKD_SHA256_KDF, shared: b"shared" };
    for (number, params, [seals, opens]) in [
        (CKM_AES_KEY_WRAP_KWP, Params::None, [kek; 2]),
        (CKM_AES_KEY_WRAP, Params::None, [kek; 2]),
        (CKM_AES_CBC_PAD, Params::Bytes(&[9; 16]), [kek; 2]),
        (CKM_AES_GCM, gcm, [kek; 2]),
        (CKM_RSA_PKCS_OAEP, Params::Oaep { hash, mgf, label }, rsa),
        (CKM_RSA_AES_KEY_WRAP, Params::RsaAes { bits: 256, hash, mgf, label }, rsa),
        (CKM_ECDH_AES_KEY_WRAP, agreed, curve),
    ] {
        let (mechanism, name) =
            (Mechanism::with(number, params), format!("unwrapped by {number:#x}"));
        let wrapped = right(session.wrap(&mechanism, seals, base), &name);
        done("base");
        let kept = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).label(&name);
        let kept = kept.token(true).bool(CKA_PRIVATE, true).bool(CKA_SENSITIVE, true);
        right(session.unwrap(&mechanism, opens, &wrapped, &kept), &name);
        done(&name);
    }
}

/// The program.
#[test]
fn client() {
    let Some((_module, session)) = itself::logged_in() else { return };
    derives(&session);
    agrees(&session);
    wraps(&session);
    done("all");
    // What it reads is found.
    let shown = Template::new().label("shown").ulong(CKA_VALUE_LEN, 48).token(true);
    let shown = shown.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
    let shown = session.generate_key(&CKM_GENERIC_SECRET_KEY_GEN.into(), &shown);
    let shown = shown.expect("a key is made");
    done("shown");
    let value = session.attribute(shown, CKA_VALUE).expect("it may be read");
    done("planted shown");
    assert_eq!(value.len(), 48);
}

/// A daemon, and this program as its client, that refuse nothing: keys that one hides are to be made of each other.
fn configured(place: &Place) {
    let at = place.path().display();
    let daemon = format!(
        "counters = false\n[[token]]\npath = \"{at}/token/token.db\"\nkdf = \"weak-for-tests\"\n\
         policy = \"legacy\"\n[daemon]\nsocket = \"{at}/socket\"\n"
    );
    fs::write(place.path().join("metaslotd.toml"), daemon).expect("it is written");
    let client = format!(
        "counters = false\n[[foreign]]\nname = \"held\"\nsocket = \"{at}/socket\"\npolicy = \"legacy\"\n"
    );
    fs::write(place.path().join("metaslot.toml"), client).expect("it is written");
}

/// What is secret of the keys that have this label, or of all: pieces of sixteen bytes that are no text and nowhere in public, as
/// they are and from behind, as numbers are in memory.
pub(crate) fn pieces(place: &Place, label: Option<&str>) -> Vec<[u8; 16]> {
    let store = place.store();
    store.login(Role::User, USER).expect("the user logs in");
    let term: Vec<_> = label.map(|label| (CKA_LABEL, label.into())).into_iter().collect();
    let rows = store.search(&term, Scope::Both, 0, 1000).expect("it is read");
    let rows = rows.into_iter().map(|found| {
        let row = store.read(found.id).expect("it is read").expect("it is there");
        (found.id, row)
    });
    let (secret, public): (Vec<_>, Vec<_>) = rows.partition(|(_, row)| row.has_secrets);
    let mut pieces = BTreeSet::new();
    for (id, row) in secret {
        let secrets = store.secrets(id, row.version).expect("it opens");
        let (pieces_of_it, _) = secrets.expose().as_chunks::<16>();
        let random = pieces_of_it.iter().chain(secrets.expose().last_chunk()).filter(|piece| {
            let is_public = |(_, row): &(u64, ObjectRow)| {
                row.attributes.windows(16).any(|there| there == **piece)
            };
            piece.iter().collect::<BTreeSet<_>>().len() > 8
                && !piece.is_ascii()
                && !public.iter().any(is_public)
        });
        // Of a long one some are enough.
        for piece in random.take(4) {
            let mut reversed = *piece;
            reversed.reverse();
            pieces.extend([*piece, reversed]);
        }
    }
    pieces.into_iter().collect()
}

#[test]
fn no_key_of_the_daemon_is_ever_in_its_clients_memory() {
    let Some(module) = module_path() else {
        return not_run("metaslotd", "memory of clients", "there is no libmetaslot.so");
    };
    let place = Place::in_memory();
    initialized(&place);
    configured(&place);
    let _server = started(&place);
    let mut client = Itself::started(&place, "secrets::client", &module);
    let (mut count, mut held, mut planted) = (0, 0, 0);
    while let Some(step) = client.answer() {
        count += 1;
        let seen = |label: Option<&str>| {
            let pieces = pieces(&place, label);
            let fewest = if label.is_some() { 1 } else { 100 };
            assert!(pieces.len() >= fewest, "{step}: {} pieces", pieces.len());
            let copies = copies(client.process.0.id(), &pieces);
            copies.into_iter().fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]])
        };
        if let Some(label) = step.strip_prefix("planted ") {
            planted = seen(Some(label))[0];
        } else if let Some(label) = step.strip_prefix("held ") {
            // A key of the session is the program's, where no core dump has it.
            let [dumped, kept] = seen(Some(label));
            assert!(dumped == 0 && kept > 0, "{step}: {dumped} and {kept}");
            held += 1;
        } else {
            let label = step.strip_prefix("destroyed ").unwrap_or(&step);
            assert_eq!(seen(Some(label).filter(|label| *label != "all")), [0, 0], "{step}");
        }
        client.tell("");
    }
    client.rest();
    println!("{count} steps, {held} of them with a key of the session");
    assert!(planted > 0, "what is there is not found");
    assert!(count > 80 && held > 20, "{count} steps, {held}");
}
