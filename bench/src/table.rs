//! Figures side by side.

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Milliseconds,
    PerSecond,
    /// A million bytes each.
    Megabytes,
}

/// What is wanted of boathook's figure.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeastThePeer,
}

pub(crate) struct Row {
    what: String,
    unit: Unit,
    boathook: f64,
    peer: f64,
    aim: Option<Aim>,
}

impl Row {
    pub(crate) fn new(what: String, unit: Unit, [boathook, peer]: [f64; 2], aim: Option<Aim>) -> Self {
        Self { what, unit, boathook, peer, aim }
    }

    fn cells(&self) -> [String; 5] {
        let (boathook, peer) = (self.unit.show(self.boathook), self.unit.show(self.peer));
        let ratio = format!("{:.2}", self.boathook / self.peer);
        [self.what.clone(), boathook, peer, ratio, self.judged()]
    }

    fn judged(&self) -> String {
        let (aim, is_met) = match self.aim {
            None => return String::new(),
            Some(Aim::AtMost(most)) => (format!("at most {}", self.unit.show(most)), self.boathook <= most),
            Some(Aim::AtLeastThePeer) => ("at least as many".to_owned(), self.boathook >= self.peer),
        };
        format!("{aim}: {}", if is_met { "met" } else { "missed" })
    }
}

impl Unit {
    pub(crate) fn show(self, figure: f64) -> String {
        match self {
            Self::Milliseconds if figure < 10.0 => format!("{figure:.1} ms"),
            Self::Milliseconds => format!("{figure:.0} ms"),
            Self::PerSecond => format!("{figure:.0}/s"),
            Self::Megabytes => format!("{figure:.0} MB"),
        }
    }
}

pub(crate) fn render(rows: &[Row]) -> String {
    let head = ["what", "boathook", "etcd + kube-apiserver", "ratio", "aim"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    markdown(&lines)
}

/// A Markdown table that also reads well as it is; the first line is its head.
pub(crate) fn markdown<const N: usize>(lines: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text.push_str(&padded(line, &widths));
        if number == 0 {
            let rule = widths.map(|width| "-".repeat(width));
            text.push_str(&padded(&rule, &widths));
        }
    }
    text
}

fn padded<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    format!("| {} |\n", padded.join(" | "))
}

pub(crate) fn median(figures: &[f64]) -> f64 {
    percentile(figures, 0.5)
}

/// The smallest figure that so large a part of them does not exceed.
pub(crate) fn percentile(figures: &[f64], part: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_figures_that_were_seen() {
        let figures: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((median(&figures), percentile(&figures, 0.99)), (100.0, 198.0));
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_table_says_what_was_aimed_at_and_whether_it_was_met() {
        let rows = [
            Row::new("ready".to_owned(), Unit::Milliseconds, [150.4, 3000.0], Some(Aim::AtMost(300.0))),
            Row::new("writes".to_owned(), Unit::PerSecond, [50.0, 100.0], Some(Aim::AtLeastThePeer)),
            Row::new("memory".to_owned(), Unit::Megabytes, [61.0, 400.0], None),
        ];
        let expected = "\
| what   | boathook | etcd + kube-apiserver | ratio | aim                      |
| ------ | -------- | --------------------- | ----- | ------------------------ |
| ready  | 150 ms   | 3000 ms               | 0.05  | at most 300 ms: met      |
| writes | 50/s     | 100/s                 | 0.50  | at least as many: missed |
| memory | 61 MB    | 400 MB                | 0.15  |                          |
";
        assert_eq!(render(&rows), expected);
    }
}
