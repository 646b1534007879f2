//! `uflip sim`: simulated devices, listed, explained, and attached as block
//! devices.

use crate::args::{AttachArgs, DetachArgs, SimCommand, StatusArgs};
use crate::command::{print, print_json};
use crate::input;
use crate::target::described;
use crate::usage;
use serde_json::json;
use std::path::Path;
use uflip_device::Bytes;
use uflip_sim::catalogue;

/// Runs the command.
///
/// # Errors
/// What is wrong with what was named, or what the system refuses.
pub fn sim(command: SimCommand) -> anyhow::Result<()> {
    match command {
        SimCommand::List { json } => list(json),
        SimCommand::Show { device, json, toml } => show(&device, json, toml),
        SimCommand::Check { file } => check(&file),
        SimCommand::Verify(args) => crate::command::verify::verify(args),
        SimCommand::Proof(args) => crate::command::proof::proof(&args),
        SimCommand::Attach(args) => attach(&args),
        SimCommand::Status(args) => status(&args),
        SimCommand::Detach(args) => detach(&args),
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for name in catalogue::names() {
        rows.push((name, catalogue::get(name)?));
    }
    if json {
        let facts = rows.iter().map(|(name, d)| {
            json!({ "name": name, "device": d.name, "about": d.about, "capacity_bytes": d.capacity_mib << 20 })
        });
        return print_json(&facts.collect::<Vec<_>>());
    }
    let line = |(name, d): &(&str, uflip_sim::Description)| {
        let about = d.about.lines().next().unwrap_or_default();
        format!("sim:{name:<18} {:>8}  {about}\n", Bytes(d.capacity_mib << 20).to_string())
    };
    print(&rows.iter().map(line).collect::<String>())
}

fn show(device: &str, json: bool, toml: bool) -> anyhow::Result<()> {
    let name = device.strip_prefix("sim:").unwrap_or(device);
    let description = described(name)?;
    if toml {
        return match catalogue::text(name) {
            Some(text) => print(text),
            None => print(&input::text(Path::new(name), input::DESCRIPTION, "a device's description")?),
        };
    }
    if json { print_json(&description) } else { print(&uflip_sim::explain(&description)) }
}

fn check(file: &Path) -> anyhow::Result<()> {
    let text = input::text(file, input::DESCRIPTION, "a device's description")?;
    let description = uflip_sim::check(&text).map_err(|e| {
        let line = text.lines().nth(e.line - 1).unwrap_or_default().trim_end();
        anyhow::anyhow!("{}: {e}\n{:>6} | {line}", file.display(), e.line)
    })?;
    let (file, name) = (file.display(), &description.name);
    print(&format!("{file}: {name} can be built; type sim:{file} as a target, or uflip sim show {file}\n"))
}

#[cfg(target_os = "linux")]
fn attach(args: &AttachArgs) -> anyhow::Result<()> {
    crate::attach::attach(args)
}

#[cfg(target_os = "linux")]
fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let all = crate::attach::place::all(args.place.run_dir.as_deref());
    if args.json {
        let facts = all.iter().map(|(place, note)| {
            let alive = note.alive();
            let lateness = alive.then(|| place.lateness()).flatten();
            json!({ "attachment": note, "alive": alive, "mount": place.mount_point(), "lateness": lateness })
        });
        return print_json(&facts.collect::<Vec<_>>());
    }
    if all.is_empty() {
        return print("nothing is attached\n");
    }
    let lines = all.iter().map(|(place, note)| {
        let device = note.device.as_deref().unwrap_or(Path::new("(no device yet)")).display();
        let state = match (note.alive(), place.lateness()) {
            (false, _) => format!("its process is gone; type: uflip sim detach {device}"),
            (true, Some(report)) => report.to_string(),
            (true, None) => "its figures cannot be read".to_string(),
        };
        format!("{device}  {}, process {}\n  {state}\n", note.target, note.pid)
    });
    print(&lines.collect::<String>())
}

#[cfg(target_os = "linux")]
fn detach(args: &DetachArgs) -> anyhow::Result<()> {
    let mut all = crate::attach::place::all(args.place.run_dir.as_deref());
    let names = |all: &[(_, crate::attach::place::Note)]| {
        let devices = all.iter().filter_map(|(_, note)| note.device.as_ref());
        devices.map(|device| device.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let attached = names(&all);
    match &args.device {
        Some(device) => {
            all.retain(|(_, note)| note.device.as_deref() == Some(Path::new(device)));
            if all.is_empty() {
                let known = if attached.is_empty() { "nothing" } else { &attached };
                return Err(usage(format!("{device} is not attached ({known} is)")));
            }
        }
        None if args.all => {}
        None if all.len() > 1 => {
            return Err(usage(format!("several are attached; type one of {attached}, or --all")));
        }
        None if all.is_empty() => return Err(usage("nothing is attached")),
        None => {}
    }
    let mut failed = Vec::new();
    for (place, note) in &all {
        let name = note.device.as_deref().map_or(note.target.clone(), |device| device.display().to_string());
        match place.end(note) {
            Ok(()) => crate::say!("{name} is detached"),
            Err(error) => failed.push(format!("{name}: {}", crate::printable::chain(&error))),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(anyhow::anyhow!("{}", failed.join("\n"))) }
}

#[cfg(not(target_os = "linux"))]
fn attach(_: &AttachArgs) -> anyhow::Result<()> {
    Err(usage("only Linux has FUSE with loop devices; name the device as sim:NAME instead"))
}

#[cfg(not(target_os = "linux"))]
fn status(_: &StatusArgs) -> anyhow::Result<()> {
    print("nothing is attached\n")
}

#[cfg(not(target_os = "linux"))]
fn detach(_: &DetachArgs) -> anyhow::Result<()> {
    Err(usage("nothing is attached"))
}
