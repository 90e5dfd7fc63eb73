//! The bare stream to a server: a unix socket, or TCP to whichever address of the host answers.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use nix::unistd::{Uid, User};
use rand::seq::SliceRandom as _;
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;

use super::conninfo::ConnSpec;
use super::conninfo::options::Keepalive;
use super::refused::{ConnectFault, Failure, Stage};

pub(super) async fn unix(path: &str, spec: &ConnSpec) -> Result<UnixStream, Failure> {
    let stream = match path.strip_prefix('@') {
        None => UnixStream::connect(path).await,
        Some(name) => abstract_socket(name),
    }
    .map_err(|e| network(&e, path))?;
    if let Some(wanted) = &spec.options.require_peer {
        let peer = stream
            .peer_cred()
            .ok()
            .and_then(|peer| User::from_uid(Uid::from_raw(peer.uid())).ok().flatten());
        let name = peer.map_or_else(|| "somebody unknown".to_owned(), |user| user.name);
        if name != *wanted {
            let detail = format!("the server is run by {name}, and requirepeer is {wanted}");
            return Err((ConnectFault::Login, detail));
        }
    }
    Ok(stream)
}

fn abstract_socket(name: &str) -> io::Result<UnixStream> {
    // A zero byte before the name makes it one. Without blocking: a full queue of the server's is an error at once.
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(format!("\0{name}"))?)?;
    UnixStream::from_std(socket.into())
}

pub(super) async fn tcp(
    spec: &ConnSpec,
    stage: &Cell<Stage>,
    connect_timeout: Duration,
    balanced: bool,
) -> Result<TcpStream, Failure> {
    let host = spec.hostaddr.as_deref().unwrap_or(&spec.host);
    let mut addresses: Vec<_> = lookup_host((host, spec.port))
        .await
        .map_err(|e| (ConnectFault::Dns, e.to_string()))?
        .collect();
    if balanced {
        addresses.shuffle(&mut rand::rng());
    }
    stage.set(Stage::Tcp);
    let mut last = (ConnectFault::Dns, "no address".to_owned());
    // An address that swallows packets must not eat the time of the next one.
    let share = connect_timeout / u32::try_from(addresses.len() + 1).unwrap_or(2);
    for (n, address) in addresses.iter().enumerate() {
        let attempt = TcpStream::connect(address);
        let connected = match n + 1 < addresses.len() {
            true => timeout(share, attempt)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            false => attempt.await,
        };
        match connected.and_then(|stream| prepared(stream, &spec.options.keepalive)) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = network(&e, &address.to_string()),
        }
    }
    Err(last)
}

fn prepared(stream: TcpStream, keepalive: &Keepalive) -> io::Result<TcpStream> {
    // Many small messages go out in one flight; waiting to fill a packet would cost a round trip.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_keepalive(!keepalive.off)?;
    if !keepalive.off {
        let mut times = TcpKeepalive::new();
        if let Some(idle) = keepalive.idle {
            times = times.with_time(idle);
        }
        if let Some(interval) = keepalive.interval {
            times = times.with_interval(interval);
        }
        if let Some(count) = keepalive.count {
            times = times.with_retries(count);
        }
        socket.set_tcp_keepalive(&times)?;
    }
    socket.set_tcp_user_timeout(keepalive.user_timeout)?;
    Ok(stream)
}

fn network(error: &io::Error, place: &str) -> Failure {
    (ConnectFault::Network, format!("{place}: {error}"))
}
