// SPDX-License-Identifier: Apache-2.0
//! What a shell completes: names of commands and options by their definition, and by asking the module labels, types and
//! mechanisms. Nothing is asked for, and a module that does not answer completes nothing.

use super::arguments::token_uri;
use super::{cipher, derive, lab, setup, wrap};
use crate::certificate;
use crate::encoding::printable;
use crate::failure::Result;
use crate::host::Host;
use crate::key::{self, Kind, types, usage_names};
use crate::personality::algorithm::{self, Algorithm};
use crate::scheme::{hash_names, short_mechanisms};
use crate::uri::Uri;
use clap::{Command, ValueHint};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, EnvCompleter};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{
    CK_FLAGS, CK_MECHANISM_TYPE, CKF_DECRYPT, CKF_ENCRYPT, CKF_SIGN, CKF_VERIFY, SlotId,
    mechanism_name,
};
use metaslot_client::{Access, Module, Rule, Session};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Set by the functions of the shells when they ask.
const VARIABLE: &str = "METASLOT_COMPLETE";

/// The function for bash, which takes a colon for the end of a word.
const BASH: &str = include_str!("complete.bash");

/// Answers a shell, and ends, where one asks.
pub(crate) fn answer(command: impl Fn() -> Command) {
    if let Some(shell) = env::var_os(VARIABLE) {
        let is_bash = shell == "bash";
        CompleteEnv::with_factory(|| with_values(command(), "", is_bash)).var(VARIABLE).complete();
    }
}

/// What a shell is to load.
pub(crate) fn function(shell: &dyn EnvCompleter) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match shell.name() {
        "bash" => text.extend(BASH.bytes()),
        _ => {
            shell.write_registration(VARIABLE, "metaslot", "metaslot", "metaslot", &mut text)?;
        }
    }
    if shell.name() == "zsh" {
        // A function that is loaded when it is first needed is to answer then.
        text.extend(
            b"\n[ \"$funcstack[1]\" = _metaslot ] && _clap_dynamic_completer_metaslot \"$@\"\n",
        );
    }
    Ok(text)
}

/// Candidates for values.
type Values = fn() -> Vec<String>;

/// By the name of the argument in the code, and of the commands that it means this of: none are all.
type Row = (&'static [&'static str], &'static [&'static str], Values);

/// What is said of single commands comes first.
const VALUES: &[Row] = &[
    (&["provider show", "provider enable", "provider disable"], &["name"], names_of_providers),
    (&["provider enable", "provider disable"], &["mechanisms"], mechanisms),
    (&["key generate"], &["kind"], types_made),
    (&["digest"], &["algorithm"], || names(algorithm::DIGESTS)),
    (&["mac"], &["algorithm"], || names(algorithm::MACS)),
    (&["encrypt"], &["algorithm"], || names(algorithm::SEALS)),
    (&["decrypt"], &["algorithm"], || names(algorithm::CIPHERS)),
    (&["lab"], &["arguments"], lab_commands),
    (&["sign"], &["mechanism"], || mechanisms_with(CKF_SIGN, |_| true)),
    (&["verify"], &["mechanism"], || mechanisms_with(CKF_VERIFY, |_| true)),
    (&["encrypt"], &["mechanism"], || mechanisms_with(CKF_ENCRYPT, cipher::serves)),
    (&["decrypt"], &["mechanism"], || mechanisms_with(CKF_DECRYPT, cipher::serves)),
    (&["wrap", "unwrap"], &["mechanism"], || wrap::ways().map(str::to_owned).collect()),
    (&["derive"], &["mechanism"], || derive::names().map(str::to_owned).collect()),
    (&[], &["key", "keys", "by", "key_label"], labels_of_keys),
    (&[], &["certificate", "certificates", "issuer", "previous_issuer"], labels_of_certificates),
    (&[], &["token", "named", "key_token"], labels_of_tokens),
    (&[], &["kind"], || types().collect()),
    (&[], &["usage"], || usage_names().map(str::to_owned).collect()),
    (&[], &["hash", "mgf"], || hash_names().map(str::to_owned).collect()),
    (&[], &["mechanism", "only"], mechanisms),
    (&[], &["program"], || setup::programs().map(str::to_owned).collect()),
];

/// `path` is what the command is called, behind `metaslot`.
fn with_values(command: Command, path: &str, is_bash: bool) -> Command {
    let command = command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let is_asked = argument.get_action().takes_values();
        let is_meant = |row: &&Row| row.0.is_empty() || row.0.contains(&path);
        let row = VALUES.iter().filter(is_meant).find(|row| is_asked && row.1.contains(&id));
        // A PIN's place is a file, mostly.
        let is_place = argument.get_value_names().is_some_and(|names| names == ["SOURCE"]);
        let is_file = is_place || argument.get_value_hint() != ValueHint::Unknown;
        match row {
            Some((_, _, values)) => argument.add(ArgValueCandidates::new(|| candidates(values()))),
            // Bash would run what other people's files have in their names: it is told only that a file is wanted.
            None if is_bash && is_file => argument.add(ArgValueCompleter::new(a_file)),
            None if is_place => argument.value_hint(ValueHint::AnyPath),
            None => argument,
        }
    });
    command.mut_subcommands(|command| {
        let path = format!("{path} {}", command.get_name());
        with_values(command, path.trim_start(), is_bash)
    })
}

/// The empty word, by which the function of bash knows that a file is wanted.
fn a_file(word: &OsStr) -> Vec<CompletionCandidate> {
    let is_option = word.as_encoded_bytes().starts_with(b"-");
    if is_option { Vec::new() } else { vec![CompletionCandidate::new("")] }
}

/// A label is somebody else's word: what means something to a shell is not put into its line.
fn candidates(values: Vec<String>) -> Vec<CompletionCandidate> {
    let plain = |value: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.,:/@%+".contains(c);
        !value.is_empty()
            && !value.starts_with('-')
            && value.chars().all(is_plain)
            && printable(value) == *value
    };
    let values: BTreeSet<String> = values.into_iter().filter(plain).collect();
    values.into_iter().map(CompletionCandidate::new).collect()
}

/// The line that is completed: names of files in it need not be text.
fn words() -> Vec<String> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The value of an option in the line that is completed.
fn said(option: &str) -> Option<String> {
    let words = words();
    let with = format!("{option}=");
    words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(&with) {
        Some(value) => Some(value.to_owned()),
        None => words.get(at + 1).filter(|_| word == option).cloned(),
    })
}

fn host() -> Result<Host> {
    let set = || env::var_os("METASLOT_MODULE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let module = said("--module").map(PathBuf::from).or_else(set);
    Host::load(module.as_deref().map(Path::new), &Uri::default())
}

/// The token that the line names.
fn meant() -> Result<Uri> {
    Ok(said("--token").map(|token| token_uri(&token)).transpose()?.unwrap_or_default())
}

/// What is seen without a login in the tokens that are meant.
fn seen(labels: impl Fn(&Session) -> Result<Vec<String>>) -> Vec<String> {
    let all = || -> Result<Vec<String>> {
        let host = host()?;
        let mut found = Vec::new();
        for token in host.matching(&meant()?)? {
            // One that does not answer keeps no other back.
            let session = host.module().open_session(token.slot, Access::ReadOnly);
            found
                .extend(session.ok().and_then(|session| labels(&session).ok()).unwrap_or_default());
        }
        Ok(found)
    };
    all().unwrap_or_default()
}

fn labels_of_keys() -> Vec<String> {
    seen(|session| {
        let keys = key::search(session, &Uri::default())?;
        Ok(keys.into_iter().map(|key| key.label).collect())
    })
}

fn labels_of_certificates() -> Vec<String> {
    seen(|session| {
        let all = certificate::labelled(session, None)?;
        Ok(all.into_iter().map(|stored| stored.label).collect())
    })
}

fn labels_of_tokens() -> Vec<String> {
    let tokens = host().and_then(|host| host.tokens()).unwrap_or_default();
    tokens.into_iter().map(|token| token.info.label).collect()
}

/// Those of which new keys are made: not what the policies of all tokens that are meant refuse.
fn types_made() -> Vec<String> {
    let policies = || -> Result<Vec<Option<Vec<Rule>>>> {
        let host = host()?;
        let tokens = host.matching(&meant()?)?;
        Ok(tokens.iter().map(|token| host.module().token_policy(token.slot)).collect())
    };
    let policies = policies().unwrap_or_default();
    let has = |rules: &[Rule], name| rules.iter().any(|rule| rule.refused && rule.name == name);
    let is_refused = |name: &str| {
        let rule = name.parse().ok().and_then(|kind: Kind| kind.refused_as_new());
        rule.is_some_and(|rule| {
            let has = |rules: &Option<Vec<Rule>>| rules.as_deref().is_some_and(|it| has(it, rule));
            !policies.is_empty() && policies.iter().all(has)
        })
    };
    types().filter(|name| !is_refused(name)).collect()
}

/// As they are usually written, and as the module names them.
fn mechanisms() -> Vec<String> {
    let slot = |host: &Host, slot| Ok(host.module().mechanisms(slot)?);
    let names = offered(slot).into_iter().filter_map(written);
    names.chain(short_mechanisms().map(|(name, _)| name.to_owned())).collect()
}

/// Those that the module has for this, and that the command serves.
fn mechanisms_with(flag: CK_FLAGS, serves: fn(CK_MECHANISM_TYPE) -> bool) -> Vec<String> {
    let having = offered(|host, slot| {
        let mut all = host.module().mechanisms(slot)?;
        all.retain(|number| {
            let info = host.module().mechanism_info(slot, *number);
            serves(*number) && info.is_ok_and(|info| info.flags & flag != 0)
        });
        Ok(all)
    });
    let short = short_mechanisms().filter(|(_, number)| having.contains(number));
    let names = having.iter().copied().filter_map(written);
    names.chain(short.map(|(name, _)| name.to_owned())).collect()
}

/// What there is in the first slot.
fn offered(
    mechanisms: impl Fn(&Host, SlotId) -> Result<Vec<CK_MECHANISM_TYPE>>,
) -> Vec<CK_MECHANISM_TYPE> {
    let all = || {
        let host = host()?;
        let slot = host.module().slots(true)?.into_iter().next();
        slot.map_or_else(|| Ok(Vec::new()), |slot| mechanisms(&host, slot))
    };
    all().unwrap_or_default()
}

/// In the standard's spelling where the line has it, in the usual one otherwise.
fn written(number: CK_MECHANISM_TYPE) -> Option<String> {
    let name = mechanism_name(number)?;
    let is_standard =
        |word: &String| word.starts_with("CKM") || word.starts_with("--mechanism=CKM");
    if words().iter().any(is_standard) {
        return Some(name.to_owned());
    }
    Some(name.trim_start_matches("CKM_").to_ascii_lowercase().replace('_', "-"))
}

fn names(algorithms: &[Algorithm]) -> Vec<String> {
    algorithms.iter().map(|algorithm| algorithm.name.to_owned()).collect()
}

fn names_of_providers() -> Vec<String> {
    let named = || {
        let candidates = |module: &Module| {
            let rows = MechanismRow::all().iter();
            let all = rows.filter_map(|row| module.candidates(row.number));
            all.flatten().map(|candidate| candidate.provider).collect()
        };
        Ok(candidates(host()?.module()))
    };
    let named: Result<Vec<String>> = named();
    named.unwrap_or_default()
}

/// The word at the cursor is the lab's command where the one before it is the lab.
fn lab_commands() -> Vec<String> {
    let words = words();
    let at = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|at| at.parse().ok());
    let at: usize = at.unwrap_or_else(|| words.len().saturating_sub(1));
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    if before.is_some_and(|word| word == "lab") { lab::commands() } else { Vec::new() }
}
