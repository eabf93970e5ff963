// SPDX-License-Identifier: Apache-2.0
//! Values of settings, and what is said of a wrong one.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where in the text, and what.
pub(super) type Complaint = (Option<Range<usize>>, String);

/// One setting of a section: its name, and what reads its value.
pub(super) type Setting<T> =
    (&'static str, fn(&mut T, &Spanned<DeValue<'_>>) -> Result<(), Complaint>);

/// Reads the settings of a section, in the order of the rows.
///
/// # Errors
/// A setting that has no row, or what a row says of its value.
pub(super) fn apply<T>(
    section: &DeTable<'_>,
    none: &str,
    rows: &[Setting<T>],
    into: &mut T,
) -> Result<(), Complaint> {
    let is_known = |name: &str| rows.iter().any(|row| row.0 == name);
    if let Some((key, _)) = section.iter().find(|(key, _)| !is_known(key.get_ref())) {
        return Err(at(key, &format!("{none} {:?}", key.get_ref())));
    }
    for (name, read) in rows {
        if let Some(value) = section.get(*name) {
            read(into, value)?;
        }
    }
    Ok(())
}

/// What a setting says.
#[expect(clippy::unnecessary_wraps, reason = "the end of a row")]
pub(super) fn set<T>(place: &mut T, value: T) -> Result<(), Complaint> {
    *place = value;
    Ok(())
}

/// The names of settings.
#[cfg(test)]
pub(super) fn names<T>(rows: &[Setting<T>]) -> Vec<&'static str> {
    rows.iter().map(|row| row.0).collect()
}

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

/// A list of strings.
pub(super) fn texts(value: &Spanned<DeValue<'_>>, takes: &str) -> Result<Vec<String>, Complaint> {
    let DeValue::Array(texts) = value.get_ref() else { return Err(wrong(value, takes)) };
    texts.iter().map(|one| text(one).map(str::to_owned)).collect()
}

/// A truth value.
pub(super) fn boolean(value: &Spanned<DeValue<'_>>) -> Result<bool, Complaint> {
    match value.get_ref() {
        DeValue::Boolean(truth) => Ok(*truth),
        _ => Err(wrong(value, "must be true or false")),
    }
}

/// A section.
pub(super) fn table<'a, 'b>(
    value: &'a Spanned<DeValue<'b>>,
    takes: &str,
) -> Result<&'a DeTable<'b>, Complaint> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => Err(wrong(value, takes)),
    }
}

/// A path from the root.
pub(super) fn absolute(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Complaint> {
    let path = PathBuf::from(text(value)?);
    if path.is_absolute() { Ok(path) } else { Err(wrong(value, "must be an absolute path")) }
}

/// A time such as `"15m"`.
pub(super) fn duration(value: &Spanned<DeValue<'_>>) -> Result<Duration, Complaint> {
    let text = text(value)?;
    let unit = text.chars().last().and_then(|unit| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        _ => None,
    });
    let seconds =
        unit.and_then(|unit| text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=u64::from(u32::MAX)).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| wrong(value, "must be a time such as \"15m\""))
}
