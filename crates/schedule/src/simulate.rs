//! Requests over many nodes, decided by the very code that decides between real ones.
//!
//! Every resource (the cores of a node taken together, its link, the cores of a client, its link) is a fluid
//! under *processor sharing*: what it has to do at a time gets equal parts of it. A request uses all its
//! resources at once, as a pipelined server does, and is done when the last of them is done with it, and not
//! before the time that it takes alone. Requests are decided at ticks, those since the last tick together,
//! and are not moved afterwards.
//!
//! One event is the end of one request's use of one resource; it costs O(log n), so ten thousand nodes and a
//! million requests take seconds.
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
use sharing::Shared;

/// How places are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Everything on its storage node.
    Storage,
    /// Everything at its client.
    Client,
    /// [`crate::paper`], node by node over what came since the last tick, at the rates of an idle node: its
    /// formulas have no term for what runs already.
    Paper,
    /// [`crate::overlap`], over what came since the last tick at all nodes, with what each resource has left
    /// to do.
    Overlap,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Policy::Storage, Policy::Client, Policy::Paper, Policy::Overlap];
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// When the last request was done, in seconds.
    pub makespan: f64,
    /// Mean seconds from a request's arrival until it was done.
    pub mean: f64,
    /// Share of the requests that ran on storage nodes.
    pub stored: f64,
}

impl World {
    /// Plays these requests, in the order of their arrival.
    ///
    /// # Errors
    /// Rates that no machine has; nodes or clients that are not there; too many requests in one tick.
    pub fn run(&self, requests: &[Request], policy: Policy) -> Result<Outcome, ScheduleError> {
        let mut shared = Shared::new(2 * (self.nodes + self.clients));
        let (mut names, mut stored) = (Names::new(self), 0);
        let mut rest = requests;
        while let Some(first) = rest.first() {
            let tick = self.tick_after(first.at);
            let many = rest.partition_point(|request| self.tick_after(request.at) <= tick).max(1);
            let (batch, later) = rest.split_at(many);
            rest = later;
            shared.run_until(tick);
            let (problem, resources) = names.problem(self, batch, |resource| shared.busy(resource, tick))?;
            for (work, place) in self.decide(batch, &problem, policy)?.into_iter().enumerate() {
                stored += usize::from(place == Place::Storage);
                let uses = problem.uses(work, place).iter();
                let uses = uses.map(|one| (resources[one.resource as usize], one.seconds));
                shared.begin(tick, problem.least(work, place).unwrap_or_default(), uses);
            }
        }
        shared.run_until(f64::INFINITY);
        let (mut makespan, mut sum) = (0.0_f64, 0.0);
        for (request, done) in requests.iter().zip(shared.ends()) {
            makespan = makespan.max(*done);
            sum += done - request.at;
        }
        let count = requests.len().max(1) as f64;
        Ok(Outcome { makespan, mean: sum / count, stored: stored as f64 / count })
    }

    /// Seconds before which no way to decide has all of these requests done.
    ///
    /// # Errors
    /// As for [`World::run`].
    pub fn bound(&self, requests: &[Request]) -> Result<f64, ScheduleError> {
        let (problem, _) = Names::new(self).problem(self, requests, |_| 0.0)?;
        let mut least = overlap::solve(&problem).bound;
        for (work, request) in requests.iter().enumerate() {
            let alone = Place::ALL.iter().filter_map(|place| problem.least(work, *place));
            least = least.max(self.tick_after(request.at) + alone.fold(f64::INFINITY, f64::min));
        }
        Ok(least)
    }

    /// The tick at which a request that arrives then is decided.
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

/// Short numbers for the nodes and clients that a batch is about, so that a tick costs nothing for all
/// others.
struct Names {
    nodes: Vec<usize>,
    clients: Vec<usize>,
}

/// Not in the batch.
const ABSENT: usize = usize::MAX;

impl Names {
    fn new(world: &World) -> Names {
        Names { nodes: vec![ABSENT; world.nodes], clients: vec![ABSENT; world.clients] }
    }

    /// The batch as a problem, and the number in the world of each of its resources.
    fn problem(
        &mut self,
        world: &World,
        batch: &[Request],
        busy: impl Fn(usize) -> f64,
    ) -> Result<(Problem, Vec<usize>), ScheduleError> {
        let (mut cluster, mut nodes, mut clients) = (Cluster::default(), Vec::new(), Vec::new());
        let mut shards = Vec::with_capacity(batch.len());
        for (i, request) in batch.iter().enumerate() {
            let node = name(&mut self.nodes, &mut nodes, request.node, i, "storage node")?;
            let client = name(&mut self.clients, &mut clients, request.client, i, "client")?;
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

/// The short number of something, a new one if it has none yet.
fn name(
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
