// SPDX-License-Identifier: Apache-2.0
//! `cryptoadm install` and `cryptoadm uninstall`: sections of the configuration for other modules.

use super::arguments::Args;
use super::providers::All;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::personality::operands::Operands;
use crate::settings::{Settings, WANTED};
use metaslot_client::Module;
use std::fs;
use std::path::Path;

/// A name in the configuration is no longer.
const LONGEST: usize = 16;

pub(super) fn install(app: &App, _: &Args, operands: &Operands<'_>) -> Result<()> {
    let name = operands.needed("provider")?;
    if WANTED.contains(&name) {
        let mut settings = Settings::open()?;
        settings.provider(name)?;
        return settings.save(app.named_module());
    }
    let file = Path::new(name);
    if !file.is_absolute() {
        return Err(Failure::failed("bad provider name for install")
            .hint("another module is named by its file, an absolute path"));
    }
    let real = fs::canonicalize(file)
        .map_err(|error| Failure::io(format!("cannot install {name}"), &error))?;
    let all = All::read(app)?;
    let module = Module::load(file).map_err(|error| Failure::failed(error.to_string()))?;
    if module.is_metaslot() {
        return Err(Failure::failed(format!("{name} is Metaslot itself")));
    }
    let mut settings = Settings::open()?;
    // From now on, no other command installs one.
    let there = settings.contents.foreign();
    if there.iter().any(|other| same(Path::new(&other.module), &real)) {
        return Err(Failure::failed(format!("{name} is installed already")));
    }
    let providers = all.providers.into_iter().map(|provider| provider.name);
    let taken: Vec<String> = providers.chain(there.into_iter().map(|other| other.name)).collect();
    settings.add_foreign(&section_name(file, &taken), name)?;
    settings.save(app.named_module())
}

pub(super) fn uninstall(app: &App, _: &Args, operands: &Operands<'_>) -> Result<()> {
    let name = operands.needed("provider")?;
    let all = All::read(app)?;
    let provider = all.take(name)?.name;
    let mut settings = Settings::open()?;
    if !settings.remove_foreign(&provider) && !WANTED.contains(&provider.as_str()) {
        return Err(Failure::failed(format!("{provider} is a part of the module"))
            .hint("'cryptoadm disable' keeps it from what it shall not do"));
    }
    settings.remove_provider(&provider);
    settings.save(app.named_module())
}

fn same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| one == other)
}

/// The file's name as the configuration takes names, and with a number where there is one such already.
fn section_name(file: &Path, taken: &[String]) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let stem = stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(&stem);
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = stem.chars().map(plain).take(LONGEST - 2).collect();
    let is_free = |name: &String| !WANTED.contains(&name.as_str()) && !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_named_after_the_file() {
        let rows = [
            ("/usr/lib/softhsm/libsofthsm2.so", "softhsm2"),
            ("/a/PKCS11_API.so", "pkcs11-api-2"),
            ("/a/lib.so", "lib"),
            ("/a/a-very-long-name-of-a-module.so", "a-very-long-na"),
        ];
        for (file, name) in rows {
            assert_eq!(section_name(Path::new(file), &["pkcs11-api".to_owned()]), name);
        }
    }
}
