// SPDX-License-Identifier: Apache-2.0
//! `cryptoadm list`

use super::arguments::Args;
use super::providers::All;
use super::shown::{self, Row};
use crate::app::App;
use crate::command::provider::{self, Provider, called};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::output;
use crate::personality::operands::Operands;
use crate::uri::Uri;
use metaslot_ck::SlotId;
use metaslot_client::Module;
use std::slice;

/// What is to be listed of each provider.
struct View<'a> {
    all: &'a All,
    module: &'a Module,
    /// The metaslot: the first slot.
    slot: SlotId,
    mechanisms: bool,
    verbose: bool,
    policy: bool,
    /// These mechanisms only; none for every one.
    wanted: Vec<String>,
}

pub(super) fn run(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    operands.only(&["provider", "metaslot"])?;
    let named = operands.value("mechanism");
    if args.policy && named.is_some() {
        return Err(Failure::usage("-p and mechanism= exclude each other"));
    }
    let mechanisms = args.mechanisms || named.is_some();
    if operands.has("provider") && !mechanisms && !args.verbose && !args.policy {
        return Err(Failure::usage("-m, -p or -v says what of the provider to list"));
    }
    let all = All::read(app)?;
    let module = app.host(&Uri::default())?.module();
    let slot = module.slots(false)?.into_iter().next();
    let slot = slot.ok_or_else(|| Failure::failed("the module has no slot"))?;
    let wanted = super::providers::mechanisms(named)?;
    let (policy, verbose) = (args.policy, args.verbose);
    let view = View { all: &all, module, slot, mechanisms, verbose, policy, wanted };
    if operands.has("metaslot") {
        return output::write_out(view.metaslot()?.as_bytes());
    }
    let (text, listed) = match operands.value("provider") {
        Some(name) => {
            let one = all.named(name)?;
            (view.one(one)?, slice::from_ref(one))
        }
        None => (view.every()?, &*all.providers),
    };
    output::write_out(text.as_bytes())?;
    if mechanisms { view.missing(listed) } else { Ok(()) }
}

impl View<'_> {
    /// Under the original's three headings; none of our providers is in the kernel.
    fn every(&self) -> Result<String> {
        let below = |heading: &str| match self.mechanisms || self.policy {
            true => format!("\n{heading}:\n{}\n", "=".repeat(heading.len() + 1)),
            false => format!("\n{heading}:\n"),
        };
        let mut text = below("User-level providers");
        for provider in &self.all.providers {
            let name = self.all.shown(&provider.name);
            text += &match (self.policy, self.mechanisms) {
                (true, _) => self.policy(provider),
                (_, true) => format!("\nProvider: {name}\n{}", self.mechanisms(provider)?),
                _ if self.verbose => format!("Provider: {name}\n{}\n", self.slots(provider)?),
                _ => format!("Provider: {name}\n"),
            };
        }
        Ok(text + &below("Kernel software providers") + &below("Kernel hardware providers"))
    }

    fn one(&self, provider: &Provider) -> Result<String> {
        if self.policy {
            return Ok(self.policy(provider));
        }
        let name = self.all.shown(&provider.name);
        let heading = if self.verbose { format!("Provider: {name}\n") } else { String::new() };
        match self.mechanisms {
            true => Ok(heading + &self.mechanisms(provider)?),
            false => Ok(heading + &self.slots(provider)?),
        }
    }

    /// What a provider may not do, in the original's words.
    fn policy(&self, provider: &Provider) -> String {
        let (name, contents) = (&provider.name, &self.all.contents);
        let except = match contents.is_off(name) {
            true => "disabled".to_owned(),
            false => enabled_except(&contents.disabled(name)),
        };
        let serves = self.all.foreign.iter().find(|foreign| foreign.name == *name);
        let random = match serves.map(|foreign| foreign.serves.iter().any(|it| it == "random")) {
            Some(true) if !contents.is_off(name) => " random is enabled.",
            Some(_) => " random is disabled.",
            None if name == "awslc" => " random is enabled.",
            None => "",
        };
        format!("{}: all mechanisms are {except}.{random}\n", self.all.shown(name))
    }

    fn mechanisms(&self, provider: &Provider) -> Result<String> {
        if provider.served() == 0 {
            let is_off = self.all.contents.is_off(&provider.name);
            let why = if is_off { "disabled" } else { "failed to retrieve the mechanism list" };
            return Ok(format!("{}: {why}.\n", self.all.shown(&provider.name)));
        }
        let served = provider.rows.iter().filter(|row| row.1.flags != 0);
        let rows = served.map(|(number, candidate)| {
            let mut row = Row::read(self.module, self.slot, *number);
            row.flags = candidate.flags | row.flags & shown::CURVES;
            row
        });
        self.table(rows.collect())
    }

    fn table(&self, mut rows: Vec<Row>) -> Result<String> {
        let is_wanted = |row: &Row| {
            self.wanted.is_empty() || self.wanted.iter().any(|it| provider::covers(it, &row.name))
        };
        rows.retain(is_wanted);
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        // Each token of another module says for itself what it does.
        rows.dedup_by(|row, first| {
            let is_same = row.name == first.name;
            first.flags |= if is_same { row.flags } else { 0 };
            is_same
        });
        Ok(shown::mechanisms(&rows, self.verbose))
    }

    /// The slots of another module; ours have none of their own.
    fn slots(&self, provider: &Provider) -> Result<String> {
        let mut slots = Vec::new();
        for slot in self.module.slots(false)? {
            let info = self.module.slot_info(slot)?;
            let name = info.description.split_once(": ").map_or(&*info.description, |it| it.0);
            if name == provider.name && self.all.foreign.iter().any(|it| it.name == name) {
                slots.push((slot, info));
            }
        }
        if slots.is_empty() {
            return Ok(format!("{}: no slots presented.\n", self.all.shown(&provider.name)));
        }
        Ok(shown::slots(self.module, &slots))
    }

    fn metaslot(&self) -> Result<String> {
        if self.policy {
            let disabled = self.disabled_everywhere();
            return Ok(format!("metaslot: all mechanisms are {}.\n", enabled_except(&disabled)));
        }
        let info = self.module.slot_info(self.slot)?;
        let token = self.module.token_info(self.slot);
        let label = token.as_ref().map_or(String::new(), |token| printable(&token.label));
        let status = if self.all.contents.is_metaslot_off() { "disabled" } else { "enabled" };
        let mut text = format!(
            "System-wide Meta Slot Configuration:\n\
             ------------------------------------\n\
             Status: {status}\n\
             Sensitive Token Object Automatic Migrate: disabled\n\
             Persistent object store slot: {}\n\
             Persistent object store token: {label}\n",
            printable(&info.description)
        );
        if self.verbose {
            text += "\nDetailed Meta Slot Information:\n-------------------------------\n";
            text += &shown::metaslot(&info, &token?);
        }
        if self.mechanisms {
            let read = |number| Row::read(self.module, self.slot, number);
            let rows = self.module.mechanisms(self.slot)?.into_iter().map(read);
            text += &self.table(rows.collect())?;
        }
        Ok(text)
    }

    /// What no provider may do that has it.
    fn disabled_everywhere(&self) -> Vec<String> {
        let kept = |provider: &Provider, name: &str| {
            let contents = &self.all.contents;
            contents.is_off(&provider.name)
                || contents.disabled(&provider.name).iter().any(|it| provider::covers(it, name))
        };
        let rows = self.all.providers.iter().flat_map(|provider| &provider.rows);
        let mut names: Vec<String> = rows.map(|(number, _)| called(*number)).collect();
        names.sort();
        names.dedup();
        let may = |provider: &Provider, name: &str| provider.has(name) && !kept(provider, name);
        names.retain(|name| !self.all.providers.iter().any(|provider| may(provider, name)));
        names
    }

    /// A failure where one of these should have mechanisms and does not.
    fn missing(&self, listed: &[Provider]) -> Result<()> {
        let is_off = |provider: &Provider| self.all.contents.is_off(&provider.name);
        match listed.iter().find(|provider| provider.served() == 0 && !is_off(provider)) {
            None => Ok(()),
            Some(provider) => {
                let why = provider.rows.first().map_or("no mechanisms", |row| &row.1.remark);
                Err(Failure::failed(format!("{}: {why}", provider.name)))
            }
        }
    }
}

fn enabled_except(disabled: &[String]) -> String {
    match disabled {
        [] => "enabled".to_owned(),
        some => format!("enabled, except {}", some.join(",")),
    }
}
