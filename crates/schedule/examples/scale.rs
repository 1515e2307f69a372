//! Measures the time of a decision by the length of the queue, and the time of requests by the policy.
//!
//! `scale queue [--quick]` prints `works,what,median_seconds,least_seconds,gap` for the queue of one storage node with
//! a data node and 16 clients. Kernels and sizes are mixed. `paper` and `overlap` are the time of the decision only.
//! `place` is the time of overlap from shards to places, with the cost of each place for each shard.
//!
//! `scale worlds [--quick]` prints
//! `world,intensity,nodes,clients,requests,seed,policy,makespan,mean,stored,bound,best_static, seconds` for simulated
//! worlds. Intensity is the rate at which requests arrive, divided by the rate at which the cores of the storage nodes
//! can fold them. `bound` is a lower bound on the makespan of all policies. `seconds` is the time of the simulation.

use std::hint::black_box;
use std::time::Instant;

use gristmill_schedule::cluster::{Client, Cluster, Node, Shard};
use gristmill_schedule::simulate::{Policy, World};
use gristmill_schedule::{Places, ScheduleError, overlap, paper};

const REPEATS: usize = 31;
const LONGEST: usize = 100_000;

fn main() -> Result<(), ScheduleError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|word| word == "--quick");
    match arguments.iter().find(|word| *word != "--quick").map(String::as_str) {
        Some("queue") => queues(quick),
        Some("worlds") => worlds(quick),
        _ => {
            eprintln!("usage: scale queue|worlds [--quick]; --quick measures less");
            std::process::exit(2);
        }
    }
}

/// Makes the queue of one storage node.
fn queue(works: usize) -> (Cluster, Vec<Shard>, Vec<paper::Work>) {
    let world = World { nodes: 1, clients: 16, requests: works, ..World::default() };
    let mut cluster = Cluster::default();
    cluster.storage_node(Node { cores: 2.0, busy: 0.5, link: world.node_link, link_busy: 0.5, ..Node::IDLE });
    cluster.data_node(Node { cores: 4.0, link: 4.0 * world.node_link, ..Node::IDLE });
    for _ in 0..world.clients {
        cluster.client(Client { link: world.client_link, ..Client::IDLE });
    }
    let asked = world.requests();
    let shards = asked.iter().map(|request| Shard {
        data: Some(0),
        result_bytes: request.result_bytes,
        storage_rate: request.rate,
        data_rate: request.rate,
        client_rate: request.rate * world.client_cores,
        places: Places::ALL,
        ..Shard::of(0, request.client, request.bytes)
    });
    let works = asked.iter().map(|request| paper::Work {
        bytes: request.bytes,
        result_bytes: request.result_bytes,
        storage_rate: request.rate,
        client_rate: request.rate * world.client_cores,
    });
    (cluster, shards.collect(), works.collect())
}

/// Measures the median and the least seconds of a task that is repeated.
fn measure<T>(repeats: usize, mut task: impl FnMut() -> T) -> (f64, f64) {
    let mut all: Vec<f64> = (0..=repeats)
        .map(|_| {
            let begun = Instant::now();
            black_box(task());
            begun.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], all[0])
}

fn queues(quick: bool) -> Result<(), ScheduleError> {
    println!("works,what,median_seconds,least_seconds,gap");
    let repeats = if quick { 5 } else { REPEATS };
    let lengths = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, LONGEST];
    for works in lengths.into_iter().filter(|works| !quick || [10, 100, 1000, 10_000].contains(works)) {
        let (cluster, shards, waiting) = queue(works);
        let (problem, _) = cluster.problem(&shards)?;
        let gap = overlap::solve(&problem).gap();
        let (median, least) = measure(repeats, || paper::solve(118e6, &waiting));
        println!("{works},paper,{median:.9},{least:.9},");
        let (median, least) = measure(repeats, || overlap::solve(&problem));
        println!("{works},overlap,{median:.9},{least:.9},{gap:.9}");
        let (median, least) = measure(repeats, || cluster.place(&shards));
        println!("{works},place,{median:.9},{least:.9},{gap:.9}");
    }
    Ok(())
}

fn worlds(quick: bool) -> Result<(), ScheduleError> {
    println!(
        "world,intensity,nodes,clients,requests,seed,policy,makespan,mean,stored,bound,best_static,seconds"
    );
    let requests = if quick { 500 } else { 5000 };
    let usual = World { requests, hot: 0.0, ..World::default() };
    let kinds = [
        ("even", usual),
        ("half to one node", World { hot: 0.5, ..usual }),
        ("few clients", World { clients: 4, ..usual }),
    ];
    for (name, world) in kinds {
        for intensity in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0] {
            for seed in 0..if quick { 1 } else { 5 } {
                run_world(
                    name,
                    intensity,
                    World { seed, per_second: world.capacity() * intensity, ..world },
                )?;
            }
        }
    }
    if !quick {
        let many = World { nodes: 10_000, clients: 5000, requests: 1_000_000, hot: 0.0, ..World::default() };
        run_world("10,000 nodes", 1.0, World { per_second: many.capacity(), ..many })?;
    }
    Ok(())
}

fn run_world(name: &str, intensity: f64, world: World) -> Result<(), ScheduleError> {
    let asked = world.requests();
    let bound = world.bound(&asked)?;
    let mut outcomes = Vec::new();
    for policy in Policy::ALL {
        let begun = Instant::now();
        outcomes.push((policy, world.run(&asked, policy)?, begun.elapsed().as_secs_f64()));
    }
    let fixed = outcomes.iter().filter(|(policy, ..)| [Policy::Storage, Policy::Client].contains(policy));
    let best = fixed.fold(f64::INFINITY, |best, (_, outcome, _)| best.min(outcome.makespan));
    let World { nodes, clients, requests, seed, .. } = world;
    for (policy, outcome, seconds) in outcomes {
        let policy = format!("{policy:?}").to_lowercase();
        println!(
            "\"{name}\",{intensity},{nodes},{clients},{requests},{seed},{policy},{:.6},{:.6},{:.4},{bound:.6},\
             {best:.6},{seconds:.3}",
            outcome.makespan, outcome.mean, outcome.storage_share
        );
    }
    Ok(())
}
