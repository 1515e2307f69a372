//! Answers as text for people.

mod placement;

use std::io::{self, Write};

use gristmill_kernel::{Array, Numerics, Position, RowShape, RowValue, Value};
use gristmill_runtime::{Report, RevisionReport};

use crate::size::readable;
pub use placement::plan;

/// Items of a list on one line, and the indent of further lines in characters.
const LIST_ON_A_LINE: usize = 12;
const INDENT: usize = 8;

/// The end of a line that is cut.
const CUT: &str = " ...";

/// Elements of a longer list, and lines of a longer array, that a terminal shows.
const SHOWN: usize = 96;
const SHOWN_LINES: usize = 20;

/// Characters of a reason that are shown.
const MAX_WHY: usize = 300;

/// Writes an answer, one named value per line. `columns` is the width of a terminal; long values are cut for it.
pub fn value(out: &mut dyn Write, value: &Value, columns: Option<usize>) -> io::Result<()> {
    let Value::Map(entries) = value else {
        scalar(out, value)?;
        return writeln!(out);
    };
    let width = entries.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in entries {
        write!(out, "{key:width$}  ")?;
        match (value, columns) {
            (Value::Array(array), Some(columns)) => array_beginning(out, array, width + 2, columns)?,
            _ => scalar(out, value)?,
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the part of an array that a terminal shows, and how to see the rest. `at` is the first column.
fn array_beginning(out: &mut dyn Write, array: &Array, at: usize, columns: usize) -> io::Result<()> {
    let cut = match array.shape.as_slice() {
        [] => return scalar(out, &Value::Array(array.clone())),
        [all] => {
            write_elements(out, array, at, columns)?;
            (*all > SHOWN as u64).then(|| format!("{SHOWN} of {all}"))
        }
        shape => {
            let lines: u64 = shape.iter().rev().skip(1).product();
            let whole = write_lines(out, array, columns)? && lines <= SHOWN_LINES as u64;
            let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
            (!whole).then(|| format!("the beginning of {}", shape.join("x")))
        }
    };
    match cut {
        None => Ok(()),
        Some(cut) => {
            write!(out, "\n  ... {cut}; --output FILE.nc or FILE.npy, --json, or a pipe gives all")
        }
    }
}

/// Writes the first elements of a list, in lines of `columns` characters.
fn write_elements(out: &mut dyn Write, array: &Array, at: usize, columns: usize) -> io::Result<()> {
    let mut column = at;
    for (i, value) in array.values().take(SHOWN).enumerate() {
        let text = scalar_text(&value)?;
        if i > 0 && column + 1 + text.len() > columns {
            write!(out, "\n{:INDENT$}", "")?;
            column = INDENT;
        } else if i > 0 {
            write!(out, " ")?;
            column += 1;
        }
        out.write_all(&text)?;
        column += text.len();
    }
    Ok(())
}

/// Writes the first lines of an array of several axes, each as far as it fits. Returns whether all lines fit.
fn write_lines(out: &mut dyn Write, array: &Array, columns: usize) -> io::Result<bool> {
    let line_length = array.shape.last().copied().unwrap_or(1) as usize;
    let room = columns.saturating_sub(CUT.len());
    let (mut column, mut cut, mut whole) = (0, false, true);
    for (i, value) in array.values().take(line_length.saturating_mul(SHOWN_LINES)).enumerate() {
        if i % line_length == 0 {
            write!(out, "\n ")?;
            (column, cut) = (1, false);
        }
        let text = scalar_text(&value)?;
        column += 1 + text.len();
        if !cut && (column <= room || i % line_length == 0 || column <= columns && (i + 1) % line_length == 0)
        {
            write!(out, " ")?;
            out.write_all(&text)?;
        } else if !cut {
            write!(out, "{CUT}")?;
            (cut, whole) = (true, false);
        }
    }
    Ok(whole)
}

fn scalar_text(value: &Value) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    scalar(&mut text, value)?;
    Ok(text)
}

fn scalar(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    match value {
        Value::Int(n) => out.write_all(itoa::Buffer::new().format(*n).as_bytes()),
        Value::Float(x) if x.is_finite() => out.write_all(zmij::Buffer::new().format_finite(*x).as_bytes()),
        Value::Float(x) => write!(out, "{x}"),
        Value::Text(text) => write!(out, "{text}"),
        Value::Bytes(bytes) => out.write_all(bytes),
        Value::List(values) => {
            for (i, value) in values.iter().enumerate() {
                match i {
                    0 => {}
                    // Each point, or other list inside the list, has its own line.
                    _ if matches!(value, Value::List(_)) => write!(out, "\n        ")?,
                    i if i % LIST_ON_A_LINE == 0 => write!(out, "\n        ")?,
                    _ => write!(out, " ")?,
                }
                scalar(out, value)?;
            }
            Ok(())
        }
        Value::Array(array) => match array.shape.last() {
            Some(columns) if array.shape.len() > 1 && *columns > 0 => rows(out, array, *columns as usize),
            _ => scalar(out, &Value::List(array.values().collect())),
        },
        Value::Map(entries) => {
            for (key, value) in entries {
                write!(out, " {key}=")?;
                scalar(out, value)?;
            }
            Ok(())
        }
    }
}

/// Writes an array of several axes: one line per index of the last axis but one, and an empty line between the
/// blocks of the other axes.
fn rows(out: &mut dyn Write, array: &Array, columns: usize) -> io::Result<()> {
    let rows = array.shape.iter().rev().nth(1).copied().unwrap_or(1).max(1) as usize;
    for (i, value) in array.values().enumerate() {
        match i {
            _ if i % columns > 0 => write!(out, " ")?,
            _ if i > 0 && (i / columns).is_multiple_of(rows) => write!(out, "\n\n  ")?,
            _ => write!(out, "\n  ")?,
        }
        scalar(out, &value)?;
    }
    Ok(())
}

/// Writes a row: `index value`, or `offset:line` as `grep -b` does.
pub fn row(out: &mut dyn Write, shape: &RowShape, at: Position, bytes: &[u8]) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(shape.display_number(at)).as_bytes())?;
    match shape.value {
        RowValue::Element(dtype) => {
            out.write_all(b"\t")?;
            scalar(out, &dtype.value(bytes))?;
        }
        RowValue::Line => {
            out.write_all(b":")?;
            out.write_all(bytes)?;
        }
    }
    out.write_all(b"\n")
}

/// The report of a request in one line. It names lanes only for folds of this process, because storage nodes have
/// their own. `rounded` is the type that the answer was rounded to at its end, if that lost digits.
pub fn report(report: &Report, folded_locally: bool, numerics: Numerics, rounded: Option<&str>) -> String {
    let seconds = report.elapsed.as_secs_f64();
    let speed = readable((report.bytes_read as f64 / seconds.max(1e-9)) as u64);
    let mut text = format!("read {} in {seconds:.3} s ({speed}/s)", readable(report.bytes_read));
    let counted = |n: usize, what: &str| format!(", {n} {what}{}", if n == 1 { "" } else { "s" });
    if folded_locally {
        text.push_str(&counted(report.lanes, "lane"));
    }
    let targets = report.places.iter().filter(|place| place.place != "client" || folded_locally).count();
    if !folded_locally || targets > 1 {
        text.push_str(&counted(targets, "target"));
    }
    if targets > 1 {
        text.push_str(&format!(", {} between targets", readable(report.bytes_moved)));
    }
    if report.bytes_folded_in_storage > 0 {
        let inside = readable(report.bytes_folded_in_storage);
        text.push_str(&format!(", {inside} folded in the storage daemons"));
    }
    if report.bytes_to_client > 0 {
        let (moved, not) = (readable(report.bytes_to_client), readable(report.bytes_not_moved));
        text.push_str(&format!(", {moved} to the client, {not} not moved"));
    }
    if report.chunks_settled > 0 {
        text.push_str(&format!(", {} chunks known from their statistics", report.chunks_settled));
    }
    if report.rounds > 1 {
        text.push_str(&format!(", {} passes", report.rounds));
    }
    let rounded = rounded.map_or(String::new(), |to| format!(", rounded to {to}"));
    text.push_str(&format!("; {numerics}{rounded}"));
    if numerics != Numerics::Exact {
        // Few people know these words.
        text.push_str(&format!(" ('gristmill kernels {numerics}' says what that is)"));
    }
    for revision in &report.revisions {
        text.push_str(&revision_line(revision));
    }
    for shortage in &report.shortages {
        text.push_str(&format!("\nnode {}: {}", shortage.node, placement::shortage(shortage.others)));
    }
    text
}

/// A part that was folded at another place than first decided, and why, on a line of its own.
fn revision_line(revision: &RevisionReport) -> String {
    let (nodes, seconds) = (revision.nodes.join(", "), revision.after.as_secs_f64());
    // The text comes from a node and goes to a terminal.
    let why: String = revision.why.chars().filter(|c| !c.is_control()).take(MAX_WHY).collect();
    format!("\nfolded here since {seconds:.3} s, of node {nodes}: {why}")
}
