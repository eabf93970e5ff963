// SPDX-License-Identifier: Apache-2.0
//! The options of `ksslcfg`, and its help.

use clap::{ArgAction, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ksslcfg create -f pkcs11 -T web -C site -p /etc/metaslot/pin -x 8080 443
  ksslcfg create -f pkcs11 -T web -C site -p pin -h ca.pem -z 20000 -t 600 -x 8080 www.example.org 443
  ksslcfg create -f pem -i site.pem -x 8080 443
  ksslcfg delete www.example.org 443";

/// Arguments of `ksslcfg`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print how it is used
    #[arg(short = '?', action = ArgAction::HelpLong)]
    question: Option<bool>,
    /// Print the version of the syntax
    #[arg(short = 'V')]
    pub(super) version: bool,
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
}

/// What is done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a proxy and start it; one of this host and port is made anew
    #[command(disable_help_flag = true)]
    Create(Box<Create>),
    /// Stop a proxy and remove what 'create' made
    Delete(Delete),
    /// List the proxies, and what passed through them
    List(List),
}

/// What the key and the certificate are in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Format {
    Pkcs11,
    Pkcs12,
    Pem,
}

/// Arguments of `ksslcfg create`.
#[derive(clap::Args, Debug)]
pub(crate) struct Create {
    /// What the key and the certificate are in
    #[arg(short = 'f', value_name = "FORMAT")]
    pub(super) format: Format,
    /// The token: name[:manufacturer[:serial]], or a PKCS#11 URI; with -f pem or pkcs12 the key is imported into it
    #[arg(short = 'T', value_name = "TOKEN")]
    pub(super) token: Option<String>,
    /// The label of the certificate in the token, whose key is beside it
    #[arg(short = 'C', value_name = "LABEL")]
    pub(super) certificate: Option<String>,
    /// Has no meaning here: the configuration says where tokens are
    #[arg(short = 'd', value_name = "DIRECTORY")]
    pub(super) softtoken: Option<PathBuf>,
    /// pem, pkcs12: the file with the key and its certificates
    #[arg(short = 'i', value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// The file with the user PIN; of pem and pkcs12 with the passphrase of the file
    #[arg(short = 'p', value_name = "FILE")]
    pub(super) password: Option<PathBuf>,
    /// The user whose rights the proxy has, and who reads the file of -p [default: the server's, and root reads it]
    #[arg(short = 'u', value_name = "USER")]
    pub(super) user: Option<String>,
    /// A file in PEM with the certificates of the CAs between this one and the root [default: those in the token]
    #[arg(short = 'h', value_name = "FILE")]
    pub(super) chain: Option<PathBuf>,
    /// The cipher suites, with commas, the preferred one first
    #[arg(short = 'c', value_name = "SUITES")]
    pub(super) suites: Option<String>,
    /// For how many seconds a session may be resumed [default: 300]
    #[arg(short = 't', value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub(super) timeout: Option<u32>,
    /// How many sessions may be resumed
    #[arg(short = 'z', value_name = "SESSIONS", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) cache: u32,
    /// Say what is done
    #[arg(short = 'v')]
    pub(super) verbose: bool,
    /// The port of the plain server on 127.0.0.1
    #[arg(short = 'x', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) proxy_port: u16,
    /// haproxy or nginx [default: the first that is installed]
    #[arg(long, value_name = "PROGRAM")]
    pub(super) server: Option<String>,
    /// pem, pkcs12: the file with the user PIN of the token [default: METASLOT_PIN_SOURCE]
    #[arg(long, value_name = "FILE")]
    pub(super) pin_source: Option<String>,
    #[command(flatten)]
    pub(super) place: Place,
    /// Print how it is used
    #[arg(long, short = '?', action = ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    pub(super) address: Address,
}

/// Arguments of `ksslcfg delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Delete {
    /// Say what is done
    #[arg(short = 'v')]
    pub(super) verbose: bool,
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) address: Address,
}

/// Arguments of `ksslcfg list`.
#[derive(clap::Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    pub(super) place: Place,
}

/// Where the proxies' files are.
#[derive(clap::Args, Debug)]
pub(super) struct Place {
    /// Where the files are; there it is started without systemd [default: kssl in /etc/metaslot for root,
    /// in ~/.config/metaslot otherwise]
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) directory: Option<PathBuf>,
}

/// Where clients connect to.
#[derive(clap::Args, Debug)]
pub(super) struct Address {
    /// The port of TLS, and before it the host's name or address [default: every address]
    #[arg(value_name = "[HOST] PORT", required = true, num_args = 1..=2)]
    pub(super) words: Vec<String>,
}
