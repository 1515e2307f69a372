//! Simulation of requests over many nodes. The same code decides as between real nodes.
//!
//! Resources are the cores of a node taken together, its link, the cores of a client, and its link. Each resource
//! is under *processor sharing*: its jobs at a time get equal parts of it. A request uses all its resources at
//! the same time, as a pipelined server does. It is done when its last resource is done with it, and not before
//! the time that it takes alone. At a tick, all requests since the last tick are decided together. They are not
//! moved afterwards.
//!
//! An event is the end of one request's use of one resource. It costs O(log n), so ten thousand nodes and a million
//! requests take seconds.
//! ```
//! use gristmill_schedule::simulate::{Policy, World};
//!
//! let world = World { requests: 200, per_second: 40.0, ..World::default() };
//! let asked = world.requests();
//! let [storage, client, overlap] =
//!     [Policy::Storage, Policy::Client, Policy::Overlap].map(|policy| world.run(&asked, policy));
//! let (storage, client, overlap) = (storage?, client?, overlap?);
//! assert!(overlap.makespan < storage.makespan.min(client.makespan));
//! assert!(overlap.makespan >= world.bound(&asked)?);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

mod draw;
mod sharing;

pub use draw::{Request, World};

use crate::cluster::{Client, Cluster, Node, Shard};
use crate::paper;
use crate::{Place, Places, Problem, ScheduleError, overlap};
use sharing::SharedResources;

/// Policy that decides places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each request runs on its storage node.
    Storage,
    /// Each request runs at its client.
    Client,
    /// [`crate::paper`] for each node, over the requests since the last tick. Rates are those of an idle node,
    /// because the formulas have no term for running requests.
    Paper,
    /// [`crate::overlap`] over the requests since the last tick at all nodes, with the remaining load of each
    /// resource.
    Overlap,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 4] = [Policy::Storage, Policy::Client, Policy::Paper, Policy::Overlap];
}

/// Result of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Time at which the last request was done, in seconds.
    pub makespan: f64,
    /// Mean seconds from a request's arrival until it was done.
    pub mean: f64,
    /// Share of the requests that ran on storage nodes.
    pub storage_share: f64,
}

impl World {
    /// Simulates these requests, which are in the order of their arrival.
    ///
    /// # Errors
    /// Rates that are not possible; unknown nodes or clients; too many requests in one tick.
    pub fn run(&self, requests: &[Request], policy: Policy) -> Result<Outcome, ScheduleError> {
        let mut shared = SharedResources::new(2 * (self.nodes + self.clients));
        let (mut short_numbers, mut on_storage) = (ShortNumbers::new(self), 0);
        let mut rest = requests;
        while let Some(first) = rest.first() {
            let tick = self.tick_after(first.at);
            let many = rest.partition_point(|request| self.tick_after(request.at) <= tick).max(1);
            let (batch, later) = rest.split_at(many);
            rest = later;
            shared.run_until(tick);
            let (problem, resources) =
                short_numbers.problem(self, batch, |resource| shared.busy(resource, tick))?;
            for (work, place) in self.decide(batch, &problem, policy)?.into_iter().enumerate() {
                on_storage += usize::from(place == Place::Storage);
                let uses = problem.uses(work, place).iter();
                let uses = uses.map(|one| (resources[one.resource as usize], one.seconds));
                shared.begin(tick, problem.min_seconds(work, place).unwrap_or_default(), uses);
            }
        }
        shared.run_until(f64::INFINITY);
        let (mut makespan, mut sum) = (0.0_f64, 0.0);
        for (request, done) in requests.iter().zip(shared.ends()) {
            makespan = makespan.max(*done);
            sum += done - request.at;
        }
        let count = requests.len().max(1) as f64;
        Ok(Outcome { makespan, mean: sum / count, storage_share: on_storage as f64 / count })
    }

    /// Lower bound on the makespan of all policies for these requests, in seconds.
    ///
    /// # Errors
    /// The same as for [`World::run`].
    pub fn bound(&self, requests: &[Request]) -> Result<f64, ScheduleError> {
        let (problem, _) = ShortNumbers::new(self).problem(self, requests, |_| 0.0)?;
        let mut least = overlap::solve(&problem).bound;
        for (work, request) in requests.iter().enumerate() {
            let alone = Place::ALL.iter().filter_map(|place| problem.min_seconds(work, *place));
            least = least.max(self.tick_after(request.at) + alone.fold(f64::INFINITY, f64::min));
        }
        Ok(least)
    }

    /// The tick at which a request that arrives at `at` is decided.
    fn tick_after(&self, at: f64) -> f64 {
        if self.tick > 0.0 { (at / self.tick).ceil() * self.tick } else { at }
    }

    fn decide(
        &self,
        batch: &[Request],
        problem: &Problem,
        policy: Policy,
    ) -> Result<Vec<Place>, ScheduleError> {
        match policy {
            Policy::Storage => Ok(vec![Place::Storage; batch.len()]),
            Policy::Client => Ok(vec![Place::Client; batch.len()]),
            Policy::Overlap => Ok(overlap::solve(problem).places),
            Policy::Paper => {
                let mut order: Vec<usize> = (0..batch.len()).collect();
                order.sort_by_key(|i| batch[*i].node);
                let mut places = vec![Place::Storage; batch.len()];
                for queue in order.chunk_by(|a, b| batch[*a].node == batch[*b].node) {
                    let works: Vec<paper::Work> = queue.iter().map(|i| self.work(&batch[*i])).collect();
                    let decided = paper::solve(self.node_link, &works)?;
                    for (i, place) in queue.iter().zip(decided.places) {
                        places[*i] = place;
                    }
                }
                Ok(places)
            }
        }
    }

    fn work(&self, request: &Request) -> paper::Work {
        paper::Work {
            bytes: request.bytes,
            result_bytes: request.result_bytes,
            storage_rate: request.rate * self.cores,
            client_rate: request.rate * self.client_cores,
        }
    }
}

/// Short numbers for the nodes and clients of a batch. They keep the cost of a tick independent of all other nodes and
/// clients.
struct ShortNumbers {
    nodes: Vec<usize>,
    clients: Vec<usize>,
}

/// Short number of a node or client that is not in the batch.
const ABSENT: usize = usize::MAX;

impl ShortNumbers {
    fn new(world: &World) -> ShortNumbers {
        ShortNumbers { nodes: vec![ABSENT; world.nodes], clients: vec![ABSENT; world.clients] }
    }

    /// Makes a problem of the batch. Also returns the number in the world of each resource of the problem.
    fn problem(
        &mut self,
        world: &World,
        batch: &[Request],
        busy: impl Fn(usize) -> f64,
    ) -> Result<(Problem, Vec<usize>), ScheduleError> {
        let (mut cluster, mut nodes, mut clients) = (Cluster::default(), Vec::new(), Vec::new());
        let mut shards = Vec::with_capacity(batch.len());
        for (i, request) in batch.iter().enumerate() {
            let node = short_number(&mut self.nodes, &mut nodes, request.node, i, "storage node")?;
            let client = short_number(&mut self.clients, &mut clients, request.client, i, "client")?;
            shards.push(Shard {
                result_bytes: request.result_bytes,
                storage_rate: request.rate,
                client_rate: request.rate * world.client_cores,
                parallel: world.cores,
                places: Places::ALL.without(Place::Data),
                ..Shard::of(node, client, request.bytes)
            });
        }
        let mut resources = Vec::with_capacity(2 * (nodes.len() + clients.len()));
        for node in nodes {
            let at = 2 * node;
            let (busy, link_busy) = (busy(at), busy(at + 1));
            cluster.storage_node(Node {
                cores: world.cores,
                busy,
                link: world.node_link,
                link_busy,
                ..Node::IDLE
            });
            resources.extend([at, at + 1]);
            self.nodes[node] = ABSENT;
        }
        for client in clients {
            let at = 2 * (world.nodes + client);
            let (busy, link_busy) = (busy(at), busy(at + 1));
            cluster.client(Client { busy, link: world.client_link, link_busy, ..Client::IDLE });
            resources.extend([at, at + 1]);
            self.clients[client] = ABSENT;
        }
        let (problem, _) = cluster.problem(&shards)?;
        Ok((problem, resources))
    }
}

/// Returns the short number of a node or client. Gives it a new one if it has none yet.
fn short_number(
    short: &mut [usize],
    all: &mut Vec<usize>,
    number: usize,
    request: usize,
    what: &'static str,
) -> Result<usize, ScheduleError> {
    let count = short.len();
    let found = short.get_mut(number).ok_or(ScheduleError::Unknown { request, what, number, count })?;
    if *found == ABSENT {
        *found = all.len();
        all.push(number);
    }
    Ok(*found)
}
