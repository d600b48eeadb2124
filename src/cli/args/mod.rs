//! What can be typed. Parsing has no side effects: nothing is read or opened here.

mod loan;
mod table;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use loan::MODEL;
pub(super) use loan::*;
pub(super) use table::*;

/// Pseudonymise a table with keyed HMAC-SHA256, lend it for an hour, prove that it is gone.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Print a new key: 64 hex digits from the system's generator
    Keygen,
    /// Mask columns of a table: the same table out, with pseudonyms in their place
    Mask(MaskArgs),
    /// Mask a table, lend it for an hour at most, ask a question about it, fetch the answer, delete what was lent
    Ask(AskArgs),
    /// Mask a table, lend it for an hour at most, run a command with its id, delete it
    Lend(LendArgs),
    /// Does an original of a masked column still occur anywhere in a file? Exit code 1 if so
    Check(CheckArgs),
    /// Which columns of a table identify persons, without showing a value; writes a policy to start from
    Inspect(InspectArgs),
    /// How well rows hide among others: k-anonymity, unique rows, l-diversity; what masked columns still give away
    #[cfg(feature = "analyse")]
    Risk(RiskArgs),
    /// What stands between this machine and the endpoint: key, policy, proxy, DNS, TCP, TLS, clock, token, model, files, containers
    Doctor(DoctorArgs),
    /// Recompute what a manifest claims. Exit code 1 if something does not hold
    Verify(VerifyArgs),
    /// The pseudonyms of values, one a line from stdin, to find a person's rows in what was sent
    Token(TokenArgs),
    /// Delete whatever an interrupted run left, here or there
    Sweep(SweepArgs),
    /// Run the embedded endpoint that --to local uses; its first line on stdout is {"`base_url`", "`api_key`"}
    #[cfg(feature = "analyse")]
    Sandbox(SandboxArgs),
    /// Print the completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man,
}

#[derive(Args)]
pub(super) struct LogArgs {
    /// Form of messages on stderr
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORM")]
    pub log_format: LogFormat,
    /// Log each request: method, host, path, status, time, bytes
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// Say nothing but errors and warnings
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    #[default]
    Text,
    /// One JSON object a line, with time and task id
    Json,
}

#[derive(Args)]
pub(super) struct MaskArgs {
    /// Files to mask, or one folder of files; - is stdin
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where to write: a file, a folder for several files, - for stdout. Default: stdout into a pipe or file, else NAME.masked.EXT beside the input
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    /// Files of a folder that are no tables
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = "Folder")]
    pub others: OthersArg,
    /// Rename the Hive folders KEY=VALUE of a wanted column
    #[arg(long, help_heading = "Folder")]
    pub mask_partitions: bool,
    /// Take the I-th of N parts of the files, so that N machines share a folder
    #[arg(long, value_name = "I/N", help_heading = "Folder")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub evidence: EvidenceArgs,
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum OthersArg {
    /// Copy them as they are
    Copy,
    /// Leave them out
    Skip,
    /// Refuse the folder
    #[default]
    Error,
}

/// A part of many.
#[derive(Clone, Copy)]
pub(super) struct Shard {
    /// From 0.
    pub index: usize,
    pub of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse().ok()?)));
        match parts {
            Some((i, of)) if (1..=of).contains(&i) => Ok(Self { index: i - 1, of }),
            _ => Err("it is no part such as 2/3".into()),
        }
    }
}

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Who is meant: as for `lend`
    #[arg(long, default_value = "openai", value_name = "TARGET")]
    pub to: To,
    /// Certificates in PEM that are trusted beside those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Model
    #[arg(long, default_value = MODEL, value_name = "NAME")]
    pub model: String,
    /// Policy to be read [default: hmask.toml here, or in a folder above]
    #[arg(long, short, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Print the steps as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Args)]
pub(super) struct VerifyArgs {
    /// The manifest
    #[arg(value_name = "MANIFEST")]
    pub manifest: PathBuf,
    /// The table as it was
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The table as it was sent or written
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Key that the signature beside the manifest must fit, in PEM (openssl pkey -pubout)
    #[arg(long, value_name = "FILE")]
    pub public_key: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageArgs,
    /// Replace an existing page
    #[arg(long)]
    pub force: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Args)]
pub(super) struct TokenArgs {
    /// The column that the values are of
    #[arg(long, value_name = "COL")]
    pub column: String,
    /// Manifest of what was sent: pseudonyms are made as there
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    pub manifest: Option<PathBuf>,
    /// Policy: pseudonyms are made as it says
    #[arg(long, short, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub key: KeyArgs,
}

#[derive(Args)]
pub(super) struct StateArgs {
    /// Folder of the journals [default: hmask in $`XDG_STATE_HOME`, or in ~/.local/state]
    #[arg(long, value_name = "DIR", help_heading = "Loan")]
    pub state_dir: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct LendArgs {
    #[command(flatten)]
    pub lent: LentArgs,
    /// Command to run while it is lent, behind --; it finds `HMASK_FILE_ID` (of several `HMASK_FILE_IDS`), `HMASK_FILE_NAME`, `HMASK_FILE_EXPIRES_AT` and `HMASK_BASE_URL`
    #[arg(last = true, required_unless_present_any = ["hold", "dry_run"], value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
    /// Without a command: print the id and wait for Enter, a signal, or this time (20m, 45s)
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "command")]
    pub hold: Option<std::time::Duration>,
    /// Give the command the endpoint's access token, too
    #[arg(long)]
    pub pass_token: bool,
}

#[derive(Args)]
pub(super) struct CheckArgs {
    /// The file to look through: a table, or any text
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The table whose columns were masked
    #[arg(long, value_name = "SOURCE")]
    pub from: PathBuf,
    #[command(flatten)]
    pub table: TableArgs,
    /// Also look for identifiers that no masked column has: e-mail addresses, telephone numbers, IBAN, card and social security numbers
    #[arg(long)]
    pub identifiers: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Args)]
pub(super) struct InspectArgs {
    /// The table; - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write a policy in which every column is listed; - for stdout
    #[arg(long, value_name = "FILE")]
    pub write_policy: Option<PathBuf>,
    /// Replace an existing policy
    #[arg(long)]
    pub force: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[cfg(feature = "analyse")]
#[derive(Args)]
pub(super) struct RiskArgs {
    /// The table, masked or not
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Columns that identify together, such as a date of birth and a postcode
    #[arg(long, value_name = "COLS")]
    pub quasi: Option<String>,
    /// A column whose values should differ within each group
    #[arg(long, value_name = "COL")]
    pub sensitive: Option<String>,
    /// Columns that are, or will be, masked: what gives them away all the same
    #[arg(long, short, value_name = "COLS")]
    pub columns: Option<String>,
    /// Policy with thresholds and quasi-identifiers, where the flags do not say them
    #[arg(long, short, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Least number of rows that must be alike; exit code 1 if there are fewer
    #[arg(long, value_name = "N")]
    pub min_k: Option<u64>,
    /// Greatest share of rows that are like no other, 0 to 1; exit code 1 if there are more
    #[arg(long, value_name = "SHARE")]
    pub max_unique_share: Option<f64>,
    /// Least number of different sensitive values in a group; exit code 1 if there are fewer
    #[arg(long, value_name = "N", requires = "sensitive")]
    pub min_l: Option<u64>,
    /// Hex digits of the pseudonyms
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub length: usize,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Args)]
pub(super) struct SweepArgs {
    /// Say what would be looked for, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also runs of other machines that share the folder of the journals
    #[arg(long)]
    pub all_hosts: bool,
    /// Only runs that began at least so long ago (1h, 20m)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub older_than: Option<std::time::Duration>,
    /// Recipient of runs whose journal does not say it: as for `lend`
    #[arg(long, default_value = "openai", value_name = "TARGET")]
    pub to: To,
    /// Certificates in PEM that are trusted beside those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Seconds to try the deletion of one thing
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub delete_for: u64,
    #[command(flatten)]
    pub state: StateArgs,
}

#[cfg(feature = "analyse")]
#[derive(Args)]
pub(super) struct SandboxArgs {
    /// Loopback address and port; port 0 takes any
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: std::net::SocketAddr,
    /// Token that clients must send; a random one by default
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
}

fn time(text: &str) -> Result<std::time::Duration, String> {
    let span: jiff::SignedDuration = text.parse().map_err(|_| "it is no time such as 45s, 20m or 1h".to_owned())?;
    span.try_into().map_err(|_| "a time below zero".to_owned())
}
