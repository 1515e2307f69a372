//! Rows as lines of a given width. Columns without room are left out, the least important first.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Spaces between two columns.
const GAP: usize = 2;

/// Characters of a bar.
const BAR: usize = 8;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub head: &'static str,
    /// Aligned to the right, for numbers.
    pub right: bool,
    /// Greatest width in characters.
    pub most: usize,
    /// Order of leaving out: the column with the highest number first. A column with 0 is never left out.
    pub spare: u8,
}

/// The content of a column in a row.
#[derive(Clone, Debug)]
pub enum Cell {
    Text(String, Style),
    /// Two shares from 0 to 1, drawn one after the other, and their sum as a number.
    Bar(f64, f64),
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into(), Style::new())
    }

    /// The cell of an unknown value.
    pub fn none() -> Cell {
        Cell::Text("-".into(), Style::new().dim())
    }

    fn spans(&self) -> Vec<Span<'static>> {
        match self {
            Cell::Text(text, style) => vec![Span::styled(text.clone(), *style)],
            Cell::Bar(mine, others) => {
                let cells = |share: f64| (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
                let all = cells(mine + others);
                let own = cells(*mine).min(all);
                vec![
                    Span::styled("█".repeat(own), Style::new().green()),
                    Span::raw("▒".repeat(all - own)),
                    Span::styled("·".repeat(BAR - all), Style::new().dim()),
                    Span::raw(format!(" {:>4}", percent(mine + others))),
                ]
            }
        }
    }
}

/// A share for people.
pub fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// A row, and an optional line below it.
#[derive(Clone, Debug)]
pub struct Row {
    pub cells: Vec<Cell>,
    pub note: Option<String>,
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Row {
        Row { cells, note: None }
    }
}

fn width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// Cuts a text to at most `most` columns of a terminal. A cut text ends with `…`.
pub fn fit(text: &str, most: usize) -> String {
    if Span::raw(text).width() <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        let longer = format!("{kept}{letter}");
        if Span::raw(longer.as_str()).width() + 1 > most {
            break;
        }
        kept = longer;
    }
    if most > 0 { kept + "…" } else { kept }
}

/// The heads of the columns that have room, and all rows. No line is wider than `most`.
pub fn lines(columns: &[Column], rows: &[Row], most: usize) -> Vec<Line<'static>> {
    let drawn: Vec<Vec<Vec<Span<'static>>>> =
        rows.iter().map(|row| row.cells.iter().map(Cell::spans).collect()).collect();
    let cells = |n: usize| drawn.iter().filter_map(move |row| row.get(n));
    let mut shown: Vec<(usize, &Column, usize)> = columns
        .iter()
        .enumerate()
        .map(|(n, column)| {
            let widest = cells(n).map(|spans| width(spans)).max().unwrap_or(0);
            (n, column, widest.min(column.most).max(column.head.len()))
        })
        .collect();
    while shown.iter().map(|(_, _, width)| width + GAP).sum::<usize>() > most + GAP {
        let spare = shown.iter().enumerate().filter(|(_, (_, column, _))| column.spare > 0);
        let Some((index, _)) = spare.max_by_key(|(_, (_, column, _))| column.spare) else { break };
        shown.remove(index);
    }
    let head = Style::new().add_modifier(Modifier::BOLD | Modifier::DIM);
    let heads = shown
        .iter()
        .map(|(_, column, width)| aligned(vec![Span::styled(column.head, head)], column.right, *width));
    let mut out = vec![join_cells(heads, most)];
    for (row, spans) in rows.iter().zip(&drawn) {
        let cells = shown
            .iter()
            .filter_map(|(n, column, width)| Some(aligned(spans.get(*n)?.clone(), column.right, *width)));
        out.push(join_cells(cells, most));
        if let Some(note) = &row.note {
            out.push(Line::styled(fit(&format!("  {note}"), most), Style::new().red()));
        }
    }
    out
}

/// Pads spans with spaces, or cuts them, to a width.
fn aligned(mut spans: Vec<Span<'static>>, right: bool, to: usize) -> Vec<Span<'static>> {
    let wide = width(&spans);
    if wide > to {
        let style = spans.first().map_or(Style::new(), |span| span.style);
        let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
        return aligned(vec![Span::styled(fit(&text, to), style)], right, to);
    }
    let fill = Span::raw(" ".repeat(to - wide));
    if right {
        spans.insert(0, fill);
    } else {
        spans.push(fill);
    }
    spans
}

fn join_cells(cells: impl Iterator<Item = Vec<Span<'static>>>, most: usize) -> Line<'static> {
    let mut line: Vec<Span<'static>> = Vec::new();
    for cell in cells {
        if !line.is_empty() {
            line.push(Span::raw(" ".repeat(GAP)));
        }
        line.extend(cell);
    }
    if width(&line) > most {
        // The columns that are never left out do not fit.
        line = aligned(line, false, most);
    }
    Line::from(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { head: "N", right: true, most: 4, spare: 0 },
        Column { head: "NAME", right: false, most: 8, spare: 1 },
        Column { head: "LOAD", right: false, most: 20, spare: 2 },
    ];

    fn drawn(most: usize) -> Vec<String> {
        let rows = [
            Row::new(vec![Cell::text("1"), Cell::text("a"), Cell::Bar(0.25, 0.5)]),
            Row {
                cells: vec![Cell::text("22"), Cell::text("longer than eight"), Cell::none()],
                note: Some("broken".into()),
            },
        ];
        lines(&COLUMNS, &rows, most).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_without_room_are_left_out() {
        assert_eq!(
            drawn(40),
            [
                " N  NAME      LOAD         ",
                " 1  a         ██▒▒▒▒··  75%",
                "22  longer …  -            ",
                "  broken",
            ]
        );
        assert_eq!(drawn(20), [" N  NAME    ", " 1  a       ", "22  longer …", "  broken"]);
        assert_eq!(drawn(5), [" N", " 1", "22", "  br…"]);
        assert_eq!(drawn(1), ["…", "…", "…", "…"]);
        assert_eq!(drawn(0), ["", "", "", ""]);
    }

    #[test]
    fn a_text_is_cut_by_its_width() {
        assert_eq!([0, 1, 2, 3, 4].map(|most| fit("日本", most)), ["", "…", "…", "日…", "日本"]);
        assert_eq!(fit("abc", 3), "abc");
    }

    #[test]
    fn shares_that_cannot_be_are_drawn_all_the_same() {
        for (mine, others) in [(2.0, 3.0), (-1.0, 0.5), (f64::NAN, 0.1), (f64::INFINITY, 0.0)] {
            let drawn: String =
                Cell::Bar(mine, others).spans().iter().map(|span| span.content.as_ref()).collect();
            assert!(drawn.chars().take(BAR).all(|c| "█▒·".contains(c)), "{drawn}");
        }
    }
}
