//! `gristmill nodes`.

use std::process::ExitCode;

use gristmill_client::NodeState;
use serde_json::json;

use crate::args::NodesArgs;
use crate::commands::names::remote;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::time::utc_text;

/// Lists the storage nodes and their state.
pub fn nodes(args: &NodesArgs) -> Result<ExitCode, CliError> {
    let nodes = connect(remote(&args.cluster)?, args.reach)?.node_states()?;
    if args.json {
        let nodes: Vec<_> = nodes
            .iter()
            .map(|(node, state)| {
                let (word, since, why) = match state {
                    NodeState::Up => ("up", None, None),
                    NodeState::Down { since, why } => ("down", Some(*since), Some(why)),
                    NodeState::NeverSeen { why } => ("never seen", None, Some(why)),
                };
                json!({
                    "target": node.number, "address": node.address, "id": node.target, "state": word,
                    "since": since, "error": why, "without_store": node.without_store,
                })
            })
            .collect();
        return line(&json!({ "nodes": nodes }).to_string());
    }
    for (node, state) in nodes {
        let (number, address) = (node.number, &node.address);
        let state = match state {
            NodeState::Up => "up".to_owned(),
            NodeState::Down { since, .. } => format!("down since {}", utc_text(since)),
            NodeState::NeverSeen { .. } => "down, never seen since the entry node started".to_owned(),
        };
        let store = if node.without_store { ", without files" } else { "" };
        line(&format!("target {number}  {address}  {state}{store}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
