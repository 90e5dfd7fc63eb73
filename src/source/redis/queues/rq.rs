//! RQ 1 to 3: `queue:<name>` lists of ids that are pushed at the right (at_front: at the left) and taken from the left,
//! registries as sorted sets for each queue, a hash for each job and each worker.

use redis::Value;

use super::ask::{AHEAD, Ask, RUNNING, WORKERS, answers, ask, members};
use super::moment::{self, Clock};
use super::share::LONG_MS;
use super::sidekiq::earlier;
use super::site::{Name, Site, mark, text};
use crate::model::{Millis, Queue, QueueHead, QueueSystem};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

pub const USUAL: &[u8] = b"rq:";
/// A busy worker says a word every half minute.
const BUSY_SILENT: Millis = Millis::from_secs(120);
/// An idle one every seven minutes.
const IDLE_SILENT: Millis = Millis::from_secs(480);

/// The function of a description such as `app.tasks.send('bob')`; any other text was written by somebody.
fn function(description: &str) -> Option<String> {
    let (name, _) = description.split_once('(')?;
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// The job of a member of `wip`: `job` in RQ 1, `job:execution` from 2 on.
fn job_of(member: &[u8]) -> &[u8] {
    member.split(|byte| *byte == b':').next().unwrap_or(member)
}

pub async fn inspect(fleet: &mut Fleet, site: &Site, clock: &Clock) -> Vec<Queue> {
    let mut rows = Vec::new();
    for name in &site.names {
        rows.push(one(fleet, site, name, clock).await);
    }
    rows
}

fn ids(values: Option<Vec<Value>>) -> Vec<Vec<u8>> {
    let values = values.unwrap_or_default();
    values.into_iter().filter_map(value::bytes).collect()
}

async fn one(fleet: &mut Fleet, site: &Site, name: &Name, clock: &Clock) -> Queue {
    let mut row = site.row(QueueSystem::Rq, USUAL, name);
    let key = |of: &str| site.key(&[of.as_bytes(), &name.bytes]);
    let list = key("queue:");
    let until = clock.seconds_ago(0);
    let running = (RUNNING - 1).to_string();
    let ahead = (AHEAD - 1).to_string();
    let asks = vec![
        ask("LLEN", list.clone()),
        ask("ZCARD", key("wip:")),
        ask("ZCOUNT", key("wip:")).arg("-inf").arg(&until),
        ask("ZCARD", key("scheduled:")),
        ask("ZCOUNT", key("scheduled:")).arg("-inf").arg(&until),
        ask("ZCOUNT", key("scheduled:"))
            .arg("-inf")
            .arg(clock.seconds_ago(LONG_MS)),
        ask("ZCARD", key("failed:")),
        ask("ZCARD", key("deferred:")),
        ask("LLEN", [&list, &b":intermediate"[..]].concat()),
        ask("EXISTS", site.key(&[b"suspended"])),
        ask("EXISTS", key("scheduler-lock:")),
        ask("LRANGE", list).arg("0").arg(&ahead),
        ask("ZRANGE", key("wip:")).arg("0").arg(&running),
        ask("ZRANGE", key("failed:")).arg("0").arg(&running),
    ];
    let mut told = answers(fleet, asks).await;
    row.depth = told.uint();
    row.in_flight = told.uint();
    let lost = told.uint();
    row.scheduled = told.uint();
    row.overdue = told.uint();
    row.long_overdue = told.uint();
    row.dead = told.uint();
    let (deferred, between) = (told.uint(), told.uint());
    row.paused = told.yes();
    let scheduler = told.yes();
    let [next, working, failed] = [(); 3].map(|()| ids(told.list()));
    row.refused = told.refusal().map(|refused| refused.text().to_owned());
    if let Some(lost) = lost.filter(|lost| *lost > 0) {
        row.note(format!(
            "in flight without a heartbeat for longer than it may be: {lost}; the worker is gone"
        ));
    }
    if let Some(deferred) = deferred.filter(|deferred| *deferred > 0) {
        row.note(format!("waiting for other jobs: {deferred}"));
    }
    if let Some(between) = between.filter(|between| *between > 0) {
        row.note(format!(
            "taken from the list and not begun: {between}; lost with the worker, unless on the way"
        ));
    }
    if row.overdue.is_some_and(|overdue| overdue > 0) && scheduler == Some(false) {
        row.note("no scheduler runs for it: overdue jobs stay where they are");
    }
    waiting(fleet, site, &next, &mut row, clock).await;
    let times = |field| (site, field);
    let begun = earliest(fleet, times("started_at"), &working, &mut row).await;
    row.oldest_in_flight_ms = begun.map(|at| clock.age(at));
    // Their score is when they are forgotten: not in the order of their failures where jobs have a failure_ttl of their own.
    let ended = earliest(fleet, times("ended_at"), &failed, &mut row).await;
    let ended = ended.map(|at| clock.age(at));
    if row.dead.is_some_and(|dead| dead <= RUNNING) {
        row.oldest_dead_ms = ended;
    } else if let Some(age) = ended {
        row.note(format!(
            "the oldest dead one is at least {age} old: {RUNNING} were looked at"
        ));
    }
    workers(fleet, site, name, &mut row, clock).await;
    row
}

/// The head and the oldest of the next to run; ids of jobs that have expired are no jobs.
async fn waiting(fleet: &mut Fleet, site: &Site, next: &[Vec<u8>], row: &mut Queue, clock: &Clock) {
    let asks: Vec<Ask> = next
        .iter()
        .map(|id| {
            let job = ask("HMGET", site.key(&[b"job:", id]));
            job.arg("enqueued_at").arg("created_at").arg("description")
        })
        .collect();
    let mut jobs = answers(fleet, asks).await;
    let (mut oldest, mut gone, mut in_order) = (None, 0, true);
    for id in next {
        let mut fields = jobs.fields().into_iter();
        let mut field = || fields.next().flatten();
        let (enqueued, created, description) = (field(), field(), field());
        if created.is_none() {
            gone += 1;
            continue;
        }
        let since = enqueued.and_then(|at| moment::iso(&at));
        if row.head.is_none() {
            row.head = Some(QueueHead {
                class: description.as_deref().and_then(function),
                id: Some(text(id)),
                age_ms: since.map(|at| clock.age(at)),
                mark: mark(id),
            });
        } else if since.is_some() && since < oldest {
            in_order = false;
        }
        oldest = earlier(oldest, since);
    }
    row.oldest_age_ms = oldest.map(|at| clock.age(at));
    let all = row.depth.is_some_and(|depth| depth <= next.len() as u64);
    row.oldest_age_at_least = !all && !in_order;
    if row.oldest_age_at_least {
        row.note("a job was put at the front: of the next ones only the first were looked at for the oldest");
    }
    if let Some(refused) = jobs.refusal() {
        row.refused.get_or_insert(refused.text().to_owned());
    } else if gone > 0 {
        row.note(format!(
            "expired among the next {}: {gone}; their ids are still in the list and are counted",
            next.len()
        ));
    }
}

/// The earliest time in a field of these jobs.
async fn earliest(
    fleet: &mut Fleet,
    (site, field): (&Site, &str),
    members: &[Vec<u8>],
    row: &mut Queue,
) -> Option<i64> {
    let asks = members
        .iter()
        .map(|member| ask("HGET", site.key(&[b"job:", job_of(member)])).arg(field))
        .collect();
    let mut told = answers(fleet, asks).await;
    let earliest = members.iter().fold(None, |earliest, _| {
        let at = told.bytes().and_then(|at| moment::iso(&text(&at)));
        earlier(earliest, at)
    });
    if let Some(refused) = told.refusal() {
        row.refused.get_or_insert(refused.text().to_owned());
    }
    earliest
}

async fn workers(fleet: &mut Fleet, site: &Site, name: &Name, row: &mut Queue, clock: &Clock) {
    let set = site.key(&[b"workers:", &name.bytes]);
    let found = match members(fleet, &set, WORKERS).await {
        Ok((found, true)) => found,
        Ok((_, false)) => {
            row.note(format!("more than {WORKERS} workers: not counted"));
            return;
        }
        Err(refused) => {
            row.note(format!("its workers: {}", refused.text()));
            return;
        }
    };
    let hashes = found.iter().map(|worker| {
        let hash = ask("HMGET", worker.clone());
        hash.arg("birth").arg("last_heartbeat").arg("state")
    });
    let mut told = answers(fleet, hashes.collect()).await;
    let (mut live, mut silent, mut beat) = (0, 0, None);
    for _ in &found {
        let mut fields = told.fields().into_iter();
        let mut field = || fields.next().flatten();
        let (birth, heartbeat, state) = (field(), field(), field());
        // Without a hash it has been gone for long.
        if birth.is_none() {
            continue;
        }
        let at = heartbeat.and_then(|at| moment::iso(&at));
        let limit = if state.as_deref() == Some("busy") {
            BUSY_SILENT
        } else {
            IDLE_SILENT
        };
        let is_silent = at.is_some_and(|at| clock.age(at) > limit);
        live += u64::from(!is_silent);
        silent += u64::from(is_silent);
        beat = earlier(beat, at);
    }
    if let Some(refused) = told.refusal() {
        row.note(format!("its workers: {}", refused.text()));
        return;
    }
    row.workers = Some(live);
    row.oldest_heartbeat_ms = beat.map(|at| clock.age(at));
    if silent > 0 {
        row.note(format!(
            "workers silent for longer than they may be: {silent}, not counted"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_function_of_a_description_is_shown() {
        assert_eq!(
            function("rq_scene.failing_job(1, 'secret')").as_deref(),
            Some("rq_scene.failing_job")
        );
        for text in ["mail to bob@example.com", "mail to bob (again)", "(x)", ""] {
            assert_eq!(function(text), None, "{text}");
        }
    }

    #[test]
    fn members_of_wip_by_version() {
        assert_eq!(job_of(b"055ee29f-efcd"), b"055ee29f-efcd");
        assert_eq!(job_of(b"055ee29f-efcd:65db87a7"), b"055ee29f-efcd");
    }
}
