// SPDX-License-Identifier: Apache-2.0
//! Why a connection between machines was not made or has ended, and what helps.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;
use std::io::{self, ErrorKind};

/// Why a connection was not made, or has ended.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Of the network.
    Io(io::Error),
    /// The other side says what is no TLS, or not what is asked for.
    Tls(Error),
    /// It says nothing.
    Stalled,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Tls(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                f.write_str("it has ended the connection")
            }
            Self::Io(error) => write!(f, "{error}"),
            Self::Stalled => f.write_str("it says nothing"),
            Self::Tls(error) => match hint(error) {
                Some(hint) => write!(f, "{hint} ({error})"),
                None => write!(f, "{error}"),
            },
        }
    }
}

/// What an error of TLS comes from, where that is known.
fn hint(error: &Error) -> Option<&'static str> {
    use CertificateError as Certificate;
    Some(match error {
        Error::NoCertificatesPresented => "it shows no certificate",
        Error::InvalidMessage(_) => "it does not speak TLS",
        Error::PeerIncompatible(_) => "it does not speak TLS 1.3",
        Error::InvalidCertificate(wrong) => match wrong {
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                "its certificate is not valid yet: check the clocks of both machines"
            }
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                "none of the authorities here vouches for its certificate"
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "its certificate is another host's: --name says whose it should be"
            }
            Certificate::ApplicationVerificationFailure => "no [[client]] names its certificate",
            _ => "its certificate cannot be used",
        },
        Error::AlertReceived(alert) => match alert {
            AlertDescription::AccessDenied => "no [[client]] there names the certificate of here",
            AlertDescription::UnknownCA => {
                "none of the authorities there vouches for the certificate of here"
            }
            // One alert for both.
            AlertDescription::CertificateExpired => {
                "there the certificate of here has expired, or is not valid yet: check the clocks of both machines"
            }
            AlertDescription::CertificateRequired => "a certificate is asked for there",
            AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
                "there the certificate of here cannot be used"
            }
            AlertDescription::ProtocolVersion => "TLS 1.3 is not spoken there",
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_error_stands_before_it() {
        let said = |error: Error| Trouble::from(error).to_string();
        let refused = said(Error::AlertReceived(AlertDescription::AccessDenied));
        assert!(refused.starts_with("no [[client]] there names"), "{refused}");
        assert!(refused.ends_with("AccessDenied)"), "{refused}");
        let other = said(Error::HandshakeNotComplete);
        assert_eq!(other, Error::HandshakeNotComplete.to_string());
        let eof = Trouble::from(io::Error::from(ErrorKind::UnexpectedEof)).to_string();
        assert_eq!(eof, "it has ended the connection");
    }
}
