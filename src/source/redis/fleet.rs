//! The way in: one connection to each primary that there is.

use std::ops::RangeInclusive;
use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, Value};

use super::address::{Kind, RedisAddress};
use super::error::{NO_SUCH_PRIMARY, RedisError, Refused, answer};
use super::farewell::farewell;
use super::info::Facts;
use super::slot::slot;
use super::state::{ClusterState, lost_primary};
use super::value;
use crate::model::{RedisCoverage, RedisMode, RedisTarget};

/// How long is waited for a connection, and for each answer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connect: Duration,
    pub answer: Duration,
}

/// One server, and the connection to it.
pub struct Node {
    pub name: String,
    client: Client,
    link: MultiplexedConnection,
    pub(super) commands: u64,
    pub(super) lookups: u64,
    /// It didn't answer: whoever asks many things one after another needn't wait for each.
    pub(super) silent: Option<Refused>,
    /// Something came back over it.
    answered: bool,
}

/// Commands that are on their way.
pub(super) struct Sent {
    answers: tokio::task::JoinHandle<redis::RedisResult<Vec<Value>>>,
    /// Something was answered before over this connection.
    after_others: bool,
}

impl Sent {
    /// An answer each.
    pub async fn answered(self) -> Result<Vec<Value>, Refused> {
        match self.answers.await {
            Ok(values) => values.map_err(|error| told(&error, self.after_others)),
            Err(_) => Err(Refused::Lost("the question was given up".into())),
        }
    }
}

fn told(error: &redis::RedisError, after_others: bool) -> Refused {
    let refused = Refused::of_call(error);
    if after_others {
        refused.in_mid_run()
    } else {
        refused
    }
}

/// All that is asked: one server, or every primary of a cluster.
pub struct Fleet {
    pub nodes: Vec<Node>,
    pub target: RedisTarget,
    /// Which of the nodes serves these slots; empty where there is but one node.
    owners: Vec<(RangeInclusive<u16>, usize)>,
    /// Slots that no primary serves.
    pub slots_unserved: u32,
    /// Primaries of the cluster that couldn't be reached, and why.
    unreached: Vec<String>,
    /// What makes all that is read doubtful, each under the name of its section.
    troubles: Vec<(&'static str, String)>,
    /// Whether the cluster is up isn't told to this login.
    state_untold: bool,
    /// What the first node says of itself; `None` where this login may not ask.
    pub facts: Option<Facts>,
    pub limits: Limits,
}

impl Node {
    async fn open(
        info: &ConnectionInfo,
        address: &RedisAddress,
        limits: Limits,
    ) -> Result<Self, Refused> {
        match Self::let_in(info, address, limits).await {
            Err(lost @ Refused::Lost(_)) => Err(farewell(info, limits).await.unwrap_or(lost)),
            opened => opened,
        }
    }

    async fn let_in(
        info: &ConnectionInfo,
        address: &RedisAddress,
        limits: Limits,
    ) -> Result<Self, Refused> {
        let lost = |error: redis::RedisError| Refused::of_call(&error);
        let client = match (&address.tls.ca, &address.tls.client) {
            (None, None) => Client::open(info.clone()).map_err(lost)?,
            (ca, client) => Client::build_with_tls(
                info.clone(),
                redis::TlsCertificates {
                    client_tls: client.clone().map(|(client_cert, client_key)| {
                        redis::ClientTlsConfig {
                            client_cert,
                            client_key,
                        }
                    }),
                    root_cert: ca.clone(),
                },
            )
            .map_err(lost)?,
        };
        // The login is ours to send: what the server says to it is told in its own words.
        let bare = redis::RedisConnectionInfo::default().set_skip_set_lib_name();
        let without = client
            .get_connection_info()
            .clone()
            .set_redis_settings(bare);
        let opener = Client::open(without).map_err(lost)?;
        let mut node = Self::link(info.addr().to_string(), opener, limits).await?;
        node.client = client;
        let settings = info.redis_settings();
        if let Some(password) = settings.password() {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(settings.username().map(str::as_bytes));
            words.push(password.as_bytes());
            node.ask(&words).await.map_err(login)?;
        }
        if settings.db() != 0 {
            node.ask(&[b"SELECT", settings.db().to_string().as_bytes()])
                .await?;
        }
        Ok(node)
    }

    async fn link(name: String, client: Client, limits: Limits) -> Result<Self, Refused> {
        let lost = |error: redis::RedisError| Refused::of_call(&error);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limits.connect))
            .set_response_timeout(Some(limits.answer));
        // Over name lookup, TLS and login too.
        let link = tokio::time::timeout(
            limits.connect,
            client.get_multiplexed_async_connection_with_config(&config),
        )
        .await
        .map_err(|_| Refused::Lost("no answer in time".into()))?
        .map_err(lost)?;
        Ok(Self {
            name,
            client,
            link,
            commands: 0,
            lookups: 0,
            silent: None,
            answered: false,
        })
    }

    /// One command.
    ///
    /// # Errors
    /// What the server refuses it for, or that the connection is lost.
    pub async fn ask(&mut self, words: &[&[u8]]) -> Result<Value, Refused> {
        let mut command = Cmd::new();
        for word in words {
            command.arg(*word);
        }
        self.commands += 1;
        let value = self.link.req_packed_command(&command).await;
        let value = value.map_err(|error| told(&error, self.answered))?;
        self.answered = true;
        answer(value).map_err(|refused| refused.of_user(self.user()))
    }

    /// One command of plain words.
    ///
    /// # Errors
    /// As for `ask`.
    pub async fn say(&mut self, line: &str) -> Result<Value, Refused> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.ask(&words).await
    }

    /// Several commands in one go, an answer each.
    ///
    /// # Errors
    /// When the connection is lost; what single commands are refused for stands in the answers.
    pub async fn ask_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, Refused> {
        let count = commands.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        self.commands += count as u64;
        let values = self.link.req_packed_commands(commands, 0, count).await;
        let values = values.map_err(|error| told(&error, self.answered))?;
        self.answered = true;
        Ok(values)
    }

    /// Sends several commands without waiting for their answers. What is sent first is answered first.
    pub(super) fn send(&mut self, commands: Pipeline) -> Sent {
        let count = commands.len();
        self.commands += count as u64;
        let mut link = self.link.clone();
        Sent {
            answers: tokio::spawn(
                async move { link.req_packed_commands(&commands, 0, count).await },
            ),
            after_others: self.answered,
        }
    }

    /// A second connection, for what can't be asked over the first.
    pub(super) async fn beside(&self, limits: Limits) -> Result<Self, Refused> {
        Self::link(self.name.clone(), self.client.clone(), limits).await
    }

    /// A connection of its own for what takes one whole (MONITOR, subscriptions).
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Who the address says that we are.
    pub(super) fn user(&self) -> &str {
        let settings = self.client.get_connection_info().redis_settings();
        settings.username().unwrap_or("default")
    }

    pub(super) fn database(&self) -> i64 {
        self.client.get_connection_info().redis_settings().db()
    }

    /// What the server calls itself since its start, by whatever address it is reached; `None`: it may not be asked.
    pub async fn run_id(&mut self) -> Option<String> {
        let text = self.say("INFO server").await.ok()?;
        Facts::read(&value::text(&text)?).word("run_id")
    }

    /// Lookups that `keyspace_hits` and `keyspace_misses` count as well as those of the applications.
    pub(super) fn looked_up(&mut self, lookups: u64) {
        self.lookups += lookups;
    }
}

impl Fleet {
    /// `maxmemory_policy`, by the first node.
    pub fn policy(&self) -> Option<String> {
        self.facts.as_ref()?.word("maxmemory_policy")
    }

    /// From here on the own effect is counted anew: of a report that isn't the first over this connection.
    pub fn count_anew(&mut self) {
        for node in &mut self.nodes {
            (node.commands, node.lookups) = (0, 0);
        }
    }

    /// States what all that was asked since it was opened did to the servers' statistics, and who wasn't asked.
    pub fn state_own_effect(&self, coverage: &mut RedisCoverage) {
        self.state_unreached(coverage);
        let sum = |of: fn(&Node) -> u64| self.nodes.iter().map(of).sum();
        coverage.own_effect.commands = sum(|node| node.commands);
        coverage.own_effect.lookups = sum(|node| node.lookups);
    }

    /// States which primaries weren't reached: the report isn't whole.
    pub fn state_unreached(&self, coverage: &mut RedisCoverage) {
        if !self.unreached.is_empty() {
            coverage.without("primaries", "failed", self.unreached.join("; "));
        }
        for (section, why) in &self.troubles {
            coverage.without(section, "down", why.clone());
        }
        if self.state_untold {
            let why =
                "CLUSTER INFO isn't permitted to this login: whether the cluster is up isn't known";
            coverage.note("cluster", "skipped", why);
            coverage.lacks(self.grant("+cluster|info"));
        }
    }

    /// What an administrator says so that this login may.
    pub fn grant(&self, rules: &str) -> String {
        let user = self.target.user.as_deref().unwrap_or("default");
        format!("ACL SETUSER {user} {rules}")
    }

    /// The place in `nodes` of the one that has this key, or would have it; `None`: nobody serves its slot.
    pub fn owner(&self, key: &[u8]) -> Option<usize> {
        if self.owners.is_empty() {
            return Some(0);
        }
        let slot = slot(key);
        let owner = self.owners.iter().find(|(slots, _)| slots.contains(&slot));
        owner.map(|(_, node)| *node)
    }
}

/// Any refusal of a login is one, but that the server is full.
fn login(refused: Refused) -> Refused {
    match refused {
        Refused::Other(why) if !why.contains("max number of clients") => Refused::Login(why),
        other => other,
    }
}

/// Opens what stands behind an address.
///
/// # Errors
/// When it can't be reached, or doesn't let this login in.
pub async fn open(
    address: &RedisAddress,
    name: Option<&str>,
    limits: Limits,
) -> Result<Fleet, RedisError> {
    let (first, mode) = first(address, limits).await?;
    let mut first = first;
    let place = address.shown();
    let facts = match first.say("INFO").await {
        Ok(value) => value::text(&value).map(|text| Facts::read(&text)),
        Err(lost @ Refused::Lost(_)) => {
            let why = farewell(first.client.get_connection_info(), limits).await;
            return Err(why.unwrap_or(lost).at(place));
        }
        // Everything else is refused as well until it is loaded, or until there is a login.
        Err(refused @ (Refused::Loading(_) | Refused::Login(_))) => {
            return Err(refused.at(place));
        }
        Err(refused) if refused.is_for_all() => return Err(refused.at(place)),
        Err(_) => None,
    };
    if let Some(facts) = facts
        .as_ref()
        .filter(|facts| facts.number("loading") == Some(1))
    {
        let part = facts
            .word("loading_loaded_perc")
            .unwrap_or_else(|| "?".into());
        let left = facts
            .word("loading_eta_seconds")
            .unwrap_or_else(|| "?".into());
        let what = format!("LOADING it reads its data still, {part} % of it; about {left} s to go");
        return Err(Refused::Loading(what).at(place));
    }
    let clustered = match facts
        .as_ref()
        .and_then(|facts| facts.word("cluster_enabled"))
    {
        Some(enabled) => enabled == "1",
        None => address.kind == Kind::Cluster || has_slots(&mut first).await,
    };
    let (mut nodes, mut mode) = (vec![first], mode);
    let mut rest = Primaries::default();
    if clustered {
        mode = RedisMode::Cluster;
        rest = primaries(&mut nodes, address, limits).await?;
    } else if address.kind == Kind::Cluster {
        return Err(Refused::Other("it isn't a node of a cluster".into()).at(place));
    }
    let mut troubles: Vec<_> = rest.down.map(|why| ("cluster", why)).into_iter().collect();
    let link = facts.as_ref().and_then(lost_primary);
    troubles.extend(link.map(|why| ("primary_link", why)));
    let (host, port) = host_and_port(nodes.first().map(|node| node.client.get_connection_info()));
    let target = RedisTarget {
        name: name.map(str::to_owned),
        host,
        port,
        database: address.database(),
        user: address.user().map(str::to_owned),
        tls: address.is_tls(),
        product: facts.as_ref().map(Facts::product),
        server_version: facts.as_ref().and_then(Facts::version),
        role: facts.as_ref().and_then(Facts::role),
        mode,
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
    };
    Ok(Fleet {
        nodes,
        target,
        owners: rest.owners,
        slots_unserved: rest.slots_unserved,
        unreached: rest.unreached,
        troubles,
        state_untold: rest.state_untold,
        facts,
        limits,
    })
}

fn host_and_port(info: Option<&ConnectionInfo>) -> (String, Option<u16>) {
    match info.map(ConnectionInfo::addr) {
        Some(ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) => {
            (host.clone(), Some(*port))
        }
        Some(ConnectionAddr::Unix(path)) => (path.display().to_string(), None),
        _ => (String::new(), None),
    }
}

/// The server that the address names: the first seed that answers, or the primary that a sentinel names.
async fn first(address: &RedisAddress, limits: Limits) -> Result<(Node, RedisMode), RedisError> {
    let mut last = None;
    for seed in &address.seeds {
        let service = match &address.kind {
            Kind::Sentinel { service } => service,
            Kind::Plain | Kind::Cluster => match Node::open(seed, address, limits).await {
                Ok(node) => return Ok((node, RedisMode::Standalone)),
                Err(refused) => {
                    last = Some(refused);
                    continue;
                }
            },
        };
        match of_sentinel(seed, service, address, limits).await {
            Ok(node) => return Ok((node, RedisMode::Sentinel)),
            Err(refused) => last = Some(refused),
        }
    }
    let refused = last.unwrap_or_else(|| Refused::Other("no host is named".into()));
    Err(refused.at(address.shown()))
}

async fn of_sentinel(
    seed: &ConnectionInfo,
    service: &str,
    address: &RedisAddress,
    limits: Limits,
) -> Result<Node, Refused> {
    // A sentinel has no databases, and mostly no password.
    let bare = redis::RedisConnectionInfo::default().set_skip_set_lib_name();
    let words: [&[u8]; 3] = [b"SENTINEL", b"get-master-addr-by-name", service.as_bytes()];
    let mut sentinel = Node::open(&seed.clone().set_redis_settings(bare), address, limits).await?;
    let found = match sentinel.ask(&words).await {
        Err(Refused::Login(_)) => {
            let settings = seed.redis_settings().clone().set_db(0);
            let seed = seed.clone().set_redis_settings(settings);
            Node::open(&seed, address, limits)
                .await?
                .ask(&words)
                .await?
        }
        found => found?,
    };
    let place = value::list(found);
    let (Some(host), Some(port)) = (
        place.first().and_then(value::text),
        place
            .get(1)
            .and_then(value::uint)
            .and_then(|port| u16::try_from(port).ok()),
    ) else {
        return Err(Refused::Other(format!("{NO_SUCH_PRIMARY} {service:?}")));
    };
    Node::open(&at(seed, host, port), address, limits).await
}

/// The same login and TLS at another place.
fn at(info: &ConnectionInfo, host: String, port: u16) -> ConnectionInfo {
    let addr = match info.addr().clone() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    info.clone().set_addr(addr)
}

async fn has_slots(node: &mut Node) -> bool {
    matches!(node.say("CLUSTER SLOTS").await, Ok(Value::Array(slots)) if !slots.is_empty())
}

/// The cluster beside its nodes.
#[derive(Default)]
struct Primaries {
    owners: Vec<(RangeInclusive<u16>, usize)>,
    slots_unserved: u32,
    unreached: Vec<String>,
    /// Why it refuses keys.
    down: Option<String>,
    state_untold: bool,
}

/// Opens every primary that serves slots, and tells which it serves, and how many slots nobody serves.
async fn primaries(
    nodes: &mut Vec<Node>,
    address: &RedisAddress,
    limits: Limits,
) -> Result<Primaries, RedisError> {
    const SLOTS: u64 = 16384;
    let place = address.shown();
    let Some(first) = nodes.first_mut() else {
        return Ok(Primaries::default());
    };
    let info = first.client.get_connection_info().clone();
    let ranges = first
        .say("CLUSTER SLOTS")
        .await
        .map_err(|refused| refused.at(place))?;
    let state = ClusterState::of(first).await;
    let (own_host, own_port) = host_and_port(Some(&info));
    let mut served = 0;
    let mut places: Vec<(String, u16)> = Vec::new();
    let mut ranges_of = Vec::new();
    for range in value::list(ranges) {
        let range = value::list(range);
        let [start, end, primary, ..] = range.as_slice() else {
            continue;
        };
        let (start, end) = (value::uint(start), value::uint(end));
        served += end.unwrap_or(0) + 1 - start.unwrap_or(0);
        let primary = value::list(primary.clone());
        let port = primary
            .get(1)
            .and_then(value::uint)
            .and_then(|port| u16::try_from(port).ok());
        // A node that doesn't know its own name leaves it out: it is where we are.
        let host = primary
            .first()
            .and_then(value::text)
            .filter(|host| !host.is_empty() && host != "?")
            .unwrap_or_else(|| own_host.clone());
        let Some(port) = port else {
            continue;
        };
        let slots = start
            .zip(end)
            .and_then(|(start, end)| Some(u16::try_from(start).ok()?..=u16::try_from(end).ok()?));
        if !places.contains(&(host.clone(), port)) {
            places.push((host.clone(), port));
        }
        ranges_of.extend(slots.map(|slots| (slots, (host, port))));
    }
    if places.is_empty() {
        return Err(Refused::Other("the cluster serves no slots".into()).at(place));
    }
    places.sort();
    let (mut found, mut reached, mut unreached) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = None;
    for (host, port) in places {
        let place = format!("{host}:{port}");
        let node = match nodes.pop() {
            Some(own) if Some(port) == own_port && host == own_host => Ok(own),
            kept => {
                nodes.extend(kept);
                Node::open(&at(&info, host.clone(), port), address, limits).await
            }
        };
        match node {
            Ok(node) => {
                found.push(node);
                reached.push((host, port));
            }
            Err(refused) => {
                unreached.push(format!("{place} isn't reached: {}", refused.text()));
                lost.get_or_insert(refused.at(&format!("{place} (of the cluster)")));
            }
        }
    }
    if let Some(lost) = lost.filter(|_| found.is_empty()) {
        return Err(lost);
    }
    let owners = ranges_of
        .into_iter()
        .filter_map(|(slots, place)| Some((slots, reached.binary_search(&place).ok()?)))
        .collect();
    *nodes = found;
    // A primary that one node alone doesn't reach may be there all the same: unless we don't reach it either.
    let doubted = if unreached.is_empty() {
        0
    } else {
        state.doubted
    };
    let unserved = SLOTS.saturating_sub(served) + state.failed + doubted;
    Ok(Primaries {
        owners,
        slots_unserved: u32::try_from(unserved.min(SLOTS)).unwrap_or(0),
        unreached,
        down: state.down(),
        state_untold: state.not_permitted,
    })
}
