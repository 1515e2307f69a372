//! Tests of the pace of folds.

use super::*;

#[test]
fn a_piece_takes_as_long_as_other_lanes_may_wait() {
    let micros = Duration::from_micros;
    // A slow kernel: 60 us for a position.
    assert_eq!(next_piece(64, 64, 64 * micros(60)), 3);
    assert_eq!(next_piece(3, 3, 3 * micros(60)), 3);
    assert_eq!(next_piece(3, 3, 3 * micros(6000)), 1);
    // A fast kernel reaches whole blocks soon.
    let mut piece = FIRST_PIECE;
    for _ in 0..8 {
        piece = next_piece(piece, piece.min(32_768), Duration::ZERO);
    }
    assert!(piece > 1 << 20, "{piece}");
    assert!(next_piece(1 << 40, 32_768, micros(20)) < 1 << 20);
    assert_eq!(next_piece(u64::MAX, 0, micros(200)), 1);
}
