//! How the three providers differ: what they are asked before an upload, how requests are signed, how a version is named.

use std::sync::Arc;
use std::time::Duration;

use super::connector::{Connector, Handle};
use super::lists::{Page, element, elements_named, section};
use crate::remote::client::Answer;
use futures_util::TryStreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use object_store::ObjectStore;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::azure::{AzureAuthorizer, AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::client::HttpRequestBody;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer, Url};
use object_store::{ClientOptions, RetryConfig};

/// The region of a bucket that names none, as the tools of the provider have it.
const REGION: &str = "us-east-1";

/// A bucket or container of one of the providers.
pub(super) enum Store {
    S3 { store: Box<AmazonS3>, region: String, bucket: String },
    Azure { store: Box<MicrosoftAzure>, account: String, container: String },
    Google { store: Box<GoogleCloudStorage>, bucket: String },
}

/// Whether a store keeps old versions of what is overwritten or deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Versions {
    No,
    /// It does not say, or cannot be asked.
    #[default]
    Perhaps,
    Yes,
}

/// What a store keeps of what is deleted.
#[derive(Debug, Default)]
pub(super) struct Keeps {
    /// Old versions, which can be deleted one by one.
    pub versions: Versions,
    /// Why what is deleted would not be gone, or why that is not known.
    pub refused: Option<String>,
}

impl Keeps {
    fn refuse(&mut self, why: impl Into<String>) {
        self.refused.get_or_insert(why.into());
    }
}

impl Store {
    /// The store of `s3://`, `az://` or `gs://`, with these settings.
    pub(super) fn new(url: &Url, settings: &[(String, String)], connector: Arc<Connector>) -> Result<Self, String> {
        let bucket = url.host_str().filter(|h| !h.is_empty()).ok_or("the bucket is missing")?.to_owned();
        // Plain http goes to this machine alone: `Endpoint::open` sees to that.
        let http = ClientOptions::new().with_allow_http(true);
        let no_retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let with = |prefix: &'static str| {
            settings
                .iter()
                .filter(move |(name, _)| name.starts_with(prefix))
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
        };
        let told = |e: object_store::Error| words(&e);
        match url.scheme() {
            "s3" => {
                let mut builder = AmazonS3Builder::new();
                for (name, value) in with("AWS_") {
                    if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
                        builder = builder.with_config(key, value);
                    }
                }
                let region = builder.get_config_value(&AmazonS3ConfigKey::Region).unwrap_or_else(|| REGION.into());
                let builder =
                    builder.with_client_options(http).with_region(&region).with_bucket_name(&bucket).with_retry(no_retry);
                let store = Box::new(builder.with_http_connector(Handle(connector)).build().map_err(told)?);
                Ok(Self::S3 { store, region, bucket })
            }
            "az" => {
                let mut builder = MicrosoftAzureBuilder::new();
                for (name, value) in with("AZURE_") {
                    if let Ok(key) = name.parse::<AzureConfigKey>() {
                        builder = builder.with_config(key, value);
                    }
                }
                let account = builder.get_config_value(&AzureConfigKey::AccountName).unwrap_or_default();
                // Before an address can be signed, the account itself may have to be asked for a key to sign it with.
                let named = builder.get_config_value(&AzureConfigKey::Endpoint);
                let service = named.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
                Url::parse(&service).into_iter().for_each(|service| connector.expect(service));
                let builder = builder.with_client_options(http).with_container_name(&bucket).with_retry(no_retry);
                let store = Box::new(builder.with_http_connector(Handle(connector)).build().map_err(told)?);
                Ok(Self::Azure { store, account, container: bucket })
            }
            "gs" => {
                let mut builder = GoogleCloudStorageBuilder::new();
                for (name, value) in with("GOOGLE_") {
                    if let Ok(key) = name.parse() {
                        builder = builder.with_config(key, value);
                    }
                }
                let builder = builder.with_client_options(http).with_bucket_name(&bucket).with_retry(no_retry);
                let store = Box::new(builder.with_http_connector(Handle(connector)).build().map_err(told)?);
                Ok(Self::Google { store, bucket })
            }
            scheme => Err(format!("{scheme} is none of s3, az and gs")),
        }
    }

    fn signer(&self) -> &dyn Signer {
        match self {
            Self::S3 { store, .. } => &**store,
            Self::Azure { store, .. } => &**store,
            Self::Google { store, .. } => &**store,
        }
    }

    /// The address of an object, without a signature.
    pub(super) async fn url(&self, path: &Path) -> Result<Url, String> {
        let mut url = self.signed_url(path, Duration::from_mins(1)).await?;
        url.set_query(None);
        Ok(url)
    }

    /// An address that anybody can read an object by, so long.
    pub(super) async fn signed_url(&self, path: &Path, life: Duration) -> Result<Url, String> {
        self.signer().signed_url(Method::GET, path, life).await.map_err(|e| words(&e))
    }

    /// Where to put an object, and with which headers. `sha256` is that of the object, in hex digits.
    pub(super) async fn put(
        &self,
        path: &Path,
        headers: Vec<(&'static str, String)>,
        sha256: &str,
        life: Duration,
    ) -> Result<(Url, HeaderMap), String> {
        let Self::Google { store, .. } = self else {
            let url = self.url(path).await?;
            let headers = self.signed(&Method::PUT, &url, headers, Some(sha256)).await?;
            return Ok((url, headers));
        };
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(name, HeaderValue::from_str(&value).map_err(|_| "a header holds a character that it cannot".to_owned())?);
        }
        let mut options = SignedUrlOptions::default();
        for (name, value) in all.iter().filter(|(name, _)| name.as_str().starts_with("x-goog-")) {
            options = options.with_signed_header(name.clone(), value.clone());
        }
        let url = store.signed_url_opts(Method::PUT, path, life, &options).await.map_err(|e| words(&e))?;
        Ok((url, all))
    }

    /// The headers of a request, what lets it in among them. `sha256` is that of the body, in hex digits.
    pub(super) async fn signed(
        &self,
        method: &Method,
        url: &Url,
        headers: Vec<(&'static str, String)>,
        sha256: Option<&str>,
    ) -> Result<HeaderMap, String> {
        let mut request = Request::builder().method(method.clone()).uri(url.as_str()).body(HttpRequestBody::empty());
        let request = request.as_mut().map_err(|_| "no URL".to_owned())?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(&value).map_err(|_| "a header holds a character that it cannot".to_owned())?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        let told = |e: object_store::Error| words(&e);
        match self {
            Self::S3 { store, region, .. } => {
                let credential = store.credentials().get_credential().await.map_err(told)?;
                let digest = sha256.map(bytes_of_hex).transpose()?;
                AwsAuthorizer::new(&credential, "s3", region).try_authorize(request, digest.as_deref()).map_err(told)?;
            }
            Self::Azure { store, account, .. } => {
                let credential = store.credentials().get_credential().await.map_err(told)?;
                AzureAuthorizer::new(&credential, account).try_authorize(request).map_err(told)?;
            }
            Self::Google { store, .. } => {
                let credential = store.credentials().get_credential().await.map_err(told)?;
                let bearer = HeaderValue::from_str(&format!("Bearer {}", credential.bearer));
                let mut bearer = bearer.map_err(|_| "a credential holds a character that it cannot".to_owned())?;
                bearer.set_sensitive(true);
                request.headers_mut().insert(http::header::AUTHORIZATION, bearer);
            }
        }
        Ok(std::mem::take(request.headers_mut()))
    }

    /// Headers of an upload: created only if it is not there, to be saved and not shown.
    pub(super) fn put_headers(&self, name: &str, media_type: &str) -> Vec<(&'static str, String)> {
        let disposition = format!("attachment; filename=\"{name}\"");
        match self {
            Self::S3 { .. } => vec![("content-disposition", disposition), ("if-none-match", "*".into())],
            Self::Azure { .. } => vec![
                ("x-ms-blob-content-disposition", disposition),
                ("x-ms-blob-content-type", media_type.to_owned()),
                ("x-ms-blob-cache-control", "no-store".into()),
                ("x-ms-blob-type", "BlockBlob".into()),
                ("if-none-match", "*".into()),
            ],
            Self::Google { .. } => vec![("content-disposition", disposition), ("x-goog-if-generation-match", "0".into())],
        }
    }

    /// The version that an upload got.
    pub(super) fn version(&self, headers: &HeaderMap) -> Option<String> {
        let name = match self {
            Self::S3 { .. } => "x-amz-version-id",
            Self::Azure { .. } => "x-ms-version-id",
            Self::Google { .. } => "x-goog-generation",
        };
        headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
    }

    /// The parameter that names a version.
    pub(super) fn version_parameter(&self) -> &'static str {
        match self {
            Self::S3 { .. } => "versionId",
            Self::Azure { .. } => "versionid",
            Self::Google { .. } => "generation",
        }
    }

    /// Whether a version can only be deleted once it is an old one.
    pub(super) fn deletes_the_newest_first(&self) -> bool {
        matches!(self, Self::Azure { .. })
    }

    /// What to ask about the keeping of deleted objects, in order; `any` is the address of the object `x`.
    pub(super) fn questions(&self, any: &Url) -> Vec<Url> {
        let bucket = bucket_url(any, "x");
        let ask = |url: &Url, what: &str| {
            let mut url = url.clone();
            url.set_query(Some(what));
            url
        };
        match self {
            Self::S3 { .. } => ["versioning=", "object-lock=", "replication="].map(|what| ask(&bucket, what)).into(),
            Self::Azure { container, .. } => {
                let mut of_container = bucket.clone();
                of_container.set_path(bucket.path().trim_end_matches('/'));
                let service = bucket_url(any, &format!("{container}/x"));
                vec![ask(&service, "comp=properties&restype=service"), ask(&of_container, "restype=container")]
            }
            Self::Google { bucket, .. } => {
                let fields = "fields=softDeletePolicy,versioning,retentionPolicy,defaultEventBasedHold";
                let url = format!("{}/storage/v1/b/{bucket}?{fields}", any.origin().ascii_serialization());
                Url::parse(&url).into_iter().collect()
            }
        }
    }

    /// Takes the answer to one of these questions; says whether the next one is to be put.
    pub(super) fn learn(&self, keeps: &mut Keeps, asked: &Url, answer: &Answer, headers: &HeaderMap) -> bool {
        let unclear = |what: &str| format!("{what} (status {})", answer.status);
        let query = asked.query().unwrap_or_default();
        match self {
            Self::S3 { .. } if query.starts_with("object-lock") => match (answer.status, element(&answer.body, "Mode")) {
                (200, Some(mode)) => keeps.refuse(format!("the bucket locks each object for a time ({})", mode.to_lowercase())),
                (200 | 404 | 501, _) => {}
                _ => keeps.refuse(unclear("it is not known whether the bucket locks objects")),
            },
            // A deletion by version is not carried out at the copies.
            Self::S3 { .. } if query.starts_with("replication") => match answer.status {
                200 if elements_named(&answer.body, "Status").iter().any(|s| s == "Enabled") => {
                    keeps.refuse("the bucket copies its objects to another one");
                }
                200 | 400 | 404 | 405 | 501 => {}
                _ => keeps.refuse(unclear("it is not known whether the bucket copies its objects to another one")),
            },
            Self::S3 { .. } => match (answer.status, element(&answer.body, "Status")) {
                (200, status) => {
                    keeps.versions = if status.is_some() { Versions::Yes } else { Versions::No };
                    if element(&answer.body, "MfaDelete").as_deref() == Some("Enabled") {
                        keeps.refuse("the bucket keeps old versions, and deletes them only with a second factor");
                    }
                    return status.is_some();
                }
                _ => keeps.refuse(unclear("it is not known whether the bucket keeps old versions")),
            },
            Self::Azure { .. } if query.starts_with("restype=container") => {
                let is_true = |name: &str| headers.get(name).is_some_and(|v| v == "true");
                if answer.status != 200 {
                    keeps.refuse(unclear("it is not known whether the container locks its blobs"));
                } else if is_true("x-ms-has-immutability-policy") || is_true("x-ms-has-legal-hold") {
                    keeps.refuse("the container locks its blobs for a time");
                }
            }
            Self::Azure { .. } => match (answer.status, section(&answer.body, "DeleteRetentionPolicy", "Enabled")) {
                (200, Some(on)) if on == "true" => {
                    let days = section(&answer.body, "DeleteRetentionPolicy", "Days").unwrap_or_else(|| "some".into());
                    keeps.refuse(format!("the account keeps deleted blobs for {days} days"));
                }
                (200, _) => {}
                _ => keeps.refuse(unclear("it is not known whether the account keeps deleted blobs")),
            },
            Self::Google { .. } => {
                let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let text = |v: &serde_json::Value| v.as_str().map(str::to_owned).or_else(|| v.as_u64().map(|n| n.to_string()));
                let seconds = |v: &serde_json::Value| text(v).and_then(|s| s.parse::<u64>().ok()).filter(|n| *n > 0);
                if answer.status != 200 {
                    keeps.refuse(unclear("it is not known whether the bucket keeps deleted objects"));
                    return true;
                }
                keeps.versions = if body["versioning"]["enabled"] == true { Versions::Yes } else { Versions::No };
                if let Some(seconds) = seconds(&body["softDeletePolicy"]["retentionDurationSeconds"]) {
                    keeps.refuse(format!("the bucket keeps deleted objects for {} days", seconds.div_ceil(86_400)));
                }
                if seconds(&body["retentionPolicy"]["retentionPeriod"]).is_some() || body["defaultEventBasedHold"] == true {
                    keeps.refuse("the bucket locks its objects for a time");
                }
            }
        }
        true
    }

    /// Where all versions of keys that begin so are listed; `any` is the address of the object `x`.
    pub(super) fn versions_url(&self, any: &Url, begins: &str, after: Option<&(String, String)>) -> Url {
        let mut url = bucket_url(any, "x");
        match self {
            Self::S3 { .. } => {
                url.query_pairs_mut().append_pair("versions", "").append_pair("prefix", begins);
                if let Some((key, version)) = after {
                    url.query_pairs_mut().append_pair("key-marker", key).append_pair("version-id-marker", version);
                }
            }
            Self::Azure { .. } => {
                url.set_path(url.path().to_owned().trim_end_matches('/'));
                let mut pairs = url.query_pairs_mut();
                pairs.append_pair("comp", "list").append_pair("include", "versions");
                if let Some((marker, _)) = after {
                    pairs.append_pair("marker", marker);
                }
                pairs.append_pair("prefix", begins).append_pair("restype", "container");
            }
            Self::Google { bucket, .. } => {
                url.set_path(&format!("/storage/v1/b/{bucket}/o"));
                let mut pairs = url.query_pairs_mut();
                pairs.append_pair("versions", "true").append_pair("prefix", begins);
                pairs.append_pair("fields", "items(name,generation),nextPageToken");
                if let Some((token, _)) = after {
                    pairs.append_pair("pageToken", token);
                }
            }
        }
        url
    }

    /// Reads a page of such a list.
    pub(super) fn page(&self, body: &[u8]) -> Result<Page, String> {
        match self {
            Self::S3 { .. } => Page::of_s3(body),
            Self::Azure { .. } => Page::of_azure(body),
            Self::Google { .. } => Page::of_google(body),
        }
    }

    /// Keys in the folder `prefix` that begin so.
    pub(super) async fn list(&self, prefix: &str, begins: &str) -> Result<Vec<String>, String> {
        let store: &dyn ObjectStore = match self {
            Self::S3 { store, .. } => &**store,
            Self::Azure { store, .. } => &**store,
            Self::Google { store, .. } => &**store,
        };
        let folder = Path::parse(prefix).map_err(|e| e.to_string())?;
        let folder = (!prefix.is_empty()).then_some(&folder);
        let all = store.list(folder).map_ok(|o| o.location.to_string());
        let ours = all.try_filter(|key| std::future::ready(key.starts_with(begins)));
        ours.try_collect().await.map_err(|e| words(&e))
    }

    /// How an object can be deleted by hand.
    pub(super) fn by_hand(&self, key: &str, version: Option<&str>) -> String {
        match self {
            Self::S3 { bucket, .. } => {
                let version = version.map(|v| format!(" --version-id {v}")).unwrap_or_default();
                format!("aws s3api delete-object --bucket {bucket} --key {}{version}", quoted(key))
            }
            Self::Azure { account, container, .. } => {
                let version = version.map(|v| format!(" --version-id {v}")).unwrap_or_default();
                format!(
                    "az storage blob delete --account-name {account} --container-name {container} --name {}{version}",
                    quoted(key)
                )
            }
            Self::Google { bucket, .. } => {
                let version = version.map(|v| format!("#{v}")).unwrap_or_default();
                format!("gcloud storage rm {}", quoted(&format!("gs://{bucket}/{key}{version}")))
            }
        }
    }
}

/// The address above an object.
fn bucket_url(any: &Url, object: &str) -> Url {
    let mut url = any.clone();
    let path = any.path().strip_suffix(object).unwrap_or(any.path()).to_owned();
    url.set_path(&path);
    url
}

/// What the crate says, without addresses and bodies.
fn words(error: &object_store::Error) -> String {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => "it is not there".into(),
        E::PermissionDenied { .. } => "access is denied".into(),
        E::Unauthenticated { .. } => "the credentials are not accepted".into(),
        E::Generic { source, .. } => {
            let text = source.to_string();
            // The crate's own words; addresses, and whatever comes from the other side, stay out of the message.
            let status = text.split("status code: ").nth(1).map(|rest| rest.split(':').next().unwrap_or_default());
            let plain = |text: &str| text.chars().filter(|c| !c.is_control()).take(160).collect::<String>();
            match status {
                Some(status) => plain(&format!("status {status}")),
                None if text.contains("://") => "no answer".into(),
                None => plain(&text),
            }
        }
        _ => "the store does not answer as it should".into(),
    }
}

fn bytes_of_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().as_chunks::<2>().0.iter();
    pairs.map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?)).collect::<Option<_>>().ok_or_else(|| "no hash".into())
}

/// A word of a command that a shell is to take as one.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:#".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
