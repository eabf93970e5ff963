// SPDX-License-Identifier: Apache-2.0
//! `cryptoadm`: providers, with the syntax of the Solaris command.

mod arguments;
mod change;
mod install;
mod list;
mod providers;
mod shown;

pub(crate) use arguments::Args;

use super::operands::Operand::{self, Not, Value, Word};
use super::operands::{Action, Operands, Program, Verb};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

const FIPS: Operand = Not(
    "fips-140",
    "'metaslot policy set fips' keeps a token to mechanisms that FIPS 140-3 approves of",
);
const MIGRATE: Operand = Not("auto-key-migrate", "a key stays in the token that it was made in");

const PROGRAM: Program<Args> = Program {
    name: "cryptoadm",
    unserved: Exit::Failed,
    verbs: &[
        Verb {
            name: "list",
            operands: &[Value("provider"), Word("metaslot"), Value("mechanism"), FIPS],
            action: Action::Does(list::run),
        },
        Verb {
            name: "disable",
            operands: &[
                Value("provider"),
                Word("metaslot"),
                Value("mechanism"),
                Word("random"),
                Word("all"),
                MIGRATE,
                FIPS,
            ],
            action: Action::Does(change::disable),
        },
        Verb {
            name: "enable",
            operands: &[
                Value("provider"),
                Word("metaslot"),
                Value("mechanism"),
                Word("random"),
                Word("all"),
                MIGRATE,
                FIPS,
                Value("token"),
                Value("slot"),
                Word("default-keystore"),
            ],
            action: Action::Does(change::enable),
        },
        Verb {
            name: "install",
            operands: &[
                Value("provider"),
                Not(
                    "mechanism",
                    "it is for the kernel's providers, and none is in the kernel here",
                ),
            ],
            action: Action::Does(install::install),
        },
        Verb {
            name: "uninstall",
            operands: &[Value("provider")],
            action: Action::Does(install::uninstall),
        },
        Verb {
            name: "unload",
            operands: &[Value("provider")],
            action: Action::Not(
                "there is no provider in the kernel; 'uninstall' takes a module out",
            ),
        },
        Verb { name: "refresh", operands: &[], action: Action::Does(follows) },
        Verb { name: "start", operands: &[], action: Action::Does(follows) },
        Verb {
            name: "stop",
            operands: &[],
            action: Action::Not("there is no service to stop: the module is in its programs"),
        },
    ],
};

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let for_list = args.mechanisms || args.policy || args.verbose;
    if for_list && args.words.first().is_some_and(|verb| verb != "list") {
        return Err(Failure::usage("-m, -p and -v are for list only"));
    }
    PROGRAM.run(app, args, &args.words)
}

/// `refresh` and `start`: what they are for has happened.
fn follows(app: &App, _: &Args, _: &Operands<'_>) -> Result<()> {
    app.output.note("programs follow the configuration by themselves, without a service");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_verb_and_operand() {
        let page = include_str!("../../../../../docs/commands/cryptoadm.md");
        crate::personality::operands::assert_page_names(&PROGRAM, page);
    }
}
