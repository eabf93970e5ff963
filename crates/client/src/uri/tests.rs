// SPDX-License-Identifier: Apache-2.0
//! Reading and writing, as tables.

use super::read::Error;
use super::{Class, Uri};

fn read(text: &str) -> Result<Uri, Error> {
    text.parse()
}

fn error(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

#[test]
fn every_attribute_is_read() {
    let uri = read(
        "pkcs11:token=T;manufacturer=M;model=Mo;serial=S;object=O;id=%00%ff;type=private;slot-id=7;\
         slot-description=D;slot-manufacturer=SM;library-description=LD;library-manufacturer=LM;\
         library-version=3.2?pin-source=file:/etc/pin&module-name=metaslot&module-path=/lib/m.so",
    );
    let uri = uri.unwrap();
    assert_eq!(uri.token.as_deref(), Some("T"));
    assert_eq!(uri.manufacturer.as_deref(), Some("M"));
    assert_eq!(uri.model.as_deref(), Some("Mo"));
    assert_eq!(uri.serial.as_deref(), Some("S"));
    assert_eq!(uri.object.as_deref(), Some("O"));
    assert_eq!(uri.id.as_deref(), Some(&[0, 255][..]));
    assert_eq!(uri.class, Some(Class::Private));
    assert_eq!(uri.slot_id, Some(7));
    assert_eq!(uri.slot_description.as_deref(), Some("D"));
    assert_eq!(uri.slot_manufacturer.as_deref(), Some("SM"));
    assert_eq!(uri.library_description.as_deref(), Some("LD"));
    assert_eq!(uri.library_manufacturer.as_deref(), Some("LM"));
    assert_eq!(uri.library_version, Some((3, 2)));
    assert_eq!(uri.pin_source.as_deref(), Some("file:/etc/pin"));
    assert_eq!(uri.module_name.as_deref(), Some("metaslot"));
    assert_eq!(uri.module_path.as_deref(), Some("/lib/m.so"));
}

#[test]
fn an_empty_uri_matches_everything() {
    assert_eq!(read("pkcs11:").unwrap(), Uri::default());
    assert_eq!(read("PKCS11:?").unwrap(), Uri::default());
    assert_eq!(read("pkcs11:;;token=a;").unwrap().token.as_deref(), Some("a"));
}

#[test]
fn an_empty_value_is_not_an_absent_one() {
    let uri = read("pkcs11:object=;id=").unwrap();
    assert_eq!(uri.object.as_deref(), Some(""));
    assert_eq!(uri.id.as_deref(), Some(&[][..]));
}

#[test]
fn escapes_are_undone_in_any_case_and_once() {
    assert_eq!(read("pkcs11:object=a%20b%3bc%3D").unwrap().object.as_deref(), Some("a b;c="));
    assert_eq!(read("pkcs11:object=%C3%a9").unwrap().object.as_deref(), Some("é"));
    assert_eq!(read("pkcs11:object=%2541").unwrap().object.as_deref(), Some("%41"));
    assert_eq!(read("pkcs11:object=a=b").unwrap().object.as_deref(), Some("a=b"));
    assert_eq!(read("pkcs11:id=ab%01").unwrap().id.as_deref(), Some(&b"ab\x01"[..]));
}

#[test]
fn separators_of_the_other_part_stand_for_themselves() {
    assert_eq!(read("pkcs11:object=a&b").unwrap().object.as_deref(), Some("a&b"));
    let command = read("pkcs11:?pin-source=|/bin/pin%20now?x").unwrap();
    assert_eq!(command.pin_source.as_deref(), Some("|/bin/pin now?x"));
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let rows = [
        ("", "it does not begin with 'pkcs11:'"),
        ("pkcs11", "it does not begin with 'pkcs11:'"),
        ("http:token=a", "it does not begin with 'pkcs11:'"),
        ("pkcs11:token", "'token' has no value: write token=..."),
        ("pkcs11:=a", "'' is not the name of an attribute"),
        ("pkcs11:to ken=a", "'to ken' is not the name of an attribute"),
        ("pkcs11:token=a;token=a", "'token' is given twice"),
        ("pkcs11:id=%01;id=%01", "'id' is given twice"),
        ("pkcs11:?pin-source=a&pin-source=b", "'pin-source' is given twice"),
        (
            "pkcs11:object=ab%4",
            "'object' has a '%' without two hexadecimal digits after it, at byte 2 of its value",
        ),
        (
            "pkcs11:object=%+1",
            "'object' has a '%' without two hexadecimal digits after it, at byte 0 of its value",
        ),
        (
            "pkcs11:object=%é",
            "'object' has a '%' without two hexadecimal digits after it, at byte 0 of its value",
        ),
        ("pkcs11:object=a b", "'object' has ' ', which must be written %20"),
        ("pkcs11:object=é", "'object' has 'é', which must be written %C3%A9"),
        ("pkcs11:object=a#b", "'object' has '#', which must be written %23"),
        ("pkcs11:token=%ff", "'token' is not UTF-8"),
        ("pkcs11:type=key", "'type' must be one of cert, data, private, public, secret-key"),
        ("pkcs11:slot-id=+1", "'slot-id' must be a decimal number"),
        ("pkcs11:slot-id=", "'slot-id' must be a decimal number"),
        ("pkcs11:library-version=3.", "'library-version' must be a version, as 3 or 3.2"),
        ("pkcs11:library-version=999", "'library-version' must be a version, as 3 or 3.2"),
        ("pkcs11:x-shop=1", "the attribute 'x-shop' is unknown and matches nothing"),
        ("pkcs11:?pin-source=a&pin-value=b", "it has both 'pin-source' and 'pin-value'"),
    ];
    for (text, message) in rows {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn unknown_attributes_of_the_query_are_kept() {
    let text = "pkcs11:token=a?x-one=1%20&x-one=2";
    assert_eq!(read(text).unwrap().to_string(), text);
}

#[test]
fn a_library_version_without_a_minor_means_zero() {
    assert_eq!(read("pkcs11:library-version=3").unwrap().library_version, Some((3, 0)));
}

#[test]
fn what_is_written_is_read_back() {
    let uri = Uri {
        token: Some("My token; 100% ü".into()),
        manufacturer: Some("M/1".into()),
        object: Some("a=b&c?d".into()),
        id: Some(b"\x00id\xff".to_vec()),
        class: Some(Class::Secret),
        slot_id: Some(u64::MAX),
        library_version: Some((3, 2)),
        pin_source: Some("|pass show 'pin' & true".into()),
        module_path: Some("/usr/lib/libmetaslot.so".into()),
        ..Uri::default()
    };
    assert_eq!(read(&uri.to_string()).unwrap(), uri);
}

#[test]
fn the_written_form_is_stable() {
    let uri = Uri {
        token: Some("web".into()),
        object: Some("site key".into()),
        id: Some(vec![1, 171]),
        class: Some(Class::Private),
        pin_source: Some("file:/etc/pin".into()),
        ..Uri::default()
    };
    let written =
        "pkcs11:token=web;id=%01%AB;object=site%20key;type=private?pin-source=file:/etc/pin";
    assert_eq!(uri.to_string(), written);
}

#[test]
fn a_pin_is_never_written() {
    let uri = read("pkcs11:token=a?pin-value=12%2034").unwrap();
    assert_eq!(uri.pin_value.as_ref().unwrap().expose(), b"12 34");
    assert_eq!(uri.to_string(), "pkcs11:token=a");
    assert!(!format!("{uri:?}").contains("34"));
}

#[test]
fn classes_have_the_names_of_the_rfc() {
    for (class, name) in Class::NAMES {
        assert_eq!(read(&format!("pkcs11:type={name}")).unwrap().class, Some(*class));
        assert_eq!(class.name(), *name);
    }
}

#[test]
fn no_text_makes_the_reader_panic_and_what_it_reads_it_writes_back() {
    let parts: Vec<&str> = vec![
        "pkcs11:",
        "token",
        "=",
        ";",
        "?",
        "&",
        "%",
        "%4",
        "%41",
        "%ff",
        "id=",
        "é",
        "object=a",
        "pin-source=",
        "slot-id=9",
        "type=cert",
        "library-version=1.2",
        " ",
        "\u{0}",
        "x-y=1",
        "\u{10ffff}",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut read_some = false;
    for _ in 0..20_000 {
        let mut text = String::from("pkcs11:");
        for _ in 0..state % 9 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % parts.len() as u64).unwrap();
            text.push_str(parts[at]);
        }
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        if let Ok(uri) = read(&text) {
            assert_eq!(read(&uri.to_string()).as_ref(), Ok(&uri), "{text}");
            read_some = true;
        }
    }
    assert!(read_some);
}
