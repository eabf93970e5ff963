// SPDX-License-Identifier: Apache-2.0
//! The recipes of `docs/clients.md`, which the tests follow: what is written there is what is done.

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Program, TestToken};

const PAGE: &str = include_str!("../../../docs/clients.md");

/// A block of a section, by its place there, for this token. Each pair says a word of it that is another one here.
pub(crate) fn block(
    token: &TestToken,
    section: &str,
    number: usize,
    changes: &[(&str, &str)],
) -> Result<String> {
    let mut sections = PAGE.split("\n## ");
    let found = sections.find(|text| text.lines().next().is_some_and(|line| line == section));
    let text = found.with_context(|| format!("no section {section}"))?;
    // Outside, inside, outside, inside.
    let block = text.split("\n```").nth(2 * number + 1).context("no such block")?;
    // Behind the language, or nothing.
    let block = block.split_once('\n').context("an empty block")?.1;
    // Not the beginning of MODULE_PATH.
    let module = token.module().display().to_string();
    let mut block = block.replace("MODULE", &module).replace(&format!("{module}_"), "MODULE_");
    block = block.replace("token=web", &format!("token={}", token.label()));
    for (word, here) in changes {
        ensure!(block.contains(word), "{section} has no {word}: {block}");
        block = block.replace(word, here);
    }
    Ok(block + "\n")
}

/// The one command of a block that has these words, with the lines that it goes on to.
pub(crate) fn command<'a>(block: &'a str, words: &str) -> Result<&'a str> {
    let start = block.find(words).with_context(|| format!("no {words} in {block}"))?;
    let start = block[..start].rfind('\n').map_or(0, |at| at + 1);
    let mut end = start;
    for line in block[start..].split_inclusive('\n') {
        end += line.len();
        if !line.ends_with("\\\n") {
            break;
        }
    }
    Ok(&block[start..end])
}

/// A command as a shell runs it.
pub(crate) fn shell(token: &TestToken, line: &str) -> Program {
    token.program("sh").args(["-c", &format!("exec {}", line.trim())])
}
