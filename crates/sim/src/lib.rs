//! Simulated flash devices and disks in virtual time.
//!
//! [`open`] gives a [`SimDevice`] for a name of the [`catalogue`] or the text
//! of a [`Description`]; it is measured as any device (`uflip_device::Device`),
//! and [`SimBlocks`] serves programs (`uflip_device::Blocks`). No OS, no wall clock: same
//! description, seed and IOs give the same records bit for bit.
#![forbid(unsafe_code)]

pub mod adverse;
pub mod amplification;
mod blocks;
pub mod cache;
pub mod catalogue;
#[cfg(test)]
mod checks;
pub mod content;
pub mod describe;
pub mod device;
pub mod disk;
pub mod energy;
pub mod explain;
pub mod flash;
mod footprint;
pub mod ftl;
mod interleave;
pub mod known;
pub mod link;
pub mod nand;
mod planted;
mod units;
mod validate;
pub mod witness;

pub use blocks::SimBlocks;
pub use catalogue::{OpenError, open};
pub use describe::{DescribeError, Description, check, validate};
pub use device::{Request, SimDevice};
pub use explain::explain;
pub use footprint::footprint;
pub use known::{KnownDevice, OtherLoad, Stall, Truth, Unsteady};
