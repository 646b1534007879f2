//! The arguments of `uflip copy`.

use super::ConsentArgs;
use crate::typed::Typed;
use clap::Args;
use std::path::PathBuf;
use uflip_device::Bytes;

/// `uflip copy`
#[derive(Args, Debug)]
pub struct CopyArgs {
    /// What is read: a block device, a file, sim:NAME, mem:SIZE (memory, all
    /// zeros) or null:SIZE (nothing, reads as zeros)
    #[arg(value_name = "FROM")]
    pub from: String,
    /// What is written: a block device, a scratch file (a new one is made as
    /// large as FROM), sim:NAME, mem:SIZE or null:SIZE; at least as large as FROM
    #[arg(value_name = "TO")]
    pub to: String,
    /// Keep every request in this new folder, with what went on beside: for uflip
    /// show, report and export
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Requests under way on both together
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub requests: usize,
    /// The size of a request
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    pub block_size: Bytes,
    /// Read both again afterwards and compare every byte
    #[arg(long)]
    pub verify: bool,
    /// The seed of simulated devices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[arg(skip)]
    pub typed: Typed,
}
