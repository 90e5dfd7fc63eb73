//! A chart as SVG, written by hand: axes with units, UTC, and textures beside colours.

use std::fmt::Write as _;

use super::charts::{Chart, Series, Unit};
use crate::model::Timestamp;
use crate::view::sanitize::{clean, width};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 258.0;
/// Of the axis at the left, at least; labels such as `1m 30s` need more.
const LEFT: f64 = 58.0;
/// A letter of a label where the text is largest, on a narrow screen.
const LETTER: f64 = 9.5;
/// Beside the labels: the axis' name, and a space.
const BESIDE: f64 = 32.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 48.0;

/// What is marked in the time of a chart.
#[derive(Clone, Debug)]
pub struct Mark {
    pub at: Timestamp,
    pub kind: MarkKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Something was done to the server.
    Effect,
    /// There is no capture.
    Gap,
}

/// The picture with its legend.
pub fn figure(chart: &Chart, marks: &[Mark]) -> String {
    // Where there is no capture any more is part of the picture, and never most of it.
    let micros = |at: Timestamp| at.utc().timestamp_micros();
    let (Some(first), Some(last)) = (chart.times.iter().min(), chart.times.iter().max()) else {
        return String::new();
    };
    let far = ((micros(*last) - micros(*first)) / 2).max(1_000_000);
    let near = micros(*first) - far..=micros(*last) + far;
    let gaps = marks.iter().filter(|mark| mark.kind == MarkKind::Gap);
    let gaps = gaps.filter(|mark| near.contains(&micros(mark.at)));
    let times = || {
        chart
            .times
            .iter()
            .copied()
            .chain(gaps.clone().map(|mark| mark.at))
    };
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return String::new();
    };
    let axis = Axis::new(chart, first, last);
    let mut svg = String::new();
    let id = &chart.id;
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\
         <title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}</desc>",
        escape(chart.title),
        escape(&description(chart))
    );
    textures(&mut svg, chart);
    grid(&mut svg, &axis, chart.unit);
    if chart.is_stacked {
        stack(&mut svg, chart, &axis);
    } else {
        for series in &chart.series {
            line(
                &mut svg,
                series,
                chart,
                &axis,
                &format!("line c{}", series.look),
                true,
            );
        }
    }
    if let Some(limit) = &chart.limit {
        line(&mut svg, limit, chart, &axis, "limit", false);
    }
    let inside: Vec<&Mark> = marks
        .iter()
        .filter(|mark| mark.at >= first && mark.at <= last)
        .collect();
    for mark in &inside {
        let x = axis.x(mark.at);
        let (class, head) = match mark.kind {
            MarkKind::Effect => (
                "effect",
                format!(
                    "<path class=\"effect-head\" d=\"M{:.1} {TOP:.1}l-4 -8h8z\"/>",
                    x
                ),
            ),
            MarkKind::Gap => ("gap", String::new()),
        };
        let _ = write!(
            svg,
            "<path class=\"{class}\" d=\"M{x:.1} {TOP:.1}V{:.1}\"/>{head}",
            HEIGHT - BOTTOM
        );
    }
    svg.push_str("</svg>");
    let has = |kind| inside.iter().any(|mark| mark.kind == kind);
    format!(
        "<figure class=\"chart\" id=\"chart-{id}\"><figcaption>{}</figcaption><div class=\"scroll\">{svg}</div>{}</figure>\n",
        escape(chart.title),
        legend(chart, has(MarkKind::Effect), has(MarkKind::Gap))
    )
}

/// Where a number stands.
struct Axis {
    from: i64,
    span: f64,
    top: f64,
    left: f64,
    steps: Vec<f64>,
    times: Vec<(Timestamp, String)>,
    day: String,
}

impl Axis {
    fn new(chart: &Chart, first: Timestamp, last: Timestamp) -> Self {
        let count = chart.times.len();
        let sum = |at: usize| {
            chart
                .series
                .iter()
                .filter_map(|series| series.values[at])
                .sum::<f64>()
        };
        let most_of = |at: usize| {
            chart
                .series
                .iter()
                .filter_map(|series| series.values[at])
                .fold(0.0, f64::max)
        };
        let most = (0..count)
            .map(|at| {
                if chart.is_stacked {
                    sum(at)
                } else {
                    most_of(at)
                }
            })
            .chain(
                chart
                    .limit
                    .iter()
                    .flat_map(|limit| limit.values.iter().flatten().copied()),
            )
            .fold(0.0, f64::max);
        let steps = steps(most, chart.unit);
        let micros = |at: Timestamp| at.utc().timestamp_micros();
        let (times, day) = ticks(first, last);
        let letters = steps.iter().map(|step| width(&chart.unit.words(*step)));
        let letters = letters.max().unwrap_or(0);
        Self {
            from: micros(first),
            span: (micros(last) - micros(first)).max(1) as f64,
            top: steps.last().copied().unwrap_or(1.0),
            left: LEFT.max(BESIDE + LETTER * letters as f64),
            steps,
            times,
            day,
        }
    }

    fn x(&self, at: Timestamp) -> f64 {
        let part = (at.utc().timestamp_micros() - self.from) as f64 / self.span;
        self.left + part * (WIDTH - self.left - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)
    }
}

/// Round numbers from 0 to above the most, four to six of them.
fn steps(most: f64, unit: Unit) -> Vec<f64> {
    const TIMES: [f64; 19] = [
        1.0, 10.0, 100.0, 500.0, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3,
        1800e3, 3600e3, 7200e3, 21_600e3, 86_400e3,
    ];
    let rough = most.max(1.0) / 4.0;
    let step = match unit {
        Unit::Millis => TIMES
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or((rough / 86_400e3).ceil() * 86_400e3),
        Unit::Connections | Unit::Sessions => {
            let power = 10_f64.powf(rough.log10().floor());
            let times = [1.0, 2.0, 5.0, 10.0]
                .into_iter()
                .find(|n| n * power >= rough)
                .unwrap_or(10.0);
            // Nothing is half a session.
            (times * power).max(1.0)
        }
    };
    let mut all = vec![0.0];
    while all.last().is_some_and(|last| *last < most) && all.len() < 12 {
        all.push(all.len() as f64 * step);
    }
    if all.len() == 1 {
        all.push(step);
    }
    all
}

/// Round times by the clock, at most seven, and the day they are of.
fn ticks(first: Timestamp, last: Timestamp) -> (Vec<(Timestamp, String)>, String) {
    const STEPS: [i64; 18] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
        86_400,
    ];
    let (from, to) = (first.utc().timestamp(), last.utc().timestamp());
    let span = to - from;
    let fits = |step: &&i64| span / **step <= 6;
    let days = (span / 86_400 / 6 + 1) * 86_400;
    let step = STEPS.iter().find(fits).copied().unwrap_or(days);
    let mut all = Vec::new();
    let mut at = (from + step - 1).div_euclid(step) * step;
    while at <= to && all.len() < 12 {
        if let Some(time) = chrono::DateTime::from_timestamp(at, 0) {
            let form = match step {
                ..60 => "%H:%M:%S",
                60..86_400 => "%H:%M",
                _ => "%m-%d",
            };
            let time_at = Timestamp::new(time);
            if time_at >= first && time_at <= last {
                all.push((time_at, time.format(form).to_string()));
            }
        }
        at += step;
    }
    if all.is_empty() {
        all.push((first, first.utc().format("%H:%M:%S").to_string()));
    }
    let (a, b) = (first.utc().date_naive(), last.utc().date_naive());
    let day = if a == b {
        format!("UTC, {a}")
    } else {
        format!("UTC, {a} to {b}")
    };
    (all, day)
}

fn grid(svg: &mut String, axis: &Axis, unit: Unit) {
    for step in &axis.steps {
        let y = axis.y(*step);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            axis.left,
            WIDTH - RIGHT,
            axis.left - 6.0,
            y + 4.0,
            escape(&unit.words(*step))
        );
    }
    let bottom = HEIGHT - BOTTOM;
    for (at, label) in &axis.times {
        let x = axis.x(*at);
        // At the edges a label would run out of the picture.
        let anchor = match x {
            x if x > WIDTH - RIGHT - 24.0 => "end",
            x if x < axis.left + 12.0 => "start",
            _ => "middle",
        };
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} {bottom:.1}v5\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
            bottom + 17.0
        );
    }
    let _ = write!(
        svg,
        "<text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <text class=\"unit\" x=\"12\" y=\"{:.1}\" transform=\"rotate(-90 12 {:.1})\" text-anchor=\"middle\">{}</text>",
        WIDTH - RIGHT,
        HEIGHT - 6.0,
        escape(&axis.day),
        TOP + (bottom - TOP) / 2.0,
        TOP + (bottom - TOP) / 2.0,
        unit.name()
    );
}

/// Runs of captures in which the series were read, with no hole in them.
fn runs(known: &[bool], holes: &[usize]) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    let mut from = None;
    for (n, is_known) in known.iter().chain([&false]).enumerate() {
        if let Some(start) = from.filter(|_| holes.contains(&n)) {
            all.push(start..n);
            from = None;
        }
        match (is_known, from) {
            (true, None) => from = Some(n),
            (false, Some(start)) => {
                all.push(start..n);
                from = None;
            }
            _ => {}
        }
    }
    all
}

fn stack(svg: &mut String, chart: &Chart, axis: &Axis) {
    let count = chart.times.len();
    let known: Vec<bool> = (0..count)
        .map(|at| chart.series.iter().all(|s| s.values[at].is_some()))
        .collect();
    let mut below = vec![0.0; count];
    for series in &chart.series {
        let n = series.look;
        let above: Vec<f64> = (0..count)
            .map(|at| below[at] + series.values[at].unwrap_or(0.0))
            .collect();
        for run in runs(&known, &chart.holes) {
            let point = |at: usize, value: f64| (axis.x(chart.times[at]), axis.y(value));
            let mut path = String::new();
            // A single capture is as wide as can be seen.
            let half = if run.len() == 1 { 3.0 } else { 0.0 };
            for (i, at) in run.clone().enumerate() {
                let (x, y) = point(at, above[at]);
                let letter = if i == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{:.1} {y:.1}", x - half);
                if half > 0.0 {
                    let _ = write!(path, "H{:.1}", x + half);
                }
            }
            for at in run.clone().rev() {
                let (x, y) = point(at, below[at]);
                let _ = write!(path, "L{:.1} {y:.1}", x + half);
                if half > 0.0 {
                    let _ = write!(path, "H{:.1}", x - half);
                }
            }
            let _ = write!(
                svg,
                "<path class=\"area c{n}\" d=\"{path}Z\"/><path fill=\"url(#{}-t{n})\" d=\"{path}Z\"/>",
                chart.id
            );
        }
        below = above;
    }
    samples(svg, chart, axis, &below, &known);
}

/// Where captures are, as long as they can be told apart.
fn samples(svg: &mut String, chart: &Chart, axis: &Axis, values: &[f64], known: &[bool]) {
    if chart.times.len() > 80 {
        return;
    }
    for (at, time) in chart.times.iter().enumerate().filter(|(at, _)| known[*at]) {
        let _ = write!(
            svg,
            "<circle class=\"sample\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/>",
            axis.x(*time),
            axis.y(values[at])
        );
    }
}

fn line(
    svg: &mut String,
    series: &Series,
    chart: &Chart,
    axis: &Axis,
    class: &str,
    with_samples: bool,
) {
    let known: Vec<bool> = series.values.iter().map(Option::is_some).collect();
    let values: Vec<f64> = series
        .values
        .iter()
        .map(|value| value.unwrap_or(0.0))
        .collect();
    for run in runs(&known, &chart.holes) {
        let mut path = String::new();
        for (i, at) in run.clone().enumerate() {
            let letter = if i == 0 { 'M' } else { 'L' };
            // A single capture is as wide as can be seen.
            let half = if run.len() == 1 { 3.0 } else { 0.0 };
            let (x, y) = (axis.x(chart.times[at]), axis.y(values[at]));
            let _ = write!(path, "{letter}{:.1} {y:.1}", x - half);
            if half > 0.0 {
                let _ = write!(path, "H{:.1}", x + half);
            }
        }
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    if with_samples {
        samples(svg, chart, axis, &values, &known);
    }
}

/// Textures over the colours, in the order of the series: none, diagonal, dots, lines, the other diagonal, grid, coarse dots.
const TEXTURES: [&str; 7] = [
    "",
    "<path d=\"M-2 2l4 -4M0 8l8 -8M6 10l4 -4\"/>",
    "<circle cx=\"4\" cy=\"4\" r=\"1.2\"/>",
    "<path d=\"M0 4h8\"/>",
    "<path d=\"M-2 6l4 4M0 0l8 8M6 -2l4 4\"/>",
    "<path d=\"M0 4h8M4 0v8\"/>",
    "<circle cx=\"2\" cy=\"2\" r=\"1.6\"/><circle cx=\"6\" cy=\"6\" r=\"1.6\"/>",
];

fn textures(svg: &mut String, chart: &Chart) {
    svg.push_str("<defs>");
    for n in chart.series.iter().map(|series| series.look) {
        let _ = write!(
            svg,
            "<pattern id=\"{}-t{n}\" class=\"texture\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">{}</pattern>",
            chart.id,
            TEXTURES[n % TEXTURES.len()]
        );
    }
    svg.push_str("</defs>");
}

fn legend(chart: &Chart, effects: bool, gaps: bool) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    // The uppermost first, as they stand in the picture.
    for series in chart.series.iter().rev() {
        let n = series.look;
        let swatch = if chart.is_stacked {
            format!(
                "<rect class=\"area c{n}\" width=\"18\" height=\"12\"/><rect fill=\"url(#{}-t{n})\" width=\"18\" height=\"12\"/>",
                chart.id
            )
        } else {
            format!("<path class=\"line c{n}\" d=\"M0 6h18\"/>")
        };
        let told = super::charts::told(series, &chart.times, chart.unit);
        let _ = write!(
            out,
            "<li>{}<b>{}</b> {}</li>",
            key(&swatch),
            escape(&series.name),
            escape(&told)
        );
    }
    if let Some(limit) = &chart.limit {
        let told = super::charts::told(limit, &chart.times, chart.unit);
        let _ = write!(
            out,
            "<li>{}<b>{}</b> {}</li>",
            key("<path class=\"limit\" d=\"M0 6h18\"/>"),
            limit.name,
            escape(&told)
        );
    }
    if effects {
        let swatch = key(
            "<path class=\"effect\" d=\"M9 4v8\"/><path class=\"effect-head\" d=\"M9 6l-4 -6h8z\"/>",
        );
        let _ = write!(out, "<li>{swatch}something was done to the server</li>");
    }
    if gaps {
        let _ = write!(
            out,
            "<li>{}no capture</li>",
            key("<path class=\"gap\" d=\"M9 0v12\"/>")
        );
    }
    out.push_str("</ul>");
    out
}

fn key(inner: &str) -> String {
    format!(
        "<svg class=\"key\" viewBox=\"0 0 18 12\" width=\"18\" height=\"12\" aria-hidden=\"true\">{inner}</svg>"
    )
}

/// For those who don't see it.
fn description(chart: &Chart) -> String {
    let all: Vec<String> = chart
        .series
        .iter()
        .map(|series| {
            format!(
                "{}: {}",
                series.name,
                super::charts::told(series, &chart.times, chart.unit)
            )
        })
        .collect();
    all.join("; ")
}

/// For the text of an element and for the value of an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::new(
            chrono::DateTime::from_timestamp(1_800_000_000 + seconds, 0).expect("a time"),
        )
    }

    fn chart(values: Vec<Option<f64>>) -> Chart {
        Chart {
            id: "states".into(),
            title: "Connections by state",
            unit: Unit::Connections,
            times: (0..values.len()).map(|n| at(n as i64 * 10)).collect(),
            holes: Vec::new(),
            series: vec![Series {
                name: "<b>&\"x\"".into(),
                look: 0,
                values,
            }],
            is_stacked: true,
            limit: None,
        }
    }

    #[test]
    fn what_wasnt_read_is_no_zero() {
        let drawn = figure(
            &chart(vec![Some(5.0), Some(5.0), None, Some(5.0), Some(5.0)]),
            &[],
        );
        assert_eq!(drawn.matches("class=\"area c0\" d=").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("class=\"sample\"").count(), 4, "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_across_a_hole() {
        let mut chart = chart(vec![Some(5.0); 6]);
        let pieces = |chart: &Chart, class: &str| {
            let drawn = figure(chart, &[]);
            let (picture, _) = drawn.split_once("</svg>").expect("a picture");
            picture.matches(&format!("class=\"{class} c0\" d=")).count()
        };
        assert_eq!(pieces(&chart, "area"), 1);
        chart.holes = vec![2, 5];
        assert_eq!(pieces(&chart, "area"), 3);
        chart.is_stacked = false;
        assert_eq!(pieces(&chart, "line"), 3);
    }

    #[test]
    fn names_of_strangers_are_text() {
        let drawn = figure(&chart(vec![Some(1.0), Some(2.0)]), &[]);
        assert!(!drawn.contains("<b>&\""), "{drawn}");
        assert!(drawn.contains("&lt;b&gt;&amp;&quot;x&quot;"), "{drawn}");
    }

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(steps(20.0, Unit::Connections), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(steps(3.0, Unit::Sessions), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(steps(0.0, Unit::Sessions), [0.0, 1.0]);
        assert_eq!(
            steps(40_000.0, Unit::Millis),
            [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]
        );
        let (times, day) = ticks(at(0), at(100));
        let times: Vec<&str> = times.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            times,
            [
                "08:00:00", "08:00:15", "08:00:30", "08:00:45", "08:01:00", "08:01:15", "08:01:30"
            ]
        );
        assert_eq!(day, "UTC, 2027-01-15");
    }

    #[test]
    fn one_capture_can_be_seen() {
        let drawn = figure(&chart(vec![Some(5.0)]), &[]);
        assert!(drawn.contains("class=\"area c0\" d=\"M55.0"), "{drawn}");
        assert!(!drawn.contains("NaN"), "{drawn}");
    }
}
