//! What this process asks of the kernel for itself, above all where it serves a
//! device to others, and how it asks another process to end. Linux only;
//! elsewhere nothing is done.
//!
//! Source: prctl(2), `PR_SET_IO_FLUSHER` and `PR_SET_TIMERSLACK`; sched(7); libfuse's
//! issue 700 for why a server of block IO wants the first.

/// From `linux/prctl.h`.
#[cfg(target_os = "linux")]
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Marks the calling thread (and threads it makes from then on) as one that IO
/// depends on: memory it asks for is never won by writing to a device that it
/// serves itself. Gives false where the kernel refuses (it takes
/// `CAP_SYS_RESOURCE`).
#[cfg(target_os = "linux")]
pub fn serve_io() -> bool {
    // SAFETY: PR_SET_IO_FLUSHER takes four integers and touches no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1_u64, 0_u64, 0_u64, 0_u64) == 0 }
}

/// Makes timed waits of the calling thread end as close to their time as the
/// kernel can, instead of up to 50 µs later.
#[cfg(target_os = "linux")]
pub fn exact_timers() -> bool {
    // SAFETY: PR_SET_TIMERSLACK takes integers and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) == 0 }
}

/// Has the calling thread (and threads it makes from then on) run as soon as
/// it wakes, before all ordinary threads; where that is not allowed, at least
/// with the largest share of the processor. For threads that do little and
/// sleep otherwise: a time slice of somebody else is milliseconds.
#[cfg(target_os = "linux")]
pub fn be_prompt() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call, which only reads them; 0 is the
    // calling thread.
    let real_time = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &lowest) == 0 };
    // SAFETY: setpriority takes three integers and touches no memory.
    real_time || unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 }
}

/// Has the calling thread run only where others leave time. For threads that
/// show something while others measure.
#[cfg(target_os = "linux")]
pub fn be_modest() -> bool {
    // SAFETY: setpriority takes three integers and touches no memory.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) == 0 }
}

/// Has a write beyond the largest file that this process may make (`ulimit -f`)
/// come back as an error (EFBIG), like one to a full disk, instead of ending the
/// process on the spot.
#[cfg(unix)]
pub fn large_files_are_errors() {
    // SAFETY: SIG_IGN is no function; no handler runs, and no other part of the
    // process sets this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Asks process `pid` to end (SIGTERM). Gives false where there is none or it
/// belongs to somebody else.
#[cfg(unix)]
pub fn ask_to_end(pid: u32) -> bool {
    // 0 and negative numbers mean whole groups of processes.
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: kill takes two integers and touches no memory.
    pid > 0 && unsafe { libc::kill(pid, libc::SIGTERM) == 0 }
}

/// Whom a hang-up asks to stop.
#[cfg(unix)]
static HUNG_UP: std::sync::OnceLock<&'static crate::device::Stop> = std::sync::OnceLock::new();

#[cfg(unix)]
extern "C" fn hang_up(_: libc::c_int) {
    if let Some(stop) = HUNG_UP.get() {
        stop.ask_gently();
    }
}

/// True where whoever started this process wants it to outlive its terminal
/// (`nohup`).
#[cfg(unix)]
pub fn ignores_hang_up() -> bool {
    // SAFETY: an all-zero sigaction is a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action the call only writes `now`, which outlives it.
    let known = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now) == 0 };
    known && now.sa_sigaction == libc::SIG_IGN
}

/// Has hang-ups (SIGHUP) ignored from now on.
#[cfg(unix)]
pub fn ignore_hang_up() {
    // SAFETY: SIG_IGN is a disposition and no function is called.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Has each hang-up (SIGHUP) ask `stop` to end after the run in progress; more
/// of them ask for no more. The first `stop` that is named stays.
#[cfg(unix)]
pub fn on_hang_up(stop: &'static crate::device::Stop) {
    HUNG_UP.get_or_init(|| stop);
    // SAFETY: an all-zero sigaction is a valid value (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = hang_up as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler reads a cell that was filled before and changes an
    // atomic, which may be done in a handler; `action` outlives the call.
    unsafe { libc::sigaction(libc::SIGHUP, &raw const action, std::ptr::null_mut()) };
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub fn serve_io() -> bool {
    false
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub fn exact_timers() -> bool {
    false
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub fn be_prompt() -> bool {
    false
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub fn be_modest() -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn no_group_of_processes_is_ever_asked_to_end() {
        assert!(!super::ask_to_end(0) && !super::ask_to_end(u32::MAX));
    }

    #[test]
    fn timers_become_exact() {
        std::thread::spawn(|| {
            assert!(super::exact_timers());
            let slack = std::fs::read_to_string("/proc/thread-self/timerslack_ns");
            // Only newer kernels show it to the thread itself.
            if let Ok(slack) = slack {
                assert_eq!(slack.trim(), "1");
            }
        })
        .join()
        .expect("the thread ends well");
    }
}
