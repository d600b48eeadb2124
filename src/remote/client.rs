//! One request at a time to one host: what was sent for certain, what perhaps, and what came back within bounds.

use std::fmt;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Method, RequestBuilder, Url};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind, Result};
use crate::mask::hex;

/// Bytes that an answer may have, other than a download.
const MAX_ANSWER: usize = 64 << 20;
/// Longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the endpoint is, and the token for it.
///
/// The token is wiped when dropped, and shown by nothing.
pub struct Endpoint {
    base: Url,
    token: Zeroizing<String>,
    /// The header that holds the token, if it is not `Authorization`.
    token_header: Option<HeaderName>,
    headers: Vec<(HeaderName, String)>,
    certificates: Vec<Certificate>,
}

/// Sends requests to one endpoint and to no other host.
pub struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    log: Log,
}

/// Told of every request.
pub type Log = std::sync::Arc<dyn Fn(&Exchange) + Send + Sync>;

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// All headers.
    pub headers: HeaderMap,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// No connection came about: nothing was sent.
    NotSent(String),
    /// The request may have been carried out.
    Unknown(String),
}

/// What a request came to, for the log. Holds neither bodies nor headers.
#[derive(Debug)]
pub struct Exchange {
    /// GET, HEAD, POST, PUT or DELETE.
    pub method: &'static str,
    /// Scheme, host and port.
    pub host: String,
    /// Without its query.
    pub path: String,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// From the first byte to the last.
    pub took: Duration,
    /// Bytes of the request's body, if they are known beforehand.
    pub sent: Option<u64>,
    /// Bytes of the answer's body.
    pub received: usize,
}

/// A look at an endpoint.
#[derive(Debug)]
pub struct Probe {
    /// Its answer.
    pub answer: Answer,
    /// SHA-256 of its certificate in hex digits, over https.
    pub certificate: Option<String>,
    /// Seconds by which this clock is ahead of the server's, if it says what time it has.
    pub skew: Option<i64>,
}

impl Endpoint {
    /// An endpoint by its base URL, with or without a final slash; https, unless it is on loopback.
    ///
    /// # Errors
    /// A URL that is none, or plain http to another machine.
    pub fn new(base_url: &str, token: Zeroizing<String>) -> Result<Self> {
        if token.is_empty() || HeaderValue::from_str(&token).is_err() {
            return Err(Error::new(ErrorKind::Key("the access token is empty or holds a control character".into())));
        }
        Self::open(base_url).map(|open| Self { token, ..open })
    }

    /// An endpoint whose requests bear what lets them in themselves.
    ///
    /// # Errors
    /// A URL that is none, or plain http to another machine.
    pub fn open(base_url: &str) -> Result<Self> {
        let mut base = Url::parse(base_url).map_err(|e| Error::usage(format!("the base URL is no URL: {e}")))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(Error::usage("the base URL must not hold a user or password"));
        }
        // It is written into the journal, and requests would not carry it.
        if base.query().is_some() || base.fragment().is_some() {
            return Err(Error::usage("the base URL must not hold a query or fragment"));
        }
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        match base.scheme() {
            "https" => {}
            "http" if is_loopback(&base) => {}
            _ => return Err(Error::usage("the base URL must be https, unless it is on loopback")),
        }
        let token = Zeroizing::default();
        Ok(Self { base, token, token_header: None, headers: Vec::new(), certificates: Vec::new() })
    }

    /// The same endpoint, where the token goes into this header.
    #[must_use]
    pub fn token_in(mut self, name: HeaderName) -> Self {
        self.token_header = Some(name);
        self
    }

    /// The same endpoint with another header on each request.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same endpoint, where these certificates in PEM are trusted beside those of the system.
    ///
    /// # Errors
    /// A text that holds none.
    pub fn trusting(mut self, pem: &[u8]) -> Result<Self> {
        let certificates = Certificate::from_pem_bundle(pem).ok().filter(|c| !c.is_empty());
        self.certificates = certificates.ok_or_else(|| Error::usage("there is no certificate in PEM in the file"))?;
        Ok(self)
    }

    /// Scheme, host and port.
    pub fn host(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// The URL below which everything is.
    pub fn base_url(&self) -> String {
        self.base.to_string()
    }

    /// What tells one account of the endpoint from another, for this task alone; nothing of the token can be read from it.
    pub fn account(&self, task: &str) -> String {
        let mut hash = Sha256::new();
        let fields = self.headers.iter().flat_map(|(name, value)| [name.as_str(), value]);
        for field in [task, &self.token].into_iter().chain(fields) {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        hex(&hash.finalize()[..8])
    }

    fn headers(&self) -> Result<HeaderMap, Failure> {
        let bad = |_| Failure::NotSent("a header holds a character that it cannot".into());
        let mut headers = HeaderMap::new();
        if !self.token.is_empty() {
            let bearer = Zeroizing::new(format!("Bearer {}", *self.token));
            let (name, value) = match &self.token_header {
                Some(name) => (name.clone(), &self.token),
                None => (AUTHORIZATION, &bearer),
            };
            let mut value = HeaderValue::from_str(value).map_err(bad)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), HeaderValue::from_str(value).map_err(bad)?);
        }
        Ok(headers)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({}, token ***)", self.host())
    }
}

impl Client {
    /// A client for this endpoint; `log` is told of every request.
    ///
    /// # Errors
    /// A system without certificates.
    pub fn new(endpoint: Endpoint, log: Log) -> Result<Self> {
        let http = http(&endpoint)?;
        Ok(Self { http, endpoint, log })
    }

    /// Scheme, host and port of the endpoint.
    pub fn host(&self) -> String {
        self.endpoint.host()
    }

    /// The URL below which everything is.
    pub fn base_url(&self) -> String {
        self.endpoint.base_url()
    }

    /// See [`Endpoint::account`].
    pub fn account(&self, task: &str) -> String {
        self.endpoint.account(task)
    }

    /// The access token, for a program that the user trusts with it.
    pub fn token(&self) -> &str {
        &self.endpoint.token
    }

    /// The URL of a path below the base URL, for messages.
    pub fn url(&self, path: &str) -> String {
        self.endpoint.base.join(path).map_or_else(|_| path.to_owned(), |url| url.to_string())
    }

    /// Sends a request and reads its whole answer, at most `deadline` long.
    ///
    /// # Errors
    /// No answer, or one that is too long or comes too late; a status is no error here.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        deadline: Duration,
        body: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, Failure> {
        self.send_for_head(method, path, deadline, body).await.map(|(answer, _)| answer)
    }

    /// As [`Client::send`], with the head of the answer.
    ///
    /// # Errors
    /// As there.
    pub async fn send_for_head(
        &self,
        method: Method,
        path: &str,
        deadline: Duration,
        body: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<(Answer, Head), Failure> {
        let mut received = Vec::new();
        let sent = self.exchange(method, path, deadline, body, |bytes| {
            if received.len() + bytes.len() > MAX_ANSWER {
                return Err(Failure::Unknown(format!("the answer is longer than {MAX_ANSWER} bytes")));
            }
            received.extend_from_slice(bytes);
            Ok(())
        });
        let head = sent.await?;
        Ok((Answer { status: head.status, body: self.clean(received), retry_after: head.retry_after }, head))
    }

    /// An answer without the token: some gateways repeat it in their errors.
    pub(super) fn clean(&self, mut received: Vec<u8>) -> Vec<u8> {
        let token = self.endpoint.token.as_bytes();
        if token.is_empty() {
            return received;
        }
        while let Some(at) = received.windows(token.len()).position(|w| w == token) {
            received.splice(at..at + token.len(), *b"***");
        }
        received
    }

    /// Looks at what stands at a path, and who it is that answers.
    ///
    /// # Errors
    /// No answer.
    pub async fn probe(&self, path: &str) -> Result<Probe, Failure> {
        const DEADLINE: Duration = Duration::from_secs(30);
        let url = self.endpoint.base.join(path).map_err(|e| Failure::NotSent(format!("no path: {e}")))?;
        let start = Instant::now();
        let (mut status, mut received) = (None, 0);
        let run = async {
            let request = self.http.get(url.clone()).headers(self.endpoint.headers()?);
            let mut answer = request.send().await.map_err(|e| failure(&e))?;
            status = Some(answer.status().as_u16());
            let date = answer.headers().get(DATE).and_then(|d| jiff::fmt::rfc2822::parse(d.to_str().ok()?).ok());
            let skew = date.map(|date| jiff::Timestamp::now().as_second() - date.timestamp().as_second());
            let tls = answer.extensions().get::<reqwest::tls::TlsInfo>();
            let certificate = tls.and_then(reqwest::tls::TlsInfo::peer_certificate).map(|der| hex(&Sha256::digest(der)));
            let retry_after = retry_after(answer.headers());
            let mut body = Vec::new();
            while let Some(bytes) = answer.chunk().await.map_err(|e| Failure::Unknown(chain(&e)))? {
                received += bytes.len();
                if received > MAX_ANSWER {
                    return Err(Failure::Unknown(format!("the answer is longer than {MAX_ANSWER} bytes")));
                }
                body.extend_from_slice(&bytes);
            }
            let answer = Answer { status: answer.status().as_u16(), body: self.clean(body), retry_after };
            Ok(Probe { answer, certificate, skew })
        };
        let done = tokio::time::timeout(DEADLINE, run).await.unwrap_or(Err(Failure::Unknown("no answer in time".into())));
        let (host, path) = (self.host(), url.path().to_owned());
        (self.log)(&Exchange { method: "GET", host, path, status, took: start.elapsed(), sent: Some(0), received });
        done
    }

    /// As [`Client::send`], but hands the body of the answer over in pieces.
    ///
    /// # Errors
    /// As [`Client::send`], and those of `take`.
    pub async fn exchange(
        &self,
        method: Method,
        path: &str,
        deadline: Duration,
        body: impl FnOnce(RequestBuilder) -> RequestBuilder,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Head, Failure> {
        let url = self.endpoint.base.join(path).map_err(|e| Failure::NotSent(format!("an id that no path can hold: {e}")))?;
        if url.origin() != self.endpoint.base.origin() {
            return Err(Failure::NotSent(format!("{} is not the endpoint", url.origin().ascii_serialization())));
        }
        let name = name(&method);
        let start = Instant::now();
        let (mut status, mut sent, mut received) = (None, None, 0);
        let run = async {
            let request = body(self.http.request(method, url.clone()).headers(self.endpoint.headers()?));
            let request = request.build().map_err(|e| Failure::NotSent(chain(&e)))?;
            let stated = request.headers().get(CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse().ok());
            sent = stated.or_else(|| request.body().map_or(Some(0), |b| b.as_bytes().map(|b| b.len() as u64)));
            let mut answer = self.http.execute(request).await.map_err(|e| failure(&e))?;
            status = Some(answer.status().as_u16());
            let retry_after = retry_after(answer.headers());
            while let Some(bytes) = answer.chunk().await.map_err(|e| Failure::Unknown(chain(&e)))? {
                received += bytes.len();
                take(&bytes)?;
            }
            Ok(Head { status: answer.status().as_u16(), retry_after, headers: std::mem::take(answer.headers_mut()) })
        };
        let late = Failure::Unknown(format!("no whole answer after {} s", deadline.as_secs()));
        let done = tokio::time::timeout(deadline, run).await.unwrap_or(Err(late));
        let (host, path) = (self.host(), url.path().to_owned());
        (self.log)(&Exchange { method: name, host, path, status, took: start.elapsed(), sent, received });
        done
    }
}

/// What sends requests: without redirects, retries or a pool, and by https alone where the endpoint is another machine.
pub(super) fn http(endpoint: &Endpoint) -> Result<reqwest::Client> {
    // Fails if it has been done already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("hmask/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A connection from the pool that the server has closed meanwhile looks as if the request had been carried out.
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
        .tls_info(true);
    if !endpoint.certificates.is_empty() {
        builder = builder.tls_certs_merge(endpoint.certificates.clone());
    }
    builder = if is_loopback(&endpoint.base) { builder.no_proxy() } else { builder.https_only(true) };
    builder.build().map_err(|e| Error::remote(format!("no client can be made: {}", chain(&e))))
}

/// A file as the body of a request, a piece at a time.
pub(super) fn body(file: std::fs::File) -> reqwest::Body {
    const PIECE: usize = 1 << 16;
    reqwest::Body::wrap_stream(tokio_util::io::ReaderStream::with_capacity(tokio::fs::File::from_std(file), PIECE))
}

impl Answer {
    /// Whether the request was carried out.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the service says of its error, in one line without control characters; nothing that could hold a token.
    pub fn reason(&self) -> String {
        const MAX: usize = 300;
        // The message of a 401 repeats letters of the token.
        let body = if self.status == 401 { None } else { serde_json::from_slice::<serde_json::Value>(&self.body).ok() };
        let message =
            body.as_ref().and_then(|b| b["error"]["message"].as_str().or(b["detail"].as_str()).or(b["message"].as_str()));
        let code = body.as_ref().and_then(|b| b["error"]["code"].as_str());
        let text = match (message, code) {
            (Some(message), Some(code)) => format!("{} ({code}): {message}", self.status),
            (Some(message), None) => format!("{}: {message}", self.status),
            _ => format!("status {}", self.status),
        };
        text.chars().filter(|c| !c.is_control()).take(MAX).collect()
    }

    /// The status, and the service's code for its error: nothing that could quote a table.
    pub fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let plain = |code: &str| code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect::<String>();
        match body["error"]["code"].as_str().map(plain) {
            Some(code) if self.status != 401 => format!("status {} ({code})", self.status),
            _ => format!("status {}", self.status),
        }
    }

    /// Whether the same request may be sent again: nothing was carried out, and it is not for want of money.
    pub fn may_retry(&self) -> bool {
        let final_429 = || {
            let body = serde_json::from_slice::<serde_json::Value>(&self.body).unwrap_or_default();
            body["error"]["code"] == "insufficient_quota" || body["error"]["type"] == "insufficient_quota"
        };
        self.retry_after.is_none_or(|wait| wait <= MAX_RETRY_AFTER) && (self.status == 503 || self.status == 429 && !final_429())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) | Self::Unknown(why) => f.write_str(why),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::HEAD => "HEAD",
        Method::DELETE => "DELETE",
        _ => "?",
    }
}

/// Only a connection that did not come about proves that nothing was sent (contract of reqwest: `is_connect`).
pub(super) fn failure(error: &reqwest::Error) -> Failure {
    if error.is_connect() { Failure::NotSent(chain(error)) } else { Failure::Unknown(chain(error)) }
}

/// An error with its causes, without the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut causes = vec![];
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.pop().unwrap_or_else(|| "the request failed".into())
}

/// `retry-after-ms`, or `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    if let Some(millis) = text(HeaderName::from_static("retry-after-ms")).and_then(|v| v.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text(RETRY_AFTER)?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    Some(Duration::try_from(date.timestamp() - jiff::Timestamp::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Zeroizing<String> {
        Zeroizing::new("sk-secret".into())
    }

    #[test]
    fn only_https_or_loopback_and_no_token_is_shown() {
        for good in ["https://api.openai.com/v1", "http://127.0.0.1:1/v1/", "http://[::1]:1", "http://localhost:1"] {
            let endpoint = Endpoint::new(good, token()).unwrap();
            assert!(endpoint.base.path().ends_with('/'));
            assert!(!format!("{endpoint:?}").contains("secret"));
        }
        for bad in [
            "http://api.openai.com/v1",
            "ftp://127.0.0.1",
            "nonsense",
            "https://user:pw@host/v1",
            "http://127.0.0.1.evil.example",
        ] {
            assert!(Endpoint::new(bad, token()).unwrap_err().is_usage(), "{bad}");
        }
        assert!(Endpoint::new("https://a", Zeroizing::new("a\nb".into())).is_err());
        assert!(Endpoint::new("https://a", Zeroizing::default()).is_err());
    }

    #[test]
    fn reasons_hold_no_token_and_no_control_characters() {
        let answer = |status, body: &str| Answer { status, body: body.into(), retry_after: None };
        let secret = r#"{"error":{"message":"Incorrect API key provided: sk-sec***ret.","code":"invalid_api_key"}}"#;
        assert_eq!(answer(401, secret).reason(), "status 401");
        assert_eq!(answer(400, "{\"error\":{\"message\":\"a\\u001b[31mb\",\"code\":null}}").reason(), "400: a[31mb");
        assert_eq!(answer(500, "<html>").reason(), "status 500");
        assert!(answer(429, "{}").may_retry());
        assert!(!answer(429, r#"{"error":{"code":"insufficient_quota"}}"#).may_retry());
        assert!(!Answer { status: 503, body: vec![], retry_after: Some(Duration::from_secs(121)) }.may_retry());
    }

    #[test]
    fn the_three_forms_of_retry_after() {
        let header = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            retry_after(&headers)
        };
        assert_eq!(header("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(header("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(header("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(header("retry-after", "-1"), None);
        assert_eq!(header("retry-after", "soon"), None);
    }
}
