//! The stripes of a file as nodes near its bytes own them.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_backend::HostStripes;
use gristmill_layout::{MAX_COMPONENTS, MAX_CYCLE, MAX_STRIPES_IN_PLACE};
use gristmill_wire::MAX_CYCLE_BYTES;

use crate::limits::{MAX_NEAR_CYCLE, MIN_LOCATED_UNIT};

/// A node that reaches the tree of the file.
#[derive(Clone, Debug)]
pub(super) struct TreeNode<'a> {
    /// The number of its target.
    pub number: u32,
    /// The address at which others reach it.
    pub address: &'a str,
}

/// A range of a file whose stripes belong to nodes: stripe `i` of the file to that of target `cycle[i % cycle.len()]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeStripes {
    pub end: u64,
    pub unit: u64,
    pub cycle: Vec<u32>,
}

impl NodeStripes {
    /// The shortest cycle with the longest stripes that gives the same owners.
    fn shortest(mut self) -> NodeStripes {
        let length = self.cycle.len();
        let repeats =
            |period: usize| self.cycle.iter().zip(self.cycle.iter().skip(period)).all(|(a, b)| a == b);
        let period = (1..=length).find(|period| length.is_multiple_of(*period) && repeats(*period));
        self.cycle.truncate(period.unwrap_or(length));
        let runs = self.cycle.chunk_by(|one, other| one == other).map(<[u32]>::len);
        let run = runs.reduce(greatest_common_divisor).unwrap_or(1).max(1);
        if let Some(unit) = self.unit.checked_mul(run as u64) {
            self.cycle = self.cycle.iter().step_by(run).copied().collect();
            self.unit = unit;
        }
        self
    }

    /// Whether each target has one stripe of a cycle.
    pub fn deals_in_turn(&self) -> bool {
        let mut sorted = self.cycle.clone();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair.first() != pair.last())
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The owners of the stripes of a file: nodes at the hosts where they lie. Stripes of hosts without a node are dealt to all
/// nodes from number `turn` on.
///
/// `None` if no node is at any of the hosts, if the places make no layout or one that is too large, if the stripes are too short, or if
/// the file has more than `most` of them.
pub(super) fn near(
    located: &[HostStripes],
    nodes: &[TreeNode<'_>],
    length: u64,
    turn: usize,
    most: u64,
) -> Option<Vec<NodeStripes>> {
    // Users make the layouts of their files.
    let hosts = located.iter().map(|one| one.hosts.len()).sum::<usize>();
    if located.len() > MAX_COMPONENTS || hosts > MAX_CYCLE {
        return None;
    }
    let mut by_host: HashMap<String, Vec<u32>> = HashMap::new();
    for node in nodes {
        for name in names(node.address) {
            by_host.entry(name).or_default().push(node.number);
        }
    }
    let (mut all, mut is_near, mut start) = (Vec::new(), false, 0);
    for HostStripes { end, unit, hosts } in located {
        let end = end.unwrap_or(u64::MAX);
        if end <= start || *unit < MIN_LOCATED_UNIT {
            return None;
        }
        start = end;
        let at_name = |name: &String| by_host.get(&bare(name)).map(Vec::as_slice);
        let at_host = |names: &Arc<[String]>| names.iter().find_map(at_name).unwrap_or_default();
        let at_hosts: Vec<&[u32]> = hosts.iter().map(at_host).collect();
        let known = at_hosts.iter().any(|numbers| !numbers.is_empty());
        is_near |= known;
        // Nodes of one host take turns, and so do all nodes for stripes that are near none.
        let each = |numbers: &&[u32]| if numbers.is_empty() { nodes.len() } else { numbers.len() };
        let rounds = at_hosts.iter().map(each).max()?.min(MAX_NEAR_CYCLE / at_hosts.len()).max(1);
        let mut stripes_of: HashMap<u32, usize> = HashMap::new();
        let mut owner = |(at, numbers): (usize, &[u32])| {
            let Some(first) = numbers.first() else {
                return nodes.get((turn + at) % nodes.len().max(1)).map(|node| node.number);
            };
            let before = stripes_of.entry(*first).or_insert(0);
            let number = numbers.get(*before % numbers.len()).copied();
            *before += 1;
            number
        };
        let cycle = (0..rounds).flat_map(|round| {
            // Other nodes begin each round, also if the cycle has as many stripes as there are nodes.
            at_hosts.iter().enumerate().map(move |(at, numbers)| (at + round, *numbers))
        });
        let cycle = cycle.map(&mut owner).collect::<Option<Vec<u32>>>()?;
        all.push(NodeStripes { end, unit: *unit, cycle }.shortest());
        if end >= length {
            break;
        }
    }
    if !is_near || start < length {
        return None;
    }
    let in_turn = matches!(&*all, [one] if one.deals_in_turn());
    let mut begin = 0;
    let mut stripes = |one: &NodeStripes| {
        let range = begin..one.end.min(length);
        begin = one.end;
        range.end.saturating_sub(range.start).div_ceil(one.unit).saturating_add(1)
    };
    let count = all.iter().map(&mut stripes).fold(0, u64::saturating_add);
    let entries = all.iter().map(|one| one.cycle.len()).sum::<usize>();
    let bits = u32::BITS - u32::try_from(nodes.len()).unwrap_or(u32::MAX).leading_zeros();
    let bytes = entries.saturating_mul(bits as usize).div_ceil(8);
    let has_table = count <= MAX_STRIPES_IN_PLACE as u64 && entries <= MAX_CYCLE && bytes <= MAX_CYCLE_BYTES;
    (count <= most && (in_turn || has_table)).then_some(all)
}

/// The names by which a host can be that of a node: its address, and the same without the port.
fn names(address: &str) -> Vec<String> {
    let mut names = vec![bare(address)];
    let without_port = address.rsplit_once(':').map(|(name, _)| bare(name));
    names.extend(without_port.filter(|name| !name.is_empty() && !address.starts_with("unix:")));
    names
}

/// A name as it is compared.
fn bare(name: &str) -> String {
    name.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const NODES: [TreeNode<'static>; 5] = [
        TreeNode { number: 0, address: "oss0:7440" },
        TreeNode { number: 1, address: "OSS1.site:7440" },
        TreeNode { number: 2, address: "10.0.0.2:7440" },
        TreeNode { number: 3, address: "[fd00::3]:7440" },
        TreeNode { number: 7, address: "oss0:7441" },
    ];

    const UNIT: u64 = MIN_LOCATED_UNIT;

    fn stripes(end: Option<u64>, unit: u64, hosts: &[&str]) -> HostStripes {
        HostStripes { end, unit, hosts: hosts.iter().map(|host| [(*host).to_owned()].into()).collect() }
    }

    fn near_of(components: &[HostStripes], length: u64) -> Option<Vec<NodeStripes>> {
        near(components, &NODES, length, 3, u64::MAX)
    }

    #[test]
    fn nodes_are_found_by_name_and_by_address() {
        let hosts = ["oss1.SITE", "10.0.0.2", "fd00::3", "oss0:7441"];
        let found = near_of(&[stripes(None, UNIT, &hosts)], 1 << 50).unwrap();
        assert_eq!(found, [NodeStripes { end: u64::MAX, unit: UNIT, cycle: vec![1, 2, 3, 7] }]);
        assert!(found.first().unwrap().deals_in_turn());
        for unknown in ["oss1", "10.0.0.20", "", "site", "7440", "unix"] {
            assert_eq!(near_of(&[stripes(None, UNIT, &[unknown])], 9), None, "{unknown}");
        }
    }

    #[test]
    fn a_host_has_several_names() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Arc<[_]>>();
        let hosts = vec![names(&["ceph-1", "10.0.0.2"]), names(&[]), names(&["oss1.site", "10.0.0.9"])];
        let found = near_of(&[HostStripes { end: None, unit: UNIT, hosts }], 1 << 30).unwrap();
        let near: Vec<_> = found.first().unwrap().cycle.iter().step_by(3).collect();
        assert!(near.iter().all(|number| **number == 2), "{found:?}");
    }

    #[test]
    fn places_are_bounded() {
        let many = vec!["oss1.site"; MAX_CYCLE + 1];
        assert_eq!(near_of(&[stripes(None, UNIT, &many)], 9), None);
        let components: Vec<_> =
            (1..MAX_COMPONENTS as u64 + 2).map(|n| stripes(Some(n), UNIT, &["oss1.site"])).collect();
        assert_eq!(near_of(&components, MAX_COMPONENTS as u64 + 1), None);
        assert!(near_of(&components[..MAX_COMPONENTS], 9).is_some());
    }

    #[test]
    fn nodes_of_one_host_take_turns_and_all_nodes_share_the_rest() {
        let found = near_of(&[stripes(None, UNIT, &["oss0", "10.0.0.2"])], 1 << 30).unwrap();
        assert_eq!(found, [NodeStripes { end: u64::MAX, unit: UNIT, cycle: vec![0, 2, 7, 2] }]);
        let found = near_of(&[stripes(None, UNIT, &["10.0.0.2", "elsewhere"])], 1 << 30).unwrap();
        let of_others: Vec<u32> = found.first().unwrap().cycle.iter().skip(1).step_by(2).copied().collect();
        assert_eq!(found.first().unwrap().cycle.len(), 10);
        let mut sorted = of_others.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 7], "{of_others:?}");
    }

    #[test]
    fn nodes_of_one_host_take_turns_in_a_long_file() {
        let hosts: Vec<_> = ["oss0", "10.0.0.2", "oss0"].into_iter().cycle().take(60_000).collect();
        let found = near_of(&[stripes(None, UNIT, &hosts)], 60_000 * UNIT).unwrap();
        assert_eq!(found.first().unwrap().cycle, [0, 2, 7], "it repeats");
        let mut hosts = hosts;
        hosts.swap(0, 1);
        let found = near_of(&[stripes(None, UNIT, &hosts)], 60_000 * UNIT).unwrap();
        let cycle = &found.first().unwrap().cycle;
        let of = |number| cycle.iter().filter(|one| **one == number).count();
        assert_eq!((of(0), of(2), of(7)), (20_000, 20_000, 20_000));
    }

    #[test]
    fn a_long_cycle_of_many_nodes_is_bounded_by_its_bytes() {
        let addresses: Vec<String> = (0..1024).map(|number| format!("host{number}:7440")).collect();
        let nodes: Vec<_> =
            (0..).zip(&addresses).map(|(number, address)| TreeNode { number, address }).collect();
        let most = 8 * MAX_CYCLE_BYTES / 11;
        for (stripes_of_file, fits) in [(most, true), (most + 1, false)] {
            let hosts: Vec<_> = (0..stripes_of_file).map(|n| format!("host{}", n * n % 1021)).collect();
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let located = [stripes(None, UNIT, &hosts)];
            let found = near(&located, &nodes, stripes_of_file as u64 * UNIT, 0, u64::MAX);
            assert_eq!(found.is_some(), fits, "{stripes_of_file}");
        }
    }

    #[test]
    fn cycles_are_as_short_as_can_be() {
        let a = "oss1.site";
        let b = "10.0.0.2";
        let c = "fd00::3";
        for (hosts, unit, cycle) in [
            (&[a, b, a, b][..], UNIT, &[1, 2][..]),
            (&[a, a, b, b], 2 * UNIT, &[1, 2]),
            (&[a, a], 2 * UNIT, &[1]),
            (&[a, a, b, b, b, b, c, c], 2 * UNIT, &[1, 2, 2, 3]),
            (&[a, b, b], UNIT, &[1, 2, 2]),
        ] {
            let hosts: Vec<&str> = hosts.to_vec();
            let found = near_of(&[stripes(None, UNIT, &hosts)], 1 << 30).unwrap();
            // A cycle of one target has one stripe, whatever its unit.
            let unit = if cycle.len() == 1 { UNIT } else { unit };
            assert_eq!(found, [NodeStripes { end: u64::MAX, unit, cycle: cycle.to_vec() }], "{hosts:?}");
        }
    }

    #[test]
    fn what_makes_no_layout_is_left_out() {
        let first = stripes(Some(UNIT), UNIT, &["10.0.0.2"]);
        let two = [first.clone(), stripes(None, 4 * UNIT, &["oss1.site", "oss1.site", "fd00::3"])];
        assert_eq!(near_of(&two, 1 << 30).unwrap().len(), 2);
        assert_eq!(near_of(&two, 1).unwrap().len(), 1, "the second one has no bytes of the file");
        assert_eq!(near_of(&two, 1 << 50), None, "too many stripes");
        assert_eq!(near_of(std::slice::from_ref(&first), UNIT + 1), None, "it ends before the file");
        assert_eq!(near_of(&[first.clone(), first], 2 * UNIT), None, "an empty component");
        assert_eq!(near_of(&[stripes(None, UNIT - 1, &["10.0.0.2"])], 9), None, "stripes that are too short");
        assert_eq!(near_of(&[stripes(None, UNIT, &[])], 9), None);
        assert_eq!(near_of(&[], 0), None);
        let located = [stripes(None, UNIT, &["oss1.site", "10.0.0.2"])];
        assert!(near(&located, &NODES, 10 * UNIT, 0, 11).is_some());
        assert!(near(&located, &NODES, 10 * UNIT, 0, 10).is_none(), "too many stripes for this request");
    }
}
