//! Object stores as somebody to lend to: S3, Azure Blob Storage, Google Cloud Storage.
//!
//! The `object_store` crate knows where a store is, who may use it, how requests are signed and how objects are listed; what is asked
//! before an upload, and by which version something is deleted, is `store`'s. All requests go through `connector` or [`Client`]: to the
//! store's host, or to one that issues credentials, and to no other.

mod connector;
mod store;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::signer::Url;
use reqwest::Method;
use tokio::sync::OnceCell;

use connector::Connector;
use store::{Keeps, Store};

use super::client::{Answer, Client, Endpoint, Failure, Head, Log, body};
use super::target::{CallError, EXPIRY, Seen, Step, Target, Upload, hidden_name, now};
use super::thing::{Thing, container_name};
use crate::error::{Error, Result};
use crate::gate::Cleared;

/// Bytes that one request may store: S3's limit, the least of the three.
pub const MAX_BYTES: u64 = 5 << 30;
/// How long a small request may take, and how long an upload.
const SMALL: Duration = Duration::from_mins(1);
const LARGE: Duration = Duration::from_hours(1);

/// How a store is to be used.
pub struct Options {
    /// Settings as the tools of each provider name them: `AWS_ACCESS_KEY_ID`, `AZURE_STORAGE_ACCOUNT_NAME`, `GOOGLE_SERVICE_ACCOUNT` …
    pub settings: Vec<(String, String)>,
    /// Certificates in PEM that are trusted beside those of the system.
    pub certificates: Option<Vec<u8>>,
    /// Whether a store may keep what is deleted.
    pub accept_versioning: bool,
    /// How long a signed address is good.
    pub life: Duration,
}

/// A place in an object store.
pub struct Objects {
    url: String,
    prefix: String,
    store: Store,
    client: Client,
    options: Options,
    keeps: OnceCell<Keeps>,
}

impl Objects {
    /// The place at `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. Nothing is sent, except where credentials have
    /// to be asked for.
    ///
    /// # Errors
    /// A URL or settings that name none.
    pub async fn connect(url: &str, options: Options, log: Log) -> Result<Self> {
        let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{url} names no place in an object store: {e}"));
        let parsed = Url::parse(url).map_err(|e| wrong(&e))?;
        let prefix = parsed.path().trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let connector = Arc::new(Connector::new(log.clone()));
        let store = Store::new(&parsed, &options.settings, connector.clone()).map_err(|why| wrong(&why))?;
        let any = store.url(&Path::from(format!("{prefix}hmask"))).await.map_err(|why| wrong(&why))?;
        let mut endpoint = Endpoint::open(&format!("{}/", any.origin().ascii_serialization()))?;
        if let Some(pem) = &options.certificates {
            endpoint = endpoint.trusting(pem)?;
        }
        connector.allow(&endpoint, &any)?;
        let client = Client::new(endpoint, log)?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), prefix, store, client, options, keeps: OnceCell::new() })
    }

    /// Sends a signed request without a body.
    async fn call(&self, method: Method, url: &Url) -> Result<(Answer, Head), Failure> {
        let request = self.store.signed(&method, url, Vec::new(), None).await.map_err(Failure::NotSent)?;
        self.client.send_for_head(method, url.as_str(), SMALL, |r| r.headers(request)).await
    }

    /// What the store keeps of what is deleted; asked once.
    async fn keeps(&self) -> Result<&Keeps, Failure> {
        let ask = async || {
            let Some(question) = self.store.question(&self.url_of("x").await.map_err(Failure::NotSent)?) else {
                return Ok(Keeps::default());
            };
            let mut keeps = Keeps::default();
            for url in question {
                let (answer, _) = self.call(Method::GET, &url).await?;
                self.store.learn(&mut keeps, &url, &answer);
                if keeps.is_plain() {
                    break;
                }
            }
            Ok(keeps)
        };
        self.keeps.get_or_try_init(ask).await
    }

    async fn url_of(&self, key: &str) -> Result<Url, String> {
        self.store.url(&Path::from(key)).await
    }

    /// The address of an object, or of one version of it.
    async fn address(&self, thing: &Thing) -> Result<(Url, bool), Failure> {
        let Thing::Object(key, version) = thing else { return Err(Failure::NotSent("this is no object".into())) };
        let mut url = self.url_of(key).await.map_err(Failure::NotSent)?;
        if let Some(version) = version {
            url.query_pairs_mut().append_pair(self.store.version_parameter(), version);
        }
        Ok((url, version.is_some()))
    }
}

#[async_trait]
impl Target for Objects {
    fn place(&self) -> String {
        self.url.clone()
    }

    fn account(&self, task: &str) -> String {
        // The same bucket of another server is another one.
        self.client.account(&format!("{task} {}", self.client.host()))
    }

    fn by_hand(&self, thing: &Thing) -> String {
        match thing {
            Thing::Object(key, version) => self.store.by_hand(key, version.as_deref()),
            _ => String::new(),
        }
    }

    async fn prepare(&self) -> Result<Option<String>> {
        let keeps = self.keeps().await.map_err(|e| Error::remote(format!("{}: {e}", self.url)))?;
        match &keeps.refused {
            Some(why) if !self.options.accept_versioning => {
                let error = Error::remote(format!("{}: {why}, so what is deleted might not be gone", self.url));
                Err(error.hint("--accept-versioning lends it all the same").hint("--to another bucket without it"))
            }
            why => Ok(why.clone()),
        }
    }

    async fn upload(
        &self,
        name: &str,
        cleared: &Cleared,
        note: &mut (dyn for<'t> FnMut(Step<'t>) + Send),
    ) -> Result<Upload, CallError> {
        let key = format!("{}{}", self.prefix, hidden_name(name).map_err(CallError::NotSent)?);
        let path = Path::from(key.as_str());
        let url = self.store.url(&path).await.map_err(CallError::NotSent)?;
        let named = Thing::Object(key.clone(), None);
        // Its name is known beforehand.
        note(Step::Made(&named));
        let mut headers = vec![
            ("content-type", cleared.media_type().to_owned()),
            ("cache-control", "no-store".to_owned()),
            ("content-length", cleared.bytes().to_string()),
        ];
        headers.extend(self.store.put_headers(name, cleared.media_type()));
        let sha256 = cleared.sha256();
        let put = self.store.put(&path, headers, &sha256, self.options.life).await;
        let (target, signed) = put.map_err(CallError::NotSent)?;
        let file = cleared.reader().map_err(|e| CallError::NotSent(e.to_string()))?;
        let body = body(file);
        let sent = self.client.send_for_head(Method::PUT, target.as_str(), LARGE, |r| r.headers(signed).body(body)).await;
        let (answer, head) = sent?;
        if !answer.is_success() {
            return Err(if answer.status >= 500 && answer.status != 503 {
                CallError::Unknown(format!("status {}", answer.status))
            } else {
                note(Step::Over(&named));
                CallError::Refused(answer)
            });
        }
        let thing = match self.store.version(&head.headers) {
            Some(version) => {
                let thing = Thing::Object(key.clone(), Some(version));
                note(Step::Made(&thing));
                note(Step::Over(&named));
                thing
            }
            None => named,
        };
        let stored = self.call(Method::HEAD, &url).await?;
        let bytes = stored.1.headers.get("content-length").and_then(|n| n.to_str().ok()?.parse().ok());
        let expires_at = now() + self.options.life.as_secs();
        let signed = self.store.signed_url(&path, self.options.life).await.map_err(CallError::Unknown)?;
        Ok(Upload {
            thing,
            id: key,
            bytes: bytes.filter(|_| stored.0.is_success()),
            granted: Some(self.options.life.as_secs().clamp(1, EXPIRY)),
            expires_at: Some(expires_at),
            url: Some(signed.into()),
        })
    }

    async fn named(&self, task: &str, _: &[String]) -> Result<Vec<Thing>, CallError> {
        let begins = format!("{}{}", self.prefix, container_name(task));
        if self.keeps().await?.versions
            && let Some(things) = self.versions(&begins).await?
        {
            return Ok(things);
        }
        let keys = self.store.list(&self.prefix, &begins).await.map_err(CallError::Unknown)?;
        Ok(keys.into_iter().map(|key| Thing::Object(key, None)).collect())
    }

    async fn delete(&self, thing: &Thing) -> Result<Seen, Failure> {
        if let Some(versions) = self.all_versions(thing).await? {
            for version in versions {
                let (url, _) = self.address(&version).await?;
                self.call(Method::DELETE, &url).await?;
            }
            return Ok(Seen::There);
        }
        let (url, versioned) = self.address(thing).await?;
        if versioned && self.store.deletes_the_newest_first() {
            let mut plain = url.clone();
            plain.set_query(None);
            self.call(Method::DELETE, &plain).await?;
        }
        let (answer, _) = self.call(Method::DELETE, &url).await?;
        Ok(match answer.status {
            404 => Seen::Gone,
            200..300 => Seen::There,
            _ => Seen::Unclear(reason(&answer)),
        })
    }

    async fn look(&self, thing: &Thing) -> Result<Seen, Failure> {
        if let Some(versions) = self.all_versions(thing).await? {
            return Ok(if versions.is_empty() { Seen::Gone } else { Seen::There });
        }
        let (url, versioned) = self.address(thing).await?;
        // A version that is a mark of deletion is none that could be read; only a GET says why something is not there.
        let method = if versioned { Method::GET } else { Method::HEAD };
        let (answer, _) = self.call(method, &url).await?;
        Ok(match answer.status {
            404 => Seen::Gone,
            200..300 => Seen::There,
            _ => Seen::Unclear(reason(&answer)),
        })
    }
}

impl Objects {
    /// All versions of an object whose version is not known, where the store keeps several and can list them: without its version a
    /// deletion only hides it.
    async fn all_versions(&self, thing: &Thing) -> Result<Option<Vec<Thing>>, Failure> {
        let Thing::Object(key, None) = thing else { return Ok(None) };
        if !self.keeps().await?.versions {
            return Ok(None);
        }
        self.versions(key).await.map_err(|e| Failure::Unknown(e.to_string()))
    }

    /// All versions of objects whose keys begin so, where the store can list them.
    async fn versions(&self, begins: &str) -> Result<Option<Vec<Thing>>, CallError> {
        /// A list that goes on after so many pages is none.
        const MAX_PAGES: usize = 1000;
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let any = self.url_of("x").await.map_err(CallError::NotSent)?;
            let Some(url) = self.store.versions_url(&any, begins, after.as_ref()) else { return Ok(None) };
            let (answer, _) = self.call(Method::GET, &url).await?;
            if !answer.is_success() {
                return Err(CallError::Unknown(format!("the versions cannot be listed: {}", reason(&answer))));
            }
            let page = store::Versions::parse(&answer.body).map_err(CallError::Unknown)?;
            all.extend(page.versions.into_iter().map(|(key, version)| Thing::Object(key, Some(version))));
            match page.next {
                Some(next) if after.as_ref() != Some(&next) => after = Some(next),
                _ => return Ok(Some(all)),
            }
        }
        Err(CallError::Unknown("a list does not end".into()))
    }
}

/// The status, and the code that the store gives: nothing that could quote a table.
fn reason(answer: &Answer) -> String {
    match store::element(&answer.body, "Code") {
        Some(code) => {
            format!("status {} ({})", answer.status, code.chars().filter(char::is_ascii_alphanumeric).collect::<String>())
        }
        None => format!("status {}", answer.status),
    }
}
