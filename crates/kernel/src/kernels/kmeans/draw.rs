//! Random numbers that depend only on a seed and a place, so that every fold draws the same numbers.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A uniform number in (0, 1] for one record in one round.
pub(crate) fn uniform(seed: u64, round: u64, record: u64) -> f64 {
    let bits = mix(mix(mix(seed) ^ round) ^ record);
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// `k` different numbers below `n` (at least k), ascending, by Floyd's algorithm (Bentley, Floyd: A sample of
/// brilliance, 1987).
pub(crate) fn sample(seed: u64, n: u64, k: u64) -> Vec<u64> {
    let mut chosen = std::collections::BTreeSet::new();
    for last in n.saturating_sub(k)..n {
        // The bias of the remainder is below k / 2^64 n.
        let drawn = mix(mix(seed) ^ last) % (last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_different_numbers_in_range() {
        for (n, k) in [(1, 1), (5, 5), (1000, 7), (u64::MAX, 3)] {
            let sample = sample(3, n, k);
            assert_eq!(sample.len() as u64, k);
            assert!(sample.iter().all(|x| *x < n));
        }
    }

    #[test]
    fn every_number_is_drawn_about_as_often() {
        let mut counts = [0; 10];
        for seed in 0..20_000 {
            sample(seed, 10, 3).iter().for_each(|x| counts[*x as usize] += 1);
        }
        // 6,000 expected each, with a standard deviation of about 65.
        assert!(counts.iter().all(|count| (5_700..6_300).contains(count)), "{counts:?}");
    }

    #[test]
    fn uniform_numbers_lie_in_their_interval() {
        let mean =
            (0..10_000).map(|i| uniform(1, 2, i)).inspect(|u| assert!(*u > 0.0 && *u <= 1.0)).sum::<f64>();
        assert!((mean / 10_000.0 - 0.5).abs() < 0.02);
    }
}
