// SPDX-License-Identifier: Apache-2.0
//! What the operands of `cryptoadm` name: providers and mechanisms.

use crate::app::App;
use crate::command::provider::{self, Provider, configured};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::settings::{Contents, Foreign};

/// A list with commas, as the configuration calls them; empty for `all` and for nothing.
pub(super) fn mechanisms(list: Option<&str>) -> Result<Vec<String>> {
    match list {
        None | Some("all") => Ok(Vec::new()),
        Some(list) => list.split(',').map(configured).collect(),
    }
}

/// The providers, and what the configuration says of them.
#[derive(Debug)]
pub(super) struct All {
    pub(super) providers: Vec<Provider>,
    pub(super) contents: Contents,
    pub(super) foreign: Vec<Foreign>,
}

impl All {
    pub(super) fn read(app: &App) -> Result<Self> {
        let contents = Contents::read()?;
        let foreign = contents.foreign();
        Ok(Self { providers: provider::providers(app)?, contents, foreign })
    }

    /// The same, for a terminal.
    pub(super) fn shown(&self, name: &str) -> String {
        printable(self.called(name))
    }

    /// As the original calls a provider: another module by its file.
    fn called<'a>(&'a self, name: &'a str) -> &'a str {
        let foreign = self.foreign.iter().find(|foreign| foreign.name == name);
        foreign.map_or(name, |foreign| &foreign.module)
    }

    /// The provider of this name, or with this file.
    pub(super) fn named(&self, text: &str) -> Result<&Provider> {
        self.position(text).map(|at| &self.providers[at])
    }

    pub(super) fn take(mut self, text: &str) -> Result<Provider> {
        self.position(text).map(|at| self.providers.swap_remove(at))
    }

    fn position(&self, text: &str) -> Result<usize> {
        let names = || self.providers.iter().map(|it| (&*it.name, self.called(&it.name)));
        let at = names().position(|(name, called)| name == text || called == text);
        at.ok_or_else(|| {
            let known: Vec<_> = names().map(|(_, called)| called).collect();
            Failure::failed(format!("{text} does not exist"))
                .hint(format!("there are {}", known.join(", ")))
        })
    }
}
