//! Whether something unknown lies on a device: places sampled over all of it.
//!
//! A list of signatures is never whole, and a full device may have lost both of
//! its ends. So, whatever the list says of the ends, [`PLACES`] places of 4 KiB
//! between them are read: the space between is cut into as many equal parts,
//! and a place is drawn in each (stratified sampling). A sector of 512 bytes is
//! known where it is all zero or carries our own stamp ([`Key::DEVICE`]);
//! anything else, and a place that cannot be read, is unknown.
//!
//! The chance of a miss: where data cover the share f_k of part k and f of the
//! whole, all n places miss them with the chance of the product of (1 - f_k),
//! which is at most (1 - f)^n as the geometric mean is at most the arithmetic.
//! 460 places miss data on 1 % of a device with a chance of at most
//! 0.99^460 = 0.98 %, and data that lie together on 1/230 of it never.
//!
//! The places follow from the size alone, so that looking again after opening
//! finds the same. Limits: what covers far less than 1 % between the ends is
//! likely missed; uniform contents of our own (`--data` without stamps) count
//! as unknown, except zeros; so do devices that read as 0xff where erased.

use super::fresh;
use super::magic::Ends;
use crate::rng::{Rng, derive_seed};
use crate::stamp::{Key, SECTOR};
use crate::units::Bytes;
use std::fs::File;
use std::io;

/// The word that confirms unknown contents.
pub const TAG: &str = "unknown-contents";
/// How many places between the ends are looked at: the least for which data on
/// 1 % are missed with a chance below 1 %.
pub(crate) const PLACES: u64 = 460;
/// How long a place is, in bytes.
const PLACE: u64 = 4096;
/// Of the places' generator. Changing it changes the places, no more.
const SEED: u64 = 0x706c_6163_6573;

/// What was looked at, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Looked {
    /// How long the ends are that were read whole, in bytes.
    head: u64,
    tail: u64,
    /// Places between the ends.
    places: u64,
    /// How many of these are unknown.
    unknown: u64,
    /// The first byte that is unknown, the ends included.
    first: Option<u64>,
    /// True where every byte was read.
    whole: bool,
}

impl Looked {
    /// What stands in the way, as a phrase; `None` where nothing unknown is.
    pub(crate) fn unknown(&self) -> Option<String> {
        let first = self.first?;
        let share = if self.places == 0 {
            String::new()
        } else {
            format!(", and at {} of the {} places looked at between its ends", self.unknown, self.places)
        };
        Some(format!("holds unknown contents, neither blank nor written by uflip (at byte {first}{share})"))
    }

    /// What was looked at, and how sure that is, as a phrase.
    pub(crate) fn statement(&self) -> String {
        let found = if self.first.is_some() { "something unknown" } else { "blank, or written by uflip" };
        if self.whole {
            return format!("looked at all of it: {found}");
        }
        format!(
            "looked at its first {}, its last {} and {} places between: {found}; data on 1 % of it would be \
             missed with a chance of {:.2} %",
            Bytes(self.head),
            Bytes(self.tail),
            self.places,
            100.0 * self.chance_of_a_miss(0.01)
        )
    }

    /// The chance that data on this share of the device are missed, at most.
    fn chance_of_a_miss(&self, share: f64) -> f64 {
        if self.whole { 0.0 } else { (1.0 - share).powf(self.places as f64) }
    }
}

/// Looks at a device of `size` bytes whose `ends` were read.
pub(crate) fn look(file: &File, size: u64, ends: &Ends) -> Looked {
    look_at(size, ends, |places, into| fresh::read(file, places, into))
}

/// The same with what reads passed in.
fn look_at(
    size: u64,
    ends: &Ends,
    read: impl FnOnce(&[fresh::Range], &mut dyn FnMut(u64, io::Result<&[u8]>)),
) -> Looked {
    let (places, whole) = places(size);
    let (head, tail) = Ends::lengths(size);
    let mut first = ends.first_unknown();
    let mut unknown = 0;
    read(&places, &mut |offset, outcome| {
        let within = match outcome {
            Ok(bytes) => first_unknown(bytes),
            Err(_) => Some(0),
        };
        if let Some(within) = within {
            unknown += 1;
            let at = offset + within;
            first = Some(first.map_or(at, |first| first.min(at)));
        }
    });
    Looked { head, tail, places: places.len() as u64, unknown, first, whole }
}

/// The places between the ends, ascending, and whether they are all there is.
fn places(size: u64) -> (Vec<fresh::Range>, bool) {
    let (head, tail) = Ends::lengths(size);
    let (start, end) = (head, (size - tail).max(head));
    let blocks = (end - start).div_ceil(PLACE);
    let count = blocks.min(PLACES);
    let mut rng = Rng::new(derive_seed(SEED, size));
    let bound = |part: u64| (u128::from(blocks) * u128::from(part) / u128::from(count.max(1))) as u64;
    let place = |part: u64| {
        let (from, to) = (bound(part), bound(part + 1));
        let offset = start + (from + rng.below(to - from)) * PLACE;
        (offset, PLACE.min(end - offset) as usize)
    };
    ((0..count).map(place).collect(), count == blocks)
}

/// The first byte that is not zero in a sector that is not ours.
pub(crate) fn first_unknown(bytes: &[u8]) -> Option<u64> {
    const BLANK: [u8; SECTOR] = [0; SECTOR];
    let known = |sector: &[u8]| *sector == BLANK[..sector.len()] || Key::DEVICE.is_on(sector);
    let (at, sector) = bytes.chunks(SECTOR).enumerate().find(|(_, sector)| !known(sector))?;
    let within = sector.iter().position(|byte| *byte != 0)?;
    Some((at * SECTOR + within) as u64)
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
