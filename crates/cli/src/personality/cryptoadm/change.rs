// SPDX-License-Identifier: Apache-2.0
//! `cryptoadm enable` and `cryptoadm disable`

use super::arguments::Args;
use super::providers::{All, mechanisms};
use crate::app::App;
use crate::command::provider::{self, Change, Provider};
use crate::failure::{Failure, Result};
use crate::personality::operands::Operands;
use crate::settings::{Contents, Settings, put};

pub(super) fn disable(app: &App, _: &Args, operands: &Operands<'_>) -> Result<()> {
    change(app, operands, false)
}

pub(super) fn enable(app: &App, _: &Args, operands: &Operands<'_>) -> Result<()> {
    change(app, operands, true)
}

fn change(app: &App, operands: &Operands<'_>, enable: bool) -> Result<()> {
    operands.only(&["provider", "metaslot"])?;
    let what = operands.only(&["mechanism", "random", "all"])?;
    let mechanisms = mechanisms(operands.value("mechanism"))?;
    let keystore = Keystore::of(operands)?;
    if operands.has("metaslot") {
        return match what {
            Some("random") => Err(Failure::failed("the metaslot has the random numbers of awslc")),
            Some("mechanism") if !mechanisms.is_empty() => {
                everywhere(app, &mechanisms, enable)?;
                if enable { metaslot(app, enable, keystore.as_ref()) } else { Ok(()) }
            }
            None => metaslot(app, enable, keystore.as_ref()),
            _ => Err(Failure::failed("the mechanisms of the metaslot are its providers'")
                .hint("disable all of each provider, or 'disable metaslot' to see one token only")),
        };
    }
    if keystore.is_some() {
        return Err(Failure::usage("token=, slot= and default-keystore are for the metaslot"));
    }
    let name = operands.needed("provider")?;
    if what.is_none() {
        return Err(Failure::usage("mechanism=, random or all is missing"));
    }
    let all = All::read(app)?;
    let provider = all.take(name)?;
    match what {
        Some("random") => random(app, &provider, enable),
        _ => provider::write(app, &[Change { provider, mechanisms }], enable).map(drop),
    }
}

/// Which token slot 0 has for its own.
enum Keystore<'a> {
    /// By its label, its slot's description, or both.
    Named(Option<&'a str>, Option<&'a str>),
    /// The first.
    Default,
}

impl<'a> Keystore<'a> {
    fn of(operands: &Operands<'a>) -> Result<Option<Self>> {
        let (token, slot) = (operands.value("token"), operands.value("slot"));
        let named = (token.is_some() || slot.is_some()).then_some(Self::Named(token, slot));
        match (named, operands.has("default-keystore")) {
            (Some(_), true) => {
                Err(Failure::usage("default-keystore goes without token= and slot="))
            }
            (named, is_default) => Ok(named.or_else(|| is_default.then_some(Self::Default))),
        }
    }
}

/// Whether slot 0 shows what is in other tokens, and which token is its own.
fn metaslot(app: &App, enable: bool, keystore: Option<&Keystore<'_>>) -> Result<()> {
    let is_enabled = !Contents::read()?.is_metaslot_off();
    if is_enabled == enable && keystore.is_none() {
        return Ok(());
    }
    let mut settings = Settings::open()?;
    settings.metaslot(|section| {
        match enable {
            true => drop(section.remove("enabled")),
            false => put(section, "enabled", false),
        }
        let Some(keystore) = keystore else { return };
        let (token, slot) = match keystore {
            Keystore::Named(token, slot) => (*token, *slot),
            Keystore::Default => (None, None),
        };
        for (name, value) in [("token", token), ("slot", slot)] {
            match value {
                Some(value) => put(section, name, value),
                None => drop(section.remove(name)),
            }
        }
    })?;
    settings.save(app.named_module())
}

/// For every provider that has some of the mechanisms, or is kept from them.
fn everywhere(app: &App, mechanisms: &[String], enable: bool) -> Result<()> {
    let All { providers, contents, .. } = All::read(app)?;
    let concerns = |provider: &Provider, mechanism: &str| {
        let disabled = contents.disabled(&provider.name);
        provider.has(mechanism)
            && (!enable || disabled.iter().any(|entry| provider::covers(mechanism, entry)))
    };
    let mut changes = Vec::new();
    for provider in providers {
        let its = mechanisms.iter().filter(|it| concerns(&provider, it)).cloned();
        let its: Vec<String> = its.collect();
        if !its.is_empty() && !contents.is_off(&provider.name) {
            changes.push(Change { provider, mechanisms: its });
        }
    }
    match changes.is_empty() {
        true => Ok(()),
        false => provider::write(app, &changes, enable).map(drop),
    }
}

/// Whether another module's random numbers serve where our own source fails.
fn random(app: &App, provider: &Provider, enable: bool) -> Result<()> {
    let name = &provider.name;
    let mut settings = Settings::open()?;
    match (settings.foreign(name), name == "awslc") {
        (Some(section), _) => crate::settings::serve(section, "random", enable),
        (None, true) if enable => return Ok(()),
        (None, true) => {
            return Err(Failure::failed("the random numbers of awslc are what keys are made of"));
        }
        (None, false) => return Err(Failure::failed(format!("{name} has no random numbers"))),
    }
    settings.save(app.named_module())
}
