// SPDX-License-Identifier: Apache-2.0
//! `[[foreign]]`: other PKCS#11 modules.

use super::setting::{Complaint, at, boolean, text, wrong};
use super::{Config, ForeignConfig, absolute, allow, duration, file_uri, preset};
use metaslot_engine::Policy;
use metaslot_foreign::{Config as Foreign, Isolation, MAX_MODULES, Serves};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// How long a call of an isolated module may take that says nothing else.
const LIMIT: Duration = Duration::from_secs(60);

impl Config {
    /// One `[[foreign]]`.
    pub(super) fn add_foreign(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let DeValue::Table(table) = section.get_ref() else {
            return Err(wrong(section, "a foreign module is a section"));
        };
        let (mut name, mut module, mut pin_source, mut parameters) = (None, None, None, None);
        let (mut policy, mut trusted) = (Policy::DEFAULT, true);
        let mut serves = Serves::default();
        let (mut program, mut limit, mut shown) = (None, None, None);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "serves" => serves = services(value)?,
                "trusted" => trusted = boolean(value)?,
                "isolated" => program = isolated(value)?,
                "limit" => limit = Some(duration(value)?),
                "metaslot" => shown = Some(boolean(value)?),
                "name" => name = Some(self.new_name(value)?),
                "module" => module = Some(absolute(value)?),
                "pin-source" => pin_source = Some(file_uri(value)?),
                "parameters" => parameters = Some(text(value)?.to_owned()),
                "policy" => policy = preset(value)?.0,
                "allow" => {}
                other => {
                    return Err(at(key, &format!("a foreign module has no setting {other:?}")));
                }
            }
        }
        if let Some(allowed) = table.iter().find(|(key, _)| key.get_ref() == "allow") {
            allow(&mut policy, allowed.1)?;
        }
        let name = name.ok_or_else(|| at(section, "a foreign module needs a name"))?;
        let module: PathBuf =
            module.ok_or_else(|| at(section, "a foreign module needs a module"))?;
        if self.foreign.iter().any(|other| other.module.module == module) {
            return Err(at(section, "this module is named twice"));
        }
        if self.foreign.len() == MAX_MODULES {
            return Err(at(section, &format!("there are at most {MAX_MODULES} foreign modules")));
        }
        if !trusted && serves != Serves::default() {
            return Err(at(section, "a module that is not trusted serves no other token"));
        }
        let isolation = match (program, limit) {
            (Some(program), limit) => Some(Isolation { program, limit: limit.unwrap_or(LIMIT) }),
            (None, None) => None,
            (None, Some(_)) => return Err(at(section, "only an isolated module has a limit")),
        };
        let without = Vec::new();
        let module =
            Foreign { isolation, name, module, pin_source, trusted, parameters, without, serves };
        self.foreign.push(ForeignConfig { module, policy, shown, enabled: true });
        Ok(())
    }
}

/// What a module does for every caller.
fn services(value: &Spanned<DeValue<'_>>) -> Result<Serves, Complaint> {
    let takes = "serves is a list of \"digest\" and \"random\"";
    let DeValue::Array(names) = value.get_ref() else { return Err(wrong(value, takes)) };
    let mut serves = Serves::default();
    for name in names.iter() {
        match text(name)? {
            "digest" => serves.digest = true,
            "random" => serves.random = true,
            _ => return Err(wrong(name, takes)),
        }
    }
    Ok(serves)
}

/// The program that keeps a module in a process of its own: p11-kit's, where it usually is.
fn isolated(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Complaint> {
    match value.get_ref() {
        DeValue::Boolean(truth) => Ok(truth.then(|| PathBuf::from("/usr/bin/p11-kit"))),
        DeValue::String(path) if path.starts_with('/') => Ok(Some(PathBuf::from(path.as_ref()))),
        _ => Err(wrong(value, "isolated is true, false, or the absolute path of p11-kit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_has_a_program_and_a_limit() {
        let read = |more: &str| {
            let text = format!(
                "[[token]]\npath = \"/a\"\n[[foreign]]\nname = \"a\"\nmodule = \"/m.so\"\n{more}\n"
            );
            Config::parse(&text).map(|mut config| config.foreign.remove(0).module.isolation)
        };
        let isolation = |program: &str, seconds| {
            let (program, limit) = (PathBuf::from(program), Duration::from_secs(seconds));
            Some(Isolation { program, limit })
        };
        let good = |more: &str| read(more).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(good(""), None);
        assert_eq!(good("isolated = false"), None);
        assert_eq!(good("isolated = true"), isolation("/usr/bin/p11-kit", 60));
        let both = "isolated = \"/opt/p11-kit\"\nlimit = \"5m\"";
        assert_eq!(good(both), isolation("/opt/p11-kit", 300));
        for wrong in ["isolated = \"p11-kit\"", "isolated = 1", "limit = \"1s\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
