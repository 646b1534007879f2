//! `uflip devices`: what could be measured, and why something is refused.

use crate::args::DevicesArgs;
use crate::command::{print, print_json};
use uflip_device::identity::{Listing, SysPaths, host_facts, list_devices};

/// Runs the command.
///
/// # Errors
/// Where standard output is closed.
pub fn devices(args: DevicesArgs) -> anyhow::Result<()> {
    let paths = SysPaths::default();
    let devices = list_devices(&paths);
    if args.json {
        return print_json(&serde_json::json!({ "host": host_facts(&paths), "devices": devices }));
    }
    if devices.is_empty() {
        return print("no block device is to be seen here; `uflip run FILE` measures through a file\n");
    }
    print(&devices.iter().map(entry).collect::<Vec<_>>().join("\n"))
}

fn entry(listing: &Listing) -> String {
    let f = &listing.facts;
    let words = [
        f.size_bytes.map(|s| s.to_string()),
        f.vendor.clone(),
        f.model.clone(),
        f.serial.as_ref().map(|s| format!("serial {s}")),
        f.firmware.as_ref().map(|s| format!("firmware {s}")),
        f.transport.map(|t| format!("{t:?}").to_lowercase()),
        f.rotational.map(|r| if r { "rotating" } else { "not rotating" }.to_string()),
        f.logical_sector_bytes.zip(f.physical_sector_bytes).map(|(l, p)| format!("sectors {l}/{p}")),
        f.scheduler.as_ref().map(|s| format!("scheduler {s}")),
        f.backing_file.as_ref().map(|b| format!("over {b}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().filter(|w| !w.trim().is_empty()).collect();
    let mut text = format!("{}\n  {}\n", f.path, words.join(", "));
    if !listing.used_for.is_empty() {
        text += &format!("  used: {}\n", listing.used_for.join("; "));
    }
    if let Some(refused) = &listing.refused {
        text += &format!("  not written to: {refused}\n");
    }
    if let Some(confirm) = &listing.confirm {
        text += &format!("  to measure it and lose what it holds: {confirm}\n");
    }
    text
}
