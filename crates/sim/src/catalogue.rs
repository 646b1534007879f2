//! The devices of the papers, and a modern one, as embedded descriptions.
//!
//! Names are the keys of the papers' tables. `docs/catalogue.md` tells which
//! mechanics give which figure, and which figures no mechanics give.

use crate::describe::{DescribeError, Description, check};
use crate::device::SimDevice;

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../catalogue/", $name, ".toml")))),*]
    };
}

const ENTRIES: &[(&str, &str)] = entries![
    "memoright",
    "mtron",
    "samsung",
    "transcend-module",
    "transcend-mlc",
    "kingston-dthx",
    "kingston-dti",
    "gskill",
    "transcend-16",
    "corsair",
    "kingston-sd",
    "sandisk",
    "samsung-64",
    "mtron-32",
    "toshiba-transmemory-1G",
    "hama-ssd-32G",
    "kingston-dt-elite-hs-2G",
    "ibm-deskstar-hdd-60G",
    "seagate-barracuda-7200.11-hdd-500G",
    "nvme-tlc",
];

/// A device that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No such name in the catalogue.
    #[error("no simulated device is called '{name}'; type one of {}", names().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The description cannot be built.
    #[error(transparent)]
    Description(#[from] DescribeError),
}

/// The names in the catalogue, in the papers' order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|(name, _)| *name)
}

/// The commented TOML text of a name.
pub fn text(name: &str) -> Option<&'static str> {
    ENTRIES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// The description of a name.
///
/// # Errors
/// [`OpenError`] with the names there are.
pub fn get(name: &str) -> Result<Description, OpenError> {
    let text = text(name).ok_or_else(|| OpenError::Unknown { name: name.to_string() })?;
    Ok(check(text)?)
}

/// A device: `what` is a name of the catalogue or, where it has more than one
/// line, the text of a description.
///
/// # Errors
/// [`OpenError`].
pub fn open(what: &str, seed: u64) -> Result<SimDevice, OpenError> {
    let description = if what.contains('\n') { check(what)? } else { get(what)? };
    Ok(SimDevice::new(&description, seed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_opens_and_says_where_its_numbers_come_from() {
        for name in names() {
            let d = get(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(d.provenance.contains_key("default"), "{name} has no default provenance");
            assert!(!d.about.is_empty(), "{name} does not say what it is");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_names() {
        let message = open("nosuch", 1).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("nosuch") && message.contains("mtron"), "{message}");
    }
}
