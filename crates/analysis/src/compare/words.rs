//! A figure as a person reads it.

use super::Unit;
use uflip_device::Bytes;

/// Three significant digits, but all digits before the point.
pub fn three(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    // Halves go up, in every unit alike: 0.3805 ms and 380.5 us are 0.381 and 381.
    let step = 10f64.powi(decimals);
    let decimals = decimals as usize;
    format!("{:.decimals$}", (value * step).round() / step)
}

/// A figure with its unit.
pub fn value_text(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else { return "none".into() };
    match unit {
        Unit::Ns => {
            let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
            let (name, scale) =
                units.into_iter().find(|(_, s)| value.abs() >= *s * 0.9995).unwrap_or(("ns", 1.0));
            format!("{} {name}", three(value / scale))
        }
        Unit::Bytes => Bytes(value as u64).to_string(),
        Unit::Times => format!("x{}", three(value)),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count => three(value),
    }
}
