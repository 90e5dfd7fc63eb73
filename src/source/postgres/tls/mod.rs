//! TLS to PostgreSQL with libpq's meaning of each mode. The driver is handed a finished stream: it knows only three of
//! the six modes, never checks a certificate by itself, and doesn't tell what was agreed.

mod files;
mod handshake;
mod names;
mod stream;
mod verify;

use super::conninfo::options::SslMode;

pub use handshake::encrypt;
pub use stream::Handed;

/// In which order a mode tries with and without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Clear,
    Tls,
}

/// libpq's order: `prefer` and `allow` fall back.
pub fn ways(mode: SslMode) -> &'static [Way] {
    match mode {
        SslMode::Disable => &[Way::Clear],
        SslMode::Allow => &[Way::Clear, Way::Tls],
        SslMode::Prefer => &[Way::Tls, Way::Clear],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Way::Tls],
    }
}
