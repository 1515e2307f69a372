//! The place of a request, for `--explain`.

use gristmill_client::Planned;
use gristmill_peers::NodeDecision;
use gristmill_wire::FoldPlace;

use crate::size::readable;

/// Where a request will run, why, and how much the other place would move. `stays`: its output is left on the nodes.
pub fn plan(planned: &Planned, stays: bool) -> String {
    let plan = &planned.plan;
    let about = if plan.estimated { "about " } else { "" };
    let storage = match plan.answer_bytes {
        Some(answer) => format!(
            "storage would move {about}{} between nodes and about {} to the client",
            readable(plan.extra_work.pulled_bytes),
            readable(answer)
        ),
        None if stays => format!(
            "storage would move {about}{} between nodes; what the kernel gives stays there",
            readable(plan.extra_work.pulled_bytes)
        ),
        None => format!(
            "storage would move {about}{} between nodes, and to the client at most what the kernel gives",
            readable(plan.extra_work.pulled_bytes)
        ),
    };
    let each = if plan.several_passes { " in each of its passes" } else { "" };
    let client = format!("a plain read would move {} to the client{each}", readable(plan.client_bytes));
    let nodes: Vec<&NodeDecision> = planned.decision.iter().flat_map(|decision| &decision.nodes).collect();
    let here = nodes.iter().filter(|node| node.at_client).count();
    let mut text = match (plan.place, both_places(here, nodes.len())) {
        (FoldPlace::Client, _) => format!("place: client ({}); {client}; {storage}", plan.why),
        (_, Some(places)) => {
            format!("place: {places} (each where it should take less time); {storage}; {client}")
        }
        (_, None) => format!("place: storage ({}); {storage}; {client}", plan.why),
    };
    for node in nodes {
        text.push('\n');
        text.push_str(&node_decision(node));
    }
    text
}

/// The places of the parts of `all` nodes, if the client folds those of `here` nodes, and not all. The place of more nodes
/// comes first.
fn both_places(here: usize, all: usize) -> Option<String> {
    let there = all.saturating_sub(here);
    match (here, there) {
        (0, _) | (_, 0) => None,
        _ if here > there => Some(format!("client for {here} of {all} nodes, storage for {there}")),
        _ => Some(format!("storage for {there} of {all} nodes, client for {here}")),
    }
}

/// The decision for one node, with its numbers, and the cost of the other place.
fn node_decision(node: &NodeDecision) -> String {
    let seconds = |seconds: Option<f64>| match seconds {
        Some(seconds) => format!("{seconds:.3} s"),
        None => "not possible".to_owned(),
    };
    let place = if node.at_client { "client" } else { "storage" };
    let costs = format!(
        "node {}: {place}, {} of the file; storage {}, client {}",
        node.node,
        readable(node.bytes),
        seconds(node.storage_seconds),
        seconds(node.client_seconds)
    );
    let near = if node.shares_processors { ", on the processors of this process" } else { "" };
    let short = node.shortage().map_or_else(String::new, |others| format!("; {}", shortage(others)));
    let costs = format!("{costs}{near}{short}");
    let Some(load) = &node.load else { return format!("{costs}; the node did not report its load") };
    let link = if load.link_measured { "measured" } else { "assumed" };
    let known = if load.measured { "measured" } else { "not measured yet" };
    format!(
        "{costs}; {} active requests ({} running, {:.2} s of work), {:.1} cores free for them, {}/s per core ({known}), link {}/s ({link})",
        load.active,
        load.running,
        load.queued,
        load.cores,
        readable(load.rate as u64),
        readable(load.link as u64)
    )
}

/// Other work than folds used this share of the processors of a node.
pub(super) fn shortage(others: f64) -> String {
    format!(
        "other work than folds used {:.0} % of its processors lately, so folds are slow there",
        100.0 * others
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_places_are_named_if_there_are_two() {
        assert_eq!(both_places(3, 4).as_deref(), Some("client for 3 of 4 nodes, storage for 1"));
        assert_eq!(both_places(2, 4).as_deref(), Some("storage for 2 of 4 nodes, client for 2"));
        for here in [0, 4] {
            assert_eq!(both_places(here, 4), None);
        }
        // It was not decided for each node.
        assert_eq!(both_places(0, 0), None);
    }
}
