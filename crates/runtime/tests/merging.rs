//! Units of several sources are merged in the order of the file.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::collections::VecDeque;

use gristmill_kernel::{Position, RowBatch};
use gristmill_runtime::{
    ErrorKind, RunError, Tally, UnitEnd, UnitEvent, UnitOutput, UnitSource, merge_units,
};

fn failed(at: u64) -> RunError {
    RunError::Remote { kind: ErrorKind::Data, message: format!("record {at}") }
}

/// Events of one member.
struct Events(VecDeque<UnitEvent>, u64);

impl UnitSource for Events {
    fn next(&mut self) -> Result<UnitEvent, RunError> {
        self.0.pop_front().ok_or_else(|| failed(u64::MAX))
    }
    fn received(&self) -> u64 {
        self.1
    }
}

fn source(events: Vec<UnitEvent>) -> Box<dyn UnitSource> {
    Box::new(Events(events.into(), 1000))
}

fn row(at: u64) -> UnitEvent {
    let mut batch = RowBatch::default();
    batch.push(Position::of_record(at), b"row");
    UnitEvent::Rows(batch)
}

fn ended() -> UnitEvent {
    UnitEvent::End(UnitEnd { piece: None, enough: false, cut: false })
}

fn finished(read: u64) -> UnitEvent {
    UnitEvent::Finished(Tally { read: vec![read], ..Tally::new(1) })
}

/// An output that notes each call as text.
#[derive(Default)]
struct Taken(Vec<String>);

impl Taken {
    fn note(&mut self, text: String) -> Result<(), RunError> {
        self.0.push(text);
        Ok(())
    }
}

impl UnitOutput for Taken {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.note(format!("unit {at}"))
    }
    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        batch.positions().try_for_each(|at| self.note(format!("row {}", at.record)))
    }
    fn end(&mut self, _: UnitEnd) -> Result<(), RunError> {
        self.note("end".into())
    }
}

fn merged(sources: Vec<Box<dyn UnitSource>>) -> (Result<(), RunError>, Vec<String>, Tally) {
    let mut taken = Taken::default();
    let mut tally = Tally::new(1);
    let result = merge_units(sources, &mut taken, &mut tally, &mut |_| Ok(None));
    (result, taken.0, tally)
}

#[test]
fn units_of_several_sources_come_in_the_order_of_the_file() {
    use UnitEvent::Begin;
    let first =
        vec![Begin(0), row(1), row(2), ended(), Begin(20), ended(), Begin(30), row(31), ended(), finished(5)];
    let second = vec![Begin(10), row(11), ended(), Begin(40), row(41), ended(), finished(7)];
    let (result, taken, tally) = merged(vec![source(second), source(first), source(vec![finished(1)])]);
    result.unwrap();
    let expected =
        "unit 0,row 1,row 2,end,unit 10,row 11,end,unit 20,end,unit 30,row 31,end,unit 40,row 41,end";
    assert_eq!(taken.join(","), expected);
    assert_eq!((tally.read, tally.sent), (vec![13], 3000));
}

#[test]
fn units_end_with_the_first_that_has_enough_or_is_cut() {
    use UnitEvent::{Begin, Failed};
    for (enough, cut) in [(true, false), (false, true)] {
        let last = UnitEvent::End(UnitEnd { piece: None, enough, cut });
        // Later units are not taken, and their failures are not reported.
        let first = vec![Begin(0), row(1), last, Begin(2), Failed(failed(2))];
        let second = vec![Begin(10), Failed(failed(10))];
        let (result, taken, tally) = merged(vec![source(second), source(first)]);
        result.unwrap();
        assert_eq!(taken.join(","), "unit 0,row 1,end");
        assert_eq!(tally.sent, 2000);
    }
}

#[test]
fn the_first_failure_among_units_is_reported() {
    use UnitEvent::{Begin, Failed};
    let first = vec![Begin(0), ended(), Begin(20), Failed(failed(20))];
    let second = vec![Begin(10), row(11), Failed(failed(10))];
    let (result, taken, _) = merged(vec![source(first), source(second)]);
    assert_eq!(result.unwrap_err().to_string(), failed(10).to_string());
    assert_eq!(taken.join(","), "unit 0,end,unit 10,row 11");
}

#[test]
fn wrong_sequences_of_events_are_refused() {
    use UnitEvent::Begin;
    let wrong = [
        vec![Begin(10), ended(), Begin(5), ended(), finished(0)],
        vec![Begin(10), ended(), Begin(10), ended(), finished(0)],
        vec![row(1), finished(0)],
        vec![ended(), finished(0)],
        vec![Begin(0), ended(), row(1), finished(0)],
        vec![Begin(0), row(1), Begin(2), ended(), finished(0)],
        vec![Begin(0), row(1), finished(0)],
    ];
    for events in wrong {
        let text = format!("{events:?}");
        let result = merged(vec![source(events)]).0;
        assert!(matches!(result, Err(RunError::BadPartial { .. })), "{text}: {result:?}");
    }
    // These sources break off.
    for events in [vec![], vec![Begin(0), row(1)], vec![Begin(0), ended()]] {
        let result = merged(vec![source(events)]).0;
        assert_eq!(result.unwrap_err().to_string(), failed(u64::MAX).to_string());
    }
}
