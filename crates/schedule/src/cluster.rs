//! From nodes, clients and shards to [`crate::overlap`], and back.
//!
//! What a shard takes, in seconds of a whole resource:
//!
//! | place | cores | links |
//! |---|---|---|
//! | storage | `bytes / (storage_rate * cores) + overhead / cores` of the node | `result + pulled` of the node, `result` of the client |
//! | data node | the same of the data node | `bytes` of the storage node, `bytes + result` of the data node, `result` of the client |
//! | client | `bytes / (client_rate * speed) + bytes * receiving / cores + overhead / min(cores, 1)` of the client | `bytes` of the node and of the client |
//!
//! What a shard pulls leaves the links of its neighbours; as nodes pull from each other alike it is counted
//! at its own. A fold uses at most `parallel` cores, so alone it takes longer than its share of them. What it
//! takes besides is done by one thread: alone it takes `overhead / min(cores, 1)`. All rates are bytes a second.
//!
//! **Machines.** A machine is a set of processors. Nodes and clients that run on the same processors name the same machine.
//! Everything that they do on its cores is a load of one more resource, so no core is counted twice. On its machine a node
//! folds and also sends the bytes that move: `bytes * sending`. A client on a machine receives them there:
//! `bytes * receiving`. In addition a link is no faster than the cores that send ([`sendable`]).

mod costs;
mod shard;
mod worth;

pub use shard::{Client, Machine, Node, RECEIVING, SENDING, Shard, received, sendable};
pub use worth::{LEAST_GAIN, LEAST_SHARE, worth_while};

use crate::{Choice, MAX_WORKS, Place, Places, Problem, ScheduleError, Use, error, overlap};

use costs::costs;

/// What a shard costs at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds if nobody else were there.
    pub alone: f64,
    /// Seconds until everything that it takes there is done, if all other shards run as decided.
    pub queued: f64,
}

/// What was decided, and what else could have been.
#[derive(Clone, Debug)]
pub struct Placement {
    /// A place for each shard.
    pub places: Vec<Place>,
    /// Seconds until the busiest resource is done.
    pub makespan: f64,
    /// Seconds that no placement is below.
    pub bound: f64,
    /// What each shard costs at each place, by [`Place::number`]; none where it may not run. Shards that must
    /// run together are moved together, and their costs are those of all of them.
    pub costs: Vec<[Option<Cost>; 3]>,
}

/// Nodes and clients.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    storage: Vec<Node>,
    data: Vec<Node>,
    clients: Vec<Client>,
    machines: Vec<Machine>,
}

impl Cluster {
    /// Adds a storage node; gives its number.
    pub fn storage_node(&mut self, node: Node) -> usize {
        self.storage.push(node);
        self.storage.len() - 1
    }

    /// Adds a data node; gives its number.
    pub fn data_node(&mut self, node: Node) -> usize {
        self.data.push(node);
        self.data.len() - 1
    }

    /// Adds a client; gives its number.
    pub fn client(&mut self, client: Client) -> usize {
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// Adds a machine that several share; gives its number.
    pub fn machine(&mut self, machine: Machine) -> usize {
        self.machines.push(machine);
        self.machines.len() - 1
    }

    /// Where these shards should run.
    ///
    /// # Errors
    /// What [`Cluster::problem`] refuses.
    pub fn place(&self, shards: &[Shard]) -> Result<Placement, ScheduleError> {
        let (problem, works) = self.problem(shards)?;
        let plan = overlap::solve(&problem);
        let costs = costs(&problem, &plan.places);
        Ok(Placement {
            places: works.iter().map(|work| plan.places[*work]).collect(),
            makespan: plan.makespan,
            bound: plan.bound,
            costs: works.iter().map(|work| costs[*work]).collect(),
        })
    }

    /// The shards as a problem, and the number of the work that each became: shards that must run together
    /// are one. Resources are cores and link of each storage node, then of each data node, then of each
    /// client, and then the cores of each machine that several share.
    ///
    /// # Errors
    /// Rates, seconds, cores that cannot be; nodes or clients that are not there; a shard without a place, or
    /// shards together without one that all of them have; more than is decided at once.
    pub fn problem(&self, shards: &[Shard]) -> Result<(Problem, Vec<usize>), ScheduleError> {
        error::at_most(shards.len(), MAX_WORKS, "shards")?;
        let mut problem = Problem::new(self.busy()?)?;
        let (mut works, mut uses) = (vec![0; shards.len()], [const { Vec::new() }; 3]);
        // A stable sort: the first of those that run together stands for them, and all else stays in order.
        let mut grouped: Vec<usize> = (0..shards.len()).filter(|i| shards[*i].together.is_some()).collect();
        grouped.sort_by_key(|i| shards[*i].together);
        let mut groups: Vec<&[usize]> =
            grouped.chunk_by(|a, b| shards[*a].together == shards[*b].together).collect();
        groups.sort_unstable_by_key(|group| group[0]);
        let mut groups = groups.into_iter().peekable();
        for (i, shard) in shards.iter().enumerate() {
            if shard.together.is_none() {
                works[i] = self.push(&mut problem, shards, &[i], &mut uses)?;
            } else if let Some(group) = groups.next_if(|group| group[0] == i) {
                let work = self.push(&mut problem, shards, group, &mut uses)?;
                group.iter().for_each(|i| works[*i] = work);
            }
        }
        Ok((problem, works))
    }

    /// Seconds that each resource has to do.
    fn busy(&self) -> Result<Vec<f64>, ScheduleError> {
        let pairs = self.storage.len() + self.data.len() + self.clients.len();
        let mut busy = Vec::with_capacity(2 * pairs + self.machines.len());
        for (kind, nodes) in [("storage", &self.storage), ("data", &self.data)] {
            for (i, node) in nodes.iter().enumerate() {
                speed(node.cores, || format!("the number of cores of {kind} node {i}"))?;
                error::rate(node.link, || format!("the link of {kind} node {i}"))?;
                error::seconds(node.sending, || format!("what {kind} node {i} takes to send a byte"))?;
                busy.extend([node.busy, node.link_busy]);
            }
        }
        for (i, client) in self.clients.iter().enumerate() {
            speed(client.speed, || format!("the speed of client {i}"))?;
            speed(client.cores, || format!("the number of cores of client {i}"))?;
            error::rate(client.link, || format!("the link of client {i}"))?;
            error::seconds(client.receiving, || format!("what client {i} takes to receive a byte"))?;
            busy.extend([client.busy, client.link_busy]);
        }
        for (i, machine) in self.machines.iter().enumerate() {
            speed(machine.cores, || format!("the number of cores of machine {i}"))?;
            busy.push(machine.busy);
        }
        Ok(busy)
    }

    /// Adds some shards as one work. `uses`: room for what they take at each place.
    fn push(
        &self,
        problem: &mut Problem,
        shards: &[Shard],
        some: &[usize],
        uses: &mut [Vec<Use>; 3],
    ) -> Result<usize, ScheduleError> {
        let places = some.iter().fold(Places::ALL, |places, i| places.and(shards[*i].places));
        let mut least = [0.0_f64; 3];
        uses.iter_mut().for_each(Vec::clear);
        for place in places.iter() {
            for i in some {
                let (shard, at) = (&shards[*i], place.number());
                let alone = self.takes(*i, shard, place, &mut uses[at])?;
                least[at] = least[at].max(alone);
            }
        }
        let first = some.first().copied().unwrap_or_default();
        if places.is_empty() {
            return Err(ScheduleError::Nowhere { request: first });
        }
        problem.push(Place::ALL.map(|place| {
            let at = place.number();
            places.has(place).then(|| Choice { uses: &uses[at], least: least[at] })
        }))
    }

    /// What a shard takes at a place, and how long alone.
    fn takes(
        &self,
        request: usize,
        shard: &Shard,
        place: Place,
        uses: &mut Vec<Use>,
    ) -> Result<f64, ScheduleError> {
        let node = there(&self.storage, shard.node, request, "storage node")?;
        let client = there(&self.clients, shard.client, request, "client")?;
        let (node_at, data_at) = (2 * shard.node, 2 * self.storage.len());
        let client_at = data_at + 2 * self.data.len() + 2 * shard.client;
        let machine_at = data_at + 2 * self.data.len() + 2 * self.clients.len();
        let rate = |rate, of| error::rate(rate, || format!("the {of} rate of request {request}"));
        let overhead = shard.overhead[place.number()];
        error::seconds(overhead, || format!("the overhead of request {request} at {place}"))?;
        speed(shard.parallel, || format!("the number of cores that request {request} can use"))?;
        let (bytes, result, pulled) =
            (shard.bytes as f64, shard.result_bytes as f64, shard.pulled_bytes as f64);
        let mut add = |resource: usize, seconds: f64| uses.push(Use { resource: resource as u32, seconds });
        let fold = |node: &Node, rate: f64| {
            let alone = bytes / (rate * node.cores.min(shard.parallel)) + overhead / node.cores.min(1.0);
            (bytes / (rate * node.cores) + overhead / node.cores, alone)
        };
        // Seconds of cores, and the machine that has these cores. A node sends with the cores of its machine, on which it also
        // folds.
        let mut on: [(Option<usize>, f64); 4] = [(None, 0.0); 4];
        let alone = match place {
            Place::Storage => {
                let (cores, alone) = fold(node, rate(shard.storage_rate, "storage")?);
                add(node_at, cores);
                add(node_at + 1, (result + pulled) / node.link);
                add(client_at + 1, result / client.link);
                on[0] = (node.machine, cores * node.cores + pulled * (node.sending + client.receiving));
                on[1] = (node.machine, result * node.sending);
                on[2] = (client.machine, result * client.receiving);
                alone
            }
            Place::Data => {
                let number = shard.data.ok_or(ScheduleError::NoDataNode { request })?;
                let data = there(&self.data, number, request, "data node")?;
                let (cores, alone) = fold(data, rate(shard.data_rate, "data node")?);
                add(node_at + 1, bytes / node.link);
                add(data_at + 2 * number, cores);
                add(data_at + 2 * number + 1, (bytes + result) / data.link);
                add(client_at + 1, result / client.link);
                on[0] = (data.machine, cores * data.cores);
                on[1] = (node.machine, bytes * node.sending);
                alone
            }
            Place::Client => {
                let takes = bytes / (rate(shard.client_rate, "client")? * client.speed);
                let takes = takes + overhead / client.cores.min(1.0);
                let alone = takes + bytes * client.receiving / client.cores;
                add(node_at + 1, bytes / node.link);
                add(client_at, alone);
                add(client_at + 1, bytes / client.link);
                on[0] = (node.machine, bytes * node.sending);
                on[1] = (client.machine, alone * client.cores);
                alone
            }
        };
        for (number, seconds) in on {
            let Some(number) = number else { continue };
            let machine = there(&self.machines, number, request, "machine")?;
            add(machine_at + number, seconds / machine.cores);
        }
        Ok(alone)
    }
}

/// One of several things, by its number.
fn there<'a, T>(
    all: &'a [T],
    number: usize,
    request: usize,
    what: &'static str,
) -> Result<&'a T, ScheduleError> {
    all.get(number).ok_or(ScheduleError::Unknown { request, what, number, count: all.len() })
}

/// A number of cores or a factor that a machine may have.
fn speed(given: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (1e-6..=1e6).contains(&given) { Ok(given) } else { Err(ScheduleError::Speed { what: what(), given }) }
}
