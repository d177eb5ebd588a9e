//! Columns, aligned as kubectl aligns them: three spaces between, at least six characters each, nothing after the last.

/// Between two columns.
const GAP: usize = 3;

/// kubectl's least width of a column, with its gap.
const LEAST: usize = 6;

/// In a cell: as kubectl says that there is none.
pub(crate) const NONE: &str = "<none>";

/// In a cell: there is nothing to say, yet or ever.
pub(crate) const NOTHING: &str = "-";

/// The widths of columns, known before the first row is printed.
pub(crate) struct Columns(Vec<usize>);

impl Columns {
    /// Wide enough for all of these rows; the header is one.
    pub(crate) fn fitting<'a>(rows: impl IntoIterator<Item = &'a [String]>) -> Self {
        let mut widths = Vec::new();
        for row in rows {
            widths.resize(widths.len().max(row.len()), LEAST);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count() + GAP);
            }
        }
        Self(widths)
    }

    /// A row in two parts: all cells but the last, aligned; and the last, which may be folded.
    pub(crate) fn parts<'a>(&self, row: &'a [String]) -> (String, &'a str) {
        let Some((last, before)) = row.split_last() else { return (String::new(), "") };
        let padded = before.iter().zip(&self.0).map(|(cell, width)| format!("{cell:width$}"));
        (padded.collect(), last)
    }

    /// A row as a line. `paint` may change how a cell looks, but not how wide it is.
    pub(crate) fn line(&self, row: &[String], paint: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (place, cell) in row.iter().enumerate() {
            line += &paint(place, cell);
            if place + 1 < row.len() {
                let width = self.0.get(place).copied().unwrap_or_default();
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
            }
        }
        line
    }
}

/// A whole table as lines.
pub(crate) fn lines(rows: &[Vec<String>]) -> impl Iterator<Item = String> {
    let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
    rows.iter().map(move |row| columns.line(row, |_, cell| cell.to_owned()))
}

/// A row of texts.
#[cfg(test)]
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_as_kubectls_are() {
        let rows = [row(["POD", "X", "LAST"]), row(["überholer", "b", "c"])];
        let lines: Vec<_> = lines(&rows).collect();
        assert_eq!(lines, ["POD         X     LAST", "überholer   b     c"]);
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        assert_eq!(columns.parts(&rows[1]), ("überholer   b     ".to_owned(), "c"));
    }

    #[test]
    fn colours_take_no_room() {
        let rows = [row(["POD", "RESULT", "TIME"]), row(["a", "ok", "1s"])];
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        let painted = columns.line(&rows[1], |place, cell| if place == 1 { format!("<{cell}>") } else { cell.into() });
        assert_eq!(painted, "a     <ok>       1s");
    }
}
