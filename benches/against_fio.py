#!/usr/bin/env python3
"""fio as the second witness: the same pattern with fio and with uflip in turn.

    benches/against_fio.py [--rounds N] [--ios N] [--cases null,memory,…] [--small] [--uflip PATH]
    benches/against_fio.py --engine io_uring [--depths 1,8,32,128] [--pairs 15] [--device PATH] [--modes read,write] [--realtime]

Prints, per case, medians over the rounds of both programs and the median of the
rounds' ratios:
CPU time per IO, peak memory and bytes stored for the null engine, mean response
time for a file in memory, a loop device over memory (needs root) and a scratch
file in the current folder. fio runs with per-IO latency logs, as its users keep
every IO; the null case also runs it without any log. Cases that a machine
cannot do are skipped with a line that says why. --small is the short form that
the test suite runs. --engine io_uring compares the io_uring engines instead: pairs
of short runs, in turn first and second, of 4 KiB random reads or writes on a device in memory
(--device, which --modes write overwrites; else a new zram device, else a loop device over memory, both
need root), fio with registered files and buffers and a per-IO latency log; per
depth the median of the pairs' ratios of IOs a second and of mean latencies
(submission to completion), and its 95 % bootstrap interval. fio writes without --scramble_buffers: what
that changes in its buffers costs zram's compression twice as much time as bytes that are all random, as
ours are. --realtime runs both in the real-time class (SCHED_RR), so that other work on the machine
takes no processor from either. Exit code 0 even where a target is missed: it measures.
"""
import argparse, contextlib, json, os, random, shutil, statistics, subprocess, sys, tempfile, time


def real_time():
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def run(command, cwd, before=None):
    """CPU seconds, peak memory in KiB and standard output of one command; its process calls `before` first."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=subprocess.PIPE, preexec_fn=before)
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit {child.returncode}: {errors.decode()[-600:]}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss, out.read().decode()


def stored(folder, ending):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(ending))


def fio(target, mode, ios, size, engine, logs):
    with tempfile.TemporaryDirectory() as folder:
        command = ["fio", "--name=a", f"--ioengine={engine}", f"--rw={mode}", "--bs=4k", "--iodepth=1",
                   f"--size={size}", f"--io_size={ios * 4096}", "--norandommap", "--randrepeat=0",
                   "--output-format=json"]
        if target:
            command += [f"--filename={target}", "--direct=1", "--allow_file_create=0"]
        if logs:
            command += ["--write_lat_log=x", "--log_avg_msec=0"]
        cpu, peak, out = run(command, folder)
        part = json.loads(out[out.index("{"):])["jobs"][0]["read" if "read" in mode else "write"]
        done = part["total_ios"]
        return {"cpu_us": cpu / done * 1e6, "peak_mib": peak / 1024, "bytes": stored(folder, ".log") / done,
                "mean_us": part["clat_ns"]["mean"] / 1e3, "ios": done}


def uflip(program, target, base, ios, size, extra=()):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "pattern", target, "--base", base, "--io-size", "4K", "--target-size", f"{size}",
                   "--io-count", f"{ios}", "--records", "x.parquet", "--json", *extra]
        cpu, peak, out = run(command, folder)
        facts = json.loads(out)
        stats = facts["stats"]["running"]
        return {"cpu_us": cpu / stats["n"] * 1e6, "peak_mib": peak / 1024,
                "bytes": stored(folder, ".parquet") / stats["n"], "mean_us": stats["mean_ns"] / 1e3,
                "ios": stats["n"]}


def compare(title, rounds, contestants, keys, targets):
    """Runs the contestants in turn and prints medians and ratios."""
    rows = {name: [] for name, _ in contestants}
    for _ in range(rounds):
        for name, action in contestants:
            rows[name].append(action())
    print(f"\n{title}")
    print(f"  {'':28}" + "".join(f"{k:>12}" for k in keys))
    median = {n: {k: statistics.median(r[k] for r in rs) for k in keys} for n, rs in rows.items()}
    for name, _ in contestants:
        print(f"  {name:28}" + "".join(f"{median[name][k]:12.3f}" for k in keys))
    ours = contestants[-1][0]
    for peer, key, limit in targets:
        pairs = [(u[key], f[key]) for u, f in zip(rows[ours], rows[peer])]
        ratio = statistics.median(u / f if f else float("nan") for u, f in pairs)
        word = "met" if ratio <= limit else "MISSED"
        print(f"  {key} uflip / {peer}: {ratio:.3f} (target <= {limit}: {word})")
    sys.stdout.flush()


def null_case(o):
    size = 1 << 30
    compare(f"null device, 4 KiB random reads, QD1, {o.ios} IOs", o.rounds, [
        ("fio, no log", lambda: fio(None, "randread", o.ios, size, "null", False)),
        ("fio, latency logs", lambda: fio(None, "randread", o.ios, size, "null", True)),
        ("uflip, every IO kept", lambda: uflip(o.uflip, "null:", "RR", o.ios, size)),
    ], ["cpu_us", "peak_mib", "bytes", "mean_us"], [
        ("fio, latency logs", "cpu_us", 0.5), ("fio, no log", "cpu_us", 1.0),
        ("fio, latency logs", "peak_mib", 0.25), ("fio, latency logs", "bytes", 0.25)])


def path_case(o, title, fio_path, path, size, ios, extra=()):
    for mode, base in [("randread", "RR"), ("randwrite", "RW")]:
        compare(f"{title}, 4 KiB {mode}, QD1, {ios} IOs", o.rounds, [
            ("fio psync, latency logs", lambda: fio(fio_path, mode, ios, size, "psync", True)),
            ("uflip sync, every IO kept", lambda: uflip(o.uflip, path, base, ios, size, extra)),
        ], ["mean_us", "cpu_us", "bytes"], [("fio psync, latency logs", "mean_us", 1.0)])


def scratch(o, folder, size):
    """A scratch file made by uflip itself, and its like for fio: what fio wrote to is no scratch file any more."""
    path = os.path.join(folder, "against-fio.uflip-scratch")
    run([o.uflip, "pattern", path, "--base", "RR", "--io-count", "1", "--scratch-size", f"{size}"], folder)
    fio_path = os.path.join(folder, "against-fio.data")
    shutil.copyfile(path, fio_path)
    return fio_path, path


def loop_case(o, size):
    backing = tempfile.NamedTemporaryFile(dir="/dev/shm")
    backing.write(os.urandom(1 << 20) * (size >> 20))
    backing.flush()
    try:
        device = subprocess.run(["losetup", "-f", "--show", backing.name], check=True, capture_output=True,
                                text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"\nskipped: loop device over memory ({e})")
        return
    try:
        # What fio wrote is unknown to uflip.
        path_case(o, "loop device over memory", device, device, size, o.path_ios,
                  ["--erase-device", device + "+unknown-contents"])
    finally:
        subprocess.run(["losetup", "-d", device], check=False)


def fio_ring(o, device, mode, depth, ios, size):
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        contents = ["--readonly"] if mode == "read" else ["--scramble_buffers=0"]
        _, _, out = run(["fio", "--name=a", "--ioengine=io_uring", f"--rw=rand{mode}", "--bs=4k", f"--iodepth={depth}",
                         "--fixedbufs=1", "--registerfiles=1", "--direct=1", *contents, f"--filename={device}",
                         f"--size={size}", f"--io_size={ios * 4096}", "--norandommap", "--randrepeat=0",
                         "--write_lat_log=x", "--log_avg_msec=0", "--output-format=json"], folder, o.before)
        part = json.loads(out[out.index("{"):])["jobs"][0][mode]
        return part["iops"], part["lat_ns"]["mean"] / 1e3


def uflip_ring(o, device, mode, depth, ios, size):
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        # What fio wrote is unknown to uflip.
        base = ["RR"] if mode == "read" else ["RW", "--erase-device", device + "+unknown-contents"]
        _, _, out = run([o.uflip, "pattern", device, "--base", *base, "--io-size", "4K", "--target-size", f"{size}",
                         "--io-count", f"{ios}", "--engine", "io_uring", "--queue-depth", f"{depth}",
                         "--records", "x.parquet", "--json"], folder, o.before)
        facts = json.loads(out)
        return facts["end"]["ios"] / facts["end"]["elapsed"] * 1e9, facts["stats"]["all"]["mean_ns"] / 1e3


def memory_folder():
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def interval(values, draws=4000):
    """The middle 95 % of the medians of as many values drawn with replacement."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws * 25 // 1000], medians[draws * 975 // 1000 - 1]


def remove_zram(number, tries=20):
    """Those who look at a device that was closed (udev) hold it for a moment; what stays all the same is a note."""
    for attempt in range(tries):
        try:
            with open(f"/sys/block/zram{number}/reset", "w") as f:
                f.write("1")
            with open("/sys/class/zram-control/hot_remove", "w") as f:
                f.write(number)
            return
        except OSError as e:
            if attempt + 1 == tries:
                print(f"note: /dev/zram{number} is still there ({e}); "
                      f"echo {number} > /sys/class/zram-control/hot_remove")
            time.sleep(0.1)


@contextlib.contextmanager
def device_in_memory(size):
    """A new zram device filled with random bytes, else a loop device over memory; gone afterwards."""
    number, made = None, False
    try:
        with open("/sys/class/zram-control/hot_add") as f:
            number = f.read().strip()
        with open(f"/sys/block/zram{number}/disksize", "w") as f:
            f.write(f"{size}")
        with open(f"/dev/zram{number}", "wb") as f:
            for _ in range(size >> 20):
                f.write(os.urandom(1 << 20))
        made = True
        yield f"/dev/zram{number}"
        return
    except OSError as e:
        if made:
            raise
        print(f"note: no zram device ({e}); a loop device over memory instead, whose worker takes a core's share")
    finally:
        if number is not None:
            remove_zram(number)
    with tempfile.NamedTemporaryFile(dir=memory_folder()) as backing:
        for _ in range(size >> 20):
            backing.write(os.urandom(1 << 20))
        backing.flush()
        device = subprocess.run(["losetup", "-f", "--show", backing.name], check=True, capture_output=True,
                                text=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "-d", device], check=False)


def compare_rings(o, device, size):
    for mode in o.modes.split(","):
        for depth in [int(d) for d in o.depths.split(",")]:
            compare_depth(o, device, mode, depth, size)


def compare_depth(o, device, mode, depth, size):
    ios = o.ring_ios if depth > 1 else max(o.ring_ios // 2, 1)
    turns = {"fio": lambda: fio_ring(o, device, mode, depth, ios, size),
             "uflip": lambda: uflip_ring(o, device, mode, depth, ios, size)}
    rows = {"fio": [], "uflip": []}
    for pair in range(o.pairs):
        for name in ["fio", "uflip"] if pair % 2 == 0 else ["uflip", "fio"]:
            rows[name].append(turns[name]())
    print(f"\nio_uring on {device}, 4 KiB random {mode}s, queue depth {depth}, {ios} IOs, {o.pairs} pairs")
    for name, rs in rows.items():
        iops, latency = (statistics.median(r[i] for r in rs) for i in (0, 1))
        # Little's law: what is under way is the rate times the time each takes.
        under_way = statistics.median(r[0] * r[1] / 1e6 for r in rs)
        print(f"  {name:6} {iops:10.0f} IOs/s, mean latency {latency:9.2f} us, {under_way:.2f} under way")
    for i, what, goal, verdict in [(0, "IOs/s", ">= 0.98", lambda r: "met" if r >= 0.98 else "MISSED"),
                                   (1, "mean latency", "0.95 to 1.05", agreement)]:
        ratios = [u[i] / f[i] for u, f in zip(rows["uflip"], rows["fio"])]
        ratio, (low, high) = statistics.median(ratios), interval(ratios)
        print(f"  {what} uflip / fio: {ratio:.3f} ({low:.3f} to {high:.3f}; target {goal}: {verdict(ratio)})")
    sys.stdout.flush()


def agreement(ratio):
    """Of mean latencies. With as many under way, who does more IOs a second has the lower one."""
    return "MISSED" if ratio > 1.05 else "lower" if ratio < 0.95 else "met"


def ring_case(o):
    size = (16 << 20) if o.small else (256 << 20)
    try:
        if o.device:
            compare_rings(o, o.device, size)
        else:
            with device_in_memory(size) as device:
                compare_rings(o, device, size)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"\nskipped: no device in memory for io_uring ({e})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ios", type=int, default=5_000_000)
    parser.add_argument("--path-ios", type=int, default=100_000)
    parser.add_argument("--cases", default="null,memory,loop,scratch", help="which of null,memory,loop,scratch")
    parser.add_argument("--engine", choices=["sync", "io_uring"], default="sync")
    parser.add_argument("--depths", default="1,8,32,128")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--ring-ios", type=int, default=60_000)
    parser.add_argument("--device", help="a device in memory; --modes write overwrites it")
    parser.add_argument("--modes", default="read", help="which of read,write")
    parser.add_argument("--realtime", action="store_true", help="both in the real-time class")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--uflip", default=os.path.join(os.path.dirname(__file__), "../target/release/uflip"))
    o = parser.parse_args()
    o.uflip = os.path.abspath(o.uflip)
    o.before = real_time if o.realtime else None
    if o.small:
        o.rounds, o.ios, o.path_ios = 1, 20_000, 500
        o.pairs, o.ring_ios = 2, 1_000
    if not shutil.which("fio"):
        print("skipped: fio is not installed")
        return
    print(subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip(),
          "against", subprocess.run([o.uflip, "--version"], capture_output=True, text=True).stdout.strip(),
          "on", os.uname().release)
    if o.engine == "io_uring":
        ring_case(o)
        return
    size = (16 << 20) if o.small else (256 << 20)
    if "null" in o.cases:
        null_case(o)
    if "memory" in o.cases and os.path.isdir("/dev/shm"):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            path_case(o, "file in memory", *scratch(o, folder, size), size, o.path_ios)
    if "loop" in o.cases:
        loop_case(o, size)
    if "scratch" not in o.cases:
        return
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path_case(o, "scratch file on this disk", *scratch(o, os.path.abspath(folder), size), size,
                  max(o.path_ios // 10, 100))


if __name__ == "__main__":
    main()
