//! Checks with real threads.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::*;
use crate::contention::priority::nice_and_policy;
use crate::test_node::{TestNode, with_options};
use crate::{ActivePriority, NodeOptions};

fn is_idle() -> bool {
    nice_and_policy("thread-self")[1] == Some(5)
}

/// Computes until a condition is true.
fn compute_until(done: impl Fn() -> bool) {
    while !done() {
        std::hint::black_box((0..100_000).fold(0_u64, |sum, n| sum ^ n));
    }
}

/// Runs a test against a node whose lanes are idle.
fn with_idle_lanes(test: impl AsyncFnOnce(TestNode)) {
    with_options(|options| NodeOptions { active_priority: ActivePriority::Idle, ..options }, test);
}

fn name(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn a_short_check_has_normal_priority() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        for _ in 0..10 {
            assert!(!checks.run(&name("who"), || Ok(is_idle())).await.unwrap());
        }
    });
}

#[test]
fn many_short_checks_of_one_principal_at_once_have_normal_priority() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        let who = name("who");
        let idle = (0..50).map(|_| checks.run(&who, || Ok(is_idle())));
        let idle = futures_util::future::try_join_all(idle).await.unwrap();
        assert_eq!(idle, [false; 50]);
    });
}

#[test]
fn a_long_check_becomes_idle_and_the_next_ones_begin_idle_until_it_ends() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        let who = name("who");
        let (lowers, lowered) = mpsc::channel();
        let (ends, end) = mpsc::channel::<()>();
        let long = checks.run(&who, move || {
            compute_until(is_idle);
            lowers.send(()).unwrap();
            end.recv().unwrap();
            Ok(())
        });
        let next = async {
            tokio::task::spawn_blocking(move || lowered.recv().unwrap()).await.unwrap();
            // The node notes that it has lowered the check just after it did.
            while !checks.run(&who, || Ok(is_idle())).await.unwrap() {}
            assert!(!checks.run(&name("other"), || Ok(is_idle())).await.unwrap());
            ends.send(()).unwrap();
        };
        let (long, ()) = tokio::join!(long, next);
        long.unwrap();
    });
}

#[test]
fn a_check_whose_client_left_becomes_idle_too() {
    with_idle_lanes(async |node| {
        let (begins, begun) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let who = name("who");
        let check = node.shared.checks.run(&who, move || {
            begins.send(()).unwrap();
            compute_until(is_idle);
            ends.send(()).unwrap();
            Ok(())
        });
        let wait = tokio::task::spawn_blocking(move || begun.recv().unwrap());
        tokio::select! {
            _ = check => unreachable!("the check ends after its client has left"),
            done = wait => done.unwrap(),
        }
        tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
    });
}

#[test]
fn a_check_that_waits_does_not_use_its_time() {
    with_idle_lanes(async |node| {
        let (goes_on, wait) = mpsc::channel::<()>();
        let who = name("who");
        let check = node.shared.checks.run(&who, move || {
            wait.recv().unwrap();
            Ok(is_idle())
        });
        let later = async {
            tokio::time::sleep(4 * allotment::MOST).await;
            goes_on.send(()).unwrap();
        };
        let (idle, ()) = tokio::join!(check, later);
        assert!(!idle.unwrap());
    });
}

#[test]
fn a_panic_is_an_error_of_its_request_only() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        for _ in 0..2 * MAX_CHECKS {
            let refusal = checks.run(&name("who"), || -> Answer<()> { panic!("a test") }).await.unwrap_err();
            assert!(refusal.0.message.contains("panicked"), "{refusal:?}");
        }
        assert_eq!(checks.normal.turns.free(), MAX_CHECKS);
        checks.run(&name("who"), || Ok(())).await.unwrap();
    });
}

#[test]
fn long_checks_of_one_principal_leave_all_turns_to_others() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        let (end, who) = (Arc::new(AtomicBool::new(false)), name("who"));
        let long = (0..MAX_CHECKS).map(|_| {
            let end = end.clone();
            checks.run(&who, move || {
                compute_until(|| end.load(Ordering::Relaxed));
                Ok(())
            })
        });
        let others = async {
            // Each needs a turn at normal priority, while the long ones go on.
            for n in 0..10 * MAX_CHECKS {
                checks.run(&name("other"), move || Ok(n)).await.unwrap();
            }
            let all = checks.normal.turns.all().await;
            drop(all);
            end.store(true, Ordering::Relaxed);
        };
        let (ends, ()) = tokio::join!(futures_util::future::join_all(long), others);
        assert!(ends.into_iter().all(|end| end.is_ok()));
    });
}

#[test]
fn more_checks_than_there_are_turns_all_end() {
    with_idle_lanes(async |node| {
        let checks = &node.shared.checks;
        let who = name("who");
        let many = (0..10 * MAX_CHECKS).map(|n| checks.run(&who, move || Ok(n)));
        let numbers = futures_util::future::try_join_all(many).await.unwrap();
        assert!(numbers.into_iter().eq(0..10 * MAX_CHECKS));
    });
}
