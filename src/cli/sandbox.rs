//! `hmask sandbox`: the embedded endpoint on its own, until a signal ends it.

use std::io::Write;
use std::process::ExitCode;

use hmask::remote::sandbox::Sandbox;
use hmask::{Error, Result};
use serde_json::json;

use super::args::SandboxArgs;
use super::print::Printer;
use super::process;

/// Runs the command.
pub(super) fn run(args: &SandboxArgs, printer: &Printer) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start the network", e))?;
    let mut signals = process::start_lending();
    runtime.block_on(async {
        let sandbox = Sandbox::start(args.listen, args.api_key.clone(), &Sandbox::folder(printer.task())).await?;
        let line = json!({"base_url": sandbox.base_url(), "api_key": sandbox.api_key()});
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|e| Error::io("cannot write", e))?;
        printer.info("the endpoint runs until a signal ends it; its data goes with it");
        // The sender lives as long as the process.
        let _ = signals.changed().await;
        sandbox.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
