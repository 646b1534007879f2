//! How a figure of ours compares with what a paper prints.
//!
//! | printed | means |
//! |---|---|
//! | `0.4` | the number; what would be printed the same is no error |
//! | `=` | the cost of the reference: within a factor 1.25 of 1 |
//! | `none` | a blank or "No": ours is none, too |
//! | `5..8` | anything between; outside, the nearer end counts |
//! | `>25`, `<0.8` | anything beyond; otherwise that end counts |

/// "Within a factor 1.25".
pub const CLOSE: f64 = 1.25;

/// |ln(ours / paper)| where there is one, and whether the two agree.
pub fn judge(printed: &str, ours: Option<f64>) -> (Option<f64>, bool) {
    let Some(ours) = ours else { return (None, printed == "none") };
    if printed == "=" {
        return (None, (1.0 / CLOSE..=CLOSE).contains(&ours));
    }
    let Some((low, high)) = interval(printed) else { return (None, false) };
    if (low..=high).contains(&ours) {
        return (Some(0.0), true);
    }
    let error = (ours / ours.clamp(low, high)).ln().abs();
    (Some(error), error <= CLOSE.ln())
}

/// All values that agree with what is printed without an error.
fn interval(printed: &str) -> Option<(f64, f64)> {
    if let Some(least) = printed.strip_prefix('>') {
        return Some((least.parse().ok()?, f64::INFINITY));
    }
    if let Some(most) = printed.strip_prefix('<') {
        return Some((0.0, most.parse().ok()?));
    }
    if let Some((low, high)) = printed.split_once("..") {
        return Some((low.parse().ok()?, high.parse().ok()?));
    }
    let value: f64 = printed.parse().ok()?;
    let decimals = printed.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    let half = 0.5 * 10f64.powi(-decimals);
    Some((value - half, value + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_rounding_is_no_error() {
        assert_eq!(judge("0.4", Some(0.36)), (Some(0.0), true));
        assert_eq!(judge("9", Some(9.49)), (Some(0.0), true));
        let (error, close) = judge("0.4", Some(0.9));
        assert!((error.unwrap() - 2f64.ln()).abs() < 1e-12 && !close);
        assert!(judge("20", Some(25.0)).1 && !judge("20", Some(26.0)).1);
    }

    #[test]
    fn words_of_the_table_pass_or_fail() {
        assert_eq!(judge("none", None), (None, true));
        assert_eq!(judge("none", Some(1.0)), (None, false));
        assert_eq!(judge("=", Some(1.2)), (None, true));
        assert_eq!(judge("=", Some(1.3)), (None, false));
        assert_eq!(judge("=", None), (None, false));
        assert_eq!(judge("4", None), (None, false));
    }

    #[test]
    fn ranges_count_from_their_nearer_end() {
        assert_eq!(judge("5..8", Some(6.0)), (Some(0.0), true));
        assert_eq!(judge("5..8", Some(9.9)), (Some((9.9f64 / 8.0).ln()), true));
        assert!(!judge("5..8", Some(3.9)).1 && !judge("5..8", None).1);
        assert_eq!(judge(">25", Some(100.0)), (Some(0.0), true));
        assert!(judge(">25", Some(21.0)).1 && !judge(">25", Some(19.0)).1);
        assert!(judge("<0.8", Some(0.0)).1 && !judge("<0.8", Some(1.1)).1);
    }
}
