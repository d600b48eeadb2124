//! `/v1/uploads`: a large file in parts.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use axum::Json;
use axum::extract::multipart::MultipartRejection;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Multipart, Path, State};
use serde_json::{Value, json};

use super::answer::ApiError;
use super::containers::{known_keys, object};
use super::files::{PURPOSES, expiry};
use super::store::{Pending, StoredFile, now, random_hex, remove};
use super::upload::Form;
use super::{Shared, lock};

/// Bytes that all parts may have.
const MAX_BYTES: u64 = 8 << 30;
/// Seconds after which an upload that is not complete is over.
const LIFE: u64 = 3600;

pub(super) async fn create(
    State(store): State<Shared>,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let body = object(body)?;
    known_keys(&body, "", &["filename", "purpose", "bytes", "mime_type", "expires_after"])?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| ApiError::missing(name));
    let (name, purpose) = (text("filename")?, text("purpose")?);
    text("mime_type")?;
    if !PURPOSES.contains(&purpose.as_str()) || purpose == "evals" {
        return Err(ApiError::invalid("purpose", "a purpose of uploads"));
    }
    let bytes = body.get("bytes").and_then(Value::as_u64).ok_or_else(|| ApiError::missing("bytes"))?;
    if bytes > MAX_BYTES {
        return Err(ApiError::invalid("bytes", "at most 8 GB"));
    }
    let after = body.get("expires_after").filter(|v| !v.is_null());
    let seconds = after.and_then(|v| v["seconds"].as_u64()).map(|s| s.to_string());
    let expiry = expiry(after.map(|v| v["anchor"].as_str().unwrap_or_default()), seconds.as_deref())?;
    let mut store = lock(&store);
    let id = format!("upload_{}", random_hex(16));
    let pending = Pending { id, name, purpose, bytes, created_at: now(), expiry, status: "pending", parts: Vec::new() };
    let body = pending.json(None);
    let number = store.number();
    store.pending.insert(number, pending);
    Ok(Json(body))
}

pub(super) async fn add(
    State(store): State<Shared>,
    Path(id): Path<String>,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Json<Value>, ApiError> {
    find(&store, &id)?;
    let body = body.map_err(|_| ApiError::bad("The body must be multipart/form-data."))?;
    let mut part = Form::read(&store, body, &["data"]).await?.file.take().ok_or_else(|| ApiError::missing("data"))?;
    let mut store = lock(&store);
    let pending = store.pending.values_mut().find(|p| p.id == id && p.status == "pending");
    let pending = pending.ok_or_else(|| ApiError::bad("The upload is not pending."))?;
    let part_id = format!("part_{}", random_hex(16));
    pending.parts.push((part_id.clone(), part.bytes, part.take()));
    Ok(Json(json!({"id": part_id, "object": "upload.part", "created_at": now(), "upload_id": id})))
}

pub(super) async fn complete(
    State(store): State<Shared>,
    Path(id): Path<String>,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    find(&store, &id)?;
    let body = object(body)?;
    known_keys(&body, "", &["part_ids", "md5"])?;
    let wanted = body.get("part_ids").and_then(Value::as_array).ok_or_else(|| ApiError::missing("part_ids"))?.clone();
    let mut store = lock(&store);
    let target = store.new_path();
    let created_at = now();
    let pending = store.pending.values_mut().find(|p| p.id == id && p.status == "pending");
    let pending = pending.ok_or_else(|| ApiError::bad("The upload is not pending."))?;
    let unknown = || ApiError::invalid("part_ids", "ids of parts of this upload");
    let part = |id: &Value| pending.parts.iter().find(|(part, ..)| id == part).ok_or_else(unknown);
    let parts = wanted.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    let bytes: u64 = parts.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes != pending.bytes {
        return Err(ApiError::bad(format!("The parts have {bytes} bytes, not {}.", pending.bytes)));
    }
    let paths: Vec<PathBuf> = parts.into_iter().map(|(.., path)| path.clone()).collect();
    if join(&paths, &target).is_err() {
        remove(&target);
        return Err(ApiError::new(500, "The parts cannot be put together."));
    }
    let file = StoredFile {
        id: format!("file-{}", random_hex(12)),
        name: pending.name.clone(),
        purpose: pending.purpose.clone(),
        created_at,
        expires_at: pending.expiry.map(|s| created_at + s),
        bytes,
        path: target,
    };
    pending.end("completed");
    let body = pending.json(Some(file.json()));
    let number = store.number();
    store.files.insert(number, file);
    Ok(Json(body))
}

pub(super) async fn cancel(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    find(&store, &id)?;
    let mut store = lock(&store);
    let pending = store.pending.values_mut().find(|p| p.id == id).ok_or_else(|| not_found(&id))?;
    if pending.status != "pending" {
        return Err(ApiError::bad(format!("The upload is {} already.", pending.status)));
    }
    pending.end("cancelled");
    Ok(Json(pending.json(None)))
}

fn find(store: &Shared, id: &str) -> Result<(), ApiError> {
    let mut store = lock(store);
    store.expire();
    if store.pending.values().any(|p| p.id == id) { Ok(()) } else { Err(not_found(id)) }
}

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("No such Upload object: {id}"))
}

fn join(parts: &[PathBuf], target: &std::path::Path) -> io::Result<()> {
    let mut file = File::create_new(target)?;
    for part in parts {
        io::copy(&mut File::open(part)?, &mut file)?;
    }
    Ok(())
}

impl Pending {
    /// Ends it if its time is over.
    pub(super) fn expire(&mut self, now: u64) {
        if self.status == "pending" && self.created_at + LIFE <= now {
            self.end("expired");
        }
    }

    /// Its parts are not needed any more.
    fn end(&mut self, status: &'static str) {
        self.status = status;
        self.parts.drain(..).for_each(|(.., path)| remove(&path));
    }

    fn json(&self, file: Option<Value>) -> Value {
        let mut body = json!({
            "id": self.id, "object": "upload", "bytes": self.bytes, "created_at": self.created_at,
            "expires_at": self.created_at + LIFE, "filename": self.name, "purpose": self.purpose, "status": self.status,
        });
        if let Some(file) = file {
            body["file"] = file;
        }
        body
    }
}
