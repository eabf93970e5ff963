// SPDX-License-Identifier: Apache-2.0
//! The command that runs an experiment again: as it was given, with what was decided when it ran, quoted for
//! a shell. It writes an experiment of its own.

use crate::experiment::Experiment;

/// Where the experiment goes: the new one goes elsewhere, as none is overwritten.
const OUTPUT: [&str; 2] = ["--output", "-o"];
/// Scenarios that say otherwise how often a cell is run, or do not say it: the option, if there is one.
const REPETITIONS: [(&str, Option<&str>); 4] =
    [("lanes", Some("--rounds")), ("kill", None), ("store", None), ("profile", None)];

/// Scenarios that measure a module, which the environment may name.
const MODULES: [&str; 7] = ["kill", "lanes", "mechanisms", "mix", "overhead", "speed", "store"];

/// The command.
pub(crate) fn command(experiment: &Experiment) -> String {
    let manifest = &experiment.manifest;
    let mut words = vec!["metaslot".to_owned(), "lab".to_owned()];
    words.extend(without_output(manifest.command.get(1..).unwrap_or_default()));
    let mut add = |option: &str, value: String| {
        let given = |word: &String| word == option || word.starts_with(&format!("{option}="));
        // What comes after a command of another program is that program's.
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        if !words[..end].iter().any(given) {
            words.splice(end..end, [option.to_owned(), value]);
        }
    };
    let scenario = manifest.provenance.scenario.as_str();
    if scenario != "profile" {
        add("--seed", experiment.plan.seed.to_string());
    }
    let own = REPETITIONS.iter().find(|(name, _)| *name == scenario).map(|(_, option)| *option);
    if let Some(option) = own.unwrap_or(Some("--repetitions")) {
        add(option, experiment.plan.repetitions().to_string());
    }
    let measures = MODULES.contains(&scenario);
    let environment = manifest.environment.iter().filter(|_| measures);
    let environment = environment.map(|(name, value)| format!("{name}={}", quoted(value)));
    environment.chain(words.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

/// The options but the one that names the experiment.
fn without_output(words: &[String]) -> Vec<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, rest) = words.split_at(end);
    let mut kept = Vec::new();
    let mut value = false;
    for word in own {
        let is_one = OUTPUT.contains(&word.as_str());
        let joined = word.starts_with("--output=") || (word.starts_with("-o") && word.len() > 2);
        if !(value || is_one || joined) {
            kept.push(word.clone());
        }
        value = is_one;
    }
    kept.extend_from_slice(rest);
    kept
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for (word, expected) in [
            ("--writes", "--writes"),
            ("64K,8K", "64K,8K"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn the_new_experiment_goes_elsewhere_and_a_program_s_own_options_stay() {
        let line = ["profile", "-o", "x.labx", "--output=y.labx", "--", "cc", "-o", "main"];
        assert_eq!(without_output(&words(&line)), words(&["profile", "--", "cc", "-o", "main"]));
    }
}
