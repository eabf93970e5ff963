// SPDX-License-Identifier: Apache-2.0
//! `pktool tokens`, `pktool inittoken` and `pktool setpin`

use super::arguments::{self, Args};
use crate::app::App;
use crate::command::token::{init, pin};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::output::{self, Report};
use crate::personality::material::token_spec;
use crate::personality::operands::Operands;
use crate::pin::Role;
use crate::uri::Uri;
use metaslot_ck as ck;

/// Columns as wide as the original's; a longer text is not cut, because it names the token.
pub(super) fn tokens(app: &App, _: &Args, _: &Operands<'_>) -> Result<()> {
    let line = |cells: [&str; 4]| {
        let [label, maker, serial, state] = cells;
        format!("{label:<30}  {maker:<15}  {serial:<15}  {state:<10}").trim_end().to_owned() + "\n"
    };
    let tokens = app.host(&Uri::default())?.tokens()?;
    let mut text = line(["Token Label", "Manuf ID", "Serial No", "PIN State"]);
    for token in &tokens {
        let state = match (token.has(ck::CKF_USER_PIN_INITIALIZED), &token.problem) {
            (_, Some(_)) => "unreadable",
            (false, _) => "not set",
            _ if token.has(ck::CKF_USER_PIN_TO_BE_CHANGED) => "default",
            _ => "user set",
        };
        let info = &token.info;
        text += &line([
            &printable(&info.label),
            &printable(&info.manufacturer),
            &printable(&info.serial),
            state,
        ]);
    }
    output::write_out(text.as_bytes())
}

pub(super) fn inittoken(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let current = operands.value("currlabel");
    let label = match (operands.value("newlabel"), current) {
        (Some(label), _) => label.to_owned(),
        (None, Some(current)) => token_spec(current)?.token.unwrap_or_default(),
        (None, None) => return Err(Failure::usage("newlabel= is missing")),
    };
    let slot = match current {
        Some(current) => Some(app.token(&token_spec(current)?)?.slot.0),
        None => None,
    };
    let order = init::Order {
        label: &label,
        slot,
        is_new: false,
        so_pin: args.so_pin_source.as_deref(),
        pin: args.pin_source.as_deref(),
        force: current.is_some(),
    };
    let done = init::init(app, &order)?;
    done.print(app, &said(format!("Token {label} initialized.\n")))
}

pub(super) fn setpin(app: &App, args: &Args, operands: &Operands<'_>) -> Result<()> {
    let (role, present) = match operands.value("usertype") {
        Some("so") => (Role::So, args.so_pin_source.as_deref()),
        _ => (Role::User, args.pin_source.as_deref()),
    };
    let uri = arguments::token(operands)?;
    let new = args.new_pin_source.as_deref();
    let change = pin::Change { uri: &uri, changer: role, changed: role, present, new };
    pin::change(app, &change)?.print(app, &said("Passphrase changed.\n".to_owned()))
}

fn said(text: String) -> Report {
    Report { text, ..Report::default() }
}
