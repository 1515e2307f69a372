//! Nodes, clients, and what they are to do.

use crate::{Place, Places};

/// Seconds of a core that it takes to read a byte and send it, where it was not measured: what it takes over loopback.
pub const SENDING: f64 = 0.4e-9;

/// The same to receive one.
pub const RECEIVING: f64 = 0.4e-9;

/// Processors on which several nodes, clients or both run. What they do there is counted once, here.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Cores for all of them together.
    pub cores: f64,
    /// Seconds for which all of these have to work already.
    pub busy: f64,
}

/// A storage node or a data node.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Cores for active work; a fraction is fine.
    pub cores: f64,
    /// Seconds for which all of these have to work already.
    pub busy: f64,
    /// Rate of its link.
    pub link: f64,
    /// Seconds for which the link has to work already, normal requests among it.
    pub link_busy: f64,
    /// Seconds of a core that it takes to read a byte and send it.
    pub sending: f64,
    /// Number of the machine that it shares with others.
    pub machine: Option<usize>,
}

impl Node {
    /// One core of its own, 1 GB/s, nothing to do.
    pub const IDLE: Node =
        Node { cores: 1.0, busy: 0.0, link: 1e9, link_busy: 0.0, sending: 0.0, machine: None };
}

/// Rate of a link behind so many cores that take `sending` seconds of one for a byte.
pub fn sendable(link: f64, cores: f64, sending: f64) -> f64 {
    if sending > 0.0 { link.min(cores / sending) } else { link }
}

/// Bytes a second that a core receives and folds, of the rate at which it folds alone.
pub fn received(rate: f64, receiving: f64) -> f64 {
    rate / (1.0 + rate * receiving)
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Factor on the client rates of shards, for clients that are faster or slower than others.
    pub speed: f64,
    /// Seconds for which its cores have to work already.
    pub busy: f64,
    /// Rate of its link.
    pub link: f64,
    /// Seconds for which the link has to work already.
    pub link_busy: f64,
    /// Cores that the client rates of shards are of.
    pub cores: f64,
    /// Seconds of a core that it takes to receive a byte.
    pub receiving: f64,
    /// Number of the machine that it shares with others.
    pub machine: Option<usize>,
}

impl Client {
    /// One core of its own of the usual speed, 1 GB/s, nothing to do.
    pub const IDLE: Client = Client {
        speed: 1.0,
        busy: 0.0,
        link: 1e9,
        link_busy: 0.0,
        cores: 1.0,
        receiving: 0.0,
        machine: None,
    };
}

/// The part of a request that one target owns.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    /// Number of the storage node that has it.
    pub node: usize,
    /// Number of the data node that could fold it.
    pub data: Option<usize>,
    /// Number of the client that asks.
    pub client: usize,
    /// What is read.
    pub bytes: u64,
    /// What the answer has.
    pub result_bytes: u64,
    /// What its storage node would read from neighbours.
    pub pulled_bytes: u64,
    /// Rate of the kernel on one core of the storage node.
    pub storage_rate: f64,
    /// Rate of the kernel on one core of the data node.
    pub data_rate: f64,
    /// Rate of the kernel on all cores of a client of speed 1.
    pub client_rate: f64,
    /// How many cores of a node it can use, at least 1.
    pub parallel: f64,
    /// Seconds of one core that it takes besides, by [`Place::number`]: to begin, to ask, to restore a state.
    pub overhead: [f64; 3],
    /// Where it may run.
    pub places: Places,
    /// Shards of one request that must all run at the same place, because its kernel needs all of them in a
    /// pass.
    pub together: Option<u64>,
}

impl Shard {
    /// So many bytes of a node for a client, with a small answer, rates of 1 GB/s, one core, and all places
    /// allowed but the data node, as none is named.
    pub const fn of(node: usize, client: usize, bytes: u64) -> Shard {
        Shard {
            node,
            data: None,
            client,
            bytes,
            result_bytes: 8,
            pulled_bytes: 0,
            storage_rate: 1e9,
            data_rate: 1e9,
            client_rate: 1e9,
            parallel: 1.0,
            overhead: [0.0; 3],
            places: Places::ALL.without(Place::Data),
            together: None,
        }
    }
}
