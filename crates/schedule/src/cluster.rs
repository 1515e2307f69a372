//! Translation of nodes, clients and shards to [`crate::overlap`] and back.
//!
//! A shard uses these seconds of a whole resource:
//!
//! | place | cores | links |
//! |---|---|---|
//! | storage | `bytes / (storage_rate * cores) + overhead / cores` of the node | `result + pulled` of the node, `result` of the client |
//! | data node | the same of the data node | `bytes` of the storage node, `bytes + result` of the data node, `result` of the client |
//! | client | `bytes / (client_rate * speed) + bytes * receiving / cores + overhead / min(cores, 1)` of the client | `bytes` of the node and of the client |
//!
//! The bytes that a shard pulls leave through the links of its neighbours. Nodes pull about the same from each other,
//! so these bytes count at the shard's own link. A fold uses at most `parallel` cores, so alone it takes longer than
//! its share of all cores. One thread does the overhead, which alone takes `overhead / min(cores, 1)`. All rates are
//! in bytes a second.
//!
//! **Machines.** A machine is a set of processors. Nodes and clients that run on the same processors name the same machine.
//! Everything that they do on its cores is a load of one more resource, so no core is counted twice. On its machine a node
//! folds and also sends the bytes that move: `bytes * sending`. A client on a machine receives them there:
//! `bytes * receiving`. In addition a link is no faster than the cores that send ([`sending_rate`]).

mod costs;
mod shard;
mod worth;

pub use shard::{Client, Machine, Node, RECEIVING, SENDING, Shard, receiving_rate, sending_rate};
pub use worth::{LEAST_GAIN, LEAST_SHARE, worth_while};

use crate::{Choice, MAX_WORKS, Place, Places, Problem, ScheduleError, Use, error, overlap};

use costs::costs;

/// Cost of a shard at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds if no other work ran.
    pub alone: f64,
    /// Seconds until all resources that it uses there are done, if all other shards run as decided.
    pub queued: f64,
}

/// Decision for all shards, with the costs at all places.
#[derive(Clone, Debug)]
pub struct Placement {
    /// A place for each shard.
    pub places: Vec<Place>,
    /// Seconds until the busiest resource is done.
    pub makespan: f64,
    /// Lower bound on the makespan of all placements, in seconds.
    pub bound: f64,
    /// Cost of each shard at each place, by [`Place::number`]. `None` if it may not run there. Shards that must run at
    /// the same place have the common cost of all of them.
    pub costs: Vec<[Option<Cost>; 3]>,
}

/// Nodes, clients and machines.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    storage: Vec<Node>,
    data: Vec<Node>,
    clients: Vec<Client>,
    machines: Vec<Machine>,
}

impl Cluster {
    /// Adds a storage node. Returns its number.
    pub fn storage_node(&mut self, node: Node) -> usize {
        self.storage.push(node);
        self.storage.len() - 1
    }

    /// Adds a data node. Returns its number.
    pub fn data_node(&mut self, node: Node) -> usize {
        self.data.push(node);
        self.data.len() - 1
    }

    /// Adds a client. Returns its number.
    pub fn client(&mut self, client: Client) -> usize {
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// Adds a machine that several nodes or clients share. Returns its number.
    pub fn machine(&mut self, machine: Machine) -> usize {
        self.machines.push(machine);
        self.machines.len() - 1
    }

    /// Decides where these shards run.
    ///
    /// # Errors
    /// The errors of [`Cluster::problem`].
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

    /// Makes a problem of the shards. Also returns the number of the work of each shard: shards that must run at the
    /// same place are one work. Resources are the cores and the link of each storage node, then of each data node, then
    /// of each client, and then the cores of each machine.
    ///
    /// # Errors
    /// Rates, seconds or cores that are not possible; unknown nodes, clients or machines; a shard without a place;
    /// shards that must run at the same place, without a place for all of them; more than is decided at the same time.
    pub fn problem(&self, shards: &[Shard]) -> Result<(Problem, Vec<usize>), ScheduleError> {
        error::at_most(shards.len(), MAX_WORKS, "shards")?;
        let mut problem = Problem::new(self.busy()?)?;
        let (mut works, mut uses) = (vec![0; shards.len()], [const { Vec::new() }; 3]);
        // The sort is stable. The first shard of a group represents it, and all other shards stay in order.
        let mut grouped: Vec<usize> = (0..shards.len()).filter(|i| shards[*i].together.is_some()).collect();
        grouped.sort_by_key(|i| shards[*i].together);
        let mut groups: Vec<&[usize]> =
            grouped.chunk_by(|a, b| shards[*a].together == shards[*b].together).collect();
        groups.sort_unstable_by_key(|group| group[0]);
        let mut groups = groups.into_iter().peekable();
        for (i, shard) in shards.iter().enumerate() {
            if shard.together.is_none() {
                works[i] = self.push_work(&mut problem, shards, &[i], &mut uses)?;
            } else if let Some(group) = groups.next_if(|group| group[0] == i) {
                let work = self.push_work(&mut problem, shards, group, &mut uses)?;
                group.iter().for_each(|i| works[*i] = work);
            }
        }
        Ok((problem, works))
    }

    /// Present load of each resource, in seconds.
    fn busy(&self) -> Result<Vec<f64>, ScheduleError> {
        let pairs = self.storage.len() + self.data.len() + self.clients.len();
        let mut busy = Vec::with_capacity(2 * pairs + self.machines.len());
        for (kind, nodes) in [("storage", &self.storage), ("data", &self.data)] {
            for (i, node) in nodes.iter().enumerate() {
                check_speed(node.cores, || format!("the number of cores of {kind} node {i}"))?;
                error::rate(node.link, || format!("the link of {kind} node {i}"))?;
                error::seconds(node.sending, || format!("the time in which {kind} node {i} sends a byte"))?;
                busy.extend([node.busy, node.link_busy]);
            }
        }
        for (i, client) in self.clients.iter().enumerate() {
            check_speed(client.speed, || format!("the speed of client {i}"))?;
            check_speed(client.cores, || format!("the number of cores of client {i}"))?;
            error::rate(client.link, || format!("the link of client {i}"))?;
            error::seconds(client.receiving, || format!("the time in which client {i} receives a byte"))?;
            busy.extend([client.busy, client.link_busy]);
        }
        for (i, machine) in self.machines.iter().enumerate() {
            check_speed(machine.cores, || format!("the number of cores of machine {i}"))?;
            busy.push(machine.busy);
        }
        Ok(busy)
    }

    /// Adds a group of shards as one work. `uses` is a buffer for their uses at each place.
    fn push_work(
        &self,
        problem: &mut Problem,
        shards: &[Shard],
        group: &[usize],
        uses: &mut [Vec<Use>; 3],
    ) -> Result<usize, ScheduleError> {
        let places = group.iter().fold(Places::ALL, |places, i| places.and(shards[*i].places));
        let mut min_seconds = [0.0_f64; 3];
        uses.iter_mut().for_each(Vec::clear);
        for place in places.iter() {
            for i in group {
                let (shard, at) = (&shards[*i], place.number());
                let alone = self.add_uses(*i, shard, place, &mut uses[at])?;
                min_seconds[at] = min_seconds[at].max(alone);
            }
        }
        let first = group.first().copied().unwrap_or_default();
        if places.is_empty() {
            return Err(ScheduleError::NoPlace { request: first });
        }
        problem.push(Place::ALL.map(|place| {
            let at = place.number();
            places.has(place).then(|| Choice { uses: &uses[at], min_seconds: min_seconds[at] })
        }))
    }

    /// Adds the uses of a shard at a place. Returns the seconds that it takes alone.
    fn add_uses(
        &self,
        request: usize,
        shard: &Shard,
        place: Place,
        uses: &mut Vec<Use>,
    ) -> Result<f64, ScheduleError> {
        let node = find(&self.storage, shard.node, request, "storage node")?;
        let client = find(&self.clients, shard.client, request, "client")?;
        let (node_at, data_at) = (2 * shard.node, 2 * self.storage.len());
        let client_at = data_at + 2 * self.data.len() + 2 * shard.client;
        let machine_at = data_at + 2 * self.data.len() + 2 * self.clients.len();
        let rate = |rate, name| error::rate(rate, || format!("the {name} rate of request {request}"));
        let overhead = shard.overhead[place.number()];
        error::seconds(overhead, || format!("the overhead of request {request} at {place}"))?;
        check_speed(shard.parallel, || format!("the number of cores that request {request} can use"))?;
        let (bytes, result, pulled) =
            (shard.bytes as f64, shard.result_bytes as f64, shard.pulled_bytes as f64);
        let mut add = |resource: usize, seconds: f64| uses.push(Use { resource: resource as u32, seconds });
        let fold = |node: &Node, rate: f64| {
            let alone = bytes / (rate * node.cores.min(shard.parallel)) + overhead / node.cores.min(1.0);
            (bytes / (rate * node.cores) + overhead / node.cores, alone)
        };
        // Seconds of cores of the machines. A node sends with the cores of its machine, on which it also folds.
        let mut machine_seconds: [(Option<usize>, f64); 4] = [(None, 0.0); 4];
        let alone = match place {
            Place::Storage => {
                let (cores, alone) = fold(node, rate(shard.storage_rate, "storage")?);
                add(node_at, cores);
                add(node_at + 1, (result + pulled) / node.link);
                add(client_at + 1, result / client.link);
                machine_seconds[0] =
                    (node.machine, cores * node.cores + pulled * (node.sending + client.receiving));
                machine_seconds[1] = (node.machine, result * node.sending);
                machine_seconds[2] = (client.machine, result * client.receiving);
                alone
            }
            Place::Data => {
                let number = shard.data.ok_or(ScheduleError::NoDataNode { request })?;
                let data = find(&self.data, number, request, "data node")?;
                let (cores, alone) = fold(data, rate(shard.data_rate, "data node")?);
                add(node_at + 1, bytes / node.link);
                add(data_at + 2 * number, cores);
                add(data_at + 2 * number + 1, (bytes + result) / data.link);
                add(client_at + 1, result / client.link);
                machine_seconds[0] = (data.machine, cores * data.cores);
                machine_seconds[1] = (node.machine, bytes * node.sending);
                alone
            }
            Place::Client => {
                let fold_seconds = bytes / (rate(shard.client_rate, "client")? * client.speed);
                let fold_seconds = fold_seconds + overhead / client.cores.min(1.0);
                let alone = fold_seconds + bytes * client.receiving / client.cores;
                add(node_at + 1, bytes / node.link);
                add(client_at, alone);
                add(client_at + 1, bytes / client.link);
                machine_seconds[0] = (node.machine, bytes * node.sending);
                machine_seconds[1] = (client.machine, alone * client.cores);
                alone
            }
        };
        for (number, seconds) in machine_seconds {
            let Some(number) = number else { continue };
            let machine = find(&self.machines, number, request, "machine")?;
            add(machine_at + number, seconds / machine.cores);
        }
        Ok(alone)
    }
}

/// Finds a node, client or machine by its number.
fn find<'a, T>(
    all: &'a [T],
    number: usize,
    request: usize,
    what: &'static str,
) -> Result<&'a T, ScheduleError> {
    all.get(number).ok_or(ScheduleError::Unknown { request, what, number, count: all.len() })
}

/// Returns a number of cores or a factor of speed if it is possible.
fn check_speed(value: f64, what: impl FnOnce() -> String) -> Result<f64, ScheduleError> {
    if (1e-6..=1e6).contains(&value) { Ok(value) } else { Err(ScheduleError::Speed { what: what(), value }) }
}
