//! The rule that decides whether a placement away from the data is worth its cost.

use std::collections::HashSet;

use super::{Cluster, Placement, Shard};
use crate::{Place, Places, ScheduleError};

/// Seconds that a placement must save, compared with the one where every shard that may stay does stay. Predictions are not
/// exact enough for less.
pub const LEAST_GAIN: f64 = 0.02;

/// Share of the seconds that a request must save before its client takes it from the nodes.
pub const LEAST_SHARE: f64 = 0.25;

/// [`Cluster::place`] if that saves at least [`LEAST_GAIN`] seconds and the share `least_share` of the time. Otherwise every
/// shard that may stay on its storage node stays there.
///
/// # Errors
/// Returns an error for everything that [`Cluster::problem`] refuses.
pub fn worth_while(
    cluster: &Cluster,
    shards: &[Shard],
    least_share: f64,
) -> Result<Placement, ScheduleError> {
    let best = cluster.place(shards)?;
    // Shards that run together all move if one of them cannot stay.
    let goes: HashSet<u64> = shards
        .iter()
        .filter(|shard| !shard.places.has(Place::Storage))
        .filter_map(|shard| shard.together)
        .collect();
    let may_stay = |shard: &Shard| {
        shard.places.has(Place::Storage) && shard.together.is_none_or(|together| !goes.contains(&together))
    };
    let stays = |shard: &Shard| match may_stay(shard) {
        true => Shard { places: Places::NONE.with(Place::Storage), ..*shard },
        false => *shard,
    };
    let staying: Vec<Shard> = shards.iter().map(stays).collect();
    let stayed = cluster.place(&staying)?;
    // Other work of the resources may take longer than both placements, so the makespan does not tell them apart.
    let done = |placement: &Placement| {
        let each = placement.places.iter().zip(&placement.costs);
        each.fold(0.0, |most: f64, (place, costs)| {
            most.max(costs[place.number()].map_or(0.0, |cost| cost.queued))
        })
    };
    let (soon, late) = (done(&best), done(&stayed));
    if soon < late - LEAST_GAIN && soon < (1.0 - least_share) * late {
        return Ok(best);
    }
    // The costs at the other places are still returned.
    Ok(Placement { places: stayed.places, makespan: stayed.makespan, ..best })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::super::{Client, Node};
    use super::*;

    /// One node with one core at 80 MB/s and a link of 118 MB/s, and requests of so many bytes, each of its own client.
    fn placed(busy: f64, bytes: &[u64]) -> Placement {
        let mut cluster = Cluster::default();
        let node = cluster.storage_node(Node { busy, link: 118e6, ..Node::IDLE });
        let shard = |bytes: &u64| {
            let client = cluster.client(Client { link: 118e6, ..Client::IDLE });
            Shard { storage_rate: 80e6, client_rate: 80e6, ..Shard::of(node, client, *bytes) }
        };
        let shards: Vec<Shard> = bytes.iter().map(shard).collect();
        worth_while(&cluster, &shards, LEAST_SHARE).unwrap()
    }

    #[test]
    fn a_small_gain_is_not_worth_a_move_and_a_large_gain_is() {
        // 1.68 s at both places, and a hundredth of it.
        assert_eq!(placed(0.0, &[128 << 20]).places, [Place::Storage]);
        assert_eq!(placed(0.2, &[128 << 20]).places, [Place::Storage]);
        assert_eq!(placed(0.015, &[1 << 16]).places, [Place::Storage]);
        // Other work of the node takes longer than both. The request does not wait for it.
        assert_eq!(placed(30.0, &[128 << 20]).places, [Place::Client]);
    }

    #[test]
    fn shards_that_run_together_all_move_if_one_cannot_stay() {
        let mut cluster = Cluster::default();
        let (node, client) = (cluster.storage_node(Node::IDLE), cluster.client(Client::IDLE));
        let shard = Shard { together: Some(0), ..Shard::of(node, client, 1 << 20) };
        let moves = Shard { places: Places::NONE.with(Place::Client), ..shard };
        assert_eq!(worth_while(&cluster, &[shard, moves], LEAST_SHARE).unwrap().places, [Place::Client; 2]);
    }

    proptest! {
        #[test]
        fn it_is_never_later_than_where_all_stays(
            busy in 0.0f64..10.0,
            bytes in prop::collection::vec(0u64..300_000_000, 1..12),
        ) {
            let placement = placed(busy, &bytes);
            let stays = busy + bytes.iter().map(|bytes| *bytes as f64 / 80e6).sum::<f64>();
            let gone = placement.places.contains(&Place::Client);
            let done = placement.places.iter().zip(&placement.costs);
            let done = done.fold(0.0, |most: f64, (place, costs)| most.max(costs[place.number()].unwrap().queued));
            prop_assert!(!gone || done < (1.0 - LEAST_SHARE) * stays + 1e-9, "{} of {}", done, stays);
            prop_assert!(placement.makespan <= stays * (1.0 + 1e-9) + 1e-9);
        }
    }
}
