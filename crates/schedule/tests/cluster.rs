//! Placement in the words of nodes, clients and shards.

use gristmill_schedule::cluster::{Client, Cluster, Node, Placement, Shard};
use gristmill_schedule::{Place, Places, ScheduleError};

const FOLD: f64 = 100e6;

/// A storage node, a data node and a client, and a shard of a gigabyte that may run at any of them.
fn three() -> (Cluster, Shard) {
    let mut cluster = Cluster::default();
    let node =
        cluster.storage_node(Node { cores: 2.0, busy: 1.0, link: 500e6, link_busy: 0.5, ..Node::IDLE });
    let data = cluster.data_node(Node { cores: 4.0, busy: 0.0, link: 1e9, link_busy: 0.0, ..Node::IDLE });
    let client =
        cluster.client(Client { speed: 0.5, busy: 0.0, link: 250e6, link_busy: 0.0, ..Client::IDLE });
    let shard = Shard {
        data: Some(data),
        result_bytes: 100_000_000,
        pulled_bytes: 50_000_000,
        storage_rate: FOLD,
        data_rate: 2.0 * FOLD,
        client_rate: 8.0 * FOLD,
        parallel: 8.0,
        overhead: [0.2, 0.4, 0.1],
        places: Places::ALL,
        ..Shard::of(node, client, 1_000_000_000)
    };
    (cluster, shard)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn costs_are_those_of_the_table() {
    let (cluster, shard) = three();
    let Placement { places, makespan, costs, .. } = cluster.place(&[shard]).unwrap();
    let [storage, data, client] = costs[0].map(Option::unwrap);
    near(storage.alone, 5.2); // 1 GB at 200 MB/s of two cores, and 0.2 s of one core before that
    near(storage.queued, 1.0 + 5.1);
    near(data.alone, 2.0); // the link of its node; four cores take 1.35 s
    near(data.queued, 2.5);
    near(client.alone, 4.0); // the link of the client
    near(client.queued, 4.0);
    assert_eq!(places, [Place::Data]);
    near(makespan, 2.5);
}

#[test]
fn what_is_done_besides_takes_longer_on_a_part_of_a_core_and_no_less_on_several() {
    for (cores, takes) in [(0.1, 1.0), (1.0, 0.1), (4.0, 0.1)] {
        let mut cluster = Cluster::default();
        let node = cluster.storage_node(Node { cores, ..Node::IDLE });
        let client = cluster.client(Client { cores, ..Client::IDLE });
        let shard = Shard { overhead: [0.1; 3], result_bytes: 0, ..Shard::of(node, client, 0) };
        let [storage, _, at_client] = cluster.place(&[shard]).unwrap().costs[0];
        near(storage.unwrap().alone, takes);
        near(at_client.unwrap().alone, takes);
    }
}

#[test]
fn a_fold_of_one_core_takes_as_long_as_one_core_does() {
    let (cluster, shard) = three();
    let shard = Shard { parallel: 1.0, places: Places::NONE.with(Place::Storage), ..shard };
    let placement = cluster.place(&[shard]).unwrap();
    near(placement.costs[0][0].unwrap().alone, 10.2);
    assert_eq!(placement.costs[0][1..], [None, None]);
    near(placement.makespan, 10.2);
    // Two of them have a core each.
    near(cluster.place(&[shard; 2]).unwrap().makespan, 11.2); // 1 s that is there already, and 2 x 5.1 s
}

#[test]
fn whole_requests_are_decided_as_one() {
    let mut cluster = Cluster::default();
    let nodes = [0.0, 100.0].map(|busy| cluster.storage_node(Node { busy, link: 1e8, ..Node::IDLE }));
    let client = cluster.client(Client { link: 1e9, ..Client::IDLE });
    let shards = nodes.map(|node| Shard { storage_rate: 1e8, ..Shard::of(node, client, 300_000_000) });
    // Alone, each goes where it is best: the second leaves its busy node.
    assert_eq!(cluster.place(&shards).unwrap().places[1], Place::Client);
    let [first, second] = shards.map(|shard| Shard { together: Some(7), ..shard });
    let lone = Shard { together: Some(8), ..first };
    let placement = cluster.place(&[first, lone, second]).unwrap();
    assert_eq!(placement.places[0], placement.places[2]);
    assert_eq!(placement.costs[0], placement.costs[2]);
    assert_ne!(placement.costs[0], placement.costs[1]);
    let (problem, works) = cluster.problem(&[first, lone, second]).unwrap();
    assert_eq!((problem.works(), works), (2, vec![0, 1, 0]));
    // The sum of both: cores and link of each node, and 16 bytes into the client.
    assert_eq!(problem.uses(0, Place::Storage).len(), 5);
    // They may run only where both may.
    let here = Shard { places: Places::NONE.with(Place::Storage), ..first };
    let there = Shard { places: Places::NONE.with(Place::Client), ..second };
    assert_eq!(cluster.place(&[here, second]).unwrap().places, [Place::Storage; 2]);
    assert_eq!(cluster.place(&[here, there]).unwrap_err(), ScheduleError::Nowhere { request: 0 });
}

#[test]
fn what_is_wrong_is_named() {
    let (cluster, shard) = three();
    for (bad, said) in [
        (Shard { node: 1, ..shard }, "request 1 names storage node 1, but there are 1"),
        (Shard { client: 3, ..shard }, "request 1 names client 3, but there are 1"),
        (Shard { data: Some(9), ..shard }, "request 1 names data node 9"),
        (Shard { data: None, ..shard }, "request 1 may run at a data node but names none"),
        (Shard { storage_rate: f64::NAN, ..shard }, "the storage rate of request 1 is NaN"),
        (Shard { client_rate: 0.0, ..shard }, "the client rate of request 1 is 0"),
        (Shard { data_rate: -1.0, ..shard }, "the data node rate of request 1 is -1"),
        (Shard { parallel: 0.0, ..shard }, "the number of cores that request 1 can use is 0"),
        (Shard { overhead: [f64::NAN; 3], ..shard }, "the overhead of request 1 at storage is NaN"),
        (Shard { places: Places::NONE, ..shard }, "request 1 may run at no place"),
    ] {
        let error = cluster.place(&[shard, bad]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let mut cluster = Cluster::default();
    cluster.storage_node(Node { link: 0.0, ..Node::IDLE });
    let error = cluster.place(&[]).unwrap_err().to_string();
    assert!(error.contains("the link of storage node 0 is 0"), "{error}");
    assert!(Cluster::default().place(&[]).unwrap().places.is_empty());
}
