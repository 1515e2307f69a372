//! Reports of nodes as rows of tables.

use std::collections::BTreeMap;

use gristmill_wire::{ClusterStatus, HandedBack, KernelStatus, NodeStatus, RequestState, RequestStatus};
use ratatui::style::Style;

use super::changes::Rates;
use super::table::{Cell, Column, Row, percent};
use crate::size::readable;

/// Seconds for which a request that was handed back is listed.
const RECENT: f64 = 30.0;

pub const NODES: [Column; 12] = [
    Column { head: "NODE", right: true, most: 5, spare: 0 },
    Column { head: "ADDRESS", right: false, most: 28, spare: 4 },
    Column { head: "STATE", right: false, most: 10, spare: 1 },
    Column { head: "PROCESSORS", right: false, most: 13, spare: 2 },
    Column { head: "CORES", right: true, most: 6, spare: 7 },
    Column { head: "QUEUE", right: true, most: 7, spare: 6 },
    Column { head: "RUN", right: true, most: 6, spare: 2 },
    Column { head: "WAIT", right: true, most: 6, spare: 2 },
    Column { head: "MEM", right: true, most: 5, spare: 8 },
    Column { head: "I/O", right: true, most: 5, spare: 9 },
    Column { head: "NOT MOVED", right: true, most: 12, spare: 3 },
    Column { head: "MOVED", right: true, most: 12, spare: 5 },
];

pub const REQUESTS: [Column; 8] = [
    Column { head: "REQUEST", right: false, most: 16, spare: 0 },
    Column { head: "KERNEL", right: false, most: 16, spare: 0 },
    Column { head: "WHERE", right: false, most: 28, spare: 1 },
    Column { head: "DONE", right: true, most: 5, spare: 2 },
    Column { head: "SIZE", right: true, most: 12, spare: 4 },
    Column { head: "FOR", right: false, most: 20, spare: 3 },
    Column { head: "ASKED BY", right: false, most: 24, spare: 6 },
    Column { head: "SINCE", right: true, most: 9, spare: 5 },
];

pub const KERNELS: [Column; 5] = [
    Column { head: "KERNEL", right: false, most: 16, spare: 0 },
    Column { head: "PARTS ENDED", right: true, most: 12, spare: 1 },
    Column { head: "HANDED BACK", right: true, most: 12, spare: 2 },
    Column { head: "NOT MOVED", right: true, most: 12, spare: 3 },
    Column { head: "SPEED OF A CORE", right: true, most: 30, spare: 4 },
];

/// Replaces the characters of a foreign text that would control a terminal.
pub fn clean(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect()
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// Bytes per second for people.
fn rate(rate: Option<f64>) -> Cell {
    // The conversion saturates at the largest u64.
    rate.map_or(Cell::none(), |rate| Cell::text(format!("{}/s", readable(rate as u64))))
}

/// The row of a node. If it does not answer, the note says why.
pub fn node_row(node: &NodeStatus, rates: Option<Rates>) -> Row {
    let (number, address) = (Cell::text(node.target.to_string()), Cell::text(clean(&node.address)));
    let Some(load) = &node.load else {
        let heard = node.silent_seconds.map_or_else(
            || "not heard of since the entry node started".to_owned(),
            |silent| format!("last heard of {} ago", seconds(silent)),
        );
        let why = node.error.as_deref().unwrap_or("it does not say why");
        let state = Cell::Text("no answer".into(), Style::new().red().bold());
        let mut cells = vec![number, address, state];
        cells.resize(NODES.len(), Cell::none());
        return Row { cells, note: Some(format!("node {}: {heard}; {}", node.target, clean(why))) };
    };
    let share = |share: Option<f64>| share.map_or(Cell::none(), |share| Cell::text(percent(share)));
    let used = load.memory.map(|(free, all)| 1.0 - free as f64 / all.max(1) as f64);
    let state = match load.cores > 0.0 {
        true => Cell::text(format!("up {}", seconds(node.up_seconds))),
        false => Cell::Text("takes none".into(), Style::new().yellow()),
    };
    Row::new(vec![
        number,
        address,
        state,
        Cell::Bar((load.cpu - load.others).max(0.0), load.others),
        Cell::text(format!("{:.1}", load.cores)),
        Cell::text(seconds(load.queued)),
        Cell::text(load.running.to_string()),
        Cell::text(load.active.saturating_sub(load.running).to_string()),
        share(used),
        share(load.io),
        rate(rates.map(|rates| rates.folded)),
        rate(rates.map(|rates| rates.sent)),
    ])
}

/// Active requests, the oldest first, and then requests that were just handed back, the latest first.
pub fn request_rows(cluster: &ClusterStatus) -> Vec<Row> {
    let mut active: Vec<(u32, &RequestStatus)> = Vec::new();
    let mut handed_back: Vec<(u32, &HandedBack)> = Vec::new();
    for node in &cluster.nodes {
        active.extend(node.requests.iter().map(|one| (node.target, one)));
        let recent = node.handed_back.iter().filter(|one| one.ago_seconds < RECENT);
        handed_back.extend(recent.map(|one| (node.target, one)));
    }
    active.sort_by(|a, b| b.1.age_seconds.total_cmp(&a.1.age_seconds));
    handed_back.sort_by(|a, b| a.1.ago_seconds.total_cmp(&b.1.ago_seconds));
    let asker =
        |asker: &Option<String>| asker.as_deref().map_or(Cell::none(), |name| Cell::text(clean(name)));
    let active = active.into_iter().map(|(node, one)| {
        let place = match one.state {
            RequestState::Waiting => Cell::text(format!("node {node}, waiting")),
            RequestState::Running => Cell::text(format!("node {node}, running")),
            RequestState::Leaving => Cell::Text(format!("node {node}, handed back"), Style::new().yellow()),
        };
        Row::new(vec![
            Cell::text(format!("{node}.{}", one.number)),
            Cell::text(clean(&one.kernel)),
            place,
            Cell::text(percent(one.folded as f64 / one.bytes.max(1) as f64)),
            Cell::text(readable(one.bytes)),
            Cell::text(clean(&one.principal)),
            asker(&one.asker),
            Cell::text(seconds(one.age_seconds)),
        ])
    });
    let handed_back = handed_back.into_iter().map(|(node, one)| {
        Row::new(vec![
            Cell::text(format!("{node}.{}", one.number)),
            Cell::text(clean(&one.kernel)),
            Cell::Text(format!("at the asker, from node {node}"), Style::new().yellow()),
            Cell::none(),
            if one.bytes > 0 { Cell::text(readable(one.bytes)) } else { Cell::none() },
            Cell::text(clean(&one.principal)),
            asker(&one.asker),
            Cell::text(format!("{} ago", seconds(one.ago_seconds))),
        ])
    });
    active.chain(handed_back).collect()
}

/// One row for each kernel, summed over all nodes.
pub fn kernel_rows(cluster: &ClusterStatus) -> Vec<Row> {
    let mut all: BTreeMap<&str, (KernelStatus, Vec<f64>)> = BTreeMap::new();
    for one in cluster.nodes.iter().flat_map(|node| &node.kernels) {
        let (sum, rates) = all.entry(one.kernel.as_str()).or_default();
        sum.ended = sum.ended.saturating_add(one.ended);
        sum.handed_back = sum.handed_back.saturating_add(one.handed_back);
        sum.folded = sum.folded.saturating_add(one.folded);
        rates.extend(one.measured.then_some(one.rate));
    }
    let speed = |rates: &[f64]| {
        let least = readable(rates.iter().copied().fold(f64::INFINITY, f64::min) as u64);
        let most = readable(rates.iter().copied().fold(0.0, f64::max) as u64);
        match rates.len() {
            0 => Cell::none(),
            _ if least == most => Cell::text(format!("{least}/s")),
            _ => Cell::text(format!("{least}/s to {most}/s")),
        }
    };
    let row = |(name, (sum, rates)): (&str, (KernelStatus, Vec<f64>))| {
        Row::new(vec![
            Cell::text(clean(name)),
            Cell::text(sum.ended.to_string()),
            Cell::text(sum.handed_back.to_string()),
            Cell::text(readable(sum.folded)),
            speed(&rates),
        ])
    };
    all.into_iter().map(row).collect()
}
