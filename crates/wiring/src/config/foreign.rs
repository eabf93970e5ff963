// SPDX-License-Identifier: Apache-2.0
//! `[[foreign]]`: other PKCS#11 modules.

use super::setting::{
    Complaint, Setting, absolute, apply, at, boolean, duration, set, table, text, wrong,
};
use super::token::{allow, preset};
use super::{Config, ForeignConfig, simple_name};
use metaslot_engine::Policy;
use metaslot_foreign::{Config as Foreign, Isolation, MAX_MODULES, Serves};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// How long a call of an isolated module may take that says nothing else.
const LIMIT: Duration = Duration::from_secs(60);

/// What a section says.
struct Draft {
    name: Option<String>,
    module: Option<PathBuf>,
    pin_source: Option<PathBuf>,
    trusted: bool,
    serves: Serves,
    policy: Policy,
    socket: Option<PathBuf>,
    program: Option<PathBuf>,
    limit: Option<Duration>,
    shown: Option<bool>,
    parameters: Option<String>,
}

/// First the preset, then what is allowed beyond it.
const SETTINGS: &[Setting<Draft>] = &[
    ("name", |module, value| set(&mut module.name, Some(simple_name(value)?))),
    ("module", |module, value| set(&mut module.module, Some(absolute(value)?))),
    ("socket", |module, value| set(&mut module.socket, Some(absolute(value)?))),
    ("pin-source", |module, value| set(&mut module.pin_source, Some(file_uri(value)?))),
    ("trusted", |module, value| set(&mut module.trusted, boolean(value)?)),
    ("serves", |module, value| set(&mut module.serves, services(value)?)),
    ("policy", |module, value| set(&mut module.policy, preset(value)?.0)),
    ("allow", |module, value| allow(&mut module.policy, value)),
    ("isolated", |module, value| set(&mut module.program, isolated(value)?)),
    ("limit", |module, value| set(&mut module.limit, Some(duration(value)?))),
    ("metaslot", |module, value| set(&mut module.shown, Some(boolean(value)?))),
    ("parameters", |module, value| set(&mut module.parameters, Some(text(value)?.to_owned()))),
];

impl Draft {
    const EMPTY: Self = Self {
        name: None,
        module: None,
        pin_source: None,
        trusted: true,
        serves: Serves { digest: false, random: false },
        policy: Policy::DEFAULT,
        socket: None,
        program: None,
        limit: None,
        shown: None,
        parameters: None,
    };

    fn isolation(&self) -> Result<Option<Isolation>, &'static str> {
        let limit = self.limit.unwrap_or(LIMIT);
        match (&self.program, &self.socket) {
            (Some(_), Some(_)) => Err("what is behind a socket is isolated already"),
            (None, None) if self.limit.is_some() => Err("only an isolated module has a limit"),
            (None, None) => Ok(None),
            (program, _) => Ok(Some(Isolation { program: program.clone(), limit })),
        }
    }

    /// The library's file, or the server's socket.
    fn place(&self) -> Result<PathBuf, &'static str> {
        match (&self.module, &self.socket) {
            (Some(place), None) | (None, Some(place)) => Ok(place.clone()),
            (None, None) => Err("a foreign module needs a module, or a socket"),
            (Some(_), Some(_)) => Err("a foreign module has a module or a socket, not both"),
        }
    }
}

impl Config {
    /// One `[[foreign]]`.
    pub(super) fn add_foreign(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let settings = table(section, "a foreign module is a section")?;
        let mut draft = Draft::EMPTY;
        apply(settings, "a foreign module has no setting", SETTINGS, &mut draft)?;
        let isolation = draft.isolation().map_err(|reason| at(section, reason));
        let module = draft.place().map_err(|reason| at(section, reason));
        let Draft { name, pin_source, trusted, serves, policy, shown, parameters, .. } = draft;
        let name = self.new_name(name, settings, section, "a foreign module needs a name")?;
        let module = module?;
        if self.foreign.iter().any(|other| other.module.module == module) {
            return Err(at(section, "this module is named twice"));
        }
        if self.foreign.len() == MAX_MODULES {
            return Err(at(section, &format!("there are at most {MAX_MODULES} foreign modules")));
        }
        if !trusted && serves != Serves::default() {
            return Err(at(section, "a module that is not trusted serves no other token"));
        }
        let (isolation, without) = (isolation?, Vec::new());
        let module =
            Foreign { isolation, name, module, pin_source, trusted, parameters, without, serves };
        self.foreign.push(ForeignConfig { module, policy, shown, enabled: true });
        Ok(())
    }
}

/// `file:/path`, as a `pin-source` of a PKCS#11 URI has it. What stands there instead may be the PIN, and is not repeated.
fn file_uri(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Complaint> {
    let path = text(value).ok().and_then(|text| text.strip_prefix("file:")).map(PathBuf::from);
    let path = path.filter(|path| path.is_absolute());
    path.ok_or_else(|| at(value, "must be a file such as \"file:/run/keys/pin\""))
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

/// The names of the settings.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
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
            super::super::tests::parse(&text)
                .map(|mut config| config.foreign.remove(0).module.isolation)
        };
        let isolation = |program: &str, seconds| {
            let (program, limit) = (Some(PathBuf::from(program)), Duration::from_secs(seconds));
            Some(Isolation { program, limit })
        };
        let good = |more: &str| read(more).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(good(""), None);
        assert_eq!(good("isolated = false"), None);
        assert_eq!(good("isolated = true"), isolation("/usr/bin/p11-kit", 60));
        let both = "isolated = \"/opt/p11-kit\"\nlimit = \"5m\"";
        assert_eq!(good(both), isolation("/opt/p11-kit", 300));
        let server = |more: &str| {
            let text = format!("[[foreign]]\nname = \"a\"\nsocket = \"/run/s\"\n{more}\n");
            super::super::tests::parse(&text).map(|mut config| config.foreign.remove(0).module)
        };
        let there = server("").unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(there.module, PathBuf::from("/run/s"));
        let limit = Duration::from_secs(60);
        assert_eq!(there.isolation, Some(Isolation { program: None, limit }));
        assert!(server("isolated = true").is_err() && server("module = \"/m.so\"").is_err());
        for wrong in ["isolated = \"p11-kit\"", "isolated = 1", "limit = \"1s\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
