//! Nodes, clients, machines and shards.

use crate::{Place, Places};

/// Assumed seconds of a core to read a byte and send it, if they were not measured. This is the value over loopback.
pub const SENDING: f64 = 0.4e-9;

/// Assumed seconds of a core to receive a byte, if they were not measured.
pub const RECEIVING: f64 = 0.4e-9;

/// Processors on which several nodes, clients or both run. Their use of these processors counts once, here.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Number of cores for all of them together.
    pub cores: f64,
    /// Seconds for which all cores are busy already.
    pub busy: f64,
}

/// A storage node or a data node.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Number of cores for active work. It may be a fraction.
    pub cores: f64,
    /// Seconds for which all these cores are busy already.
    pub busy: f64,
    /// Rate of its link.
    pub link: f64,
    /// Seconds for which the link is busy already, including normal requests.
    pub link_busy: f64,
    /// Seconds of a core to read a byte and send it.
    pub sending: f64,
    /// Number of the machine that it shares with others.
    pub machine: Option<usize>,
}

impl Node {
    /// An idle node with one core, a link of 1 GB/s, and no shared machine.
    pub const IDLE: Node =
        Node { cores: 1.0, busy: 0.0, link: 1e9, link_busy: 0.0, sending: 0.0, machine: None };
}

/// Computes the rate of a link if `cores` send on it, and each takes `sending` seconds for a byte.
pub fn sending_rate(link: f64, cores: f64, sending: f64) -> f64 {
    if sending > 0.0 { link.min(cores / sending) } else { link }
}

/// Computes the rate at which a core receives and folds. `rate` is the rate at which it only folds, and `receiving` is
/// the seconds to receive a byte.
pub fn receiving_rate(rate: f64, receiving: f64) -> f64 {
    rate / (1.0 + rate * receiving)
}

/// A client.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Factor on the client rates of shards. It makes a client faster or slower than others.
    pub speed: f64,
    /// Seconds for which its cores are busy already.
    pub busy: f64,
    /// Rate of its link.
    pub link: f64,
    /// Seconds for which the link is busy already.
    pub link_busy: f64,
    /// Number of cores that the client rates of shards use.
    pub cores: f64,
    /// Seconds of a core to receive a byte.
    pub receiving: f64,
    /// Number of the machine that it shares with others.
    pub machine: Option<usize>,
}

impl Client {
    /// An idle client with one core of the usual speed, a link of 1 GB/s, and no shared machine.
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
    /// Number of the storage node that has its data.
    pub node: usize,
    /// Number of the data node that could fold it.
    pub data: Option<usize>,
    /// Number of the client that sent the request.
    pub client: usize,
    /// Bytes that it reads.
    pub bytes: u64,
    /// Bytes of its answer.
    pub result_bytes: u64,
    /// Bytes that its storage node would pull from neighbours.
    pub pulled_bytes: u64,
    /// Rate of the kernel on one core of the storage node.
    pub storage_rate: f64,
    /// Rate of the kernel on one core of the data node.
    pub data_rate: f64,
    /// Rate of the kernel on all cores of a client of speed 1.
    pub client_rate: f64,
    /// Largest number of cores of a node that it can use, at least 1.
    pub parallel: f64,
    /// Seconds of one core for other work, by [`Place::number`]: to begin, to ask, to restore a state.
    pub overhead: [f64; 3],
    /// Places where it may run.
    pub places: Places,
    /// Group of the shard. All shards of a group must run at the same place, for example because the kernel of
    /// their request needs all of them in a pass.
    pub together: Option<u64>,
}

impl Shard {
    /// Creates a shard of so many bytes of a node for a client. It has a small answer, rates of 1 GB/s and one core. It
    /// may not run at a data node, because it does not name one.
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
