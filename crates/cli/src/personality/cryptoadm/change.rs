// SPDX-License-Identifier: Apache-2.0
//! `cryptoadm enable` and `cryptoadm disable`

use super::arguments::Args;
use super::providers::{All, mechanisms};
use crate::app::App;
use crate::command::provider::{self, Change, Provider};
use crate::failure::{Failure, Result};
use crate::personality::operands::Operands;
use crate::settings::Settings;

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
    if operands.has("metaslot") {
        return match what {
            Some("random") => Err(Failure::failed("the metaslot has the random numbers of awslc")),
            None if enable => Ok(()),
            Some("mechanism") if !mechanisms.is_empty() => everywhere(app, &mechanisms, enable),
            _ => Err(Failure::failed("the metaslot is the module itself, and is not disabled")
                .hint("a program that does not load it does not use it")),
        };
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
