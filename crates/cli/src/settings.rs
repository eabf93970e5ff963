// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration's file, which keep what else stands in it: order, comments, blanks.

use crate::failure::{Failure, Result};
use crate::places;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// The configuration that is in force, to be changed.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) file: PathBuf,
    document: DocumentMut,
}

impl Settings {
    /// The file that the module reads; where there is none, a new one of the user's, with the token that
    /// there is without it.
    pub(crate) fn open() -> Result<Self> {
        let Some((file, text)) = places::in_force() else { return Self::new() };
        let named = file.display();
        let text = text.map_err(|error| Failure::io(format!("cannot read {named}"), &error))?;
        let document = text.parse().map_err(|error| {
            Failure::failed(format!("{named} is no TOML"))
                .hint(format!("{error}").lines().next().unwrap_or_default())
        })?;
        Ok(Self { file, document })
    }

    fn new() -> Result<Self> {
        let file = places::own_file().ok_or_else(|| {
            Failure::failed("there is no configuration, and no home directory for one")
                .hint("name a file by METASLOT_CONF")
        })?;
        let token = places::usual_token();
        let path = token.to_str().ok_or_else(|| Failure::failed("the token's path is no text"))?;
        let mut section = Table::new();
        section.insert("path", value(path));
        let mut document = DocumentMut::new();
        let mut tokens = toml_edit::ArrayOfTables::new();
        tokens.push(section);
        document.insert("token", Item::ArrayOfTables(tokens));
        Ok(Self { file, document })
    }

    /// The section of a provider, made where there is none.
    pub(crate) fn provider(&mut self, name: &str) -> Result<&mut Table> {
        let providers = self.document.entry("provider").or_insert_with(|| {
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
        self.document.remove("lanes");
    }

    /// The section of the token in a slot; `None` where the slot is another module's.
    pub(crate) fn token(&mut self, slot: u64) -> Option<&mut Table> {
        let tokens = self.document.get_mut("token")?.as_array_of_tables_mut()?;
        tokens.get_mut(usize::try_from(slot).ok()?)
    }

    /// Takes out sections of providers that say nothing.
    fn prune(&mut self) {
        let Some(all) = self.document.get_mut("provider").and_then(Item::as_table_mut) else {
            return;
        };
        all.retain(|_, section| section.as_table().is_none_or(|section| !section.is_empty()));
        if all.is_empty() {
            self.document.remove("provider");
        }
    }

    /// Writes the file anew, or leaves it as it is.
    pub(crate) fn save(&mut self) -> Result<()> {
        self.prune();
        let cannot = |error| Failure::io(format!("cannot write {}", self.file.display()), &error);
        // A link stays one.
        let file = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        let directory = file.parent().unwrap_or_else(|| Path::new("/"));
        fs::create_dir_all(directory).map_err(cannot)?;
        let mode = fs::metadata(&file).map_or(0o644, |there| there.permissions().mode());
        let new = file.with_extension(format!("toml.{}", std::process::id()));
        let written = fs::write(&new, self.document.to_string())
            .and_then(|()| fs::set_permissions(&new, Permissions::from_mode(mode)))
            .and_then(|()| fs::rename(&new, &file));
        written.map_err(|error| {
            fs::remove_file(&new).ok();
            cannot(error)
        })
    }
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
        section.insert(name, value(texts.iter().collect::<Array>()));
    }
}
