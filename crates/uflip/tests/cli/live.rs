//! The live page in a real terminal: tmux.

use crate::support::{expect, skipped, text, uflip, wait_until};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A terminal of 80 by 24 of its own.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// A shell in `folder`; None (said aloud) where there is no tmux.
    fn open(folder: &Path, name: &str) -> Option<Terminal> {
        let terminal = Terminal { socket: format!("uflip-{name}-{}", std::process::id()) };
        let started = terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "-c",
            folder.to_str()?,
            "sh",
        ]);
        if started.is_none() {
            skipped("tmux is not installed: the live page is not looked at");
        }
        started.map(|_| terminal)
    }

    fn tmux(&self, args: &[&str]) -> Option<String> {
        let output = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .ok()?;
        output.status.success().then(|| text(&output.stdout))
    }

    fn send(&self, keys: &[&str]) {
        let args: Vec<&str> = ["send-keys"].iter().chain(keys).copied().collect();
        self.tmux(&args).expect("keys are sent");
    }

    fn page(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).unwrap_or_default()
    }

    /// The first page with `part` in it; fails with the last one after a while.
    #[track_caller]
    fn wait_for(&self, part: &str) -> String {
        let began = Instant::now();
        loop {
            let page = self.page();
            if page.contains(part) {
                return page;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no '{part}' on\n{page}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

#[test]
fn the_page_moves_and_the_terminal_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(terminal) = Terminal::open(folder.path(), "live") else { return };
    let program = uflip().get_program().to_string_lossy().into_owned();
    terminal.send(&["echo BEFORE", "Enter"]);
    terminal.wait_for("BEFORE");
    // IOs of at least 2 ms each, so that a run can be watched.
    let command = format!(
        "{program} run null: -o out --live --method fixed --only pause --values pause=2ms --repeats 40 --seed 1; echo code=$?"
    );
    terminal.send(&[&command, "Enter"]);
    let page = terminal.wait_for("│");
    for part in ["uflip null:", "baselines", "pause", "run ", "mean ", "Ctrl-C ends"] {
        assert!(page.contains(part), "{part} is not on\n{page}");
    }
    assert!(!page.contains("BEFORE"), "the page has the whole terminal");
    terminal.wait_for("2 ms");
    let first = terminal.page();
    wait_until("the page moves", || terminal.page() != first);
    terminal.send(&["C-c"]);
    let after = terminal.wait_for("code=1");
    assert!(after.contains("BEFORE") && after.contains("interrupted"), "the screen is as it was:\n{after}");
    assert_eq!(
        terminal.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"]).as_deref(),
        Some("1 0\n")
    );
}

#[test]
fn without_a_terminal_there_is_no_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, err) = expect(folder.path(), 2, &["run", "null:", "--live"]);
    assert!(err.contains("--live needs a terminal"), "{err}");
}
