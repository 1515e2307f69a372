//! `gristmill bench`: the time to read a file, on the path that every kernel takes.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_kernel::{
    Block, Ctx, DType, Fold, Input, Kernel, KernelError, Next, Order, Sink, Spec, Step, Value,
};
use gristmill_runtime::{Control, Discard, Outcome, Request, run};
use serde_json::json;

use crate::args::BenchArgs;
use crate::config::Config;
use crate::error::CliError;
use crate::json;
use crate::progress::Watch;
use crate::size::readable;

/// A kernel that takes every block and keeps nothing.
struct Idle;

impl Kernel for Idle {
    fn spec(&self) -> Spec {
        Spec { order: Order::Any, ..Spec::fixed("idle", 1) }
    }
    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(Idle))
    }
    fn advance(&self, _: &Ctx, _: &[u8]) -> Result<Next, KernelError> {
        Ok(Next::Done(Value::Map(Vec::new())))
    }
}

impl Fold for Idle {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        Ok(Step::Took(block.count()))
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn merge(&mut self, _: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        Ok(())
    }
}

/// Reads a file and reports the speed.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, CliError> {
    let file = gristmill_client::open(&args.path)?;
    let mut request = Request::new(Arc::new(Idle), Input::elements(DType::U8), file);
    request.options = Config::load()?.options(&args.tuning);
    let control = Arc::new(Control::new());
    let _watch = Watch::start(control.clone(), args.tuning.no_progress);
    let outcome = run(request, &mut Discard, &control);
    let Outcome::Done(answer) = outcome.map_err(|e| CliError::for_request(args.path.display(), e))? else {
        return Ok(ExitCode::FAILURE);
    };
    let report = &answer.report;
    let speed = report.bytes_read as f64 / report.elapsed.as_secs_f64().max(1e-9);
    let text = if args.json {
        json!({ "bytes_per_second": speed, "report": json::report(report, true) }).to_string()
    } else {
        format!(
            "read {} in {:.3} s and did nothing with it: {}/s on {} lane{}",
            readable(report.bytes_read),
            report.elapsed.as_secs_f64(),
            readable(speed as u64),
            report.lanes,
            if report.lanes == 1 { "" } else { "s" }
        )
    };
    writeln!(io::stdout(), "{text}").map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
