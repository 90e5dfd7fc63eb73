//! One handshake: what is offered, what was agreed, and what is said where it fails.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ProtocolVersion, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::stream::Encrypted;
use super::{files, verify};
use crate::model::{Tls, Verified};
use crate::source::postgres::conninfo::ConnSpec;
use crate::source::postgres::conninfo::options::{CertMode, Negotiation, TlsVersion};

/// Why there is no TLS: the whole text is for the person.
#[derive(Debug)]
pub struct TlsError(String);

impl TlsError {
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the stream an encrypted one; the server's certificate is checked as the mode asks.
///
/// # Errors
/// When a file can't be used, the certificate doesn't pass, or the handshake fails.
pub async fn encrypt<S>(spec: &ConnSpec, inner: S) -> Result<(Encrypted<S>, Tls), TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let options = &spec.options;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let check = files::check(options)?;
    let host = (!spec.unnamed).then_some(spec.host.as_str());
    if check.level == Verified::Host && host.is_none() {
        return Err(TlsError::new(
            "sslmode=verify-full needs a host name beside hostaddr",
        ));
    }
    let level = check.level;
    let verifier = verify::Verifier::new(check, host.unwrap_or_default(), &provider)?;
    let certificate = match options.cert_mode {
        CertMode::Disable => files::ClientCertificate::none(),
        CertMode::Allow | CertMode::Require => files::client_certificate(options, &provider)?,
    };
    let asked = certificate.asked();
    let sends = certificate.is_some();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(options.tls_min, options.tls_max)?)
        .map_err(|error| TlsError::new(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(certificate));
    if options.negotiation == Negotiation::Direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    // The verifier checks the name by itself; here it is only what is announced.
    let announced = host.and_then(|host| ServerName::try_from(host.to_owned()).ok());
    config.enable_sni = options.sni && announced.is_some();
    let name = announced.unwrap_or(ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector
        .connect(name, inner)
        .await
        .map_err(|error| TlsError::new(words(&error, &spec.host)))?;
    let (_, session) = stream.get_ref();
    if options.negotiation == Negotiation::Direct && session.alpn_protocol().is_none() {
        return Err(TlsError::new(
            "sslnegotiation=direct: the server doesn't agree to it (PostgreSQL 17 and newer do)",
        ));
    }
    let asked = asked.load(Ordering::Relaxed);
    if options.cert_mode == CertMode::Require && !(asked && sends) {
        return Err(TlsError::new(if asked {
            "sslcertmode=require: there is no client certificate to send (sslcert)"
        } else {
            "sslcertmode=require: the server didn't ask for a client certificate"
        }));
    }
    let facts = Tls {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2".into(),
            _ => "TLSv1.3".into(),
        },
        cipher: session
            .negotiated_cipher_suite()
            .map_or_else(String::new, |suite| {
                format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
            }),
        verified: level,
        client_certificate: asked && sends,
    };
    Ok((Encrypted::new(stream), facts))
}

fn versions(
    min: TlsVersion,
    max: Option<TlsVersion>,
) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let all = [
        (TlsVersion::V1_2, &rustls::version::TLS12),
        (TlsVersion::V1_3, &rustls::version::TLS13),
    ];
    let allowed: Vec<_> = all
        .into_iter()
        .filter(|(version, _)| min <= *version && max.is_none_or(|max| *version <= max))
        .map(|(_, version)| version)
        .collect();
    if allowed.is_empty() {
        return Err(TlsError::new(
            "ssl_max_protocol_version: TLS below 1.2 isn't spoken here",
        ));
    }
    Ok(allowed)
}

/// What went wrong, in a person's words where it is about the certificate.
fn words(error: &std::io::Error, host: &str) -> String {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(fault)) = cause else {
        return match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "the server ended the TLS handshake".into(),
            _ => error.to_string(),
        };
    };
    let why = match fault {
        CertificateError::NotValidForName => format!("it isn't made out to {host}"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it isn't valid yet".into()
        }
        CertificateError::UnknownIssuer => "no root that is trusted has signed it".into(),
        CertificateError::Revoked => "it is revoked".into(),
        CertificateError::UnknownRevocationStatus => {
            "the revocation lists don't tell of it (sslcrl)".into()
        }
        other => format!("{other}"),
    };
    format!("the server's certificate doesn't pass: {why}")
}
