// SPDX-License-Identifier: Apache-2.0
//! `docs/mechanisms.md`: who serves each mechanism of the standard, or why nobody does.

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_classics::CLASSICS;
use metaslot_lanes::provider::Lanes;
use metaslot_spi::hashes;
use metaslot_spi::provider::{Algorithm, Provider};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

static LANES: Lanes = Lanes::beside(&AWSLC);

const FUNCTIONS: [(u64, &str); 14] = [
    (CKF_DIGEST, "digest"),
    (CKF_ENCRYPT, "encrypt"),
    (CKF_DECRYPT, "decrypt"),
    (CKF_SIGN, "sign"),
    (CKF_VERIFY, "verify"),
    (CKF_SIGN_RECOVER, "sign-recover"),
    (CKF_VERIFY_RECOVER, "verify-recover"),
    (CKF_GENERATE, "generate"),
    (CKF_GENERATE_KEY_PAIR, "generate-pair"),
    (CKF_WRAP, "wrap"),
    (CKF_UNWRAP, "unwrap"),
    (CKF_DERIVE, "derive"),
    (CKF_ENCAPSULATE, "encapsulate"),
    (CKF_DECAPSULATE, "decapsulate"),
];

const HEAD: &str = "\
# The standard's mechanisms

Every mechanism that PKCS#11 3.2 has a name for, and one of the draft of 3.3: who serves it, with which functions, and which vectors hold it; or why nobody does. The page is
made of the providers' tables and compared with them by a test. What one machine, build, configuration and policy leave of it is said by
[`metaslot mechanisms`](commands/mechanisms.md#metaslot-mechanisms) and [`metaslot explain`](commands/mechanisms.md#metaslot-explain).
";

const LEGEND: &str = "
`lanes`, `awslc` and `classics` (ciphers of old, and of some countries) are always there; `openssl` is in builds with that feature; `kernel` is used where the [configuration](configuration.md) asks for it and has
what the operating system's kernel has; `foreign` passes on what the token of another module offers, for the keys that stay there. `CKM_XEDDSA` is served for X25519 keys; keys of X448, which `openssl` makes,
are refused with `CKR_KEY_SIZE_RANGE`. Not served of what the standard's tables have for mechanisms that are: nonces of 64 bits for ChaCha20-Poly1305, of which the standard does not say what the tag is of; pseudo-random functions of IKE other than HMAC of MD5, SHA-1, SHA-2 and SHA-3, AES-XCBC and AES-CMAC, SHA-1 for TLS 1.2, Ed25519ctx without a context, which RFC 8032 §5.1 advises against, and encryption and wrapping by `CKM_POLY1305`, which makes tags only. Vectors are files of `testdata/`, without `.json`. The section
is PKCS#11 3.2's; the number of that of the draft is in the committee's register of identifiers; RC4's and those that are called historical are in the Historical Mechanisms 3.0.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the vocabulary, by number.
fn names() -> Vec<(u64, &'static str)> {
    let numbers = (0..1 << 16).chain([CKM_VENDOR_DEFINED]);
    numbers.filter_map(|number| Some((number, mechanism_name(number)?))).collect()
}

/// The words of a text that are names of mechanisms.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("CKM_")).collect()
}

/// What the files below a directory name. Rows that are not in this build, or not on this machine, are known by that.
fn named_below(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let each = entries.map(|entry| entry.expect("it can be read").path()).flat_map(|path| {
        if path.is_dir() {
            return named_below(&path);
        }
        named(&read(&path)).into_iter().map(str::to_owned).collect()
    });
    each.collect()
}

/// What holds each row: files of vectors, or words in their place.
fn vectors(more: &serde_json::Map<String, serde_json::Value>) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<_, Vec<String>>::new();
    let table = read(&root().join("crates/providers/awslc/tests/rows.rs"));
    let (table, _) = table.split_once("const CIPHERS").expect("what follows the tables");
    for row in table.split("CKM_").skip(1) {
        let (name, rest) = row.split_once(',').expect("a row");
        let words = rest.split('"').skip(1).step_by(2).map(str::to_owned);
        found.entry(format!("CKM_{name}")).or_default().extend(words);
    }
    for file in [
        "openssl/ciphers",
        "openssl/classics",
        "openssl/encapsulation",
        "openssl/groups",
        "openssl/old_ciphers",
        "openssl/tls",
        "rfc/old_ciphers",
        "nist/agreement",
        "nist/ciphers",
        "nist/ike",
        "nist/lms",
        "nist/ml_kem",
        "nist/one_step",
        "nist/tls",
        "nist/x963",
    ] {
        for name in named(&read(&root().join(format!("testdata/{file}.json")))) {
            found.entry(name.to_owned()).or_default().push(file.to_owned());
        }
    }
    for (word, file) in more {
        for (_, name) in names().into_iter().filter(|(_, name)| means(word, name)) {
            let file = file.as_str().expect("a file's name").to_owned();
            found.entry(name.to_owned()).or_default().push(file);
        }
    }
    found
}

fn means(word: &str, name: &str) -> bool {
    word.strip_suffix('*').map_or(word == name, |start| name.starts_with(start))
}

/// Who serves a mechanism, and the functions that they have together.
struct Served {
    providers: Vec<&'static str>,
    flags: u64,
}

/// What a provider has, asked by the name of a mechanism.
type Has = Box<dyn Fn(&str) -> bool>;

fn served() -> BTreeMap<u64, Served> {
    let mut served = BTreeMap::<u64, Served>::new();
    let mut add = |provider, row: &Algorithm| {
        let entry =
            served.entry(row.mechanism).or_insert(Served { providers: Vec::new(), flags: 0 });
        if !entry.providers.contains(&provider) {
            entry.providers.push(provider);
        }
        entry.flags |= row.flags();
    };
    for provider in [&LANES as &'static dyn Provider, &AWSLC, &CLASSICS] {
        provider.algorithms().iter().for_each(|row| add(provider.name(), row));
    }
    let source = |crate_: &str| {
        let found = named_below(&root().join(format!("crates/providers/{crate_}/src")));
        Box::new(move |name: &str| found.contains(name)) as Has
    };
    let others = [
        ("openssl", source("openssl")),
        ("kernel", source("kernel")),
        ("foreign", source("foreign")),
    ];
    for (number, entry) in &mut served {
        let name = mechanism_name(*number).expect("it is in the vocabulary");
        // A token of another module makes keys by every mechanism that we know, and is asked for every digest whose length is known.
        let makes = entry.flags & (CKF_GENERATE | CKF_GENERATE_KEY_PAIR) != 0;
        let passed_on = makes || hashes::length(*number).is_some();
        let has =
            others.iter().filter(|(other, has)| has(name) || passed_on && *other == "foreign");
        entry.providers.extend(has.map(|(other, _)| *other));
    }
    served
}

/// All names that the standard has for it.
fn shown(number: u64, name: &str) -> String {
    let others = mechanism_aliases(number).map(|other| format!(" = `{other}`"));
    format!("`{name}`{}", others.collect::<String>())
}

fn page() -> String {
    let data = read(&root().join("testdata/mechanisms.json"));
    let data: serde_json::Value = serde_json::from_str(&data).expect("JSON");
    let vectors = vectors(data["other vectors"].as_object().expect("a table"));
    let served = served();
    let all = names();
    let mut page = HEAD.to_owned();
    let (have, of) = (served.len(), all.len());
    write!(page, "\n**{have} of {of} are served.**\n\n## Served\n{LEGEND}").expect("a string");
    page.push_str(
        "\n| mechanism | section | functions | providers | vectors |\n|---|---|---|---|---|\n",
    );
    for (number, by) in &served {
        let name = mechanism_name(*number).expect("it is in the vocabulary");
        let section = MechanismRow::find(*number).expect("a provider's rows are known").section;
        let functions = FUNCTIONS.iter().filter(|(flag, _)| by.flags & flag != 0);
        let functions: Vec<_> = functions.map(|row| row.1).collect();
        let held = vectors.get(name).unwrap_or_else(|| panic!("{name}: nothing holds it"));
        for file in held.iter().filter(|file| file.contains('/') && !file.contains(' ')) {
            let path = root().join(format!("testdata/{file}.json"));
            assert!(path.is_file(), "{name}: {} is missing", path.display());
        }
        let (functions, providers) = (functions.join(" "), by.providers.join(" "));
        let held = held.join(", ");
        let names = shown(*number, name);
        writeln!(page, "| {names} | {section} | {functions} | {providers} | {held} |")
            .expect("a string");
    }
    page.push_str("\n## Not served\n\n| why | mechanisms |\n|---|---|\n");
    let mut reasons = BTreeMap::new();
    for row in data["unserved"].as_array().expect("rows") {
        let why = row["reason"].as_str().expect("a reason");
        let words: Vec<_> = row["names"].as_array().expect("names").iter().collect();
        let mut meant = Vec::new();
        for word in words {
            let word = word.as_str().expect("a name");
            let before = meant.len();
            meant.extend(all.iter().filter(|(_, name)| means(word, name)));
            assert!(meant.len() > before, "{word} is no name of the standard's");
        }
        for (number, name) in &meant {
            assert!(!served.contains_key(number), "{name} is served and has a reason why not");
            let other = reasons.insert(*name, why);
            assert!(other.is_none(), "{name} has two reasons: {why} and {other:?}");
        }
        let names: Vec<_> = meant.iter().map(|(number, name)| shown(*number, name)).collect();
        writeln!(page, "| {why} | {} |", names.join(" ")).expect("a string");
    }
    for (number, name) in &all {
        let known = served.contains_key(number) || reasons.contains_key(name);
        assert!(known, "{name}: no provider and no reason in testdata/mechanisms.json");
    }
    page
}

#[test]
fn the_book_says_of_every_mechanism_who_serves_it_or_why_nobody_does() {
    let path = root().join("docs/mechanisms.md");
    let page = page();
    if env::var_os("METASLOT_BLESS").is_some() {
        fs::write(path, page).expect("the page is written");
        return;
    }
    assert!(read(&path) == page, "run the test with METASLOT_BLESS=1 to write the page");
}

/// The page knows its rows by what the source names.
#[cfg(feature = "openssl")]
#[test]
fn the_rows_over_openssl_are_those_that_its_source_names() {
    let rows = metaslot_openssl::OPENSSL.algorithms();
    let rows: BTreeSet<_> = rows.iter().filter_map(|row| mechanism_name(row.mechanism)).collect();
    let source = named_below(&root().join("crates/providers/openssl/src"));
    assert_eq!(rows, source.iter().map(String::as_str).collect());
}
