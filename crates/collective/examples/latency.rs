//! Simulates the delays of an allreduce among more and more servers, and prints `servers,delays,messages`.

use gristmill_collective::simulate::{Network, Simulation};
use gristmill_collective::{Collective, CollectiveError};

fn main() {
    let mut keep = |lower: Vec<u8>, _: Vec<u8>| Ok::<_, CollectiveError>(lower);
    println!("servers,delays,messages");
    for size in [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 100, 128, 200, 256, 400, 512, 700, 1000] {
        let run = Simulation::new(size, Network::uniform(1)).run(
            &[Collective::Allreduce],
            |_| Vec::new(),
            &mut keep,
        );
        println!("{size},{},{}", run.end_time(), run.messages);
    }
}
