//! Puma, Sidekiq and GoodJob over ActiveRecord: threads, and a pool that they share.

use super::super::count::{At, Count, Source};
use super::super::sources::rails::Value;
use super::super::spec::Unknown;
use super::{Pool, Reading, at_least_one, least};

impl Reading<'_> {
    /// A value of a Ruby file, with this environment.
    pub(super) fn of_ruby(&mut self, value: &Value, what: &str) -> Count {
        let at = value.at().clone();
        match value.with(&self.env_values()) {
            Some(number) => {
                let source = match value {
                    Value::Env { name, .. } if self.env.contains_key(name) => {
                        Source::said(&format!("{what}, by {name}"), number, at)
                    }
                    Value::Env { .. } | Value::Default(..) => {
                        Source::assumed(what, number, Some(at))
                    }
                    _ => Source::said(what, number, at),
                };
                self.from.push(source);
                Count::known(number)
            }
            None => {
                self.unknown = Some(Unknown {
                    what: format!("{what} (Ruby that can't be read here)"),
                    settle: "a plain number, or connections in budget.yaml".into(),
                    at: Some(at),
                });
                Count::at_least(0)
            }
        }
    }

    /// What ActiveRecord opens: its own variable, `database.yml`, else as many as there are threads; a thread uses one at a time.
    pub(super) fn active_record(&mut self, threads: Count) -> (Count, Option<(u64, Option<At>)>) {
        if self.has(&["DB_POOL"]) {
            let size = self.number("DB_POOL", "pool", 5);
            let at = self.env.get("DB_POOL").map(|(_, at)| at.clone());
            let known = size.exact.then_some((size.at_least, at));
            return (least(size, threads), known);
        }
        let pools = self.ruby.pools;
        if pools.is_empty() {
            return (threads, None);
        }
        let mut sum = Count::ZERO;
        let mut size = None;
        for value in pools {
            let pool = self.of_ruby(value, "pool (database.yml)");
            if size.is_none() && pool.exact {
                size = Some((pool.at_least, Some(value.at().clone())));
            }
            sum = sum.plus(least(pool, threads));
        }
        (sum, size)
    }

    /// For the rules: nobody is warned of a number that was assumed.
    fn said_threads(&self, threads: Count) -> Option<u64> {
        let assumed = self.from.iter().any(|source| {
            source.assumed
                && (source.what.starts_with("threads") || source.what.starts_with("concurrency"))
        });
        (threads.exact && !assumed).then_some(threads.at_least)
    }

    pub(super) fn sidekiq(mut self) -> Pool {
        let file = self.ruby.sidekiq;
        let flag = self.flagged(&["-c", "--concurrency"], "concurrency");
        let main = match (flag, file.and_then(|f| f.concurrency.as_ref())) {
            (Some(number), _) => number,
            (None, Some(value)) => self.of_ruby(value, "concurrency (sidekiq.yml)"),
            (None, None) => match (file, self.word_after(&["-C", "--config"])) {
                // It says how many, and nobody showed it.
                (None, Some((path, at))) => {
                    self.unknown = Some(Unknown {
                        what: format!("the concurrency of {path}, which isn't in the input"),
                        settle: format!("{path} beside it, or -c in the command"),
                        at: Some(at),
                    });
                    Count::at_least(0)
                }
                _ => self.number("RAILS_MAX_THREADS", "concurrency", 5),
            },
        };
        let capsules = file
            .map(|file| file.capsules.as_slice())
            .unwrap_or_default();
        let mut concurrency = main;
        for value in capsules {
            concurrency = concurrency.plus(self.of_ruby(value, "concurrency of a capsule"));
        }
        let processes = match self.runs("sidekiqswarm") {
            true => self.processes("SIDEKIQ_COUNT"),
            false => Count::known(1),
        };
        let (pool, size) = self.active_record(concurrency);
        let threads = self.said_threads(concurrency);
        Pool {
            threads,
            size,
            is_sidekiq: true,
            ..self.done(processes, pool)
        }
    }

    /// `-t 1:5`: the larger one.
    pub(super) fn puma_threads(&self) -> Option<(u64, At)> {
        let (word, at) = self.word_after(&["-t", "--threads"])?;
        let most = word.rsplit(':').next()?;
        self.runs("puma").then_some(())?;
        Some((most.parse().ok()?, at))
    }

    pub(super) fn rails(mut self) -> Pool {
        let threads = match self.puma_threads() {
            Some((threads, at)) => {
                self.from
                    .push(Source::said("threads (--threads)", threads, at));
                Count::known(threads)
            }
            None => self.number("RAILS_MAX_THREADS", "threads", 5),
        };
        let flag = match self.runs("puma") {
            true => self.flagged(&["-w", "--workers"], "processes"),
            false => None,
        };
        let processes = match flag {
            Some(number) => at_least_one(number),
            None => self.processes("WEB_CONCURRENCY"),
        };
        let (pool, size) = self.active_record(threads);
        let known = self.said_threads(threads);
        Pool {
            threads: known,
            size,
            ..self.done(processes, pool)
        }
    }

    /// GoodJob's threads, and two of its own.
    pub(super) fn good_job(mut self) -> Pool {
        let threads = match self.flagged(&["--max-threads"], "threads") {
            Some(threads) => threads,
            None => self.number("GOOD_JOB_MAX_THREADS", "threads", 5),
        };
        let at = Some(self.container.at.clone());
        self.from.push(Source::assumed("GoodJob's own", 2, at));
        self.done(Count::known(1), threads.plus(Count::known(2)))
    }
}
