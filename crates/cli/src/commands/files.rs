//! `gristmill put`, `get`, `stat` and `rm`.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use gristmill_client::PutOptions;
use gristmill_layout::Layout;
use serde_json::json;

use crate::args::{GetArgs, PutArgs, RmArgs, StatArgs};
use crate::error::CliError;
use crate::progress::bytes_bar;
use crate::size::readable;

/// Stripes a file over local targets.
pub fn put(args: &PutArgs) -> Result<ExitCode, CliError> {
    let begun = Instant::now();
    let total = std::fs::metadata(&args.source).map_or(0, |meta| meta.len());
    let bar = bytes_bar(total, args.tuning.no_progress);
    let options = PutOptions {
        targets: args.on.clone(),
        unit: args.stripe.0,
        record: args.record.map(|record| record.0),
    };
    let made = gristmill_client::put(&args.source, &args.path, &options, &mut |at| bar.set_position(at))?;
    bar.finish_and_clear();
    let text = if args.json {
        json!({
            "path": args.path, "length": made.length, "stripe_unit": made.unit, "targets": made.targets,
            "elapsed_seconds": begun.elapsed().as_secs_f64(),
        })
        .to_string()
    } else {
        let (length, unit) = (readable(made.length), readable(made.unit));
        format!("{}: {length} in stripes of {unit} on {} targets", args.path.display(), made.targets.len())
    };
    line(&text)
}

/// Copies a file out of its targets.
pub fn get(args: &GetArgs) -> Result<ExitCode, CliError> {
    let file = gristmill_client::open(&args.path)?;
    let bar = bytes_bar(file.length, args.tuning.no_progress);
    let mut progress = |at| bar.set_position(at);
    if args.destination == Path::new("-") {
        let mut out = io::stdout().lock();
        gristmill_client::read_to(&file, &mut out, &mut progress)?;
        out.flush().map_err(CliError::Output)?;
    } else {
        gristmill_client::get(&file, &args.destination, &mut progress)?;
    }
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}

/// Shows how a file lies on its targets.
pub fn stat(args: &StatArgs) -> Result<ExitCode, CliError> {
    let file = gristmill_client::open(&args.path)?;
    let unit = match &file.layout {
        Layout::Striped(striped) if file.parts.len() > 1 => Some(striped.unit()),
        _ => None,
    };
    let targets: Vec<_> = (0..file.layout.targets())
        .zip(&file.parts)
        .map(|(target, part)| (part.describe(), file.layout.bytes_on(target, 0..file.length)))
        .collect();
    if args.json {
        let targets: Vec<_> =
            targets.iter().map(|(node, bytes)| json!({ "node": node, "bytes": bytes })).collect();
        let text =
            json!({ "path": args.path, "length": file.length, "stripe_unit": unit, "targets": targets });
        return line(&text.to_string());
    }
    let mut text = format!("{}: {} ({} bytes)", args.path.display(), readable(file.length), file.length);
    match unit {
        None => text.push_str(", in one piece"),
        Some(unit) => text.push_str(&format!(", stripes of {} on {} targets", readable(unit), targets.len())),
    }
    for (node, bytes) in targets.iter().filter(|_| unit.is_some()) {
        text.push_str(&format!("\n  {node}: {}", readable(*bytes)));
    }
    line(&text)
}

/// Removes a striped file.
pub fn rm(args: &RmArgs) -> Result<ExitCode, CliError> {
    gristmill_client::remove(&args.path)?;
    Ok(ExitCode::SUCCESS)
}

fn line(text: &str) -> Result<ExitCode, CliError> {
    writeln!(io::stdout(), "{text}").map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}
