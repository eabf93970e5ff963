// SPDX-License-Identifier: Apache-2.0
//! `metaslot policy`

use super::arguments::{NamedArg, TokenArg};
use crate::app::App;
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::host::Token;
use crate::output::{Report, Table};
use crate::settings::{Settings, put, set_strings};
use crate::uri::Uri;
use clap::{Args, Subcommand, ValueEnum};
use metaslot_client::Rule;
use serde_json::{Value, json};

/// Verbs for policies.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what the policy of each token refuses
    Show(ShowArgs),
    /// Give a token a policy
    ///
    /// Writes the configuration: processes that run follow within a moment. What was allowed beyond
    /// the policy before is not allowed any more, unless it is said again.
    Set(SetArgs),
}

/// Arguments of `policy show`.
#[derive(Args, Debug)]
#[command(mut_arg("token", |arg| arg.help("The same")), mut_arg("named", |arg| arg.help(WHICH)))]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    token: TokenArg,
}

const WHICH: &str = "Which tokens: a label or a PKCS#11 URI [default: all]";

/// Arguments of `policy set`.
#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The set of rules
    policy: Preset,
    /// A rule of it that does not hold for this token, by its name; may be said several times
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    #[command(flatten)]
    token: TokenArg,
}

/// The policies by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// No way leads from a sensitive key to its value, and nothing new is made with broken cryptography
    Default,
    /// The same, and no PIN below 8 bytes
    Strict,
    /// The same as strict, and no mechanism that FIPS 140-3 does not approve of
    Fips,
    /// Only what the standard refuses is refused
    Legacy,
}

impl Preset {
    const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Fips => "fips",
            Self::Legacy => "legacy",
        }
    }
}

/// From here on a PIN is long enough for the strict policy, in bytes.
const STRICT_PIN: usize = 8;

/// The rule that only the policy of FIPS has.
const NOT_APPROVED: &str = "not-approved";

pub(crate) fn run(app: &App, command: &Command) -> Result<()> {
    match command {
        Command::Show(args) => show(app, args),
        Command::Set(args) => set(app, args),
    }
}

/// The name of what a token refuses.
pub(crate) fn name(rules: &[Rule], token: &Token) -> &'static str {
    let approved_only = rules.iter().any(|rule| rule.name == NOT_APPROVED && rule.refused);
    let mut others = rules.iter().filter(|rule| rule.name != NOT_APPROVED);
    let long_pins = token.info.pin_lengths.0 >= STRICT_PIN;
    match (rules.iter().any(|rule| rule.refused), others.all(|rule| rule.refused)) {
        (false, _) => "legacy",
        (true, false) => "with exceptions",
        (true, true) if approved_only && long_pins => "fips",
        (true, true) if approved_only => "with exceptions",
        (true, true) if long_pins => "strict",
        (true, true) => "default",
    }
}

/// The tokens that are meant, initialised or not; at least one.
fn matching(app: &App, uri: &Uri) -> Result<Vec<Token>> {
    let tokens = app.host(uri)?.matching(uri)?;
    match tokens.is_empty() {
        true => Err(Failure::not_found("no token matches")
            .hint("'metaslot token list' shows slots and tokens")),
        false => Ok(tokens),
    }
}

fn one(mut tokens: Vec<Token>) -> Result<Token> {
    match (tokens.pop(), tokens.is_empty()) {
        (Some(token), true) => Ok(token),
        _ => Err(Failure::not_found("there are several tokens").hint("choose one with --token")),
    }
}

fn rules(app: &App, token: &Token) -> Result<Vec<Rule>> {
    let rules = app.host(&Uri::default())?.module().token_policy(token.slot);
    rules.ok_or_else(|| Failure::not_found("the module does not say what it refuses"))
}

fn show(app: &App, args: &ShowArgs) -> Result<()> {
    let tokens = matching(app, &args.named.or(args.token.uri())?)?;
    let (mut text, mut json, mut names) = (String::new(), Vec::new(), Vec::new());
    for token in &tokens {
        let rules = rules(app, token)?;
        let name = name(&rules, token);
        let mut table = Table::new(&["RULE", "STATE", "WHAT IS REFUSED"], &[]);
        for rule in &rules {
            let state = if rule.refused { "refused" } else { "allowed" };
            table.push(vec![rule.name.clone(), state.into(), rule.sentence.clone()]);
        }
        let between = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{between}{}: {name}\n", called(token)));
        text.push_str(&table.text());
        json.push(json!({
            "slot": token.slot.0,
            "label": token.info.label,
            "policy": name,
            "rules": rules.iter().map(rule_json).collect::<Vec<Value>>(),
        }));
        names.push(name.to_owned());
    }
    app.output.print(&Report { text, json: json!({"tokens": json}), uris: names })
}

fn called(token: &Token) -> String {
    match token.info.label.as_str() {
        "" => format!("slot {}", token.slot.0),
        label => format!("slot {}, token '{}'", token.slot.0, printable(label)),
    }
}

fn rule_json(rule: &Rule) -> Value {
    json!({"name": rule.name, "refused": rule.refused, "what": rule.sentence})
}

fn set(app: &App, args: &SetArgs) -> Result<()> {
    let token = one(matching(app, &args.token.uri()?)?)?;
    let known = rules(app, &token)?;
    if let Some(unknown) = args.allow.iter().find(|name| known.iter().all(|it| it.name != **name)) {
        return Err(Failure::usage(format!("there is no rule '{unknown}'"))
            .hint("'metaslot policy show' names them"));
    }
    let mut settings = Settings::open()?;
    let file = settings.file.display().to_string();
    let described = app.host(&token.uri())?.module().slot_info(token.slot)?.description;
    let section = settings.token(token.slot.0, &described).ok_or_else(|| {
        Failure::failed(format!("{} has no [[token]] section of its own", token.name()))
            .hint(format!("write policy = \"...\" into its section, of {file} or of a drop-in"))
    })?;
    put(section, "policy", args.policy.name());
    set_strings(section, "allow", &args.allow);
    settings.save(app.named_module())?;
    let policy = args.policy.name();
    let warning = matches!(args.policy, Preset::Legacy).then(|| {
        String::from("under this policy the values of sensitive keys can be had by known attacks")
    });
    app.output.print_warning(
        &Report {
            text: format!("{file}: {} has the policy {policy}\n", called(&token)),
            json: json!({"file": file, "slot": token.slot.0, "policy": policy, "allow": args.allow}),
            uris: vec![policy.to_owned()],
        },
        warning.as_slice(),
    )
}
