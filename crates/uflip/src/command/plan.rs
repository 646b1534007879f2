//! `uflip plan`, and the plan options that `uflip run` shares with it.

use crate::args::{MethodArg, PlanArgs, PlanOptionArgs, PresetArg};
use crate::command::{fresh_seed, print, print_json};
use crate::describe::round_time;
use crate::target::{self, Access, Place, SCRATCH};
use crate::usage;
use std::time::Duration;
use uflip_device::safety::wear_note;
use uflip_device::{Bytes, EngineOptions, KeepAll, Nanos, RunLimits, Stop};
use uflip_measure::plan::BaselineMeans;
use uflip_measure::{
    Baseline, Basic, MicroBenchmark, Override, Pattern, Plan, PlanOptions, Preset, State, make_plan,
};

/// The time that the quick preset gets for its runs where no budget is typed;
/// with the scratch file it stays within two minutes.
pub const QUICK_BUDGET: Nanos = Nanos::from_secs(90);

/// The plan options of what was typed.
///
/// # Errors
/// [`crate::Usage`] with what to type instead.
pub fn plan_options(
    args: &PlanOptionArgs,
    target: &str,
    place: &Place,
    seed: u64,
) -> anyhow::Result<PlanOptions> {
    let mut options = PlanOptions::new(preset(args, place));
    if place.virtual_time {
        // The paper's methodology (4.1) costs nothing here.
        options.state = State::Random;
    }
    if options.state == State::Random && args.method == MethodArg::Auto {
        options.state = State::Complete;
    }
    options.target = target.to_string();
    options.seed = seed;
    options.io_size = args.io_size;
    options.only = args.only.iter().map(|name| name.parse().map_err(usage)).collect::<Result<_, _>>()?;
    options.baselines =
        args.baselines.iter().map(|name| name.parse().map_err(usage)).collect::<Result<_, _>>()?;
    if let Some(state) = args.state {
        if state == State::Trim {
            place.may_be_trimmed()?;
        }
        options.state = state;
    }
    options.repeats = args.repeats.unwrap_or(options.repeats);
    options.pause_between_runs = args.pause_between.unwrap_or(options.pause_between_runs);
    for text in &args.values {
        let (micro, values) = parse_values(text)?;
        options.overrides.insert(micro, Override { values: Some(values), ..Override::default() });
    }
    Ok(options)
}

/// The preset that was typed, or what suits the target.
pub fn preset(args: &PlanOptionArgs, place: &Place) -> Preset {
    match args.preset {
        Some(PresetArg::Quick) => Preset::Quick,
        Some(PresetArg::Standard) => Preset::Standard,
        Some(PresetArg::Full) => Preset::Full,
        None if place.virtual_time => Preset::Standard,
        None => Preset::Quick,
    }
}

/// `granularity=4K,64K` as a micro-benchmark and its values.
fn parse_values(text: &str) -> anyhow::Result<(MicroBenchmark, Vec<i64>)> {
    let (name, values) = text
        .split_once('=')
        .ok_or_else(|| usage(format!("--values {text}: type NAME=V,V such as granularity=4K,64K")))?;
    let micro: MicroBenchmark = name.parse().map_err(usage)?;
    let row = micro.row();
    let parse = |value: &str| {
        (row.parse)(value).ok_or_else(|| {
            let like = (row.values)(Preset::Quick, row.curves[0], Bytes(32 << 10));
            let like: Vec<String> = like.iter().take(4).map(|v| (row.label)(*v).replace(' ', "")).collect();
            usage(format!(
                "'{value}' is no value of {}; type values such as {name}={}",
                row.parameter,
                like.join(",")
            ))
        })
    };
    Ok((micro, values.split(',').map(parse).collect::<Result<_, _>>()?))
}

/// True where the plan writes anything at all.
pub fn writes(plan: &Plan) -> bool {
    let summary = plan.summary();
    // Trims move no bytes and need the same leave.
    summary.write_bytes > Bytes(0)
        || summary.reset_bytes > Bytes(0)
        || plan.runs().any(|run| run.work.writes())
}

/// Runs `uflip plan`.
///
/// # Errors
/// What is wrong with the arguments or the target.
pub fn plan(args: PlanArgs) -> anyhow::Result<()> {
    let name = args.target.as_deref().unwrap_or(SCRATCH);
    let place = target::locate(name, args.plan.scratch_size)?;
    let options = plan_options(&args.plan, name, &place, args.plan.seed.unwrap_or_else(fresh_seed))?;
    let plan = make_plan(&options, place.geometry).map_err(usage)?;
    if args.json {
        return print_json(&plan);
    }
    let text = as_text(&plan, name, &place);
    if args.plan.method == MethodArg::Auto {
        return print(&format!(
            "{text}note: lengths and pause are the preset's; uflip run finds its own unless --method fixed is typed\n"
        ));
    }
    print(&text)
}

fn as_text(plan: &Plan, name: &str, place: &Place) -> String {
    let summary = plan.summary();
    let (mean, basis) = expected_mean(name, place);
    let ms = mean.as_millis_f64();
    let whole = plan.estimate(&BaselineMeans { sr: ms, rr: ms, sw: ms, rw: ms });
    let made = if place.to_be_made { ", a scratch file to be made" } else { "" };
    let mut text = format!(
        "target     {name}: {} in sectors of {}{made}\n\
         plan       preset {}, seed {}: {} runs, {} IOs\n\
         read       {}\n\
         written    {}\n",
        place.geometry.capacity,
        place.geometry.sector,
        plan.preset,
        plan.seed,
        summary.runs,
        summary.ios,
        summary.read_bytes,
        wear_note(Bytes(summary.write_bytes.0 + summary.reset_bytes.0), place.geometry.capacity),
    );
    if summary.resets > 0 {
        text +=
            &format!("resets     {} of the device's state, {} in all\n", summary.resets, summary.reset_bytes);
    }
    text += &format!(
        "time       about {} if every IO takes {mean} ({basis})\n",
        round_time(Duration::from(whole))
    );
    if plan.preset == Preset::Quick && whole > QUICK_BUDGET {
        text += &format!(
            "           cut to the quick budget of {QUICK_BUDGET}; uflip run --budget gives it more\n"
        );
    }
    for (micro, runs) in runs_by_group(plan) {
        text += &format!("  {micro:13} {runs:5} runs\n");
    }
    plan.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    plan.skipped.iter().for_each(|s| {
        text += &format!("skipped: {} {} {}: {}\n", s.micro_benchmark, s.baseline, s.label, s.reason);
    });
    text
}

fn runs_by_group(plan: &Plan) -> Vec<(String, usize)> {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for run in plan.runs() {
        let name = run.belongs.section().map_or_else(|| "baselines".into(), |section| section.to_string());
        match groups.iter_mut().find(|g| g.0 == name) {
            Some(group) => group.1 += 1,
            None => groups.push((name, 1)),
        }
    }
    groups
}

/// What an IO may take: 64 random reads tell where there is something to read,
/// else what disks of this kind usually take.
fn expected_mean(name: &str, place: &Place) -> (Nanos, String) {
    // Virtual disks call themselves rotating whatever they are.
    let turns = place.rotational == Some(true) && !place.summary.contains("virtio");
    let guess = if turns { Nanos::from_millis(8) } else { Nanos::from_micros(200) };
    let assumed = (guess, "assumed; the target is not there to be asked".to_string());
    if place.to_be_made || place.virtual_time {
        return assumed;
    }
    probe(name, place).map_or(assumed, |mean| (mean, "64 random reads took that on average".to_string()))
}

fn probe(name: &str, place: &Place) -> Option<Nanos> {
    let mut opened = target::open(name, Access::Read, EngineOptions::default(), Bytes(0), None).ok()?;
    let io_size = Bytes((32 << 10).max(place.geometry.sector.0));
    let pattern = Pattern::Basic(Basic { ..Baseline::Rr.basic(io_size) }).resolve(place.geometry).ok()?;
    let keep = KeepAll::new(64);
    let stop = Stop::new();
    let limits = RunLimits { time: Some(Nanos::from_secs(2)), stop: &stop };
    let end = opened.device.run(pattern.streams(64, 1).ok()?, &keep, limits).ok()?;
    let total: u64 = keep.records().iter().map(|r| r.response().0).sum();
    (end.ios > 0).then(|| Nanos(total / end.ios))
}
