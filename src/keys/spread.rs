//! When the keys of a group expire: the seconds in which most do, and the shape of the whole, in constant memory.

use std::collections::{BTreeMap, HashMap};

/// Expiry times of one group.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Keys, with and without an expiry.
    pub keys: u64,
    pub with_ttl: u64,
    /// Whose time is over, and which haven't been removed yet.
    pub overdue: u64,
    /// Who gave them a time so far away meant never (the year 9999).
    pub never: u64,
    seconds: Heavy,
    /// Times left, in milliseconds, by their size: 64 steps to each doubling.
    shape: BTreeMap<u32, u64>,
    longest_ms: u64,
}

/// So many keys expire within ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first second, since 1970.
    pub at: i64,
    /// Its last second in which one does.
    pub last: i64,
    /// Its second in which most do.
    pub peak: i64,
    pub keys: u64,
}

/// Seconds of a window.
const WIDTH: i64 = 10;
/// Ten years.
const NEVER_MS: u64 = 3652 * 86_400_000;

impl Spread {
    /// `seconds`: so many different seconds are counted one by one.
    pub fn new(seconds: usize) -> Self {
        Self {
            keys: 0,
            with_ttl: 0,
            overdue: 0,
            never: 0,
            seconds: Heavy::new(seconds),
            shape: BTreeMap::new(),
            longest_ms: 0,
        }
    }

    pub fn without_ttl(&mut self) {
        self.keys += 1;
    }

    /// A key that expires at this moment (milliseconds since 1970), seen at `now`.
    pub fn expires(&mut self, at_ms: i64, now_ms: i64) {
        self.keys += 1;
        self.with_ttl += 1;
        let Some(left) = at_ms
            .checked_sub(now_ms)
            .and_then(|left| u64::try_from(left).ok())
        else {
            self.overdue += 1;
            return;
        };
        self.longest_ms = self.longest_ms.max(left);
        if left > NEVER_MS {
            self.never += 1;
            return;
        }
        self.seconds.add(at_ms.div_euclid(1000));
        *self.shape.entry(step(left)).or_insert(0) += 1;
    }

    /// The longest time left: at least so long lives a key of the group.
    pub fn longest_ms(&self) -> u64 {
        self.longest_ms
    }

    /// A count of a second is too low by at most so many keys, one of ten seconds by ten times as many.
    pub fn error(&self) -> u64 {
        self.seconds.lost
    }

    /// The second in which most expire.
    pub fn peak_second(&self) -> Option<Window> {
        let most = self
            .seconds
            .counts
            .iter()
            .max_by_key(|(at, keys)| (**keys, std::cmp::Reverse(**at)));
        most.map(|(at, keys)| Window {
            at: *at,
            last: *at,
            peak: *at,
            keys: *keys,
        })
    }

    /// All of these as if they were of one group.
    pub fn of_all<'s>(all: impl Iterator<Item = &'s Self>) -> Self {
        let mut sum = Self::new(0);
        for one in all {
            sum.keys += one.keys;
            sum.with_ttl += one.with_ttl;
            sum.overdue += one.overdue;
            sum.never += one.never;
            sum.longest_ms = sum.longest_ms.max(one.longest_ms);
            sum.seconds.lost += one.seconds.lost;
            for (second, keys) in &one.seconds.counts {
                *sum.seconds.counts.entry(*second).or_insert(0) += keys;
            }
            for (step, keys) in &one.shape {
                *sum.shape.entry(*step).or_insert(0) += keys;
            }
        }
        sum
    }

    /// How many expire in the ten seconds of this window, as far as they were counted.
    pub fn within(&self, window: &Window) -> u64 {
        let seconds = window.at..window.at.saturating_add(WIDTH);
        let of = seconds.filter_map(|second| self.seconds.counts.get(&second));
        of.sum()
    }

    /// Ten seconds each in which at least so many expire, the fullest first and none within another; at most `most`.
    pub fn windows(&self, least: u64, most: usize) -> Vec<Window> {
        let sorted: BTreeMap<i64, u64> = self
            .seconds
            .counts
            .iter()
            .map(|(at, keys)| (*at, *keys))
            .collect();
        let mut all: Vec<Window> = Vec::with_capacity(sorted.len());
        let (mut sum, mut last) = (0, 0);
        let mut ahead = sorted.iter().peekable();
        for (at, keys) in &sorted {
            while let Some((second, next)) = ahead.next_if(|(next, _)| **next < at + WIDTH) {
                sum += *next;
                last = *second;
            }
            all.push(Window {
                at: *at,
                last,
                peak: *at,
                keys: sum,
            });
            sum -= keys;
        }
        all.retain(|window| window.keys >= least.max(1));
        all.sort_by_key(|window| (std::cmp::Reverse(window.keys), window.at));
        let mut chosen: Vec<Window> = Vec::new();
        for window in all {
            if chosen.len() == most {
                break;
            }
            if chosen
                .iter()
                .all(|other| (other.at - window.at).abs() >= WIDTH)
            {
                // A single key before the others mustn't pull the moment forward.
                let peak = sorted
                    .range(window.at..=window.last)
                    .max_by_key(|(at, keys)| (**keys, std::cmp::Reverse(**at)));
                let peak = peak.map_or(window.at, |(at, _)| *at);
                chosen.push(Window { peak, ..window });
            }
        }
        chosen
    }

    /// Of the times left, the one that so large a part doesn't pass, in milliseconds; 0 where nothing expires.
    pub fn quantile_ms(&self, part: f64) -> u64 {
        let total: u64 = self.shape.values().sum();
        let wanted = (total as f64 * part).ceil() as u64;
        let mut sum = 0;
        for (step, keys) in &self.shape {
            sum += keys;
            if sum >= wanted {
                return end(*step).min(self.longest_ms);
            }
        }
        self.longest_ms
    }

    /// How many expire before so many milliseconds are over: to within a sixty-fourth of that time.
    pub fn before(&self, left_ms: u64) -> u64 {
        let whole = self.shape.range(..step(left_ms));
        whole.map(|(_, keys)| keys).sum()
    }

    /// How many expire in each of so many equal parts of the time from now to `until_ms`; the rest is later. No key is lost
    /// or told twice for being counted in whole numbers.
    pub fn bins(&self, until_ms: u64, parts: usize) -> Vec<u64> {
        let mut bins = vec![0.0; parts];
        let width = (until_ms as f64 / parts as f64).max(1.0);
        for (step, keys) in &self.shape {
            let (from, to) = (
                begin(*step) as f64,
                end(*step).min(self.longest_ms.saturating_add(1)) as f64,
            );
            let first = (from / width) as usize;
            let last = ((to / width) as usize).max(first);
            for (n, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
                let overlap =
                    (to.min((n + 1) as f64 * width) - from.max(n as f64 * width)).max(0.0);
                *bin += *keys as f64 * overlap / (to - from).max(1.0);
            }
        }
        let all: u64 = self.shape.values().sum();
        let (mut sum, mut told) = (0.0, 0);
        bins.into_iter()
            .map(|keys| {
                sum += keys;
                let until = (f64::round(sum) as u64).min(all);
                until.saturating_sub(std::mem::replace(&mut told, until))
            })
            .collect()
    }
}

const STEPS: u32 = 64;

/// The step that a time belongs to: below 64 ms each its own, then 64 to each doubling.
fn step(ms: u64) -> u32 {
    let doubling = 63_u32
        .saturating_sub((ms | 63).leading_zeros())
        .saturating_sub(5);
    let within = (ms >> doubling) as u32;
    doubling * STEPS + within
}

fn begin(step: u32) -> u64 {
    // Of the later doublings only the upper half of the steps is used.
    let (doubling, within) = match step {
        0..STEPS => (0, step),
        _ => {
            let doubling = (step - STEPS / 2) / STEPS;
            if step < doubling * STEPS {
                (doubling, 0)
            } else {
                (doubling, step - doubling * STEPS)
            }
        }
    };
    u64::from(within) << doubling
}

fn end(step: u32) -> u64 {
    let doubling = if step < STEPS {
        0
    } else {
        (step - STEPS / 2) / STEPS
    };
    begin(step) + (1 << doubling)
}

/// The values that come most often, with a bound on the error (Misra and Gries 1982): each count is too low by at most
/// `lost`, which is at most n / (k + 1).
#[derive(Clone, Debug)]
struct Heavy {
    most: usize,
    counts: HashMap<i64, u64>,
    lost: u64,
}

impl Heavy {
    fn new(most: usize) -> Self {
        Self {
            most,
            counts: HashMap::new(),
            lost: 0,
        }
    }

    fn add(&mut self, value: i64) {
        if let Some(count) = self.counts.get_mut(&value) {
            *count += 1;
        } else if self.counts.len() < self.most {
            self.counts.insert(value, 1);
        } else {
            self.lost += 1;
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_lifetime_among_jittered_ones() {
        let mut spread = Spread::new(2048);
        let now = 1_700_000_000_000;
        // 70,000 in one burst of 7 s, 30,000 over two hours.
        for n in 0..70_000_i64 {
            spread.expires(now + 3_600_000 + n / 10, now);
        }
        for n in 0..30_000_i64 {
            spread.expires(now + n * 240, now);
        }
        let [window] = spread.windows(10_000, 5)[..] else {
            panic!()
        };
        let share = window.keys as f64 / spread.with_ttl as f64;
        assert!((share - 0.70).abs() < 0.01, "{share}");
        assert_eq!(window.at, 1_700_003_600);
        let peak = spread.peak_second().expect("a peak");
        assert!((peak.keys as f64 - 10_000.0).abs() < 100.0, "{peak:?}");
        assert!(spread.error() <= 100_000 / 2049);
    }

    #[test]
    fn few_seconds_are_counted_exactly() {
        let mut spread = Spread::new(2048);
        for (at, keys) in [(5, 3), (9, 4), (14, 10), (100, 2)] {
            for _ in 0..keys {
                spread.expires(at * 1000 + 999, 0);
            }
        }
        let window = |at, last, peak, keys| Window {
            at,
            last,
            peak,
            keys,
        };
        assert_eq!(
            spread.windows(1, 9),
            [window(5, 14, 14, 17), window(100, 100, 100, 2)]
        );
        let all = Spread::of_all([&spread, &spread].into_iter());
        assert_eq!(all.windows(1, 1), [window(5, 14, 14, 34)]);
        assert_eq!(spread.within(&window(5, 14, 14, 34)), 17);
        assert_eq!((all.with_ttl, all.quantile_ms(1.0)), (38, 100_999));
        assert_eq!((spread.error(), spread.longest_ms()), (0, 100_999));
        // Far away is never.
        for far in [253_402_300_799_000, i64::MAX] {
            spread.expires(far, 0);
        }
        assert_eq!((spread.with_ttl, spread.never), (21, 2));
        assert_eq!(
            (spread.windows(1, 9).len(), spread.quantile_ms(1.0)),
            (2, 102_400)
        );
    }

    #[test]
    fn steps_are_fine_and_in_order() {
        let mut before = 0;
        for ms in (0..5_000_000)
            .step_by(37)
            .chain([u64::from(u32::MAX), 1 << 50])
        {
            let step = step(ms);
            assert!(step >= before, "{ms}");
            before = step;
            assert!(
                begin(step) <= ms && ms < end(step),
                "{ms}: {} {}",
                begin(step),
                end(step)
            );
            assert!(end(step) - begin(step) <= ms / 32 + 1, "{ms}");
        }
    }

    #[test]
    fn bins_hold_what_there_is() {
        let mut spread = Spread::new(16);
        for n in 0..10_000 {
            spread.expires(n, 0);
        }
        let bins = spread.bins(10_000, 10);
        assert!(
            bins.iter().all(|keys| (900..=1100).contains(keys)),
            "{bins:?}"
        );
        assert_eq!(bins.iter().sum::<u64>(), 10_000);
        assert!(spread.bins(5_000, 7).iter().sum::<u64>() < 5_200);
        assert!((9_800..=10_000).contains(&spread.quantile_ms(0.99)));
        assert_eq!(Spread::new(16).quantile_ms(0.5), 0);
    }
}
