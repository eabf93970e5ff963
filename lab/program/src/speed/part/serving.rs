// SPDX-License-Identifier: Apache-2.0
//! The process itself: it does what its standard input says.

use super::request::{Listed, Request};
use super::team::{Maker, Team};
use super::{raw, token};
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Who a process is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Part {
    /// The raw library.
    Raw,
    /// A module, with a token made for it.
    Module(PathBuf),
}

impl Part {
    /// The module's file.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Raw => None,
            Self::Module(path) => Some(path),
        }
    }

    /// Does what the standard input says, until it ends. A failure is an answer as well.
    ///
    /// # Errors
    /// The reader of its answers is gone.
    pub(crate) fn play(&self) -> Result<()> {
        let mut serving = match self.serving() {
            Ok(serving) => serving,
            Err(failure) => return answer(&json!({ "error": failure.message })),
        };
        answer(&json!(serving.name))?;
        for line in std::io::stdin().lock().lines() {
            let request: Request = serde_json::from_str(&line?)?;
            let result = serving.answer(request);
            answer(&result.unwrap_or_else(|failure| json!({ "error": failure.message })))?;
        }
        Ok(())
    }

    pub(super) fn serving(&self) -> Result<Serving> {
        Ok(match self {
            Self::Raw => Serving {
                name: "AWS-LC, called directly".to_owned(),
                maker: Arc::new(raw::Raw::default()),
                listed: Vec::new(),
                teams: HashMap::new(),
            },
            Self::Module(path) => {
                let tokens = token::Tokens::new(path)?;
                let (module, slot) = (&tokens.token.module, tokens.token.slot);
                let info = module.info()?;
                let (major, minor) = info.library_version;
                let name = format!("{}, {} {major}.{minor}", info.manufacturer, info.description);
                let mut listed = Vec::new();
                for mechanism in module.mechanisms(slot)? {
                    let flags = module.mechanism_info(slot, mechanism)?.flags;
                    listed.push(Listed { mechanism, flags });
                }
                Serving { name, listed, maker: Arc::new(tokens), teams: HashMap::new() }
            }
        })
    }
}

/// A process at work.
pub(super) struct Serving {
    pub(super) name: String,
    pub(super) maker: Arc<dyn Maker>,
    pub(super) listed: Vec<Listed>,
    pub(super) teams: HashMap<String, Team>,
}

impl Serving {
    pub(super) fn answer(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Prepare { name, work, threads } => {
                let results = work.iter().map(|(job, _)| self.maker.result(job));
                let results = results.collect::<Result<Vec<_>>>()?;
                self.teams.insert(name, Team::new(&self.maker, &work, threads)?);
                Ok(json!(results.into_iter().flatten().reduce(|all, next| [all, next].concat())))
            }
            Request::Run { name, seconds } => {
                let team = self.teams.get(&name);
                let team = team.ok_or_else(|| Failure::new(format!("{name} was not prepared")))?;
                Ok(serde_json::to_value(team.run(Duration::from_secs_f64(seconds))?)?)
            }
            Request::Mechanisms => Ok(serde_json::to_value(&self.listed)?),
        }
    }
}

pub(super) fn answer(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}
