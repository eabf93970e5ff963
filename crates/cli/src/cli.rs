// SPDX-License-Identifier: Apache-2.0
//! The command line as clap sees it: help, man pages and completions are made from these types.

use crate::app::Common;
use crate::command::{
    cert, config, data, derive, doctor, encapsulate, explain, import, key, lab, mechanisms, pages,
    policy, provider, random, setup, sign, stat, token, top, tune, uri2pem, verify, wrap,
};
use crate::personality::{crypt, cryptoadm, hash, ksslcfg, pktool};
use clap::{Parser, Subcommand};

/// Keys in an encrypted token, behind one PKCS#11 module
///
/// Tokens and keys are named by PKCS#11 URIs (RFC 7512). PINs are asked for on the terminal or read
/// from a file or a command; they are never arguments.
#[derive(Debug, Parser)]
#[command(name = "metaslot", version, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_required = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such module, token or key \
(or several), 4 PIN wrong, locked or missing, 5 signature not valid, 6 done in part"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, a noun each where there are several verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, list, show, copy, check and delete tokens, and change their PINs
    #[command(subcommand)]
    Token(token::Command),
    /// Generate, import, list, show, test, export, copy, change and delete keys
    #[command(subcommand)]
    Key(key::Command),
    /// Make, sign, list, show, import, export, change and delete certificates
    #[command(subcommand)]
    Cert(cert::Command),
    /// Keep files in a token: import, list, show, export and delete them
    #[command(subcommand)]
    Data(data::Command),
    /// Sign a file with a key of the token
    ///
    /// Without --mechanism, RSA keys sign with PKCS#1 v1.5 and SHA-256, EC keys with ECDSA and a
    /// hash as strong as the curve, Ed25519 and Ed448 keys with EdDSA, ML-DSA, SLH-DSA, HSS and XMSS keys with these; AES keys make a CMAC, and generic
    /// secrets an HMAC with SHA-256. Data of any length is read in pieces, except for EdDSA, which
    /// needs it whole.
    Sign(sign::Args),
    /// Check the signature of a file with a key of the token
    ///
    /// Exit code 0 says that the signature is valid, 5 that it is not. Public keys need no PIN.
    Verify(verify::Args),
    /// Take a key out of the token, encrypted by another one
    ///
    /// The key must be extractable. By default a Metaslot writes a bound form, which says what the key is and is for, and
    /// which it reads only itself; -m kwp and -m oaep write what other tokens read.
    Wrap(wrap::Args),
    /// Bring a key into the token that another one encrypted
    ///
    /// Of a private key the public half is made, too. What arrives is sensitive and, without --extractable, stays.
    Unwrap(wrap::open::Args),
    /// Derive a secret key from a key of the token
    ///
    /// From a pair and the other side's public key: ECDH and X25519. From a secret key: HKDF. What is derived is kept in the
    /// token, or its value is written where the policy lets it be read.
    Derive(derive::Args),
    /// Make a secret key that the holder of another key can make, too
    ///
    /// From the other side's public key of ML-KEM, RSA (by OAEP) or a curve (by ECDH with a pair for this once): the secret
    /// key is kept in the token, or its value is written, and the ciphertext from which the other side makes it goes into a
    /// file.
    Encapsulate(encapsulate::Args),
    /// Make the secret key that was encapsulated for a key of the token
    ///
    /// A ciphertext that was made for another key, or changed, gives a secret key that nobody else has: ML-KEM and curves do
    /// not tell.
    Decapsulate(encapsulate::OpenArgs),
    /// Digest files, as the Solaris command of this name does
    ///
    /// Prints the digest of each file in hexadecimal. Exit codes: 0 done, 1 failed, 2 wrong usage. Called as
    /// metaslot-digest or digest, by a link, the command is this one.
    Digest(hash::DigestArgs),
    /// Make message authentication codes of files, as the Solaris command of this name does
    ///
    /// The key is the content of a file, a key in a token, or made from a passphrase as the original does: PBKDF2 with
    /// HMAC-SHA-1, 1000 iterations and a salt that is always the same, so that a passphrase always gives the same code.
    /// Exit codes: 0 done, 1 failed, 2 wrong usage. Called as metaslot-mac or mac, by a link, the command is this one.
    Mac(hash::MacArgs),
    /// Encrypt a file, with the syntax of the Solaris command of this name
    ///
    /// The key is an AES key in a file or in a token, or made from a passphrase. What is written is authenticated, and
    /// is not the original's format (docs/commands/encrypt.md): 'metaslot decrypt' reads both.
    /// Exit codes: 0 done, 1 failed, 2 wrong usage. Called as metaslot-encrypt or encrypt, by a link, the command is this
    /// one.
    Encrypt(crypt::EncryptArgs),
    /// Decrypt a file, with the syntax of the Solaris command of this name
    ///
    /// The output file appears when all of the input was found to be as it was written; to standard output goes what was
    /// checked so far, and the exit code says whether the rest was right. Files of the original's format have
    /// nothing to be checked by.
    /// Exit codes: 0 done, 1 failed, 2 wrong usage. Called as metaslot-decrypt or decrypt, by a link, the command is this
    /// one.
    Decrypt(crypt::DecryptArgs),
    /// Bring the objects of a Solaris softtoken into a token
    ///
    /// Reads the keystore that pkcs11_softtoken wrote (format 2.20) with its passphrase, verifies all of it, and makes its
    /// keys and certificates in the token. Says of each object what became of it; the keystore is not changed.
    /// Exit code 1 says that something could not be moved.
    ImportSofttoken(import::Args),
    /// List and choose providers, as the Solaris command of this name does
    ///
    /// Writes the same configuration as 'metaslot provider'. Exit codes: 0 done, 1 failed, 2 wrong usage. Called as
    /// metaslot-cryptoadm or cryptoadm, by a link, the command is this one.
    Cryptoadm(cryptoadm::Args),
    /// Make, list and delete keys, as the Solaris command of this name does
    ///
    /// Exit codes: 0 done, 1 wrong usage, 3 the module or the token refused, 4 the system did. Called as
    /// metaslot-pktool or pktool, by a link, the command is this one.
    Pktool(pktool::Args),
    /// Put a TLS proxy before a plain server, as the Solaris command of this name does
    ///
    /// HAProxy or nginx does TLS, with a key in a token; it is configured, checked and started as a service (docs/kssl.md).
    /// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 every address of the port has a proxy already. Called as
    /// metaslot-ksslcfg or ksslcfg, by a link, the command is this one.
    Ksslcfg(ksslcfg::Args),
    /// Print random bytes
    ///
    /// They are the token's (C_GenerateRandom). Needs no PIN, and no token that is initialised. A file is made with the mode
    /// that the umask leaves: for a key, 'metaslot key generate' makes one that never leaves the token.
    Random(random::Args),
    /// List the mechanisms of a token
    ///
    /// MIN and MAX are sizes of keys in the unit that the mechanism uses, bits or bytes.
    Mechanisms(mechanisms::Args),
    /// Say who does a mechanism's operations, and what stands in the way of the others
    ///
    /// The first provider of the list that has the operation does it, or one that is known to take less for so many bytes:
    /// --size compares. "lanes" takes the requests that wait together, and leaves
    /// alone what gains nothing by company; "awslc" does one at a time.
    Explain(explain::Args),
    /// Measure what operations cost here, by each provider
    ///
    /// Each provider does each operation in turns, on little data and on much: alone, and with a thread for each
    /// processor, 16 at least. The costs go into costs.tsv beside the configuration; processes that run follow within a
    /// moment and take the provider that is expected to take least for the size of the data. Without the file the first
    /// provider that has an operation does it. Takes a minute or two; the machine should do little else.
    Tune(tune::Args),
    /// List providers, and choose what each may do
    ///
    /// A provider is something on this machine that does cryptography: the lanes, AWS-LC, other PKCS#11 modules.
    #[command(subcommand)]
    Provider(provider::Command),
    /// Show and set what tokens refuse although the standard allows it
    #[command(subcommand)]
    Policy(policy::Command),
    /// Say how a program uses a key of the token, and write what it needs for that
    ///
    /// Files are printed, and with --apply written into a directory of their own; another program's configuration is never
    /// changed: what is to be typed or included there is said below them. A file that somebody else made is left as it is,
    /// and of one that changes the last version is kept beside it.
    Setup(setup::Args),
    /// Write a file in which programs that read keys from PEM files find a key of the token
    ///
    /// The file has no key in it, but the key's URI, in the form of pkcs11-provider: programs that read PEM files through
    /// OpenSSL 3 with that provider use the token then.
    Uri2pem(uri2pem::Args),
    /// Check the configuration, and show what counts and where it comes from
    #[command(subcommand)]
    Config(config::Command),
    /// Check the installation: configuration, module, tokens, files, limits
    ///
    /// Each line is ok, a warning or an error, with what helps. Exit code 1 says that there is an
    /// error; warnings leave it 0. Needs no PIN and changes nothing.
    Doctor(doctor::Args),
    /// Show what the module did in every process, by mechanism and by function
    ///
    /// Reads the counter pages of the processes that use the module and that this user may read;
    /// it does not disturb them. Pages are kept only where the directory for them exists:
    /// one that the configuration names, $XDG_RUNTIME_DIR/metaslot or /run/metaslot.
    Stat(stat::Args),
    /// Watch what the module does, on a screen that changes
    ///
    /// Operations and bytes a second by provider and mechanism, with their history, times, errors, batches
    /// and processes. Keys: q quits, p pauses, s or the arrows to the sides change what rows are ordered by,
    /// the arrows up and down choose a row, whose graphs are shown.
    Top(top::Args),
    /// Measure: speed, copies, sockets, the store, what survives a kill
    ///
    /// A program of its own, metaslot-lab, does it.
    Lab(lab::Args),
    /// Print the completions for a shell
    ///
    /// For example: metaslot completions bash > /etc/bash_completion.d/metaslot
    Completions(pages::Completions),
    /// Write the man pages
    ///
    /// One page for each command, in section 1.
    Man(pages::Man),
    /// Print the versions of the command and of the module
    Version,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// A command line as the page writes it: words, and quotes around what means something to a shell.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('\'').enumerate();
        let quoted = |(at, part): (usize, &str)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        };
        parts.flat_map(quoted).collect()
    }

    #[test]
    fn every_command_beside_another_tool_s_is_one() {
        let page = include_str!("../../../docs/commands/other-tools.md");
        let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
        let mut count = 0;
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [what, others @ .., here] = &*cells else { panic!("{row}") };
            assert!(others.len() == 4 && !what.is_empty(), "{row}");
            assert!(
                others.iter().any(|other| other.starts_with('`')),
                "another tool does it: {row}"
            );
            let command = here.trim_matches('`');
            assert!(command.starts_with("metaslot "), "{row}");
            if let Err(error) = Cli::try_parse_from(words(command)) {
                panic!("{command}: {error}");
            }
            count += 1;
        }
        assert!(count > 60, "{count} rows");
    }
}
