//! The drawing: a ruler, a bar for each container, the cuts, and what the signs mean. Plain text, of a given width.

use super::{Bar, Cut, Timeline, axis::Axis, bar};
use crate::output::{duration::shown, plain::one_line};

pub(crate) use super::bar::Glyphs;

/// How it is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Of the screen, in characters.
    pub(crate) width: usize,
    pub(crate) glyphs: Glyphs,
}

/// The room for how long each bar is: `59m59s`, and a space before it.
const LENGTH_ROOM: usize = 7;

/// A bar is never narrower, whatever the screen is.
const LEAST_COLUMNS: usize = 20;

/// Before the names of containers.
const INDENT: &str = "  ";

/// No lines if nothing was ever frozen.
pub(crate) fn lines(timeline: &Timeline, look: Look) -> Vec<String> {
    let (Some(start), Some(end)) = (timeline.start(), timeline.end()) else { return vec![] };
    let labels = timeline.bars.iter().map(row_label).chain(timeline.cuts.iter().map(cut_label));
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or_default();
    // Names are read, but the bars are what this is about.
    let room = longest.min((look.width * 2 / 5).max(LEAST_COLUMNS));
    let columns = look.width.saturating_sub(room + 2 + LENGTH_ROOM).max(LEAST_COLUMNS);
    let axis = Axis::new(start, end, columns);
    let row = |label: &str, rest: &str| format!("{:room$}  {rest}", kept_end(label, room)).trim_end().to_owned();

    let mut lines: Vec<_> = axis.ruler().iter().map(|line| row("", line)).collect();
    let mut hook = None;
    let cuts: Vec<_> = timeline.cuts.iter().map(|cut| cut.seen).collect();
    let mut used = String::new();
    for bar in &timeline.bars {
        if hook != Some(&bar.hook) {
            hook = Some(&bar.hook);
            lines.push(one_line(&bar.hook));
        }
        let cells: String = bar::drawn(bar, &cuts, &axis, timeline.now, look.glyphs).into_iter().collect();
        used += &cells;
        let length = shown(bar.length(timeline.now));
        lines.push(row(&row_label(bar), &format!("{cells}{length:>LENGTH_ROOM$}")));
    }
    lines.extend(timeline.cuts.iter().map(|cut| row(&cut_label(cut), &cut_mark(cut, &axis))));
    lines.push(String::new());
    lines.push(legend(&used, look.glyphs));
    lines
}

fn row_label(bar: &Bar) -> String {
    one_line(&format!("{INDENT}{}", bar.place()))
}

fn cut_label(cut: &Cut) -> String {
    one_line(&format!("cut of {}", cut.claim))
}

/// Where a cut was seen, and when.
fn cut_mark(cut: &Cut, axis: &Axis) -> String {
    let column = axis.column(cut.seen);
    let time = shown(axis.since_start(cut.seen));
    match column > axis.columns() / 2 {
        // The time stands where there is room.
        true => format!("{:>column$}^", format!("{time} ")),
        false => format!("{:column$}^ {time}", ""),
    }
}

/// What is too long loses its beginning: pods of one owner differ at the end.
fn kept_end(label: &str, room: usize) -> String {
    let length = label.chars().count();
    match length > room {
        true => format!("{INDENT}..{}", label.chars().skip(length + 4 - room).collect::<String>()),
        false => label.to_owned(),
    }
}

/// The signs that are there, and no others.
fn legend(used: &str, glyphs: Glyphs) -> String {
    let Glyphs { acting, frozen, cut, failed, open } = glyphs;
    let signs = [
        (acting, "freezing, thawing"),
        (frozen, "frozen"),
        (cut, "cut seen"),
        (failed, "failed"),
        (open, "still frozen"),
    ];
    let meant = signs.iter().filter(|(sign, _)| used.contains(*sign)).map(|(sign, words)| format!("{sign} {words}"));
    meant.collect::<Vec<_>>().join("   ")
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{at, bar, cut, span},
        *,
    };

    fn two_hooks() -> Timeline {
        let bars = vec![
            bar("mysql", "mysql-0", span(0, 120), Some(span(1_000, 1_230))),
            bar("mysql", "mysql-1", span(10, 240), Some(span(1_000, 1_100))),
            bar("files", "web-7d9f8c6b5-abcde", span(250, 300), Some(span(800, 820))),
        ];
        Timeline { bars, cuts: vec![cut("data", 512), cut("logs", 700)], now: at(9_000) }
    }

    #[test]
    fn a_snapshot_is_drawn_to_the_width() {
        let drawn = lines(&two_hooks(), Look { width: 80, glyphs: Glyphs::ASCII });
        let wanted = "
                            0      200ms  400ms  600ms   800ms  1s     1.2s
                            |      |      |      |       |      |      |
mysql
  mysql-0/main              ~~~~==============|======|===========~~~~~~~~   1.2s
  mysql-1/main              ~~~~~~~~==========|======|===========~~~~       1.1s
files
  web-7d9f8c6b5-abcde/main           ~========|======|====~                570ms
cut of data                                   ^ 512ms
cut of logs                                    700ms ^

~ freezing, thawing   = frozen   | cut seen
";
        let text = drawn.join("\n");
        assert_eq!(text, wanted.trim_matches('\n'), "\n{text}");
        assert!(drawn.iter().all(|line| line.chars().count() <= 80), "\n{text}");
    }

    #[test]
    fn a_long_name_loses_its_beginning() {
        let mut timeline = two_hooks();
        timeline.bars[0].pod = format!("{}-0", "a".repeat(100));
        let drawn = lines(&timeline, Look { width: 80, glyphs: Glyphs::UNICODE });
        assert!(drawn[3].starts_with("  ..aaaa") && drawn[3].contains("a-0/main  ▒"), "{drawn:#?}");
        assert!(drawn.iter().all(|line| line.chars().count() <= 80), "{drawn:#?}");
    }

    #[test]
    fn only_what_is_drawn_is_explained() {
        let drawn = lines(&two_hooks(), Look { width: 80, glyphs: Glyphs::ASCII });
        assert_eq!(drawn.last().unwrap(), "~ freezing, thawing   = frozen   | cut seen");
        assert!(lines(&Timeline::default(), Look { width: 80, glyphs: Glyphs::ASCII }).is_empty());
    }
}
