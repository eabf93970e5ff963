// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration's file, which keep what else stands in it: the order, and comments
//! but those inside a list that changes or above a setting that goes.

use crate::failure::{Failure, Result};
use crate::places;
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// The configuration that is in force, to be changed; no other command changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) file: PathBuf,
    document: DocumentMut,
    draft: Draft,
}

impl Settings {
    /// The file that the module reads; where there is none, a new one of the user's, with the token that
    /// there is without it.
    pub(crate) fn open() -> Result<Self> {
        let there = places::in_force();
        let is_new = there.is_none();
        let file = there.map(|(file, _)| file).or_else(places::own_file).ok_or_else(|| {
            Failure::failed("there is no configuration, and no home directory for one")
                .hint("name a file by METASLOT_CONF")
        })?;
        let named = file.display();
        let draft = Draft::begin(&file, is_new)?;
        let document = match fs::read_to_string(&file) {
            Err(error) if is_new && error.kind() == io::ErrorKind::NotFound => unconfigured()?,
            text => {
                let text =
                    text.map_err(|error| Failure::io(format!("cannot read {named}"), &error))?;
                text.parse().map_err(|error| {
                    Failure::failed(format!("{named} is no TOML"))
                        .hint(format!("{error}").lines().next().unwrap_or_default())
                })?
            }
        };
        Ok(Self { file, document, draft })
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

    /// Whether the whole provider may do nothing.
    pub(crate) fn is_off(&self, name: &str) -> bool {
        let lanes = || self.document.get("lanes").and_then(Item::as_bool) == Some(false);
        let section = self.document.get("provider").and_then(|all| all.get(name));
        let enabled = section.and_then(|section| section.get("enabled")).and_then(Item::as_bool);
        enabled == Some(false) || (name == "lanes" && lanes())
    }

    /// Takes out the section of a provider that says nothing.
    pub(crate) fn prune(&mut self, name: &str) {
        let Some(all) = self.document.get_mut("provider").and_then(Item::as_table_mut) else {
            return;
        };
        if all.get(name).and_then(Item::as_table).is_some_and(Table::is_empty) {
            all.remove(name);
        }
        if all.is_empty() {
            self.document.remove("provider");
        }
    }

    /// Writes the file anew, or leaves it as it is: where the module would refuse it, too.
    pub(crate) fn save(self, module: Option<&Path>) -> Result<()> {
        let Self { file, document, mut draft } = self;
        let cannot = |error| Failure::io(format!("cannot write {}", file.display()), &error);
        draft.write(&document.to_string()).map_err(cannot)?;
        accepted(&draft.path, &file, module)?;
        draft.replace().map_err(cannot)
    }
}

/// Writes a file whole, or leaves it as it was.
pub(crate) fn replace(file: &Path, text: &str) -> Result<()> {
    let cannot = |error| Failure::io(format!("cannot write {}", file.display()), &error);
    fs::create_dir_all(directory(file)).map_err(cannot)?;
    let new = file.with_extension(format!("new.{}", std::process::id()));
    let done = fs::write(&new, text).and_then(|()| fs::rename(&new, file)).map_err(cannot);
    if done.is_err() {
        fs::remove_file(&new).ok();
    }
    done
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
    let mut tokens = toml_edit::ArrayOfTables::new();
    tokens.push(section);
    document.insert("token", Item::ArrayOfTables(tokens));
    Ok(document)
}

/// How long a command waits for another one that changes the same file.
const PATIENCE: Duration = Duration::from_secs(20);

/// The file that is to replace the configuration. Only the process that has it locked changes the configuration; one that was
/// killed leaves it unlocked, to be used again.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    /// The file itself: a link to it stays one.
    replaces: PathBuf,
    file: File,
    /// It is the configuration now, and what has its name by then is another command's.
    is_done: bool,
}

impl Draft {
    fn begin(file: &Path, is_new: bool) -> Result<Self> {
        let cannot = |error| Failure::io(format!("cannot write {}", file.display()), &error);
        let replaces = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if is_new {
            fs::create_dir_all(directory(&replaces)).map_err(cannot)?;
        }
        let path = replaces.with_extension("toml.new");
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(file) = locked(&path).map_err(cannot)? {
                return Ok(Self { path, replaces, file, is_done: false });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(Failure::failed("another process is changing the configuration")
            .hint(format!("it has {} locked", path.display())))
    }

    /// With the owner and the mode of the file that it replaces.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        if let Ok(there) = fs::metadata(&self.replaces) {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (there.uid(), there.gid()) {
                fchown(file, Some(there.uid()), Some(there.gid()))?;
            }
            file.set_permissions(there.permissions())?;
        }
        file.sync_all()
    }

    fn replace(&mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.replaces)?;
        self.is_done = true;
        File::open(directory(&self.replaces))?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The file of this name, made where it is missing; `None` while another process has it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).custom_flags(flags);
    let file = options.open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        locked => locked?,
    }
    let Ok(named) = fs::symlink_metadata(path) else { return Ok(None) };
    let own = file.metadata()?;
    if (named.dev(), named.ino()) != (own.dev(), own.ino()) {
        // Who had it made it the configuration.
        return Ok(None);
    }
    // Else it would stay in another user's hands, or be another file of ours.
    let is_ours =
        own.is_file() && own.nlink() == 1 && own.uid() == rustix::process::geteuid().as_raw();
    let in_the_way = || io::Error::other(format!("{} is in the way", path.display()));
    is_ours.then_some(Some(file)).ok_or_else(in_the_way)
}

fn directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
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

/// Sets a value; the comment behind an older one stays.
pub(crate) fn put(section: &mut Table, name: &str, new: impl Into<toml_edit::Value>) {
    let mut new = new.into();
    if let Some(old) = section.get(name).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
    }
    section.insert(name, Item::Value(new));
}
