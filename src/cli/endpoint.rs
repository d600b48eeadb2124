//! Who gets what is lent: what arguments and environment name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hmask::remote::client::{Client, Endpoint, Exchange, Log};
use hmask::remote::folder::Folder;
use hmask::remote::openai::{self, OpenAi, Terms};
use hmask::remote::target::Target;
use hmask::{Error, ErrorKind, Result};

use super::args::To;
use super::environ;
use super::key::{AZURE_TOKEN_VARIABLE, TOKEN_VARIABLE};
use super::print::Printer;

/// The variable that names the endpoint, and the endpoint without it.
pub(super) const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const BASE_URL: &str = "https://api.openai.com/v1";
/// The variable that names Azure's resource.
const AZURE_VARIABLE: &str = "AZURE_OPENAI_ENDPOINT";
/// Variables whose values go along as headers, where they are set.
const HEADERS: [(&str, &str); 2] = [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")];
/// What journals put before the URL of Azure's resource.
const AZURE: &str = "azure:";
/// What a journal says of a run whose endpoint ended with it.
pub(super) const LOCAL: &str = "local";
/// Bytes that a disk may be asked to take.
const ANY_SIZE: u64 = u64::MAX;

/// Somebody to lend to, of whom nothing has been asked yet.
pub(super) enum Recipient {
    /// An endpoint that speaks `OpenAI`'s API; whether it is Azure's.
    Api(Box<Endpoint>, bool),
    /// The embedded endpoint.
    Local,
    Folder(Folder),
    /// An object store, and certificates that are trusted.
    Store(String, Option<Vec<u8>>),
}

/// How somebody is to be lent to.
pub(super) struct Manner {
    /// How long an answer may take.
    pub patience: Duration,
    pub accept_expiry: bool,
    #[cfg_attr(not(feature = "objects"), expect(dead_code, reason = "no object store to ask"))]
    pub accept_versioning: bool,
    /// Bytes beyond which an upload goes in parts, where that is not the usual number.
    pub whole: Option<u64>,
}

impl Manner {
    /// That of a sweep or a look, which lends nothing.
    pub(super) fn plain(patience: Duration) -> Self {
        Self { patience, accept_expiry: false, accept_versioning: true, whole: None }
    }
}

/// Somebody to lend to, and how to speak with them.
pub(super) enum Other {
    Api(Box<OpenAi>),
    Store(Box<dyn Target>),
}

impl Other {
    pub(super) fn target(&self) -> &dyn Target {
        match self {
            Self::Api(api) => &**api,
            Self::Store(store) => &**store,
        }
    }

    /// The API, if that is what is spoken there.
    pub(super) fn api(&self) -> Option<&OpenAi> {
        match self {
            Self::Api(api) => Some(api),
            Self::Store(_) => None,
        }
    }
}

impl Recipient {
    /// Who is meant.
    ///
    /// # Errors
    /// No access token, or a URL that is none.
    pub(super) fn of(to: &To, ca_file: Option<&Path>) -> Result<Self> {
        let read = |file: &Path| std::fs::read(file).map_err(|e| Error::usage(format!("cannot read {}: {e}", file.display())));
        let (endpoint, azure) = match to {
            To::Local => return Ok(Self::Local),
            To::Store(url) if url.starts_with("file://") => return Folder::new(url).map(Self::Folder),
            // It stands in journal and manifest as it is.
            To::Store(url) if url.contains(['@', '?', '#']) => {
                return Err(Error::usage("the address of a store must hold no user, password, query or fragment"));
            }
            To::Store(url) => return Ok(Self::Store(url.clone(), ca_file.map(read).transpose()?)),
            To::OpenAi => (openai(None)?, false),
            To::Region(region) => (openai(Some(&format!("https://{region}.api.openai.com/v1")))?, false),
            To::Url(url) => (openai(Some(url))?, false),
            To::Azure(url) => (azure(url.as_deref())?, true),
        };
        let Some(file) = ca_file else { return Ok(Self::Api(Box::new(endpoint), azure)) };
        let endpoint = endpoint.trusting(&read(file)?).map_err(|e| e.in_file(file))?;
        Ok(Self::Api(Box::new(endpoint), azure))
    }

    /// Who it is that a journal names.
    ///
    /// # Errors
    /// As [`Recipient::of`].
    pub(super) fn of_journal(name: &str, ca_file: Option<&Path>) -> Result<Self> {
        if name == LOCAL {
            return Ok(Self::Local);
        }
        let to: To =
            name.parse().map_err(|_| Error::malformed(format!("a journal names {name:?}, which this hmask does not know")))?;
        Self::of(&to, ca_file)
    }

    /// As the journal names it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Api(endpoint, false) => endpoint.base_url(),
            Self::Api(endpoint, true) => format!("{AZURE}{}", endpoint.base_url()),
            Self::Local => LOCAL.into(),
            Self::Folder(folder) => folder.place(),
            Self::Store(url, _) => url.clone(),
        }
    }

    /// As messages and a policy name it: scheme, host and port, or scheme and bucket.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Api(endpoint, _) => endpoint.host(),
            Self::Local => "the embedded endpoint".into(),
            Self::Folder(folder) => folder.place(),
            Self::Store(url, _) => url.split('/').take(3).collect::<Vec<_>>().join("/"),
        }
    }

    /// Other servers that the environment names for such a store: any of them may be the one.
    fn servers(&self) -> Vec<String> {
        let Self::Store(url, _) = self else { return Vec::new() };
        let prefix = match url.split(':').next() {
            Some("s3") => "AWS_",
            Some("az") => "AZURE_",
            _ => "GOOGLE_",
        };
        let named = std::env::vars().filter(|(name, value)| name.starts_with(prefix) && !value.is_empty());
        let is_server = |name: &str| name.contains("ENDPOINT") || name.contains("BASE_URL");
        // These name who issues credentials, and Azure's models.
        let is_other = |name: &str| name.contains("METADATA") || name == AZURE_VARIABLE;
        let servers = named.filter(|(name, value)| is_server(name) && !is_other(name) && value.contains("://"));
        servers.map(|(_, value)| value).collect()
    }

    /// All that a policy must allow: the host, or the bucket and the server that it is on, without a scheme and with its port.
    pub(super) fn hosts(&self) -> Vec<String> {
        let bare = |url: &str| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            rest.split(['/', '?']).next().unwrap_or_default().to_owned()
        };
        let host = match self {
            Self::Folder(folder) => folder.place().trim_start_matches("file://").to_owned(),
            _ => bare(&self.host()),
        };
        std::iter::once(host).chain(self.servers().iter().map(|server| bare(server))).collect()
    }

    /// Whether what is lent is for a program that reads CSV and little else.
    pub(super) fn reads_csv(&self) -> bool {
        matches!(self, Self::Api(..) | Self::Local)
    }

    /// Bytes that it takes.
    pub(super) fn max_bytes(&self) -> u64 {
        match self {
            Self::Api(..) | Self::Local => openai::MAX_BYTES,
            Self::Folder(_) => ANY_SIZE,
            #[cfg(feature = "objects")]
            Self::Store(..) => hmask::remote::objects::MAX_BYTES,
            #[cfg(not(feature = "objects"))]
            Self::Store(..) => ANY_SIZE,
        }
    }

    /// Somebody to speak with. The embedded endpoint has to be started first.
    ///
    /// # Errors
    /// Settings that name nobody, or a system without certificates.
    pub(super) async fn connect(self, manner: &Manner, printer: &Arc<Printer>) -> Result<Other> {
        match self {
            Self::Api(endpoint, azure) => api(*endpoint, azure, manner, printer).map(Box::new).map(Other::Api),
            Self::Local => Err(Error::usage("the embedded endpoint is over")),
            Self::Folder(folder) => Ok(Other::Store(Box::new(folder))),
            Self::Store(url, certificates) => store(&url, certificates, manner, printer).await,
        }
    }
}

/// An object store, in builds that have them.
#[cfg(feature = "objects")]
async fn store(url: &str, certificates: Option<Vec<u8>>, manner: &Manner, printer: &Arc<Printer>) -> Result<Other> {
    use hmask::remote::objects::{Objects, Options};
    use hmask::remote::target::EXPIRY;
    let options = Options {
        settings: environ::named(&["AWS_", "AZURE_", "GOOGLE_"]),
        certificates,
        accept_versioning: manner.accept_versioning,
        life: Duration::from_secs(EXPIRY),
    };
    Ok(Other::Store(Box::new(Objects::connect(url, options, log(printer)).await?)))
}

#[cfg(not(feature = "objects"))]
#[expect(clippy::unused_async, reason = "the same calls as in builds that have them")]
async fn store(_: &str, _: Option<Vec<u8>>, _: &Manner, _: &Arc<Printer>) -> Result<Other> {
    Err(Error::usage("this build knows no object stores (feature objects)"))
}

/// The endpoint that the environment names, with its token.
pub(super) fn openai(url: Option<&str>) -> Result<Endpoint> {
    let no_token = || Error::new(ErrorKind::Key(format!("no access token: {TOKEN_VARIABLE} is not set")));
    let token = environ::secret_text(TOKEN_VARIABLE).ok_or_else(|| {
        no_token().hint(format!("export {TOKEN_VARIABLE}=…")).hint("--to local \"SELECT …\" to try without a third party")
    })?;
    let base = std::env::var(BASE_URL_VARIABLE).ok().filter(|u| !u.is_empty()).unwrap_or_else(|| BASE_URL.into());
    let mut endpoint = Endpoint::new(url.unwrap_or(&base), token)?;
    for (variable, name) in HEADERS {
        if let Ok(value) = std::env::var(variable) {
            endpoint = endpoint.header(name.parse().map_err(|_| Error::usage("no header name"))?, value);
        }
    }
    Ok(endpoint)
}

/// Azure's resource, by its version 1 API (Microsoft, "Azure `OpenAI` v1 API").
fn azure(url: Option<&str>) -> Result<Endpoint> {
    let named = std::env::var(AZURE_VARIABLE).ok().filter(|u| !u.is_empty());
    let url = url.map(str::to_owned).or(named).ok_or_else(|| {
        Error::usage(format!("no resource: {AZURE_VARIABLE} is not set")).hint("--to https://NAME.openai.azure.com")
    })?;
    let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.trim_end_matches('/').contains('/'));
    let url = if has_path { url } else { format!("{}/openai/v1/", url.trim_end_matches('/')) };
    let token = environ::secret_text(AZURE_TOKEN_VARIABLE).ok_or_else(|| {
        let error = Error::new(ErrorKind::Key(format!("no access key: {AZURE_TOKEN_VARIABLE} is not set")));
        error.hint(format!("export {AZURE_TOKEN_VARIABLE}=…"))
    })?;
    let header = "api-key".parse().map_err(|_| Error::usage("no header name"))?;
    Endpoint::new(&url, token).map(|endpoint| endpoint.token_in(header))
}

/// The API behind an endpoint, with each request logged.
pub(super) fn api(endpoint: Endpoint, azure: bool, manner: &Manner, printer: &Arc<Printer>) -> Result<OpenAi> {
    let mut terms = Terms::new(manner.patience);
    (terms.azure, terms.accept_expiry) = (azure, manner.accept_expiry);
    terms.whole = manner.whole.unwrap_or(terms.whole);
    Ok(OpenAi::new(Client::new(endpoint, log(printer))?, terms))
}

/// Logs each request.
pub(super) fn log(printer: &Arc<Printer>) -> Log {
    let printer = printer.clone();
    Arc::new(move |e: &Exchange| printer.exchange(e))
}

/// The embedded endpoint, in builds that have it.
#[cfg(feature = "analyse")]
pub(super) mod local {
    use std::path::{Path, PathBuf};

    use hmask::Result;
    use hmask::remote::client::Endpoint;
    pub(in crate::cli) use hmask::remote::sandbox::Sandbox;
    use zeroize::Zeroizing;

    pub(in crate::cli) fn folder(task: &str) -> PathBuf {
        Sandbox::folder(task)
    }

    pub(in crate::cli) async fn start(folder: &Path) -> Result<Sandbox> {
        Sandbox::start((std::net::Ipv4Addr::LOCALHOST, 0).into(), None, folder).await
    }

    pub(in crate::cli) fn endpoint(sandbox: &Sandbox) -> Result<Endpoint> {
        Endpoint::new(sandbox.base_url(), Zeroizing::new(sandbox.api_key().to_owned()))
    }

    pub(in crate::cli) async fn stop(sandbox: Sandbox) {
        sandbox.stop().await;
    }
}

#[cfg(not(feature = "analyse"))]
#[expect(clippy::unused_async, reason = "the same calls as in builds that have it")]
pub(super) mod local {
    use std::path::{Path, PathBuf};

    use hmask::remote::client::Endpoint;
    use hmask::{Error, Result};

    pub(in crate::cli) enum Sandbox {}

    pub(in crate::cli) fn folder(task: &str) -> PathBuf {
        std::env::temp_dir().join(task)
    }

    pub(in crate::cli) async fn start(_: &Path) -> Result<Sandbox> {
        std::future::ready(Err(Error::usage("this build has no embedded endpoint (feature analyse)"))).await
    }

    pub(in crate::cli) fn endpoint(sandbox: &Sandbox) -> Result<Endpoint> {
        match *sandbox {}
    }

    pub(in crate::cli) async fn stop(sandbox: Sandbox) {
        match sandbox {}
    }
}
