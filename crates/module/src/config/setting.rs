// SPDX-License-Identifier: Apache-2.0
//! Values of settings, and what is said of a wrong one.

use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// Where in the text, and what.
pub(super) type Complaint = (Option<Range<usize>>, String);

/// A complaint about this place.
pub(super) fn at<T>(value: &Spanned<T>, reason: &str) -> Complaint {
    (Some(value.span()), String::from(reason))
}

/// A value that the setting does not take, with what it takes.
pub(super) fn wrong(value: &Spanned<DeValue<'_>>, takes: &str) -> Complaint {
    let said = match value.get_ref() {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => String::from(number.as_str()),
        DeValue::Float(number) => String::from(number.as_str()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => String::from("a list"),
        DeValue::Table(_) => String::from("a section"),
    };
    at(value, &format!("{takes}, not {said}"))
}

/// A string.
pub(super) fn text<'a>(value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, Complaint> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(wrong(value, "must be a string")),
    }
}

/// A truth value.
pub(super) fn boolean(value: &Spanned<DeValue<'_>>) -> Result<bool, Complaint> {
    match value.get_ref() {
        DeValue::Boolean(truth) => Ok(*truth),
        _ => Err(wrong(value, "must be true or false")),
    }
}
