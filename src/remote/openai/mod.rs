//! `OpenAI`'s Files, Containers and Responses, as far as a loan needs them.
//!
//! Answers are taken apart leniently: whatever is not needed may be missing, null or unknown. Ids are opaque.

mod question;
mod response;
mod stream;
mod target;

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::{Value, json};

pub use question::{Place, Question};
pub use response::{Response, Status};
use stream::Incoming;
pub use stream::Progress;

use super::client::{Answer, Client, Failure, body};
use super::target::{CallError, EXPIRY, Note, Step};
use super::thing::Thing;
use crate::gate::Cleared;

/// Bytes that one upload may have (`OpenAI`, createFile), and all parts of one (createUpload).
const MAX_FILE: u64 = 512 << 20;
/// Bytes that all parts of an upload may have.
pub const MAX_BYTES: u64 = 8 << 30;
/// Bytes of a part: at most 64 MB (`OpenAI`, addUploadPart).
const PART: u64 = 32 << 20;
/// The least expiry that Azure documents, in seconds: 14 days.
const AZURE_EXPIRY: u64 = 14 * 24 * 3600;
/// Idle minutes that a container may live: the most that the service grants.
pub const CONTAINER_MINUTES: u64 = 20;
/// How long one small request may take.
const SMALL: Duration = Duration::from_mins(1);
/// How long an upload or a download may take.
const LARGE: Duration = Duration::from_mins(30);

/// The API behind a client.
pub struct OpenAi {
    client: Client,
    terms: Terms,
}

/// How an endpoint wants to be spoken to.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How long a question may take.
    pub answer_within: Duration,
    /// Whether it is Azure's: another purpose, another expiry.
    pub azure: bool,
    /// Whether a longer expiry may be asked for, where one hour is refused.
    pub accept_expiry: bool,
    /// Bytes beyond which an upload goes in parts.
    pub whole: u64,
}

impl Terms {
    /// Those of `OpenAI` itself.
    pub fn new(answer_within: Duration) -> Self {
        Self { answer_within, azure: false, accept_expiry: false, whole: MAX_FILE }
    }

    fn purpose(&self) -> &'static str {
        if self.azure { "assistants" } else { "user_data" }
    }
}

/// An object of the Files API: what must be known of it.
#[derive(Debug, Deserialize)]
pub struct FileObject {
    /// Opaque.
    pub id: String,
    /// What arrived.
    pub bytes: Option<u64>,
    /// Seconds since 1970 by the server's clock.
    pub created_at: Option<u64>,
    /// Likewise; missing where the expiry was not applied.
    pub expires_at: Option<u64>,
    /// Seconds of life that were asked for.
    #[serde(skip)]
    pub asked: u64,
    filename: Option<String>,
}

/// A container: what must be known of it.
#[derive(Debug, Deserialize)]
pub struct ContainerObject {
    /// Opaque.
    pub id: String,
    name: Option<String>,
    status: Option<String>,
    network_policy: Option<Value>,
}

/// A file within a container.
#[derive(Clone, Debug, Deserialize)]
pub struct ContainerFile {
    /// Opaque.
    pub id: String,
    /// As the code inside sees it: the model's invention, never a local path.
    pub path: Option<String>,
    /// Its length, if the service knows it.
    pub bytes: Option<u64>,
    source: Option<String>,
}

/// What a container is made with.
#[derive(Clone, Debug)]
pub struct ContainerOptions {
    /// `1g`, `4g`, `16g` or `64g`.
    pub memory: String,
    /// Hosts that the code may reach; none by default.
    pub domains: Vec<String>,
}

impl ContainerFile {
    /// Whether the assistant made it.
    pub fn is_made(&self) -> bool {
        self.source.as_deref() == Some("assistant")
    }
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
    last_id: Option<String>,
}

impl OpenAi {
    /// The API behind a client.
    pub fn new(client: Client, terms: Terms) -> Self {
        Self { client, terms }
    }

    /// Scheme, host and port of the endpoint.
    pub fn host(&self) -> String {
        self.client.host()
    }

    /// The client of the endpoint.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The variable that usually holds the access token, for messages.
    pub fn token_variable(&self) -> &'static str {
        if self.terms.azure { "AZURE_OPENAI_API_KEY" } else { "OPENAI_API_KEY" }
    }

    /// The URL of a path, for messages.
    pub fn url(&self, path: &str) -> String {
        self.client.url(path)
    }

    /// Uploads a file that may leave, with its expiry; a large one in parts, of which `note` is told.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn upload_file(&self, name: &str, cleared: &Cleared, note: &mut Note<'_>) -> Result<FileObject, CallError> {
        let once = async |seconds, note: &mut Note<'_>| {
            let file = if cleared.bytes() > self.terms.whole {
                self.upload_in_parts(name, cleared, seconds, note).await?
            } else {
                self.upload_whole(name, cleared, seconds).await?
            };
            Ok(FileObject { asked: seconds, ..file })
        };
        match once(EXPIRY, note).await {
            // Azure documents 14 days as the least; whether one hour is refused, only the answer says.
            Err(CallError::Refused(answer)) if self.terms.azure && self.terms.accept_expiry && answer.status == 400 => {
                once(AZURE_EXPIRY, note).await
            }
            done => done,
        }
    }

    /// The small parts come first, and the length is known.
    async fn upload_whole(&self, name: &str, cleared: &Cleared, seconds: u64) -> Result<FileObject, CallError> {
        let form = Form::new()
            .text("purpose", self.terms.purpose())
            .text("expires_after[anchor]", "created_at")
            .text("expires_after[seconds]", seconds.to_string())
            .part("file", part(name, cleared)?);
        parse(self.client.send(Method::POST, "files", LARGE, |r| r.multipart(form)).await)
    }

    async fn upload_in_parts(
        &self,
        name: &str,
        cleared: &Cleared,
        seconds: u64,
        note: &mut Note<'_>,
    ) -> Result<FileObject, CallError> {
        #[derive(Deserialize)]
        struct Id {
            id: String,
        }
        #[derive(Deserialize)]
        struct Completed {
            file: FileObject,
        }
        let body = json!({
            "filename": name, "purpose": self.terms.purpose(), "bytes": cleared.bytes(), "mime_type": cleared.media_type(),
            "expires_after": {"anchor": "created_at", "seconds": seconds},
        });
        let begun: Id = parse(self.client.send(Method::POST, "uploads", SMALL, |r| r.json(&body)).await)?;
        let thing = Thing::Parts(begun.id.clone());
        if !thing.is_named() {
            return Err(CallError::Unknown("an answer with an id that is none".into()));
        }
        note(Step::Made(&thing));
        let base = parts_path(&begun.id);
        let size = PART.min(self.terms.whole.max(1));
        let mut ids = Vec::new();
        for start in (0..cleared.bytes()).step_by(usize::try_from(size).unwrap_or(usize::MAX)) {
            let length = size.min(cleared.bytes() - start);
            let not_read = |e: std::io::Error| CallError::NotSent(e.to_string());
            let mut file = cleared.reader().map_err(|e| CallError::NotSent(e.to_string()))?;
            file.seek(SeekFrom::Start(start)).map_err(not_read)?;
            let mut bytes = vec![0; length as usize];
            file.read_exact(&mut bytes).map_err(not_read)?;
            let part = Part::bytes(bytes).file_name("upload").mime_str("application/octet-stream");
            let form = Form::new().part("data", part.map_err(|e| CallError::NotSent(e.to_string()))?);
            let sent = self.client.send(Method::POST, &format!("{base}/parts"), LARGE, |r| r.multipart(form)).await;
            ids.push(parse::<Id>(sent)?.id);
        }
        let body = json!({"part_ids": ids});
        let done = self.client.send(Method::POST, &format!("{base}/complete"), LARGE, |r| r.json(&body)).await;
        let done: Completed = parse(done)?;
        note(Step::Over(&thing));
        Ok(done.file)
    }

    /// Puts what may leave into a container, without an upload of its own.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn upload_into(&self, container: &str, name: &str, cleared: &Cleared) -> Result<ContainerFile, CallError> {
        let form = Form::new().part("file", part(name, cleared)?);
        let path = format!("containers/{}/files", segment(container));
        parse(self.client.send(Method::POST, &path, LARGE, |r| r.multipart(form)).await)
    }

    /// Puts an upload into a container.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn add_to(&self, container: &str, file: &str) -> Result<ContainerFile, CallError> {
        let path = format!("containers/{}/files", segment(container));
        let body = json!({"file_id": file});
        parse(self.client.send(Method::POST, &path, SMALL, |r| r.json(&body)).await)
    }

    /// What is known of a container.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn container(&self, container: &str) -> Result<ContainerObject, CallError> {
        parse(self.client.send(Method::GET, &container_path(container), SMALL, |r| r).await)
    }

    /// All uploads of such names, through all pages.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn files_named(&self, is_name: impl Fn(&str) -> bool) -> Result<Vec<FileObject>, CallError> {
        let all: Vec<FileObject> = self.pages("files?limit=10000").await?;
        Ok(all.into_iter().filter(|f| f.filename.as_deref().is_some_and(&is_name)).collect())
    }

    /// Makes a container of this name with these uploads in it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn create_container(
        &self,
        name: &str,
        files: &[String],
        options: &ContainerOptions,
    ) -> Result<ContainerObject, CallError> {
        let body = json!({
            "name": name, "expires_after": {"anchor": "last_active_at", "minutes": CONTAINER_MINUTES}, "file_ids": files,
            "memory_limit": options.memory, "network_policy": options.network_policy(),
        });
        parse(self.client.send(Method::POST, "containers", SMALL, |r| r.json(&body)).await)
    }

    /// All containers of this name, through all pages.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn containers_named(&self, name: &str) -> Result<Vec<ContainerObject>, CallError> {
        let all: Vec<ContainerObject> = self.pages(&format!("containers?limit=100&name={name}")).await?;
        // Not every server knows the filter.
        Ok(all.into_iter().filter(|c| c.name.as_deref() == Some(name) && !c.is_over()).collect())
    }

    /// All files within a container.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn container_files(&self, container: &str) -> Result<Vec<ContainerFile>, CallError> {
        self.pages(&format!("containers/{}/files?limit=100", segment(container))).await
    }

    /// What is known of a file within a container.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn container_file(&self, container: &str, file: &str) -> Result<ContainerFile, CallError> {
        parse(self.client.send(Method::GET, &container_file_path(container, file), SMALL, |r| r).await)
    }

    /// The content of a file within a container, in pieces; returns its length.
    ///
    /// # Errors
    /// See [`CallError`], and those of `take`. What was taken before an error is not the file.
    pub async fn download(
        &self,
        container: &str,
        file: &str,
        mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<u64, CallError> {
        const MAX: u64 = 2 << 30;
        let path = format!("{}/content", container_file_path(container, file));
        let mut length = 0;
        let done = self.client.exchange(
            Method::GET,
            &path,
            LARGE,
            |r| r,
            |bytes| {
                length += bytes.len() as u64;
                if length > MAX {
                    return Err(Failure::Unknown("the file is larger than 2 GiB".into()));
                }
                take(bytes).map_err(|e| Failure::Unknown(format!("cannot write: {e}")))
            },
        );
        match done.await {
            Ok(head) if (200..300).contains(&head.status) => Ok(length),
            Ok(head) => Err(CallError::Refused(Answer { status: head.status, body: Vec::new(), retry_after: head.retry_after })),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Asks, and waits for the whole response.
    ///
    /// # Errors
    /// See [`CallError`]. A response that failed is no error here: see [`Response::status`].
    pub async fn ask(&self, question: &Question, place: Place<'_>) -> Result<Response, CallError> {
        let body = question.body(place);
        let value: Value = parse(self.client.send(Method::POST, "responses", self.terms.answer_within, |r| r.json(&body)).await)?;
        Ok(Response::new(&value))
    }

    /// As [`OpenAi::ask`], with `tell` told of what the answer says on its way.
    ///
    /// # Errors
    /// As there, and an answer that is cut before its end.
    pub async fn ask_streaming(
        &self,
        question: &Question,
        place: Place<'_>,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Response, CallError> {
        let body = question.body(place);
        let mut incoming = Incoming::default();
        let sent = self.client.exchange(
            Method::POST,
            "responses",
            self.terms.answer_within,
            |r| r.json(&body),
            |bytes| incoming.push(bytes, tell).map_err(Failure::Unknown),
        );
        let head = sent.await?;
        if !(200..300).contains(&head.status) {
            let body = self.client.clean(incoming.body());
            return parse::<Value>(Ok(Answer { status: head.status, body, retry_after: head.retry_after }))
                .and(Err(CallError::Unknown("an answer that is none".into())));
        }
        incoming.finish()
    }

    /// All pages of a list; `path` has a query.
    async fn pages<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<Vec<T>, CallError> {
        /// A list that goes on after so many pages is none.
        const MAX_PAGES: usize = 1000;
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let path = match &after {
                Some(id) => format!("{path}&after={}", segment(id)),
                None => path.to_owned(),
            };
            let mut page: List<T> = parse(self.client.send(Method::GET, &path, SMALL, |r| r).await)?;
            all.append(&mut page.data);
            match page.last_id {
                _ if !page.has_more => return Ok(all),
                Some(id) if after.as_ref() != Some(&id) => after = Some(id),
                _ => return Err(CallError::Unknown("a list has more, but does not say behind what".into())),
            }
        }
        Err(CallError::Unknown("a list does not end".into()))
    }
}

impl ContainerOptions {
    fn network_policy(&self) -> Value {
        if self.domains.is_empty() {
            json!({"type": "disabled"})
        } else {
            json!({"type": "allowlist", "allowed_domains": self.domains})
        }
    }
}

impl ContainerObject {
    /// Whether its data is gone, though it is still listed.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("expired" | "deleted"))
    }

    /// Whether it says that it can reach what was asked for and nothing else; nothing if it does not say.
    pub fn honours(&self, options: &ContainerOptions) -> Option<bool> {
        let policy = self.network_policy.as_ref().filter(|p| !p.is_null())?;
        let mut allowed: Vec<&str> =
            policy["allowed_domains"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut asked: Vec<&str> = options.domains.iter().map(String::as_str).collect();
        allowed.sort_unstable();
        asked.sort_unstable();
        let kind = if asked.is_empty() { "disabled" } else { "allowlist" };
        Some(policy["type"] == kind && allowed == asked)
    }
}

fn part(name: &str, cleared: &Cleared) -> Result<Part, CallError> {
    let file = cleared.reader().map_err(|e| CallError::NotSent(e.to_string()))?;
    let part = Part::stream_with_length(body(file), cleared.bytes()).file_name(name.to_owned());
    part.mime_str(cleared.media_type()).map_err(|e| CallError::NotSent(e.to_string()))
}

/// Path of an upload.
fn file_path(id: &str) -> String {
    format!("files/{}", segment(id))
}

/// Path of a container.
fn container_path(id: &str) -> String {
    format!("containers/{}", segment(id))
}

/// Path of a response.
fn response_path(id: &str) -> String {
    format!("responses/{}", segment(id))
}

/// Path of an upload in parts.
fn parts_path(id: &str) -> String {
    format!("uploads/{}", segment(id))
}

/// Path of a file within a container.
fn container_file_path(container: &str, file: &str) -> String {
    format!("{}/files/{}", container_path(container), segment(file))
}

/// An id as one segment of a path, whatever a server may have put into it.
fn segment(id: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    id.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn parse<T: for<'de> Deserialize<'de>>(answer: Result<Answer, Failure>) -> Result<T, CallError> {
    let answer = answer?;
    if !answer.is_success() {
        // A 5xx may come from a proxy after the service has done its work.
        return Err(if answer.status >= 500 && answer.status != 503 {
            CallError::Unknown(answer.code())
        } else {
            CallError::Refused(answer)
        });
    }
    serde_json::from_slice(&answer.body)
        .map_err(|e| CallError::Unknown(format!("an answer that is not understood, at column {}", e.column())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_one_segment() {
        assert_eq!(segment("file-aB_9"), "file-aB_9");
        assert_eq!(segment("../x?y"), "%2E%2E%2Fx%3Fy");
    }

    #[test]
    fn a_network_that_was_not_asked_for_is_seen() {
        let container =
            |policy: Value| serde_json::from_value::<ContainerObject>(json!({"id": "c", "network_policy": policy})).unwrap();
        let closed = ContainerOptions { memory: "1g".into(), domains: vec![] };
        let open = ContainerOptions { domains: vec!["example.com".into()], ..closed.clone() };
        assert_eq!(container(json!({"type": "disabled"})).honours(&closed), Some(true));
        assert_eq!(container(json!({"type": "allowlist", "allowed_domains": ["example.com"]})).honours(&closed), Some(false));
        assert_eq!(container(json!({"type": "allowlist", "allowed_domains": ["example.com"]})).honours(&open), Some(true));
        assert_eq!(container(json!({"type": "disabled"})).honours(&open), Some(false));
        assert_eq!(container(Value::Null).honours(&closed), None);
    }
}
