// SPDX-License-Identifier: Apache-2.0
//! The recipes of `docs/clients.md`, which the tests follow: what is written there is what is done.

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, TestToken};

const PAGE: &str = include_str!("../../../docs/clients.md");

/// The library as the page has it: in a shell, and everywhere else.
pub(crate) const MODULE: &[&str] = &["$MODULE", "/usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so"];

/// What a reader may copy needs no word put in its place.
#[test]
fn page_names_the_library_by_its_path() {
    let words =
        PAGE.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_$".contains(letter));
    let bare = words.filter(|word| *word == "MODULE").count();
    // Where the variable gets its value.
    assert_eq!(bare, 1, "a placeholder MODULE");
}

/// A block of a section, by its place there, for this token. Each pair says a word of it that is another one here.
pub(crate) fn block(
    token: &TestToken,
    section: &str,
    number: usize,
    changes: &[(&str, &str)],
) -> Result<String> {
    filled(token, written(section, number)?, changes)
}

/// The command of a block that has these words, as a shell runs it.
pub(crate) fn command(
    token: &TestToken,
    place: (&str, usize),
    words: &str,
    changes: &[(&str, &str)],
) -> Result<Program> {
    Ok(shell(token, &line(token, place, words, changes)?))
}

/// The same as text, with the lines that it goes on to.
pub(crate) fn line(
    token: &TestToken,
    (section, number): (&str, usize),
    words: &str,
    changes: &[(&str, &str)],
) -> Result<String> {
    let block = written(section, number)?;
    let found = block.find(words).with_context(|| format!("no {words} in {block}"))?;
    let start = block[..found].rfind('\n').map_or(0, |at| at + 1);
    let mut command = String::new();
    for line in block[start..].lines() {
        // What is said of it stands behind some blanks.
        command += line.trim().split("    ").next().unwrap_or_default();
        if !command.ends_with('\\') {
            break;
        }
        command.push('\n');
    }
    filled(token, &command, changes)
}

/// What is written there.
pub(crate) fn written(section: &str, number: usize) -> Result<&'static str> {
    let mut sections = PAGE.split("\n## ");
    let found = sections.find(|text| text.lines().next().is_some_and(|line| line == section));
    let text = found.with_context(|| format!("no section {section}"))?;
    // Outside, inside, outside, inside.
    let block = text.split("```").nth(2 * number + 1).context("no such block")?;
    // Behind the language, or nothing.
    Ok(block.split_once('\n').context("an empty block")?.1)
}

fn filled(token: &TestToken, text: &str, changes: &[(&str, &str)]) -> Result<String> {
    let mut text = text.to_owned();
    for (word, here) in changes {
        ensure!(text.contains(word), "no {word} in {text}");
        text = text.replace(word, here);
    }
    let module = token.module().display().to_string();
    for word in MODULE {
        text = text.replace(word, &module);
    }
    Ok(text.replace("token=web", &format!("token={}", token.label())))
}

/// A command as a shell runs it, in its own place; what it begins with may be variables.
pub(crate) fn shell(token: &TestToken, line: &str) -> Program {
    token.program("sh").args(["-c", &format!("exec env {}", line.trim())])
}
