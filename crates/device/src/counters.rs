//! What a device counts of its own work, as far as it tells.
//!
//! How: cumulative figures since the device was made or opened; what a run came
//! to is the difference of two readings ([`Counters::since`]). Bytes are those of
//! the host's requests, of whole flash pages, and `None` where a device does not
//! tell or has no such thing: a disk has no flash, and most devices do not measure
//! their energy.
//!
//! Source: merges by kind after Kim et al., "A space-efficient flash translation
//! layer for CompactFlash systems", IEEE Trans. Consumer Electronics 2002; write
//! amplification after Hu et al., "Write amplification analysis in flash-based
//! solid state drives", SYSTOR 2009.
//! Limits: what a write buffer still holds at the second reading is not yet
//! programmed, and what it held at the first is programmed after it, so a short
//! run's write amplification can be below 1.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The figures of one reading, or the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// What the host has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_read: Option<Bytes>,
    /// What of that lay where nothing is written: a flash device answers without its
    /// flash, sooner than where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_read_unwritten: Option<Bytes>,
    /// What the host has written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_written: Option<Bytes>,
    /// What the host has trimmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_trimmed: Option<Bytes>,
    /// Flash pages read, for the host and to be copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash_read: Option<Bytes>,
    /// Flash pages programmed, with the host's data and with copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash_programmed: Option<Bytes>,
    /// Those of them that were copies: of merges, of reclamation, of static wear
    /// levelling and of folding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash_copied: Option<Bytes>,
    /// Erase blocks erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_erases: Option<u64>,
    /// Logs that were in order and complete and took the data block's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_merges: Option<u64>,
    /// Logs in order that were completed from the data block first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_merges: Option<u64>,
    /// Logs copied together with the data block into a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_merges: Option<u64>,
    /// Victims reclaimed by garbage collection (superblocks of a page map).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaimed: Option<u64>,
    /// Superblocks moved for static wear levelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levelled: Option<u64>,
    /// Energy used, in microjoules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<f64>,
}

impl Counters {
    /// What was counted from `before` to this reading of the same device. `None`
    /// where either does not tell, or where the figure fell: a device that was
    /// returned to a snapshot, or reset, has not done that work.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        let bytes = |now: Option<Bytes>, then: Option<Bytes>| Some(Bytes(now?.0.checked_sub(then?.0)?));
        let count = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let energy = |now: Option<f64>, then: Option<f64>| Some(now? - then?).filter(|uj| *uj >= 0.0);
        Counters {
            host_read: bytes(self.host_read, before.host_read),
            host_read_unwritten: bytes(self.host_read_unwritten, before.host_read_unwritten),
            host_written: bytes(self.host_written, before.host_written),
            host_trimmed: bytes(self.host_trimmed, before.host_trimmed),
            flash_read: bytes(self.flash_read, before.flash_read),
            flash_programmed: bytes(self.flash_programmed, before.flash_programmed),
            flash_copied: bytes(self.flash_copied, before.flash_copied),
            block_erases: count(self.block_erases, before.block_erases),
            switch_merges: count(self.switch_merges, before.switch_merges),
            partial_merges: count(self.partial_merges, before.partial_merges),
            full_merges: count(self.full_merges, before.full_merges),
            reclaimed: count(self.reclaimed, before.reclaimed),
            levelled: count(self.levelled, before.levelled),
            energy_uj: energy(self.energy_uj, before.energy_uj),
        }
    }

    /// Bytes programmed for each byte that the host wrote; `None` where either is
    /// not told or the host wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let (programmed, written) = (self.flash_programmed?.0, self.host_written?.0);
        (written > 0).then(|| programmed as f64 / written as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_tells_only_what_both_readings_do() {
        let before = Counters {
            host_written: Some(Bytes(4096)),
            flash_programmed: Some(Bytes(8192)),
            block_erases: Some(7),
            energy_uj: Some(1.5),
            ..Counters::default()
        };
        let now = Counters {
            host_written: Some(Bytes(12288)),
            flash_programmed: Some(Bytes(28672)),
            block_erases: Some(6),
            full_merges: Some(3),
            energy_uj: Some(4.0),
            ..Counters::default()
        };
        let run = now.since(&before);
        let expected = Counters {
            host_written: Some(Bytes(8192)),
            flash_programmed: Some(Bytes(20480)),
            energy_uj: Some(2.5),
            ..Counters::default()
        };
        assert_eq!(run, expected, "erases fell, and merges were not told before");
        assert_eq!(run.write_amplification(), Some(2.5));
        assert_eq!(now.since(&now).write_amplification(), None, "nothing was written");
    }

    #[test]
    fn what_is_not_told_is_left_out_and_comes_back_as_not_told() {
        let told = Counters { host_read: Some(Bytes(0)), energy_uj: Some(0.25), ..Counters::default() };
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(text, r#"{"host_read":0,"energy_uj":0.25}"#);
        assert_eq!(serde_json::from_str::<Counters>(&text).unwrap(), told);
    }
}
