//! `uflip plan`, and the plan options that `uflip run` shares with it.

use crate::args::{MethodArg, PlanArgs, PlanOptionArgs, PresetArg};
use crate::command::{fresh_seed, print, print_json};
use crate::describe::round_time;
use crate::progress::group_of;
use crate::session::{self, Needs};
use crate::target::{self, Access, Place, Target, Unnamed};
use crate::{printable, usage};
use serde::Serialize;
use std::time::Duration;
use uflip_device::safety::wear_note;
use uflip_device::{Bytes, EngineOptions, KeepAll, Nanos, RunLimits, Stop};
use uflip_measure::pattern::DEFAULT_IO_SIZE;
use uflip_measure::plan::BaselineMeans;
use uflip_measure::{
    Baseline, Basic, MicroBenchmark, Override, Pattern, Plan, PlanOptions, Preset, State, make_plan,
};

/// The time that the quick preset gets for its runs where no budget is typed;
/// with the scratch file it stays within two minutes.
pub const QUICK_BUDGET: Nanos = Nanos::from_secs(90);

/// What is wanted of a benchmark, where it is not left to what suits the target.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How thorough.
    pub preset: Option<Preset>,
    /// Where lengths and pause come from.
    pub method: MethodArg,
    /// Only these; all where empty.
    pub only: Vec<MicroBenchmark>,
    /// Only these; all where empty.
    pub baselines: Vec<Baseline>,
    /// Other values of a parameter.
    pub values: Vec<(MicroBenchmark, Vec<i64>)>,
    /// The state to begin with.
    pub state: Option<State>,
    /// IOSize.
    pub io_size: Bytes,
    /// How often each experiment is done.
    pub repeats: Option<u32>,
    /// Idle time between runs.
    pub pause_between: Option<Nanos>,
}

impl Wanted {
    /// Nothing in particular of this method.
    pub fn by(method: MethodArg) -> Wanted {
        Wanted {
            preset: None,
            method,
            only: Vec::new(),
            baselines: Vec::new(),
            values: Vec::new(),
            state: None,
            io_size: DEFAULT_IO_SIZE,
            repeats: None,
            pause_between: None,
        }
    }

    /// What was typed.
    ///
    /// # Errors
    /// [`crate::Usage`] with what to type instead.
    pub fn typed(args: &PlanOptionArgs) -> anyhow::Result<Wanted> {
        let preset = args.preset.map(|preset| match preset {
            PresetArg::Quick => Preset::Quick,
            PresetArg::Standard => Preset::Standard,
            PresetArg::Full => Preset::Full,
        });
        let baseline = |name: &String| name.parse().map_err(usage);
        Ok(Wanted {
            preset,
            method: args.method,
            only: args.only.iter().map(|name| name.parse().map_err(usage)).collect::<Result<_, _>>()?,
            baselines: args.baselines.iter().map(baseline).collect::<Result<_, _>>()?,
            values: args.values.iter().map(|text| parse_values(text)).collect::<Result<_, _>>()?,
            state: args.state,
            io_size: args.io_size,
            repeats: args.repeats,
            pause_between: args.pause_between,
        })
    }

    /// The plan options on this target.
    ///
    /// # Errors
    /// [`crate::Usage`] where the target cannot be brought to the state.
    pub fn options(&self, place: &Place, seed: u64) -> anyhow::Result<PlanOptions> {
        let suits = if place.virtual_time { Preset::Standard } else { Preset::Quick };
        let mut options = PlanOptions::new(self.preset.unwrap_or(suits));
        if place.virtual_time {
            // The paper's methodology (4.1) costs nothing here.
            options.state = State::Random;
        }
        if options.state == State::Random && self.method == MethodArg::Auto {
            options.state = State::Complete;
        }
        if self.state == Some(State::Trim) {
            place.may_be_trimmed()?;
        }
        options.state = self.state.unwrap_or(options.state);
        (options.target, options.seed) = (place.target.to_string(), seed);
        options.io_size = self.io_size;
        (options.only, options.baselines) = (self.only.clone(), self.baselines.clone());
        options.repeats = self.repeats.unwrap_or(options.repeats);
        options.pause_between_runs = self.pause_between.unwrap_or(options.pause_between_runs);
        for (micro, values) in &self.values {
            if !self.only.is_empty() && !self.only.contains(micro) {
                return Err(usage(format!(
                    "--values {}=… does nothing where --only leaves it out; leave one of the two away",
                    micro.name()
                )));
            }
            let values = Some(values.clone());
            options.overrides.insert(*micro, Override { values, ..Override::default() });
        }
        Ok(options)
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

/// What `--json` prints: a plan that `uflip run --plan` takes, with what is to be
/// said of it.
#[derive(Serialize)]
struct PlanFacts<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// Why `uflip run` would refuse; null where it would not.
    run_would_refuse: Option<String>,
    /// What of the plan is found by `uflip run` only.
    not_known_yet: &'a [&'static str],
}

/// What the automatic method finds out first.
const FOUND_BY_RUN: [&str; 5] =
    ["io_count and io_ignore of every run", PAUSE, "calibration runs", "bytes", "time"];
/// Which of it is known where it was typed.
const PAUSE: &str = "pause between runs";

/// Runs `uflip plan`.
///
/// # Errors
/// What is wrong with the arguments or the target.
pub fn plan(args: PlanArgs) -> anyhow::Result<()> {
    let target = Target::of_command(&args.target, Unnamed::ScratchFile, &args.typed)?;
    let place = target::locate(&target)?;
    let seed = args.plan.seed.unwrap_or_else(fresh_seed);
    let plan =
        make_plan(&Wanted::typed(&args.plan)?.options(&place, seed)?, place.geometry).map_err(usage)?;
    let by_run = |what: &&str| {
        args.plan.method == MethodArg::Auto && (*what != PAUSE || args.plan.pause_between.is_none())
    };
    let not_known_yet = &FOUND_BY_RUN.into_iter().filter(by_run).collect::<Vec<_>>()[..];
    let engine = EngineOptions { seed, ..EngineOptions::default() };
    let refused = session::refuse(&place, Needs::Plan(&plan), &engine, &args.consent.erase_device);
    let run_would_refuse = refused.err().map(|error| printable::chain(&error));
    if let Some(why) = &run_would_refuse {
        crate::say!("run would refuse: {why}");
    }
    if args.json {
        return print_json(&PlanFacts { plan: &plan, run_would_refuse, not_known_yet });
    }
    print(&as_text(&plan, &place, not_known_yet))
}

fn as_text(plan: &Plan, place: &Place, not_known_yet: &[&str]) -> String {
    let summary = plan.summary();
    let (mean, basis) = expected_mean(place);
    let ms = mean.as_millis_f64();
    let whole = plan.estimate(&BaselineMeans { sr: ms, rr: ms, sw: ms, rw: ms });
    let made = if place.is_to_be_made() { ", a scratch file to be made" } else { "" };
    let mut text = format!(
        "target     {}: {} in sectors of {}{made}\n\
         plan       preset {}, seed {}: {} runs, {} IOs\n\
         read       {}\n\
         written    {}\n",
        place.target,
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
    if plan.preset == Preset::Quick && !place.virtual_time && whole > QUICK_BUDGET {
        text += &format!(
            "           cut to the quick budget of {QUICK_BUDGET}; uflip run --budget gives it more\n"
        );
    }
    for (micro, runs) in runs_by_group(plan) {
        text += &format!("  {micro:13} {runs:5} runs\n");
    }
    if !not_known_yet.is_empty() {
        text += &format!(
            "not known yet: {}; the figures above are those of the preset's lengths, and uflip run finds its own \
             unless --method fixed is typed\n",
            not_known_yet.join(", ")
        );
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
        let name = group_of(run);
        match groups.iter_mut().find(|g| g.0 == name) {
            Some(group) => group.1 += 1,
            None => groups.push((name, 1)),
        }
    }
    groups
}

/// What an IO may take: 64 random reads tell where there is something to read,
/// else what disks of this kind usually take.
fn expected_mean(place: &Place) -> (Nanos, String) {
    let guess = if place.rotational == Some(true) { Nanos::from_millis(8) } else { Nanos::from_micros(200) };
    let assumed = (guess, "assumed; the target is not there to be asked".to_string());
    if place.is_to_be_made() || place.virtual_time {
        return assumed;
    }
    probe(place).map_or(assumed, |mean| (mean, "64 random reads took that on average".to_string()))
}

fn probe(place: &Place) -> Option<Nanos> {
    let mut opened = target::open(&place.target, Access::Read, EngineOptions::default(), None).ok()?;
    let io_size = Bytes((32 << 10).max(place.geometry.sector.0));
    let pattern = Pattern::Basic(Basic { ..Baseline::Rr.basic(io_size) }).resolve(place.geometry).ok()?;
    let keep = KeepAll::new(64);
    let stop = Stop::new();
    let limits = RunLimits { time: Some(Nanos::from_secs(2)), stop: &stop, sequence: None };
    let end = opened.device.run(pattern.streams(64, 1).ok()?, &keep, limits).ok()?;
    let total: u64 = keep.records().iter().map(|r| r.response().0).sum();
    (end.ios > 0).then(|| Nanos(total / end.ios))
}
