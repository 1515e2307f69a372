//! `gristmill fsck`.

use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{FsckReport, NodeCheck};
use gristmill_runtime::Control;
use serde_json::json;

use crate::args::FsckArgs;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::interrupt::stop_on_signal;
use crate::size::readable;

/// Compares the names of a cluster with the objects on its storage nodes.
pub fn fsck(args: &FsckArgs) -> Result<ExitCode, CliError> {
    let Some(url) = args.cluster.cluster() else {
        return Err(CliError::Usage(format!(
            "'{}' is not a cluster; give the address of its entry node, for example grist://127.0.0.1:7440/",
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
            if !(node.is_sound() && node.unnamed.is_empty()) {
                line(&node_text(node))?;
            }
        }
        line(&format!("{}: {}", args.cluster, summary(&report)))?;
        for advice in advice(&report) {
            line(advice)?;
        }
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lists the wrong objects of a node, one per line.
fn node_text(check: &NodeCheck) -> String {
    let node = format!("storage node {} ({})", check.node.number, check.node.address);
    let mut lines = Vec::new();
    for lost in &check.lost {
        lines.push(format!("{}: LOST: object {} on {node} {}", lost.path, lost.object, lost.why));
    }
    for unnamed in &check.unnamed {
        let state = if unnamed.removed { "was removed" } else { "is there" };
        let bytes = readable(unnamed.bytes);
        lines.push(format!("object {} on {node}: no file has it; {bytes}, {state}", unnamed.object));
    }
    if let Some(error) = &check.error {
        lines.push(format!("{node}: NOT COMPARED to its end: {error}"));
    }
    lines.join("\n")
}

/// The numbers of objects and bytes of all nodes, and of the wrong objects.
fn summary(report: &FsckReport) -> String {
    let counted = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let sum = |of: fn(&NodeCheck) -> u64| report.nodes.iter().map(of).fold(0, u64::saturating_add);
    let mut parts = vec![
        counted(report.nodes.len() as u64, "node"),
        counted(sum(|node| node.objects), "object"),
        readable(sum(|node| node.bytes)),
    ];
    let (lost, silent) = (sum(|node| node.lost.len() as u64), sum(|node| u64::from(node.error.is_some())));
    let unnamed = sum(|node| node.unnamed.len() as u64);
    if lost + silent + unnamed == 0 {
        parts.push("all as the files say".into());
    }
    if lost > 0 {
        parts.push(format!("{} of files LOST", counted(lost, "object")));
    }
    if unnamed > 0 {
        parts.push(format!("{} that no file has", counted(unnamed, "object")));
    }
    if silent > 0 {
        parts.push(format!("{} NOT COMPARED", counted(silent, "node")));
    }
    parts.join(", ")
}

fn advice(report: &FsckReport) -> Vec<&'static str> {
    let mut advice = Vec::new();
    if report.nodes.iter().any(|node| !node.lost.is_empty()) {
        advice.push("put files that are LOST again from their source, or remove them with 'rm'");
    }
    if report.nodes.iter().any(|node| node.unnamed.iter().any(|object| !object.removed)) {
        advice.push("--remove-unnamed removes the objects that no file has; its help says when not to");
    }
    if report.nodes.iter().any(|node| node.error.is_some()) {
        advice.push("start the nodes that could not be asked, and check again");
    }
    advice
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
