//! What can be typed. Parsing has no side effects: nothing is read or opened here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hmask::table::TextEncoding;
use hmask::table::csv::{CsvOptions, Ragged};
use hmask::{Columns, Error, Missing, Result};

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

/// The table that is lent, how it is masked, and to whom it goes.
#[derive(Args)]
pub(super) struct LentArgs {
    /// The tables to lend
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub form: FormArgs,
    #[command(flatten)]
    pub key: KeyArgs,
    #[command(flatten)]
    pub loan: LoanArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The model that is asked unless another one is named.
const MODEL: &str = "gpt-5.6-terra";

#[derive(Args)]
#[command(mut_arg("files", |files| files.value_name("FILE> … <QUESTION").help(
    "The tables to lend, and behind them what to ask; with --to local SQL over the table `data`, of several over `data_1`, `data_2` …"
)))]
pub(super) struct AskArgs {
    #[command(flatten)]
    pub lent: LentArgs,
    /// Model
    #[arg(long, default_value = MODEL, value_name = "NAME", help_heading = "Loan")]
    pub model: String,
    /// What the model is told beforehand, instead of how the table is mounted and what pseudonyms are
    #[arg(long, value_name = "TEXT", help_heading = "Loan")]
    pub instructions: Option<String>,
    /// Memory of the container
    #[arg(long, default_value = "1g", value_parser = ["1g", "4g", "16g", "64g"], value_name = "SIZE", help_heading = "Loan")]
    pub memory: String,
    /// Host that the code in the container may reach; none by default
    #[arg(long, value_name = "HOST", help_heading = "Loan")]
    pub allow_domain: Vec<String>,
    /// Folder for the files that the answer makes
    #[arg(long, value_name = "DIR", help_heading = "Loan")]
    pub save_dir: Option<PathBuf>,
    /// Ask in this container, which stays; what was put into it is deleted. Without it a fresh one is made, and deleted
    #[arg(long, value_name = "ID", help_heading = "Loan")]
    pub container: Option<String>,
    /// How the table gets there: as an upload, or straight into the container
    #[arg(long, value_enum, default_value_t, value_name = "WAY", help_heading = "Loan")]
    pub via: Via,
    /// Where the model finds the table: in the container, for code to read, or in the message, where it reads the rows itself
    #[arg(long, value_enum, default_value_t, value_name = "PLACE", help_heading = "Loan")]
    pub attach: Attach,
    /// Have the answers stored, so that each question follows the one before with all that the model thought; deleted at the end
    #[arg(long, help_heading = "Loan")]
    pub chain: bool,
    /// Ask this after it, in the same container; may be repeated
    #[arg(long, value_name = "QUESTION", help_heading = "Loan")]
    pub step: Vec<String>,
    /// Show the answer as it comes
    #[arg(long, help_heading = "Loan")]
    pub stream: bool,
    /// Write the code that ran, to be looked through
    #[arg(long, value_name = "FILE", help_heading = "Loan")]
    pub save_code: Option<PathBuf>,
    /// Seconds to wait for the answer
    #[arg(long, default_value_t = 600, value_name = "SECONDS", help_heading = "Loan")]
    pub timeout: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Via {
    /// An object of the Files API
    #[default]
    Files,
    /// A file of the container alone
    Container,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Attach {
    #[default]
    Container,
    Message,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum UploadFormat {
    Csv,
    AsIs,
}

/// How a table is lent.
#[derive(Args)]
#[command(next_help_heading = "Loan")]
pub(super) struct LoanArgs {
    /// Who gets it: openai, openai:eu (or another region), azure, local, the base URL of an endpoint that speaks the same API; `lend` also <s3://BUCKET/PREFIX>, gs://…, <az://CONTAINER>/…, <file://DIR>
    #[arg(long, default_value = "openai", value_name = "TARGET")]
    pub to: To,
    /// What is sent: a CSV, or the table in its own format [default: csv to endpoints, as-is for NDJSON and to object stores]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub upload_format: Option<UploadFormat>,
    #[command(flatten)]
    pub accepts: AcceptArgs,
    /// Bytes beyond which an upload goes in parts; for tests
    #[arg(long, value_name = "BYTES", hide = true)]
    pub whole: Option<u64>,
    /// Certificates in PEM that are trusted beside those of the system
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Seconds to try the deletion of one thing
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub delete_for: u64,
    /// Send these columns though they hold originals of masked ones or other identifiers; noted in the manifest
    #[arg(long, value_name = "COLS")]
    pub accept_leaks: Option<String>,
    /// Mask and check, say what would be sent and where, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replace an existing manifest, signature or report
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub evidence: EvidenceArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

/// What is accepted of the other side.
#[derive(Args)]
#[command(next_help_heading = "Loan")]
pub(super) struct AcceptArgs {
    /// Lend it though the other side keeps it for longer than an hour, or does not say how long: the deletion alone ends the loan
    #[arg(long)]
    pub accept_expiry: bool,
    /// Lend it to a store that keeps deleted objects, or does not say whether it does
    #[arg(long)]
    pub accept_versioning: bool,
}

/// What a run leaves as proof.
#[derive(Args)]
#[command(next_help_heading = "Evidence")]
pub(super) struct EvidenceArgs {
    /// Write what was done as JSON. A loan always writes it [default then: a file of the task's name among the journals]
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Sign the manifest with this Ed25519 key in PEM (openssl genpkey -algorithm ed25519); MANIFEST.sig is written beside it
    #[arg(long, value_name = "FILE")]
    pub sign_key: Option<PathBuf>,
    /// Write a page for the data protection officer
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Language of the page
    #[arg(long, value_enum, default_value_t, value_name = "LANGUAGE")]
    pub lang: LangArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum LangArg {
    /// English
    #[default]
    En,
    /// French
    Fr,
}

impl From<LangArg> for hmask::report::Lang {
    fn from(lang: LangArg) -> Self {
        match lang {
            LangArg::En => Self::En,
            LangArg::Fr => Self::Fr,
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
    /// Write a page for the data protection officer
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Language of the page
    #[arg(long, value_enum, default_value_t, value_name = "LANGUAGE")]
    pub lang: LangArg,
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

fn time(text: &str) -> Result<std::time::Duration, String> {
    let span: jiff::SignedDuration = text.parse().map_err(|_| "it is no time such as 45s, 20m or 1h".to_owned())?;
    span.try_into().map_err(|_| "a time below zero".to_owned())
}

/// Who gets it.
#[derive(Clone)]
pub(super) enum To {
    OpenAi,
    /// `OpenAI` in one of its regions.
    Region(&'static str),
    /// Azure's resource at this URL, or at that of the environment.
    Azure(Option<String>),
    Local,
    Url(String),
    /// An object store or a folder.
    Store(String),
}

/// Regions with a host of their own (`OpenAI`'s Python client, `_data_residency`).
const REGIONS: [&str; 6] = ["us", "eu", "ae", "au", "in", "jp"];
/// Schemes of stores.
pub(super) const STORES: [&str; 4] = ["s3://", "gs://", "az://", "file://"];

impl std::str::FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "openai" => Ok(Self::OpenAi),
            "local" => Ok(Self::Local),
            "azure" => Ok(Self::Azure(None)),
            url if url.starts_with("https://") || url.starts_with("http://") => {
                let host = url.split('/').nth(2).unwrap_or_default();
                let is_azure = host.ends_with(".openai.azure.com") || host.ends_with(".services.ai.azure.com");
                Ok(if is_azure { Self::Azure(Some(url.into())) } else { Self::Url(url.into()) })
            }
            store if STORES.iter().any(|scheme| store.starts_with(scheme)) => Ok(Self::Store(store.into())),
            text => {
                if let Some(url) = text.strip_prefix("azure:") {
                    return Ok(Self::Azure(Some(url.into())));
                }
                let region = text.strip_prefix("openai:").and_then(|name| REGIONS.into_iter().find(|r| *r == name));
                let region = region.map(Self::Region);
                region.ok_or_else(|| {
                    format!(
                        "it is none of openai, openai:{}, azure, local, a URL, s3://, gs://, az:// and file://",
                        REGIONS.join("|")
                    )
                })
            }
        }
    }
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

/// How tables are read and which columns are masked.
#[derive(Args)]
#[command(next_help_heading = "Table")]
pub(super) struct TableArgs {
    /// Columns to mask, comma separated: names, #N, globs, paths such as contact.email and phones[]
    #[arg(long, short, value_name = "COLS")]
    pub columns: Option<String>,
    /// Policy that says what becomes of which column [default without -c: hmask.toml beside the input, or in a folder above it]
    #[arg(long, short, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Leave out all columns but these, masked or not
    #[arg(long, value_name = "COLS")]
    pub keep: Option<String>,
    /// Leave out all rows but those of which this condition in SQL holds, such as "age > 30"
    #[cfg(feature = "analyse")]
    #[arg(long = "where", value_name = "SQL")]
    pub filter: Option<String>,
    /// A listed column that the table does not have
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub missing: MissingArg,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How tables are read.
#[derive(Args)]
#[command(next_help_heading = "Table")]
pub(super) struct ReadingArgs {
    /// Format of the input, if name and content do not tell: csv, ndjson, parquet, arrow
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Delimiter of a CSV: one character, or tab. Default: the one of , ; tab | under which the columns are found
    #[arg(long, short, value_name = "CHAR", allow_hyphen_values = true)]
    pub delimiter: Option<String>,
    /// Quote of a CSV; '' if quotes mean nothing
    #[arg(long, default_value = "\"", value_name = "CHAR", allow_hyphen_values = true)]
    pub quote: String,
    /// Within quotes of a CSV, makes a letter of the character behind it (backslash dialects)
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub escape: Option<String>,
    /// Begins lines of a CSV that are passed over
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true)]
    pub comment: Option<String>,
    /// Encoding of a CSV, if no byte order mark sets it
    #[arg(long, default_value = "utf-8", value_name = "NAME")]
    pub encoding: String,
    /// The first record is data: columns are named by number
    #[arg(long)]
    pub no_header: bool,
    /// Lines before the header, kept as they are
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub skip_lines: usize,
    /// Leave these lines out of the output
    #[arg(long)]
    pub drop_preamble: bool,
    /// Bytes that a record of a CSV may have
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub max_record: u32,
    /// How many times larger than the compressed file its text may be, beyond 64 MiB
    #[arg(long, default_value_t = hmask::table::compress::MAX_RATIO, value_name = "N")]
    pub max_ratio: u32,
    /// Records with another number of fields than the header: refuse the file, or keep them without surplus fields
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub ragged: RaggedArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum MissingArg {
    /// An error, before anything is written
    #[default]
    Error,
    /// A warning
    Ignore,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum RaggedArg {
    #[default]
    Refuse,
    Keep,
}

/// What a pseudonym looks like and how far it carries.
#[derive(Args)]
#[command(next_help_heading = "Pseudonym")]
pub(super) struct FormArgs {
    /// Hex digits: 16 to 64, even [default: 16]
    #[arg(long, value_name = "N")]
    pub length: Option<usize>,
    /// Text before the digits; p_ keeps spreadsheets from reading a number
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Where the same value has the same pseudonym: stable, upload, recipient:NAME, project:NAME [default: stable]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Empty values: keep them, or hash the empty text [default: keep]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub empty: Option<EmptyArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EmptyArg {
    Keep,
    Hash,
}

/// Where the key comes from: `HMASK_KEY` or the file of `HMASK_KEY_FILE`, unless one of these says otherwise.
#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "these are the names of the options")]
#[command(next_help_heading = "Key")]
pub(super) struct KeyArgs {
    /// Environment variable that holds the key
    #[arg(long, value_name = "NAME", group = "key_source")]
    pub key_env: Option<String>,
    /// File that holds the key; one final newline is dropped
    #[arg(long, value_name = "FILE", group = "key_source")]
    pub key_file: Option<PathBuf>,
    /// Open file descriptor that gives the key
    #[arg(long, value_name = "N", group = "key_source")]
    pub key_fd: Option<u32>,
    /// Command that prints the key, such as a vault's client
    #[arg(long, value_name = "CMD", group = "key_source")]
    pub key_command: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Run")]
pub(super) struct RunArgs {
    /// Threads that hash [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Kernel of the hash: avx512, sha-ni, armv8, avx2, portable; for tests and benchmarks
    #[arg(long, value_name = "NAME", hide = true)]
    pub kernel: Option<String>,
    /// Progress bar
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub progress: ProgressArg,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressArg {
    /// On a terminal
    #[default]
    Auto,
    Always,
    Never,
}

impl TableArgs {
    /// The columns to mask, if they are named.
    pub(super) fn columns(&self) -> Result<Option<Columns>> {
        self.columns.as_deref().map(Columns::parse).transpose()
    }

    /// How to read a CSV.
    pub(super) fn csv_options(&self) -> Result<CsvOptions> {
        let missing = match self.missing {
            MissingArg::Error => Missing::Error,
            MissingArg::Ignore => Missing::Ignore,
        };
        Ok(CsvOptions { missing, ..self.reading.csv_options()? })
    }
}

impl ReadingArgs {
    /// How to read a CSV.
    pub(super) fn csv_options(&self) -> Result<CsvOptions> {
        let delimiter = self.delimiter.as_deref().map(character).transpose()?;
        let quote = if self.quote.is_empty() { None } else { Some(character(&self.quote)?) };
        let options = CsvOptions {
            encoding: TextEncoding::from_label(&self.encoding)?,
            no_header: self.no_header,
            skip_lines: self.skip_lines,
            drop_preamble: self.drop_preamble,
            max_record: self.max_record as usize,
            max_ratio: self.max_ratio,
            ragged: match self.ragged {
                RaggedArg::Refuse => Ragged::Refuse,
                RaggedArg::Keep => Ragged::Keep,
            },
            ..CsvOptions::default()
        };
        let optional = |c: &Option<String>| c.as_deref().map(character).transpose();
        options.dialect(delimiter, quote, optional(&self.escape)?, optional(&self.comment)?)
    }
}

impl ReadingArgs {
    /// Whether the table is written as few readers expect it.
    pub(super) fn has_own_dialect(&self) -> bool {
        self.no_header || self.quote != "\"" || self.escape.is_some() || self.comment.is_some()
    }
}

fn character(text: &str) -> Result<char> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        (_, Some(c), None) => Ok(c),
        _ => Err(Error::usage(format!("{text:?} is not one character"))),
    }
}
