//! `OpenAI`'s Files, Containers and Responses, as far as a loan needs them.
//!
//! Answers are taken apart leniently: whatever is not needed may be missing, null or unknown. Ids are opaque.

mod response;
mod stream;

use std::fs::File;
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

pub use response::{Response, Status};
use stream::Incoming;
pub use stream::Progress;

use super::client::{Answer, Client, Failure};
use crate::gate::Cleared;

/// The expiry that is asked for, in seconds: the least that the Files API takes.
pub const EXPIRY: u64 = 3600;
/// Idle minutes that a container may live: the most that the service grants.
const CONTAINER_MINUTES: u64 = 20;
/// How long one small request may take.
const SMALL: Duration = Duration::from_mins(1);
/// How long an upload or a download may take.
const LARGE: Duration = Duration::from_mins(30);

/// The API behind a client.
pub struct OpenAi {
    client: Client,
    answer_within: Duration,
}

/// Why a call did not do what it should.
#[derive(Debug)]
pub enum CallError {
    /// The service refused: nothing was made.
    Refused(Answer),
    /// Nothing was sent.
    NotSent(String),
    /// It may have been carried out.
    Unknown(String),
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

/// A question and how it is put.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// The model's name.
    pub model: String,
    /// What the model is told beforehand.
    pub instructions: String,
    /// What was asked and answered before, in the same container. It is sent along, so that nothing has to be stored over there.
    pub before: Vec<(String, String)>,
    /// Whether the answer is to be told as it comes.
    pub stream: bool,
}

impl Question {
    fn body(&self, container: &str) -> Value {
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let input = if self.before.is_empty() {
            json!(self.text)
        } else {
            let before = self.before.iter().flat_map(|(asked, said)| [message("user", asked), message("assistant", said)]);
            before.chain([message("user", &self.text)]).collect()
        };
        let mut body = json!({
            "model": self.model, "instructions": self.instructions, "input": input,
            "tools": [{"type": "code_interpreter", "container": container}],
            "include": ["code_interpreter_call.outputs"], "tool_choice": "required", "store": false,
        });
        if self.stream {
            body["stream"] = json!(true);
        }
        body
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
    /// The API; a question may take `answer_within`.
    pub fn new(client: Client, answer_within: Duration) -> Self {
        Self { client, answer_within }
    }

    /// Scheme, host and port of the endpoint.
    pub fn host(&self) -> String {
        self.client.host()
    }

    /// The client of the endpoint.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The URL of a path, for messages.
    pub fn url(&self, path: &str) -> String {
        self.client.url(path)
    }

    /// Uploads a file that may leave, with its expiry. The small parts come first, and the length is known.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn upload(&self, name: &str, cleared: &Cleared) -> Result<FileObject, CallError> {
        let file = cleared.reader().map_err(|e| CallError::NotSent(e.to_string()))?;
        let part = Part::stream_with_length(body(file), cleared.bytes()).file_name(name.to_owned());
        let part = part.mime_str("text/csv").map_err(|e| CallError::NotSent(e.to_string()))?;
        let form = Form::new()
            .text("purpose", "user_data")
            .text("expires_after[anchor]", "created_at")
            .text("expires_after[seconds]", EXPIRY.to_string())
            .part("file", part);
        parse(self.client.send(Method::POST, "files", LARGE, |r| r.multipart(form)).await)
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

    /// Files within a container that are not ours: what the assistant made.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn made_by_assistant(&self, container: &str) -> Result<Vec<ContainerFile>, CallError> {
        let all: Vec<ContainerFile> = self.pages(&format!("containers/{}/files?limit=100", segment(container))).await?;
        Ok(all.into_iter().filter(|f| f.source.as_deref() == Some("assistant")).collect())
    }

    /// What is known of a file within a container.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn container_file(&self, container: &str, file: &str) -> Result<ContainerFile, CallError> {
        let path = format!("containers/{}/files/{}", segment(container), segment(file));
        parse(self.client.send(Method::GET, &path, SMALL, |r| r).await)
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
        let path = format!("containers/{}/files/{}/content", segment(container), segment(file));
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
            Ok((200..300, _)) => Ok(length),
            Ok((status, retry_after)) => Err(CallError::Refused(Answer { status, body: Vec::new(), retry_after })),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Asks in a container, and waits for the whole response.
    ///
    /// # Errors
    /// See [`CallError`]. A response that failed is no error here: see [`Response::status`].
    pub async fn ask(&self, question: &Question, container: &str) -> Result<Response, CallError> {
        let body = question.body(container);
        let value: Value = parse(self.client.send(Method::POST, "responses", self.answer_within, |r| r.json(&body)).await)?;
        Ok(Response::new(&value))
    }

    /// As [`OpenAi::ask`], with `tell` told of what the answer says on its way.
    ///
    /// # Errors
    /// As there, and an answer that is cut before its end.
    pub async fn ask_streaming(
        &self,
        question: &Question,
        container: &str,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Response, CallError> {
        let body = question.body(container);
        let mut incoming = Incoming::default();
        let sent = self.client.exchange(
            Method::POST,
            "responses",
            self.answer_within,
            |r| r.json(&body),
            |bytes| incoming.push(bytes, tell).map_err(Failure::Unknown),
        );
        let (status, retry_after) = sent.await?;
        if !(200..300).contains(&status) {
            return parse::<Value>(Ok(Answer { status, body: self.client.clean(incoming.body()), retry_after }))
                .and(Err(CallError::Unknown("an answer that is none".into())));
        }
        incoming.finish()
    }

    /// Deletes what stands at a path; the answer is only to be judged by its status.
    ///
    /// # Errors
    /// No answer.
    pub async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.client.send(Method::DELETE, path, SMALL, |r| r).await
    }

    /// Looks at what stands at a path.
    ///
    /// # Errors
    /// No answer.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.client.send(Method::GET, path, SMALL, |r| r).await
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

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(why) => Self::NotSent(why),
            Failure::Unknown(why) => Self::Unknown(why),
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(answer) => f.write_str(&answer.reason()),
            Self::NotSent(why) | Self::Unknown(why) => f.write_str(why),
        }
    }
}

/// Path of an upload.
pub fn file_path(id: &str) -> String {
    format!("files/{}", segment(id))
}

/// Path of a container.
pub fn container_path(id: &str) -> String {
    format!("containers/{}", segment(id))
}

/// Path of a response.
pub fn response_path(id: &str) -> String {
    format!("responses/{}", segment(id))
}

/// An id as one segment of a path, whatever a server may have put into it.
fn segment(id: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    id.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn body(file: File) -> Body {
    Body::wrap_stream(ReaderStream::with_capacity(tokio::fs::File::from_std(file), 1 << 16))
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
