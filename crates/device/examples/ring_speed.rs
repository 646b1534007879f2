//! The io_uring loop alone: random 4 KiB reads of a block device or file with
//! O_DIRECT, nothing is written. Arguments: path, queue depth, IOs, runs (2).
//! `cargo run --release -p uflip-device --example ring_speed -- PATH 32 200000`

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use uflip_device::rng::Rng;
use uflip_device::stamp::Key;
use uflip_device::{
    Arrival, Bytes, Device, DeviceError, Engine, EngineOptions, Geometry, Io, KeepAll, Mode, RealDevice,
    RunLimits, Stop,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().expect("a path"));
    let queue_depth = args.next().map_or(32, |a| a.parse().expect("a queue depth"));
    let ios: u64 = args.next().map_or(200_000, |a| a.parse().expect("a number of IOs"));
    let size = {
        use std::io::Seek;
        let mut file = std::fs::File::open(&path).expect("the path opens");
        file.seek(std::io::SeekFrom::End(0)).expect("its end")
    };
    let geometry = Geometry { capacity: Bytes(size), sector: Bytes(4096) };
    let options =
        EngineOptions { engine: Engine::IoUring { queue_depth, poll: false }, ..EngineOptions::default() };
    let flags = options.buffering.open_flags();
    let opener = Box::new(move || {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        file.map_err(|e| DeviceError::Other(format!("{}: {e}", path.display())))
    });
    let mut device = RealDevice::new("it", geometry, options, Key::DEVICE, opener).expect("it opens");
    let stop = Stop::new();
    let runs: u32 = args.next().map_or(2, |a| a.parse().expect("runs"));
    for _ in 0..runs {
        let mut rng = Rng::new(7);
        let stream = (0..ios).map(move |_| Io {
            arrival: Arrival::CONSECUTIVE,
            offset: Bytes(rng.below(size / 4096) * 4096),
            size: 4096,
            mode: Mode::Read,
            pattern: 0,
        });
        let keep = KeepAll::new(ios as usize + 1);
        let limits = RunLimits { time: None, stop: &stop, sequence: None };
        let end = device.run(vec![Box::new(stream)], &keep, limits).expect("it runs");
        let mean = keep.records().iter().map(|r| r.response().0 as f64).sum::<f64>() / end.ios as f64;
        println!(
            "depth {queue_depth}: {:.0} IOs/s, mean response {:.2} us",
            end.ios as f64 / end.elapsed.0 as f64 * 1e9,
            mean / 1e3
        );
    }
}
