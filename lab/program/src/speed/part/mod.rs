// SPDX-License-Identifier: Apache-2.0
//! A process for each way to do the same job: the raw library, this module with lanes and without, a
//! rival. A module reads its configuration once in a process, so each way has one of its own, and its
//! CPU time is its own as well.

mod crew;
mod job;
mod raw;
mod team;
mod token;

pub(crate) use crew::{ARM, BY, Crew, LANES, MODULE, RAW, RIVAL};
pub(crate) use job::{Curve, Function, Job, Key, Parameter};

use crate::lanes::Child;
use crate::place::Store;
use crate::role::Role;
use crate::{Failure, Result};
use metaslot_ck::{CK_FLAGS, CK_MECHANISM_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use team::{Maker, Team};

/// Who a process is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Part {
    /// The raw library.
    Raw,
    /// A module, with a token made for it.
    Module(PathBuf),
}

/// What a process is asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
enum Request {
    /// Makes ready for a job under a name.
    Prepare { name: String, job: Job, threads: usize },
    /// Does it for so many seconds.
    Run { name: String, seconds: f64 },
    /// Lists what the token can do.
    Mechanisms,
}

/// What a stretch of work took, all threads together; the wall time is that of the longest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Done {
    pub(crate) operations: f64,
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
}

/// A mechanism of a token: its number, and what it is for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Listed {
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) flags: CK_FLAGS,
}

/// A process that does jobs.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    /// What it says of itself.
    pub(crate) name: String,
}

impl Worker {
    /// Starts it, with the configuration of a store.
    ///
    /// # Errors
    /// It cannot be started, or the module makes no token.
    pub(crate) fn start(part: Part, store: &Store) -> Result<Self> {
        let mut child = Child::start(store.command(&Role::Speed(part))?)?;
        let name = child.answer()?;
        Ok(Self { child, name })
    }

    /// Makes ready for a job, on so many threads. What it gives, where everybody must get the same.
    ///
    /// # Errors
    /// What the module answers.
    pub(crate) fn prepare(
        &mut self,
        name: &str,
        job: Job,
        threads: usize,
    ) -> Result<Option<Vec<u8>>> {
        self.ask(&Request::Prepare { name: name.to_owned(), job, threads })
    }

    /// Does a job for so long.
    ///
    /// # Errors
    /// A call failed, or a result is wrong.
    pub(crate) fn run(&mut self, name: &str, length: Duration) -> Result<Done> {
        self.ask(&Request::Run { name: name.to_owned(), seconds: length.as_secs_f64() })
    }

    /// What the token can do.
    ///
    /// # Errors
    /// What the module answers.
    pub(crate) fn mechanisms(&mut self) -> Result<Vec<Listed>> {
        self.ask(&Request::Mechanisms)
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let line = serde_json::to_string(request)?;
        self.child.ask(line)
    }
}

impl Part {
    /// Does what the standard input says, until it ends. A failure is an answer as well.
    ///
    /// # Errors
    /// Nobody listens.
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

    fn serving(&self) -> Result<Serving> {
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
struct Serving {
    name: String,
    maker: Arc<dyn Maker>,
    listed: Vec<Listed>,
    teams: HashMap<String, Team>,
}

impl Serving {
    fn answer(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Prepare { name, job, threads } => {
                let result = self.maker.result(&job)?;
                self.teams.insert(name, Team::new(&self.maker, &job, threads)?);
                Ok(json!(result))
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

fn answer(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}
