//! How a table is lent, to whom, and what the run leaves as proof.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::StateArgs;
use super::table::{FormArgs, KeyArgs, RunArgs, TableArgs};

/// The table that is lent, how it is masked, and to whom it goes.
#[derive(Args)]
pub(in crate::cli) struct LentArgs {
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
pub(super) const MODEL: &str = "gpt-5.6-terra";

#[derive(Args)]
#[command(mut_arg("files", |files| files.value_name("FILE> … <QUESTION").help(
    "The tables to lend, and behind them what to ask; with --to local SQL over the table `data`, of several over `data_1`, `data_2` …"
)))]
pub(in crate::cli) struct AskArgs {
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
pub(in crate::cli) enum Via {
    /// An object of the Files API
    #[default]
    Files,
    /// A file of the container alone
    Container,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Attach {
    #[default]
    Container,
    Message,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum UploadFormat {
    Csv,
    AsIs,
}

/// How a table is lent.
#[derive(Args)]
#[command(next_help_heading = "Loan")]
pub(in crate::cli) struct LoanArgs {
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
pub(in crate::cli) struct AcceptArgs {
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
pub(in crate::cli) struct EvidenceArgs {
    /// Write what was done as JSON. A loan always writes it [default then: a file of the task's name among the journals]
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Sign the manifest with this Ed25519 key in PEM (openssl genpkey -algorithm ed25519); MANIFEST.sig is written beside it
    #[arg(long, value_name = "FILE")]
    pub sign_key: Option<PathBuf>,
    #[command(flatten)]
    pub page: PageArgs,
}

/// The page that a manifest is shown as.
#[derive(Args)]
pub(in crate::cli) struct PageArgs {
    /// Write a page for the data protection officer
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Language of the page
    #[arg(long, value_enum, default_value_t, value_name = "LANGUAGE")]
    pub lang: LangArg,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(in crate::cli) enum LangArg {
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

/// Who gets it.
#[derive(Clone)]
pub(in crate::cli) enum To {
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
pub(in crate::cli) const STORES: [&str; 4] = ["s3://", "gs://", "az://", "file://"];

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
