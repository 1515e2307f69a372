//! `grep`: the lines or records that match a regular expression.

use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, SinkMatch};

use super::lookup::COUNT_ONLY;
use crate::catalog::{Accepts, Declaration};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Order, Output, ParamDecl, ParamKind,
    Params, Position, RecordRule, RowShape, RowValue, Sink, Spec, Step, Value,
};

const NAME: &str = "grep";

/// Most bytes of a compiled pattern, and of the automaton that a thread makes of it while it searches. The pattern
/// comes from a client, and a pattern of a few bytes may compile to gigabytes.
const MAX_COMPILED: usize = 10 << 20;

pub(crate) const DECLARATION: Declaration = Declaration {
    name: NAME,
    summary: "the lines or fixed-size records that match a regular expression",
    details: "The syntax is that of the Rust crate regex, as in ripgrep. A line counts once, also if it matches \
              several times. It is matched and shown without its newline. So is a record of --record bytes that ends \
              in a newline. Bytes that are not UTF-8 are allowed and match no character. No match is not an error.",
    accepts: &[Accepts::Lines, Accepts::Records],
    params: &[
        ParamDecl {
            name: "pattern",
            kind: ParamKind::Text,
            default: None,
            required: true,
            help: "the regular expression",
            example: "'[A-Z]{12,}K'",
        },
        COUNT_ONLY,
        ParamDecl {
            name: "fixed",
            kind: ParamKind::Bool,
            default: Some("false"),
            required: false,
            help: "the pattern is plain text",
            example: "true",
        },
        ParamDecl {
            name: "ignore_case",
            kind: ParamKind::Bool,
            default: Some("false"),
            required: false,
            help: "upper and lower case are the same",
            example: "true",
        },
    ],
    result: &[("count", "lines or records that match")],
    rows: Some("(offset, line): byte offset in the file and the line or record"),
    numerics: Numerics::Exact,
    bind,
};

fn bind(params: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let lines = input.record == RecordRule::Lines;
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(params.flag("ignore_case")).fixed_strings(params.flag("fixed"));
    builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED);
    if lines {
        builder.multi_line(true).line_terminator(Some(b'\n'));
    }
    let matcher = builder.build(params.text("pattern")).map_err(|error| {
        // The last line of a long message says what is wrong.
        let text = error.to_string();
        let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        params.refuse("pattern", what + "; write it as for ripgrep, or give fixed=true for plain text")
    })?;
    // A pattern that looks around a match must get each record alone.
    let looks_around = !params.flag("fixed")
        && regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(params.text("pattern"))
            .map_or(true, |hir| !hir.properties().look_set().is_empty());
    let grep = Grep { matcher, input: *input, rows: !params.flag("count_only"), looks_around };
    Ok(Arc::new(GrepKernel(Arc::new(grep))))
}

/// The kernel, with one matcher for all folds. Each clone of a matcher would have to fill its own caches.
struct GrepKernel(Arc<Grep>);

struct Grep {
    matcher: RegexMatcher,
    input: Input,
    rows: bool,
    looks_around: bool,
}

impl Kernel for GrepKernel {
    fn spec(&self) -> Spec {
        let grep = &*self.0;
        // The positions of lines are offsets in the file already.
        let (origin, per_record) = match grep.input.record {
            RecordRule::Fixed(bytes) => (grep.input.header, bytes),
            RecordRule::Lines => (0, 1),
        };
        let shape = RowShape { position: "offset", origin, per_record, value: RowValue::Line };
        let output = if grep.rows { Output::Rows(shape) } else { Output::Value };
        let spec = match grep.input.record {
            RecordRule::Lines => Spec::lines(NAME),
            RecordRule::Fixed(bytes) => Spec::fixed(NAME, bytes),
        };
        let order = if grep.rows { Order::File } else { Order::Any };
        Spec { output, order, ..spec }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(GrepFold { grep: self.0.clone(), searcher: None, count: 0 }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::Map(vec![("count", decode(whole)?.into())])))
    }
}

fn decode(state: &[u8]) -> Result<u64, KernelError> {
    let mut read = StateReader::new(NAME, state);
    let count = read.u64()?;
    read.end()?;
    Ok(count)
}

struct GrepFold {
    grep: Arc<Grep>,
    /// Made when the first lines come. It has buffers, and many folds only merge.
    searcher: Option<Searcher>,
    count: u64,
}

fn searcher() -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder.line_number(false).bom_sniffing(false).binary_detection(BinaryDetection::none()).build()
}

fn failed(error: impl std::fmt::Display) -> KernelError {
    KernelError::Domain { kernel: NAME, why: format!("the search failed: {error}") }
}

/// A receiver of the matching lines of one block.
struct Matches<'a> {
    first: u64,
    rows: Option<&'a mut dyn Sink>,
    count: u64,
    /// Offset in the block of the line that the sink refused.
    refused: Option<u64>,
}

impl grep_searcher::Sink for Matches<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let line = found.bytes();
        if let Some(rows) = &mut self.rows {
            let offset = found.absolute_byte_offset();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if rows.put(Position::of_record(self.first + offset), line).is_err() {
                self.refused = Some(offset);
                return Ok(false);
            }
        }
        self.count += 1;
        Ok(true)
    }
}

impl GrepFold {
    fn search_lines(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        let rows = if self.grep.rows { Some(sink) } else { None };
        let mut matches = Matches { first: block.first(), rows, count: 0, refused: None };
        let searcher = self.searcher.get_or_insert_with(searcher);
        searcher.search_slice(&self.grep.matcher, block.data(), &mut matches).map_err(failed)?;
        self.count += matches.count;
        Ok(match matches.refused {
            Some(offset) => Step::Full(offset),
            None => Step::Took(block.count()),
        })
    }

    fn search_records(
        &mut self,
        size: usize,
        block: &Block<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Step, KernelError> {
        let data = block.data();
        let mut at = 0;
        while at < data.len() {
            if !self.grep.looks_around {
                // The leftmost match in all records begins in or before the first record that matches.
                match self.grep.matcher.find_at(data, at).map_err(failed)? {
                    None => break,
                    Some(found) if found.start() >= data.len() => break,
                    Some(found) => at = found.start() / size * size,
                }
            }
            let record = &data[at..(at + size).min(data.len())];
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            if self.grep.matcher.is_match(record).map_err(failed)? {
                let number = (at / size) as u64;
                if self.grep.rows && sink.put(Position::of_record(block.first() + number), record).is_err() {
                    return Ok(Step::Full(number));
                }
                self.count += 1;
            }
            at += size;
        }
        Ok(Step::Took(block.count()))
    }
}

impl Fold for GrepFold {
    fn update(&mut self, block: &Block<'_>, sink: &mut dyn Sink) -> Result<Step, KernelError> {
        match self.grep.input.record {
            RecordRule::Lines => self.search_lines(block, sink),
            RecordRule::Fixed(size) => self.search_records(size as usize, block, sink),
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_u64(self.count);
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        self.count = self.count.saturating_add(decode(later)?);
        Ok(())
    }
}
