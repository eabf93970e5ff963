// SPDX-License-Identifier: Apache-2.0
//! `[[token]]`: a store of our own, in a file or in a database.

use super::daemon::{OwnLogin, PinSource};
use super::setting::{Complaint, Setting, absolute, apply, at, duration, set, table, text, wrong};
use super::{RemoteConfig, TokenConfig};
use metaslot_engine::{Engine, Policy};
use metaslot_keystore::{Cost, Kdf};
use metaslot_spi::store::Name;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// What a section says.
struct Draft {
    path: Option<PathBuf>,
    description: Option<String>,
    store: Option<String>,
    password: Option<PinSource>,
    away: Option<Duration>,
    /// The shortest PIN that goes with the policy.
    least: usize,
    config: TokenConfig,
}

/// First the preset, then what is allowed beyond it.
const SETTINGS: &[Setting<Draft>] = &[
    ("path", |token, value| set(&mut token.path, Some(absolute(value)?))),
    ("store", |token, value| set(&mut token.store, Some(database(value)?))),
    ("password-source", |token, value| set(&mut token.password, Some(PinSource::parse(value)?))),
    ("away", |token, value| set(&mut token.away, Some(duration(value)?))),
    ("description", |token, value| set(&mut token.description, Some(text(value)?.to_owned()))),
    ("policy", |token, value| {
        (token.config.policy, token.least) = preset(value)?;
        Ok(())
    }),
    ("allow", |token, value| allow(&mut token.config.policy, value)),
    ("group", |token, value| set(&mut token.config.group, Some(text(value)?.to_owned()))),
    ("fast_login", |token, value| set(&mut token.config.fast_login, Some(duration(value)?))),
    ("kdf", |token, value| set(&mut token.config.kdf, named_kdf(value)?)),
    ("pin_min", |token, value| set(&mut token.config.pin_min, pin_length(value)?)),
    ("pepper", |token, value| set(&mut token.config.pepper, Some(absolute(value)?))),
    ("anchor", |token, value| set(&mut token.config.anchor, Some(absolute(value)?))),
    ("pin-source", |token, value| {
        set(&mut token.config.pin_source, Some(PinSource::parse(value)?))
    }),
    ("identity", |token, value| set(&mut token.config.identity, Some(identity(value)?))),
];

impl TokenConfig {
    const EMPTY: Self = Self {
        path: PathBuf::new(),
        remote: None,
        description: String::new(),
        policy: Policy::DEFAULT,
        group: None,
        fast_login: None,
        kdf: Cost::Argon2id,
        pin_min: 0,
        pepper: None,
        anchor: None,
        pin_source: None,
        identity: None,
    };

    /// By which a daemon opens it.
    pub(crate) fn own_login(&self) -> Option<OwnLogin> {
        Some(OwnLogin { pin: self.pin_source.clone()?, identity: self.identity })
    }

    /// The token that there is without a configuration.
    pub(super) fn usual(data: Option<PathBuf>) -> Self {
        let directory = data.unwrap_or_else(|| PathBuf::from("/var/lib"));
        let path = directory.join("metaslot/token.db");
        Self { path, description: String::from("Metaslot"), ..Self::EMPTY }
    }

    pub(super) fn parse(section: &Spanned<DeValue<'_>>) -> Result<Self, Complaint> {
        let settings = table(section, "a token is a section")?;
        let mut draft = Draft {
            path: None,
            description: None,
            store: None,
            password: None,
            away: None,
            least: 0,
            config: Self::EMPTY,
        };
        apply(settings, "a token has no setting", SETTINGS, &mut draft)?;
        if draft.config.identity.is_some() && draft.config.pin_source.is_none() {
            let lacks = "identity says whose PIN is at pin-source, which is missing";
            return Err(at(section, lacks));
        }
        let (path, remote) = draft.place(section)?;
        let description = draft.description.unwrap_or_else(|| path.display().to_string());
        let pin_min = draft.config.pin_min.max(draft.least);
        Ok(Self { path, remote, description, pin_min, ..draft.config })
    }
}

impl Draft {
    /// Where the store is, and what is said of a database; the URL stands for the path then.
    fn place(
        &mut self,
        section: &Spanned<DeValue<'_>>,
    ) -> Result<(PathBuf, Option<RemoteConfig>), Complaint> {
        let (store, password, away) = (self.store.take(), self.password.take(), self.away);
        match (self.path.take(), store) {
            (None, None) => Err(at(section, "a token needs a path")),
            (Some(_), Some(_)) => Err(at(section, "a token has a path or a store, not both")),
            (Some(_), None) if password.is_some() || away.is_some() => {
                Err(at(section, "password-source and away are of a token with a store"))
            }
            (Some(path), None) => Ok((path, None)),
            (None, Some(_)) if self.config.group.is_some() || self.config.fast_login.is_some() => {
                Err(at(section, "group and fast_login are of a token with a path"))
            }
            (None, Some(url)) => {
                let path = PathBuf::from(&url);
                Ok((path, Some(RemoteConfig { url, password, away })))
            }
        }
    }
}

/// The URL of a database. What is wrong with it is not repeated: a password may be in it.
fn database(value: &Spanned<DeValue<'_>>) -> Result<String, Complaint> {
    let takes = "must be a URL such as \"postgresql://user@host/database?token=web\"";
    let url = text(value).map_err(|_| at(value, takes))?;
    let rest = url.strip_prefix("postgresql://").ok_or_else(|| at(value, takes))?;
    let user = rest.split_once('@').map_or("", |(user, _)| user);
    if user.contains(':') || rest.contains("password=") {
        return Err(at(value, "no password belongs here: password-source says where it is"));
    }
    Ok(url.to_owned())
}

fn identity(value: &Spanned<DeValue<'_>>) -> Result<Name, Complaint> {
    let takes = "must be a name of 1 to 64 bytes, all of which can be seen";
    Name::new(text(value)?.as_bytes()).ok_or_else(|| wrong(value, takes))
}

/// Below so many bytes a copied file is opened by guessing.
const STRICT_PIN: usize = 8;

/// The policy, and the shortest PIN that goes with it.
pub(super) fn preset(value: &Spanned<DeValue<'_>>) -> Result<(Policy, usize), Complaint> {
    match text(value)? {
        "default" => Ok((Policy::DEFAULT, 0)),
        "strict" => Ok((Policy::DEFAULT, STRICT_PIN)),
        "fips" => Ok((Policy::FIPS, STRICT_PIN)),
        "legacy" => Ok((Policy::legacy(), 0)),
        _ => Err(wrong(value, "the policies are \"default\", \"strict\", \"fips\" and \"legacy\"")),
    }
}

/// What is allowed beyond a policy.
pub(super) fn allow(policy: &mut Policy, value: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
    let DeValue::Array(names) = value.get_ref() else {
        return Err(wrong(value, "allow is a list of names"));
    };
    for name in names.iter() {
        if !policy.allow(text(name)?) {
            let known: Vec<_> = Policy::names().collect();
            let reason = format!("an entry of allow is one of {}", known.join(", "));
            return Err(wrong(name, &reason));
        }
    }
    Ok(())
}

fn pin_length(value: &Spanned<DeValue<'_>>) -> Result<usize, Complaint> {
    let length = match value.get_ref() {
        DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let possible = length.filter(|length| Engine::PIN_LENGTHS.contains(length));
    possible.ok_or_else(|| {
        let (shortest, longest) = (Engine::PIN_LENGTHS.start(), Engine::PIN_LENGTHS.end());
        wrong(value, &format!("must be a number from {shortest} to {longest}"))
    })
}

/// Nothing protects what was sealed under it.
const WEAK: Cost = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });

fn named_kdf(value: &Spanned<DeValue<'_>>) -> Result<Cost, Complaint> {
    match text(value)? {
        "argon2id" => Ok(Cost::Argon2id),
        "pbkdf2" => Ok(Cost::Pbkdf2),
        // No default leads here, and the name says what it is.
        "weak-for-tests" => Ok(WEAK),
        _ => Err(wrong(value, "the ways from a PIN to a key are \"argon2id\" and \"pbkdf2\"")),
    }
}

/// The names of the settings.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
}
