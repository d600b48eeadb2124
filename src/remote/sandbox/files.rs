//! `/v1/files`.

use axum::Json;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, Path, Query, State};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{ApiError, Page, deleted};
use super::store::{StoredFile, now, random_hex, remove};
use super::upload::Form;
use super::{Shared, lock};

/// The two fields of the expiry, as multipart names them.
const ANCHOR: &str = "expires_after[anchor]";
const SECONDS: &str = "expires_after[seconds]";
pub(super) const PURPOSES: [&str; 6] = ["fine-tune", "assistants", "batch", "user_data", "vision", "evals"];
/// Most entries of a list.
const MAX_PAGE: usize = 10_000;

#[derive(Deserialize)]
pub(super) struct Filter {
    purpose: Option<String>,
}

pub(super) async fn create(
    State(store): State<Shared>,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Json<Value>, ApiError> {
    let body = body.map_err(|_| ApiError::bad("The body must be multipart/form-data."))?;
    let mut form = Form::read(&store, body, &["purpose", ANCHOR, SECONDS]).await?;
    let purpose = form.field("purpose").ok_or_else(|| ApiError::missing("purpose"))?.to_owned();
    if !PURPOSES.contains(&purpose.as_str()) {
        return Err(ApiError::bad(format!("'{purpose}' is not one of {PURPOSES:?} - 'purpose'")).param("purpose"));
    }
    let seconds = expiry(form.field(ANCHOR), form.field(SECONDS))?;
    let mut upload = form.file.take().ok_or_else(|| ApiError::missing("file"))?;
    let mut store = lock(&store);
    let created_at = now();
    let file = StoredFile {
        id: format!("file-{}", random_hex(12)),
        name: upload.name.clone(),
        purpose,
        created_at,
        expires_at: seconds.map(|s| created_at + s),
        bytes: upload.bytes,
        path: upload.take(),
    };
    let body = file.json();
    let number = store.number();
    store.files.insert(number, file);
    Ok(Json(body))
}

/// The expiry of these two fields.
pub(super) fn expiry(anchor: Option<&str>, seconds: Option<&str>) -> Result<Option<u64>, ApiError> {
    match (anchor, seconds) {
        (None, None) => Ok(None),
        (Some("created_at"), Some(seconds)) => match seconds.parse() {
            Ok(n @ 3600..=2_592_000) => Ok(Some(n)),
            _ => Err(ApiError::invalid("expires_after.seconds", "an integer from 3600 to 2592000")),
        },
        (Some(_), Some(_)) => Err(ApiError::invalid("expires_after.anchor", "'created_at'")),
        (Some(_), None) => Err(ApiError::missing("expires_after.seconds")),
        (None, Some(_)) => Err(ApiError::missing("expires_after.anchor")),
    }
}

pub(super) async fn list(
    State(store): State<Shared>,
    Query(page): Query<Page>,
    Query(filter): Query<Filter>,
) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    store.expire();
    let wanted = |f: &&StoredFile| filter.purpose.as_ref().is_none_or(|p| *p == f.purpose);
    page.of(store.files.values().filter(wanted).map(StoredFile::json).collect(), MAX_PAGE, MAX_PAGE)
}

pub(super) async fn retrieve(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    lock(&store).file(&id).map(|f| Json(f.json()))
}

pub(super) async fn content(State(store): State<Shared>, Path(id): Path<String>) -> Result<Vec<u8>, ApiError> {
    let path = lock(&store).file(&id)?.path.clone();
    tokio::fs::read(path).await.map_err(|_| ApiError::not_found(format!("No such File object: {id}")))
}

pub(super) async fn delete(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    remove(&store.file(&id)?.path);
    store.files.retain(|_, f| f.id != id);
    Ok(deleted(&id, "file"))
}
