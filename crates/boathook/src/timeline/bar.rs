//! One container's bar: a character for each column.

use jiff::Timestamp;

use super::{Bar, Span, axis::Axis};

/// What the parts of a bar are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glyphs {
    /// An action runs: something is being frozen, or thawed.
    pub(super) acting: char,
    pub(super) frozen: char,
    pub(super) cut: char,
    pub(super) failed: char,
    /// It has not ended.
    pub(super) open: char,
}

impl Glyphs {
    /// For terminals and files that know more than ASCII.
    pub(crate) const UNICODE: Self = Self { acting: '▒', frozen: '█', cut: '│', failed: '✗', open: '▶' };
    pub(crate) const ASCII: Self = Self { acting: '~', frozen: '=', cut: '|', failed: 'x', open: '>' };
}

/// The bar, as wide as the axis. Whatever there was has at least one column.
pub(super) fn drawn(bar: &Bar, cuts: &[Timestamp], axis: &Axis, now: Timestamp, glyphs: Glyphs) -> Vec<char> {
    let mut cells = vec![' '; axis.columns()];
    let (first, last) = (axis.column(bar.freeze.start), axis.column(bar.end(now)));
    cells[first..=last].fill(glyphs.frozen);
    let mut act = |span: &Span, is_thaw: bool| {
        let end = axis.column(span.end.unwrap_or(now)).min(last);
        let start = axis.column(span.start).clamp(first, end);
        // What is frozen between two quick actions is not hidden by them.
        let range = if is_thaw { end.min(start + 1)..end + 1 } else { start..end.max(start + 1) };
        cells[range.clone()].fill(glyphs.acting);
        if span.succeeded == Some(false) {
            cells[range.end - 1] = glyphs.failed;
        }
    };
    act(&bar.freeze, false);
    if let Some(thaw) = &bar.thaw {
        act(thaw, true);
    }
    if bar.open {
        cells[last] = glyphs.open;
    }
    for cut in cuts.iter().map(|cut| axis.column(*cut)) {
        // A line through all rows; but it never hides the whole of a short bar, nor how it ended.
        if matches!(cells[cut], cell if cell == ' ' || cell == glyphs.frozen) && first != last {
            cells[cut] = glyphs.cut;
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{at, bar, span},
        *,
    };

    fn shown(bar: &Bar, cuts: &[i64]) -> String {
        let axis = Axis::new(at(0), at(1_000), 20);
        let cuts: Vec<_> = cuts.iter().map(|cut| at(*cut)).collect();
        drawn(bar, &cuts, &axis, at(1_000), Glyphs::ASCII).into_iter().collect()
    }

    #[test]
    fn a_bar_shows_freeze_cut_and_thaw() {
        assert_eq!(shown(&bar("a", "one", span(100, 200), Some(span(700, 800))), &[500]), "  ~~======|====~~   ");
        let quick = bar("a", "one", span(100, 101), Some(span(899, 900)));
        assert_eq!(shown(&quick, &[]), "  ~===============~ ");
    }

    #[test]
    fn a_short_bar_is_seen() {
        assert_eq!(shown(&bar("a", "one", span(100, 101), Some(span(102, 103))), &[102]), "  ~                 ");
        assert_eq!(shown(&bar("a", "one", span(0, 0), Some(span(51, 51))), &[]), "~~                  ");
    }

    #[test]
    fn what_failed_and_what_goes_on_is_marked() {
        let mut failed = bar("a", "one", span(0, 500), Some(span(510, 600)));
        failed.freeze.succeeded = Some(false);
        assert_eq!(shown(&failed, &[]), "~~~~~~~~~x=~~       ");
        assert_eq!(shown(&bar("a", "one", span(0, 100), None), &[500]), "~~========|========>");
        let mut stuck = bar("a", "one", span(0, 100), Some(span(500, 600)));
        (stuck.open, stuck.thaw.as_mut().unwrap().succeeded) = (true, Some(false));
        assert_eq!(shown(&stuck, &[]), "~~=========~x======>");
    }
}
