//! Connections by state as a line a frame: letters, so that it reads without colour too.

use crate::analysis::glance::Glance;
use crate::model::Millis;
use crate::view::console::Style;
use crate::view::sanitize::width;

/// How wide a bar is, and how many lines are drawn before the legend is due again.
const BAR: usize = 40;
const LEGEND_EVERY: usize = 20;

/// Draws frame after frame.
#[derive(Default)]
pub struct Gauge {
    drawn: usize,
}

impl Gauge {
    /// The next line, with the legend above where it is due.
    pub fn line(&mut self, glance: &Glance, style: Style) -> String {
        let mut out = String::new();
        if self.drawn.is_multiple_of(LEGEND_EVERY) {
            let legend = "a active  t idle in transaction  i idle  o other  . free";
            out.push_str(&format!("{}\n", style.faint(legend)));
        }
        self.drawn += 1;
        let time = glance.at.utc().format("%H:%M:%S");
        let numbers = numbers(glance);
        // The time, brackets and blanks.
        const AROUND: usize = 12;
        let rest = AROUND + width(&numbers);
        let room = style
            .width
            .map_or(BAR, |most| BAR.min(most.saturating_sub(rest)));
        out.push_str(&match bar(glance, room) {
            Some(bar) => format!("{time} [{bar}] {numbers}"),
            None => format!("{time} {numbers}"),
        });
        out
    }
}

fn numbers(glance: &Glance) -> String {
    let Some(used) = glance.used else {
        return "connections not known".into();
    };
    let most = if glance.used_is_at_most { "≤" } else { "" };
    let mut text = format!("{most}{used}");
    if let Some(usable) = glance.usable {
        text.push_str(&format!("/{usable}"));
    }
    let waiting = glance.waiting.filter(|waiting| *waiting > 0);
    if let Some(waiting) = waiting {
        text.push_str(&format!(" · {waiting} waiting"));
    }
    const TOLD_FROM: Millis = Millis::from_secs(1);
    if let Some(oldest) = glance.oldest_transaction_ms.filter(|age| *age >= TOLD_FROM) {
        text.push_str(&format!(" · oldest tx {oldest}"));
    }
    text
}

/// Each state has its share of the columns; what is there at all has one at least.
fn bar(glance: &Glance, room: usize) -> Option<String> {
    let usable = glance.usable.filter(|usable| *usable > 0)?;
    if room < 10 {
        return None;
    }
    let states = [
        ('a', glance.active?),
        ('t', glance.idle_in_transaction?),
        ('i', glance.idle?),
        ('o', glance.other?),
    ];
    let taken: usize = states.iter().map(|(_, count)| count).sum();
    let all = usable.max(taken);
    let mut out = String::new();
    for (letter, count) in states {
        let columns = (count * room + all / 2) / all;
        let columns = columns.max(usize::from(count > 0));
        out.extend(std::iter::repeat_n(letter, columns));
    }
    // One for each state that is there may be one too many.
    out.truncate(room);
    out.extend(std::iter::repeat_n('.', room - out.len()));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn glance(active: usize, in_transaction: usize, idle: usize, usable: usize) -> Glance {
        Glance {
            at: Timestamp::new(chrono::DateTime::UNIX_EPOCH),
            used: Some(active + in_transaction + idle),
            used_is_at_most: false,
            usable: Some(usable),
            active: Some(active),
            idle_in_transaction: Some(in_transaction),
            idle: Some(idle),
            other: Some(0),
            waiting: Some(0),
            oldest_transaction_ms: None,
            failed: Vec::new(),
        }
    }

    #[test]
    fn shares_of_what_is_usable() {
        assert_eq!(
            bar(&glance(5, 0, 5, 20), 20).as_deref(),
            Some("aaaaaiiiii..........")
        );
        assert_eq!(
            bar(&glance(1, 400, 0, 500), 10).as_deref(),
            Some("atttttttt.")
        );
        // Superusers take reserved slots: the bar is full then, and no longer than it is.
        assert_eq!(
            bar(&glance(1, 1, 30, 20), 10).as_deref(),
            Some("atiiiiiiii")
        );
        assert_eq!(bar(&glance(1, 1, 1, 0), 10), None);
    }

    #[test]
    fn the_legend_comes_again() {
        let style = Style {
            width: Some(80),
            height: None,
            color: false,
            verbose: false,
        };
        let mut gauge = Gauge::default();
        assert!(
            gauge
                .line(&glance(1, 0, 0, 10), style)
                .contains("idle in transaction")
        );
        let next = gauge.line(&glance(1, 0, 0, 10), style);
        assert_eq!(
            next,
            "00:00:00 [aaaa....................................] 1/10"
        );
    }
}
