//! `postgresql://[user[:password]@][host[:port]][,…][/database][?parameter=value&…]`, read as libpq reads it.

use percent_encoding::percent_decode_str;

use super::ConnInputError;
use super::layer::Layer;
use crate::model::Origin;

/// It begins with a scheme, of PostgreSQL or of something else. A string may have `://` in a value.
pub fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

fn bad(what: &str) -> ConnInputError {
    ConnInputError::BadUrl(what.to_owned())
}

/// # Errors
/// What is wrong with it, without the text itself: it may hold a password.
pub fn parse(url: &str, origin: &Origin) -> Result<Layer, ConnInputError> {
    let rest = url
        .strip_prefix("postgresql://")
        .or_else(|| url.strip_prefix("postgres://"))
        .ok_or_else(|| bad("it must begin with postgresql:// or postgres://"))?;
    let mut layer = Layer::default();
    let mut set = |name: &str, text: &str| -> Result<(), ConnInputError> {
        if text.is_empty() {
            return Ok(());
        }
        layer.set_named(name, decode(text)?, origin.clone())
    };
    // A login ends at the first '@' before any '/'.
    let credentials = rest
        .find(['@', '/'])
        .filter(|at| rest[*at..].starts_with('@'));
    let place = match credentials {
        Some(at) => {
            let login = &rest[..at];
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            set("user", user)?;
            set("password", password)?;
            &rest[at + 1..]
        }
        None => rest,
    };
    let (hosts, ports, rest) = places(place)?;
    if hosts.contains('@') {
        return Err(bad(
            "a second '@': write '@', '/' and ':' in a user or password as %40, %2F and %3A",
        ));
    }
    set("host", &hosts)?;
    set("port", &ports)?;
    let (database, query) = match rest.strip_prefix('/') {
        Some(path) => path.split_once('?').unwrap_or((path, "")),
        None => ("", rest.strip_prefix('?').unwrap_or("")),
    };
    set("dbname", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        parameter(&mut layer, pair, origin)?;
    }
    Ok(layer)
}

/// `host:port,[::1]:port,…` → hosts, ports (both with as many commas), and what follows.
fn places(text: &str) -> Result<(String, String, &str), ConnInputError> {
    let (mut hosts, mut ports) = (String::new(), String::new());
    let mut rest = text;
    loop {
        let (host, after) = match rest.strip_prefix('[') {
            Some(inside) => {
                let (host, after) = inside
                    .split_once(']')
                    .ok_or_else(|| bad("'[' without ']'"))?;
                if host.is_empty() {
                    return Err(bad("an empty address in brackets"));
                }
                if !(after.is_empty() || after.starts_with([':', '/', '?', ','])) {
                    return Err(bad("text between ']' and what follows the address"));
                }
                (host, after)
            }
            None => rest.split_at(rest.find([':', '/', '?', ',']).unwrap_or(rest.len())),
        };
        hosts.push_str(host);
        rest = after;
        if let Some(port) = rest.strip_prefix(':') {
            let end = port.find(['/', '?', ',']).unwrap_or(port.len());
            ports.push_str(&port[..end]);
            rest = &port[end..];
        }
        match rest.strip_prefix(',') {
            Some(next) => {
                hosts.push(',');
                ports.push(',');
                rest = next;
            }
            None => break,
        }
    }
    // Only commas: no port was given at all.
    if ports.chars().all(|c| c == ',') {
        ports.clear();
    }
    Ok((hosts, ports, rest))
}

fn parameter(layer: &mut Layer, pair: &str, origin: &Origin) -> Result<(), ConnInputError> {
    let (key, value) = pair
        .split_once('=')
        .ok_or_else(|| bad("a parameter without '='"))?;
    if value.contains('=') {
        return Err(bad("a second '=' in a parameter: write it as %3D"));
    }
    let (key, value) = (decode(key)?, decode(value)?);
    // As the JDBC driver spells it; libpq takes it too.
    match (key.as_str(), value.as_str()) {
        ("ssl", "true") => layer.set_named("sslmode", "require", origin.clone()),
        _ => layer
            .set_named(&key, value, origin.clone())
            .map_err(|_| bad("an unknown parameter (write a '&' in a password as %26)")),
    }
}

fn decode(text: &str) -> Result<String, ConnInputError> {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('%') {
        let two = bytes.get(at + 1..at + 3);
        if !two.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)) {
            return Err(bad("a '%' without two hexadecimal digits"));
        }
    }
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| bad("a %-escape is not UTF-8"))?;
    if decoded.contains('\0') {
        return Err(bad("it contains a zero byte"));
    }
    Ok(decoded.into_owned())
}
