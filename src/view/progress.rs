//! How far long work is, on a terminal; nothing where there is none.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error. It goes when this value goes.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn new(what: &str, of: &str, shown: bool) -> Self {
        let target = if shown {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target).with_message(what.to_owned());
        bar.set_prefix(of.to_owned());
        bar.set_style(style("{msg}: {human_pos} {prefix}, {elapsed}"));
        Self { bar }
    }

    /// So many, of about so many.
    pub fn at(&self, seen: u64, total: Option<u64>) {
        if self.bar.length().is_none()
            && let Some(total) = total.filter(|total| *total > 0)
        {
            self.bar.set_length(total);
            self.bar.set_style(style(
                "{msg}: {wide_bar} {human_pos} of {human_len} {prefix}, {elapsed}, {eta} to go",
            ));
        }
        self.bar
            .set_position(self.bar.length().map_or(seen, |total| seen.min(total)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A template of ours is sound: the plain bar is what is left otherwise.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
