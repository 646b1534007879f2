//! What is typed for `uflip compare`.

use clap::Args;
use std::path::PathBuf;

/// `uflip compare`
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Folders with results, or sim:NAME to measure a simulated device on the
    /// spot; the first is the reference
    #[arg(required = true, value_name = "DIR|sim:NAME")]
    pub subjects: Vec<String>,
    /// Fail where this is so, such as 'RW > 1.2x' (times the first's),
    /// 'RW.p99 > 5ms', 'SW > 10%' or 'partitions.count < 4'; may be given
    /// several times
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<String>,
    /// Let --fail-if judge results that are damaged or incomplete; without it
    /// they fail
    #[arg(long, requires = "fail_if")]
    pub allow_incomplete: bool,
    /// Where to draw the comparison [default: compare.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Draw nothing
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Print as JSON (and draw only where --html is given)
    #[arg(long)]
    pub json: bool,
    /// The seed of devices that are measured on the spot
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
