// SPDX-License-Identifier: Apache-2.0
//! `metaslot provider`

use super::agreement;
use super::mechanisms::names;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::scheme::mechanism_number;
use crate::settings::{Contents, Settings, WANTED, put, set_strings, strings};
use crate::uri::Uri;
use clap::{Args, Subcommand};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, mechanism_name};
use metaslot_client::Candidate;
use serde_json::{Value, json};
use std::slice;

/// Verbs for providers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the providers in the order in which they are asked
    List,
    /// List what one provider does
    Show(ShowArgs),
    /// See whether the providers agree with each other
    ///
    /// Each does each of its operations here with keys that are made for that: what one seals or signs
    /// every other one has to open or verify, and hashes have to be the same.
    Test(TestArgs),
    /// Let a provider do what it was kept from
    ///
    /// Writes the configuration: processes that run follow within a moment, or for another
    /// module at their next C_Initialize.
    Enable(ChangeArgs),
    /// Keep a provider from everything, or from some mechanisms
    ///
    /// Writes the configuration: processes that run follow within a moment, or for another
    /// module at their next C_Initialize. The next provider that has
    /// a mechanism does it; without one it is not served any more.
    Disable(ChangeArgs),
}

/// Arguments of `provider show`.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The provider
    name: String,
}

/// Arguments of `provider test`.
#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// Only mechanisms whose name has this in it
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Arguments of `provider enable` and `provider disable`.
#[derive(Args, Debug)]
pub(crate) struct ChangeArgs {
    /// The provider
    name: String,
    /// Mechanisms, with CKM_ or without; CKM_AES_* for all that begin so [default: the whole provider]
    #[arg(value_name = "MECHANISM")]
    mechanisms: Vec<String>,
}

pub(crate) fn run(app: &App, command: &Command) -> Result<()> {
    match command {
        Command::List => list(app),
        Command::Show(args) => show(app, &args.name),
        Command::Test(args) => agreement::run(app, names_of_all(app)?, args.name.as_deref()),
        Command::Enable(args) => change(app, args, true),
        Command::Disable(args) => change(app, args, false),
    }
}

/// A provider, and what it says of each mechanism.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) rows: Vec<(CK_MECHANISM_TYPE, Candidate)>,
}

impl Provider {
    /// Whether it has a mechanism, or some that begin so.
    pub(crate) fn has(&self, wanted: &str) -> bool {
        self.rows.iter().any(|(number, _)| covers(wanted, &called(*number)))
    }

    /// How many mechanisms it has and may do.
    pub(crate) fn served(&self) -> usize {
        self.rows.iter().filter(|(_, candidate)| candidate.flags != 0).count()
    }

    /// What it remarks, each with the number of mechanisms that it is said of.
    pub(crate) fn remarks(&self) -> Vec<(&str, usize)> {
        let mut all: Vec<(&str, usize)> = Vec::new();
        for (_, Candidate { remark, .. }) in &self.rows {
            match all.iter_mut().find(|known| known.0 == remark.as_str()) {
                Some(known) => known.1 += 1,
                None if remark.is_empty() => {}
                None => all.push((remark, 1)),
            }
        }
        all
    }
}

/// All of them, in the order in which they are asked.
pub(crate) fn providers(app: &App) -> Result<Vec<Provider>> {
    let module = app.host(&Uri::default())?.module();
    let mut all: Vec<Provider> = Vec::new();
    for row in MechanismRow::all() {
        let candidates = module.candidates(row.number).unwrap_or_default();
        for (at, candidate) in candidates.iter().enumerate() {
            let row = (row.number, candidate.clone());
            match position(&all, candidate) {
                Some(known) => all[known].rows.push(row),
                None => {
                    let later = candidates[at..].iter().find_map(|later| position(&all, later));
                    let new = Provider { name: candidate.provider.clone(), rows: vec![row] };
                    all.insert(later.unwrap_or(all.len()), new);
                }
            }
        }
    }
    if all.is_empty() {
        // Where the configuration cannot be used, that is the reason.
        module.slots(false)?;
        return Err(Failure::not_found("the module does not name its providers")
            .hint("only Metaslot has an answer to that"));
    }
    Ok(all)
}

/// Their names.
fn names_of_all(app: &App) -> Result<Vec<String>> {
    Ok(providers(app)?.into_iter().map(|provider| provider.name).collect())
}

fn position(all: &[Provider], candidate: &Candidate) -> Option<usize> {
    all.iter().position(|provider| provider.name == candidate.provider)
}

pub(crate) fn provider(app: &App, name: &str) -> Result<Provider> {
    let mut all = providers(app)?;
    let Some(at) = all.iter().position(|provider| provider.name == name) else {
        let known: Vec<_> = all.iter().map(|provider| provider.name.as_str()).collect();
        return Err(Failure::not_found(format!("there is no provider '{name}'"))
            .hint(format!("there are {}", known.join(", "))));
    };
    Ok(all.swap_remove(at))
}

fn list(app: &App) -> Result<()> {
    let (all, contents) = (providers(app)?, Contents::read()?);
    let mut table = Table::new(&["PROVIDER", "MECHANISMS", "REMARK"], &[1]);
    for provider in &all {
        let (served, remarks) = (provider.served(), provider.remarks());
        let mut remarks: Vec<_> = match served {
            0 => remarks.iter().map(|(remark, _)| remark.to_string()).collect(),
            _ => remarks.iter().map(|(remark, of)| format!("{remark} ({of})")).collect(),
        };
        let services = contents.services(&provider.name).into_iter();
        remarks.extend(services.map(|(word, services)| format!("{word} {}", services.join(", "))));
        table.push(vec![provider.name.clone(), served.to_string(), remarks.join("; ")]);
    }
    let json = |provider| provider_json(provider, &contents);
    let json: Vec<Value> = all.iter().map(json).collect();
    app.output.print(&Report {
        text: table.text(),
        json: json!({"providers": json}),
        uris: all.iter().map(|provider| provider.name.clone()).collect(),
    })
}

fn provider_json(provider: &Provider, contents: &Contents) -> Value {
    let remark = |(remark, of): &(&str, usize)| json!({"remark": remark, "mechanisms": of});
    let mut json = json!({
        "name": provider.name,
        "mechanisms": provider.served(),
        "remarks": provider.remarks().iter().map(remark).collect::<Vec<Value>>(),
    });
    for (word, services) in contents.services(&provider.name) {
        json[word] = json!(services);
    }
    json
}

fn show(app: &App, name: &str) -> Result<()> {
    let provider = provider(app, name)?;
    let mut rows: Vec<_> =
        provider.rows.iter().map(|(number, row)| (called(*number), row)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let mut table = Table::new(&["MECHANISM", "OPERATIONS", "REMARK"], &[]);
    for (mechanism, row) in &rows {
        table.push(vec![mechanism.clone(), names(row.flags).join(" "), row.remark.clone()]);
    }
    let json = rows.iter().map(|(mechanism, row)| {
        json!({"mechanism": mechanism, "operations": names(row.flags), "remark": row.remark})
    });
    app.output.print(&Report {
        text: table.text(),
        json: json!({"name": name, "mechanisms": json.collect::<Vec<Value>>()}),
        uris: rows.iter().map(|row| row.0.clone()).collect(),
    })
}

pub(crate) fn called(number: CK_MECHANISM_TYPE) -> String {
    mechanism_name(number).map_or_else(|| format!("0x{number:x}"), str::to_owned)
}

/// A mechanism as the configuration calls it.
pub(crate) fn configured(text: &str) -> Result<String> {
    match text.strip_suffix('*') {
        Some(start) if start.starts_with("CKM_") => Ok(text.to_owned()),
        Some(start) => Ok(format!("CKM_{}*", start.to_ascii_uppercase().replace('-', "_"))),
        None => mechanism_number(text).map(called),
    }
}

fn change(app: &App, args: &ChangeArgs, enable: bool) -> Result<()> {
    let name = &args.name;
    let mechanisms = args.mechanisms.iter().map(|text| configured(text)).collect::<Result<_>>()?;
    let provider = provider(app, name).or_else(|failure| match WANTED.contains(&name.as_str()) {
        // It is not there before it is wanted.
        true if enable && args.mechanisms.is_empty() => {
            Ok(Provider { name: name.clone(), rows: Vec::new() })
        }
        _ => Err(failure),
    });
    let change = Change { provider: provider?, mechanisms };
    let written = write(app, slice::from_ref(&change), enable)?;
    let (file, mechanisms) = (written.file, &change.mechanisms);
    let what = if mechanisms.is_empty() { "everything" } else { &mechanisms.join(", ") };
    let done = if enable { "enabled" } else { "disabled" };
    app.output.print(&Report {
        text: format!("{file}: {name}: {what} {done}\n"),
        json: json!({"file": file, "provider": name, "disabled": written.disabled}),
        uris: vec![name.clone()],
    })
}

/// Writes what providers may do: all of the changes, or none.
pub(crate) fn write(app: &App, changes: &[Change], enable: bool) -> Result<Written> {
    changes.iter().try_for_each(|change| change.check(enable))?;
    let mut settings = Settings::open()?;
    let mut disabled = Vec::new();
    for change in changes {
        disabled = change.apply(&mut settings, enable)?;
    }
    let file = settings.file.display().to_string();
    settings.save(app.named_module())?;
    Ok(Written { file, disabled })
}

/// What one provider is kept from, or let do.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) provider: Provider,
    /// As the configuration calls them; none for everything.
    pub(crate) mechanisms: Vec<String>,
}

/// The file that was changed, and what the last provider may not do now.
#[derive(Debug)]
pub(crate) struct Written {
    file: String,
    disabled: Vec<String>,
}

impl Change {
    fn check(&self, enable: bool) -> Result<()> {
        let name = &self.provider.name;
        if let Some(unknown) = self.mechanisms.iter().find(|wanted| !self.provider.has(wanted)) {
            return Err(Failure::not_found(format!("'{name}' does not have {unknown}"))
                .hint(format!("'metaslot provider show {name}' lists what it has")));
        }
        if name == "awslc" && self.mechanisms.is_empty() && !enable {
            let message = "awslc cannot be disabled whole: random numbers and keys are its";
            return Err(Failure::usage(message).hint("name the mechanisms that it shall not do"));
        }
        Ok(())
    }

    /// What the provider may not do then.
    fn apply(&self, settings: &mut Settings, enable: bool) -> Result<Vec<String>> {
        let (name, mechanisms) = (&self.provider.name, &self.mechanisms);
        if name == "lanes" && mechanisms.is_empty() {
            settings.forget_lanes();
        }
        if enable && !mechanisms.is_empty() && settings.contents.is_off(name) {
            return Err(Failure::failed(format!("'{name}' is disabled whole"))
                .hint(format!("metaslot provider enable {name}")));
        }
        let section = settings.provider(name)?;
        let mut disabled = strings(section, "disable");
        match (mechanisms.is_empty(), enable) {
            (true, true) => {
                section.remove("enabled");
                disabled.clear();
            }
            (true, false) => put(section, "enabled", false),
            (false, true) => allow(&mut disabled, mechanisms, name)?,
            (false, false) => {
                disabled.extend(mechanisms.iter().cloned());
                disabled.sort();
                disabled.dedup();
            }
        }
        set_strings(section, "disable", &disabled);
        settings.prune(name);
        Ok(disabled)
    }
}

/// Takes mechanisms out of the list of those that are disabled.
fn allow(disabled: &mut Vec<String>, mechanisms: &[String], name: &str) -> Result<()> {
    for mechanism in mechanisms {
        disabled.retain(|entry| !covers(mechanism, entry));
        if let Some(entry) = disabled.iter().find(|entry| covers(entry, mechanism)) {
            return Err(Failure::failed(format!("{mechanism} is disabled by '{entry}'"))
                .hint(format!("metaslot provider enable {name} '{entry}'")));
        }
    }
    Ok(())
}

/// Whether an entry of the list is another one, or a beginning of it.
pub(crate) fn covers(entry: &str, other: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(start) => other.starts_with(start),
        None => entry == other,
    }
}
