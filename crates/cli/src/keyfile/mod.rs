// SPDX-License-Identifier: Apache-2.0
//! Keys and certificates in files that other programs wrote: what a file is, and what is in it.

mod contents;
mod diversified;
mod mac;
mod openssh;
mod passphrase;
mod pkcs12;
mod private;
mod rc2;

pub(crate) use contents::{Certificate, Contents};
pub(crate) use passphrase::Opener;
pub(crate) use private::{Pair, RSA_PRIVATE, pkcs8, public_values};

use crate::encoding::der::{self, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE};
use crate::encoding::{Block, blocks, secret_from_base64};
use crate::failure::{Failure, Result};
use crate::key::Trial;
use crate::x509;
use contents::shrouded;
use metaslot_client::Session;
use metaslot_memory::Secret;
use passphrase::wrong_passphrase;
use private::damaged;

/// Reads a file of any form that is known.
pub(crate) fn read(opener: &Opener<'_>, file: &[u8]) -> Result<Contents> {
    match str::from_utf8(file).ok().filter(|text| text.contains("-----BEGIN ")) {
        Some(text) => pem(opener, text),
        None => der(opener, file),
    }
}

/// What a fuzz target sees: how many keys and certificates are in a file, or in a PEM block of this label, each key tried in a
/// session of the user's where there is one; or what is said of it. The passphrase is known, and may cost so many iterations.
///
/// # Errors
/// The message that the command would print.
pub fn tried(
    session: Option<&Session>,
    (passphrase, work): (&[u8], u64),
    label: Option<&str>,
    bytes: &[u8],
) -> std::result::Result<[usize; 2], String> {
    let opener = Opener::known(session, passphrase, work);
    let tried = || {
        let mut contents = Contents::default();
        match label {
            None => contents = read(&opener, bytes)?,
            Some(label) => {
                let block = Block { label, headers: Vec::new(), content: "" };
                of_block(&opener, &block, Secret::copy_of(bytes), &mut contents)?;
            }
        }
        if let Some(session) = session {
            contents.keys.iter().try_for_each(|pair| Trial::of(session, pair, None).map(drop))?;
        }
        Ok([contents.keys.len(), contents.certificates.len()])
    };
    tried().map_err(|failure: Failure| failure.text(false))
}

/// The public key of a file that has one: in PEM or DER, alone or of a certificate.
pub(crate) fn public_key(file: &[u8]) -> Result<Pair> {
    let no = || Failure::failed("that is no public key");
    let bytes = crate::encoding::der_of(file, &["PUBLIC KEY", "CERTIFICATE", "X509 CERTIFICATE"]);
    let bytes = bytes.ok_or_else(no)?;
    if let Some(certificate) = x509::Certificate::read(&bytes) {
        return private::public(certificate.public_key).map_err(Failure::failed);
    }
    private::public(&bytes).map_err(|_| no())
}

const DAMAGED: &str =
    "the file was damaged or copied in part: take it again from where it was made";

fn pem(opener: &Opener<'_>, text: &str) -> Result<Contents> {
    let (blocks, cut) = blocks(text);
    if let Some(label) = cut {
        return Err(Failure::failed(format!("it is cut: {label} has no END line")).hint(DAMAGED));
    }
    let mut contents = Contents::default();
    for block in &blocks {
        let bytes = secret_from_base64(block.content.as_bytes()).ok_or_else(|| {
            Failure::failed(format!("what is in {} is no base64", block.label)).hint(DAMAGED)
        })?;
        of_block(opener, block, bytes, &mut contents)?;
    }
    contents.join_halves();
    Ok(contents)
}

fn of_block(
    opener: &Opener<'_>,
    block: &Block<'_>,
    bytes: Secret,
    contents: &mut Contents,
) -> Result<()> {
    let header = |name| block.headers.iter().find(|header| header.0 == name).map(|header| header.1);
    let encrypted = header("Proc-Type").is_some_and(|kind| kind.contains("ENCRYPTED"));
    let bytes = match header("DEK-Info") {
        Some(info) if encrypted => opener.traditional(info, bytes.expose())?,
        None if encrypted => {
            return Err(Failure::failed("it is encrypted, and no DEK-Info line says how"));
        }
        _ => bytes,
    };
    // Decrypted under another passphrase it is anything.
    let said = |refused| if encrypted { wrong_passphrase() } else { Failure::failed(refused) };
    let der = bytes.expose();
    let pair = match block.label {
        "PRIVATE KEY" => pkcs8(der).map_err(said)?,
        "ENCRYPTED PRIVATE KEY" => shrouded(opener, der)?,
        "RSA PRIVATE KEY" => private::pkcs1(der).map_err(said)?,
        "EC PRIVATE KEY" => private::sec1(der, None).map_err(said)?,
        "OPENSSH PRIVATE KEY" => openssh::read(opener, der)?,
        "PUBLIC KEY" => private::public(der).map_err(said)?,
        "CERTIFICATE" | "X509 CERTIFICATE" => {
            certificate(der, contents)?;
            return Ok(());
        }
        "DSA PRIVATE KEY" => return Err(Failure::failed("DSA keys are not supported")),
        _ => {
            contents.others += 1;
            return Ok(());
        }
    };
    contents.keys.push(pair);
    Ok(())
}

fn certificate(der: &[u8], contents: &mut Contents) -> Result<()> {
    x509::Certificate::read(der).ok_or_else(|| Failure::failed(damaged("certificate")))?;
    contents.certificates.push(Certificate { der: der.to_vec(), name: None });
    Ok(())
}

/// How a line of OpenSSH's with a public key begins.
const OPENSSH_PUBLIC: [&str; 3] = ["ssh-", "ecdsa-sha2-", "sk-"];

/// A file that is no PEM.
fn der(opener: &Opener<'_>, file: &[u8]) -> Result<Contents> {
    if let Some(missing) = missing(file) {
        return Err(Failure::failed(format!("it is cut: {missing} bytes are missing")));
    }
    if pkcs12::is_one(file) {
        return pkcs12::read(opener, file);
    }
    let mut contents = Contents::default();
    if x509::Certificate::read(file).is_some() {
        certificate(file, &mut contents)?;
        return Ok(contents);
    }
    let pair = match shape(file) {
        Some((INTEGER, SEQUENCE)) => pkcs8(file).map_err(Failure::failed)?,
        Some((INTEGER, INTEGER)) => private::pkcs1(file).map_err(Failure::failed)?,
        Some((INTEGER, OCTET_STRING)) => private::sec1(file, None).map_err(Failure::failed)?,
        Some((SEQUENCE, OCTET_STRING)) => shrouded(opener, file)?,
        Some((SEQUENCE, der::BIT_STRING)) => private::public(file).map_err(Failure::failed)?,
        _ if OPENSSH_PUBLIC.iter().any(|name| file.starts_with(name.as_bytes())) => {
            return Err(Failure::failed("it is a public key in OpenSSH's form, which is not read")
                .hint("'ssh-keygen -e -m PKCS8 -f FILE' writes it as PEM"));
        }
        _ => {
            return Err(Failure::failed("it is no key in a form that is known")
                .hint("PEM, DER, PKCS #8, PKCS #1, SEC 1, PKCS #12 and OpenSSH's are; a secret key needs --type"));
        }
    };
    contents.keys.push(pair);
    Ok(contents)
}

/// The tags of the first two elements in a sequence.
fn shape(file: &[u8]) -> Option<(u8, u8)> {
    let mut inner = der::take(&mut &*file, SEQUENCE)?;
    let (first, second) = (der::next(&mut inner)?, der::next(&mut inner)?);
    let is_algorithm = first.tag == SEQUENCE && first.content.first() == Some(&OBJECT_IDENTIFIER);
    (first.tag != SEQUENCE || is_algorithm).then_some((first.tag, second.tag))
}

/// How many bytes of a sequence are not there.
fn missing(file: &[u8]) -> Option<usize> {
    let (first, rest) = file.split_at_checked(2)?;
    let [SEQUENCE, length] = *first else { return None };
    let (length, rest) = match length {
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        0..=0x7f => (usize::from(length), rest),
        _ => return None,
    };
    length.checked_sub(rest.len()).filter(|missing| *missing > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_file_says_how_much_is_missing() {
        let whole = der::element(SEQUENCE, &[7; 300]);
        assert_eq!(missing(&whole), None);
        assert_eq!(missing(&whole[..whole.len() - 9]), Some(9));
        assert_eq!(missing(b"text"), None);
        assert_eq!(missing(&[]), None);
    }
}
