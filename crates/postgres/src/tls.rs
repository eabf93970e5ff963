// SPDX-License-Identifier: Apache-2.0
//! TLS to the server, whose certificate must be of the name that the URL has.

use crate::address::Address;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, client};

/// Makes connections that the server's certificate has vouched for.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Reads the certificates anew: they may have been replaced since.
    pub(crate) fn of(address: &Address) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        if !address.ports().is_empty() {
            roots.add_parsable_certificates(certificates(&address.roots)?);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match &address.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key_of = |error| format!("{}: {error}", key.display());
                let private = PrivateKeyDer::from_pem_file(key).map_err(key_of)?;
                builder
                    .with_client_auth_cert(certificates(certificate)?, private)
                    .map_err(|error| format!("{}: {error}", certificate.display()))?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

/// The certificates in a PEM file; at least one.
///
/// # Errors
/// The file's name and what is wrong with it.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| format!("{}: {error}", file.display()))?;
    if read.is_empty() {
        return Err(format!("{}: no certificate is in it", file.display()));
    }
    Ok(read)
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
        // A socket of this machine has none, and needs none.
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other);
        Ok(Connect { config: Arc::clone(&self.0), name })
    }
}

/// One handshake.
pub(crate) struct Connect {
    config: Arc<ClientConfig>,
    name: io::Result<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connect = TlsConnector::from(self.config).connect(self.name?, stream);
            connect.await.map(|stream| Stream(Box::new(stream)))
        })
    }
}

/// What is read and written through TLS.
pub(crate) struct Stream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    /// The certificate is verified, which says more.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
