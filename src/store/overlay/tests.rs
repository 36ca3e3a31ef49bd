//! What an overlay keeps, in which order, and in how many bytes.
use super::core::Stamp;
use super::*;

const STAMP: Stamp<'static> = Stamp { topic: "lines", offset: 4, timestamp: 40, headers: &[0] };

fn key(partition: u32, text: &str) -> Vec<u8> {
    [&partition.to_be_bytes()[..], text.as_bytes()].concat()
}

fn put(overlay: &mut Overlay<String>, key: &[u8], value: &str) -> u32 {
    let slot = overlay.core().find(key).unwrap_or_else(|| overlay.insert(key));
    let existed = overlay.value(slot).is_some();
    overlay.update(slot, |v| *v = Some(value.to_owned()));
    overlay.core_mut().set_dirty(slot, &STAMP, existed);
    slot
}

fn dirty_keys(overlay: &mut Overlay<String>) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(slot) = overlay.core().oldest_dirty() {
        keys.push(String::from_utf8_lossy(&overlay.core().key(slot)[4..]).into_owned());
        overlay.core_mut().set_state(slot, State::Pending);
    }
    keys
}

#[test]
fn dirty_entries_keep_the_order_of_their_last_change() {
    let mut overlay = Overlay::new(1 << 20, false, String::capacity);
    for word in ["b", "a", "c", "a", "b"] {
        put(&mut overlay, &key(0, word), word);
    }
    assert_eq!(dirty_keys(&mut overlay), ["c", "a", "b"]);
    put(&mut overlay, &key(0, "c"), "again");
    put(&mut overlay, &key(0, "b"), "again");
    assert_eq!(dirty_keys(&mut overlay), ["c", "b"]);
    assert_eq!(overlay.core().len(), 3);
}

#[test]
fn partitions_are_collected_written_and_discarded_apart() {
    let mut overlay = Overlay::new(1 << 20, false, String::capacity);
    for partition in [7, 3] {
        for word in ["x", "y"] {
            put(&mut overlay, &key(partition, word), word);
        }
    }
    assert_eq!(dirty_keys(&mut overlay), ["x", "y", "x", "y"]);
    while let Some(slot) = overlay.core().oldest_pending(3) {
        overlay.core_mut().set_state(slot, State::Collected);
    }
    overlay.written(3);
    assert_eq!((overlay.core().oldest_pending(3), overlay.core().some_pending_partition()), (None, Some(7)));
    assert_eq!(overlay.core().held(), 2);
    overlay.discard(7);
    assert_eq!((overlay.core().len(), overlay.core().held()), (2, 0));
    assert_eq!(overlay.core().find(&key(7, "x")), None);
    let slot = overlay.core().find(&key(3, "y")).unwrap();
    assert_eq!((overlay.value(slot).map(String::as_str), overlay.core().state(slot)), (Some("y"), State::Clean));
}

#[test]
fn the_clean_entry_used_longest_ago_goes_first_and_its_bytes_come_back() {
    let mut overlay = Overlay::new(1 << 20, false, String::capacity);
    let empty = overlay.core().footprint();
    for word in ["a", "b", "c"] {
        let slot = put(&mut overlay, &key(0, word), &word.repeat(1000));
        overlay.core_mut().set_state(slot, State::Clean);
    }
    let a = overlay.core().find(&key(0, "a")).unwrap();
    overlay.core_mut().touch(a);
    let before = overlay.core().footprint();
    assert!(before > empty + 3000);
    assert!(overlay.evict_clean());
    assert_eq!(overlay.core().find(&key(0, "b")), None);
    // Measured where the allocator counts: 1000 bytes take a block of 1024.
    let weight = if plimsoll_alloc::is_installed() { 1024 } else { 1000 };
    assert_eq!(overlay.core().footprint(), before - weight);
    assert!(overlay.evict_clean() && overlay.evict_clean() && !overlay.evict_clean());
}

#[test]
fn the_context_of_the_last_change_is_kept_headers_too() {
    let mut overlay = Overlay::new(1 << 20, false, String::capacity);
    let slot = put(&mut overlay, &key(0, "a"), "1");
    assert_eq!(overlay.core().stamp_of(slot).headers, b"");
    let with = Stamp { topic: "other", offset: 9, timestamp: 90, headers: b"\x02\x02k\x02v" };
    overlay.core_mut().set_dirty(slot, &with, true);
    let kept = overlay.core().stamp_of(slot);
    assert_eq!((kept.topic, kept.offset, kept.timestamp, kept.headers), ("other", 9, 90, &b"\x02\x02k\x02v"[..]));
    overlay.core_mut().stamp(slot, &STAMP);
    let kept = overlay.core().stamp_of(slot);
    assert_eq!((kept.topic, kept.headers), ("lines", &b""[..]));
}

#[test]
fn random_entries_are_found_and_the_footprint_returns() {
    let mut overlay: Overlay<u64> = Overlay::new(1 << 24, false, |_| 0);
    let mut model = std::collections::HashMap::new();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..50_000u64 {
        // Every third key is too long for its slot.
        let number = random.u32(..3000);
        let key = key(random.u32(..3), &number.to_string().repeat(if number.is_multiple_of(3) { 30 } else { 1 }));
        if random.u8(..) < 60 {
            if let Some(slot) = overlay.core().find(&key) {
                overlay.release(slot);
            }
            model.remove(&key);
        } else {
            let slot = overlay.core().find(&key).unwrap_or_else(|| overlay.insert(&key));
            overlay.update(slot, |v| *v = Some(round));
            model.insert(key, round);
        }
    }
    assert_eq!(overlay.core().len(), model.len());
    for (key, value) in &model {
        assert_eq!(overlay.value(overlay.core().find(key).unwrap()), Some(value));
    }
}
