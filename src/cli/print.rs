//! What is said on stderr, as text or as JSON lines. Data goes to stdout, and not through here.

use std::io::Write;

use hmask::Error;
use hmask::remote::client::Exchange;
use serde_json::json;

use super::args::{LogArgs, LogFormat};

/// Says things to the user, or to the program that called.
pub(super) struct Printer {
    format: LogFormat,
    quiet: bool,
    verbose: bool,
    task: String,
}

impl Printer {
    /// A printer for this run, which gets its task id.
    pub(super) fn new(args: &LogArgs) -> Self {
        Self { format: args.log_format, quiet: args.quiet, verbose: args.verbose, task: uuid::Uuid::now_v7().to_string() }
    }

    /// The id of this run, a `UUIDv7`: in each log line, the remote name and the manifest.
    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// Something that one wants to know.
    pub(super) fn info(&self, message: &str) {
        if !self.quiet {
            self.line("info", message, &[]);
        }
    }

    /// Something that one should know.
    pub(super) fn warn(&self, message: &str) {
        self.line("warning", message, &[]);
    }

    /// What ended the run.
    pub(super) fn error(&self, error: &Error) {
        self.line("error", &error.to_string(), error.hints());
    }

    /// A request, for those who want to see where everything went.
    pub(super) fn exchange(&self, exchange: &Exchange) {
        if self.verbose {
            let status = exchange.status.map_or_else(|| "no answer".into(), |s| s.to_string());
            let Exchange { method, host, path, took, sent, received, .. } = exchange;
            let sent = sent.map_or_else(|| "a stream".into(), |n| format!("{n} bytes"));
            let (took, task) = (took.as_millis(), &self.task);
            let line = format!("{method} {host}{path}: {status}, {took} ms, sent {sent}, received {received} bytes, task {task}");
            self.line("debug", &line, &[]);
        }
    }

    fn line(&self, level: &str, message: &str, hints: &[String]) {
        let text = match self.format {
            LogFormat::Text => {
                // Names of columns and files can hold anything, and a terminal obeys.
                let plain = |text: &str| {
                    let lines = text.split("\n    "); // as a policy's error shows the line that is meant
                    let clean =
                        |line: &str| line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
                    lines.map(clean).collect::<Vec<_>>().join("\n    ")
                };
                let (message, hints) = (plain(message), hints.iter().map(|h| plain(h)).collect::<Vec<_>>());
                let level = if level == "warning" { "warning: " } else { "" };
                let hints: String = hints.iter().map(|h| format!("hint: {h}\n")).collect();
                format!("hmask: {level}{message}\n{hints}")
            }
            LogFormat::Json => {
                let time = jiff::Timestamp::now().to_string();
                format!("{}\n", json!({"time": time, "level": level, "task": self.task, "message": message, "hints": hints}))
            }
        };
        // Without a stderr there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
