//! A server that shows another's certificate without having its key. No real server can be made to do so: this one is
//! a fake that speaks PostgreSQL's question about TLS, and then TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{command, run};
use crate::pki::Pki;

#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// The certificate of one file, the key of another.
fn config(
    certificate: &Path,
    key: &Path,
    version: &'static SupportedProtocolVersion,
) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .expect("the certificate")
        .collect::<Result<_, _>>()
        .expect("the certificate");
    let key = PrivateKeyDer::from_pem_file(key).expect("the key");
    let key = provider
        .key_provider
        .load_private_key(key)
        .expect("the key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("the version")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shows(Arc::new(CertifiedKey::new(chain, key)))));
    Arc::new(config)
}

/// Whether a client that comes finishes the handshake.
async fn finishes(listener: &TcpListener, config: Arc<ServerConfig>) -> io::Result<bool> {
    let (mut stream, _) = listener.accept().await?;
    let mut question = [0; 8];
    stream.read_exact(&mut question).await?;
    stream.write_all(b"S").await?;
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    Ok(acceptor.accept(stream).await.is_ok())
}

#[tokio::test]
async fn a_certificate_without_its_key_is_refused() {
    let pki = Pki::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("a port").port();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for (certificate, key, honest) in [
            ("server", "server", true),
            ("server", "client", false),
            ("v1", "v1", true),
            ("v1", "client", false),
        ] {
            let config = config(
                &pki.path(&format!("{certificate}.crt")),
                &pki.path(&format!("{key}.key")),
                version,
            );
            for mode in ["require", "verify-full"] {
                let conninfo = format!(
                    "host=localhost hostaddr=127.0.0.1 port={port} user=u dbname=d sslmode={mode} sslrootcert={}",
                    pki.path("ca.crt").display()
                );
                let args = ["doctor", "-d", &conninfo, "--connect-timeout", "5s"];
                let client = command(&args);
                let client = tokio::task::spawn_blocking(move || run(client));
                let finished = finishes(&listener, Arc::clone(&config))
                    .await
                    .expect("a client comes");
                let client = client.await.expect("it ends").expect_code(3);
                let what = format!("{version:?} {certificate} {key} {mode}: {}", client.stderr);
                assert_eq!(finished, honest, "{what}");
                let refused = client.stderr.contains("certificate doesn't pass");
                assert_eq!(refused, !honest, "{what}");
            }
        }
    }
}
