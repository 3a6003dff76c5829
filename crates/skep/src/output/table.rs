//! Text in columns.

use std::collections::BTreeSet;

/// Columns with a heading each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// What stands between columns.
const GAP: &str = "   ";
/// A cell that is cut keeps so many characters.
const LEAST: usize = 6;

impl Table {
    pub(crate) fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { headings: headings.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each heading. A cell is one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let one_line = |cell: String| cell.lines().next().unwrap_or_default().to_owned();
        self.rows.push(cells.into_iter().map(Into::into).map(one_line).collect());
    }

    /// The same table without some of its columns.
    pub(crate) fn without(&self, headings: &[&str]) -> Self {
        let keep: Vec<bool> = self.headings.iter().map(|heading| !headings.contains(&heading.as_str())).collect();
        let filter = |cells: &Vec<String>| {
            cells.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(cell, _)| cell.clone()).collect()
        };
        Self { headings: filter(&self.headings), rows: self.rows.iter().map(filter).collect() }
    }

    /// The same table with what is in its first column cut, so that no line is longer than `width` if that can be had;
    /// none when rows that differ would look the same. The middle is what names can do without.
    pub(crate) fn cut_first(&self, width: usize) -> Option<Self> {
        let longest = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
        let first = self.rows.iter().chain([&self.headings]).filter_map(|cells| cells.first());
        let first: Vec<String> = first.cloned().collect();
        let room = longest(&first).saturating_sub(longest(&self.lines()).saturating_sub(width)).max(LEAST);
        let mut cut = self.clone();
        for cell in cut.rows.iter_mut().filter_map(|cells| cells.first_mut()) {
            if cell.chars().count() > room {
                let (head, tail) = (room / 2, (room - 1) / 2);
                let end = cell.chars().skip(cell.chars().count() - tail);
                *cell = cell.chars().take(head).chain(['…']).chain(end).collect();
            }
        }
        let different =
            |table: &Self| table.rows.iter().filter_map(|cells| cells.first().cloned()).collect::<BTreeSet<_>>();
        (different(&cut).len() == different(self).len()).then_some(cut)
    }

    /// The heading and the rows, a line each, without spaces at the end.
    pub(crate) fn lines(&self) -> Vec<String> {
        let all = || std::iter::once(&self.headings).chain(&self.rows);
        let mut widths = vec![0; self.headings.len()];
        for cells in all() {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
        };
        all().map(line).collect()
    }

    /// All lines as one text.
    pub(crate) fn text(&self) -> String {
        self.lines().into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "N"]);
        table.row(["a", "1"]);
        table.row(["longer", "two\nlines"]);
        assert_eq!(table.text(), "NAME     N\na        1\nlonger   two\n");
        assert_eq!(table.without(&["N"]).lines(), ["NAME", "a", "longer"]);
        table.row(["very-long-name", "3"]);
        assert_eq!(table.cut_first(14).unwrap().lines()[3], "very…ame   3");
        assert_eq!(table.cut_first(1).unwrap().lines()[3], "ver…me   3");
        table.row(["very-different-name", "4"]);
        assert_eq!(table.cut_first(1), None, "both would look the same");
    }
}
