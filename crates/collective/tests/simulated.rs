//! Collectives of 1 to 1,000 servers under seeded delays, disorder and losses.

use gristmill_collective::simulate::{Fault, Network, Run, Simulation};
use gristmill_collective::{Collective, CollectiveError, Limits, Size, cost};
use proptest::prelude::*;

/// Appends. It is associative and not commutative, and shows the place of each rank.
fn append(mut lower: Vec<u8>, higher: Vec<u8>) -> Result<Vec<u8>, CollectiveError> {
    lower.extend(higher);
    Ok(lower)
}

fn name(rank: u32) -> Vec<u8> {
    format!("{rank} ").into_bytes()
}

fn names(ranks: std::ops::Range<u32>) -> Vec<u8> {
    ranks.flat_map(name).collect()
}

fn run(size: Size, network: Network, collectives: &[Collective]) -> Run {
    Simulation::new(size, network).run(collectives, name, &mut append)
}

/// Sizes around powers of two, and some other sizes.
const SIZES: [Size; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 64, 100, 513, 1000];

fn all_kinds(size: Size) -> Vec<Collective> {
    let roots = [0, size / 2, size - 1];
    let mut kinds = vec![Collective::Allreduce, Collective::ExclusiveScan];
    kinds.extend(roots.map(|root| Collective::Broadcast { root }));
    kinds.extend(roots.map(|root| Collective::Reduce { root }));
    kinds
}

fn right(collective: Collective, size: Size, run: &Run) {
    for (rank, end) in (0..).zip(&run.ends) {
        let outcomes = end.result.as_ref().unwrap_or_else(|e| panic!("{collective:?} of {size}: {e}"));
        let [outcome] = &outcomes[..] else { panic!("{} outcomes", outcomes.len()) };
        match collective {
            Collective::Broadcast { root } => assert_eq!(outcome.value, name(root)),
            Collective::Reduce { root } if rank == root => assert_eq!(outcome.value, names(0..size)),
            Collective::Reduce { .. } => {}
            Collective::Allreduce => assert_eq!(outcome.value, names(0..size)),
            Collective::ExclusiveScan => {
                assert_eq!(
                    outcome.prefix.clone().unwrap_or_default(),
                    names(0..rank),
                    "rank {rank} of {size}"
                );
            }
        }
    }
}

#[test]
fn rounds_and_messages_agree_with_the_theory() {
    for size in SIZES {
        for collective in all_kinds(size) {
            let run = run(size, Network::uniform(1), &[collective]);
            right(collective, size, &run);
            let theory = cost(collective, size);
            assert_eq!(run.messages, theory.messages, "{collective:?} of {size}");
            // A member that receives several messages at once is done sooner.
            let early = matches!(collective, Collective::Reduce { .. }) && run.end_time() < theory.rounds;
            assert!(early || run.end_time() == theory.rounds, "{collective:?} of {size}: {}", run.end_time());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn order_and_delays_do_not_change_results(size in 1u32..60, seed: u64, kind in 0usize..8) {
        let collective = all_kinds(size)[kind];
        let network = Network { min_delay: 1, max_delay: 400, max_work: 900, seed };
        right(collective, size, &run(size, network, &[collective]));
    }

    #[test]
    fn one_allreduce_after_the_other(size in 1u32..40, seed: u64, passes in 1usize..6) {
        let network = Network { min_delay: 1, max_delay: 300, max_work: 2000, seed };
        let run = run(size, network, &vec![Collective::Allreduce; passes]);
        for end in &run.ends {
            let outcomes = end.result.as_ref().unwrap();
            prop_assert_eq!(outcomes.len(), passes);
            prop_assert!(outcomes.iter().all(|outcome| outcome.value == names(0..size)));
        }
    }

    /// After a fault of one server, each other member was done before, or gives up in bounded time and names the
    /// server.
    #[test]
    fn all_members_learn_of_a_loss(
        size in 2u32..60,
        seed: u64,
        at in 0u64..6000,
        lost in 0u32..60,
        fault in prop::sample::select(vec![Fault::Crash, Fault::Restart, Fault::Fail]),
    ) {
        let lost = lost % size;
        let network = Network { min_delay: 1, max_delay: 50, max_work: 1500, seed };
        let run = Simulation::new(size, network)
            .with_fault(at, lost, fault)
            .run(&[Collective::Allreduce; 4], name, &mut append);
        let limits = Limits::default();
        let chain = u64::from(size.ilog2()) + 3;
        let bound = at + 2 * 1500 + limits.stall + chain * (limits.ask_every + 100) + limits.ask_every;
        for (rank, end) in (0..).zip(&run.ends) {
            match &end.result {
                Ok(outcomes) => prop_assert_eq!(outcomes.len(), 4),
                Err(error) => {
                    prop_assert!(end.at <= bound, "member {} gave up at {}, not by {}", rank, end.at, bound);
                    prop_assert!(error.to_string().contains(&format!("member {lost}")), "{}", error);
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(size in 1u32..30, seed: u64) {
        let network = Network { min_delay: 1, max_delay: 400, max_work: 900, seed };
        let ends = |run: Run| run.ends.iter().map(|end| end.at).collect::<Vec<_>>();
        let [a, b] = [0; 2].map(|_| run(size, network, &[Collective::Allreduce]));
        prop_assert_eq!(ends(a), ends(b));
    }
}

#[test]
fn a_thousand_servers_learn_of_a_loss() {
    let network = Network { min_delay: 1, max_delay: 20, max_work: 3000, seed: 9 };
    let run = Simulation::new(1000, network).with_fault(1500, 421, Fault::Crash).run(
        &[Collective::Allreduce; 3],
        name,
        &mut append,
    );
    let others = run.ends.iter().enumerate().filter(|(rank, _)| *rank != 421);
    for (rank, end) in others {
        let error = end.result.as_ref().expect_err("no member can be done without 421").to_string();
        assert!(error.contains("member 421"), "member {rank}: {error}");
        assert!(end.at < 40_000, "member {rank} gave up at {}", end.at);
    }
}

#[test]
fn impossible_ranks_are_refused() {
    use gristmill_collective::{Execution, MAX_SIZE};
    let make = |collective, rank, size| Execution::new(collective, rank, size, Vec::new());
    assert!(make(Collective::Allreduce, 0, 0).is_err());
    assert!(make(Collective::Allreduce, 3, 3).is_err());
    assert!(make(Collective::Allreduce, 0, MAX_SIZE + 1).is_err());
    assert!(make(Collective::Broadcast { root: 5 }, 0, 5).is_err());
}

#[test]
fn unexpected_messages_are_refused() {
    use gristmill_collective::Execution;
    let mut member = Execution::new(Collective::Allreduce, 0, 4, name(0)).unwrap();
    assert!(member.deliver(3, name(3)).is_err(), "0 and 3 exchange no message");
    assert!(member.deliver(1, name(1)).is_ok());
    assert!(member.deliver(1, name(1)).is_err(), "twice");
}
