// SPDX-License-Identifier: Apache-2.0
//! The page about other tools: whether it has all that they offer for a token.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

/// How something is asked for, or shown, and not what is done with a token.
const MANNERS: &[(&str, &str)] = &[
    (
        "pkcs11-tool",
        "--allow-sw --attr-from --help --id --input-file --label --login --output-file --session-rw --slot-id --type --use-locking --verbose",
    ),
    (
        "p11tool",
        "--admin-login --batch --debug --help --inder --infile --inraw --label --login --more-help --outfile --outraw --pkcs8 \
         --so-login --verbose --version",
    ),
    ("softhsm2-util", "--help --id --label --pin --slot --so-pin --version"),
];

/// Other names of the options that the page has.
const ALIASES: &[(&str, &str)] = &[
    ("--ca", "--mark-ca"),
    ("--distrusted", "--mark-distrusted"),
    ("--private", "--mark-private"),
    ("--trusted", "--mark-trusted"),
];

fn options(text: &str) -> BTreeSet<&str> {
    let inside =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let words = text.split(|letter| !inside(letter));
    words.filter(|word| word.starts_with("--") && word.len() > 3).collect()
}

#[test]
fn every_option_of_a_tool_for_tokens_stands_in_the_page() {
    let page = options(include_str!("../../../docs/commands/other-tools.md"));
    for (tool, manners) in MANNERS {
        let Ok(told) = Command::new(tool).arg("--help").output() else {
            assert!(env::var_os("CI").is_none(), "{tool} is not installed");
            println!("not run: {tool} is not installed");
            continue;
        };
        let told = [told.stdout, told.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        let known = |option: &&str| {
            let alias = ALIASES.iter().find(|(alias, _)| alias == option);
            page.contains(alias.map_or(*option, |(_, named)| named))
                || manners.split_whitespace().any(|manner| manner == *option)
        };
        let unknown: Vec<&str> =
            options(&told).into_iter().filter(|option| !known(option)).collect();
        assert!(unknown.is_empty(), "{tool}: {unknown:?}");
    }
}
