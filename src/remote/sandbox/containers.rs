//! `/v1/containers`.

use axum::Json;
use axum::extract::{FromRequest, Multipart, Path, Query, Request, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::{ApiError, Page, deleted};
use super::store::{Container, ContainerFile, container_file_id, now, random_hex, remove};
use super::upload::Form;
use super::{Shared, lock};

/// Entries of a list, unless more are asked for, and most of them.
const PAGE: usize = 20;
const MAX_PAGE: usize = 100;
/// Idle minutes that a container may live.
pub(super) const MAX_MINUTES: u64 = 20;
const MEMORY: [&str; 4] = ["1g", "4g", "16g", "64g"];

#[derive(Deserialize)]
pub(super) struct Filter {
    name: Option<String>,
}

/// The object of a JSON body.
pub(super) fn object(body: Result<Json<Value>, axum::extract::rejection::JsonRejection>) -> Result<Map<String, Value>, ApiError> {
    match body {
        Ok(Json(Value::Object(body))) => Ok(body),
        _ => Err(ApiError::bad("We could not parse the JSON body of your request.")),
    }
}

/// Refuses keys that are not among `known`; `path` stands before their names.
pub(super) fn known_keys(body: &Map<String, Value>, path: &str, known: &[&str]) -> Result<(), ApiError> {
    match body.keys().find(|k| !known.contains(&k.as_str())) {
        Some(key) => Err(ApiError::unknown(format!("{path}{key}"))),
        None => Ok(()),
    }
}

/// `memory_limit`, if it is there.
pub(super) fn memory_limit(body: &Map<String, Value>, path: &str) -> Result<String, ApiError> {
    match body.get("memory_limit").unwrap_or(&Value::Null) {
        Value::Null => Ok(MEMORY[0].into()),
        Value::String(m) if MEMORY.contains(&m.as_str()) => Ok(m.clone()),
        _ => Err(ApiError::invalid(format!("{path}memory_limit"), "one of '1g', '4g', '16g' and '64g'")),
    }
}

/// `network_policy`, if it is there. An allowlist is noted, though nothing here ever reaches a network.
pub(super) fn network_policy(body: &Map<String, Value>, path: &str) -> Result<Value, ApiError> {
    let path = format!("{path}network_policy");
    let Some(policy) = body.get("network_policy") else { return Ok(json!({"type": "disabled"})) };
    let policy = policy.as_object().ok_or_else(|| ApiError::invalid(path.clone(), "an object"))?;
    match policy.get("type").and_then(Value::as_str) {
        Some("disabled") => {
            known_keys(policy, &format!("{path}."), &["type"])?;
            Ok(json!({"type": "disabled"}))
        }
        Some("allowlist") => {
            known_keys(policy, &format!("{path}."), &["type", "allowed_domains"])?;
            let domains = policy.get("allowed_domains").and_then(Value::as_array);
            match domains {
                Some(domains) if !domains.is_empty() && domains.iter().all(Value::is_string) => {
                    Ok(json!({"type": "allowlist", "allowed_domains": domains}))
                }
                _ => Err(ApiError::invalid(format!("{path}.allowed_domains"), "at least one domain")),
            }
        }
        _ => Err(ApiError::invalid(format!("{path}.type"), "one of 'disabled' and 'allowlist'")),
    }
}

/// `file_ids`, if they are there.
pub(super) fn file_ids(body: &Map<String, Value>, path: &str) -> Result<Vec<String>, ApiError> {
    const MAX: usize = 50;
    let invalid = || ApiError::invalid(format!("{path}file_ids"), "at most 50 ids of files");
    let Some(ids) = body.get("file_ids") else { return Ok(Vec::new()) };
    let ids = ids.as_array().filter(|ids| ids.len() <= MAX).ok_or_else(invalid)?;
    ids.iter().map(|id| id.as_str().map(str::to_owned).ok_or_else(invalid)).collect()
}

pub(super) async fn create(
    State(store): State<Shared>,
    body: Result<Json<Value>, axum::extract::rejection::JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let body = object(body)?;
    known_keys(&body, "", &["name", "file_ids", "expires_after", "memory_limit", "network_policy"])?;
    let name = body.get("name").and_then(Value::as_str).ok_or_else(|| ApiError::missing("name"))?.to_owned();
    let minutes = minutes(body.get("expires_after"))?;
    let memory_limit = memory_limit(&body, "")?;
    let network_policy = network_policy(&body, "")?;
    let ids = file_ids(&body, "")?;
    let mut store = lock(&store);
    let files = copies(&mut store, &ids)?;
    let container = new_container(name, minutes, memory_limit, network_policy, files);
    let body = container.json();
    let number = store.number();
    store.containers.insert(number, container);
    Ok(Json(body))
}

/// Copies of these uploads, all of them or none.
pub(super) fn copies(store: &mut super::store::Store, ids: &[String]) -> Result<Vec<ContainerFile>, ApiError> {
    let mut files: Vec<ContainerFile> = Vec::new();
    for id in ids {
        match store.copy_of(id) {
            Ok(file) => files.push(file),
            Err(error) => {
                files.iter().for_each(|f| remove(&f.disk));
                return Err(error);
            }
        }
    }
    Ok(files)
}

/// A container that is running from now on.
pub(super) fn new_container(
    name: String,
    minutes: u64,
    memory_limit: String,
    network_policy: Value,
    files: Vec<ContainerFile>,
) -> Container {
    let id = format!("cntr_{}", random_hex(24));
    let created_at = now();
    Container { id, name, created_at, last_active_at: created_at, minutes, memory_limit, network_policy, expired: false, files }
}

fn minutes(expiry: Option<&Value>) -> Result<u64, ApiError> {
    let Some(expiry) = expiry else { return Ok(MAX_MINUTES) };
    let expiry = expiry.as_object().ok_or_else(|| ApiError::invalid("expires_after", "an object"))?;
    if expiry.get("anchor").and_then(Value::as_str) != Some("last_active_at") {
        return Err(ApiError::invalid("expires_after.anchor", "'last_active_at'"));
    }
    match expiry.get("minutes").and_then(Value::as_u64) {
        Some(n @ 1..=MAX_MINUTES) => Ok(n),
        Some(n) if n > MAX_MINUTES => Err(ApiError::bad(format!(
            "Invalid 'expires_after.minutes': integer above maximum value. Expected a value <= {MAX_MINUTES}, but got {n} instead."
        ))
        .param("expires_after.minutes")
        .code("integer_above_max_value")),
        _ => Err(ApiError::invalid("expires_after.minutes", "an integer from 1 to 20")),
    }
}

pub(super) async fn list(
    State(store): State<Shared>,
    Query(page): Query<Page>,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    store.expire();
    let wanted = |c: &&Container| filter.name.as_ref().is_none_or(|n| *n == c.name);
    page.of(store.containers.values().filter(wanted).map(Container::json).collect(), PAGE, MAX_PAGE)
}

pub(super) async fn retrieve(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    let container = store.any_container(&id)?;
    if !container.expired {
        container.last_active_at = now();
    }
    Ok(Json(container.json()))
}

pub(super) async fn delete(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    store.any_container(&id)?.files.drain(..).for_each(|f| remove(&f.disk));
    store.containers.retain(|_, c| c.id != id);
    Ok(deleted(&id, "container.deleted"))
}

pub(super) async fn create_file(
    State(store): State<Shared>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    lock(&store).container(&id)?;
    let kind = request.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let file = if kind.starts_with("multipart/form-data") {
        let body =
            Multipart::from_request(request, &()).await.map_err(|_| ApiError::bad("The multipart body cannot be read."))?;
        let mut upload = Form::read(&store, body, &[]).await?.file.take().ok_or_else(|| ApiError::missing("file"))?;
        let path = format!("/mnt/data/{}-{}", random_hex(16), upload.name);
        ContainerFile {
            id: container_file_id(),
            created_at: now(),
            path,
            source: "user",
            bytes: upload.bytes,
            disk: upload.take(),
        }
    } else {
        let body = object(Json::from_request(request, &()).await)?;
        known_keys(&body, "", &["file_id"])?;
        let file_id = body.get("file_id").and_then(Value::as_str).ok_or_else(|| ApiError::missing("file_id"))?;
        lock(&store).copy_of(file_id)?
    };
    let mut store = lock(&store);
    let disk = file.disk.clone();
    let container = store.container(&id).inspect_err(|_| remove(&disk))?;
    let body = file.json(&id);
    container.files.push(file);
    Ok(Json(body))
}

pub(super) async fn list_files(
    State(store): State<Shared>,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    let container = store.container(&id)?;
    page.of(container.files.iter().map(|f| f.json(&id)).collect(), PAGE, MAX_PAGE)
}

pub(super) async fn retrieve_file(
    State(store): State<Shared>,
    Path((id, file)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    lock(&store).container(&id)?.file(&file).map(|f| Json(f.json(&id)))
}

pub(super) async fn content(State(store): State<Shared>, Path((id, file)): Path<(String, String)>) -> Result<Vec<u8>, ApiError> {
    let disk = lock(&store).container(&id)?.file(&file)?.disk.clone();
    tokio::fs::read(disk).await.map_err(|_| ApiError::not_found(format!("File {file} not found on container {id}.")))
}

pub(super) async fn delete_file(
    State(store): State<Shared>,
    Path((id, file)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    let container = store.container(&id)?;
    remove(&container.file(&file)?.disk);
    container.files.retain(|f| f.id != file);
    Ok(deleted(&file, "container.file.deleted"))
}
