// SPDX-License-Identifier: Apache-2.0
//! What configurations say, and what is said of wrong ones.

use super::*;
use metaslot_ck::{CKM_AES_GMAC, CKM_MD5, CKM_RSA_PKCS};
use std::path::Path;

/// What one file says.
pub(super) fn parse(text: &str) -> Result<Config, Problem> {
    let (file, text) = (PathBuf::from("metaslot.toml"), text.to_owned());
    Config::of(&[Text { file, text }])
}

fn complaint(text: &str) -> String {
    parse(text).expect_err("it is wrong").to_string()
}

#[test]
fn a_configuration_is_read_in_its_order() {
    let config = parse(
        "counters = false\n[[token]]\npath = \"/a/one.db\"\npolicy = \"legacy\"\n\
         [[token]]\npath = \"/b/two.db\"\ndescription = \"the other\"\ngroup = \"www-data\"\n\
         fast_login = \"15m\"\npin_min = 8\nallow = [\"weak-rsa\"]\n",
    )
    .expect("it is right");
    let [one, two] = &config.tokens[..] else { panic!("two tokens") };
    assert_eq!((one.path.to_str(), one.policy), (Some("/a/one.db"), Policy::legacy()));
    assert_eq!(one.description, "/a/one.db");
    assert_eq!(two.description, "the other");
    assert_eq!((one.pin_min, two.pin_min), (0, 8));
    assert_eq!((one.kdf, two.kdf), (Cost::Argon2id, Cost::Argon2id));
    assert_eq!(two.fast_login, Some(Duration::from_secs(900)));
    let mut policy = Policy::DEFAULT;
    assert!(policy.allow("weak-rsa"));
    assert_eq!(two.policy, policy);
    assert_eq!(config.counters, Counters::Private);
}

#[test]
fn an_audit_log_is_the_journal_or_a_file() {
    let token = "[[token]]\npath = \"/a\"\n";
    let audit = |settings: &str| {
        let config = parse(&format!("{settings}{token}")).expect("it is right");
        config.audit.map(|audit| (audit.file, audit.required))
    };
    assert_eq!(audit(""), None);
    assert_eq!(audit("audit = \"journald\"\n"), Some((None, false)));
    let file = Some(PathBuf::from("/log"));
    assert_eq!(audit("audit_required = true\naudit = \"/log\"\n"), Some((file, true)));
    for (settings, reason) in [
        ("audit = true\n", "line 1: audit is \"journald\" or the absolute path of a file"),
        ("audit = \"log\"\n", "line 1: audit is \"journald\" or the absolute path of a file"),
        ("audit_required = true\n", "line 1: audit_required needs audit"),
        ("audit_required = 1\n", "line 1: audit_required is true or false"),
    ] {
        let said = complaint(&format!("{settings}{token}"));
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn the_strict_policy_takes_no_pin_below_eight_bytes() {
    for (settings, shortest) in [("", 8), ("pin_min = 5\n", 8), ("pin_min = 12\n", 12)] {
        let text = format!("[[token]]\npath = \"/a\"\npolicy = \"strict\"\n{settings}");
        let config = parse(&text).expect("it is right");
        assert_eq!(
            (config.tokens[0].policy, config.tokens[0].pin_min),
            (Policy::DEFAULT, shortest)
        );
    }
}

#[test]
fn a_wrong_configuration_names_file_line_and_reason() {
    assert_eq!(
        complaint("[[token]]\npath = \"/a\"\ncolour = 3\n"),
        "metaslot.toml: line 3: a token has no setting \"colour\""
    );
    assert_eq!(
        complaint("[[token]]\n\npath = \"a.db\"\n"),
        "metaslot.toml: line 3: must be an absolute path, not \"a.db\""
    );
    assert_eq!(
        complaint("[[token]]\npath=\"/a\"\npin_min = 3\n"),
        "metaslot.toml: line 3: must be a number from 4 to 255, not 3"
    );
    assert!(complaint("[[token]]\npath=\"/a\"\npin_min = \"8\"").contains("a number from"));
    assert!(complaint("[[token]\n").starts_with("metaslot.toml: line 1: "));
    for (setting, end) in [
        ("allow = [\"all\"]", "not-approved, not \"all\""),
        ("allow = \"all\"", "allow is a list of names, not \"all\""),
        (
            "policy = \"none\"",
            "the policies are \"default\", \"strict\", \"fips\" and \"legacy\", not \"none\"",
        ),
        ("kdf = true", "must be a string, not true"),
        ("identity = \"web1\"", "identity says whose PIN is at pin-source, which is missing"),
        (
            "pin-source = \"ask\"\nidentity = \"web1 \"",
            "line 4: must be a name of 1 to 64 bytes, all of which can be seen, not \"web1 \"",
        ),
        ("fast_login = \"15\"", "must be a time such as \"15m\", not \"15\""),
        ("[[token]]\npath = \"/a\"", "line 3: this token is named twice"),
    ] {
        let text = complaint(&format!("[[token]]\npath = \"/a\"\n{setting}\n"));
        assert!(text.ends_with(end), "{text}");
    }
}

#[test]
fn foreign_modules_are_read_and_have_names_of_their_own() {
    let config = parse(
        "[[token]]\npath = \"/a\"\n[[foreign]]\nname = \"softhsm\"\nmodule = \"/m.so\"\n\
         pin-source = \"file:/pin\"\n[[foreign]]\nname = \"nss\"\nmodule = \"/n.so\"\n\
         parameters = \"configdir=''\"\npolicy = \"legacy\"\nserves = [\"digest\"]\n",
    )
    .expect("it is right");
    let [soft, nss] = &config.foreign[..] else { panic!("two modules") };
    assert_eq!((soft.policy, nss.policy), (Policy::DEFAULT, Policy::legacy()));
    let (soft, nss) = (&soft.module, &nss.module);
    assert_eq!((soft.name.as_str(), soft.module.to_str()), ("softhsm", Some("/m.so")));
    assert_eq!(soft.pin_source.as_deref(), Some(Path::new("/pin")));
    assert_eq!(nss.parameters.as_deref(), Some("configdir=''"));
    assert_eq!((soft.serves, nss.serves.digest), (metaslot_foreign::Serves::default(), true));
    let wrong = |text: &str| complaint(&format!("[[foreign]]\n{text}\n"));
    assert!(wrong("serves = [\"sign\"]").contains("a list of \"digest\" and \"random\""));
    let doubted = "name = \"a\"\nmodule = \"/m\"\ntrusted = false\nserves = [\"random\"]";
    assert!(wrong(doubted).contains("serves no other token"));
    let start = "metaslot.toml: line 2: ";
    assert_eq!(wrong("name = \"awslc\""), format!("{start}is the name of another provider"));
    assert!(wrong("name = \"A\"").contains("small letters"));
    assert!(wrong("module = \"m.so\"").contains("absolute"));
    for pin in ["\"/pin\"", "\"98765432\"", "98765432", "\"file:98765432\""] {
        let said = wrong(&format!("pin-source = {pin}"));
        assert!(said.contains("file:/run") && !said.contains("98765432"), "{said}");
    }
    assert!(wrong("name = \"a\"").contains("needs a module"));
    let twice = "name = \"a\"\nmodule=\"/m\"\n[[foreign]]\nname = \"b\"\nmodule=\"/m\"";
    assert!(wrong(twice).contains("named twice"));
}

#[test]
fn pools_are_read_and_have_names_of_their_own() {
    let foreign = "[[token]]\npath = \"/a\"\n[[foreign]]\nname = \"a\"\nmodule = \"/m.so\"\n";
    let read = |pool: &str| parse(&format!("{foreign}[[pool]]\n{pool}\n"));
    let config = read("name = \"web\"\ntokens = [\"one\", \"two\"]").expect("it is right");
    let [pool] = &config.pools[..] else { panic!("one pool") };
    assert_eq!((pool.name.as_str(), &pool.tokens[..]), ("web", &["one".into(), "two".into()][..]));
    for (wrong, why) in [
        ("name = \"a\"\ntokens = [\"x\"]", "the name of another provider"),
        ("name = \"web\"", "needs tokens"),
        ("tokens = [\"x\"]", "needs a name"),
        ("name = \"web\"\ntokens = \"x\"", "list of labels"),
        ("name = \"web\"\nshares = 1", "no setting"),
    ] {
        let told = read(wrong).expect_err(wrong).reason;
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn key_pairs_are_tested_under_fips_or_where_that_is_said() {
    let tested = |text: &str| parse(text).map(|config| config.tests_pairs());
    assert_eq!(tested("[[token]]\npath = \"/a\"\n"), Ok(false));
    assert_eq!(tested("self_tests = true\n[[token]]\npath = \"/a\"\n"), Ok(true));
    let fips = "[[token]]\npath = \"/a\"\n[[token]]\npath = \"/b\"\npolicy = \"fips\"\n";
    assert_eq!(tested(fips), Ok(true));
}

#[test]
fn lanes_can_be_left_out_wholly_or_by_instruction_set() {
    let lanes = |text: &str| {
        let text = format!("{text}\n[[token]]\npath = \"/a\"\n");
        parse(&text).map(|config| (config.lanes, config.lanes_without))
    };
    let both = Cpu::IFMA.and(Cpu::VAES);
    assert_eq!(lanes(""), Ok((true, Cpu::NONE)));
    assert_eq!(lanes("lanes = false"), Ok((false, Cpu::NONE)));
    assert_eq!(lanes("lanes_without = [\"ifma\", \"vaes\"]"), Ok((true, both)));
    assert_eq!(lanes("lanes_without = []\nlanes = false"), Ok((false, Cpu::NONE)));
    assert_eq!(
        complaint("lanes_without = [\"mmx\"]"),
        "metaslot.toml: line 1: instruction sets here are avx512, ifma, vaes, vpclmul, avx2, aes, \
         not \"mmx\""
    );
    assert!(complaint("lanes = 3").ends_with("lanes is true or false, not 3"));
}

#[test]
fn a_token_is_in_a_file_or_in_a_database() {
    let config = parse(
        "[[token]]\nstore = \"postgresql://keys@one,two/vault?token=web\"\naway = \"5m\"\n\
         password-source = \"credential:vault\"\nanchor = \"/a\"\n",
    )
    .expect("it is right");
    let remote = config.tokens[0].remote.as_ref().expect("it is elsewhere");
    assert_eq!(remote.url, "postgresql://keys@one,two/vault?token=web");
    assert_eq!(remote.away, Some(Duration::from_mins(5)));
    assert_eq!(remote.password, Some(PinSource::Credential(String::from("vault"))));
    assert_eq!(config.tokens[0].description, remote.url);
    let store = "store = \"postgresql://h/d\"\n";
    for (settings, says) in [
        (format!("{store}path = \"/a\""), "a path or a store, not both"),
        (format!("{store}group = \"www-data\""), "of a token with a path"),
        (format!("{store}fast_login = \"5m\""), "of a token with a path"),
        (String::from("path = \"/a\"\naway = \"5m\""), "of a token with a store"),
        (String::from("store = \"mysql://h/d\""), "postgresql://user@host/"),
        (String::from("store = \"postgresql://u:geheim@h/d\""), "password-source"),
        (String::from("store = \"postgresql://h/d?password=geheim\""), "password-source"),
    ] {
        let said = complaint(&format!("[[token]]\n{settings}\n"));
        assert!(said.contains(says) && !said.contains("geheim"), "{said}");
    }
    let refused = crate::Parts::of(config).expect_err("only the daemon has it");
    assert!(refused.contains("which metaslotd opens"), "{refused}");
}

#[test]
fn providers_are_limited_by_their_names() {
    let config = parse(
        "[[token]]\npath = \"/a\"\n[provider.lanes]\nenabled = false\n[provider.awslc]\n\
         disable = [\"CKM_MD5\", \"CKM_AES_GM*\"]\n[provider.hsm]\ndisable = [\"CKM_RSA_PKCS\"]\n\
         [[foreign]]\nname = \"hsm\"\nmodule = \"/m.so\"\n[provider.nss]\nenabled = false\n\
         [[foreign]]\nname = \"nss\"\nmodule = \"/n.so\"\n",
    )
    .expect("it is right");
    assert!(!config.lanes);
    let disabled = [CKM_MD5, CKM_AES_GMAC].map(|one| (String::from("awslc"), one));
    assert_eq!(config.routes.disabled, disabled);
    let [hsm, nss] = &config.foreign[..] else { panic!("two modules") };
    assert_eq!((hsm.enabled, &hsm.module.without[..]), (true, &[CKM_RSA_PKCS][..]));
    assert!(!nss.enabled);
    for (text, end) in [
        (
            "[provider.hsm]",
            "there is no such provider: there are awslc, classics, kernel, lanes, openssl",
        ),
        #[cfg(not(feature = "openssl"))]
        ("[provider.openssl]", "this library was built without OpenSSL"),
        ("[provider.lanes]\nweight = 3", "a provider has no setting \"weight\""),
        ("[provider.lanes]\nenabled = 1", "enabled is true or false, not 1"),
        ("[provider.awslc]\nenabled = false", "disable some of its mechanisms instead"),
        ("[provider.awslc]\ndisable = [\"CKM_ENIGMA\"]", "or \"CKM_AES_*\", not \"CKM_ENIGMA\""),
        ("provider = 3", "written as [provider.NAME] sections, not 3"),
    ] {
        let text = complaint(&format!("{text}\n"));
        assert!(text.ends_with(end), "{text}");
    }
}

#[test]
fn some_are_providers_where_they_are_configured() {
    let wanted = |section| {
        let text = format!("[[token]]\npath = \"/a\"\n{section}");
        parse(&text).expect("it is right").wanted
    };
    assert!(wanted("").is_empty());
    assert_eq!(wanted("[provider.kernel]"), ["kernel"]);
    assert!(wanted("[provider.kernel]\nenabled = false").is_empty());
    #[cfg(feature = "openssl")]
    assert_eq!(wanted("[provider.openssl]\n[provider.kernel]\nenabled = false"), ["openssl"]);
}

#[test]
fn the_book_names_everything_that_can_be_allowed() {
    let book = include_str!("../../../../docs/configuration.md");
    for name in Policy::names() {
        assert!(book.contains(&format!("`{name}`")), "{name}");
    }
}

/// Below a heading of the book, the settings of the first table.
fn in_the_book(heading: &str) -> Vec<String> {
    let book = include_str!("../../../../docs/configuration.md");
    let (_, rest) = book.split_once(&format!("\n{heading}\n")).expect("the heading is there");
    let (_, rest) =
        rest.split_once("\n| setting | value | default |\n|---|---|---|\n").expect("a table");
    let rows = rest.lines().take_while(|line| line.starts_with('|'));
    let mut names: Vec<_> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[test]
fn the_book_has_a_row_for_each_setting_and_no_other() {
    let sections = ["token", "foreign", "pool", "metaslot", "provider", "daemon", "client"];
    let whole = setting::names(SETTINGS).into_iter().filter(|name| !sections.contains(name));
    for (heading, mut names) in [
        ("## Settings of a `[[token]]`", token::names()),
        ("## Other modules", foreign::names()),
        ("## The metaslot", metaslot::names()),
        ("## One key in several tokens", pool::names()),
        ("## What a provider may do", provider::names()),
        ("## A daemon that holds the keys", daemon::names()),
        ("### Keys of a service", daemon::client_names()),
        ("## Settings of the whole", whole.collect()),
    ] {
        names.sort_unstable();
        assert_eq!(in_the_book(heading), names, "{heading}");
    }
    let book = include_str!("../../../../docs/configuration.md");
    for section in [
        "[[token]]",
        "[[foreign]]",
        "[[pool]]",
        "[metaslot]",
        "[provider.NAME]",
        "[daemon]",
        "[[client]]",
    ] {
        assert!(book.contains(section), "{section}");
    }
}
