// SPDX-License-Identifier: Apache-2.0
//! Where the module looks for its configuration, and for the token where it has none.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// The first configuration that is there, and what stands in it; one that was named must be there.
pub(crate) fn in_force() -> Option<(PathBuf, io::Result<String>)> {
    if let Some(named) = env::var_os("METASLOT_CONF").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return Some((named.clone(), fs::read_to_string(named)));
    }
    let all = own_file().into_iter().chain([PathBuf::from("/etc/metaslot/metaslot.toml")]);
    let mut read = all.map(|file| (file.clone(), fs::read_to_string(file)));
    read.find(|(_, text)| !text.as_ref().is_err_and(is_absent))
}

/// Where pages of counters may be: in the directory that the configuration names, and in the usual
/// ones, because other programs have other configurations.
pub(crate) fn counters() -> Vec<PathBuf> {
    let text = in_force().and_then(|(_, text)| text.ok()).unwrap_or_default();
    let named = counters_of(&text);
    let usual = metaslot_counters::directories().filter(|usual| Some(usual) != named.as_ref());
    named.iter().cloned().chain(usual).collect()
}

fn counters_of(text: &str) -> Option<PathBuf> {
    let table = DeTable::parse(text).ok()?;
    let setting = table.get_ref().iter().find(|(key, _)| key.get_ref() == "counters")?;
    match setting.1.get_ref() {
        DeValue::String(path) => Some(path.as_ref().into()),
        _ => None,
    }
}

/// The user's own configuration.
pub(crate) fn own_file() -> Option<PathBuf> {
    config_home().map(|own| own.join("metaslot/metaslot.toml"))
}

/// The token that there is without a configuration.
pub(crate) fn usual_token() -> PathBuf {
    let data = directory("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")));
    data.unwrap_or_else(|| "/var/lib".into()).join("metaslot/token.db")
}

/// The directory of the user's own configuration files.
pub(crate) fn config_home() -> Option<PathBuf> {
    directory("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The directory that a variable names, when it is an absolute path.
fn directory(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn home() -> Option<PathBuf> {
    directory("HOME")
}
