// SPDX-License-Identifier: Apache-2.0
//! Who a certificate is for, and for what: arguments that the verbs which make one share.

use crate::failure::{Failure, Result};
use crate::key::{Family, Key};
use crate::x509;
use clap::ValueEnum;
use std::net::IpAddr;

/// Names of the subject.
#[derive(clap::Args, Debug)]
pub(super) struct Names {
    /// Who it is for, such as 'CN=site, O=Acme, C=DE' [default: CN= and the first --dns, or the key's label]
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// A host's name; several may be given
    #[arg(long, value_name = "HOST")]
    dns: Vec<String>,
    /// A host's address; several may be given
    #[arg(long, value_name = "ADDRESS")]
    ip: Vec<IpAddr>,
    /// An address for mail; several may be given
    #[arg(long, value_name = "ADDRESS")]
    email: Vec<String>,
    /// A URI, such as a SPIFFE ID; several may be given
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,
}

impl Names {
    /// The subject, where one is said or follows from a host's name.
    pub(super) fn said(&self) -> Result<Option<Vec<u8>>> {
        match (&self.subject, self.dns.first()) {
            (Some(subject), _) => x509::name(subject).map(Some),
            (None, Some(host)) => common_name(host).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The subject, for a key.
    pub(super) fn subject(&self, key: &Key) -> Result<Vec<u8>> {
        match self.said()? {
            Some(subject) => Ok(subject),
            None if key.label.is_empty() => {
                Err(Failure::usage("a key without a label needs a --subject or a --dns"))
            }
            None => common_name(&key.label),
        }
    }

    /// The other names, each as it stands in the extension.
    pub(super) fn others(&self) -> Result<Vec<Vec<u8>>> {
        let texts = |kind, texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| format!("{kind}={text}")).collect()
        };
        let addresses = self.ip.iter().map(|address| format!("IP={address}")).collect();
        let hosts = texts("DNS", &self.dns);
        let all = [hosts, addresses, texts("EMAIL", &self.email), texts("URI", &self.uri)];
        all.iter().flatten().map(|name| x509::alternative_name(name)).collect()
    }
}

/// A name that is this text only, whatever it has in it.
fn common_name(text: &str) -> Result<Vec<u8>> {
    let special = |c| matches!(c, ',' | '"' | '\\').then_some('\\');
    let escaped: String = text.chars().flat_map(|c| special(c).into_iter().chain([c])).collect();
    x509::name(&format!("CN={escaped}"))
}

/// What a certificate's key may be used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Purpose {
    /// A TLS server
    Server,
    /// A TLS client
    Client,
    /// Signatures on programs
    Code,
    /// Signatures on mail
    Email,
    /// Certificates for others
    Ca,
}

/// What it is for.
#[derive(clap::Args, Debug)]
pub(super) struct Purposes {
    /// What it is for; several may be given
    #[arg(long = "for", value_name = "PURPOSE", value_delimiter = ',', default_value = "server")]
    purposes: Vec<Purpose>,
}

impl Purposes {
    /// Whether it certifies others.
    pub(super) fn is_of_ca(&self) -> bool {
        self.purposes.contains(&Purpose::Ca)
    }

    /// The extensions that say so, for a key of this type.
    pub(super) fn extensions(&self, family: Family) -> Result<Vec<u8>> {
        let is = |purpose| self.purposes.contains(&purpose);
        let mut usage = Vec::new();
        if self.purposes.iter().any(|purpose| *purpose != Purpose::Ca) {
            usage.push("digitalSignature");
        }
        // TLS 1.2 without forward secrecy.
        if is(Purpose::Server) && family == Family::Rsa {
            usage.push("keyEncipherment");
        }
        if self.is_of_ca() {
            usage.extend(["keyCertSign", "cRLSign"]);
        }
        let extended: Vec<&str> = [
            (Purpose::Server, "serverAuth"),
            (Purpose::Client, "clientAuth"),
            (Purpose::Code, "codeSigning"),
            (Purpose::Email, "emailProtection"),
        ]
        .into_iter()
        .filter_map(|(purpose, name)| is(purpose).then_some(name))
        .collect();
        let mut extensions = x509::constraints(self.is_of_ca());
        extensions.extend(x509::usage(&format!("critical:{}", usage.join(",")))?);
        if !extended.is_empty() {
            extensions.extend(x509::extended_usage(&extended.join(","))?);
        }
        Ok(extensions)
    }
}
