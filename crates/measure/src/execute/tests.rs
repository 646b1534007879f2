//! Order, resume, errors, stops and budgets, on a device in memory.
use super::*;
use crate::micro::MicroBenchmark;
use crate::plan::{PlanOptions, Preset, make_plan};
use crate::run::RtStats;
use std::collections::BTreeSet;
use std::sync::Mutex;
use uflip_device::{Bytes, Chunk, Geometry, IoRecord, Recorder, Stream};

const GEOMETRY: Geometry = Geometry { capacity: Bytes(64 << 20), sector: Bytes(512) };
const RESPONSE: Nanos = Nanos::from_micros(100);

/// Every IO takes [`RESPONSE`]; fails at IO number `fail_at` of all runs, and
/// asks to stop `ask` times at IO number `ask_at`.
struct Fake {
    clock: Nanos,
    virtual_time: bool,
    ios: u64,
    fail_at: u64,
    ask_at: (u64, u8),
    idled: Vec<Nanos>,
    limits: Vec<Option<Nanos>>,
}

impl Fake {
    fn new() -> Fake {
        let (idled, limits) = (Vec::new(), Vec::new());
        Fake { clock: Nanos(7), virtual_time: true, ios: 0, fail_at: u64::MAX, ask_at: (0, 0), idled, limits }
    }
}

impl Device for Fake {
    fn geometry(&self) -> Geometry {
        GEOMETRY
    }
    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        let start = self.clock;
        self.limits.push(limits.time);
        let mut end = RunEnd::default();
        let mut chunk = recorder.fresh();
        for io in streams.into_iter().flatten() {
            self.ios += 1;
            if self.ios == self.fail_at {
                return Err(DeviceError::Other("it broke".to_string()));
            }
            if self.ios == self.ask_at.0 {
                (0..self.ask_at.1).for_each(|_| {
                    limits.stop.ask();
                });
            }
            let submit = self.clock.saturating_sub(start);
            end.time_limit_hit = limits.time.is_some_and(|limit| submit >= limit);
            end.interrupted = limits.stop.now();
            if end.time_limit_hit || end.interrupted {
                break;
            }
            chunk.push(IoRecord::new(&io, 0, submit, RESPONSE));
            self.clock = io.arrival.due(self.clock) + RESPONSE;
            end.ios += 1;
        }
        recorder.finish(chunk);
        end.elapsed = self.clock.saturating_sub(start);
        Ok(end)
    }
    fn idle(&mut self, pause: Nanos, _: &Stop) {
        self.idled.push(pause);
        self.clock = self.clock + pause;
    }
    fn now(&self) -> Nanos {
        self.clock
    }
    fn is_virtual(&self) -> bool {
        self.virtual_time
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<IoRecord>>);

impl Recorder for Kept {
    fn fresh(&self) -> Chunk {
        Vec::with_capacity(64)
    }
    fn finish(&self, last: Chunk) {
        self.0.lock().unwrap().extend(last);
    }
}

#[derive(Default)]
struct Memory {
    kept: BTreeSet<u32>,
    outcomes: Vec<(u32, RunOutcome)>,
    begun: Option<u32>,
    abandoned: Vec<u32>,
    recorder: Kept,
    refuse: Option<u32>,
}

fn stats(n: u64) -> RtStats {
    RtStats {
        n,
        min_ns: None,
        max_ns: None,
        mean_ns: None,
        sd_ns: None,
        p50_ns: None,
        p90_ns: None,
        p95_ns: None,
        p99_ns: None,
        p999_ns: None,
        p9999_ns: None,
    }
}

impl Sink for Memory {
    fn has(&self, id: u32) -> bool {
        self.kept.contains(&id)
    }
    fn begin(&mut self, run: &RunSpec) -> Result<(), SinkError> {
        assert_eq!(self.begun, None, "a run was begun before the last one ended");
        self.begun = Some(run.id);
        self.recorder.0.lock().unwrap().clear();
        Ok(())
    }
    fn recorder(&self) -> &dyn Recorder {
        &self.recorder
    }
    fn commit(&mut self, run: &RunSpec, outcome: &RunOutcome) -> Result<RunStats, SinkError> {
        assert_eq!(self.begun.take(), Some(run.id));
        if self.refuse == Some(run.id) {
            return Err(SinkError("disk full".to_string()));
        }
        let n = self.recorder.0.lock().unwrap().len() as u64;
        assert_eq!(n, outcome.end.ios);
        self.kept.insert(run.id);
        self.outcomes.push((run.id, outcome.clone()));
        Ok(RunStats {
            running: stats(n),
            all: stats(n),
            by_pattern: Vec::new(),
            by_mode: Vec::new(),
            late: None,
        })
    }
    fn abandon(&mut self) {
        self.abandoned.extend(self.begun.take());
    }
}

fn plan(state: State) -> Plan {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = vec![MicroBenchmark::Order];
    options.state = state;
    options.baseline_io_count = 512;
    make_plan(&options, GEOMETRY).unwrap()
}

/// Executes and gives the result and the events in short.
fn go(
    plan: &Plan,
    device: &mut Fake,
    sink: &mut Memory,
    budget: Option<Budget>,
) -> (Result<Finished, ExecuteError>, Vec<String>) {
    let stop = Stop::new();
    let mut events = Vec::new();
    let mut note = |event: &Progress<'_>| {
        events.push(match event {
            Progress::RunStarted { spec, .. } => format!("run {}", spec.id),
            Progress::RunFinished { spec, stats, .. } => format!("done {} {}", spec.id, stats.all.n),
            Progress::Again { spec, attempt, .. } => format!("again {} {attempt}", spec.id),
            Progress::Pausing { nanos } => format!("pause {}", nanos.exact()),
            Progress::Resetting { state } => format!("reset {state}"),
        });
    };
    let mut reset = |_: ResetRequest, _: &mut dyn Device, _: &Stop| Ok(RunEnd::default());
    let control = Control { stop: &stop, budget, unix_now: || 42 };
    (execute(plan, device, sink, &mut reset, control, &mut note), events)
}

#[test]
fn steps_come_in_the_plans_order() {
    let plan = plan(State::Random);
    let (mut device, mut sink) = (Fake::new(), Memory::default());
    let (finished, events) = go(&plan, &mut device, &mut sink, None);
    let runs = plan.runs().count() as u32;
    let finished = finished.unwrap();
    assert_eq!((finished.done, finished.already_kept, finished.stopped), (runs, 0, false));
    let mut expected = Vec::new();
    for step in &plan.steps {
        match step {
            Step::Reset { state } => expected.push(format!("reset {state}")),
            Step::Pause { .. } => expected.push("pause 10ms".to_string()),
            Step::Run(spec) => {
                expected.push(format!("run {}", spec.id));
                expected.push(format!("done {} {}", spec.id, spec.io_count));
            }
        }
    }
    assert_eq!(events, expected);
    assert!(events.iter().filter(|e| e.starts_with("reset")).count() > 1, "the plan has resets inside");
    assert_eq!(sink.outcomes[0].1.started_unix_ns, None);
    assert_eq!(finished.elapsed, device.clock.saturating_sub(Nanos(7)));
}

#[test]
fn resume_does_what_is_missing_and_the_resets_that_needs() {
    let plan = plan(State::Random);
    let last = plan.runs().last().unwrap().id;
    let mut sink = Memory { kept: (0..last).collect(), ..Memory::default() };
    let (finished, events) = go(&plan, &mut Fake::new(), &mut sink, None);
    assert_eq!(finished.unwrap().already_kept, last);
    assert_eq!(events[0], "reset random");
    assert_eq!(events[1..], ["pause 10ms", &format!("run {last}"), &format!("done {last} 512")]);
    let (finished, events) = go(&plan, &mut Fake::new(), &mut sink, None);
    assert_eq!((finished.unwrap().done, events.len()), (0, 0));
}

#[test]
fn no_pause_before_the_first_run_of_a_resumed_plan() {
    let plan = plan(State::None);
    let mut sink = Memory { kept: (0..3).collect(), ..Memory::default() };
    let mut device = Fake { virtual_time: false, ..Fake::new() };
    let (finished, events) = go(&plan, &mut device, &mut sink, None);
    assert_eq!(events[..3], ["run 3", "done 3 512", "pause 10ms"]);
    assert_eq!(device.idled.len() as u32, finished.unwrap().done - 1);
}

/// A device in virtual time ends with its process: runs with gaps between them,
/// measured later, meet what they would have met, clock and IOs alike.
#[test]
fn in_virtual_time_kept_runs_are_done_again_in_their_places() {
    let tight = Some(Budget { total: Nanos::from_millis(900) });
    for (state, budget) in [(State::None, None), (State::Random, None), (State::None, tight)] {
        let plan = plan(state);
        let (mut device, mut whole) = (Fake::new(), Memory::default());
        let cut = go(&plan, &mut device, &mut whole, budget).0.unwrap().cut_short;
        assert_eq!(cut > 0, budget.is_some());
        let all: BTreeSet<u32> = plan.runs().map(|run| run.id).collect();
        let last = plan.runs().count() as u32 - 1;
        for missing in [vec![0], vec![3, 4], vec![1, last], (5..=last).collect()] {
            let kept = all.iter().copied().filter(|id| !missing.contains(id)).collect();
            let (mut again, mut sink) = (Fake::new(), Memory { kept, ..Memory::default() });
            let finished = go(&plan, &mut again, &mut sink, budget).0.unwrap();
            assert_eq!(finished.done as usize, missing.len());
            assert!(sink.outcomes.iter().all(|outcome| whole.outcomes.contains(outcome)), "{missing:?}");
            assert!(missing.contains(&last) == (again.ios == device.ios), "none after the last missing one");
        }
    }
}

#[test]
fn a_device_error_abandons_the_run_and_keeps_the_others() {
    let mut device = Fake { fail_at: 512 + 100, ..Fake::new() };
    let mut sink = Memory::default();
    let (result, _) = go(&plan(State::None), &mut device, &mut sink, None);
    assert!(matches!(result, Err(ExecuteError::Device { run: 1, .. })));
    assert_eq!((sink.kept, sink.abandoned), (BTreeSet::from([0]), vec![1]));
}

#[test]
fn a_run_that_cannot_be_kept_fails() {
    let mut sink = Memory { refuse: Some(2), ..Memory::default() };
    let (result, _) = go(&plan(State::None), &mut Fake::new(), &mut sink, None);
    assert_eq!(result.unwrap_err().to_string(), "run 2 cannot be kept: disk full");
}

#[test]
fn asked_once_it_ends_after_the_run() {
    let mut device = Fake { ask_at: (600, 1), ..Fake::new() };
    let mut sink = Memory::default();
    let (result, events) = go(&plan(State::None), &mut device, &mut sink, None);
    let finished = result.unwrap();
    assert_eq!((finished.done, finished.stopped), (2, true));
    assert_eq!(events.last().unwrap(), "done 1 512");
    assert!(sink.abandoned.is_empty());
}

#[test]
fn asked_twice_it_ends_at_once_and_forgets_the_run() {
    let mut device = Fake { ask_at: (600, 2), ..Fake::new() };
    let mut sink = Memory::default();
    let (result, _) = go(&plan(State::None), &mut device, &mut sink, None);
    let finished = result.unwrap();
    assert_eq!((finished.done, finished.stopped), (1, true));
    assert_eq!(sink.abandoned, [1]);
}

#[test]
fn a_budget_shortens_runs_in_virtual_time_as_in_real_time() {
    let plan = plan(State::None);
    let runs = plan.runs().count() as u64;
    let budget = Some(Budget { total: Nanos::from_millis(30 * runs) });
    let (mut device, mut sink) = (Fake { virtual_time: false, ..Fake::new() }, Memory::default());
    let (result, _) = go(&plan, &mut device, &mut sink, budget);
    // 30 ms a run less 10 ms of each of the pauses between, three times by IOs.
    let ios: u64 = plan.runs().map(|run| run.io_count).sum();
    let share =
        (30 * runs - 10 * (runs - 1)) as f64 * 3e6 * plan.runs().next().unwrap().io_count as f64 / ios as f64;
    assert_eq!(device.limits[0], Some(Nanos(share as u64)));
    assert!(device.limits.iter().all(|limit| limit.is_some_and(|l| l >= MIN_RUN_TIME)));
    let finished = result.unwrap();
    assert!(finished.cut_short > 0 && u64::from(finished.done) == runs);
    // Over the budget by the least time of each run at most.
    assert!(finished.elapsed <= Nanos::from_millis((30 + 20) * runs), "{}", finished.elapsed);
    let (result, _) = go(&plan, &mut Fake::new(), &mut Memory::default(), None);
    assert!(finished.elapsed.0 < result.unwrap().elapsed.0);
    assert_eq!(sink.outcomes[0].1.started_unix_ns, Some(42));

    let (mut in_virtual_time, mut sink) = (Fake::new(), Memory::default());
    let same = go(&plan, &mut in_virtual_time, &mut sink, budget).0.unwrap();
    assert_eq!((same, in_virtual_time.limits), (finished, device.limits));
}

#[test]
fn a_plan_with_a_broken_pattern_fails_before_the_device_is_touched() {
    let mut plan = plan(State::None);
    for step in &mut plan.steps {
        if let Step::Run(spec) = step {
            spec.work = crate::run::Work::Pattern("SR(io_size=1M, target_size=1K)".parse().unwrap());
        }
    }
    let (mut device, mut sink) = (Fake::new(), Memory::default());
    let (result, _) = go(&plan, &mut device, &mut sink, None);
    assert!(matches!(result, Err(ExecuteError::Pattern { run: 0, .. })));
    assert_eq!((device.ios, sink.begun), (0, None));
}

/// Long pauses and many IOs are known beforehand: where all runs together fit in
/// the budget, none is cut.
#[test]
fn a_budget_that_is_enough_cuts_no_run() {
    let mut options = PlanOptions::new(Preset::Quick);
    options.only = vec![MicroBenchmark::Pause, MicroBenchmark::Mix, MicroBenchmark::Order];
    let plan = make_plan(&options, GEOMETRY).unwrap();
    let (result, _) = go(&plan, &mut Fake::new(), &mut Memory::default(), None);
    let needed = result.unwrap().elapsed;
    let longest = plan.runs().map(waits).max().unwrap();
    let runs = plan.runs().count() as u64;
    assert!(longest.0 > 4 * needed.0 / runs, "one run waits far longer than the even share");
    let mut device = Fake { virtual_time: false, ..Fake::new() };
    let budget = Some(Budget { total: Nanos(needed.0 / 100 * 115) });
    let (result, _) = go(&plan, &mut device, &mut Memory::default(), budget);
    let finished = result.unwrap();
    assert_eq!((u64::from(finished.done), finished.cut_short), (runs, 0));
}

/// Has time taken from it in the first `bad` runs that it is asked for.
struct Disturbed {
    inner: Fake,
    bad: u32,
    asked: u32,
    incidents: Incidents,
    stop_asked: bool,
}

impl Disturbed {
    fn new(bad: u32) -> Disturbed {
        let incidents = Incidents { stopped: Some(Nanos::from_secs(3)), ..Incidents::default() };
        Disturbed { inner: Fake::new(), bad, asked: 0, incidents, stop_asked: false }
    }
}

impl Device for Disturbed {
    fn geometry(&self) -> Geometry {
        GEOMETRY
    }
    fn run(
        &mut self,
        streams: Vec<Stream>,
        recorder: &dyn Recorder,
        limits: RunLimits<'_>,
    ) -> Result<RunEnd, DeviceError> {
        let mut end = self.inner.run(streams, recorder, limits)?;
        self.asked += 1;
        if self.asked <= self.bad {
            end.incidents = self.incidents;
        }
        if self.stop_asked {
            limits.stop.ask();
        }
        Ok(end)
    }
    fn idle(&mut self, pause: Nanos, stop: &Stop) {
        self.inner.idle(pause, stop);
    }
    fn now(&self) -> Nanos {
        self.inner.now()
    }
    fn is_virtual(&self) -> bool {
        true
    }
}

fn go_disturbed(device: &mut Disturbed, sink: &mut Memory) -> (Finished, Vec<String>) {
    let (stop, mut events) = (Stop::new(), Vec::new());
    let mut note = |event: &Progress<'_>| match event {
        Progress::RunFinished { spec, .. } => events.push(format!("done {}", spec.id)),
        Progress::Again { spec, incidents, attempt } => {
            assert!(incidents.time_lost());
            events.push(format!("again {} {attempt}", spec.id));
        }
        Progress::Pausing { .. } => events.push("pause".to_string()),
        Progress::RunStarted { .. } | Progress::Resetting { .. } => {}
    };
    let mut reset = |_: ResetRequest, _: &mut dyn Device, _: &Stop| Ok(RunEnd::default());
    let control = Control { stop: &stop, budget: None, unix_now: || 42 };
    let finished = execute(&plan(State::None), device, sink, &mut reset, control, &mut note).unwrap();
    (finished, events)
}

#[test]
fn a_run_that_time_was_taken_from_is_measured_again_and_only_the_good_attempt_kept() {
    let (mut device, mut sink) = (Disturbed::new(2), Memory::default());
    let (finished, events) = go_disturbed(&mut device, &mut sink);
    let first = &sink.outcomes[0].1;
    assert_eq!((first.attempts, first.end.incidents), (3, Incidents::default()));
    assert_eq!(sink.outcomes[1].1.attempts, 1);
    assert_eq!(sink.abandoned, [0, 0]);
    assert_eq!(device.asked, finished.done + 2);
    // The first run of a plan has no pause before it, its repetition neither.
    assert_eq!(events[..4], ["again 0 2", "again 0 3", "done 0", "pause"]);
}

#[test]
fn where_no_attempt_is_good_the_last_is_kept_and_says_so() {
    let (mut device, mut sink) = (Disturbed::new(ATTEMPTS), Memory::default());
    go_disturbed(&mut device, &mut sink);
    let first = &sink.outcomes[0].1;
    assert_eq!((first.attempts, first.end.incidents), (ATTEMPTS, device.incidents));
}

#[test]
fn a_file_that_moved_is_no_reason_to_measure_again() {
    let mut device = Disturbed::new(1);
    device.incidents = Incidents { layout_changed: true, ..Incidents::default() };
    let mut sink = Memory::default();
    go_disturbed(&mut device, &mut sink);
    assert_eq!((sink.outcomes[0].1.attempts, sink.outcomes[0].1.end.incidents.layout_changed), (1, true));
}

#[test]
fn asked_to_stop_it_does_not_measure_again() {
    let mut device = Disturbed { stop_asked: true, ..Disturbed::new(1) };
    let mut sink = Memory::default();
    let (finished, _) = go_disturbed(&mut device, &mut sink);
    assert_eq!((device.asked, finished.done, finished.stopped), (1, 0, true));
    assert_eq!(sink.abandoned, [0]);
}

/// Written by versions that measured each run once.
#[test]
fn an_outcome_without_attempts_is_of_one() {
    let text = r#"{"end":{"ios":1,"elapsed":2,"time_limit_hit":false,"interrupted":false},"started":0,"started_unix_ns":null}"#;
    let outcome: RunOutcome = serde_json::from_str(text).unwrap();
    assert_eq!((outcome.attempts, outcome.end.incidents), (1, Incidents::default()));
    assert_eq!(serde_json::to_string(&outcome).unwrap(), text);
}
