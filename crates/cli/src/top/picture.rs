//! A cluster as lines of text of any width.

use gristmill_wire::{ClusterStatus, NodeStatus};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};

use super::changes::{Changes, Rates};
use super::rows::{KERNELS, NODES, REQUESTS, clean, kernel_rows, node_row, request_rows};
use super::table::{Row, fit, lines};
use crate::size::readable;

/// Length of a curve in characters.
const CURVE: usize = 30;

/// The order of the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Number,
    Processors,
    Queue,
    NotMoved,
}

impl Sort {
    pub fn next(self) -> Sort {
        match self {
            Sort::Number => Sort::Processors,
            Sort::Processors => Sort::Queue,
            Sort::Queue => Sort::NotMoved,
            Sort::NotMoved => Sort::Number,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Sort::Number => "number",
            Sort::Processors => "processors used",
            Sort::Queue => "queue",
            Sort::NotMoved => "bytes not moved",
        }
    }
}

/// The picture of a cluster at one moment.
pub struct Picture {
    title: String,
    totals: [(&'static str, Option<f64>, u64, Vec<f64>); 2],
    nodes: Vec<Row>,
    requests: Vec<Row>,
    /// Active requests that no node listed.
    more: u64,
    kernels: Vec<Row>,
}

impl Picture {
    /// Makes the picture of what the nodes reported to the entry node of the address `entry`.
    pub fn new(entry: &str, cluster: &ClusterStatus, changes: &Changes, sort: Sort) -> Picture {
        let loads = || cluster.nodes.iter().filter_map(|node| node.load.as_ref());
        let active = loads().fold(0, |sum: u64, load| sum.saturating_add(load.active));
        let second = (cluster.at.max(0.0) as u64) % 86_400;
        let title = format!(
            "{}  {} of {} nodes answer, {active} active {}  {:02}:{:02}:{:02} UTC",
            clean(entry),
            loads().count(),
            cluster.nodes.len(),
            if active == 1 { "request" } else { "requests" },
            second / 3600,
            second / 60 % 60,
            second % 60
        );
        let (rates, (folded, sent)) = (changes.total_rates(), changes.total_bytes());
        let total = |name, of: fn(&Rates) -> f64, sum| {
            (name, rates.as_ref().map(of), sum, changes.curve(CURVE).map(|rates| of(&rates)).collect())
        };
        let mut nodes: Vec<&NodeStatus> = cluster.nodes.iter().collect();
        let key = |node: &NodeStatus| match (sort, &node.load) {
            (Sort::Number, _) | (_, None) => 0.0,
            (Sort::Processors, Some(load)) => load.cpu,
            (Sort::Queue, Some(load)) => load.queued,
            (Sort::NotMoved, _) => changes.node_rates(node.target).map_or(0.0, |rates| rates.folded),
        };
        nodes.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.target.cmp(&b.target)));
        let listed = cluster.nodes.iter().map(|node| node.requests.len() as u64).sum();
        Picture {
            title,
            totals: [
                total("not moved", |rates| rates.folded, folded),
                total("moved", |rates| rates.sent, sent),
            ],
            nodes: nodes.into_iter().map(|node| node_row(node, changes.node_rates(node.target))).collect(),
            requests: request_rows(cluster),
            more: active.saturating_sub(listed),
            kernels: kernel_rows(cluster),
        }
    }

    /// The lines at the top, which are always shown.
    pub fn head(&self, width: u16) -> Vec<Line<'static>> {
        let width = usize::from(width);
        let mut head =
            vec![Line::styled(fit(&format!("gristmill  {}", self.title), width), Style::new().bold())];
        for (name, rate, sum, curve) in &self.totals {
            let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", readable(rate as u64)));
            let sum = format!("{} in all", readable(*sum));
            let plain = fit(&format!("{name:<9}  {rate:>12}  {sum:<20}"), width);
            let left = width.saturating_sub(plain.chars().count() + 2);
            let drawn: String = bars(curve).chars().take(left).collect();
            head.push(Line::from(vec![Span::raw(plain), Span::raw("  "), Span::raw(drawn).green()]));
        }
        head.into_iter().map(|line| if line.width() > width { cut(&line, width) } else { line }).collect()
    }

    /// The tables.
    pub fn body(&self, width: u16) -> Vec<Line<'static>> {
        let width = usize::from(width);
        let empty = Line::default;
        let mut body = vec![empty()];
        body.extend(lines(&NODES, &self.nodes, width));
        body.push(empty());
        match self.requests.is_empty() {
            true => body.push(Line::styled(fit("no active requests", width), Style::new().dim())),
            false => body.extend(lines(&REQUESTS, &self.requests, width)),
        }
        if self.more > 0 {
            body.push(Line::from(fit(&format!("and {} more", self.more), width)));
        }
        if !self.kernels.is_empty() {
            body.push(empty());
            body.extend(lines(&KERNELS, &self.kernels, width));
        }
        body
    }
}

fn cut(line: &Line<'_>, width: usize) -> Line<'static> {
    Line::from(fit(&line.to_string(), width))
}

/// Draws rates as bars, one character each. The highest rate has a full bar.
fn bars(rates: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = rates.iter().copied().fold(1.0, f64::max);
    let bar = |rate: &f64| BARS.get((rate / most * 7.0).round() as usize).copied().unwrap_or('▁');
    rates.iter().map(bar).collect()
}
