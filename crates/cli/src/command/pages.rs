// SPDX-License-Identifier: Apache-2.0
//! `metaslot completions`, `metaslot man`, `metaslot version`: all made from the command line's
//! definition.

use super::complete;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{self, Report};
use crate::uri::Uri;
use clap::{Arg, Command, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// The shells.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Fish => &Fish,
            Self::Zsh => &Zsh,
        }
    }
}

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct Man {
    /// The directory; it is made when there is none
    directory: PathBuf,
}

/// They write text, and a document has no place beside it.
fn refuse_json(app: &App, command: &str) -> Result<()> {
    match app.output.json {
        true => Err(Failure::usage(format!("{command} prints no JSON document"))),
        false => Ok(()),
    }
}

pub(crate) fn completions(app: &App, args: &Completions) -> Result<()> {
    refuse_json(app, "completions")?;
    let text = complete::function(args.shell.completer());
    output::write_out(&text.map_err(|error| Failure::io("cannot write the completions", &error))?)
}

pub(crate) fn man(app: &App, args: &Man, mut command: Command) -> Result<()> {
    refuse_json(app, "man")?;
    command.build();
    let cannot = |error: io::Error| {
        Failure::io(format!("cannot write into {}", args.directory.display()), &error)
    };
    std::fs::create_dir_all(&args.directory).map_err(cannot)?;
    pages(&command, &args.directory).map_err(cannot)
}

/// The page of a command and of those below it: `metaslot-key-list.1`.
fn pages(command: &Command, directory: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(directory.join(format!("{name}.1")), page(command, name)?)?;
    let mut commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.try_for_each(|command| pages(command, directory))
}

/// The generator's sections but for two: its synopsis has no values, and its examples are one paragraph.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let page = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    let page = page.source(concat!("Metaslot ", env!("CARGO_PKG_VERSION"))).manual("Metaslot");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    text.extend(synopsis(command).bytes());
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    text.extend(after(command).bytes());
    Ok(text)
}

fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut text = format!(".SH SYNOPSIS\n.ad l\n\\fB{}\\fR", roff(name));
    let own = |argument: &&Arg| !argument.is_global_set() && argument.get_id() != "help";
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(own).partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positional) {
        let usage = usage(argument);
        text +=
            &if argument.is_required_set() { format!(" {usage}") } else { format!(" [{usage}]") };
    }
    text += " [\\fIcommon options\\fR]";
    if command.has_subcommands() {
        text += " \\fICOMMAND\\fR";
    }
    text + "\n.ad\n"
}

/// An argument with its value.
fn usage(argument: &Arg) -> String {
    let values = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value: Vec<String> =
        values.into_iter().flatten().map(|name| format!("\\fI{}\\fR", roff(name))).collect();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let name = argument.get_long().map(|long| format!("--{long}")).or(short);
    let name = name.map(|name| format!("\\fB{}\\fR", roff(&name)));
    name.into_iter().chain(value).collect::<Vec<_>>().join("\\ ")
}

/// What stands below the options, under a heading of its own; examples keep their lines.
fn after(command: &Command) -> String {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let Some((heading, body)) = text.split_once(':') else { return String::new() };
    let lines: Vec<String> = body.trim().lines().map(|line| roff(line.trim_start())).collect();
    let (text, heading) = (lines.join("\n"), heading.to_uppercase());
    match body.starts_with('\n') {
        true => format!(".SH \"{heading}\"\n.nf\n{text}\n.fi\n"),
        false => format!(".SH \"{heading}\"\n{text}\n"),
    }
}

/// As roff reads it: hyphens that can be copied, no commands.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

pub(crate) fn version(app: &App) -> Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let host = match app.host(&Uri::default()) {
        Ok(host) => host,
        Err(failure) => {
            app.output.print(&Report {
                text: format!("metaslot {own}\n"),
                json: json!({"version": own, "module": null}),
                uris: vec![own.to_owned()],
            })?;
            return Err(failure);
        }
    };
    let module = host.module();
    let info = module.info()?;
    let dotted = |(major, minor): (u8, u8)| format!("{major}.{minor}");
    let (library, standard) = (dotted(info.library_version), dotted(module.version()));
    app.output.print(&Report {
        text: format!(
            "metaslot {own}\n{}: {} {library}, PKCS#11 {standard}\n",
            module.path().display(),
            info.description
        ),
        json: json!({
            "version": own,
            "module": {
                "path": module.path(),
                "description": info.description,
                "manufacturer": info.manufacturer,
                "version": library,
                "pkcs11": standard,
            },
        }),
        uris: vec![own.to_owned()],
    })
}
