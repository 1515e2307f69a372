//! Tests of the shares of memory.
#![allow(clippy::unwrap_used)]

use gristmill_runtime::ErrorKind;
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn principal(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn one_has_three_quarters_and_the_next_finds_some() {
    let memory = Memory::new(1000, "tests");
    let mut first = memory.room(&principal("first"));
    first.grow(750).unwrap();
    let refusal = first.grow(1).unwrap_err();
    assert_eq!(refusal.0.kind, ErrorKind::Busy.name());
    assert!(refusal.0.message.contains("no memory for more tests of first"), "{refusal:?}");
    // Another room of the same principal has the same bound.
    assert!(memory.room(&principal("first")).grow(1).is_err());
    let mut second = memory.room(&principal("second"));
    second.grow(187).unwrap();
    assert!(second.grow(1).is_err());
    assert!(memory.room(&principal("third")).grow(1).is_ok());
    drop(first);
    second.grow(500).unwrap();
    drop(second);
    assert_eq!(memory.free(), 1000);
    assert!(memory.taken().of.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waits_has_what_is_given_back_or_is_refused_in_time() {
    let memory = Memory::new(100, "tests");
    let mut held = memory.room(&principal("a"));
    held.grow(70).unwrap();
    let mut waits = memory.room(&principal("a"));
    assert!(waits.grow_within(20, SECOND).await.is_err());
    let waiting = tokio::spawn(async move {
        waits.grow_within(20, 10 * SECOND).await.unwrap();
        waits
    });
    tokio::time::sleep(SECOND).await;
    drop(held);
    let waits = waiting.await.unwrap();
    assert_eq!(memory.free(), 80);
    drop(waits);
    // A request that stops waiting holds nothing.
    let mut held = memory.room(&principal("a"));
    held.grow(75).unwrap();
    let mut gone = memory.room(&principal("a"));
    assert!(tokio::time::timeout(SECOND, gone.grow_within(20, 10 * SECOND)).await.is_err());
    drop((held, gone));
    assert_eq!(memory.free(), 100);
}

#[test]
fn a_thread_has_what_is_given_back_and_what_is_too_much_alone() {
    let memory = Memory::new(100, "tests");
    let mut all = memory.room(&principal("a"));
    assert!(all.grow_on_thread(1000, Duration::ZERO));
    assert_eq!(memory.free(), 25);
    let mut other = memory.room(&principal("a"));
    assert!(!other.grow_on_thread(1, Duration::ZERO));
    let waiting = std::thread::spawn(move || other.grow_on_thread(50, Duration::from_secs(60)));
    drop(all);
    assert!(waiting.join().unwrap());
    assert_eq!(memory.free(), 100);
}

proptest! {
    #[test]
    fn all_stay_within_and_everything_comes_back(
        steps in prop::collection::vec((0usize..4, 0usize..400, any::<bool>()), 0..100),
    ) {
        let memory = Memory::new(1000, "tests");
        let mut rooms: Vec<Room> = (0..4).map(|n| memory.room(&principal(&n.to_string()))).collect();
        for (n, bytes, drops) in steps {
            if drops {
                rooms[n] = memory.room(&principal(&n.to_string()));
            } else {
                let (before, free) = (rooms[n].bytes, memory.free());
                let taken = rooms[n].grow(bytes).is_ok();
                prop_assert_eq!(memory.free(), if taken { free - bytes as u64 } else { free });
                let after = free.checked_sub(bytes as u64);
                prop_assert_eq!(taken, after.is_some_and(|free| before + bytes as u64 <= 3 * free));
            }
            let all: u64 = rooms.iter().map(|room| room.bytes).sum();
            prop_assert_eq!(all + memory.free(), 1000);
        }
        drop(rooms);
        prop_assert_eq!(memory.free(), 1000);
    }
}
