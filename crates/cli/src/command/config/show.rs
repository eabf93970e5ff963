// SPDX-License-Identifier: Apache-2.0
//! `metaslot config show`

use super::check::complaint;
use super::settings::{
    CLIENT, DAEMON, FOREIGN, METASLOT, POOL, PROVIDER, Settings, TOKEN, VARIABLES, WHOLE,
};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::places;
use serde_json::{Value, json};
use std::env;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Arguments of `config show`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Leave out what nobody has set
    #[arg(long)]
    set: bool,
}

/// One setting that counts.
#[derive(Debug)]
struct Row {
    /// As `token[0].path`.
    name: String,
    value: String,
    origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Origin {
    Default,
    Variable(&'static str),
    /// A file and a line of it.
    File(String, usize),
}

/// A file, with its text.
struct File {
    name: String,
    text: String,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    if let Some(told) = complaint(app)? {
        return Err(Failure::failed(told).hint("nothing of it counts: 'metaslot config check'"));
    }
    let files = places::in_force().into_iter().chain(places::drop_ins());
    let files: Vec<File> = files.map(File::new).collect::<Result<_>>()?;
    let mut rows = rows(&files);
    let ours = |(setting, variable): &(&str, &'static str)| {
        let value = env::var(variable).ok().filter(|value| !value.is_empty())?;
        let name = format!("metaslot.{setting}");
        Some(Row { name, value: format!("{value:?}"), origin: Origin::Variable(variable) })
    };
    let variables: Vec<Row> = VARIABLES.iter().filter_map(ours).collect();
    for row in variables {
        rows.retain(|other| other.name != row.name);
        rows.push(row);
    }
    rows.retain(|row| !args.set || row.origin != Origin::Default);
    report(app, &files, &rows)
}

fn report(app: &App, files: &[File], rows: &[Row]) -> Result<()> {
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
    for row in rows {
        table.push(vec![row.name.clone(), row.value.clone(), row.origin.to_string()]);
    }
    let json: Vec<Value> = rows.iter().map(Row::json).collect();
    let names: Vec<&String> = files.iter().map(|file| &file.name).collect();
    app.output.print(&Report {
        text: table.text(),
        json: json!({"file": names.first(), "files": names, "settings": json}),
        uris: names.into_iter().cloned().collect(),
    })
}

/// Every setting. Sections of one kind follow each other; of what is said more than once the last counts.
fn rows(files: &[File]) -> Vec<Row> {
    let parsed = files.iter().filter_map(|file| Some((file, DeTable::parse(&file.text).ok()?)));
    let parsed: Vec<(&File, _)> = parsed.collect();
    let tables: Vec<(&File, &DeTable<'_>)> =
        parsed.iter().map(|(file, table)| (*file, table.get_ref())).collect();
    let mut rows = Vec::new();
    let lists = [("token", TOKEN), ("foreign", FOREIGN), ("pool", POOL), ("client", CLIENT)];
    for (kind, settings) in lists {
        let of_file =
            |&(file, table)| sections(table, kind).into_iter().map(move |section| (file, section));
        for (number, (file, section)) in tables.iter().flat_map(of_file).enumerate() {
            fill(&mut rows, &format!("{kind}[{number}]."), settings, &file.said(section));
        }
    }
    if rows.is_empty() {
        rows = unconfigured();
    }
    let mut providers: Vec<(String, Vec<Said>)> = Vec::new();
    for (file, table) in &tables {
        for (name, section) in table_of(table, "provider").into_iter().flatten() {
            let DeValue::Table(section) = section.get_ref() else { continue };
            let said = file.said(section);
            match providers.iter_mut().find(|provider| provider.0 == *name.get_ref()) {
                Some(provider) => provider.1.extend(said),
                None => providers.push((name.get_ref().to_string(), said)),
            }
        }
    }
    for (name, said) in &providers {
        fill(&mut rows, &format!("provider.{name}."), PROVIDER, said);
    }
    let section = |name: &'static str| {
        let said = move |(file, table): &(&File, &DeTable<'_>)| {
            table_of(table, name).map_or_else(Vec::new, |section| file.said(section))
        };
        tables.iter().flat_map(said).collect::<Vec<Said>>()
    };
    let (metaslot, daemon) = (section("metaslot"), section("daemon"));
    let whole: Vec<Said> = tables.iter().flat_map(|(file, table)| file.said(table)).collect();
    fill(&mut rows, "metaslot.", METASLOT, &metaslot);
    if !daemon.is_empty() {
        fill(&mut rows, "daemon.", DAEMON, &daemon);
    }
    fill(&mut rows, "", WHOLE, &whole);
    rows
}

/// The token that there is without a section.
fn unconfigured() -> Vec<Row> {
    let path = places::usual_token().display().to_string();
    let mut rows = Vec::new();
    fill(&mut rows, "token[0].", TOKEN, &[]);
    rows[0].value = format!("{path:?}");
    rows
}

/// What a section says: a setting, its value, where.
type Said = (String, String, Origin);

/// Rows of one section, in the order of the table.
fn fill(rows: &mut Vec<Row>, before: &str, settings: Settings, said: &[Said]) {
    for (setting, default) in settings {
        let found = said.iter().rev().find(|(name, ..)| name == setting);
        let (value, origin) = match found {
            Some((_, value, origin)) => (value.clone(), origin.clone()),
            None => ((*default).to_owned(), Origin::Default),
        };
        rows.push(Row { name: format!("{before}{setting}"), value, origin });
    }
}

impl File {
    fn new((file, text): places::Text) -> Result<Self> {
        let name = file.display().to_string();
        let text = text.map_err(|error| Failure::io(format!("cannot read {name}"), &error))?;
        Ok(Self { name, text })
    }

    fn said(&self, section: &DeTable<'_>) -> Vec<Said> {
        let one = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = name.get_ref();
            (name.to_string(), self.written(value.span()), self.origin(value.span()))
        };
        section.iter().map(one).collect()
    }

    /// As it stands in the file, in one line.
    fn written(&self, span: Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        let before = self.text.bytes().take(span.start);
        Origin::File(self.name.clone(), before.filter(|byte| *byte == b'\n').count() + 1)
    }
}

fn sections<'a>(table: &'a DeTable<'_>, kind: &str) -> Vec<&'a DeTable<'a>> {
    let found = table.iter().find(|(key, _)| key.get_ref() == kind);
    let Some(DeValue::Array(list)) = found.map(|(_, value)| value.get_ref()) else {
        return Vec::new();
    };
    let tables = list.iter().filter_map(|section| match section.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    tables.collect()
}

fn table_of<'a>(table: &'a DeTable<'a>, kind: &str) -> Option<&'a DeTable<'a>> {
    match table.iter().find(|(key, _)| key.get_ref() == kind)?.1.get_ref() {
        DeValue::Table(section) => Some(section),
        _ => None,
    }
}

impl Row {
    fn json(&self) -> Value {
        let (from, file, line) = match &self.origin {
            Origin::Default => ("default", None, None),
            Origin::Variable(name) => (*name, None, None),
            Origin::File(file, line) => ("file", Some(file), Some(line)),
        };
        json!({"setting": self.name, "value": self.value, "from": from, "file": file, "line": line})
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Variable(name) => f.write_str(name),
            Self::File(file, line) => write!(f, "{file}:{line}"),
        }
    }
}
