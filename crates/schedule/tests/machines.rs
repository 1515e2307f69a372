//! Nodes and clients on the same processors: each core counts once, and moving bytes has a cost.

use gristmill_schedule::cluster::{
    Client, Cluster, LEAST_SHARE, Machine, Node, Shard, sending_rate, worth_while,
};
use gristmill_schedule::{Place, Places};
use proptest::prelude::*;

const GB: u64 = 1_000_000_000;

/// Makes a machine with two cores, four nodes on it with 1 GB each, and a client on it or with two cores of its own.
/// `rate` is the rate of one core of each. `moving` is the time of a core for a byte on each side, in seconds. `queued`
/// is the present load of each node, in seconds.
fn machine_with_nodes(same_machine: bool, rate: f64, moving: f64, queued: f64) -> (Cluster, Vec<Shard>) {
    let mut cluster = Cluster::default();
    let busy = if same_machine { 4.0 * queued } else { 0.0 };
    let machine = Some(cluster.machine(Machine { cores: 2.0, busy }));
    let client = cluster.client(Client {
        cores: 2.0,
        receiving: moving,
        link: 1e12,
        machine: machine.filter(|_| same_machine),
        ..Client::IDLE
    });
    let shard = |node| Shard {
        storage_rate: rate,
        client_rate: 2.0 * rate,
        parallel: 2.0,
        ..Shard::of(node, client, GB)
    };
    let node = Node { cores: 2.0, busy: queued, link: 1e12, sending: moving, machine, ..Node::IDLE };
    let shards = (0..4).map(|_| shard(cluster.storage_node(node))).collect();
    (cluster, shards)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, expected {expected}");
}

#[test]
fn nodes_on_one_machine_share_its_cores() {
    let (cluster, shards) = machine_with_nodes(false, 1e9, 0.0, 0.0);
    let stays: Vec<Shard> =
        shards.iter().map(|shard| Shard { places: Places::NONE.with(Place::Storage), ..*shard }).collect();
    // 4 GB take 2 s on two cores of 1 GB/s. The nodes do not have eight cores.
    assert_near(cluster.place(&stays).unwrap().makespan, 2.0);
}

#[test]
fn a_client_on_the_machine_adds_no_cores_and_a_client_on_another_does() {
    let (cluster, shards) = machine_with_nodes(true, 1e9, 0.5e-9, 0.0);
    let placed = worth_while(&cluster, &shards, LEAST_SHARE).unwrap();
    assert_eq!(placed.places, [Place::Storage; 4]);
    assert_near(placed.makespan, 2.0);
    // Folding a shard at the client takes as long. Sending and receiving it takes half a second more.
    let [storage, _, client] = placed.costs[0];
    assert_near(storage.unwrap().queued, 2.0);
    assert_near(client.unwrap().queued, 2.5);
    let (cluster, shards) = machine_with_nodes(false, 1e9, 0.1e-9, 0.0);
    assert!(worth_while(&cluster, &shards, LEAST_SHARE).unwrap().places.contains(&Place::Client));
}

#[test]
fn a_client_on_the_machine_waits_for_its_queue_too() {
    let (cluster, shards) = machine_with_nodes(true, 1e9, 0.0, 3.0);
    let placed = worth_while(&cluster, &shards, LEAST_SHARE).unwrap();
    assert_eq!(placed.places, [Place::Storage; 4]);
    let (cluster, shards) = machine_with_nodes(false, 1e9, 0.0, 3.0);
    assert_eq!(worth_while(&cluster, &shards, LEAST_SHARE).unwrap().places, [Place::Client; 4]);
}

#[test]
fn a_client_on_the_machine_folds_for_a_node_that_may_use_little_of_it() {
    let mut cluster = Cluster::default();
    let machine = Some(cluster.machine(Machine { cores: 2.0, busy: 0.0 }));
    let node = cluster.storage_node(Node { cores: 0.04, sending: 0.5e-9, link: 1e12, machine, ..Node::IDLE });
    let client = Client { cores: 2.0, receiving: 0.5e-9, link: 1e12, machine, ..Client::IDLE };
    let client = cluster.client(client);
    let shard = Shard { client_rate: 2e9, parallel: 2.0, ..Shard::of(node, client, GB) };
    let placed = worth_while(&cluster, &[shard], LEAST_SHARE).unwrap();
    assert_eq!(placed.places, [Place::Client]);
    // Folding and moving take one second of a core each, on two cores.
    assert_near(placed.costs[0][2].unwrap().queued, 1.0);
}

#[test]
fn a_node_that_sends_has_less_time_to_fold() {
    // Nine requests, each of a client elsewhere with a fast link. To send a byte takes as long as to fold it.
    let place = |sending: f64| {
        let mut cluster = Cluster::default();
        let machine = Some(cluster.machine(Machine { cores: 1.0, busy: 0.0 }));
        let node = cluster.storage_node(Node { cores: 1.0, sending, link: 1e12, machine, ..Node::IDLE });
        let shards = [(); 9].map(|()| {
            let client = Client { cores: 1.0, link: 1e12, ..Client::IDLE };
            Shard::of(node, cluster.client(client), GB)
        });
        worth_while(&cluster, &shards, 0.1).unwrap()
    };
    assert_eq!(place(1e-9).places, [Place::Storage; 9]);
    assert_eq!(place(0.01e-9).places, [Place::Client; 9]);
}

#[test]
fn the_cores_that_send_limit_the_rate_of_a_link() {
    assert_near(sending_rate(1e9, 2.0, 4e-9), 0.5e9);
    assert_near(sending_rate(1e9, 2.0, 1e-9), 1e9);
    assert_near(sending_rate(1e9, 2.0, 0.0), 1e9);
}

proptest! {
    #[test]
    fn no_work_moves_between_processes_that_share_all_cores(
        rate in 1e7f64..1e11,
        moving in 0.0f64..1e-8,
        queued in 0.0f64..100.0,
    ) {
        let (cluster, shards) = machine_with_nodes(true, rate, moving, queued);
        let placed = worth_while(&cluster, &shards, LEAST_SHARE).unwrap();
        prop_assert_eq!(placed.places, [Place::Storage; 4]);
    }
}
