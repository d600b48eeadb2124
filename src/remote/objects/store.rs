//! How the three providers differ: what they are asked before an upload, how requests are signed, how a version is named.

use std::sync::Arc;
use std::time::Duration;

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
use quick_xml::Reader;
use quick_xml::events::Event;

use super::connector::{Connector, Handle};
use crate::remote::client::Answer;

/// The region of a bucket that names none, as the tools of the provider have it.
const REGION: &str = "us-east-1";

/// A bucket or container of one of the providers.
pub(super) enum Store {
    S3 { store: Box<AmazonS3>, region: String, bucket: String },
    Azure { store: Box<MicrosoftAzure>, account: String, container: String },
    Google { store: Box<GoogleCloudStorage>, bucket: String },
}

/// What a store keeps of what is deleted.
#[derive(Debug, Default)]
pub(super) struct Keeps {
    /// Old versions, which can be deleted one by one.
    pub versions: bool,
    /// Why what is deleted would not be gone, or why that is not known.
    pub refused: Option<String>,
    /// Whether the last answer settled everything.
    settled: bool,
}

impl Keeps {
    /// Whether there is nothing more to ask.
    pub(super) fn is_plain(&self) -> bool {
        self.settled
    }

    fn refuse(&mut self, why: impl Into<String>) {
        self.refused = Some(why.into());
        self.settled = true;
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

    /// What to ask about the keeping of deleted objects, in order; `any` is the address of any object.
    pub(super) fn question(&self, any: &Url) -> Option<Vec<Url>> {
        match self {
            Self::S3 { .. } => {
                let bucket = bucket_url(any, "x");
                let ask = |what: &str| {
                    let mut url = bucket.clone();
                    url.set_query(Some(what));
                    url
                };
                Some(vec![ask("versioning="), ask("object-lock=")])
            }
            Self::Azure { container, .. } => {
                let mut service = bucket_url(any, &format!("{container}/x"));
                service.set_query(Some("comp=properties&restype=service"));
                Some(vec![service])
            }
            Self::Google { bucket, .. } => {
                let url =
                    format!("{}/storage/v1/b/{bucket}?fields=softDeletePolicy,versioning", any.origin().ascii_serialization());
                Url::parse(&url).ok().map(|url| vec![url])
            }
        }
    }

    /// Takes the answer to one of these questions.
    pub(super) fn learn(&self, keeps: &mut Keeps, asked: &Url, answer: &Answer) {
        let unclear = |what: &str| format!("{what} (status {})", answer.status);
        match self {
            Self::S3 { .. } if asked.query().is_some_and(|q| q.starts_with("object-lock")) => {
                keeps.settled = true;
                match (answer.status, element(&answer.body, "Mode")) {
                    (200, Some(mode)) => {
                        keeps.refuse(format!("the bucket locks each object for a time ({})", mode.to_lowercase()));
                    }
                    (200 | 404 | 501, _) => {}
                    _ => keeps.refuse(unclear("it is not known whether the bucket locks objects")),
                }
            }
            Self::S3 { .. } => match (answer.status, element(&answer.body, "Status")) {
                (200, Some(_)) if element(&answer.body, "MfaDelete").as_deref() == Some("Enabled") => {
                    keeps.versions = true;
                    keeps.refuse("the bucket keeps old versions, and deletes them only with a second factor");
                }
                (200, Some(_)) => keeps.versions = true,
                (200, None) => keeps.settled = true,
                _ => keeps.refuse(unclear("it is not known whether the bucket keeps old versions")),
            },
            Self::Azure { .. } => match (answer.status, section(&answer.body, "DeleteRetentionPolicy", "Enabled")) {
                (200, Some(on)) if on == "true" => {
                    let days = section(&answer.body, "DeleteRetentionPolicy", "Days").unwrap_or_else(|| "some".into());
                    keeps.refuse(format!("the account keeps deleted blobs for {days} days"));
                }
                (200, _) => keeps.settled = true,
                _ => keeps.refuse(unclear("it is not known whether the account keeps deleted blobs")),
            },
            Self::Google { .. } => {
                let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let text = |v: &serde_json::Value| v.as_str().map(str::to_owned).or_else(|| v.as_u64().map(|n| n.to_string()));
                let seconds = text(&body["softDeletePolicy"]["retentionDurationSeconds"]).and_then(|s| s.parse::<u64>().ok());
                keeps.versions = body["versioning"]["enabled"] == true;
                match (answer.status, seconds) {
                    (200, None | Some(0)) => keeps.settled = true,
                    (200, Some(seconds)) => {
                        keeps.refuse(format!("the bucket keeps deleted objects for {} days", seconds.div_ceil(86_400)));
                    }
                    _ => keeps.refuse(unclear("it is not known whether the bucket keeps deleted objects")),
                }
            }
        }
    }

    /// Where all versions of keys that begin so are listed, for the one provider whose lists can be asked for them.
    pub(super) fn versions_url(&self, any: &Url, begins: &str, after: Option<&(String, String)>) -> Option<Url> {
        let Self::S3 { .. } = self else { return None };
        let mut url = bucket_url(any, "x");
        url.query_pairs_mut().append_pair("versions", "").append_pair("prefix", begins);
        if let Some((key, version)) = after {
            url.query_pairs_mut().append_pair("key-marker", key).append_pair("version-id-marker", version);
        }
        Some(url)
    }

    /// Keys in the folder `prefix` that begin so.
    pub(super) async fn list(&self, prefix: &str, begins: &str) -> Result<Vec<String>, String> {
        let store: &dyn ObjectStore = match self {
            Self::S3 { store, .. } => &**store,
            Self::Azure { store, .. } => &**store,
            Self::Google { store, .. } => &**store,
        };
        let folder = Path::from(prefix);
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
                format!("aws s3api delete-object --bucket {bucket} --key {key}{version}")
            }
            Self::Azure { account, container, .. } => {
                let version = version.map(|v| format!(" --version-id {v}")).unwrap_or_default();
                format!("az storage blob delete --account-name {account} --container-name {container} --name {key}{version}")
            }
            Self::Google { bucket, .. } => {
                let version = version.map(|v| format!("#{v}")).unwrap_or_default();
                format!("gcloud storage rm gs://{bucket}/{key}{version}")
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

/// The text of the first element of this name.
pub(super) fn element(xml: &[u8], name: &str) -> Option<String> {
    elements(xml).ok()?.into_iter().find(|(path, _)| path.last().is_some_and(|last| last == name)).map(|(_, text)| text)
}

/// The text of an element within another.
fn section(xml: &[u8], above: &str, name: &str) -> Option<String> {
    let found = |path: &[String]| path.last().is_some_and(|last| last == name) && path.iter().any(|p| p == above);
    elements(xml).ok()?.into_iter().find(|(path, _)| found(path)).map(|(_, text)| text)
}

/// All texts of a document, each with the names of the elements that it stands in.
fn elements(xml: &[u8]) -> Result<Vec<(Vec<String>, String)>, String> {
    let not_read = |_| "the answer is no XML".to_owned();
    let (mut reader, mut path, mut all, mut text) = (Reader::from_reader(xml), Vec::new(), Vec::new(), String::new());
    loop {
        match reader.read_event().map_err(not_read)? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                text.clear();
            }
            Event::Text(piece) => text += &piece.decode().map_err(|_| "the answer is no XML".to_owned())?,
            Event::GeneralRef(name) => match name.resolve_char_ref().ok().flatten() {
                Some(c) => text.push(c),
                None => match &*name {
                    b"amp" => text.push('&'),
                    b"lt" => text.push('<'),
                    b"gt" => text.push('>'),
                    b"quot" => text.push('"'),
                    b"apos" => text.push('\''),
                    _ => return Err("the answer is no XML".into()),
                },
            },
            Event::End(_) => {
                if !text.trim().is_empty() {
                    all.push((path.clone(), std::mem::take(&mut text)));
                }
                text.clear();
                path.pop();
            }
            Event::Eof => return Ok(all),
            _ => {}
        }
    }
}

/// A page of versions.
pub(super) struct Versions {
    /// Keys and versions; marks of deletions are not among them, as they hold nothing.
    pub versions: Vec<(String, String)>,
    /// Where the next page begins.
    pub next: Option<(String, String)>,
}

impl Versions {
    /// Reads a list of versions (S3, `ListObjectVersions`).
    pub(super) fn parse(xml: &[u8]) -> Result<Self, String> {
        let (mut versions, mut key, mut cut, mut next) = (Vec::new(), String::new(), false, (String::new(), String::new()));
        for (path, text) in elements(xml)? {
            let above = path.len().checked_sub(2).and_then(|i| path.get(i)).map(String::as_str);
            match (above, path.last().map(String::as_str)) {
                (Some("Version"), Some("Key")) => key = text,
                (Some("Version"), Some("VersionId")) => versions.push((key.clone(), text)),
                (_, Some("IsTruncated")) => cut = text == "true",
                (_, Some("NextKeyMarker")) => next.0 = text,
                (_, Some("NextVersionIdMarker")) => next.1 = text,
                _ => {}
            }
        }
        Ok(Self { versions, next: cut.then_some(next) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_versions_without_marks_of_deletion() {
        let xml = br#"<?xml version="1.0"?><ListVersionsResult xmlns="x"><IsTruncated>true</IsTruncated>
            <NextKeyMarker>b&amp;c</NextKeyMarker><NextVersionIdMarker>v9</NextVersionIdMarker>
            <Version><Key>a</Key><VersionId>v1</VersionId></Version><Version><Key>b&amp;c</Key><VersionId>null</VersionId></Version>
            <DeleteMarker><Key>d</Key><VersionId>v3</VersionId></DeleteMarker></ListVersionsResult>"#;
        let page = Versions::parse(xml).unwrap();
        assert_eq!(page.versions, [("a".to_owned(), "v1".to_owned()), ("b&c".to_owned(), "null".to_owned())]);
        assert_eq!(page.next, Some(("b&c".to_owned(), "v9".to_owned())));
        assert!(Versions::parse(b"<a><b></a>").is_err());
        assert_eq!(element(b"<Error><Code>NoSuchVersion</Code></Error>", "Code").as_deref(), Some("NoSuchVersion"));
        let properties = b"<P><Logging><Enabled>true</Enabled></Logging><DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy></P>";
        assert_eq!(section(properties, "DeleteRetentionPolicy", "Enabled").as_deref(), Some("false"));
    }
}
