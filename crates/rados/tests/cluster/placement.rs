//! New pieces lie near.

use gristmill_rados::{PIECE_BYTES, RadosOptions, RadosStore};
use gristmill_store::ObjectStore;
use gristmill_store::suite::{all_bytes, with_bytes};

use crate::other_client::OtherClient;
use crate::{location, options, pattern};

#[test]
fn pieces_lie_on_the_daemon_that_is_near() {
    let bytes = pattern(8 * PIECE_BYTES as usize);
    for near in ["127.0.0.2", "127.0.0.3"] {
        let location = location();
        let options = RadosOptions { near: vec![near.parse().unwrap()], ..options() };
        let store = RadosStore::open(&location, &options).unwrap();
        let a = with_bytes(&store, "a", &bytes);
        assert!(all_bytes(&store, &a) == bytes);
        let other = OtherClient::of(&location);
        let pieces: Vec<_> = other.names().into_iter().filter(|name| name.starts_with("p.")).collect();
        assert_eq!(pieces.len(), 8);
        for piece in &pieces {
            assert_eq!(other.address_of(piece), near, "{piece}");
        }
        store.shut_down().unwrap();
        // Another process reads them, wherever they lie.
        let store = RadosStore::open(&location, &crate::options()).unwrap();
        assert!(all_bytes(&store, &a) == bytes);
        store.remove(&a).unwrap();
        assert_eq!(other.names(), ["store"]);
    }
    // Where no daemon is near, pieces lie anywhere.
    let options = RadosOptions { near: vec!["127.0.0.99".parse().unwrap()], ..options() };
    let store = RadosStore::open(&location(), &options).unwrap();
    let a = with_bytes(&store, "a", &bytes);
    assert!(all_bytes(&store, &a) == bytes);
}
