// SPDX-License-Identifier: Apache-2.0
//! `metaslot mechanisms`

use super::arguments::token_uri;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::uri::Uri;
use metaslot_ck::*;
use metaslot_client::{MechanismInfo, Module};
use serde_json::{Value, json};

/// Arguments of `mechanisms`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The slot, by its number
    #[arg(long, value_name = "N", conflicts_with = "token")]
    slot: Option<u64>,
    /// The token: its label or a PKCS#11 URI [default: the first slot, with a token or without]
    #[arg(long, value_name = "LABEL|URI")]
    token: Option<String>,
    /// Only mechanisms whose name has this in it
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// `CKF_…` of mechanisms, as the table and the JSON call them.
const FLAGS: &[(CK_FLAGS, &str)] = &[
    (CKF_HW, "hw"),
    (CKF_ENCRYPT, "encrypt"),
    (CKF_DECRYPT, "decrypt"),
    (CKF_DIGEST, "digest"),
    (CKF_SIGN, "sign"),
    (CKF_VERIFY, "verify"),
    (CKF_SIGN_RECOVER, "sign-recover"),
    (CKF_VERIFY_RECOVER, "verify-recover"),
    (CKF_GENERATE, "generate"),
    (CKF_GENERATE_KEY_PAIR, "generate-pair"),
    (CKF_WRAP, "wrap"),
    (CKF_UNWRAP, "unwrap"),
    (CKF_DERIVE, "derive"),
    (CKF_ENCAPSULATE, "encapsulate"),
    (CKF_DECAPSULATE, "decapsulate"),
    (CKF_MESSAGE_ENCRYPT, "message-encrypt"),
    (CKF_MESSAGE_DECRYPT, "message-decrypt"),
    (CKF_MESSAGE_SIGN, "message-sign"),
    (CKF_MESSAGE_VERIFY, "message-verify"),
    (CKF_MULTI_MESSAGE, "multi-message"),
];

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.token.as_deref().map(token_uri).transpose()?.unwrap_or_default();
    let module = app.host(&uri)?.module();
    let slot = match args.slot {
        Some(slot) => SlotId(slot),
        None => any_slot(app, &uri)?,
    };
    let wanted = args.name.as_ref().map(|name| name.to_ascii_uppercase().replace('-', "_"));
    let mut rows = Vec::new();
    for number in module.mechanisms(slot)? {
        let name = mechanism_name(number).map_or_else(|| format!("0x{number:x}"), str::to_owned);
        if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
            rows.push((name, info(module, slot, number)?));
        }
    }
    if let Some(name) = args.name.as_ref().filter(|_| rows.is_empty()) {
        return Err(Failure::not_found(format!("no mechanism matches {name}"))
            .hint("'metaslot mechanisms' lists those that there are"));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let mut table = Table::new(&["MECHANISM", "MIN", "MAX", "FLAGS"], &[1, 2]);
    for (name, info) in &rows {
        let size =
            |size: u64| if info.max_key_size == 0 { String::new() } else { size.to_string() };
        let (min, max) = (size(info.min_key_size), size(info.max_key_size));
        table.push(vec![name.clone(), min, max, names(info.flags).join(" ")]);
    }
    let json: Vec<Value> = rows.iter().map(|(name, info)| row_json(name, info)).collect();
    app.output.print(&Report {
        text: table.text(),
        json: json!({"slot": slot.0, "mechanisms": json}),
        uris: rows.iter().map(|row| row.0.clone()).collect(),
    })?;
    if rows.is_empty() {
        app.output.note("no mechanism matches");
    }
    Ok(())
}

/// The named token's slot; without a name the first slot, for what does not depend on the token's being initialised.
pub(super) fn any_slot(app: &App, uri: &Uri) -> Result<SlotId> {
    let mut tokens = app.host(uri)?.matching(uri)?.into_iter();
    tokens.next().map(|token| token.slot).ok_or_else(|| {
        Failure::not_found("no slot matches").hint("'metaslot token list' shows slots and tokens")
    })
}

fn info(module: &Module, slot: SlotId, number: CK_MECHANISM_TYPE) -> Result<MechanismInfo> {
    match module.mechanism_info(slot, number) {
        // A module whose list is longer than what it can explain.
        Err(error) if error.code == Error::MECHANISM_INVALID => {
            Ok(MechanismInfo { min_key_size: 0, max_key_size: 0, flags: 0 })
        }
        other => Ok(other?),
    }
}

pub(super) fn names(flags: CK_FLAGS) -> Vec<&'static str> {
    FLAGS.iter().filter(|row| flags & row.0 != 0).map(|row| row.1).collect()
}

fn row_json(name: &str, info: &MechanismInfo) -> Value {
    json!({
        "name": name,
        "min_key_size": info.min_key_size,
        "max_key_size": info.max_key_size,
        "flags": names(info.flags),
    })
}
