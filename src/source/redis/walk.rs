//! The walk over all keys: SCAN, and with each page what is wanted of its keys, in one write with the next SCAN.
//!
//! Round trips decide how long it takes, so a page takes one. SCAN gives each key that is there all the time at least
//! once, some perhaps twice, and pages may be empty: only the cursor 0 is the end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::{Pipeline, Value};

use super::error::Refused;
use super::fleet::{Fleet, Node, Sent};
use super::pace::Pace;
use super::value;
use crate::model::{KeyName, KeyType, NodeWalk, OwnEffect, RedisCoverage, Stopped, Tally};

/// Keys that SCAN is asked to look at per page. More doesn't make the walk faster and makes others wait longer.
const COUNT: usize = 1000;

/// What is read of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerKey {
    /// `OBJECT FREQ`: the LFU counter. Doesn't move it.
    Freq,
    /// `PTTL`: milliseconds left; -1: none.
    TimeToLive,
    /// `PEXPIRETIME` (7.0): the moment in milliseconds since 1970; -1: none.
    ExpireTime,
    /// `MEMORY USAGE`, of collections estimated from five elements.
    Bytes,
    Type,
    /// The number of elements of a collection. Needs `Type` before it.
    Elements,
}

impl PerKey {
    /// Adds to `keyspace_hits`. MEMORY USAGE doesn't.
    fn is_lookup(self) -> bool {
        self != Self::Bytes
    }

    fn ask(self, key: &[u8], commands: &mut Pipeline) {
        match self {
            Self::Freq => commands.cmd("OBJECT").arg(b"FREQ"),
            Self::TimeToLive => commands.cmd("PTTL"),
            Self::ExpireTime => commands.cmd("PEXPIRETIME"),
            Self::Bytes => commands.cmd("MEMORY").arg(b"USAGE"),
            Self::Type => commands.cmd("TYPE"),
            Self::Elements => return,
        }
        .arg(key);
    }
}

/// What a key's read came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Number(i64),
    Type(KeyType),
    /// The key has gone since SCAN named it.
    Gone,
    Refused(Refused),
}

impl Answer {
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn of(what: PerKey, value: Value) -> Self {
        match (what, value) {
            (_, Value::Nil) => Self::Gone,
            (PerKey::TimeToLive | PerKey::ExpireTime, Value::Int(-2)) => Self::Gone,
            (_, Value::Int(number)) => Self::Number(number),
            (_, Value::ServerError(error)) => {
                let refused = Refused::of(&error);
                // Of OBJECT FREQ before 7.
                if refused.text().contains("no such key") {
                    Self::Gone
                } else {
                    Self::Refused(refused)
                }
            }
            (PerKey::Type, value) => match value::text(&value).as_deref() {
                Some("none") => Self::Gone,
                Some(name) => Self::Type(KeyType::parse(name)),
                None => Self::Gone,
            },
            (_, other) => Self::Refused(Refused::Other(format!(
                "an answer of an unknown kind: {other:?}"
            ))),
        }
    }
}

/// What is walked, and what is read of it.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'p> {
    /// Only keys that this pattern matches (`SCAN MATCH`: the server still looks at all).
    pub pattern: Option<&'p [u8]>,
    /// Only keys of this type (`SCAN TYPE`, 6.0): the server looks every key up that the pattern matches.
    pub of_type: Option<KeyType>,
    pub per_key: &'p [PerKey],
}

/// What the server is spared.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub wall: Option<Duration>,
    /// At most this share of the server's time, and an end when its PING slows down; `None`: as fast as it goes.
    pub share: Option<f64>,
}

impl Budget {
    pub const FULL: Self = Self {
        wall: None,
        share: None,
    };

    /// A quarter of the server's time.
    pub fn gentle(wall: Duration) -> Self {
        Self {
            wall: Some(wall),
            share: Some(0.25),
        }
    }
}

/// Whoever looks on: is told how far it is, and can end it.
pub trait Watch {
    /// Keys looked at, of about so many.
    fn progress(&self, seen: u64, total: Option<u64>);

    fn is_stopped(&self) -> bool;
}

/// Takes the keys of a page of a node, with what was read of them.
pub type Each<'e> = dyn FnMut(&str, Vec<Vec<u8>>, Vec<Answer>) + 'e;

/// Walks all nodes at once; `each` gets the keys of a page with what was read of them, in the order of the plan.
///
/// What goes wrong on the way ends the walk of that node and is said in the coverage.
pub async fn walk(
    fleet: &mut Fleet,
    plan: Plan<'_>,
    budget: Budget,
    watch: &dyn Watch,
    each: &mut Each<'_>,
) -> RedisCoverage {
    let begun = Instant::now();
    let shared = Shared {
        plan,
        budget,
        watch,
        each: RefCell::new(each),
        seen: RefCell::new((0, Some(0))),
        begun,
        missing: RefCell::default(),
        adds_hits: fleet.target.product.as_deref() != Some("valkey"),
    };
    let walks = join_all(fleet.nodes.iter_mut().map(|node| walk_node(node, &shared))).await;
    let waited = walks
        .iter()
        .map(|(_, waited)| *waited)
        .max()
        .unwrap_or_default();
    let own = OwnEffect {
        took_ms: millis(begun.elapsed()),
        waited_ms: millis(waited),
        ..OwnEffect::default()
    };
    let nodes = walks.into_iter().map(|(walk, _)| walk).collect();
    let mut coverage = RedisCoverage::of(nodes, own, fleet.slots_unserved);
    fleet.state_own_effect(&mut coverage);
    coverage.pattern = plan.pattern.map(|pattern| KeyName(pattern.to_vec()).text());
    for rule in shared.missing.into_inner() {
        coverage.lacks(fleet.grant(&rule));
    }
    coverage
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

struct Shared<'s> {
    plan: Plan<'s>,
    budget: Budget,
    watch: &'s dyn Watch,
    each: RefCell<&'s mut Each<'s>>,
    /// Over all nodes: keys seen, and how many there are.
    seen: RefCell<(u64, Option<u64>)>,
    begun: Instant,
    /// SCAN TYPE looks each key up: Redis does, Valkey (8.1, 9.1) doesn't.
    adds_hits: bool,
    /// Rules that would grant what was refused.
    missing: RefCell<BTreeSet<String>>,
}

async fn walk_node(node: &mut Node, shared: &Shared<'_>) -> (NodeWalk, Duration) {
    let mut walk = NodeWalk {
        node: node.name.clone(),
        keys_total: node
            .say("DBSIZE")
            .await
            .ok()
            .and_then(|size| value::uint(&size)),
        keys_seen: 0,
        complete: false,
        stopped: None,
        tally: Tally::default(),
    };
    {
        let mut seen = shared.seen.borrow_mut();
        seen.1 = seen
            .1
            .zip(walk.keys_total)
            .map(|(all, of_node)| all.saturating_add(of_node));
    }
    let mut pace = Pace::new(shared.budget.share);
    match pages(node, shared, &mut walk, &mut pace).await {
        Ok(None) => walk.complete = true,
        Ok(Some(stopped)) => walk.stopped = Some(stopped),
        Err(refused) => {
            shared.missing.borrow_mut().extend(refused.rule());
            walk.stopped = Some(Stopped::Failed(refused.text().to_owned()));
        }
    }
    (walk, pace.waited)
}

/// Page after page; `None`: to the end.
async fn pages(
    node: &mut Node,
    shared: &Shared<'_>,
    walk: &mut NodeWalk,
    pace: &mut Pace,
) -> Result<Option<Stopped>, Refused> {
    pace.measure(node).await?;
    let sparse = shared.plan.pattern.is_some() || shared.plan.of_type.is_some();
    let mut cursor = Some(b"0".to_vec());
    let mut keys: Vec<Vec<u8>> = Vec::new();
    // The page whose answers are still on their way while the next one is asked for: the server never waits for us.
    let mut flying: Option<Flying> = None;
    let mut typed = 0;
    loop {
        let stopped = if shared.watch.is_stopped() {
            Some(Stopped::Asked)
        } else {
            let over = |limit: &Duration| shared.begun.elapsed() >= *limit;
            let limit = shared.budget.wall.filter(over);
            limit.map(|limit| Stopped::Time(limit.into()))
        };
        if stopped.is_some() || (cursor.is_none() && keys.is_empty()) {
            land(node, shared, walk, flying).await?;
            return Ok(stopped);
        }
        let asked = Instant::now();
        let scan = cursor
            .as_deref()
            .map(|at| node.send(scan(&shared.plan, at)));
        let reads = Some(reads(&shared.plan, &keys)).filter(|reads| !reads.is_empty());
        let next = Flying {
            answers: reads.map(|reads| node.send(reads)),
            keys: std::mem::take(&mut keys),
        };
        // Twice, so that the questions are on their way before anything else is done.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        land(node, shared, walk, flying.take()).await?;
        let found = match scan {
            Some(scan) => {
                let values = scan.answered().await?;
                Some(scanned(values.into_iter().next().unwrap_or_default())?)
            }
            None => None,
        };
        flying = Some(next);
        if shared.budget.share.is_some() {
            // One page at a time: its time is what is paid for.
            land(node, shared, walk, flying.take()).await?;
        }
        cursor = match found {
            Some((at, found)) => {
                if shared.plan.of_type.is_some() && shared.adds_hits {
                    // Measured on 7.0: a hit for each key looked at. How many those are on a page, only the server knows.
                    let left = walk
                        .keys_total
                        .map_or(u64::MAX, |total| total - typed.min(total));
                    let page = left.min(COUNT as u64);
                    typed += page;
                    node.looked_up(page);
                }
                let mut seen = shared.seen.borrow_mut();
                seen.0 += if sparse { COUNT } else { found.len() } as u64;
                shared.watch.progress(seen.0, seen.1);
                keys = found;
                (at != b"0").then_some(at)
            }
            None => None,
        };
        if let Some(slower) = pace.after(node, asked.elapsed()).await? {
            land(node, shared, walk, flying).await?;
            return Ok(Some(slower));
        }
    }
}

/// A page whose keys are asked about.
struct Flying {
    keys: Vec<Vec<u8>>,
    /// `None`: nothing is asked of them.
    answers: Option<Sent>,
}

/// Waits for the answers of a page, and tells them.
async fn land(
    node: &mut Node,
    shared: &Shared<'_>,
    walk: &mut NodeWalk,
    flying: Option<Flying>,
) -> Result<(), Refused> {
    let Some(Flying { keys, answers }) = flying.filter(|page| !page.keys.is_empty()) else {
        return Ok(());
    };
    let values = match answers {
        Some(sent) => sent.answered().await?,
        None => Vec::new(),
    };
    let answers = answers_of(node, &shared.plan, &keys, values).await?;
    // What is refused isn't looked up.
    let looked = answers
        .iter()
        .zip(shared.plan.per_key.iter().cycle())
        .filter(|(answer, what)| {
            what.is_lookup() && **what != PerKey::Elements && !matches!(answer, Answer::Refused(_))
        });
    node.looked_up(looked.count() as u64);
    tally(&keys, &answers, shared.plan.per_key.len(), &mut walk.tally)?;
    for answer in &answers {
        // `NOPERM … can't access one of the keys`, where it isn't the command that is refused.
        if let Answer::Refused(refused @ Refused::NotPermitted(_)) = answer {
            let rule = refused.rule().unwrap_or_else(|| "~*".into());
            shared.missing.borrow_mut().insert(rule);
        }
    }
    walk.keys_seen += keys.len() as u64;
    (shared.each.borrow_mut())(&walk.node, keys, answers);
    Ok(())
}

type Scanned = (Vec<u8>, Vec<Vec<u8>>);

fn scan(plan: &Plan<'_>, cursor: &[u8]) -> Pipeline {
    let mut commands = Pipeline::new();
    commands.cmd("SCAN").arg(cursor);
    if let Some(pattern) = plan.pattern {
        commands.arg(b"MATCH").arg(pattern);
    }
    if let Some(of_type) = plan.of_type {
        commands.arg(b"TYPE").arg(of_type.name());
    }
    commands.arg(b"COUNT").arg(COUNT);
    commands
}

/// What is asked of each key of a page.
fn reads(plan: &Plan<'_>, keys: &[Vec<u8>]) -> Pipeline {
    let mut commands = Pipeline::with_capacity(keys.len() * plan.per_key.len());
    for key in keys {
        for what in plan.per_key {
            what.ask(key, &mut commands);
        }
    }
    commands
}

async fn answers_of(
    node: &mut Node,
    plan: &Plan<'_>,
    keys: &[Vec<u8>],
    values: Vec<Value>,
) -> Result<Vec<Answer>, Refused> {
    let mut values = values.into_iter();
    if !plan.per_key.contains(&PerKey::Elements) {
        let answers = values.zip(plan.per_key.iter().cycle());
        return Ok(answers
            .map(|(value, what)| Answer::of(*what, value))
            .collect());
    }
    let mut answers = Vec::with_capacity(keys.len() * plan.per_key.len());
    for _ in keys {
        for what in plan.per_key {
            answers.push(match what {
                PerKey::Elements => Answer::Gone,
                what => Answer::of(*what, values.next().unwrap_or_default()),
            });
        }
    }
    elements(node, plan, keys, &mut answers).await?;
    Ok(answers)
}

/// Fills in the lengths of those keys that turned out to be collections.
async fn elements(
    node: &mut Node,
    plan: &Plan<'_>,
    keys: &[Vec<u8>],
    answers: &mut [Answer],
) -> Result<(), Refused> {
    let width = plan.per_key.len();
    let at = |wanted: PerKey| plan.per_key.iter().position(|what| *what == wanted);
    let (Some(kind), Some(length)) = (at(PerKey::Type), at(PerKey::Elements)) else {
        return Ok(());
    };
    let mut commands = Pipeline::new();
    let mut places = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        if let Answer::Type(of) = &answers[n * width + kind]
            && let Some(command) = of.length_command()
        {
            commands.cmd(command).arg(key);
            places.push(n * width + length);
        }
    }
    node.looked_up(places.len() as u64);
    let values = node.ask_all(&commands).await?;
    for (place, value) in places.into_iter().zip(values) {
        answers[place] = Answer::of(PerKey::Elements, value);
    }
    Ok(())
}

fn scanned(value: Value) -> Result<Scanned, Refused> {
    let mut parts = value::list(super::error::answer(value)?).into_iter();
    let (Some(cursor), Some(keys)) = (parts.next().and_then(value::bytes), parts.next()) else {
        return Err(Refused::Other("an answer to SCAN that isn't one".into()));
    };
    let keys = value::list(keys)
        .into_iter()
        .filter_map(value::bytes)
        .collect();
    Ok((cursor, keys))
}

/// Counts what became of each key. What every key is refused for alike is no matter of single keys.
fn tally(
    keys: &[Vec<u8>],
    answers: &[Answer],
    width: usize,
    tally: &mut Tally,
) -> Result<(), Refused> {
    if width == 0 {
        return Ok(());
    }
    for (_, of_key) in keys.iter().zip(answers.chunks(width)) {
        let worst = of_key.iter().find_map(|answer| match answer {
            Answer::Refused(refused) => Some(refused),
            _ => None,
        });
        match worst {
            None if of_key.first() == Some(&Answer::Gone) => tally.vanished += 1,
            None => {}
            Some(Refused::NotPermitted(_)) => tally.not_permitted += 1,
            Some(Refused::Moved) => tally.moved += 1,
            Some(refused) if refused.is_for_all() => return Err(refused.clone()),
            Some(_) => tally.failed += 1,
        }
    }
    Ok(())
}
