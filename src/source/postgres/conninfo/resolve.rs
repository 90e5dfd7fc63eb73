//! The layers of what was given, laid over one another, and the plan that comes of them.

use std::path::Path;
use std::time::Duration;

use super::keywords::KEYWORDS;
use super::layer::Layer;
use super::options::{self, Options, number};
use super::passfile::Passfile;
use super::{ConnInput, ConnInputError, ConnSpec, Environment, Plan, keyvalue, service, url};
use crate::model::{Origin, Parameter};

const PORT: u16 = 5432;
/// Where servers put their sockets: Debian's and Red Hat's packages, PostgreSQL's own default.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Flag > URL or string > service > `PG*` > `DATABASE_URL` > libpq's defaults.
///
/// # Errors
/// When a value can't be read, a service isn't found, or two values exclude each other.
pub fn resolve(input: &ConnInput, env: &Environment) -> Result<Plan, ConnInputError> {
    let mut layer = flags(input);
    let (given, whole) = given(input)?;
    layer.under(given);
    let named = |layer: &Layer| layer.has("host") || layer.has("hostaddr") || layer.has("service");
    let placed = whole || named(&layer);
    let environment = environment(env);
    let service_name = ["service", "servicefile"].map(|name| {
        let of = |layer: &Layer| layer.text(name).map(str::to_owned);
        of(&layer).or_else(|| of(&environment))
    });
    if let [Some(name), file] = &service_name {
        layer.under(service::load(name, file.as_deref(), env)?);
    }
    if let Some(name) = input.default_database.filter(|_| !layer.has("dbname")) {
        layer.set_named("dbname", name, Origin::Default)?;
    }
    let placed = placed || named(&environment);
    layer.under(environment);
    let mine = database_url(env, &layer, placed)?;
    layer.under(mine);
    plan(input, layer, env)
}

fn flags(input: &ConnInput) -> Layer {
    let mut layer = Layer::default();
    layer.flag("host", input.host.clone(), "-h");
    layer.flag("port", input.port.clone(), "-p");
    layer.flag("user", input.user.clone(), "-U");
    layer
}

/// What `-d` or the target says; whether it is a whole address, or only a database's name.
fn given(input: &ConnInput) -> Result<(Layer, bool), ConnInputError> {
    let Some(text) = input.dbname.as_deref() else {
        return Ok((Layer::default(), false));
    };
    let origin = |plain: Origin| match &input.target_name {
        Some(name) => Origin::Target { name: name.clone() },
        None => plain,
    };
    if url::is_url(text) {
        return Ok((url::parse(text, &origin(Origin::Url))?, true));
    }
    let origin = origin(Origin::Conninfo);
    if text.contains('=') {
        return Ok((keyvalue::parse(text, &origin)?, true));
    }
    let mut layer = Layer::default();
    layer.set_named("dbname", text, origin)?;
    Ok((layer, false))
}

fn environment(env: &Environment) -> Layer {
    let mut layer = Layer::default();
    for keyword in KEYWORDS {
        let Some(variable) = keyword.variable else {
            continue;
        };
        if let Some(value) = env.get(variable).filter(|value| !value.is_empty()) {
            layer.set(keyword, value.as_str(), Origin::environment(variable));
        }
    }
    layer
}

/// `DATABASE_URL`, where nothing else says which server is meant: its login and password have no business elsewhere.
/// Where the very same place and login are named, its password is still theirs. Many applications keep URLs of other
/// kinds there, and parameters of their drivers.
fn database_url(env: &Environment, above: &Layer, placed: bool) -> Result<Layer, ConnInputError> {
    let Some(url) = env.get("DATABASE_URL").and_then(|url| postgres_url(url)) else {
        return Ok(Layer::default());
    };
    let (place, query) = url.split_once('?').unwrap_or((&url, ""));
    let query: Vec<String> = query.split('&').filter_map(known_pair).collect();
    let url = format!("{place}?{}", query.join("&"));
    let mut layer = match url::parse(&url, &Origin::environment("DATABASE_URL")) {
        Ok(layer) => layer,
        Err(_) if placed => return Ok(Layer::default()),
        Err(error) => return Err(ConnInputError::DatabaseUrl(error.to_string())),
    };
    let port = PORT.to_string();
    let same = |name: &str, default: Option<&str>| {
        let above = above.text(name).or(default);
        above.is_some() && above == layer.text(name).or(default)
    };
    if placed {
        let its_own = same("host", None) && same("port", Some(&port)) && same("user", None);
        let mut only = Layer::default();
        if let (true, Some(password)) = (its_own, layer.take("password")) {
            only.put("password", password);
        }
        return Ok(only);
    }
    // Its password is for its own login at its own port.
    let differs = |name: &str| {
        let above = above.text(name);
        above.is_some() && above != layer.text(name)
    };
    if differs("user") || differs("port") {
        layer.remove("password");
    }
    Ok(layer)
}

/// A parameter that libpq knows, in its words; what is only for a driver is left out.
fn known_pair(pair: &str) -> Option<String> {
    match pair.split_once('=')? {
        ("ssl", "true") => Some("sslmode=require".into()),
        // Of the drivers of Node.js: encrypted, and nothing checked.
        ("sslmode", "no-verify") => Some("sslmode=require".into()),
        // Never sent.
        ("options", _) => None,
        (key, _) => KEYWORDS
            .iter()
            .any(|keyword| keyword.name == key)
            .then(|| pair.to_owned()),
    }
}

/// `postgresql+driver://…` is how some applications spell it.
fn postgres_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.split('+').next()?;
    matches!(scheme, "postgresql" | "postgres").then(|| format!("postgresql://{rest}"))
}

fn plan(input: &ConnInput, layer: Layer, env: &Environment) -> Result<Plan, ConnInputError> {
    let mut shown = Vec::new();
    let mut text_or = |name: &str, default: String, origin: Origin| match layer.text(name) {
        Some(text) => text.to_owned(),
        None => {
            shown.push(parameter(name, &default, origin));
            default
        }
    };
    let (account, origin) = match (&env.account, env.get("USER")) {
        (Some((name, _)), _) => (name.clone(), Origin::System),
        (None, Some(name)) => (name.clone(), Origin::environment("USER")),
        (None, None) => ("postgres".to_owned(), Origin::Default),
    };
    let user = text_or("user", account, origin);
    let database = text_or("dbname", user.clone(), Origin::Default);
    let options = Options::of(&layer, env).map_err(|error| of_its_origin(error, &layer))?;
    text_or(
        "sslmode",
        options.sslmode.as_str().to_owned(),
        Origin::Default,
    );
    text_or("port", PORT.to_string(), Origin::Default);
    let (passfile, warning) = match layer.text("password") {
        Some(_) => (None, None),
        None => Passfile::load(layer.text("passfile"), env),
    };
    // With another place or login than the target's, its name would lead the next command astray.
    let name = input
        .target_name
        .clone()
        .filter(|_| input.host.is_none() && input.port.is_none() && input.user.is_none());
    let mut places = Vec::new();
    for place in hosts(&layer)? {
        let mut spec = ConnSpec {
            name: name.clone(),
            host: place.host,
            hostaddr: place.hostaddr,
            unnamed: place.unnamed,
            port: place.port,
            user: user.clone(),
            database: database.clone(),
            password: layer.text("password").map(crate::model::Secret::new),
            options: options.clone(),
        };
        if let (None, Some(file)) = (&spec.password, &passfile) {
            spec.password = file.password(&spec, place.default_socket);
        }
        places.push(spec);
    }
    if !layer.has("host") && !layer.has("hostaddr") {
        shown.push(parameter("host", &places[0].host, Origin::Default));
    }
    if let Some(file) = passfile.filter(|_| {
        layer.text("password").is_none() && places.iter().any(|place| place.password.is_some())
    }) {
        let file = file.path().display().to_string();
        shown.push(parameter(
            "password",
            Parameter::SECRET,
            Origin::Passfile { file },
        ));
    }
    let given = layer
        .shown()
        .map(|(name, value, origin)| parameter(name, &value, origin));
    let mut parameters: Vec<Parameter> = given.chain(shown).collect();
    parameters.sort_by_key(|parameter| {
        KEYWORDS
            .iter()
            .position(|keyword| keyword.name == parameter.name)
    });
    Ok(Plan {
        session: options::session_attrs(&layer)?,
        balanced: options::balanced(&layer)?,
        // 0 or less would be no limit in libpq: a limit is always kept here.
        connect_timeout: number(&layer, "connect_timeout")?
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        warnings: warning.into_iter().collect(),
        places,
        parameters,
    })
}

/// A fault in `DATABASE_URL` names it: the person hasn't written it on this command line.
fn of_its_origin(error: ConnInputError, layer: &Layer) -> ConnInputError {
    match &error {
        ConnInputError::BadValue { name, .. }
            if layer
                .get(name)
                .is_some_and(|given| given.origin == Origin::environment("DATABASE_URL")) =>
        {
            ConnInputError::DatabaseUrl(error.to_string())
        }
        _ => error,
    }
}

fn parameter(name: &str, value: &str, origin: Origin) -> Parameter {
    Parameter {
        name: name.into(),
        value: value.into(),
        origin,
    }
}

struct Place {
    host: String,
    hostaddr: Option<String>,
    unnamed: bool,
    port: u16,
    /// No host was given: a password file calls it `localhost`.
    default_socket: bool,
}

/// Hosts, addresses and ports side by side.
fn hosts(layer: &Layer) -> Result<Vec<Place>, ConnInputError> {
    let list = |name: &str| -> Vec<String> {
        let text = layer.text(name).unwrap_or_default();
        text.split(',').map(|part| part.trim().to_owned()).collect()
    };
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let has_addresses = layer.text("hostaddr").is_some();
    let has_names = layer.text("host").is_some();
    let count = if has_addresses {
        addresses.len()
    } else {
        names.len()
    };
    if has_addresses && has_names && names.len() != count {
        return Err(ConnInputError::Counts {
            names: names.len(),
            others: count,
            what: "addresses",
        });
    }
    if ports.len() != 1 && ports.len() != count {
        return Err(ConnInputError::Counts {
            names: count,
            others: ports.len(),
            what: "ports",
        });
    }
    (0..count)
        .map(|n| {
            let port = ports.get(n).unwrap_or(&ports[0]);
            let port = match port.as_str() {
                "" => PORT,
                text => text
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or(ConnInputError::BadPort)?,
            };
            let name = names.get(n).filter(|name| !name.is_empty());
            let address = addresses.get(n).filter(|address| !address.is_empty());
            let default_socket = name.is_none() && address.is_none();
            Ok(Place {
                default_socket: default_socket
                    || name.is_some_and(|name| name == SOCKET_FOLDERS[0]),
                host: name
                    .or(address)
                    .cloned()
                    .unwrap_or_else(|| default_host(port)),
                hostaddr: address.cloned(),
                unnamed: name.is_none() && address.is_some(),
                port,
            })
        })
        .collect()
}

/// The first usual socket directory that has a server's socket, else `localhost`.
fn default_host(port: u16) -> String {
    SOCKET_FOLDERS
        .into_iter()
        .find(|dir| Path::new(dir).join(format!(".s.PGSQL.{port}")).exists())
        .unwrap_or("localhost")
        .to_owned()
}

/// The text holds a password: on a command line others can read it.
pub fn has_password(text: &str) -> bool {
    parsed(text).is_some_and(|layer| layer.text("password").is_some())
}

fn parsed(text: &str) -> Option<Layer> {
    if url::is_url(text) {
        url::parse(text, &Origin::Url).ok()
    } else if text.contains('=') {
        keyvalue::parse(text, &Origin::Conninfo).ok()
    } else {
        None
    }
}

/// It is a URL or a key=value string: more than the name of a database or target.
pub fn names_a_place(text: &str) -> bool {
    url::is_url(text) || text.contains('=')
}

/// `DATABASE_URL` would be looked at for the place, and is a URL of something else.
pub fn passes_over_database_url(input: &ConnInput, env: &Environment) -> bool {
    let set = |name: &str| env.get(name).is_some_and(|value| !value.is_empty());
    let placed = input.host.is_some()
        || input.dbname.as_deref().is_some_and(names_a_place)
        || ["PGHOST", "PGHOSTADDR", "PGSERVICE"].into_iter().any(set);
    !placed
        && env
            .get("DATABASE_URL")
            .is_some_and(|url| !url.is_empty() && postgres_url(url).is_none())
}

/// What is wrong with the `db` of a target: it is a URL, a key=value string or a database name, without a password.
///
/// # Errors
/// The fault in words.
pub fn check_target(text: &str) -> Result<(), String> {
    let layer = if url::is_url(text) {
        url::parse(text, &Origin::Url)
    } else if text.contains('=') {
        keyvalue::parse(text, &Origin::Conninfo)
    } else {
        return Ok(());
    };
    match layer {
        Ok(layer)
            if ["password", "sslpassword"]
                .iter()
                .any(|name| layer.has(name)) =>
        {
            Err("a password doesn't belong in this file; use ~/.pgpass or PGPASSWORD".into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
