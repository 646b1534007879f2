#!/usr/bin/env python3
"""What `uflip run --live` does to response times: runs with and without the
page, turn by turn, on the device that answers at once and on a scratch file.

Each round measures the same plan (same seed, so the same IOs) twice, the order
of the two changing from round to round; the page is drawn on a terminal of its
own (pty, 80 by 24). For each run of the plan the figures with the page are
divided by those without; printed are the medians of these ratios over runs and
rounds, with the middle half of them, and the same for a control: without the
page against without the page.

    cargo build --release && benches/live_cost.py --rounds 5
"""
import argparse, fcntl, json, os, pty, shutil, statistics, struct, subprocess, tempfile, termios, threading


def run(program, target, options, folder, live):
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    command = [program, "run", target, "-o", out, "--seed", "7", *options] + (["--live"] if live else [])
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    drawn = []

    def drain():
        try:
            while data := os.read(ours, 65536):
                drawn.append(len(data))
        except OSError:
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    done = subprocess.run(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    reader.join()
    os.close(ours)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {done.returncode}")
    with open(os.path.join(out, "runs.ndjson")) as lines:
        runs = {row["id"]: row["stats"]["running"] for row in map(json.loads, lines)}
    return runs, sum(drawn)


def show(name, figure, ratios):
    quarter = statistics.quantiles(ratios, n=4)
    print(f"  {name:<22}{figure:<9}{statistics.median(ratios):8.4f}  ({quarter[0]:.4f} to {quarter[2]:.4f})")


def case(program, title, target, options, rounds, folder):
    pairs = {"with / without": [], "without / without": []}
    drawn = 0
    for round_ in range(rounds):
        order = [("live", True), ("a", False), ("b", False)]
        order = order[round_ % 3:] + order[: round_ % 3]
        made = {}
        for key, live in order:
            made[key], bytes_ = run(program, target, options, folder, live)
            drawn += bytes_ if live else 0
        for key in made["a"]:
            pairs["with / without"].append((made["live"][key], made["a"][key]))
            pairs["without / without"].append((made["b"][key], made["a"][key]))
    print(f"{title}: {len(pairs['with / without'])} pairs of runs, {drawn // 1024} KiB drawn")
    for figure in ("mean_ns", "p50_ns", "p99_ns"):
        for name, all_ in pairs.items():
            show(name, figure, [a[figure] / b[figure] for a, b in all_ if a[figure] and b[figure]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default="target/release/uflip")
    parser.add_argument("--folder", default=".", help="where the scratch file is made")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="uflip-live-cost-", dir=args.folder)
    try:
        common = ["--method", "fixed", "--preset", "standard", "--pause-between", "0ms", "--state", "none"]
        null = common + ["--only", "pause", "--values", "pause=50us,100us,200us"]
        case(args.program, "null device, 50 to 200 us between IOs", "null:", null, args.rounds, folder)
        scratch = os.path.join(folder, "scratch.bin")
        disk = common + ["--only", "granularity", "--values", "granularity=4K,32K", "--scratch-size", "256M"]
        case(args.program, "scratch file, 4K and 32K IOs", scratch, disk, args.rounds, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
