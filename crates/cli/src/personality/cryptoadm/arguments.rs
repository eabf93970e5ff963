// SPDX-License-Identifier: Apache-2.0
//! The options of `cryptoadm`, and its help.

const USAGE: &str = "\
Verbs:
  list [-mpv] [provider=NAME | metaslot] [mechanism=LIST]
  disable provider=NAME mechanism=LIST | random | all
  disable metaslot [mechanism=LIST]
  enable provider=NAME mechanism=LIST | random | all
  enable metaslot [mechanism=LIST] [token=LABEL] [slot=DESCRIPTION] | default-keystore
  install provider=FILE
  uninstall provider=FILE
  refresh | start

A provider is named as 'list' names it: lanes, awslc, or another module by its file. LIST has commas.

Examples:
  cryptoadm list -m provider=lanes
  cryptoadm disable provider=lanes mechanism=CKM_SHA_1,CKM_MD5
  cryptoadm install provider=/usr/lib/softhsm/libsofthsm2.so";

/// Arguments of `cryptoadm`.
#[derive(clap::Args, Debug)]
#[command(after_help = USAGE)]
pub(crate) struct Args {
    /// list: the mechanisms
    #[arg(short = 'm')]
    pub(super) mechanisms: bool,
    /// list: what may not be used
    #[arg(short = 'p', conflicts_with_all = ["mechanisms", "verbose"])]
    pub(super) policy: bool,
    /// list: slots and tokens too, and with -m what each mechanism is for
    #[arg(short = 'v')]
    pub(super) verbose: bool,
    /// The verb and its operands
    #[arg(value_name = "VERB|OPERAND")]
    pub(super) words: Vec<String>,
}
