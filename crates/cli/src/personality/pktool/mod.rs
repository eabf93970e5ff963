// SPDX-License-Identifier: Apache-2.0
//! `pktool`: keys and tokens, with the syntax of the Solaris command.

mod arguments;
mod certificates;
mod certify;
mod files;
mod generate;
mod objects;
mod signcsr;
mod tokens;
mod transfer;

pub(crate) use arguments::Args;

use super::operands::Operand::{self, Not, OneOf, Value, Word};
use super::operands::{Action, Choice, Operands, Program, Verb};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output;
use files::contents;
use objects::CRL;
use std::path::Path;

const NSS: &str = "NSS keeps its databases itself: 'certutil' is for them";
const FILES: &str = "keys are in tokens here; 'openssl' makes them in files";
const PKCS12: &str =
    "a private key does not leave its token; 'metaslot key export' writes the public half";

const TOKEN: Operand = Value("token");
const LABEL: Operand = Value("label");
const KEYSTORE: Operand = OneOf(
    "keystore",
    &[Choice("pkcs11", None), Choice("nss", Some(NSS)), Choice("file", Some(FILES))],
);
const YES_OR_NO: &[Choice] =
    &[Choice("y", None), Choice("n", None), Choice("yes", None), Choice("no", None)];
const SENSITIVE: Operand = OneOf("sensitive", YES_OR_NO);
const EXTRACTABLE: Operand = OneOf("extractable", YES_OR_NO);
const DIR: Operand = Not("dir", NSS);
const PREFIX: Operand = Not("prefix", NSS);
const NICKNAME: Operand = Not("nickname", NSS);
const TRUST: Operand = Not("trust", NSS);
const SUBJECT: Operand = Value("subject");
const ISSUER: Operand = Value("issuer");
const SERIAL: Operand = Value("serial");
const KEYTYPE: Operand = OneOf("keytype", generate::PAIRS);
const HASH: Operand = OneOf("hash", certify::HASHES);
const PEM_OR_DER: &[Choice] = &[Choice("pem", None), Choice("der", None)];
const FORMAT: Operand = OneOf("format", PEM_OR_DER);

/// What `list` and `delete` look for.
const OBJECTS: &[Operand] = &[
    KEYSTORE,
    TOKEN,
    OneOf("objtype", objects::TYPES),
    LABEL,
    SUBJECT,
    ISSUER,
    SERIAL,
    OneOf("criteria", &[Choice("valid", None), Choice("expired", None), Choice("both", None)]),
    Not("infile", CRL),
    NICKNAME,
    DIR,
    PREFIX,
];

const PROGRAM: Program<Args> = Program {
    name: "pktool",
    unserved: Exit::Usage,
    verbs: &[
        Verb { name: "tokens", operands: &[], action: Action::Does(tokens::tokens) },
        Verb {
            name: "inittoken",
            operands: &[Value("currlabel"), Value("newlabel")],
            action: Action::Does(tokens::inittoken),
        },
        Verb {
            name: "setpin",
            operands: &[
                KEYSTORE,
                TOKEN,
                OneOf("usertype", &[Choice("user", None), Choice("so", None)]),
                DIR,
                PREFIX,
            ],
            action: Action::Does(tokens::setpin),
        },
        Verb { name: "list", operands: OBJECTS, action: Action::Does(objects::list) },
        Verb { name: "delete", operands: OBJECTS, action: Action::Does(objects::delete) },
        Verb {
            name: "genkey",
            operands: &[
                KEYSTORE,
                TOKEN,
                LABEL,
                OneOf("keytype", generate::SECRETS),
                Value("keylen"),
                SENSITIVE,
                EXTRACTABLE,
                OneOf("print", YES_OR_NO),
                Not("outkey", FILES),
                DIR,
                PREFIX,
            ],
            action: Action::Does(generate::genkey),
        },
        Verb {
            name: "genkeypair",
            operands: &[
                KEYSTORE,
                TOKEN,
                LABEL,
                KEYTYPE,
                Value("keylen"),
                Value("curve"),
                Word("listcurves"),
                Not("outkey", FILES),
                Not("format", FILES),
                DIR,
                PREFIX,
                NICKNAME,
            ],
            action: Action::Does(generate::genkeypair),
        },
        Verb {
            name: "import",
            operands: &[
                KEYSTORE,
                TOKEN,
                Value("infile"),
                LABEL,
                OneOf(
                    "objtype",
                    &[Choice("key", None), Choice("cert", None), Choice("crl", Some(CRL))],
                ),
                OneOf("keytype", generate::SECRETS),
                SENSITIVE,
                EXTRACTABLE,
                Not("outkey", FILES),
                Not("outcert", FILES),
                Not("outcrl", CRL),
                Not("outformat", CRL),
                Not("verifycrl", NSS),
                TRUST,
                DIR,
                PREFIX,
            ],
            action: Action::Does(transfer::import),
        },
        Verb {
            name: "export",
            operands: &[
                KEYSTORE,
                TOKEN,
                Value("outfile"),
                LABEL,
                OneOf("objtype", &[Choice("key", None), Choice("cert", None)]),
                OneOf(
                    "outformat",
                    &[
                        Choice("raw", None),
                        Choice("pem", None),
                        Choice("der", None),
                        Choice("pkcs12", Some(PKCS12)),
                    ],
                ),
                SUBJECT,
                ISSUER,
                SERIAL,
                Not("certfile", FILES),
                Not("keyfile", FILES),
                NICKNAME,
                DIR,
                PREFIX,
            ],
            action: Action::Does(transfer::export),
        },
        Verb {
            name: "gencert",
            operands: &[
                KEYSTORE,
                TOKEN,
                LABEL,
                SUBJECT,
                SERIAL,
                Value("altname"),
                Value("keyusage"),
                Value("eku"),
                Value("lifetime"),
                KEYTYPE,
                Value("keylen"),
                Value("curve"),
                HASH,
                Word("listcurves"),
                Not("outcert", FILES),
                Not("outkey", FILES),
                Not("format", FILES),
                NICKNAME,
                TRUST,
                DIR,
                PREFIX,
            ],
            action: Action::Does(certify::gencert),
        },
        Verb {
            name: "gencsr",
            operands: &[
                KEYSTORE,
                TOKEN,
                LABEL,
                SUBJECT,
                Value("outcsr"),
                FORMAT,
                Value("altname"),
                Value("keyusage"),
                Value("eku"),
                KEYTYPE,
                Value("keylen"),
                Value("curve"),
                HASH,
                Word("listcurves"),
                Not("outkey", FILES),
                NICKNAME,
                DIR,
                PREFIX,
            ],
            action: Action::Does(certify::gencsr),
        },
        Verb {
            name: "signcsr",
            operands: &[
                KEYSTORE,
                TOKEN,
                Value("signkey"),
                Value("csr"),
                SERIAL,
                Value("outcert"),
                ISSUER,
                OneOf("store", YES_OR_NO),
                Value("outlabel"),
                FORMAT,
                SUBJECT,
                Value("altname"),
                Value("keyusage"),
                Value("eku"),
                Value("lifetime"),
                DIR,
                PREFIX,
            ],
            action: Action::Does(signcsr::signcsr),
        },
        Verb {
            name: "download",
            operands: &[],
            action: Action::Not("this command does not use the network; 'curl' fetches the file"),
        },
        Verb { name: "help", operands: &[], action: Action::Does(help) },
    ],
};

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let read = match &args.file {
        Some(file) => lines(file)?,
        None => Vec::new(),
    };
    let words = if args.file.is_some() { &read } else { &args.words };
    if args.interactive {
        return Err(Failure::usage(
            "-i: this command does not ask for the subject; give subject='CN=..., C=...'",
        ));
    }
    PROGRAM.run(app, args, words)
}

/// The codes of the original: 1 for what makes no sense, 3 for PKCS#11, 4 for the system.
pub(super) fn coded(failure: Failure) -> Failure {
    let refused = failure.code().is_some();
    failure.coded(|exit| match exit {
        Exit::Usage => 1,
        Exit::Failed if !refused => 4,
        _ => 3,
    })
}

fn help(_: &App, _: &Args, _: &Operands<'_>) -> Result<()> {
    output::write_out(format!("{}\n", arguments::USAGE).as_bytes())
}

/// The words of an option file, one a line; blank lines are none.
fn lines(file: &Path) -> Result<Vec<String>> {
    let bytes = contents(file)?;
    let wrong = |_| Failure::failed(format!("cannot read {}: it is no text", file.display()));
    let text = str::from_utf8(&bytes).map_err(wrong)?;
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_verb_and_operand() {
        let page = include_str!("../../../../../docs/commands/pktool.md");
        crate::personality::operands::assert_page_names(&PROGRAM, page);
    }
}
