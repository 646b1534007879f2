//! Places and the chance of a miss, on devices that a function makes.

use super::*;
use std::cell::Cell;

/// Looks at a device whose 4-KiB blocks `held` fills.
fn look_on(size: u64, held: impl Fn(u64) -> bool) -> Looked {
    look_at(size, &Ends::blank(size), |places, into| {
        for (offset, length) in places {
            let byte = u8::from(held(offset / PLACE));
            into(*offset, Ok(&vec![byte; *length]));
        }
    })
}

#[test]
fn places_are_spread_in_order_inside_and_the_same_again() {
    for size in [1u64 << 30, (1 << 30) + 512, 20_000_588_955_648, u64::MAX / 2 / 4096 * 4096] {
        let (found, whole) = places(size);
        assert!(!whole && found.len() as u64 == PLACES);
        assert_eq!(places(size).0, found);
        let (head, tail) = Ends::lengths(size);
        let part = (size - head - tail) / PLACES;
        for (k, (offset, length)) in found.iter().enumerate() {
            let end = offset + *length as u64;
            assert!(*offset >= head && end <= size - tail && offset % PLACE == 0);
            let middle = head + part * k as u64;
            assert!(*offset + PLACE >= middle && *offset <= middle + part + PLACE, "{k} of {size}");
        }
    }
}

#[test]
fn a_small_device_is_read_whole() {
    for size in [0u64, 512, 1 << 20, (3 << 20) - 512, 3 << 20, (3 << 20) + 512, (3 << 20) + PLACES * PLACE] {
        let (found, whole) = places(size);
        let (head, tail) = Ends::lengths(size);
        let mut next = head;
        for (offset, length) in found {
            assert_eq!(offset, next, "no gap");
            next += length as u64;
        }
        assert!(whole && next == (size - tail).max(head), "{size}");
        assert!(look_on(size, |_| false).statement().starts_with("looked at all of it"));
    }
    assert!(!places((3 << 20) + PLACES * PLACE + 512).1);
}

#[test]
fn blocks_scattered_over_one_in_a_hundred_are_missed_as_seldom_as_stated() {
    let stated = look_on(1 << 40, |_| false).chance_of_a_miss(0.01);
    assert!(stated < 0.01 && stated > 0.009, "{stated}");
    let layouts = 20_000;
    let looked_at = places(1 << 40).0;
    let held = |layout: u64, offset: u64| derive_seed(layout, offset / PLACE).is_multiple_of(100);
    let missed =
        (0..layouts).filter(|layout| !looked_at.iter().any(|(offset, _)| held(*layout, *offset))).count();
    let share = missed as f64 / layouts as f64;
    // Five standard deviations of the count.
    assert!((share - stated).abs() < 0.0035, "{share} where {stated} is stated");
}

#[test]
fn data_that_lie_together_are_not_missed_from_a_two_hundred_and_thirtieth_on() {
    let size = 1u64 << 40;
    let length = size / 230 / PLACE + 2;
    let blocks = size / PLACE;
    let looked_at = places(size).0;
    for k in 0..1000 {
        let from = (blocks - length) / 1000 * k;
        let found = looked_at.iter().any(|(at, _)| (from..from + length).contains(&(at / PLACE)));
        assert!(found, "{k}");
    }
}

#[test]
fn our_own_stamps_and_zeros_are_known_and_anything_else_is_not() {
    let mut bytes = vec![0u8; 4096];
    assert_eq!(first_unknown(&bytes), None);
    Key::DEVICE.stamp(&mut bytes[512..2048], 7);
    bytes[600] = 9;
    assert_eq!(first_unknown(&bytes), None, "what follows a stamp is ours");
    bytes[3000] = 1;
    assert_eq!(first_unknown(&bytes), Some(3000));
    let mut scratch = vec![0u8; 512];
    Key(1).stamp(&mut scratch, 7);
    assert_eq!(first_unknown(&scratch), Some(0), "a scratch file's stamp is not the device's");
    assert_eq!(first_unknown(&[0xff; 512]), Some(0));
    assert_eq!(first_unknown(&[0; 100]), None);
    assert_eq!(first_unknown(&[]), None);
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let size = 1u64 << 30;
    let failed = Cell::new(None);
    let looked = look_at(size, &Ends::blank(size), |places, into| {
        for (k, (offset, length)) in places.iter().enumerate() {
            if k == 100 {
                failed.set(Some(*offset));
                into(*offset, Err(io::Error::from_raw_os_error(libc::EIO)));
            } else {
                into(*offset, Ok(&vec![0; *length]));
            }
        }
    });
    assert_eq!((looked.unknown, looked.first), (1, failed.get()));
}

#[test]
fn what_is_said_names_places_and_chance() {
    let blank = look_on(1 << 30, |_| false);
    assert_eq!(blank.unknown(), None);
    assert_eq!(
        blank.statement(),
        "looked at its first 2M, its last 1M and 460 places between: blank, or written by uflip; \
         data on 1 % of it would be missed with a chance of 0.98 %"
    );
    let full = look_on(1 << 30, |_| true);
    assert!(full.unknown().is_some_and(|why| why.contains("at 460 of the 460 places")), "{full:?}");
}
