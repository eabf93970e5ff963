// SPDX-License-Identifier: Apache-2.0
//! What a daemon shows to clients of other machines, and what it wants to see of them.

use super::certificate::{lack, names_of};
use super::{authorities, certificates, key, provider};
use metaslot_wiring::config::ListenConfig;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    ServerConnection, SignatureScheme,
};
use std::sync::{Arc, Mutex, PoisonError};
use webpki::KeyUsage;

/// Whether peers with these names are served.
pub(crate) type Rule = Arc<dyn Fn(&[String]) -> bool + Send + Sync>;

/// What was read of files.
#[derive(Debug)]
pub(crate) struct Server {
    provider: Arc<CryptoProvider>,
    shows: Arc<SingleCertAndKey>,
    clients: Arc<dyn ClientCertVerifier>,
    /// Why every client refuses the certificate, whatever name it connects to, as far as the certificate alone shows that.
    lack: Option<String>,
}

impl Server {
    /// Reads them.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub(crate) fn of(listen: &ListenConfig) -> Result<Self, String> {
        let provider = provider();
        let (file, chain) = (listen.certificate.display(), certificates(&listen.certificate)?);
        let lack = lack(&chain[0], KeyUsage::server_auth(), &provider);
        let lack = lack.map(|lack| format!("{file}: the certificate {lack}"));
        let shows = CertifiedKey::from_der(chain, key(&listen.key)?, &provider);
        let shows = shows.map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                format!("{file}: {} is another certificate's key", listen.key.display())
            }
            Error::InvalidCertificate(_) => {
                lack.clone().unwrap_or_else(|| format!("{file}: {error}"))
            }
            error => format!("{}: {error}", listen.key.display()),
        })?;
        let roots = authorities(&listen.client_ca)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let clients = clients.build().map_err(|error| error.to_string())?;
        Ok(Self { provider, shows: Arc::new(SingleCertAndKey::from(shows)), clients, lack })
    }

    /// What is to be said of it.
    pub(crate) fn lack(&self) -> Option<&str> {
        self.lack.as_deref()
    }

    /// A connection whose peer has yet to show who it is, and its names when it has.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn connection(&self, rule: Rule) -> Result<(ServerConnection, Arc<Names>), Error> {
        let names =
            Arc::new(Names { clients: Arc::clone(&self.clients), rule, shown: Mutex::default() });
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let mut config = builder
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::<Names>::clone(&names))
            .with_cert_resolver(Arc::<SingleCertAndKey>::clone(&self.shows));
        // Each connection shows its certificate: one that was resumed would be what it was.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok((ServerConnection::new(Arc::new(config))?, names))
    }
}

/// Looks at one peer's certificate, and keeps its names.
pub(crate) struct Names {
    clients: Arc<dyn ClientCertVerifier>,
    rule: Rule,
    shown: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl Names {
    /// Those of a certificate that an authority vouches for; none before it was seen. The handshake says whether it is the peer's.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientCertVerifier for Names {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.clients.root_hint_subjects()
    }

    /// Whom no rule names is refused by an alert of its own (`access_denied`): that it is known does not help it.
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.clients.verify_client_cert(certificate, intermediates, now)?;
        let names = names_of(certificate)?;
        let is_named = (self.rule)(&names);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = names;
        match is_named {
            true => Ok(verified),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.clients.supported_verify_schemes()
    }
}
