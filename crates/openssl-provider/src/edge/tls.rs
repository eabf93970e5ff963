// SPDX-License-Identifier: Apache-2.0
//! What libssl is told of keys that come from here (provider-base(7), CAPABILITIES): until OpenSSL 3.5 it uses the groups of a kind of keys, and always
//! the signatures, only where the provider that the keys come from names them.

use super::Home;
use crate::abi::{Argument, Builder, Callback, Text, caught};
use crate::generate;
use crate::hybrid::GROUPS as HYBRID;
use crate::kind::KINDS;
use crate::provider::{Mode, Offer, Provider};
use crate::public::curve_named;
use std::ffi::c_int;

const TLS_1_0: i32 = 0x0301;
const TLS_1_2: i32 = 0x0303;
const TLS_1_3: i32 = 0x0304;
const DTLS_1_0: i32 = 0xfeff;
const DTLS_1_2: i32 = 0xfefd;

/// The versions of TLS and of DTLS, the first and the last; none is -1, and 0 is without an end.
type Versions = [i32; 4];
const EVERY: Versions = [TLS_1_0, 0, DTLS_1_0, 0];
const OLD: Versions = [TLS_1_0, TLS_1_2, DTLS_1_0, DTLS_1_2];
const NEW: Versions = [TLS_1_3, 0, -1, -1];

/// A group: its name in TLS and libcrypto's, the kind of keys, number, bits of security, versions. Of KEMs libcrypto's name is empty.
type Group = (&'static str, &'static str, &'static str, i32, i32, Versions);

#[rustfmt::skip]
const GROUPS: [Group; 24] = [
    ("x25519", "X25519", "X25519", 29, 128, EVERY),
    ("x448", "X448", "X448", 30, 224, EVERY),
    ("secp256r1", "prime256v1", "EC", 23, 128, EVERY),
    ("P-256", "prime256v1", "EC", 23, 128, EVERY),
    ("secp384r1", "secp384r1", "EC", 24, 192, EVERY),
    ("P-384", "secp384r1", "EC", 24, 192, EVERY),
    ("secp521r1", "secp521r1", "EC", 25, 256, EVERY),
    ("P-521", "secp521r1", "EC", 25, 256, EVERY),
    ("secp256k1", "secp256k1", "EC", 22, 128, OLD),
    ("secp224r1", "secp224r1", "EC", 21, 112, OLD),
    ("brainpoolP256r1", "brainpoolP256r1", "EC", 26, 128, OLD),
    ("brainpoolP384r1", "brainpoolP384r1", "EC", 27, 192, OLD),
    ("brainpoolP512r1", "brainpoolP512r1", "EC", 28, 256, OLD),
    ("brainpoolP256r1tls13", "brainpoolP256r1", "EC", 31, 128, NEW),
    ("brainpoolP384r1tls13", "brainpoolP384r1", "EC", 32, 192, NEW),
    ("brainpoolP512r1tls13", "brainpoolP512r1", "EC", 33, 256, NEW),
    ("ffdhe2048", "ffdhe2048", "DH", 0x100, 112, NEW),
    ("ffdhe3072", "ffdhe3072", "DH", 0x101, 128, NEW),
    ("ffdhe4096", "ffdhe4096", "DH", 0x102, 128, NEW),
    ("ffdhe6144", "ffdhe6144", "DH", 0x103, 128, NEW),
    ("ffdhe8192", "ffdhe8192", "DH", 0x104, 192, NEW),
    ("MLKEM512", "", "ML-KEM-512", 0x200, 128, NEW),
    ("MLKEM768", "", "ML-KEM-768", 0x201, 192, NEW),
    ("MLKEM1024", "", "ML-KEM-1024", 0x202, 256, NEW),
];

/// Signatures: name in TLS, the kind of keys, object identifier, number, bits of security.
#[rustfmt::skip]
const SIGNATURES: [(&str, &str, &str, i32, i32); 3] = [
    ("mldsa44", "ML-DSA-44", "2.16.840.1.101.3.4.3.17", 0x904, 128),
    ("mldsa65", "ML-DSA-65", "2.16.840.1.101.3.4.3.18", 0x905, 192),
    ("mldsa87", "ML-DSA-87", "2.16.840.1.101.3.4.3.19", 0x906, 256),
];

fn versions(params: Builder, [first, last, first_dtls, last_dtls]: Versions) -> Builder {
    let params = params.number(c"tls-min-tls", first).number(c"tls-max-tls", last);
    params.number(c"tls-min-dtls", first_dtls).number(c"tls-max-dtls", last_dtls)
}

fn group(row: &Group) -> Builder {
    let (name, internal, algorithm, number, bits, when) = *row;
    let params = Builder::default().text(c"tls-group-name", name);
    let params = params.text(c"tls-group-name-internal", internal);
    let params = params.text(c"tls-group-alg", algorithm).number(c"tls-group-id", number);
    let params = params.number(c"tls-group-sec-bits", bits);
    versions(params.number(c"tls-group-is-kem", internal.is_empty().into()), when)
}

/// Those of two keys that there are.
fn hybrid(provider: &Provider) -> impl Iterator<Item = Builder> {
    let on = HYBRID.iter().filter(|_| provider.hybrid_groups);
    on.filter(|row| row.is_offered(provider)).map(|row| {
        let name = row.name.to_str().unwrap_or_default();
        let security = i32::try_from(row.security()).unwrap_or_default();
        group(&(name, "", name, row.number, security, NEW))
    })
}

pub(super) extern "C" fn capabilities(
    home: Home,
    asked: Text,
    callback: Callback,
    argument: Argument,
) -> c_int {
    caught(1, || {
        // Nor does a module that makes connections while it is being loaded learn of any.
        let Some(provider) = home.get().filter(|_| !Provider::is_loading()) else { return 1 };
        let offer = provider.offer();
        let known = |name, curve: &str| match &offer {
            _ if provider.mode == Mode::Keys => false,
            Offer::All => true,
            Offer::Of(token) => KINDS.iter().any(|kind| {
                kind.text() == name && generate::has(provider, token, kind, curve_named(curve))
            }),
            Offer::Nothing => false,
        };
        let mut rows: Vec<Builder> = match asked.get() {
            Some("TLS-GROUP") => {
                let rows = GROUPS.iter().filter(|row| known(row.2, row.1)).map(group);
                rows.chain(hybrid(provider)).collect()
            }
            Some("TLS-SIGALG") => {
                let rows = SIGNATURES.iter().filter(|row| known(row.1, ""));
                rows.map(|(name, kind, oid, number, bits)| {
                    let params = Builder::default().text(c"tls-sigalg-iana-name", name);
                    let params = params.text(c"tls-sigalg-name", kind);
                    let params = params.text(c"tls-sigalg-oid", oid);
                    let params = params.number(c"tls-sigalg-code-point", *number);
                    versions(params.number(c"tls-sigalg-sec-bits", *bits), NEW)
                })
                .collect()
            }
            _ => Vec::new(),
        };
        let mut all = rows.iter_mut();
        c_int::from(all.all(|row| row.build(|params| callback.call(params, argument))))
    })
}
