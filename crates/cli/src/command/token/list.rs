// SPDX-License-Identifier: Apache-2.0
//! `metaslot token list`

use crate::app::App;
use crate::command::arguments::token_uri;
use crate::failure::Result;
use crate::host::Token;
use crate::output::{Report, Table};
use crate::pin::cost::LONG_ENOUGH;
use crate::pin::{self, Role};
use metaslot_ck::*;
use serde_json::{Value, json};

/// Arguments of `token list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which tokens: a label or a PKCS#11 URI [default: all]
    #[arg(value_name = "LABEL|URI", conflicts_with = "token")]
    named: Option<String>,
    /// The same
    #[arg(long, value_name = "LABEL|URI")]
    token: Option<String>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let token = args.named.as_deref().or(args.token.as_deref());
    let uri = token.map(token_uri).transpose()?.unwrap_or_default();
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
            states(token).into_iter().chain(fast_login(token)).collect::<Vec<_>>().join(", "),
            token.uri().to_string(),
        ]);
    }
    app.output.print(&Report {
        text: table.text(),
        json: json!({"tokens": tokens.iter().map(json).collect::<Vec<Value>>()}),
        uris: tokens.iter().map(|token| token.uri().to_string()).collect(),
    })?;
    for token in &tokens {
        if let Some(problem) = &token.problem {
            app.output.note(&format!("slot {}: {problem}", token.slot));
        }
    }
    for token in tokens.iter().filter(|token| fast_login(token).is_some()) {
        if let Some(fast) = token.fast_login.as_ref().filter(|fast| !fast.possible) {
            let reason = &fast.text;
            app.output.note(&format!("slot {}: fast_login has no effect: {reason}", token.slot));
        } else if takes_short_pins(token) {
            app.output.note(&format!(
                "slot {}: fast login is for a PIN of {LONG_ENOUGH} bytes or more",
                token.slot
            ));
        }
    }
    if tokens.is_empty() {
        app.output.note(if token.is_some() { "no tokens match" } else { "no tokens" });
    } else if tokens
        .iter()
        .all(|token| !token.has(CKF_TOKEN_INITIALIZED) && token.problem.is_none())
    {
        app.output.note("hint: make a token: metaslot token init --label NAME");
    }
    Ok(())
}

/// Whether fast logins are on, where they are configured; why not is said below the table.
fn fast_login(token: &Token) -> Option<String> {
    let fast = token.fast_login.as_ref().filter(|_| token.has(CKF_TOKEN_INITIALIZED))?;
    Some(if fast.possible { "fast login" } else { "no fast login" }.to_owned())
}

/// Whether its PIN may be one that fast logins are not for: nothing says how long it is.
pub(super) fn takes_short_pins(token: &Token) -> bool {
    token.info.pin_lengths.0 < LONG_ENOUGH
}

/// What a person should know.
pub(crate) fn states(token: &Token) -> Vec<String> {
    if token.problem.is_some() {
        return vec!["unreadable".to_owned()];
    }
    if !token.has(CKF_TOKEN_INITIALIZED) {
        return vec!["not initialised".to_owned()];
    }
    let mut states = Vec::new();
    if token.has(CKF_WRITE_PROTECTED) {
        states.push("read-only".to_owned());
    }
    if token.has(CKF_LOGIN_REQUIRED) && !token.has(CKF_USER_PIN_INITIALIZED) {
        states.push("no user PIN".to_owned());
    }
    for role in [Role::User, Role::So] {
        let left = token.status.map(|status| role.of(&status).left);
        match (pin_state(token, role), left) {
            ("ok", _) => {}
            ("locked", _) => states.push(format!("{} locked", role.words())),
            (_, Some(1)) | ("last-try", _) => {
                states.push(format!("{}: one try left", role.words()))
            }
            (_, Some(left)) => states.push(format!("{}: {left} tries left", role.words())),
            (_, None) => states.push(format!("{}: wrong before", role.words())),
        }
    }
    if states.is_empty() {
        states.push("ready".to_owned());
    }
    states
}

/// One PIN in one word.
const fn pin_state(token: &Token, role: Role) -> &'static str {
    let (locked, last, low) = match role {
        Role::User => (CKF_USER_PIN_LOCKED, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_COUNT_LOW),
        Role::So => (CKF_SO_PIN_LOCKED, CKF_SO_PIN_FINAL_TRY, CKF_SO_PIN_COUNT_LOW),
    };
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
    let initialised = token.has(CKF_TOKEN_INITIALIZED);
    let left =
        |role: Role| token.status.filter(|_| initialised).map(|status| role.of(&status).left);
    let cost = |role: Role| token.cost.map(|cost| pin::cost::json(role.cost(&cost)));
    let fast_login = token.fast_login.as_ref().map(|fast| {
        let (place, problem) = match fast.possible {
            true => (Some(&fast.text), None),
            false => (None, Some(&fast.text)),
        };
        json!({"seconds": fast.seconds, "place": place, "problem": problem})
    });
    let state = |role, set| if set { pin_state(token, role) } else { "unset" };
    json!({
        "uri": token.uri().to_string(),
        "slot": token.slot.0,
        "label": info.label,
        "serial": info.serial,
        "manufacturer": info.manufacturer,
        "model": info.model,
        "problem": token.problem,
        "initialized": initialised,
        "writable": !token.has(CKF_WRITE_PROTECTED),
        "login_required": token.has(CKF_LOGIN_REQUIRED),
        "user_pin": state(Role::User, token.has(CKF_USER_PIN_INITIALIZED)),
        "user_tries_left": left(Role::User),
        "user_pin_cost": cost(Role::User),
        "so_pin": state(Role::So, initialised),
        "so_tries_left": left(Role::So),
        "so_pin_cost": cost(Role::So),
        "fast_login": fast_login,
    })
}
