//! Certificates, keys and revocation lists off the disk, with libpq's rules on which must exist and who may read them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureScheme};

use super::handshake::TlsError;
use crate::model::{Secret, Verified};
use crate::source::postgres::conninfo::options::{Options, Roots, SslMode};

/// How far to check, and by what.
#[derive(Debug)]
pub struct Check {
    pub level: Verified,
    pub roots: Vec<CertificateDer<'static>>,
    pub crls: Vec<CertificateRevocationListDer<'static>>,
}

/// A mode that verifies needs its root file; `require` checks the authority where there is one, and the weaker modes
/// do as well as `require` (libpq's compatibility rule).
pub fn check(options: &Options) -> Result<Check, TlsError> {
    let roots = match &options.roots {
        Roots::System => system_roots()?,
        Roots::File(path) if path.exists() => certificates(path)?,
        Roots::File(path) if options.sslmode >= SslMode::VerifyCa => {
            return Err(TlsError::new(format!(
                "root certificate file {} doesn't exist: give one with sslrootcert, or sslrootcert=system",
                path.display()
            )));
        }
        Roots::Nowhere if options.sslmode >= SslMode::VerifyCa => {
            return Err(TlsError::new(
                "no root certificate to check by: give one with sslrootcert",
            ));
        }
        Roots::File(_) | Roots::Nowhere => Vec::new(),
    };
    let level = match options.sslmode {
        _ if roots.is_empty() => Verified::No,
        SslMode::VerifyFull => Verified::Host,
        _ => Verified::Authority,
    };
    Ok(Check {
        level,
        roots,
        crls: revocation_lists(options),
    })
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(TlsError::new(
            "sslrootcert=system: the system has no root certificates (ca-certificates, or SSL_CERT_FILE)",
        ));
    }
    Ok(found.certs)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable =
        |what: String| TlsError::new(format!("certificate file {}: {what}", path.display()));
    let all: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .map_err(|error| unreadable(error.to_string()))?
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(error.to_string()))?;
    if all.is_empty() {
        return Err(unreadable("there is no certificate in it".into()));
    }
    Ok(all)
}

/// A list that isn't there is none; one that is makes every certificate of the chain need an answer.
fn revocation_lists(options: &Options) -> Vec<CertificateRevocationListDer<'static>> {
    let in_folder = options
        .crl_dir
        .iter()
        .filter_map(|folder| folder.read_dir().ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    options
        .crl
        .clone()
        .into_iter()
        .chain(in_folder)
        .filter_map(|path| CertificateRevocationListDer::pem_file_iter(path).ok())
        .flatten()
        .filter_map(Result::ok)
        .collect()
}

/// What is sent when the server asks for a certificate, and whether it did.
#[derive(Debug)]
pub struct ClientCertificate {
    key: Option<Arc<CertifiedKey>>,
    asked: Arc<AtomicBool>,
}

impl ClientCertificate {
    pub fn none() -> Self {
        Self {
            key: None,
            asked: Arc::default(),
        }
    }

    pub fn is_some(&self) -> bool {
        self.key.is_some()
    }

    pub fn asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        // Also without one: only so is it told that the server asked.
        true
    }
}

/// The certificate and its key; none where there is no certificate file.
pub fn client_certificate(
    options: &Options,
    provider: &CryptoProvider,
) -> Result<ClientCertificate, TlsError> {
    let Some(path) = options.cert.as_deref().filter(|path| path.exists()) else {
        return Ok(ClientCertificate::none());
    };
    let chain = certificates(path)?;
    let Some(key_path) = options.key.as_deref().filter(|path| path.exists()) else {
        return Err(TlsError::new(format!(
            "client certificate {} is there, and its private key isn't (sslkey)",
            path.display()
        )));
    };
    let shown = key_path.display();
    private(key_path)?;
    let der = private_key(key_path, options.key_password.as_ref())?;
    let key = provider
        .key_provider
        .load_private_key(der)
        .map_err(|error| TlsError::new(format!("private key {shown}: {error}")))?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsError::new(format!(
                "client certificate {} and private key {shown} don't belong together",
                path.display()
            )))
        }
        // A certificate of version 1 isn't read by the TLS library: the server will tell.
        _ => Ok(ClientCertificate {
            key: Some(Arc::new(certified)),
            asked: Arc::default(),
        }),
    }
}

/// libpq: a key of one's own is for nobody else; one of root's may be read by a group.
fn private(path: &Path) -> Result<(), TlsError> {
    let shown = path.display();
    let meta = path
        .metadata()
        .map_err(|error| TlsError::new(format!("private key {shown}: {error}")))?;
    if !meta.is_file() {
        return Err(TlsError::new(format!(
            "private key {shown} is no plain file"
        )));
    }
    let mode = meta.permissions().mode();
    let others = if meta.uid() == 0 && !nix::unistd::geteuid().is_root() {
        mode & 0o027
    } else {
        mode & 0o077
    };
    // What root owns may be 0640, also for root itself.
    let allowed = others == 0 || (meta.uid() == 0 && mode & 0o037 == 0);
    if allowed {
        Ok(())
    } else {
        Err(TlsError::new(format!(
            "others may read private key {shown}: not used (chmod 600 makes it so)"
        )))
    }
}

/// PEM (also under a passphrase, PKCS #8), or DER.
fn private_key(path: &Path, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| TlsError::new(format!("private key {shown}: {error}")))?;
    if let Ok(key) = PrivateKeyDer::from_pem_slice(&bytes) {
        return Ok(key);
    }
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        let Some(password) = password else {
            return Err(TlsError::new(format!(
                "private key {shown} is under a passphrase (sslpassword)"
            )));
        };
        let opened = pkcs8::der::SecretDocument::from_pem(&text)
            .ok()
            .and_then(|(_, document)| {
                pkcs8::EncryptedPrivateKeyInfo::try_from(document.as_bytes())
                    .ok()?
                    .decrypt(password.expose())
                    .ok()
            });
        return opened
            .map(|key| PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
            .ok_or_else(|| {
                TlsError::new(format!(
                    "private key {shown}: the passphrase doesn't open it (sslpassword)"
                ))
            });
    }
    if text.contains("ENCRYPTED") {
        return Err(TlsError::new(format!(
            "private key {shown} is in OpenSSL's old encrypted form: openssl pkcs8 -topk8 makes a new one"
        )));
    }
    PrivateKeyDer::try_from(bytes)
        .map_err(|_| TlsError::new(format!("private key {shown}: not a private key")))
}
