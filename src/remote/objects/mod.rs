//! Object stores as somebody to lend to: S3, Azure Blob Storage, Google Cloud Storage.
//!
//! The `object_store` crate knows where a store is, who may use it, how requests are signed and how objects are listed; what is asked
//! before an upload, and by which version something is deleted, is `store`'s. All requests go through `connector` or [`Client`]: to the
//! store's host, or to one that issues credentials, and to no other.

mod connector;
mod lists;
mod store;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::signer::Url;
use reqwest::Method;
use tokio::sync::OnceCell;

use connector::Connector;
use store::{Keeps, Store, Versions};

use super::client::{Answer, Client, Endpoint, Failure, Head, Log, body};
use super::target::{CallError, Life, Note, Seen, Step, Target, Upload, Within, hidden_name, now};
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
    /// The address of the object `x` in it, without a signature.
    bucket: Url,
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
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() || parsed.fragment().is_some()
        {
            return Err(Error::usage("the address of a store must hold no user, password, query or fragment"));
        }
        let prefix = Path::from_url_path(parsed.path()).map_err(|e| wrong(&e))?;
        let prefix = if prefix.as_ref().is_empty() { String::new() } else { format!("{prefix}/") };
        let connector = Arc::new(Connector::new(log.clone(), options.certificates.clone()));
        let store = Store::new(&parsed, &options.settings, connector.clone()).map_err(|why| wrong(&why))?;
        let any = store.url(&Path::from("x")).await.map_err(|why| wrong(&why))?;
        let mut endpoint = Endpoint::open(&format!("{}/", any.origin().ascii_serialization()))?;
        if let Some(pem) = &options.certificates {
            endpoint = endpoint.trusting(pem)?;
        }
        connector.allow(&endpoint, &any)?;
        let client = Client::new(endpoint, log)?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, prefix, bucket: any, store, client, options, keeps: OnceCell::new() })
    }

    /// Sends a signed request without a body.
    async fn call(&self, method: Method, url: &Url) -> Result<(Answer, Head), Failure> {
        self.call_with(method, url, Vec::new()).await
    }

    async fn call_with(
        &self,
        method: Method,
        url: &Url,
        headers: Vec<(&'static str, String)>,
    ) -> Result<(Answer, Head), Failure> {
        let request = self.store.signed(&method, url, headers, None).await.map_err(Failure::NotSent)?;
        self.client.send_for_head(method, url.as_str(), SMALL, |r| r.headers(request)).await
    }

    /// What the store keeps of what is deleted; asked until it answers, and then remembered.
    async fn keeps(&self) -> Result<&Keeps, Failure> {
        let ask = async || {
            let mut keeps = Keeps::default();
            for url in self.store.questions(&self.url_of("x").await.map_err(Failure::NotSent)?) {
                let (answer, head) = self.call(Method::GET, &url).await?;
                if answer.status == 429 || answer.status >= 500 && answer.status != 501 {
                    return Err(Failure::Unknown(format!("it is not known what the store keeps: {}", reason(&answer))));
                }
                if !self.store.learn(&mut keeps, &url, &answer, &head.headers) {
                    break;
                }
            }
            Ok(keeps)
        };
        self.keeps.get_or_try_init(ask).await
    }

    async fn url_of(&self, key: &str) -> Result<Url, String> {
        self.store.url(&Path::parse(key).map_err(|e| e.to_string())?).await
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
        /// Where the providers' own stores are, by how the names of their hosts end.
        const USUAL: [&str; 3] = [".amazonaws.com", ".blob.core.windows.net", "storage.googleapis.com"];
        if USUAL.iter().any(|end| self.bucket.host_str().is_some_and(|host| host.ends_with(end))) {
            return self.url.clone();
        }
        format!("{} at {}", self.url, self.bucket.origin().ascii_serialization())
    }

    fn account(&self, task: &str) -> String {
        // The same bucket of another server is another one, and so is that of another tenant of one server.
        self.client.account(&format!("{task} {}", self.bucket))
    }

    fn by_hand(&self, thing: &Thing) -> String {
        match thing {
            Thing::Object(key, version) => self.store.by_hand(key, version.as_deref()),
            _ => String::new(),
        }
    }

    fn not_deletable(&self) -> String {
        "whoever read it while it was lent has it; the provider's own copies and logs go by its terms".into()
    }

    async fn prepare(&self) -> Result<Option<String>> {
        let failed = |e: Failure| Error::remote(format!("{}: {e}", self.url));
        let keeps = self.keeps().await.map_err(failed)?;
        if let Some(why) = keeps.refused.as_ref().filter(|_| !self.options.accept_versioning) {
            let error = Error::remote(format!("{}: {why}, so what is deleted might not be gone", self.url));
            return Err(error.hint("--accept-versioning lends it all the same").hint("--to another bucket without it"));
        }
        // Without the right to list, many stores do not say that something is gone.
        let none = format!("{}{}", self.prefix, hidden_name("none.csv").map_err(Error::remote)?);
        if let seen @ (Seen::Unclear(_) | Seen::There) = self.look(&Thing::Object(none, None)).await.map_err(failed)? {
            let why = if let Seen::Unclear(why) = seen { why } else { "it is there".into() };
            let error = Error::remote(format!("{}: asked for what is not there, the store says: {why}", self.url));
            return Err(error.hint("to confirm a deletion takes the right to list the bucket"));
        }
        Ok(keeps.refused.clone())
    }

    async fn upload(&self, name: &str, cleared: &Cleared, note: &mut Note<'_>) -> Result<Upload, CallError> {
        let key = format!("{}{}", self.prefix, hidden_name(name).map_err(CallError::NotSent)?);
        let path = Path::parse(&key).map_err(|e| CallError::NotSent(e.to_string()))?;
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
        let (stored, head) = self.call(Method::HEAD, &url).await?;
        if !stored.is_success() {
            return Err(CallError::Unknown(format!("what was stored cannot be looked at: {}", reason(&stored))));
        }
        let bytes = head.headers.get("content-length").and_then(|n| n.to_str().ok()?.parse().ok());
        let signed = self.store.signed_url(&path, self.options.life).await.map_err(CallError::Unknown)?;
        Ok(Upload {
            thing,
            id: key,
            bytes,
            // The address ends, the object does not.
            life: Life::Address(now() + self.options.life.as_secs()),
            url: Some(signed.into()),
        })
    }

    async fn named(&self, task: &str, _: &[Within]) -> Result<Vec<Thing>, CallError> {
        let begins = format!("{}{}", self.prefix, container_name(task));
        if let Some(things) = self.versions(&begins).await? {
            return Ok(things);
        }
        let keys = self.store.list(&self.prefix, &begins).await.map_err(CallError::Unknown)?;
        Ok(keys.into_iter().map(|key| Thing::Object(key, None)).collect())
    }

    async fn delete(&self, thing: &Thing) -> Result<Seen, Failure> {
        let versions = match self.all_versions(thing).await? {
            Some(versions) => versions,
            None => vec![thing.clone()],
        };
        let mut seen = if versions.is_empty() { Seen::Gone } else { Seen::There };
        for version in versions {
            let (url, versioned) = self.address(&version).await?;
            if versioned && self.store.deletes_the_newest_first() {
                let mut plain = url.clone();
                plain.set_query(None);
                self.call(Method::DELETE, &plain).await?;
            }
            let (answer, _) = self.call(Method::DELETE, &url).await?;
            match answer.status {
                404 | 200..300 => {}
                _ => seen = Seen::Unclear(reason(&answer)),
            }
        }
        Ok(seen)
    }

    async fn look(&self, thing: &Thing) -> Result<Seen, Failure> {
        if let Some(versions) = self.all_versions(thing).await? {
            return Ok(if versions.is_empty() { Seen::Gone } else { Seen::There });
        }
        let (url, versioned) = self.address(thing).await?;
        // Only the answer to a GET says why something is not there; of what is, one byte is enough.
        let (answer, head) = if versioned {
            self.call_with(Method::GET, &url, vec![("range", "bytes=0-0".into())]).await?
        } else {
            self.call(Method::HEAD, &url).await?
        };
        let is_hidden = !versioned && head.headers.get("x-amz-delete-marker").is_some_and(|v| v == "true");
        Ok(match answer.status {
            404 if is_hidden => Seen::Unclear("it is hidden, and its old version is still there".into()),
            404 => Seen::Gone,
            200..300 => Seen::There,
            _ => Seen::Unclear(reason(&answer)),
        })
    }
}

impl Objects {
    /// All versions of an object whose version is not known, where the store may keep several and lists them: without its version a
    /// deletion only hides it.
    async fn all_versions(&self, thing: &Thing) -> Result<Option<Vec<Thing>>, Failure> {
        let Thing::Object(key, None) = thing else { return Ok(None) };
        self.versions(key).await.map_err(|e| Failure::Unknown(e.to_string()))
    }

    /// All versions of objects whose keys begin so; none where the store keeps no versions, or may keep none and cannot list them.
    async fn versions(&self, begins: &str) -> Result<Option<Vec<Thing>>, CallError> {
        /// A list that goes on after so many pages is none.
        const MAX_PAGES: usize = 1000;
        let keeps = self.keeps().await?.versions;
        if keeps == Versions::No {
            return Ok(None);
        }
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let any = self.url_of("x").await.map_err(CallError::NotSent)?;
            let (answer, _) = self.call(Method::GET, &self.store.versions_url(&any, begins, after.as_ref())).await?;
            if !answer.is_success() {
                // A server without versions has no list of them.
                let has_none = matches!(answer.status, 400 | 403 | 405 | 501) && keeps == Versions::Perhaps && all.is_empty();
                let error = || CallError::Unknown(format!("the versions cannot be listed: {}", reason(&answer)));
                return if has_none { Ok(None) } else { Err(error()) };
            }
            let page = self.store.page(&answer.body).map_err(CallError::Unknown)?;
            all.extend(page.versions.into_iter().map(|(key, version)| Thing::Object(key, version)));
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
    match lists::element(&answer.body, "Code") {
        Some(code) => {
            format!("status {} ({})", answer.status, code.chars().filter(char::is_ascii_alphanumeric).collect::<String>())
        }
        None => format!("status {}", answer.status),
    }
}
