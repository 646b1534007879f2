//! Random devices with a known truth.
//!
//! Method: what is drawn spans what the paper's devices do (paper 001, section
//! 5 and Table 3): writes of 0.05 to 2 ms, random writes 6 to 60 times more expensive on
//! average, expensive ones in cycles of 4 to 300 IOs in three quarters of the devices
//! and at random in the others, jitter of up to a tenth, noise of 1 to 30 %,
//! outliers in half, a drift in a fifth (x1.1 to x1.5 over 400,000
//! writes). A start-up phase is in half of them,
//! at least two cycles long (at random: ten expensive IOs): what is shorter cannot be
//! told from luck. A lasting effect is in half, an area of cheap random writes in three
//! quarters, an alignment unit in half; 1 to 64 streams are cheap.

use super::Truth;
use uflip_device::Bytes;
use uflip_device::rng::Rng;

const MIB: f64 = 1048576.0;

fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

/// True in so many of 60 cases.
fn chance(rng: &mut Rng, of_60: u64) -> bool {
    rng.below(60) < of_60
}

/// A random device.
pub fn draw(rng: &mut Rng) -> Truth {
    let sw_ns = log_uniform(rng, 50e3, 2e6);
    let ratio = log_uniform(rng, 6.0, 60.0);
    let share = log_uniform(rng, (ratio / 300.0).max(0.02), 0.5);
    let periodic = chance(rng, 45);
    let least = (1.5 / share).max(4.0);
    let period = log_uniform(rng, least, 300.0).round();
    let share = if periodic { (share * period).round().max(1.0) / period } else { share };
    let sr_ns = sw_ns * log_uniform(rng, 0.5, 1.5);
    let natural = if periodic { 2.0 * period } else { 10.0 / share };
    let natural = natural.max(20.0);
    let start_up = log_uniform(rng, natural, (natural * 1.5).max(600.0)).round();
    let lasting = log_uniform(rng, 0.2e9, (16_000.0 * sr_ns).min(5e9));
    let unit = 1024u64 << rng.below(6);
    let area = chance(rng, 45).then_some(log_uniform(rng, MIB, 64.0 * MIB));
    // In an area of no more IOs than streams, random writes look like streams.
    let most = area.map_or(4.0, |bytes| (bytes / 65536.0).min(64.0));
    Truth {
        capacity: Bytes(32 << 30),
        sr_ns,
        rr_ns: sr_ns * log_uniform(rng, 1.0, 5.0),
        sw_ns,
        expensive_ns: sw_ns * (1.0 + (ratio - 1.0) / share),
        expensive_share: share,
        period_ios: periodic.then_some(period),
        jitter: if chance(rng, 30) { 0.0 } else { 0.1 * rng.unit() },
        start_up_ios: chance(rng, 30).then_some(start_up as u64),
        refill_ns: lasting.max(0.3e9),
        lasting_ns: chance(rng, 30).then_some(lasting),
        lasting_factor: log_uniform(rng, 1.3, 4.0),
        area_bytes: area.map(|bytes| bytes as u64),
        partitions: log_uniform(rng, 1.0, most).round() as u32,
        unit_bytes: chance(rng, 30).then_some(unit),
        penalty: log_uniform(rng, 1.25, 2.5),
        noise: log_uniform(rng, 0.01, 0.3),
        outliers: if chance(rng, 30) { 0.0 } else { 0.003 * rng.unit() },
        outlier_factor: log_uniform(rng, 5.0, 30.0),
        drift: if chance(rng, 12) { log_uniform(rng, 0.1, 0.5) / 400_000.0 } else { 0.0 },
    }
}
