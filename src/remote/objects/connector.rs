//! What the `object_store` crate sends requests with: the same client as everything else, and the same hosts.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::signer::Url;

use crate::error::Result;
use crate::remote::client::{Endpoint, Exchange, Log, http};

/// How long a request may take.
const DEADLINE: Duration = Duration::from_mins(1);
/// Bytes that an answer may have.
const MAX_ANSWER: usize = 64 << 20;
/// Hosts that issue credentials to the machine that asks: link-local, and therefore without TLS.
const METADATA: [&str; 6] =
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]", "[fd00:ec2::23]", "metadata.google.internal"];
/// Hosts that issue credentials, by how their names end.
const ISSUERS: [&str; 7] = [
    "sts.amazonaws.com",
    ".amazonaws.com",
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.chinacloudapi.cn",
    "oauth2.googleapis.com",
    "iamcredentials.googleapis.com",
];

/// Makes the client once the store's host is known.
pub(super) struct Connector {
    log: Log,
    /// Certificates in PEM that are trusted beside those of the system.
    certificates: Option<Vec<u8>>,
    open: OnceLock<(reqwest::Client, Url)>,
    /// Where the store is taken to be, before it has said so itself.
    expected: OnceLock<Url>,
}

/// A handle to it, as the crate wants one.
#[derive(Debug, Clone)]
pub(super) struct Handle(pub std::sync::Arc<Connector>);

impl Connector {
    pub(super) fn new(log: Log, certificates: Option<Vec<u8>>) -> Self {
        Self { log, certificates, open: OnceLock::new(), expected: OnceLock::new() }
    }

    /// The store's host, if its settings name it.
    pub(super) fn expect(&self, store: Url) {
        let _ = self.expected.set(store);
    }

    /// The client for a request to this place.
    fn client(&self, url: &Url) -> Result<reqwest::Client> {
        // Who issues credentials to a machine answers on the machine's own network: no TLS, no proxy.
        if METADATA.contains(&url.host_str().unwrap_or_default()) {
            return http(&Endpoint::open("http://127.0.0.1/")?);
        }
        if let Some((client, store)) = self.open.get()
            && store.origin() == url.origin()
        {
            return Ok(client.clone());
        }
        let endpoint = Endpoint::open(&format!("{}/", url.origin().ascii_serialization()))?;
        match &self.certificates {
            Some(pem) => http(&endpoint.trusting(pem)?),
            None => http(&endpoint),
        }
    }

    /// From now on requests to this endpoint go through.
    pub(super) fn allow(&self, endpoint: &Endpoint, store: &Url) -> Result<()> {
        let client = http(endpoint)?;
        let _ = self.open.set((client, store.clone()));
        Ok(())
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Handle {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Whether a request may go there: to the store, or to somebody who issues credentials.
fn is_allowed(url: &Url, store: Option<&Url>) -> bool {
    let host = url.host_str().unwrap_or_default();
    let issuer = |end: &&str| host == *end || end.starts_with('.') && host.ends_with(*end) && host.starts_with("sts.");
    store.is_some_and(|s| s.origin() == url.origin())
        || METADATA.contains(&host)
        || url.scheme() == "https" && ISSUERS.iter().any(issuer)
}

#[async_trait]
impl HttpService for Handle {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let error = |kind, why: String| HttpError::new(kind, std::io::Error::other(why));
        let (parts, body) = request.into_parts();
        let url: Url = parts.uri.to_string().parse().map_err(|_| error(HttpErrorKind::Unknown, "no URL".into()))?;
        let store = self.0.open.get().map(|(_, store)| store).or(self.0.expected.get());
        if !is_allowed(&url, store) {
            return Err(error(HttpErrorKind::Unknown, format!("{} is not to be asked", url.origin().ascii_serialization())));
        }
        let client = self.0.client(&url).map_err(|e| error(HttpErrorKind::Unknown, e.to_string()))?;
        let bytes = body.as_bytes().cloned().unwrap_or_default();
        let sent = bytes.len() as u64;
        let start = Instant::now();
        let (mut status, mut received) = (None, 0);
        let run = async {
            let mut answer = client.request(parts.method.clone(), url.clone()).headers(parts.headers).body(bytes).send().await?;
            status = Some(answer.status());
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await? {
                body.extend_from_slice(&piece);
                if body.len() > MAX_ANSWER {
                    break;
                }
            }
            received = body.len();
            Ok::<_, reqwest::Error>((answer, body))
        };
        let done = tokio::time::timeout(DEADLINE, run).await;
        (self.0.log)(&Exchange {
            method: match parts.method.as_str() {
                "GET" => "GET",
                "PUT" => "PUT",
                "POST" => "POST",
                "HEAD" => "HEAD",
                "DELETE" => "DELETE",
                _ => "?",
            },
            host: url.origin().ascii_serialization(),
            path: url.path().to_owned(),
            status: status.map(|s| s.as_u16()),
            took: start.elapsed(),
            sent: Some(sent),
            received,
        });
        let (mut answer, body) = match done {
            Err(_) => return Err(error(HttpErrorKind::Timeout, "no answer in time".into())),
            Ok(Err(e)) if e.is_connect() => return Err(error(HttpErrorKind::Connect, "no connection".into())),
            Ok(Err(_)) => return Err(error(HttpErrorKind::Interrupted, "the connection broke".into())),
            Ok(Ok(done)) if done.1.len() > MAX_ANSWER => {
                return Err(error(HttpErrorKind::Decode, "the answer is too long".into()));
            }
            Ok(Ok(done)) => done,
        };
        let mut response = HttpResponse::new(HttpResponseBody::from(body));
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_store_and_who_issues_credentials() {
        let store = Url::parse("https://b.s3.eu-west-3.amazonaws.com/x").unwrap();
        for (url, want) in [
            ("https://b.s3.eu-west-3.amazonaws.com/y?list-type=2", true),
            ("http://b.s3.eu-west-3.amazonaws.com/y", false),
            ("https://other.s3.eu-west-3.amazonaws.com/y", false),
            ("https://sts.eu-west-3.amazonaws.com/", true),
            ("http://169.254.169.254/latest/meta-data", true),
            ("https://login.microsoftonline.com/t/oauth2", true),
            ("https://evil.example/", false),
            ("https://sts.evil.example/", false),
            ("https://evilsts.amazonaws.com.example/", false),
        ] {
            assert_eq!(is_allowed(&Url::parse(url).unwrap(), Some(&store)), want, "{url}");
        }
    }
}
