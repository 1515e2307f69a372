//! `gristmill scrub`.

use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{EXTENSION, Location, ScrubPace, ScrubReport, scrub_local};
use gristmill_runtime::Control;
use serde_json::json;

use crate::args::ScrubArgs;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::interrupt::stop_on_signal;
use crate::progress::bytes_bar;
use crate::size::readable;

/// Compares files with their checksums.
pub fn scrub(args: &ScrubArgs) -> Result<ExitCode, CliError> {
    let stop = Arc::new(Control::new());
    stop_on_signal(&stop)?;
    let rate = args.rate.map(|size| size.0);
    if rate == Some(0) {
        return Err(CliError::Usage("--rate 0 reads nothing; give at least 1 byte per second".into()));
    }
    let mut sound = true;
    for path in &args.paths {
        let bar = |total| bytes_bar(total, args.tuning.no_progress);
        let report = match path {
            Location::Remote(url) => {
                let cluster = connect(url, args.reach)?;
                let bar = bar(cluster.usage(&url.path)?.bytes);
                let mut progress = |at| bar.set_position(at);
                let report = cluster.scrub(&url.path, &mut ScrubPace::begin(rate, &stop, &mut progress))?;
                bar.finish_and_clear();
                report
            }
            Location::Outside(_) => {
                return Err(CliError::Usage(format!(
                    "{path} is not stored by Gristmill, so there are no checksums to compare; name files of a cluster"
                )));
            }
            Location::Local(local) => {
                if local.is_file() && local.extension().is_none_or(|extension| extension != EXTENSION) {
                    return Err(CliError::Usage(format!(
                        "{path} is a plain file, which has no checksums; name a layout file (*.{EXTENSION}), the directory of \
                         a target, or files of a cluster"
                    )));
                }
                let bar = bar(0);
                let mut progress = |at| bar.set_position(at);
                let report = scrub_local(local, &mut ScrubPace::begin(rate, &stop, &mut progress))?;
                bar.finish_and_clear();
                report
            }
        };
        sound &= report.damaged.is_empty();
        if args.json {
            line(&as_json(path, &report))?
        } else {
            line(&as_text(path, &report))?
        };
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_text(path: &Location, report: &ScrubReport) -> String {
    let mut text = String::new();
    for damage in &report.damaged {
        let (start, end) = (damage.bytes.start, damage.bytes.end);
        text += &format!(
            "{}: damaged: bytes {start} to {end} of object {} on {}\n",
            damage.path, damage.object, damage.place
        );
    }
    let objects = if report.objects == 1 { "object" } else { "objects" };
    text +=
        &format!("{path}: {} {objects}, {} as they were written", report.objects, readable(report.checked));
    if report.learnt > 0 {
        text += &format!(", {} had no checksum and are checked from now on", readable(report.learnt));
    }
    match report.damaged.len() {
        0 => text += ", none damaged",
        ranges => {
            let plural = if ranges == 1 { "range" } else { "ranges" };
            text += &format!(
                ", {ranges} {plural} DAMAGED: write these files again from their source, and check the disks"
            );
        }
    }
    text
}

fn as_json(path: &Location, report: &ScrubReport) -> String {
    let damaged: Vec<_> = report
        .damaged
        .iter()
        .map(|damage| {
            json!({
                "path": damage.path, "place": damage.place, "object": damage.object,
                "start": damage.bytes.start, "end": damage.bytes.end,
            })
        })
        .collect();
    json!({
        "path": path.to_string(), "objects": report.objects, "checked_bytes": report.checked,
        "learnt_bytes": report.learnt, "damaged": damaged,
    })
    .to_string()
}
