// SPDX-License-Identifier: Apache-2.0
//! The findings for people: by groups, each with what it says or what would be needed.

use super::ability::{Ability, Finding, Verdict};
use super::report::Report;
use std::fmt::Write;

/// Everything that was found out.
pub(crate) fn table(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine.line());
    let width = widest(report.abilities.iter().map(|finding| finding.name.as_str()));
    let mut group = "";
    for finding in &report.abilities {
        if finding.group != group {
            group = &finding.group;
            writeln!(text, "\n{group}").ok();
        }
        text.push_str(&lines(finding, width));
    }
    text.push_str(&sources(report));
    text
}

/// One line, and a second one where something is wrong.
fn lines(finding: &Finding, width: usize) -> String {
    let Finding { name, says, needs, fallback, .. } = finding;
    let first = format!("  {:<11}  {name:<width$}  {says}\n", word(finding.verdict));
    let wants = match (finding.verdict, needs.is_empty()) {
        (Verdict::Works, _) => return first,
        (_, true) => format!("instead: {fallback}"),
        (_, false) => format!("needs {needs}; instead: {fallback}"),
    };
    format!("{first}  {:<11}  {:<width$}  {wants}\n", "", "")
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Works => "works",
        Verdict::Implausible => "implausible",
        Verdict::Fails => "fails",
    }
}

fn sources(report: &Report) -> String {
    if report.sources.is_empty() {
        return String::new();
    }
    let numbers = widest(report.sources.iter().map(|source| source.number.as_str()));
    let mut text = "\nwhere the numbers come from\n".to_owned();
    for source in &report.sources {
        let (number, from, note) = (&source.number, &source.source, &source.note);
        writeln!(text, "  {number:<numbers$} = {from} ({note})").ok();
    }
    text
}

/// The rows themselves: how each is tried, what it is for, what is used in its place.
pub(crate) fn list(abilities: &[&Ability]) -> String {
    let mut text = String::new();
    let mut group = "";
    for ability in abilities {
        if ability.group != group {
            group = ability.group;
            writeln!(text, "{group}").ok();
        }
        let Ability { name, how, purpose, fallback, .. } = ability;
        writeln!(text, "  {name}").ok();
        writeln!(text, "    tried    {how}").ok();
        writeln!(text, "    for      {purpose}").ok();
        writeln!(text, "    instead  {fallback}").ok();
    }
    text
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
