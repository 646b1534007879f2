//! A little client of Chromium's DevTools protocol over its pipe, for looking
//! at a page as a reader does: what it asks for, says, shows and answers to.
//!
//! Source: `--remote-debugging-pipe`, messages in JSON ended by a NUL, read by
//! the browser from descriptor 3 and written to descriptor 4.
#![allow(dead_code, reason = "each test binary uses some of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last_id: u64,
    session: Option<String>,
    /// Everything it told without being asked.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

impl Browser {
    /// Starts one; `None` where none is installed.
    pub fn start(width: u32, height: u32) -> Option<Browser> {
        let runs =
            |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        let name = NAMES.iter().find(runs)?;
        let profile = tempfile::tempdir().expect("a folder for the browser");
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", name])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a browser");
        let to = child.stdin.take().expect("its input");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let (send, from) = channel();
        std::thread::spawn(move || {
            for message in out.split(0) {
                let Ok(message) = message else { break };
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Browser { child, to, from, last_id: 0, session: None, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        Some(browser)
    }

    /// Asks and waits for the answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.from.recv_timeout(Duration::from_secs(120));
            let answer = answer.unwrap_or_else(|e| panic!("{method}: the browser is silent: {e}"));
            if answer["id"] == json!(self.last_id) {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file and waits until the page says it is ready; how long it took.
    pub fn open(&mut self, path: &Path) -> Duration {
        let start = Instant::now();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        self.wait_for("document.documentElement?.dataset.ready === 'true'");
        start.elapsed()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        while self.eval(expression) != json!(true) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "never true: {expression}\n{:#?}",
                self.complaints()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Presses and releases a key.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { json!(key) } else { Value::Null };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            other => other.bytes().next().unwrap_or(0),
        };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if !text.is_null() {
            down["text"] = text;
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
        );
    }

    /// A mouse event at a place of the window.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64, delta_y: f64) {
        let button = if kind == "mouseWheel" { "none" } else { "left" };
        let mut event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        if kind == "mouseWheel" {
            event["deltaX"] = json!(0);
            event["deltaY"] = json!(delta_y);
        }
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Errors and warnings of the console, exceptions and breaches of policy.
    pub fn complaints(&self) -> Vec<String> {
        let bad = |e: &&Value| match e["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                matches!(e["params"]["type"].as_str(), Some("error" | "warning"))
            }
            Some("Log.entryAdded") => e["params"]["entry"]["level"] != json!("verbose"),
            _ => false,
        };
        self.events.iter().filter(bad).map(|e| e["params"].to_string()).collect()
    }

    /// Every address that was asked for, data in the page itself apart.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|e| e["method"] == json!("Network.requestWillBeSent"));
        let url = asked.filter_map(|e| e["params"]["request"]["url"].as_str());
        url.filter(|u| !u.starts_with("data:")).map(str::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
