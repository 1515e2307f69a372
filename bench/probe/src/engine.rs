//! The same questions put to the runtime.

use std::time::Instant;

use gristmill_client::PutOptions;
use gristmill_kernel::{DType, Input, catalog};
use gristmill_runtime::{Control, Options, Outcome, Request};

use crate::answer::{Answer, json};
use crate::command::{Put, Run};
use crate::rows::Kept;

pub fn run(command: &Run) -> Result<Answer, String> {
    let input = match (&command.element, command.lines) {
        (Some(name), false) => Input::elements(name.parse::<DType>().map_err(text)?),
        (None, true) => Input::lines(),
        _ => return Err("give either \"type\" or \"lines\": true".into()),
    };
    let params: Vec<_> = command.params.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let defaults = Options::default();
    let options = Options {
        lanes: command.lanes.unwrap_or(defaults.lanes),
        block_bytes: command.block.unwrap_or(defaults.block_bytes),
        unit_bytes: command.unit.unwrap_or(defaults.unit_bytes),
        ..defaults
    };
    let begun = Instant::now();
    let kernel = catalog::bind(&command.kernel, &params, &input).map_err(text)?;
    let input = input.for_kernel(&kernel.spec());
    let file = gristmill_client::open(&command.path).map_err(text)?;
    let opened = begun.elapsed();
    let request = Request { options, ..Request::new(kernel, input, file) };
    let mut kept = Kept::new(command.rows, request.file.length);
    let outcome = gristmill_runtime::run(request, &mut kept, &Control::new()).map_err(text)?;
    let elapsed = begun.elapsed();
    let Outcome::Done(answer) = outcome else { return Err("the run stopped before its end".into()) };
    Ok(Answer {
        open_seconds: Some(opened.as_secs_f64()),
        result: Some(json(&answer.value)),
        rows: kept.digest(),
        ..Answer::timed(elapsed, answer.report.bytes_read)
    })
}

pub fn put(command: &Put) -> Result<Answer, String> {
    let options = PutOptions { targets: command.targets.clone(), unit: command.stripe, record: None };
    let begun = Instant::now();
    let put = gristmill_client::put(&command.source, &command.path, &options, &mut |_| ()).map_err(text)?;
    Ok(Answer::timed(begun.elapsed(), put.length))
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
