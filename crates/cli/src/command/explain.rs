// SPDX-License-Identifier: Apache-2.0
//! `metaslot explain`

use super::mechanisms::names;
use super::tune::{OPERATIONS, costs_file, shown};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::scheme::mechanism_number;
use crate::uri::Uri;
use metaslot_ck::{CK_FLAGS, CK_MECHANISM_TYPE, mechanism_name};
use metaslot_client::{Candidate, Estimate, Job};
use serde_json::{Value, json};

/// Arguments of `explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The mechanism, with CKM_ or without, or its number
    #[arg(value_name = "MECHANISM")]
    mechanism: String,
    /// What each provider is expected to take for so many bytes, and who would be taken: 64, 8k, 1M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    size: Option<u64>,
    /// Bits of the key, where it is one of a pair
    #[arg(long, value_name = "BITS", requires = "size")]
    key_bits: Option<u32>,
}

/// A number of bytes, perhaps with k or M behind it.
fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number: u64| number.checked_mul(unit));
    bytes.ok_or_else(|| String::from("a size is a number, with k or M behind it or without"))
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let number = mechanism_number(&args.mechanism)?;
    let name = mechanism_name(number).map_or_else(|| format!("0x{number:x}"), str::to_owned);
    let module = app.host(&Uri::default())?.module();
    let Some(candidates) = module.candidates(number) else {
        // Where the configuration cannot be used, that is the reason.
        module.slots(false)?;
        return Err(Failure::not_found(format!(
            "no provider serves {name}, or the module does not say"
        ))
        .hint("'metaslot mechanisms' lists those that are served"));
    };
    if let Some(size) = args.size {
        return expected(app, number, &candidates, size, args.key_bits.unwrap_or(0));
    }
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

/// What the module expects of each operation for so many bytes.
fn expected(
    app: &App,
    mechanism: CK_MECHANISM_TYPE,
    candidates: &[Candidate],
    bytes: u64,
    key_bits: u32,
) -> Result<()> {
    let module = app.host(&Uri::default())?.module();
    let flags = candidates.iter().fold(0, |flags, candidate| flags | candidate.flags);
    let mut table = Table::new(&["OPERATION", "PROVIDER", "EXPECTED", "", "REMARK"], &[2]);
    let (mut json, mut measured) = (Vec::new(), false);
    for operation in OPERATIONS.into_iter().filter(|operation| flags & operation != 0) {
        let key_bits = key_bits.into();
        let job = Job { mechanism, operation, key_bits, bytes, microseconds: 0 };
        let Some(all) = module.estimates(job) else {
            return Err(Failure::not_found("the module does not say what its providers take"));
        };
        for one in &all {
            measured |= one.nanoseconds.is_some();
            let time = one.nanoseconds.map_or_else(String::new, shown);
            let mark = if one.chosen { "taken" } else { "" }.to_owned();
            let name = names(operation).join(" ");
            let remark = remark(one, &all, candidates);
            table.push(vec![name, one.provider.clone(), time, mark, remark]);
            json.push(estimate_json(operation, one));
        }
    }
    if json.is_empty() {
        return Err(Failure::not_found("no provider is chosen by size for this mechanism")
            .hint("without --size it says who serves it"));
    }
    app.output.print(&Report {
        text: table.text(),
        json: json!({"mechanism": mechanism_name(mechanism), "bytes": bytes, "estimates": json}),
        uris: Vec::new(),
    })?;
    if !measured {
        app.output
            .note("nothing was measured here, so the first one is taken: see 'metaslot tune'");
    } else if !costs_file().is_ok_and(|file| file.exists()) {
        app.output.note("measured elsewhere, on such a processor: see 'metaslot tune'");
    }
    Ok(())
}

/// Why it is not taken, or what it did.
fn remark(one: &Estimate, all: &[Estimate], candidates: &[Candidate]) -> String {
    let mut remarks: Vec<String> = Vec::new();
    let taken = all.iter().find(|other| other.chosen).and_then(|taken| taken.nanoseconds);
    match (one.nanoseconds, taken) {
        _ if one.chosen || one.out => {}
        (None, Some(_)) => remarks.push(String::from("not measured here")),
        (Some(time), Some(taken)) if time <= taken => {
            remarks.push(String::from("not clearly less than the first one"));
        }
        _ => {}
    }
    if one.out {
        remarks.push(String::from("it fails, and is left alone for a while"));
    }
    if one.failures > 0 {
        remarks.push(format!("it failed {} times at what another one did", one.failures));
    }
    let said = candidates.iter().find(|candidate| candidate.provider == one.provider);
    remarks.extend(said.map(|said| said.remark.clone()).filter(|remark| !remark.is_empty()));
    remarks.join("; ")
}

fn estimate_json(operation: CK_FLAGS, one: &Estimate) -> Value {
    json!({
        "operation": names(operation).join(" "),
        "provider": one.provider,
        "nanoseconds": one.nanoseconds,
        "taken": one.chosen,
        "failures": one.failures,
        "out": one.out,
    })
}

fn row_json(candidate: &Candidate) -> Value {
    json!({
        "provider": candidate.provider,
        "operations": names(candidate.flags),
        "remark": candidate.remark,
    })
}
