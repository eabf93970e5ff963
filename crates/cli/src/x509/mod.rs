// SPDX-License-Identifier: Apache-2.0
//! X.509 certificates (RFC 5280) and requests for them (RFC 2986): made by a key of a token, and read.

mod build;
pub(crate) mod cms;
mod crl;
mod extension;
mod name;
mod public;
mod read;
mod request;
mod signed;
mod time;

pub(crate) use build::{Algorithm, How, Subject, certificate, request};
pub(crate) use crl::{List, Revocations, entry, serial};
pub(crate) use extension::{
    alternative_name, alternative_names, authority, certifies, certifies_no_issuer, constraints,
    extended_usage, identifier_in, key_identifier, may, names, shown_name, usage, wanted_names,
};
pub(crate) use name::{is_name, name, shown};
pub(crate) use public::PublicKey;
pub(crate) use read::{Certificate, key_bits};
pub(crate) use request::Request;
pub(crate) use time::{Time, seconds};
