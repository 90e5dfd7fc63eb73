//! Watches the start of a connection: for the process id that the server gives out in BackendKeyData, and for the way of
//! authentication that it asks for.
//!
//! A pooler gives out an id of its own making, so an id that differs from `pg_backend_pid()` tells that one stands
//! between. The driver keeps the id to itself, and knows no `require_auth`, hence this thin layer under it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::conninfo::options::{AuthMethod, AuthRule};

/// A byte stream that passes everything through.
pub struct Sniffed<S> {
    inner: S,
    state: State,
    key_pid: Arc<AtomicI32>,
}

/// Where in the server's messages the next byte lies: a message is one type byte, four of length, then its body.
struct State {
    header: Vec<u8>,
    body_left: usize,
    body: Vec<u8>,
    done: bool,
    /// `require_auth`.
    rule: Option<AuthRule>,
    /// The server has asked for a way of authentication.
    asked: bool,
    /// What it asked for and may not have.
    refused: Option<AuthMethod>,
}

const AUTHENTICATION: u8 = b'R';
const BACKEND_KEY_DATA: u8 = b'K';
const READY_FOR_QUERY: u8 = b'Z';
const HEADER: usize = 5;

impl<S> Sniffed<S> {
    /// The second part holds the id once the login is done, 0 until then.
    pub fn new(inner: S, rule: Option<AuthRule>) -> (Self, Arc<AtomicI32>) {
        let key_pid = Arc::new(AtomicI32::new(0));
        let state = State {
            header: Vec::with_capacity(HEADER),
            body_left: 0,
            body: Vec::new(),
            done: false,
            rule,
            asked: false,
            refused: None,
        };
        (
            Self {
                inner,
                state,
                key_pid: Arc::clone(&key_pid),
            },
            key_pid,
        )
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl State {
    /// Takes bytes in whatever pieces they come; tells the process id when its message is whole.
    fn feed(&mut self, mut bytes: &[u8]) -> Option<i32> {
        let mut found = None;
        while !self.done && !bytes.is_empty() {
            if self.body_left == 0 && self.header.len() < HEADER {
                self.header.push(bytes[0]);
                bytes = &bytes[1..];
                if self.header.len() == HEADER {
                    let length = u32::from_be_bytes([
                        self.header[1],
                        self.header[2],
                        self.header[3],
                        self.header[4],
                    ]);
                    self.body_left = (length as usize).saturating_sub(4);
                    self.body.clear();
                }
            } else {
                let take = self.body_left.min(bytes.len());
                if matches!(self.header[0], BACKEND_KEY_DATA | AUTHENTICATION) {
                    self.body.extend_from_slice(&bytes[..take]);
                }
                self.body_left -= take;
                bytes = &bytes[take..];
            }
            if self.header.len() == HEADER && self.body_left == 0 {
                if let Some(number) = self.body.first_chunk::<4>() {
                    let number = i32::from_be_bytes(*number);
                    match self.header[0] {
                        BACKEND_KEY_DATA => found = Some(number),
                        AUTHENTICATION => self.authentication(number),
                        _ => {}
                    }
                }
                self.done = self.header[0] == READY_FOR_QUERY;
                self.header.clear();
            }
        }
        found
    }

    /// The server asks for a way of authentication, or is content (0).
    fn authentication(&mut self, code: i32) {
        let method = match code {
            3 => AuthMethod::Password,
            5 => AuthMethod::Md5,
            7 | 8 => AuthMethod::Gss,
            9 => AuthMethod::Sspi,
            10 => AuthMethod::Scram,
            0 if !self.asked => AuthMethod::None,
            _ => return,
        };
        self.asked = true;
        if self.rule.as_ref().is_some_and(|rule| !rule.allows(method)) {
            self.refused = Some(method);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        if !self.state.done
            && let Some(pid) = self.state.feed(&buf.filled()[before..])
        {
            self.key_pid.store(pid, Ordering::Relaxed);
        }
        // Before the driver sees the question, so that no password goes out.
        if let Some(method) = self.state.refused {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "the server asks for authentication {:?}, which require_auth doesn't allow",
                    method.as_str()
                ),
            )));
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        // A backend's socket closes when its process is gone (PostgreSQL keeps it open until then): only now is its slot
        // free for the next run, and its row out of pg_stat_activity.
        let mut rest = [0; 512];
        loop {
            let mut rest = ReadBuf::new(&mut rest);
            match ready!(Pin::new(&mut self.inner).poll_read(cx, &mut rest)) {
                Ok(()) if !rest.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_id_however_the_bytes_are_cut() {
        let mut wire = vec![b'R', 0, 0, 0, 8, 0, 0, 0, 0];
        wire.extend([b'S', 0, 0, 0, 8, b'K', 0, b'K', 0]);
        wire.extend([b'K', 0, 0, 0, 12, 0, 0, 0x30, 0x39, 1, 2, 3, 4]);
        wire.extend([b'Z', 0, 0, 0, 5, b'I']);
        wire.extend([b'K', 0, 0, 0, 12, 9, 9, 9, 9, 1, 2, 3, 4]);
        for size in 1..=wire.len() {
            let (mut sniffed, _) = Sniffed::new((), None);
            let found: Vec<i32> = wire
                .chunks(size)
                .filter_map(|part| sniffed.state.feed(part))
                .collect();
            assert_eq!(found, [12345], "cut in pieces of {size}");
        }
    }
}
