// SPDX-License-Identifier: Apache-2.0
//! `[metaslot]`: what slot 0 is, and the variables of the environment that say so for one process, as Solaris had them.

use super::setting::{Complaint, Setting, apply, boolean, set, table, text};
use crate::environment::variable;
use std::ffi::CStr;
use std::fmt;
use toml::Spanned;
use toml::de::DeValue;

/// Slot 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetaslotConfig {
    /// Whether it shows what is in other modules' tokens, too.
    pub(crate) enabled: bool,
    /// Which token is its own; otherwise the first.
    pub(crate) keystore: Keystore,
}

/// Which token keeps what is made in slot 0. Where both are said, both must fit.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Keystore {
    /// Its label.
    pub(crate) token: Option<String>,
    /// Its slot's description.
    pub(crate) slot: Option<String>,
    /// Whether the environment says so, and not the configuration.
    by_variable: bool,
}

impl MetaslotConfig {
    pub(super) const USUAL: Self =
        Self { enabled: true, keystore: Keystore { token: None, slot: None, by_variable: false } };

    /// A `[metaslot]` section, which says something of what was said before.
    pub(super) fn read(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let settings = table(section, "metaslot is a section")?;
        apply(settings, "the metaslot has no setting", SETTINGS, self)
    }
}

const SETTINGS: &[Setting<MetaslotConfig>] = &[
    ("enabled", |slot, value| set(&mut slot.enabled, boolean(value)?)),
    ("token", |slot, value| set(&mut slot.keystore.token, Some(text(value)?.to_owned()))),
    ("slot", |slot, value| set(&mut slot.keystore.slot, Some(text(value)?.to_owned()))),
];

/// The names of the settings.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
}

/// What the environment says instead of the configuration.
#[derive(Debug, Default)]
pub(super) struct Variables {
    enabled: Option<String>,
    keystore: Keystore,
}

impl Variables {
    pub(super) fn of_environment() -> Self {
        let said =
            |name: &'static CStr| variable(name).map(|value| value.to_string_lossy().into_owned());
        let token = said(c"METASLOT_OBJECTSTORE_TOKEN");
        let slot = said(c"METASLOT_OBJECTSTORE_SLOT");
        Self {
            enabled: said(c"METASLOT_ENABLED"),
            keystore: Keystore { token, slot, by_variable: false },
        }
    }

    /// What they say counts; one that names the keystore takes both names' place.
    ///
    /// # Errors
    /// A variable, and what it takes instead.
    pub(super) fn apply(&self, config: &mut MetaslotConfig) -> Result<(), (&'static str, String)> {
        if self.keystore != Keystore::default() {
            config.keystore = Keystore { by_variable: true, ..self.keystore.clone() };
        }
        match self.enabled.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None => {}
            Some("true") => config.enabled = true,
            Some("false") => config.enabled = false,
            Some(_) => return Err(("METASLOT_ENABLED", String::from("is true or false"))),
        }
        Ok(())
    }
}

impl fmt::Display for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("token")?;
        if let Some(label) = &self.token {
            write!(f, " {label:?}")?;
        }
        if let Some(slot) = &self.slot {
            write!(f, " in a slot {slot:?}")?;
        }
        if self.by_variable {
            f.write_str(", which METASLOT_OBJECTSTORE_TOKEN or METASLOT_OBJECTSTORE_SLOT names")?;
        }
        Ok(())
    }
}

impl Keystore {
    /// Whether a token with this label, in a slot with this description, is meant. Blanks at the end do not count.
    pub fn is(&self, label: &str, description: &str) -> bool {
        let fits = |wanted: &Option<String>, there: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.trim_end() == there.trim_end())
        };
        fits(&self.token, label) && fits(&self.slot, description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metaslot(text: &str, variables: &Variables) -> Result<MetaslotConfig, String> {
        let table = toml::de::DeTable::parse(text).map_err(|wrong| wrong.to_string())?;
        let mut config = MetaslotConfig::USUAL;
        for (_, section) in table.get_ref() {
            config.read(section).map_err(|wrong| wrong.1)?;
        }
        let apply = variables.apply(&mut config);
        apply.map_err(|(name, reason)| format!("{name}: {reason}")).map(|()| config)
    }

    fn named(token: Option<&str>, slot: Option<&str>) -> Keystore {
        let (token, slot) = (token.map(str::to_owned), slot.map(str::to_owned));
        Keystore { token, slot, by_variable: false }
    }

    #[test]
    fn the_section_says_and_the_environment_says_instead() {
        let none = Variables::default();
        assert_eq!(metaslot("", &none), Ok(MetaslotConfig::USUAL));
        let section = "[metaslot]\nenabled = false\ntoken = \"web\"\nslot = \"here\"\n";
        let said = metaslot(section, &none).unwrap_or_else(|wrong| panic!("{wrong}"));
        let keystore = named(Some("web"), Some("here"));
        assert_eq!(said, MetaslotConfig { enabled: false, keystore });
        // As on Solaris: who names one of the two does not mean the other any more.
        let keystore = named(Some("other"), None);
        let variables =
            Variables { enabled: Some(String::from("TRUE")), keystore: keystore.clone() };
        let keystore = Keystore { by_variable: true, ..keystore };
        assert_eq!(metaslot(section, &variables), Ok(MetaslotConfig { enabled: true, keystore }));
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        let none = Variables::default();
        for section in ["metaslot = 1", "[metaslot]\nenabled = 1", "[metaslot]\nname = \"a\""] {
            assert!(metaslot(section, &none).is_err(), "{section}");
        }
        let maybe = Variables { enabled: Some(String::from("maybe")), ..none };
        let refused = metaslot("", &maybe);
        assert_eq!(refused, Err(String::from("METASLOT_ENABLED: is true or false")));
    }

    #[test]
    fn a_keystore_is_known_by_what_is_said_of_it() {
        let web = |token, slot| named(token, slot).is("web", "/var/lib/web.db");
        assert!(web(None, None) && web(Some("web  "), None) && web(None, Some("/var/lib/web.db")));
        assert!(!web(Some("we"), None) && !web(Some("web"), Some("web")));
    }
}
