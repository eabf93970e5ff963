// SPDX-License-Identifier: Apache-2.0
//! `metaslot provider test`

use super::mechanisms::names;
use super::tune::{Work, works};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::uri::Uri;
use metaslot_ck::mechanism_name;
use serde_json::{Value, json};
use std::time::Duration;

/// A provider, and where it does not agree.
#[derive(Debug, Default)]
struct Tested {
    name: String,
    jobs: u64,
    differs: Vec<Work>,
}

/// `providers`: their names, in the order in which they are asked.
pub(crate) fn run(app: &App, providers: Vec<String>, name: Option<&str>) -> Result<()> {
    let module = app.host(&Uri::default())?.module();
    let works = works(app, module, name)?;
    let new = |name| Tested { name, ..Tested::default() };
    let mut all: Vec<Tested> = providers.into_iter().map(new).collect();
    for (done, work) in works.iter().enumerate() {
        app.output.progress(done as u64, works.len() as u64, &called(work));
        // The shortest time: they are to do it once.
        let job = work.job(work.sizes()[0], Duration::from_micros(1));
        let mut last = "";
        for one in &module.estimates(job).unwrap_or_default() {
            let Some(tested) = all.iter_mut().find(|known| known.name == one.provider) else {
                continue;
            };
            // A provider has several rows where it has several kernels.
            tested.jobs += u64::from(last != one.provider);
            last = &one.provider;
            if one.differs {
                tested.differs.push(*work);
            }
        }
    }
    app.output.progress(1, 1, "");
    all.retain(|one| one.jobs > 0);
    if all.is_empty() {
        return Err(Failure::failed("nothing could be tested")
            .hint("only Metaslot tests its providers, and not every mechanism"));
    }
    app.output.print(&report(&all))?;
    match all.iter().map(|one| one.differs.len()).sum() {
        0 => Ok(()),
        differ => Err(Failure::failed(format!("{differ} results are not those of the others"))
            .hint("'metaslot provider disable' keeps a provider from a mechanism")),
    }
}

fn called(work: &Work) -> String {
    mechanism_name(work.mechanism).unwrap_or("?").to_owned()
}

fn report(all: &[Tested]) -> Report {
    let mut table = Table::new(&["PROVIDER", "TESTED", "DIFFERS"], &[1, 2]);
    let mut wrong = Table::new(&["PROVIDER", "MECHANISM", "OPERATION", "BITS"], &[3]);
    for one in all {
        table.push(vec![one.name.clone(), one.jobs.to_string(), one.differs.len().to_string()]);
        for work in &one.differs {
            let bits = if work.key_bits == 0 { String::new() } else { work.key_bits.to_string() };
            let operation = names(work.operation).join(" ");
            wrong.push(vec![one.name.clone(), called(work), operation, bits]);
        }
    }
    let is_well = all.iter().all(|one| one.differs.is_empty());
    let rest = if is_well { String::new() } else { format!("\n{}", wrong.text()) };
    let differs = |work: &Work| {
        let operation = names(work.operation).join(" ");
        json!({"mechanism": called(work), "operation": operation, "key_bits": work.key_bits})
    };
    let json = all.iter().map(|one| {
        let differs: Vec<Value> = one.differs.iter().map(differs).collect();
        json!({"name": one.name, "tested": one.jobs, "differs": differs})
    });
    Report {
        text: format!("{}{rest}", table.text()),
        json: json!({"providers": json.collect::<Vec<Value>>()}),
        uris: all.iter().map(|one| one.name.clone()).collect(),
    }
}
