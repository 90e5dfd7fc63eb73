//! Checks the server's certificate as OpenSSL does for libpq. The TLS library is stricter: it takes no self-signed
//! certificate that is its own root, no version 1 certificate, and no name outside the alternative names.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerIncompatible, RootCertStore,
    SignatureScheme,
};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::{Certificate, Version};

use super::files::Check;
use super::handshake::TlsError;
use super::names;
use crate::model::Verified;

#[derive(Debug)]
pub struct Verifier {
    check: Check,
    host: String,
    /// The chain check of the TLS library; `None` where nothing is checked.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates of the root file that others have signed: links of a chain, not its end.
    links: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(check: Check, host: &str, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let (ends, links): (Vec<_>, Vec<_>) = check.roots.iter().cloned().partition(signs_itself);
        let webpki = match check.level {
            Verified::No => None,
            Verified::Authority | Verified::Host => {
                let mut store = RootCertStore::empty();
                let now = UnixTime::now();
                let fit = ends.into_iter().filter(|root| is_fit_root(root, now));
                let (added, _) = store.add_parsable_certificates(fit);
                if added == 0 {
                    return Err(TlsError::new(
                        "no root certificate to check by: each has expired, isn't an authority's, or isn't its own issuer",
                    ));
                }
                let verifier = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(store),
                    Arc::clone(provider),
                )
                .with_crls(check.crls.clone())
                .enforce_revocation_expiration()
                .build()
                .map_err(|error| TlsError::new(error.to_string()))?;
                Some(verifier)
            }
        };
        Ok(Self {
            check,
            host: host.into(),
            webpki,
            links,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// The chain leads to a root that is trusted.
    fn trusted(
        &self,
        webpki: &WebPkiServerVerifier,
        leaf: &CertificateDer<'_>,
        parsed: &Certificate,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if signs_itself(leaf) && self.check.roots.iter().any(|root| root == leaf) {
            return in_time(parsed, now);
        }
        // The name is looked at later, by other rules: here it stands for any.
        let any = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
        let between: Vec<CertificateDer<'_>> = intermediates
            .iter()
            .chain(&self.links)
            .map(|link| CertificateDer::from(link.as_ref()))
            .collect();
        match webpki.verify_server_cert(leaf, &between, &any, &[], now) {
            Ok(_)
            | Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            Err(_) if parsed.tbs_certificate.version == Version::V1 => {
                in_time(parsed, now)?;
                // The revocation lists are for the TLS library, which doesn't read such a certificate.
                if !self.check.crls.is_empty() {
                    return Err(Error::InvalidCertificate(
                        CertificateError::UnknownRevocationStatus,
                    ));
                }
                self.signed_by_a_root(parsed, now)
            }
            Err(error) => Err(error),
        }
    }

    /// A certificate of version 1 has no extensions: it can only be signed by a root itself.
    fn signed_by_a_root(&self, leaf: &Certificate, now: UnixTime) -> Result<(), Error> {
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let message = leaf.tbs_certificate.to_der().map_err(|_| unknown())?;
        let signature = leaf.signature.raw_bytes();
        let wanted = inner(&leaf.signature_algorithm).ok_or_else(unknown)?;
        let signed = self
            .check
            .roots
            .iter()
            .filter(|root| signs_itself(root) && is_fit_root(root, now))
            .filter_map(|root| Certificate::from_der(root).ok())
            .filter(|root| root.tbs_certificate.subject == leaf.tbs_certificate.issuer)
            .any(|root| {
                let key = &root.tbs_certificate.subject_public_key_info;
                let kind = inner(&key.algorithm);
                self.algorithms.all.iter().any(|algorithm| {
                    algorithm.signature_alg_id().as_ref() == wanted.as_slice()
                        && kind.as_deref() == Some(algorithm.public_key_alg_id().as_ref())
                        && algorithm
                            .verify_signature(
                                key.subject_public_key.raw_bytes(),
                                &message,
                                signature,
                            )
                            .is_ok()
                })
            });
        if signed { Ok(()) } else { Err(unknown()) }
    }

    /// The handshake is signed by the certificate's key. By the bare key, so that the certificate's version is all one.
    fn signed(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
        tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        let parsed = parse(certificate)?;
        let key = &parsed.tbs_certificate.subject_public_key_info;
        let allowed = !tls13
            || !matches!(
                dss.scheme,
                SignatureScheme::RSA_PKCS1_SHA1
                    | SignatureScheme::RSA_PKCS1_SHA256
                    | SignatureScheme::RSA_PKCS1_SHA384
                    | SignatureScheme::RSA_PKCS1_SHA512
                    | SignatureScheme::ECDSA_SHA1_Legacy
            );
        let kind = inner(&key.algorithm);
        let valid = allowed
            && self
                .algorithms
                .mapping
                .iter()
                .filter(|(scheme, _)| *scheme == dss.scheme)
                .flat_map(|(_, algorithms)| algorithms.iter())
                .filter(|algorithm| kind.as_deref() == Some(algorithm.public_key_alg_id().as_ref()))
                .any(|algorithm| {
                    algorithm
                        .verify_signature(
                            key.subject_public_key.raw_bytes(),
                            message,
                            dss.signature(),
                        )
                        .is_ok()
                });
        if valid {
            Ok(HandshakeSignatureValid::assertion())
        } else if allowed {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
        } else {
            Err(PeerIncompatible::NoSignatureSchemesInCommon.into())
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(webpki) = &self.webpki {
            let parsed = parse(leaf)?;
            self.trusted(webpki, leaf, &parsed, intermediates, now)?;
            if self.check.level == Verified::Host && !names::made_out_to(&parsed, &self.host) {
                return Err(Error::InvalidCertificate(CertificateError::NotValidForName));
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, certificate, dss, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, certificate, dss, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Its own issuer: OpenSSL trusts no other end of a chain.
fn signs_itself(certificate: &CertificateDer<'_>) -> bool {
    parse(certificate)
        .is_ok_and(|parsed| parsed.tbs_certificate.subject == parsed.tbs_certificate.issuer)
}

/// In its time, and an authority's by the rules of OpenSSL: the TLS library asks neither of an end that it trusts.
fn is_fit_root(root: &CertificateDer<'_>, now: UnixTime) -> bool {
    let Ok(parsed) = parse(root) else {
        return false;
    };
    let tbs = &parsed.tbs_certificate;
    let usage = tbs.get::<KeyUsage>().ok().flatten().map(|(_, usage)| usage);
    if usage.as_ref().is_some_and(|usage| !usage.key_cert_sign()) {
        return false;
    }
    let authority = match tbs.get::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) => tbs.version == Version::V1 || usage.is_some(),
        Err(_) => false,
    };
    authority && in_time(&parsed, now).is_ok()
}

fn parse(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))
}

fn in_time(certificate: &Certificate, now: UnixTime) -> Result<(), Error> {
    let validity = &certificate.tbs_certificate.validity;
    let now = now.as_secs();
    if now < validity.not_before.to_unix_duration().as_secs() {
        Err(Error::InvalidCertificate(CertificateError::NotValidYet))
    } else if now > validity.not_after.to_unix_duration().as_secs() {
        Err(Error::InvalidCertificate(CertificateError::Expired))
    } else {
        Ok(())
    }
}

/// The content of an AlgorithmIdentifier, without its own tag and length: as the TLS library names algorithms.
fn inner(algorithm: &AlgorithmIdentifierOwned) -> Option<Vec<u8>> {
    let mut bytes = algorithm.oid.to_der().ok()?;
    if let Some(parameters) = &algorithm.parameters {
        bytes.extend(parameters.to_der().ok()?);
    }
    Some(bytes)
}
