//! Who gets what is lent: the endpoint that arguments and environment name, or the embedded one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hmask::remote::client::{Client, Endpoint, Exchange};
use hmask::remote::openai::OpenAi;
use hmask::{Error, ErrorKind, Result};

use super::args::To;
use super::environ;
use super::key::TOKEN_VARIABLE;
use super::print::Printer;

/// The variable that names the endpoint, and the endpoint without it.
pub(super) const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const BASE_URL: &str = "https://api.openai.com/v1";
/// Variables whose values go along as headers, where they are set.
const HEADERS: [(&str, &str); 2] = [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")];

/// The endpoint that is meant; none for the embedded one.
///
/// # Errors
/// No access token, or a URL that is none.
pub(super) fn endpoint(to: &To, ca_file: Option<&Path>) -> Result<Option<Endpoint>> {
    let endpoint = match to {
        To::Local => return Ok(None),
        To::OpenAi => openai(None)?,
        To::Url(url) => openai(Some(url))?,
    };
    let Some(file) = ca_file else { return Ok(Some(endpoint)) };
    let pem = std::fs::read(file).map_err(|e| Error::usage(format!("cannot read {}: {e}", file.display())))?;
    endpoint.trusting(&pem).map(Some).map_err(|e| e.in_file(file))
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

/// The API behind an endpoint, with each request logged.
pub(super) fn api(endpoint: Endpoint, patience: Duration, printer: &Arc<Printer>) -> Result<OpenAi> {
    let logger = printer.clone();
    Ok(OpenAi::new(Client::new(endpoint, move |e: &Exchange| logger.exchange(e))?, patience))
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
