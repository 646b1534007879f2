//! `uflip devices`: what could be measured, and why something is refused.

use crate::args::DevicesArgs;
use crate::command::{print, print_json};
use crate::describe;
use uflip_device::identity::{Listing, SysPaths, host_facts, list_devices};
use uflip_sim::catalogue;

/// Runs the command.
///
/// # Errors
/// Where standard output is closed.
pub fn devices(args: DevicesArgs) -> anyhow::Result<()> {
    let paths = SysPaths::default();
    let devices = list_devices(&paths);
    if args.json {
        let simulated: Vec<String> = catalogue::names().map(|name| format!("sim:{name}")).collect();
        return print_json(&serde_json::json!({
            "host": host_facts(&paths), "devices": devices, "simulated": simulated,
        }));
    }
    let mut text = devices.iter().map(|d| entry(d) + "\n").collect::<String>();
    if devices.is_empty() {
        text += "no block device is to be seen here; `uflip run FILE` measures through a file\n\n";
    }
    text += "simulated\n";
    for name in catalogue::names() {
        let about = catalogue::get(name).map(|d| d.name).unwrap_or_default();
        text += &format!("  sim:{name:36} {about}\n");
    }
    print(&text)
}

fn entry(listing: &Listing) -> String {
    let f = &listing.facts;
    let mut text = format!("{}\n  {}\n", f.path, describe::device(f));
    if !listing.used_for.is_empty() {
        text += &format!("  used: {}\n", listing.used_for.join("; "));
    }
    if let Some(looked) = &listing.looked {
        text += &format!("  {looked}\n");
    }
    if let Some(refused) = &listing.refused {
        text += &format!("  not written to: {refused}\n");
    }
    if let Some(confirm) = &listing.confirm {
        text += &format!("  to measure it and lose what it holds: {confirm}\n");
    }
    text
}
