//! Placement of shards on nodes and clients.

use gristmill_schedule::cluster::{Client, Cluster, Node, Placement, Shard};
use gristmill_schedule::{Place, Places, ScheduleError};

const FOLD: f64 = 100e6;

/// Makes a storage node, a data node and a client, and a shard of a gigabyte that may run at each of them.
fn cluster_and_shard() -> (Cluster, Shard) {
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

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn costs_agree_with_the_table() {
    let (cluster, shard) = cluster_and_shard();
    let Placement { places, makespan, costs, .. } = cluster.place(&[shard]).unwrap();
    let [storage, data, client] = costs[0].map(Option::unwrap);
    assert_near(storage.alone, 5.2); // 1 GB at 200 MB/s on two cores, after 0.2 s on one core
    assert_near(storage.queued, 1.0 + 5.1);
    assert_near(data.alone, 2.0); // the link of the storage node; four cores take 1.35 s
    assert_near(data.queued, 2.5);
    assert_near(client.alone, 4.0); // the link of the client
    assert_near(client.queued, 4.0);
    assert_eq!(places, [Place::Data]);
    assert_near(makespan, 2.5);
}

#[test]
fn overhead_takes_longer_on_a_part_of_a_core_and_as_long_on_several() {
    for (cores, takes) in [(0.1, 1.0), (1.0, 0.1), (4.0, 0.1)] {
        let mut cluster = Cluster::default();
        let node = cluster.storage_node(Node { cores, ..Node::IDLE });
        let client = cluster.client(Client { cores, ..Client::IDLE });
        let shard = Shard { overhead: [0.1; 3], result_bytes: 0, ..Shard::of(node, client, 0) };
        let [storage, _, at_client] = cluster.place(&[shard]).unwrap().costs[0];
        assert_near(storage.unwrap().alone, takes);
        assert_near(at_client.unwrap().alone, takes);
    }
}

#[test]
fn a_fold_on_one_core_takes_as_long_as_the_core() {
    let (cluster, shard) = cluster_and_shard();
    let shard = Shard { parallel: 1.0, places: Places::NONE.with(Place::Storage), ..shard };
    let placement = cluster.place(&[shard]).unwrap();
    assert_near(placement.costs[0][0].unwrap().alone, 10.2);
    assert_eq!(placement.costs[0][1..], [None, None]);
    assert_near(placement.makespan, 10.2);
    // Two of them have a core each.
    assert_near(cluster.place(&[shard; 2]).unwrap().makespan, 11.2); // a present load of 1 s, and 2 x 5.1 s
}

#[test]
fn shards_of_a_group_run_at_one_place() {
    let mut cluster = Cluster::default();
    let nodes = [0.0, 100.0].map(|busy| cluster.storage_node(Node { busy, link: 1e8, ..Node::IDLE }));
    let client = cluster.client(Client { link: 1e9, ..Client::IDLE });
    let shards = nodes.map(|node| Shard { storage_rate: 1e8, ..Shard::of(node, client, 300_000_000) });
    // Alone, each has its best place: the second leaves its busy node.
    assert_eq!(cluster.place(&shards).unwrap().places[1], Place::Client);
    let [first, second] = shards.map(|shard| Shard { together: Some(7), ..shard });
    let lone = Shard { together: Some(8), ..first };
    let placement = cluster.place(&[first, lone, second]).unwrap();
    assert_eq!(placement.places[0], placement.places[2]);
    assert_eq!(placement.costs[0], placement.costs[2]);
    assert_ne!(placement.costs[0], placement.costs[1]);
    let (problem, works) = cluster.problem(&[first, lone, second]).unwrap();
    assert_eq!((problem.works(), works), (2, vec![0, 1, 0]));
    // The work has the uses of both: cores and link of each node, and 16 bytes at the link of the client.
    assert_eq!(problem.uses(0, Place::Storage).len(), 5);
    // They may run only at a place where both may run.
    let stays = Shard { places: Places::NONE.with(Place::Storage), ..first };
    let moves = Shard { places: Places::NONE.with(Place::Client), ..second };
    assert_eq!(cluster.place(&[stays, second]).unwrap().places, [Place::Storage; 2]);
    assert_eq!(cluster.place(&[stays, moves]).unwrap_err(), ScheduleError::NoPlace { request: 0 });
}

#[test]
fn errors_name_the_wrong_input() {
    let (cluster, shard) = cluster_and_shard();
    for (bad, expected) in [
        (Shard { node: 1, ..shard }, "request 1 names storage node 1, but there are 1"),
        (Shard { client: 3, ..shard }, "request 1 names client 3, but there are 1"),
        (Shard { data: Some(9), ..shard }, "request 1 names data node 9"),
        (Shard { data: None, ..shard }, "request 1 may run at a data node but does not name one"),
        (Shard { storage_rate: f64::NAN, ..shard }, "the storage rate of request 1 is NaN"),
        (Shard { client_rate: 0.0, ..shard }, "the client rate of request 1 is 0"),
        (Shard { data_rate: -1.0, ..shard }, "the data node rate of request 1 is -1"),
        (Shard { parallel: 0.0, ..shard }, "the number of cores that request 1 can use is 0"),
        (Shard { overhead: [f64::NAN; 3], ..shard }, "the overhead of request 1 at storage is NaN"),
        (Shard { places: Places::NONE, ..shard }, "request 1 may not run at any place"),
    ] {
        let error = cluster.place(&[shard, bad]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut cluster = Cluster::default();
    cluster.storage_node(Node { link: 0.0, ..Node::IDLE });
    let error = cluster.place(&[]).unwrap_err().to_string();
    assert!(error.contains("the link of storage node 0 is 0"), "{error}");
    assert!(Cluster::default().place(&[]).unwrap().places.is_empty());
}
