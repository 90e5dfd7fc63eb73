//! How fast queues change between two looks.

use std::time::Duration;

use crate::model::{Millis, Queue, QueueSystem};

/// Sidekiq counts what it has run at its heartbeat, every 10 s: two of them have to lie between two looks.
const SIDEKIQ_COUNTS: Duration = Duration::from_secs(20);
/// A job may run for some seconds: a head that stays for less tells nothing.
const STAYS: Duration = Duration::from_secs(5);

/// Tells `after` what has changed since `before`.
///
/// `net_per_s` is the change of depth. What came and what went is told only where the library counts either: a depth that
/// stays may be one where nothing happens, or where as much comes as goes. Where no time is kept the age of a head that
/// is still there is at least the time between.
pub fn rates(before: &[Queue], after: &mut [Queue], elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return;
    }
    for queue in after {
        let same = |was: &&Queue| was.system == queue.system && was.name == queue.name;
        if let Some(was) = before.iter().find(same) {
            change(was, queue, elapsed);
        }
    }
}

fn change(was: &Queue, queue: &mut Queue, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    let per_s =
        |before: Option<u64>, after: Option<u64>| Some((after? as f64 - before? as f64) / seconds);
    // A counter that went back was reset: nothing is known.
    let counted = |before, after| per_s(before, after).filter(|rate| *rate >= 0.0);
    let net = per_s(was.depth, queue.depth);
    queue.net_per_s = net;
    let (old, new) = (was.counters, queue.counters);
    match queue.system {
        QueueSystem::Stream => {
            queue.arrival_per_s = counted(old.added, new.added);
            // What becomes less may have been trimmed away.
            let stands = old.given.is_some() && old.given == new.given;
            // Of a stream that still has all that was ever added it must have been taken.
            let is_whole = new.added.is_some() && new.added == new.kept;
            queue.drain_per_s = if stands {
                Some(0.0)
            } else if is_whole {
                let taken = queue.arrival_per_s.zip(net).map(|(came, more)| came - more);
                taken.filter(|taken| *taken >= 0.0)
            } else {
                counted(old.taken, new.taken)
            };
            let known = queue.arrival_per_s.zip(queue.drain_per_s).zip(net);
            let lost = known.map_or(0.0, |((came, went), more)| came - went - more);
            if lost * seconds >= 0.5 {
                queue.note(format!(
                    "{lost:.1} a second are trimmed or deleted before they are given out: they are lost"
                ));
            }
        }
        QueueSystem::Bullmq => {
            // The counter goes up for an id that is there already as well; a job that is removed when it is done could
            // hide that.
            let more = |before: Option<u64>, after: Option<u64>| {
                Some(i128::from(after?) - i128::from(before?))
            };
            let counter = more(old.added, new.added);
            if counter.is_some() && counter == more(old.kept, new.kept) {
                queue.arrival_per_s = counted(old.added, new.added);
            } else if counter.is_some_and(|counter| counter != 0) {
                queue.note(
                    "in/s and out/s aren't known: the counter of jobs also counts those whose id was there already",
                );
            }
            let left = |queue: &Queue| Some(queue.depth? + queue.scheduled?);
            let drain = queue
                .arrival_per_s
                .zip(per_s(left(was), left(queue)))
                .map(|(came, more)| came - more);
            queue.drain_per_s = drain.filter(|drain| *drain >= 0.0);
        }
        QueueSystem::Sidekiq if elapsed >= SIDEKIQ_COUNTS => {
            queue.drain_per_s = counted(old.taken, new.taken);
            let came = queue.drain_per_s.zip(net).map(|(went, net)| went + net);
            queue.arrival_per_s = came.filter(|came| *came >= 0.0);
            if queue.arrival_per_s.is_none() {
                queue.drain_per_s = None;
            }
        }
        QueueSystem::Sidekiq | QueueSystem::Resque | QueueSystem::Celery | QueueSystem::Rq => {}
    }
    queue.empty_in_ms = match (queue.depth, net) {
        (Some(depth), Some(net)) if depth > 0 && net < 0.0 => {
            Some(Millis((depth as f64 / -net * 1000.0).round() as u64))
        }
        _ => None,
    };
    let (Some(head), Some(next)) = (&was.head, &queue.head) else {
        return;
    };
    let stays = head.mark == next.mark;
    queue.head_stays = (elapsed >= STAYS).then_some(stays);
    if stays && queue.oldest_age_ms.is_none() && queue.depth.is_some_and(|depth| depth > 0) {
        let time = Millis::from(elapsed);
        queue.oldest_age_ms = Some(time);
        queue.oldest_age_at_least = true;
        let like = match queue.system {
            QueueSystem::Resque => ", or there is another one just like it",
            _ => "",
        };
        queue.note(format!(
            "oldest age is a bound: the head hasn't changed for {time}{like}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{QueueCounters, QueueHead};

    fn queue(system: QueueSystem, depth: u64) -> Queue {
        Queue {
            depth: Some(depth),
            ..Queue::new(system, "q".into())
        }
    }

    fn after(was: &Queue, mut queue: Queue, seconds: u64) -> Queue {
        let now = std::slice::from_mut(&mut queue);
        rates(std::slice::from_ref(was), now, Duration::from_secs(seconds));
        queue
    }

    fn counted(system: QueueSystem, depth: u64, added: Option<u64>, taken: Option<u64>) -> Queue {
        Queue {
            counters: QueueCounters {
                added,
                taken,
                ..QueueCounters::default()
            },
            scheduled: Some(0),
            ..queue(system, depth)
        }
    }

    #[test]
    fn a_depth_alone_tells_the_net_rate_alone() {
        let now = after(&queue(QueueSystem::Rq, 100), queue(QueueSystem::Rq, 80), 10);
        assert_eq!(now.net_per_s, Some(-2.0));
        assert_eq!(now.empty_in_ms, Some(Millis(40_000)));
        assert_eq!((now.arrival_per_s, now.drain_per_s), (None, None));
        let grows = after(&queue(QueueSystem::Rq, 80), queue(QueueSystem::Rq, 100), 10);
        assert_eq!((grows.net_per_s, grows.empty_in_ms), (Some(2.0), None));
        let other = after(
            &queue(QueueSystem::Celery, 80),
            queue(QueueSystem::Rq, 100),
            10,
        );
        assert_eq!(other.net_per_s, None);
        let no_time = after(&queue(QueueSystem::Rq, 80), queue(QueueSystem::Rq, 100), 0);
        assert_eq!(no_time.net_per_s, None);
    }

    #[test]
    fn counters_tell_what_came_and_what_went() {
        let stream = |depth, added, taken| counted(QueueSystem::Stream, depth, Some(added), taken);
        let now = after(&stream(10, 100, Some(90)), stream(20, 200, Some(180)), 10);
        assert_eq!(
            (now.arrival_per_s, now.drain_per_s),
            (Some(10.0), Some(9.0))
        );
        let reset = after(&stream(10, 100, None), stream(20, 5, None), 10);
        assert_eq!((reset.arrival_per_s, reset.drain_per_s), (None, None));
    }

    #[test]
    fn the_counter_of_bullmq_is_believed_while_its_jobs_account_for_it() {
        let bullmq = |depth, added, kept| {
            let mut queue = counted(QueueSystem::Bullmq, depth, Some(added), None);
            queue.counters.kept = Some(kept);
            queue
        };
        let now = after(&bullmq(10, 100, 50), bullmq(20, 200, 150), 10);
        assert_eq!(
            (now.arrival_per_s, now.drain_per_s),
            (Some(10.0), Some(9.0))
        );
        // More left than came: jobs came back.
        let back = after(&bullmq(10, 100, 50), bullmq(20, 105, 55), 10);
        assert_eq!((back.arrival_per_s, back.drain_per_s), (Some(0.5), None));
        // The same id again and again, or jobs that are removed when they are done: nothing tells which.
        let again = after(&bullmq(10, 100, 10), bullmq(10, 200, 10), 10);
        assert_eq!((again.arrival_per_s, again.drain_per_s), (None, None));
        assert_eq!(again.net_per_s, Some(0.0));
        assert!(again.notes[0].contains("in/s and out/s"), "{again:?}");
        let idle = after(&bullmq(10, 100, 10), bullmq(10, 100, 10), 10);
        assert_eq!(
            (idle.arrival_per_s, idle.drain_per_s),
            (Some(0.0), Some(0.0))
        );
        assert_eq!(idle.notes, [""; 0]);
    }

    #[test]
    fn what_a_stream_trims_away_was_not_taken() {
        let stream = |added, given| {
            let mut queue = counted(QueueSystem::Stream, 1000, Some(added), None);
            queue.counters.given = given;
            queue
        };
        let never = after(&stream(5000, Some((0, 0))), stream(6000, Some((0, 0))), 10);
        assert_eq!(
            (never.arrival_per_s, never.drain_per_s, never.net_per_s),
            (Some(100.0), Some(0.0), Some(0.0))
        );
        assert!(never.notes[0].contains("100.0 a second"), "{never:?}");
        // Something was taken, and how much isn't known.
        let some = after(&stream(5000, Some((0, 0))), stream(6000, Some((7, 0))), 10);
        assert_eq!((some.arrival_per_s, some.drain_per_s), (Some(100.0), None));
    }

    #[test]
    fn sidekiq_counts_at_its_heartbeat() {
        let of = |depth, taken| counted(QueueSystem::Sidekiq, depth, None, Some(taken));
        let soon = after(&of(10, 100), of(0, 100), 10);
        assert_eq!((soon.arrival_per_s, soon.drain_per_s), (None, None));
        let now = after(&of(10, 100), of(0, 160), 20);
        assert_eq!((now.arrival_per_s, now.drain_per_s), (Some(2.5), Some(3.0)));
        let behind = after(&of(100, 100), of(0, 110), 20);
        assert_eq!((behind.arrival_per_s, behind.drain_per_s), (None, None));
    }

    #[test]
    fn a_head_that_stays_is_as_old_as_the_time_between() {
        let with = |mark, depth| Queue {
            head: Some(QueueHead {
                mark,
                ..QueueHead::default()
            }),
            ..queue(QueueSystem::Celery, depth)
        };
        let stays = after(&with(1, 5), with(1, 6), 10);
        assert_eq!(stays.oldest_age_ms, Some(Millis(10_000)));
        assert!(stays.oldest_age_at_least && stays.notes[0].contains("10 s"));
        assert_eq!(after(&with(1, 5), with(2, 6), 10).oldest_age_ms, None);
    }
}
