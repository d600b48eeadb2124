//! The API as somebody to lend to.

use async_trait::async_trait;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::{ContainerFile, OpenAi, SMALL, container_file_path, container_path, file_path, parts_path, response_path};
use crate::error::Result;
use crate::gate::Cleared;
use crate::remote::client::{Answer, Failure};
use crate::remote::target::{CallError, Life, Note, Seen, Target, Upload, Within};
use crate::remote::thing::{Thing, container_name, is_file_of, is_path_of};

/// The provider's own records (`OpenAI`, "Data controls in the platform").
const NOT_DELETABLE: &str = "the question, the column names and what the answer quotes may stay in the provider's abuse monitoring logs for up to 30 days";

#[async_trait]
impl Target for OpenAi {
    fn place(&self) -> String {
        self.host()
    }

    fn account(&self, task: &str) -> String {
        self.client.account(task)
    }

    fn by_hand(&self, thing: &Thing) -> String {
        let (method, url) = match thing {
            Thing::Parts(id) => ("POST", self.url(&format!("{}/cancel", parts_path(id)))),
            thing => ("DELETE", self.url(&path(thing))),
        };
        let header = if self.terms.azure { "api-key:" } else { "Authorization: Bearer" };
        format!("curl -X {method} -H \"{header} ${}\" {url}", self.token_variable())
    }

    fn not_deletable(&self) -> String {
        NOT_DELETABLE.into()
    }

    async fn prepare(&self) -> Result<Option<String>> {
        Ok(None)
    }

    async fn upload(&self, name: &str, cleared: &Cleared, note: &mut Note<'_>) -> Result<Upload, CallError> {
        let file = self.upload_file(name, cleared, note).await?;
        Ok(Upload {
            thing: Thing::File(file.id.clone()),
            bytes: file.bytes,
            life: Life::Expiring {
                asked: file.asked,
                granted: file.expires_at.zip(file.created_at).and_then(|(end, start)| end.checked_sub(start)),
                at: file.expires_at,
            },
            id: file.id,
            url: None,
        })
    }

    async fn named(&self, task: &str, within: &[Within]) -> Result<Vec<Thing>, CallError> {
        let name = container_name(task);
        let files = self.files_named(|name| is_file_of(task, name)).await?;
        let containers = match self.containers_named(&name).await {
            // A server without containers cannot have one of ours.
            Err(CallError::Refused(answer)) if answer.status == 404 || answer.status == 405 => Vec::new(),
            containers => containers?,
        };
        let files = files.into_iter().map(|f| Thing::File(f.id));
        let mut named: Vec<Thing> = containers.into_iter().map(|c| Thing::Container(c.id)).chain(files).collect();
        for Within { container, before } in within {
            match self.container_files(container).await {
                // What was made there since then came from our question, or from one that was asked beside it in the same container.
                Ok(files) => {
                    let is_ours = |f: &ContainerFile| f.is_made() || f.path.as_deref().is_none_or(|path| is_path_of(task, path));
                    let ours = files.into_iter().filter(|f| !before.contains(&f.id) && is_ours(f));
                    named.extend(ours.map(|f| Thing::ContainerFile(container.clone(), f.id)));
                }
                Err(CallError::Refused(answer)) if is_gone(&Thing::Container(container.clone()), &answer) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(named)
    }

    async fn delete(&self, thing: &Thing) -> Result<Seen, Failure> {
        if let Thing::Parts(id) = thing {
            let path = format!("{}/cancel", parts_path(id));
            // Some gateways want to be told that there is no body.
            let empty = |request: RequestBuilder| request.header(CONTENT_LENGTH, 0);
            return self.client.send(Method::POST, &path, SMALL, empty).await.map(|answer| cancelled(&answer));
        }
        Ok(seen(thing, &self.client.send(Method::DELETE, &path(thing), SMALL, |r| r).await?))
    }

    async fn look(&self, thing: &Thing) -> Result<Seen, Failure> {
        // Nothing shows an upload in parts; but to cancel it once more says how it stands.
        if matches!(thing, Thing::Parts(_)) {
            return self.delete(thing).await;
        }
        Ok(seen(thing, &self.client.send(Method::GET, &path(thing), SMALL, |r| r).await?))
    }
}

/// Where a thing stands, below the base URL.
fn path(thing: &Thing) -> String {
    match thing {
        Thing::File(id) | Thing::Object(id, _) => file_path(id),
        Thing::Parts(id) => parts_path(id),
        Thing::Container(id) => container_path(id),
        Thing::ContainerFile(container, id) => container_file_path(container, id),
        Thing::Response(id) => response_path(id),
    }
}

fn seen(thing: &Thing, answer: &Answer) -> Seen {
    if is_gone(thing, answer) {
        Seen::Gone
    } else if answer.is_success() {
        Seen::There
    } else {
        Seen::Unclear(answer.code())
    }
}

/// Whether an answer says that the thing does not exist: 404; for a container and what is in it also that it is expired or deleted.
fn is_gone(thing: &Thing, answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status == 404 {
        // Not every server that stores answers has a place to ask for them: one that does not know the place says it in another way.
        return !matches!(thing, Thing::Response(_)) || body["error"].is_object();
    }
    let expired = answer.status == 400 && body["error"]["message"].as_str().is_some_and(|m| m.contains("Container is expired"));
    match thing {
        Thing::Container(_) => expired || answer.is_success() && matches!(body["status"].as_str(), Some("expired" | "deleted")),
        Thing::ContainerFile(..) => expired,
        _ => false,
    }
}

/// What the cancellation of an upload in parts came to. One that is complete is a file, which is known by its name.
fn cancelled(answer: &Answer) -> Seen {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let over = |word: &str| ["cancelled", "expired", "completed"].iter().any(|end| word.contains(end));
    let over = match answer.status {
        404 => true,
        200..300 => body["status"].as_str().is_some_and(over),
        400 => body["error"]["message"].as_str().is_some_and(over),
        _ => false,
    };
    match over {
        true => Seen::Gone,
        false if answer.is_success() => Seen::There,
        false => Seen::Unclear(answer.code()),
    }
}
