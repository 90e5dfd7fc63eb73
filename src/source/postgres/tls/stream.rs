//! The encrypted stream, with what channel binding needs of it (RFC 5929, tls-server-end-point).

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::client;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::rfc5912;

use crate::source::postgres::sniff::Sniffed;

/// An encrypted stream.
pub struct Encrypted<S>(Box<client::TlsStream<S>>);

impl<S> Encrypted<S> {
    pub fn new(stream: client::TlsStream<S>) -> Self {
        Self(Box::new(stream))
    }

    fn end_point(&self) -> Option<Vec<u8>> {
        let certificate = self.0.get_ref().1.peer_certificates()?.first()?;
        end_point(certificate)
    }
}

const ECDSA_WITH_SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");

/// The hash of the server's certificate, by the hash of its own signature; SHA-1 and MD5 are lifted to SHA-256.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let oid = Certificate::from_der(certificate)
        .ok()?
        .signature_algorithm
        .oid;
    match oid {
        rfc5912::MD_5_WITH_RSA_ENCRYPTION
        | rfc5912::SHA_1_WITH_RSA_ENCRYPTION
        | ECDSA_WITH_SHA_1
        | rfc5912::SHA_256_WITH_RSA_ENCRYPTION
        | rfc5912::ECDSA_WITH_SHA_256 => Some(Sha256::digest(certificate).to_vec()),
        rfc5912::SHA_384_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_384 => {
            Some(Sha384::digest(certificate).to_vec())
        }
        rfc5912::SHA_512_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_512 => {
            Some(Sha512::digest(certificate).to_vec())
        }
        // A signature without a hash of its own (Ed25519) has no such binding.
        _ => None,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Sniffed<Encrypted<S>> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner()
            .end_point()
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Hands the driver a stream on which the handshake is done.
pub struct Handed;

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<Sniffed<Encrypted<S>>> for Handed {
    type Stream = Sniffed<Encrypted<S>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Stream>>;

    fn connect(self, stream: Sniffed<Encrypted<S>>) -> Self::Future {
        ready(Ok(stream))
    }
}
