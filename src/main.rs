//! The command line of hmask. What it does is in the library; what it says, asks and returns is in [`cli`].

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
