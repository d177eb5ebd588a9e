//! Who was frozen from when to when, and when the cut was: as a small struct, and as a drawing of it.
//!
//! Everything here but [`Show`] is pure: times come with the struct, and so does the moment until which a bar goes that has no end.

mod axis;
mod bar;
mod collect;
mod draw;
mod json;
mod show;

use std::time::Duration;

use jiff::Timestamp;

pub(crate) use collect::{of_hook, of_snapshot};
pub(crate) use draw::{Glyphs, Look, lines};
pub(crate) use json::value;
pub(crate) use show::{Show, print};

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timeline {
    /// In the order of the hooks.
    pub(crate) bars: Vec<Bar>,
    pub(crate) cuts: Vec<Cut>,
    /// The time now: how far a bar goes that has not ended.
    pub(crate) now: Timestamp,
}

/// One container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The hook, in words.
    pub(crate) hook: String,
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) freeze: Span,
    pub(crate) thaw: Option<Span>,
    /// Whether it is, or may be, still frozen.
    pub(crate) open: bool,
}

/// One action in one container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: Timestamp,
    /// Absent while it runs.
    pub(crate) end: Option<Timestamp>,
    pub(crate) succeeded: Option<bool>,
    /// The last error, for a person.
    pub(crate) error: Option<String>,
}

/// One volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) claim: String,
    pub(crate) volume_snapshot: String,
    /// When the controller saw it.
    pub(crate) seen: Timestamp,
}

impl Bar {
    /// The container, in words.
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.pod, self.container)
    }

    fn end(&self, now: Timestamp) -> Timestamp {
        let known = self.thaw.as_ref().and_then(|thaw| thaw.end).or(self.freeze.end).filter(|_| !self.open);
        known.unwrap_or(now).max(self.freeze.start)
    }

    /// From the start of its PreAction to the end of its PostAction, or until now.
    pub(crate) fn length(&self, now: Timestamp) -> Duration {
        between(self.freeze.start, self.end(now))
    }
}

impl Timeline {
    /// When the first PreAction began.
    pub(crate) fn start(&self) -> Option<Timestamp> {
        self.bars.iter().map(|bar| bar.freeze.start).min()
    }

    fn end(&self) -> Option<Timestamp> {
        let bars = self.bars.iter().map(|bar| bar.end(self.now)).max()?;
        Some(self.cuts.iter().map(|cut| cut.seen).fold(bars, Timestamp::max))
    }

    /// From the start of the first PreAction to the end of the last PostAction, or until now.
    pub(crate) fn window(&self) -> Option<Duration> {
        let end = self.bars.iter().map(|bar| bar.end(self.now)).max()?;
        Some(between(self.start()?, end))
    }

    /// Whether something is, or may be, still frozen.
    pub(crate) fn is_open(&self) -> bool {
        self.bars.iter().any(|bar| bar.open)
    }

    /// The time in which every container was frozen at once, counted from the start. None if there was no such time.
    pub(crate) fn all_frozen(&self) -> Option<(Duration, Duration)> {
        let start = self.start()?;
        let froze = |bar: &Bar| bar.freeze.end.filter(|_| bar.freeze.succeeded == Some(true));
        let from = self.bars.iter().map(froze).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let first_thaw = self.bars.iter().filter_map(|bar| bar.thaw.as_ref().map(|thaw| thaw.start)).min();
        let until = first_thaw.unwrap_or_else(|| self.end().unwrap_or(from));
        (until >= from).then(|| (between(start, from), between(start, until)))
    }
}

/// Never less than none: clocks of different machines may disagree.
fn between(start: Timestamp, end: Timestamp) -> Duration {
    end.duration_since(start).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    pub(super) fn at(millis: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(millis)
    }

    pub(super) fn span(start: i64, end: i64) -> Span {
        Span { start: at(start), end: Some(at(end)), succeeded: Some(true), error: None }
    }

    pub(super) fn bar(hook: &str, pod: &str, freeze: Span, thaw: Option<Span>) -> Bar {
        let open = thaw.as_ref().is_none_or(|thaw| thaw.succeeded != Some(true));
        Bar { hook: hook.to_owned(), pod: pod.to_owned(), container: "main".to_owned(), freeze, thaw, open }
    }

    pub(super) fn cut(claim: &str, seen: i64) -> Cut {
        Cut { claim: claim.to_owned(), volume_snapshot: format!("nightly-{claim}"), seen: at(seen) }
    }

    #[test]
    fn all_are_frozen_from_the_last_freeze_to_the_first_thaw() {
        let bars = vec![
            bar("a", "one", span(0, 100), Some(span(900, 1_000))),
            bar("b", "two", span(100, 300), Some(span(700, 800))),
        ];
        let mut timeline = Timeline { bars, cuts: vec![], now: at(5_000) };
        assert_eq!(timeline.all_frozen(), Some((Duration::from_millis(300), Duration::from_millis(700))));
        assert_eq!((timeline.window(), timeline.is_open()), (Some(Duration::from_millis(1_000)), false));
        timeline.bars[1].freeze.succeeded = Some(false);
        assert_eq!(timeline.all_frozen(), None);
        timeline.bars[1] = bar("b", "two", span(950, 980), None);
        assert_eq!((timeline.all_frozen(), timeline.is_open()), (None, true));
        assert_eq!(timeline.window(), Some(Duration::from_secs(5)));
        assert_eq!(Timeline::default().window(), None);
    }
}
