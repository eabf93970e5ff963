// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration's file, which keep what else stands in it: the order, and comments
//! but those inside a list that changes or above a setting that goes.

use crate::draft::Draft;
use crate::failure::{Failure, Result};
use crate::places;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

/// Providers of the module's that are there only where they have a section, whatever stands in it.
pub(crate) const WANTED: [&str; 2] = ["openssl", "kernel"];

/// The configuration that is in force, to be changed; no other command changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) file: PathBuf,
    pub(crate) contents: Contents,
    draft: Draft,
}

/// What stands in a configuration.
#[derive(Debug)]
pub(crate) struct Contents(DocumentMut);

/// A `[[foreign]]` section.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) serves: Vec<String>,
}

impl Contents {
    /// Of the configuration in force, which may be none, with its drop-ins.
    pub(crate) fn read() -> Result<Self> {
        let mut all = Self(DocumentMut::new());
        for (file, text) in places::in_force().into_iter().chain(places::drop_ins()) {
            join(&mut all.0, &Self::parse(&file, text)?.0);
        }
        Ok(all)
    }

    fn parse(file: &Path, text: io::Result<String>) -> Result<Self> {
        let named = file.display();
        let text = text.map_err(|error| Failure::io(format!("cannot read {named}"), &error))?;
        text.parse().map(Self).map_err(|error| {
            Failure::failed(format!("{named} is no TOML"))
                .hint(format!("{error}").lines().next().unwrap_or_default())
        })
    }

    fn provider(&self, name: &str) -> Option<&Table> {
        self.0.get("provider")?.get(name)?.as_table()
    }

    /// Whether the whole provider may do nothing.
    pub(crate) fn is_off(&self, name: &str) -> bool {
        let lanes = || self.0.get("lanes").and_then(Item::as_bool) == Some(false);
        let enabled = self.provider(name).and_then(|section| section.get("enabled"));
        enabled.and_then(Item::as_bool) == Some(false) || (name == "lanes" && lanes())
    }

    /// The mechanisms that a provider may not do.
    pub(crate) fn disabled(&self, name: &str) -> Vec<String> {
        self.provider(name).map(|section| strings(section, "disable")).unwrap_or_default()
    }

    /// The services that have a provider only, and those that do not, as far as something is said of them.
    pub(crate) fn services(&self, name: &str) -> Vec<(&'static str, Vec<String>)> {
        let Some(section) = self.provider(name) else { return Vec::new() };
        let said = ["only", "except"].into_iter().filter(|word| section.contains_key(word));
        said.map(|word| (word, strings(section, word))).collect()
    }

    /// Whether slot 0 shows its own token only.
    pub(crate) fn is_metaslot_off(&self) -> bool {
        let enabled = self.0.get("metaslot").and_then(|section| section.get("enabled"));
        enabled.and_then(Item::as_bool) == Some(false)
    }

    /// The other modules, in their order.
    pub(crate) fn foreign(&self) -> Vec<Foreign> {
        let sections = self.0.get("foreign").and_then(Item::as_array_of_tables);
        let text = |section: &Table, name| {
            section.get(name).and_then(Item::as_str).unwrap_or_default().to_owned()
        };
        let foreign = |section| Foreign {
            name: text(section, "name"),
            module: text(section, "module"),
            serves: strings(section, "serves"),
        };
        sections.into_iter().flatten().map(foreign).collect()
    }
}

/// What a later file says as well: lists of sections grow, of single settings the last counts.
fn join(all: &mut Table, more: &Table) {
    for (key, item) in more {
        match (all.get_mut(key), item) {
            (Some(Item::ArrayOfTables(sections)), Item::ArrayOfTables(others)) => {
                sections.extend(others.iter().cloned());
            }
            (Some(Item::Table(table)), Item::Table(other)) => join(table, other),
            _ => drop(all.insert(key, item.clone())),
        }
    }
}

impl Settings {
    /// The file that the module reads; where there is none, a new one of the user's, with the token that
    /// there is without it.
    pub(crate) fn open() -> Result<Self> {
        let there = places::in_force();
        let is_new = there.is_none();
        if let (true, Some((file, _))) = (is_new, places::drop_ins().first()) {
            let named = file.display();
            return Err(Failure::failed(format!("the configuration is drop-ins only, as {named}"))
                .hint("change these, or make a metaslot.toml beside their directory"));
        }
        let file = there.map(|(file, _)| file).or_else(places::own_file).ok_or_else(|| {
            Failure::failed("there is no configuration, and no home directory for one")
                .hint("name a file by METASLOT_CONF")
        })?;
        let draft = Draft::begin(&file, is_new)?;
        let contents = match fs::read_to_string(&file) {
            Err(error) if is_new && error.kind() == io::ErrorKind::NotFound => {
                Contents(unconfigured()?)
            }
            text => Contents::parse(&file, text)?,
        };
        Ok(Self { file, contents, draft })
    }

    /// Refuses to change what a drop-in says, too: that counts.
    fn check_drop_ins(&self, path: &[&str]) -> Result<()> {
        for (file, text) in places::drop_ins() {
            let contents = Contents::parse(&file, text)?;
            let root = Some(contents.0.as_item());
            if path.iter().fold(root, |item, key| item?.get(key)).is_some() {
                let (section, file) = (path.join("."), file.display());
                let said = format!("{file} has a section [{section}], which counts");
                return Err(Failure::failed(said).hint("change that file"));
            }
        }
        Ok(())
    }

    /// The section of a provider, made where there is none.
    pub(crate) fn provider(&mut self, name: &str) -> Result<&mut Table> {
        self.check_drop_ins(&["provider", name])?;
        let providers = self.contents.0.entry("provider").or_insert_with(|| {
            let mut sections = Table::new();
            sections.set_implicit(true);
            Item::Table(sections)
        });
        let section = providers.as_table_mut().map(|all| all.entry(name).or_insert(table()));
        section.and_then(Item::as_table_mut).ok_or_else(|| {
            Failure::failed("providers are not written as [provider.NAME] sections")
                .hint(format!("mend {}", self.file.display()))
        })
    }

    /// Takes `lanes = false` out: a provider's section says the same.
    pub(crate) fn forget_lanes(&mut self) {
        self.contents.0.remove("lanes");
    }

    /// The section of the token in a slot that is described so, by its `description` or else its path; `None` where the slot is
    /// another module's.
    pub(crate) fn token(&mut self, slot: u64, described: &str) -> Option<&mut Table> {
        let is_first =
            self.contents.0.get("metaslot").is_none_or(|section| {
                section.get("token").is_none() && section.get("slot").is_none()
            });
        let tokens = self.contents.0.get_mut("token")?.as_array_of_tables_mut()?;
        let is_it = |section: &Table| {
            let said = section.get("description").or_else(|| section.get("path"));
            said.and_then(Item::as_str) == Some(described)
        };
        // Where two are described so, their order tells them apart, unless slot 0 is another than the first.
        let at = match tokens.iter().filter(|section| is_it(section)).count() {
            0 => None,
            1 => tokens.iter().position(is_it),
            _ => usize::try_from(slot).ok().filter(|_| is_first),
        };
        tokens.get_mut(at?)
    }

    /// Changes what is said of slot 0. A section that says nothing is none.
    pub(crate) fn metaslot(&mut self, change: impl FnOnce(&mut Table)) -> Result<()> {
        self.check_drop_ins(&["metaslot"])?;
        let section = self.contents.0.entry("metaslot").or_insert_with(table).as_table_mut();
        let section = section.ok_or_else(|| {
            Failure::failed("slot 0 is not described by a [metaslot] section")
                .hint(format!("mend {}", self.file.display()))
        })?;
        change(section);
        if section.is_empty() {
            self.contents.0.remove("metaslot");
        }
        Ok(())
    }

    /// Takes out the section of a provider that says nothing, unless that it is there says something.
    pub(crate) fn prune(&mut self, name: &str) {
        let Some(all) = self.contents.0.get_mut("provider").and_then(Item::as_table_mut) else {
            return;
        };
        let says_nothing = all.get(name).and_then(Item::as_table).is_some_and(Table::is_empty);
        if says_nothing && !WANTED.contains(&name) {
            all.remove(name);
        }
        if all.is_empty() {
            self.contents.0.remove("provider");
        }
    }

    /// The section of another module.
    pub(crate) fn foreign(&mut self, name: &str) -> Option<&mut Table> {
        let sections = self.contents.0.get_mut("foreign")?.as_array_of_tables_mut()?;
        sections.iter_mut().find(|section| named(section, name))
    }

    /// A section for another module.
    pub(crate) fn add_foreign(&mut self, name: &str, module: &str) -> Result<()> {
        let none = || Item::ArrayOfTables(ArrayOfTables::new());
        let sections = self.contents.0.entry("foreign").or_insert_with(none);
        let sections = sections.as_array_of_tables_mut().ok_or_else(|| {
            Failure::failed("other modules are not written as [[foreign]] sections")
                .hint(format!("mend {}", self.file.display()))
        })?;
        let mut section = Table::new();
        section.insert("name", value(name));
        section.insert("module", value(module));
        sections.push(section);
        Ok(())
    }

    /// Takes another module out; `false` where there is none of this name.
    pub(crate) fn remove_foreign(&mut self, name: &str) -> bool {
        let all = self.contents.0.get_mut("foreign").and_then(Item::as_array_of_tables_mut);
        let Some(sections) = all else { return false };
        let before = sections.len();
        sections.retain(|section| !named(section, name));
        let removed = sections.len() < before;
        if sections.is_empty() {
            self.contents.0.remove("foreign");
        }
        removed
    }

    /// Takes a provider's section out.
    pub(crate) fn remove_provider(&mut self, name: &str) {
        if let Some(all) = self.contents.0.get_mut("provider").and_then(Item::as_table_mut) {
            all.remove(name);
        }
        self.prune(name);
    }

    /// Writes the file anew, or leaves it as it is: where the module would refuse it, too.
    pub(crate) fn save(self, module: Option<&Path>) -> Result<()> {
        let Self { file, contents: Contents(document), mut draft } = self;
        let cannot = |error| Failure::io(format!("cannot write {}", file.display()), &error);
        // What a drop-in says may be needed for it.
        let mut whole = document.clone();
        for (drop_in, text) in places::drop_ins() {
            join(&mut whole, &Contents::parse(&drop_in, text)?.0);
        }
        draft.write(&whole.to_string()).map_err(cannot)?;
        accepted(draft.path(), &file, module)?;
        draft.write(&document.to_string()).map_err(cannot)?;
        draft.replace().map_err(cannot)
    }
}

/// What a module without a configuration has.
fn unconfigured() -> Result<DocumentMut> {
    let token = places::usual_token();
    let path = token.to_str().ok_or_else(|| Failure::failed("the token's path is no text"))?;
    let mut section = Table::new();
    section.insert("path", value(path));
    // As the slot is called without a configuration.
    section.insert("description", value("Metaslot"));
    let mut document = DocumentMut::new();
    let mut tokens = ArrayOfTables::new();
    tokens.push(section);
    document.insert("token", Item::ArrayOfTables(tokens));
    Ok(document)
}

/// Asks the module, in a process of its own, whether it takes the configuration.
fn accepted(new: &Path, file: &Path, module: Option<&Path>) -> Result<()> {
    let cannot = |error| Failure::io("cannot try the new configuration", &error);
    let mut try_it = Command::new(std::env::current_exe().map_err(cannot)?);
    try_it.args(["mechanisms", "--json"]).env("METASLOT_CONF", new);
    if let Some(module) = module {
        try_it.arg("--module").arg(module);
    }
    let tried = try_it.output().map_err(cannot)?;
    if tried.status.success() {
        return Ok(());
    }
    let said: Value = serde_json::from_slice(&tried.stderr).unwrap_or_default();
    let words = ["detail", "message"].map(|part| said["error"][part].as_str());
    let detail = words.into_iter().flatten().next().unwrap_or("it does not say why");
    let detail = detail.replace(&new.display().to_string(), &file.display().to_string());
    Err(Failure::failed("nothing was changed: the module would not take it").hint(detail))
}

fn named(section: &Table, name: &str) -> bool {
    section.get("name").and_then(Item::as_str) == Some(name)
}

/// Lets another module serve something for every caller, or no longer.
pub(crate) fn serve(section: &mut Table, what: &str, enable: bool) {
    let mut serves = strings(section, "serves");
    serves.retain(|it| it != what);
    if enable {
        serves.push(what.to_owned());
    }
    set_strings(section, "serves", &serves);
}

fn table() -> Item {
    Item::Table(Table::new())
}

/// The strings of a list in a section; none where it is not there.
pub(crate) fn strings(section: &Table, name: &str) -> Vec<String> {
    let list = section.get(name).and_then(Item::as_array);
    let texts = list.into_iter().flatten().filter_map(|text| text.as_str());
    texts.map(str::to_owned).collect()
}

/// Puts a list of strings into a section, or takes an empty one out.
pub(crate) fn set_strings(section: &mut Table, name: &str, texts: &[String]) {
    if texts.is_empty() {
        section.remove(name);
    } else {
        put(section, name, texts.iter().collect::<Array>());
    }
}

/// Sets a value; the comments above and behind an older one stay.
pub(crate) fn put(section: &mut Table, name: &str, new: impl Into<toml_edit::Value>) {
    let mut new = new.into();
    match section.get_mut(name) {
        Some(Item::Value(old)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => drop(section.insert(name, Item::Value(new))),
    }
}
