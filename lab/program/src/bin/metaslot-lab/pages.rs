// SPDX-License-Identifier: Apache-2.0
//! Completions and man pages, made from the command line's definition: `cargo xtask man` and packages
//! call these.

use clap::{Command, ValueEnum};
use clap_complete::Shell as Generator;
use metaslot_lab::{Failure, Result, write_out};
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

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub(crate) struct Man {
    /// The directory; it is made when there is none
    directory: PathBuf,
}

pub(crate) fn completions(args: &Completions, command: &mut Command) -> Result<()> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Fish => Generator::Fish,
        Shell::Zsh => Generator::Zsh,
    };
    let mut text = Vec::new();
    clap_complete::generate(generator, command, "metaslot-lab", &mut text);
    write_out(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(args: &Man, mut command: Command) -> Result<()> {
    command.build();
    let written =
        std::fs::create_dir_all(&args.directory).and_then(|()| pages(&command, &args.directory));
    written.map_err(|error| {
        Failure::new(format!("cannot write into {}: {error}", args.directory.display()))
    })
}

/// The page of a command and of those below it: `metaslot-lab-local.1`.
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
