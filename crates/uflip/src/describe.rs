//! Facts as one line for a person, and times to go by.

use std::time::Duration;
use uflip_device::identity::{DeviceFacts, DeviceKind, HostFacts};
use uflip_device::{Bytes, EngineOptions, Overhead};

/// Size, model, serial, attachment, sectors and scheduler, as far as known.
pub fn device(f: &DeviceFacts) -> String {
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
        f.write_cache.clone(),
        f.backing_file.as_ref().map(|b| format!("over {b}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().filter(|w| !w.trim().is_empty()).collect();
    words.join(", ")
}

/// The same for a target, with what lies beneath a file.
pub fn target(name: &str, f: &DeviceFacts) -> String {
    let Some(file) = f.file.as_ref().filter(|_| f.kind == DeviceKind::File) else {
        return format!("{name}: {}", device(f));
    };
    let mut text = format!("{name}: a file of {}", f.size_bytes.unwrap_or(Bytes(0)));
    if let Some(fs) = &file.fs_type {
        text += &format!(" on {fs}");
    }
    if let Some(beneath) = &file.beneath {
        text += &format!(" on {}: {}", beneath.path, device(beneath));
    }
    text
}

/// The machine.
pub fn host(h: &HostFacts) -> String {
    let words = [
        h.hostname.clone(),
        h.cpu_model.clone(),
        h.cores.map(|n| format!("{n} cores")),
        h.governor.as_ref().map(|g| format!("governor {g}")),
        h.kernel.as_ref().map(|k| format!("kernel {k}")),
        h.load_average.map(|l| format!("load {:.2}", l[0])),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What measuring costs by itself.
pub fn overhead(o: &Overhead) -> String {
    format!(
        "a reading of the clock{} takes {:.0} ns, an IO that does nothing shows {:.0} ns, the loop {:.0} ns an IO",
        o.clock_source.as_ref().map(|c| format!(" ({c})")).unwrap_or_default(),
        o.clock_read_ns,
        o.empty_io_response_ns,
        o.empty_io_total_ns
    )
}

/// How the device is driven.
pub fn engine(e: &EngineOptions) -> String {
    format!("{}, {}, data {}", e.engine, e.buffering, e.data)
}

/// A time to go by, not to quote: whole seconds, minutes from two on.
pub fn round_time(time: Duration) -> String {
    let s = time.as_secs_f64().ceil() as u64;
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", s.div_ceil(60)),
        _ => format!("{} h", s.div_ceil(3600)),
    }
}
