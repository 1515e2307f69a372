//! Tests of connection slots.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;

fn origin(last: u8) -> Origin {
    Origin::Tcp(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
}

fn set_owner(slot: &ConnectionSlot) {
    slot.set_owner(|| Ok::<_, ()>(())).unwrap();
}

async fn advance(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

async fn assert_evicts(slots: &mut ConnectionSlots, expected: &Arc<ConnectionSlot>) {
    slots.evict_one().await;
    assert!(expected.state().evicted);
}

#[tokio::test(start_paused = true)]
async fn silent_connections_are_evicted_before_idle_ones_and_busy_ones_stay() {
    let mut slots = ConnectionSlots::new(8);
    let [busy, idle, silent, other] = [1, 2, 3, 4].map(|source| slots.add(origin(source)));
    let request = busy.begin_request();
    drop(idle.begin_request());
    set_owner(&busy);
    set_owner(&idle);
    advance(60).await;
    assert_evicts(&mut slots, &silent).await;
    assert_evicts(&mut slots, &other).await;
    assert_evicts(&mut slots, &idle).await;
    assert!(slots.next(Instant::now()).is_none());
    busy.set_sending(true);
    drop(request);
    assert!(slots.next(Instant::now()).is_none());
    busy.set_sending(false);
    let begun = Instant::now();
    assert_evicts(&mut slots, &busy).await;
    assert_eq!(begun.elapsed(), IDLE_WHEN_FULL);
}

/// An unknown client could once hold all slots with answers that it never read.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_owner_keeps_its_slot_for_a_limited_time() {
    let mut slots = ConnectionSlots::new(8);
    let [owned, unowned] = [1, 2].map(|source| slots.add(origin(source)));
    let (_owned, _unowned) = (owned.begin_request(), unowned.begin_request());
    set_owner(&owned);
    unowned.set_sending(true);
    let begun = Instant::now();
    assert_evicts(&mut slots, &unowned).await;
    assert_eq!(begun.elapsed(), UNOWNED_WHEN_FULL);
    assert!(!unowned.is_busy() && owned.is_busy());
    // Repeated requests do not keep the slot either.
    let repeating = slots.add(origin(3));
    let begun = Instant::now();
    while !repeating.state().evicted {
        drop(repeating.begin_request());
        let _ = tokio::time::timeout(Duration::from_secs(1), slots.evict_one()).await;
    }
    assert_eq!(begun.elapsed(), UNOWNED_WHEN_FULL);
}

#[tokio::test(start_paused = true)]
async fn connections_of_a_source_with_most_slots_are_evicted_soon() {
    let mut slots = ConnectionSlots::new(8);
    let other = slots.add(origin(1));
    drop(other.begin_request());
    set_owner(&other);
    advance(1).await;
    let crowd: Vec<_> = (0..5).map(|_| slots.add(origin(2))).collect();
    crowd.iter().for_each(|slot| set_owner(slot));
    let begun = Instant::now();
    assert_evicts(&mut slots, &crowd[0]).await;
    assert_eq!(begun.elapsed(), CROWDED_WHEN_FULL);
    assert_evicts(&mut slots, &crowd[1]).await;
    assert!(!other.is_evicted());
}

#[tokio::test(start_paused = true)]
async fn the_oldest_connections_of_a_flood_are_evicted_at_once() {
    let mut slots = ConnectionSlots::new(8);
    let idle = slots.add(origin(1));
    drop(idle.begin_request());
    set_owner(&idle);
    advance(1).await;
    let flood: Vec<_> = (0..6).map(|n| slots.add(origin(n))).collect();
    let _request = flood[1].begin_request();
    let begun = Instant::now();
    assert_evicts(&mut slots, &flood[0]).await;
    assert_evicts(&mut slots, &flood[1]).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // The other connections are not a flood.
    assert_evicts(&mut slots, &flood[2]).await;
    assert_eq!(begun.elapsed(), SILENT_WHEN_FULL);
    assert!(!idle.is_evicted());
}

#[test]
fn an_ipv6_network_is_one_source() {
    let source = |text: &str| Source::from(Origin::Tcp(text.parse().unwrap()));
    assert!(source("2001:db8::1") == source("2001:db8::ffff:2"));
    assert!(source("2001:db8::1") != source("2001:db8:0:1::1"));
    assert!(source("192.0.2.1") != source("192.0.2.2"));
}

#[tokio::test(start_paused = true)]
async fn surplus_connections_are_evicted_first() {
    let mut slots = ConnectionSlots::new(8);
    let _silent = slots.add(origin(1));
    let surplus = slots.add(origin(2));
    drop(surplus.begin_request());
    surplus.set_owner(|| Err::<(), _>("too many")).unwrap_err();
    assert_evicts(&mut slots, &surplus).await;
    // If a later claim succeeds, the connection is like others.
    let [retried, silent] = [3, 4].map(|source| slots.add(origin(source)));
    drop(retried.begin_request());
    retried.set_owner(|| Err::<(), _>("too many")).unwrap_err();
    set_owner(&retried);
    advance(60).await;
    assert_evicts(&mut slots, &_silent).await;
    assert_evicts(&mut slots, &silent).await;
    assert_evicts(&mut slots, &retried).await;
}

#[tokio::test]
async fn the_claimed_value_is_dropped_with_the_connection() {
    let mut slots = ConnectionSlots::new(1);
    let (slot, value) = (slots.add(origin(1)), Arc::new(()));
    slot.set_owner(|| Ok::<_, ()>(value.clone())).unwrap();
    slot.set_owner(|| Err::<(), _>("not called")).unwrap();
    assert_eq!(Arc::strong_count(&value), 2);
    drop(slot);
    assert_eq!(Arc::strong_count(&value), 1);
}
