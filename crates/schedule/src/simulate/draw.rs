//! Worlds, and requests that are drawn from a seed.

/// A cluster and its requests. Rates are in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct World {
    /// Storage nodes, at least 1.
    pub nodes: usize,
    /// Clients, at least 1.
    pub clients: usize,
    /// Number of cores of a node.
    pub cores: f64,
    /// Rate of the link of a node.
    pub node_link: f64,
    /// Number of cores of a client.
    pub client_cores: f64,
    /// Rate of the link of a client.
    pub client_link: f64,
    /// Number of requests.
    pub requests: usize,
    /// Average number of requests that arrive in a second.
    pub per_second: f64,
    /// Share of the requests that go to the first tenth of the nodes only.
    pub hot: f64,
    /// Seconds between decisions; 0 to decide each request as it arrives.
    pub tick: f64,
    /// Seed of the requests.
    pub seed: u64,
}

impl Default for World {
    /// 16 nodes with one core for active work, and 32 clients with 2 cores. Links have 1 Gbit/s as in the paper.
    /// Requests are decided ten times a second.
    fn default() -> World {
        World {
            nodes: 16,
            clients: 32,
            cores: 1.0,
            node_link: 118e6,
            client_cores: 2.0,
            client_link: 118e6,
            requests: 1000,
            per_second: 10.0,
            hot: 0.1,
            tick: 0.1,
            seed: 0,
        }
    }
}

/// An active request for data of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Time of its arrival, in seconds.
    pub at: f64,
    /// Number of the storage node.
    pub node: usize,
    /// Number of the client.
    pub client: usize,
    /// Bytes that it reads.
    pub bytes: u64,
    /// Bytes of its answer.
    pub result_bytes: u64,
    /// Rate of its kernel on one core, in bytes a second.
    pub rate: f64,
}

/// Rate on one core, and bytes of the answer for each byte read, of a sum, a search and a Gaussian filter. The rates of
/// the sum and the filter are those of the paper.
const KERNELS: [(f64, f64); 3] = [(860e6, 0.0), (300e6, 0.01), (80e6, 0.0)];

/// Smallest size of a request, in bytes. The other sizes are two, four and eight times as large.
const SMALLEST: u64 = 16 << 20;

impl World {
    /// Draws the requests, in the order of their arrival. The same seed gives the same requests.
    pub fn requests(&self) -> Vec<Request> {
        let mut random = Random(self.seed);
        let mut at = 0.0;
        let draw = |_| {
            let hot_nodes = (self.nodes / 10).max(1);
            let nodes = if random.share() < self.hot { hot_nodes } else { self.nodes };
            let (rate, result) = KERNELS[random.below(KERNELS.len())];
            let bytes = SMALLEST << random.below(4);
            let request = Request {
                at,
                node: random.below(nodes),
                client: random.below(self.clients),
                bytes,
                result_bytes: (bytes as f64 * result) as u64 + 8,
                rate,
            };
            at += -(1.0 - random.share()).ln() / self.per_second;
            request
        };
        (0..self.requests).map(draw).collect()
    }

    /// Number of requests in a second that keeps all cores of the storage nodes busy, if it is the same for each node.
    pub fn capacity(&self) -> f64 {
        let sizes = (0..4).map(|doubled| (SMALLEST << doubled) as f64).sum::<f64>() / 4.0;
        let seconds = KERNELS.iter().map(|(rate, _)| sizes / rate).sum::<f64>() / KERNELS.len() as f64;
        self.nodes as f64 * self.cores / seconds
    }
}

/// A small random generator (SplitMix64). A seed always gives the same numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number from 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a number from 0 to below `count`.
    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }
}
