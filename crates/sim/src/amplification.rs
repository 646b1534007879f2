//! Write amplification of page mapping under uniformly random writes, computed.
//!
//! In the limit of many superblocks the share n_i of them with i valid pages
//! follows from balance: a page is invalidated at the same rate wherever it is,
//! so the flow from i to i - 1 valid pages is i n_i, and equals the flow of
//! victims with fewer than i. Greedy reclamation leaves none below one level.
//! Source: Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012;
//! Van Houdt, "A mean field model for a class of garbage collection algorithms in
//! flash-based solid state drives", SIGMETRICS 2013. `tests/theory.rs` holds the
//! simulator against it.

/// Programs for each page the host writes, with greedy reclamation of superblocks
/// of `pages` pages of which a share `valid` is valid, 0 to 1.
pub fn greedy(pages: u32, valid: f64) -> f64 {
    let size = f64::from(pages);
    size / (size - victim(pages, valid)).max(f64::MIN_POSITIVE)
}

/// Expected valid pages of a greedy victim.
fn victim(pages: u32, valid: f64) -> f64 {
    let size = f64::from(pages);
    // Sum of 1 / i over the levels above the victims'.
    let mut above = 0.0;
    for level in (1..pages).rev() {
        above += 1.0 / f64::from(level + 1);
        let x = f64::from(level);
        // Flow, and share of superblocks at the victims' level.
        let flow = (valid * size - x) / (size - x - x * above);
        let share = 1.0 - flow * above;
        if flow > 0.0 && (0.0..=flow / x + 1e-12).contains(&share) {
            return x - x * share / flow;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_copied_of_an_empty_device_and_nearly_all_of_a_full_one() {
        assert!((greedy(64, 0.01) - 1.0).abs() < 1e-9);
        assert!(greedy(64, 0.99) > 20.0);
        // Two pages, three quarters valid: half of the superblocks have two valid
        // pages, half one. As many of the latter are taken as lose their last
        // page first, so victims have half a valid page.
        assert!((greedy(2, 0.75) - 4.0 / 3.0).abs() < 1e-9, "{}", greedy(2, 0.75));
    }
}
