// SPDX-License-Identifier: Apache-2.0
//! `metaslot completions`, `metaslot man`, `metaslot version`: all made from the command line's
//! definition.

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{self, Report};
use crate::uri::Uri;
use clap::{Command, ValueEnum};
use clap_complete::Shell as Generator;
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
    const fn generator(self) -> Generator {
        match self {
            Self::Bash => Generator::Bash,
            Self::Fish => Generator::Fish,
            Self::Zsh => Generator::Zsh,
        }
    }
}

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct Man {
    /// The directory; it is made when there is none
    directory: PathBuf,
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell.generator(), &mut command, "metaslot", &mut text);
    output::write_out(&text)
}

pub(crate) fn man(args: &Man, mut command: Command) -> Result<()> {
    command.build();
    let cannot = |error: io::Error| {
        Failure::io(format!("cannot write into {}", args.directory.display()), &error)
    };
    std::fs::create_dir_all(&args.directory).map_err(cannot)?;
    pages(&command, &args.directory).map_err(cannot)
}

/// The page of a command and of those below it: `metaslot-key-list.1`.
fn pages(command: &Command, directory: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let page = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    page.source(concat!("Metaslot ", env!("CARGO_PKG_VERSION")))
        .manual("Metaslot")
        .render(&mut text)?;
    std::fs::write(directory.join(format!("{name}.1")), text)?;
    let mut commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.try_for_each(|command| pages(command, directory))
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
