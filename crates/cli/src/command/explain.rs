// SPDX-License-Identifier: Apache-2.0
//! `metaslot explain`

use super::mechanisms::names;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::scheme::mechanism_number;
use crate::uri::Uri;
use metaslot_ck::mechanism_name;
use metaslot_client::Candidate;
use serde_json::{Value, json};

/// Arguments of `explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The mechanism, with CKM_ or without, or its number
    #[arg(value_name = "MECHANISM")]
    mechanism: String,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let number = mechanism_number(&args.mechanism)?;
    let name = mechanism_name(number).map_or_else(|| format!("0x{number:x}"), str::to_owned);
    let module = app.host(&Uri::default())?.module();
    let Some(candidates) = module.candidates(number) else {
        return Err(Failure::not_found(format!(
            "no provider serves {name}, or the module does not say"
        ))
        .hint("'metaslot mechanisms' lists those that are served"));
    };
    let mut table = Table::new(&["PROVIDER", "OPERATIONS", "REMARK"], &[]);
    for candidate in &candidates {
        let operations = names(candidate.flags).join(" ");
        table.push(vec![candidate.provider.clone(), operations, candidate.remark.clone()]);
    }
    let json: Vec<Value> = candidates.iter().map(row_json).collect();
    app.output.print(&Report {
        text: table.text(),
        json: json!({"mechanism": name, "candidates": json}),
        uris: candidates.iter().map(|candidate| candidate.provider.clone()).collect(),
    })
}

fn row_json(candidate: &Candidate) -> Value {
    json!({
        "provider": candidate.provider,
        "operations": names(candidate.flags),
        "remark": candidate.remark,
    })
}
