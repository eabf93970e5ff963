// SPDX-License-Identifier: Apache-2.0
//! `metaslot token list`

use crate::app::App;
use crate::command::arguments::token_uri;
use crate::failure::Result;
use crate::host::Token;
use crate::output::{Report, Table};
use metaslot_ck::*;
use serde_json::{Value, json};

/// Arguments of `token list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which tokens: a label or a PKCS#11 URI [default: all]
    #[arg(long, value_name = "LABEL|URI")]
    token: Option<String>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.token.as_deref().map(token_uri).transpose()?.unwrap_or_default();
    let tokens = app.host(&uri)?.matching(&uri)?;
    let mut table = Table::new(&["SLOT", "TOKEN", "SERIAL", "STATE", "URI"], &[0]);
    for token in &tokens {
        let info = &token.info;
        let initialised = token.has(CKF_TOKEN_INITIALIZED);
        let shown = |text: &str| if initialised { text.to_owned() } else { "-".to_owned() };
        table.push(vec![
            token.slot.to_string(),
            shown(&info.label),
            shown(&info.serial),
            states(token).join(", "),
            token.uri().to_string(),
        ]);
    }
    app.output.print(&Report {
        text: table.text(),
        json: json!({"tokens": tokens.iter().map(json).collect::<Vec<Value>>()}),
        uris: tokens.iter().map(|token| token.uri().to_string()).collect(),
    })?;
    if tokens.is_empty() {
        app.output.note("no tokens");
    } else if tokens.iter().all(|token| !token.has(CKF_TOKEN_INITIALIZED)) {
        app.output.note("hint: make a token: metaslot token init --label NAME");
    }
    Ok(())
}

/// What a person should know: the first row that is true decides about each PIN.
fn states(token: &Token) -> Vec<&'static str> {
    if !token.has(CKF_TOKEN_INITIALIZED) {
        return vec!["not initialised"];
    }
    let rows = [
        (CKF_WRITE_PROTECTED, "read-only"),
        (CKF_USER_PIN_LOCKED, "user PIN locked"),
        (CKF_USER_PIN_FINAL_TRY, "user PIN: one try left"),
        (CKF_USER_PIN_COUNT_LOW, "wrong user PINs"),
        (CKF_SO_PIN_LOCKED, "SO PIN locked"),
        (CKF_SO_PIN_FINAL_TRY, "SO PIN: one try left"),
        (CKF_SO_PIN_COUNT_LOW, "wrong SO PINs"),
    ];
    let mut states: Vec<&str> =
        rows.iter().filter(|row| token.has(row.0)).map(|row| row.1).collect();
    if !token.has(CKF_USER_PIN_INITIALIZED) {
        states.push("no user PIN");
    }
    if states.is_empty() {
        states.push("ready");
    }
    states
}

/// One PIN in one word.
fn pin_state(token: &Token, locked: CK_FLAGS, last: CK_FLAGS, low: CK_FLAGS) -> &'static str {
    match (token.has(locked), token.has(last), token.has(low)) {
        (true, _, _) => "locked",
        (_, true, _) => "last-try",
        (_, _, true) => "wrong-before",
        _ => "ok",
    }
}

/// The stable form for programs.
pub(super) fn json(token: &Token) -> Value {
    let info = &token.info;
    let user =
        pin_state(token, CKF_USER_PIN_LOCKED, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_COUNT_LOW);
    let so = pin_state(token, CKF_SO_PIN_LOCKED, CKF_SO_PIN_FINAL_TRY, CKF_SO_PIN_COUNT_LOW);
    json!({
        "uri": token.uri().to_string(),
        "slot": token.slot.0,
        "label": info.label,
        "serial": info.serial,
        "manufacturer": info.manufacturer,
        "model": info.model,
        "initialized": token.has(CKF_TOKEN_INITIALIZED),
        "writable": !token.has(CKF_WRITE_PROTECTED),
        "login_required": token.has(CKF_LOGIN_REQUIRED),
        "user_pin": if token.has(CKF_USER_PIN_INITIALIZED) { user } else { "unset" },
        "so_pin": if token.has(CKF_TOKEN_INITIALIZED) { so } else { "unset" },
    })
}
