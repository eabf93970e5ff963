// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 between machines, in which both sides show a certificate. Behind it is p11-kit's protocol as at a Unix socket: what
//! arrives goes through one, so that all that bounds a client there bounds it here.

mod carry;
mod certificate;
mod client;
mod listener;
mod server;
mod trouble;

pub(crate) use carry::Far;
pub(crate) use client::{Client, name_of};
pub(crate) use listener::{Listener, Serve};
pub(crate) use server::Server;
pub(crate) use trouble::Trouble;

use metaslot_postgres::certificates;
use metaslot_wiring::config::ListenConfig;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is recorded today is not read by a quantum computer: PINs may be in it.
const GROUPS: [&dyn SupportedKxGroup; 4] =
    [kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: GROUPS.to_vec(), ..default_provider() })
}

/// The authorities in a file. One that is no certificate is an error: who relies on it would be refused.
fn authorities(file: &Path) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(Arc::new(roots))
}

/// The private key in a file that is not everybody's.
fn key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let metadata = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if metadata.mode() & 0o007 != 0 {
        return Err(format!("{}: others may read or write it (chmod o= helps)", file.display()));
    }
    PrivateKeyDer::from_pem_file(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Files that are read again when they have been renewed.
pub(crate) fn files(listen: &ListenConfig) -> [&PathBuf; 3] {
    [&listen.certificate, &listen.key, &listen.client_ca]
}
