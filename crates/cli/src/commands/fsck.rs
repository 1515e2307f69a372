//! `gristmill fsck`.

use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{FsckReport, Location, NodeCheck};
use gristmill_runtime::Control;
use serde_json::json;

use crate::args::FsckArgs;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::interrupt::stop_on_signal;
use crate::size::readable;

/// Compares the names of a cluster with the objects on its storage nodes.
pub fn fsck(args: &FsckArgs) -> Result<ExitCode, CliError> {
    let Location::Remote(url) = &args.cluster else {
        return Err(CliError::Usage(format!(
            "'{}' is no cluster; give its entry node, for example grist://127.0.0.1:7440/",
            args.cluster
        )));
    };
    if url.path != "/" {
        return Err(CliError::Usage(format!(
            "fsck compares a whole cluster, and {} is a path in one; leave the path out",
            url.path
        )));
    }
    let stop = Arc::new(Control::new());
    stop_on_signal(&stop)?;
    let report = connect(url, args.reach)?.fsck(args.remove_unnamed, &stop)?;
    if args.json {
        line(&as_json(&report))?;
    } else {
        for node in &report.nodes {
            line(&as_text(node))?;
        }
        if let Some(advice) = advice(&report) {
            line(&advice)?;
        }
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_text(check: &NodeCheck) -> String {
    let mut text = String::new();
    for lost in &check.lost {
        text += &format!("{}: LOST: object {} {}\n", lost.path, lost.object, lost.why);
    }
    for unnamed in &check.unnamed {
        let state = if unnamed.removed { "removed" } else { "no file has it" };
        text += &format!("object {}, {}: {state}\n", unnamed.object, readable(unnamed.bytes));
    }
    text += &format!(
        "storage node {} ({}): {} {}, {}",
        check.node.number,
        check.node.address,
        check.objects,
        if check.objects == 1 { "object" } else { "objects" },
        readable(check.bytes)
    );
    match (check.lost.len(), check.unnamed.len()) {
        (0, 0) if check.error.is_none() => text += ", all as the files say",
        (lost, unnamed) => {
            if lost > 0 {
                text += &format!(", {lost} of files LOST");
            }
            if unnamed > 0 {
                text += &format!(", {unnamed} that no file has");
            }
        }
    }
    if let Some(error) = &check.error {
        text += &format!("\nstorage node {}: NOT COMPARED to its end: {error}", check.node.number);
    }
    text
}

fn advice(report: &FsckReport) -> Option<String> {
    let mut words = Vec::new();
    if report.nodes.iter().any(|node| !node.lost.is_empty()) {
        words.push("put files that are LOST again from their source, or remove them with 'rm'");
    }
    if report.nodes.iter().any(|node| node.unnamed.iter().any(|object| !object.removed)) {
        words.push("--remove-unnamed removes the objects that no file has; its help says when not to");
    }
    if report.nodes.iter().any(|node| node.error.is_some()) {
        words.push("start the nodes that could not be asked, and check again");
    }
    (!words.is_empty()).then(|| words.join("\n"))
}

fn as_json(report: &FsckReport) -> String {
    let nodes: Vec<_> = report
        .nodes
        .iter()
        .map(|check| {
            let lost =
                check.lost.iter().map(|one| json!({"path": one.path, "object": one.object, "why": one.why}));
            let unnamed = check
                .unnamed
                .iter()
                .map(|one| json!({"object": one.object, "bytes": one.bytes, "removed": one.removed}));
            json!({
                "node": check.node.number, "address": check.node.address, "objects": check.objects,
                "bytes": check.bytes, "lost": lost.collect::<Vec<_>>(),
                "unnamed": unnamed.collect::<Vec<_>>(), "error": check.error,
            })
        })
        .collect();
    json!({"sound": report.is_sound(), "nodes": nodes}).to_string()
}
