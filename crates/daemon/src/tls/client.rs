// SPDX-License-Identifier: Apache-2.0
//! What this machine shows to a daemon on another one, and whom it takes for that.

use super::certificate::lack;
use super::{authorities, certificates, key, provider};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Error};
use std::path::Path;
use std::sync::Arc;
use webpki::KeyUsage;

/// What was read of files, and the daemon's name.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Why no daemon takes the certificate, as far as that shows.
    lack: Option<String>,
}

/// The name of a daemon, as its certificate has it.
///
/// # Errors
/// That it can be none.
pub(crate) fn name_of(name: &str) -> Result<ServerName<'static>, String> {
    let parsed = ServerName::try_from(name.to_owned());
    parsed.map_err(|_| format!("{name:?} is no host's name or address"))
}

impl Client {
    /// Reads them: this machine's certificate, its key, and the authorities that vouch for a daemon of this name.
    ///
    /// # Errors
    /// Which file or name cannot be used, and why.
    pub(crate) fn of(
        certificate: &Path,
        own: &Path,
        ca: &Path,
        name: &str,
    ) -> Result<Self, String> {
        let name = name_of(name)?;
        let builder = ClientConfig::builder_with_provider(provider());
        let chain = certificates(certificate)?;
        let lack = lack(&chain[0], KeyUsage::client_auth(), builder.crypto_provider());
        let lack = lack.map(|lack| format!("{}: the certificate {lack}", certificate.display()));
        let builder = builder
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| error.to_string())?
            .with_root_certificates(authorities(ca)?);
        let config = builder.with_client_auth_cert(chain, key(own)?);
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                format!("{}: {} is another certificate's key", certificate.display(), own.display())
            }
            Error::InvalidCertificate(_) => {
                lack.clone().unwrap_or_else(|| format!("{}: {error}", certificate.display()))
            }
            error => format!("{}: {error}", own.display()),
        })?;
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), name, lack })
    }

    /// What is to be said of it.
    pub(crate) fn lack(&self) -> Option<&str> {
        self.lack.as_deref()
    }

    /// A connection to it, to be made.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}
