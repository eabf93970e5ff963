// SPDX-License-Identifier: Apache-2.0
//! `lab report`: experiments as one page. One file and no network: it can be mailed, printed and read on a
//! phone, in the dark or by day. Its only script searches and zooms flame graphs; without it all is there.

mod chart;
mod forest;
mod functions;
mod matrix;
mod options;
mod page;
mod rug;
mod scale;
mod story;

use crate::experiment::Experiment;
use crate::output::say;
use crate::profile::FLAME_SCRIPT;
use crate::{Failure, Result};
use minijinja::value::Serde;
pub use options::Options;
use page::Page;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// Writes the page, and says where.
pub(crate) fn run(options: &Options) -> Result<()> {
    let a = Experiment::read(&options.a)?;
    let b = options.b.as_deref().map(Experiment::read).transpose()?;
    let page = Page::of(options, &a, b.as_ref())?;
    let html = render(&page)?;
    let path = options.output.clone().unwrap_or_else(|| named(&options.a));
    std::fs::write(&path, &html).map_err(|error| Failure::file(&path, &error))?;
    say(&format!("written: {} ({} KB)\n", path.display(), html.len().div_ceil(1024)))
}

fn render(page: &Page) -> Result<String> {
    let mut templates = minijinja::Environment::new();
    let failed = |error: minijinja::Error| Failure::new(format!("the page: {error:#}"));
    // The name's ending makes every text that is put in safe for HTML.
    templates.add_template("page.html", TEMPLATE).map_err(failed)?;
    let template = templates.get_template("page.html").map_err(failed)?;
    template
        .render(minijinja::context! { page => Serde(page), style => STYLE, script => FLAME_SCRIPT })
        .map_err(failed)
}

/// `x.html` for `there/x.labx`, here.
fn named(experiment: &Path) -> PathBuf {
    let name = experiment.file_stem().unwrap_or_else(|| "report".as_ref());
    PathBuf::from(name).with_extension("html")
}
