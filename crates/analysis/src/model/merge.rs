//! The write cost model T = T_merge/(f R) + S/B, fitted.
//!
//! What: T is the time for one sector when each sync writes R sectors spread over
//! 1/f logical blocks. Multiplied by f R this is a line in the bytes that each
//! visit to a logical block writes: `visit = T_merge + f R S / B`. How: weighted
//! least squares with weights 1/visit², so that relative errors count; intervals
//! of 95 % from Student's t. Predictions are tested on held-out points: each
//! sample by a fit to the others. The HDD's T_pos (eq. 1) is fitted the same way.
//!
//! Units: ns, bytes. Source: paper 002, sections 3.1 and 3.2, equations 1 and 2.
//! Errata: R <= L is needed; what writes more than a logical block is left out by
//! the caller.

use serde::{Deserialize, Serialize};

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyncSample {
    /// R: sectors of 512 bytes a sync.
    pub sectors_per_sync: f64,
    /// f: the focal factor.
    pub focal_factor: f64,
    /// T: ns for one sector.
    pub sector_ns: f64,
}

/// The fitted model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeFit {
    /// T_merge (T_pos on an HDD); `None` where the samples do not decide it, as their line
    /// meets no bytes below no time.
    pub t_merge_ns: Option<f64>,
    /// The 95 % interval of where the line meets no bytes; `None` with two points.
    pub t_merge_ci95: Option<(f64, f64)>,
    /// 1/B.
    pub ns_per_byte: f64,
    /// Its 95 % interval.
    pub ns_per_byte_ci95: Option<(f64, f64)>,
    /// B, where bytes take time.
    pub bytes_per_s: Option<f64>,
    /// For each sample, measured over predicted visit less 1, by a fit to the
    /// others; empty below four samples.
    pub held_out_error: Vec<(f64, f64)>,
    /// The largest of these without its sign.
    pub worst_held_out: Option<f64>,
}

impl MergeFit {
    /// What so many visits that write so many bytes take; `None` where it is not decided.
    pub fn takes_ns(&self, visits: f64, bytes: f64) -> Option<f64> {
        let ns = visits * self.t_merge_ns? + bytes * self.ns_per_byte;
        (ns.is_finite() && ns >= 0.0).then_some(ns)
    }
}

impl SyncSample {
    /// Of IOs of `size` bytes, each a sync of its own in one logical block.
    pub fn io(size: u64, mean_ns: f64) -> SyncSample {
        let sectors = size as f64 / 512.0;
        SyncSample { sectors_per_sync: sectors, focal_factor: 1.0, sector_ns: mean_ns / sectors }
    }

    /// Bytes and ns of one visit to a logical block.
    fn visit(&self) -> (f64, f64) {
        let sectors = self.focal_factor * self.sectors_per_sync;
        (sectors * 512.0, sectors * self.sector_ns)
    }
}

/// Two-sided 95 % of Student's t.
pub(crate) fn t95(freedom: usize) -> f64 {
    const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => T[freedom - 1],
        n => 1.96 + 2.4 / n as f64 + 3.0 / (n * n) as f64,
    }
}

/// Intercept and slope with their standard errors.
type FittedLine = (f64, f64, Option<(f64, f64)>);

fn line(points: &[(f64, f64)]) -> Option<FittedLine> {
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in points {
        let weight = 1.0 / (y * y);
        (w, wx, wy) = (w + weight, wx + weight * x, wy + weight * y);
        (wxx, wxy) = (wxx + weight * x * x, wxy + weight * x * y);
    }
    let d = w * wxx - wx * wx;
    if points.len() < 2 || d.is_nan() || d <= 0.0 || d < 1e-12 * w * wxx {
        return None;
    }
    let (intercept, slope) = ((wxx * wy - wx * wxy) / d, (w * wxy - wx * wy) / d);
    let freedom = points.len() - 2;
    let errors = (freedom > 0).then(|| {
        let sum: f64 = points.iter().map(|(x, y)| ((y - intercept - slope * x) / y).powi(2)).sum();
        let variance = sum / freedom as f64;
        ((variance * wxx / d).sqrt(), (variance * w / d).sqrt())
    });
    Some((intercept, slope, errors))
}

/// Fits the model; `None` below two different sizes of a visit.
pub fn fit_merge(samples: &[SyncSample]) -> Option<MergeFit> {
    let all: Vec<(f64, f64)> = samples.iter().map(SyncSample::visit).collect();
    let points: Vec<(f64, f64)> =
        all.into_iter().filter(|(x, y)| *x > 0.0 && *y > 0.0 && y.is_finite()).collect();
    let (intercept, ns_per_byte, errors) = line(&points)?;
    // A line through 0 is one but for the last digits.
    let rounding = points.iter().map(|(_, y)| *y).fold(0.0, f64::max) * 1e-9;
    let t_merge_ns = (intercept >= -rounding).then_some(intercept.max(0.0));
    let t = t95(points.len() - 2);
    let interval = |middle: f64, error: f64| (middle - t * error, middle + t * error);
    let mut held_out_error = Vec::new();
    if points.len() >= 4 {
        for (at, (x, y)) in points.iter().enumerate() {
            let others: Vec<_> =
                points.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, p)| *p).collect();
            held_out_error.extend(line(&others).map(|(a, b, _)| (*x, y / (a + b * x) - 1.0)));
        }
    }
    Some(MergeFit {
        t_merge_ns,
        t_merge_ci95: errors.map(|(e, _)| interval(intercept, e)),
        ns_per_byte,
        ns_per_byte_ci95: errors.map(|(_, e)| interval(ns_per_byte, e)),
        bytes_per_s: (ns_per_byte > 0.0).then(|| 1e9 / ns_per_byte),
        worst_held_out: held_out_error.iter().map(|(_, e)| e.abs()).max_by(f64::total_cmp),
        held_out_error,
    })
}
