//! Multipart bodies: small fields into memory, files onto the disk as they come.

use axum::extract::Multipart;
use axum::extract::multipart::Field;
use tokio::io::AsyncWriteExt;

use super::answer::ApiError;
use super::store::remove;
use super::{Shared, lock};

/// Bytes that an upload may have.
const MAX_FILE: u64 = 512 << 20;
/// Bytes that a small field may have.
const MAX_FIELD: usize = 4096;

/// A file that has arrived. Its bytes go with it, unless they are taken.
pub(super) struct Upload {
    pub name: String,
    pub bytes: u64,
    path: Option<std::path::PathBuf>,
}

/// A form: its small fields and its file.
#[derive(Default)]
pub(super) struct Form {
    pub fields: Vec<(String, String)>,
    pub file: Option<Upload>,
}

impl Upload {
    /// The path of the bytes, which are the caller's from now on.
    pub(super) fn take(&mut self) -> std::path::PathBuf {
        self.path.take().unwrap_or_default()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            remove(path);
        }
    }
}

impl Form {
    /// The text of a small field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Reads a form whose fields must be among `known`, or be the file.
    ///
    /// # Errors
    /// Another field, a file beyond the limit, a body that is no form.
    pub(super) async fn read(store: &Shared, mut body: Multipart, known: &[&str]) -> Result<Self, ApiError> {
        let mut form = Self::default();
        while let Some(field) = body.next_field().await.map_err(|e| malformed(&e))? {
            let name = field.name().unwrap_or_default().to_owned();
            if (name == "file" || name == "data" && known.contains(&"data")) && field.file_name().is_some() {
                form.file = Some(save(store, field).await?);
            } else if known.contains(&name.as_str()) {
                form.fields.push((name, text(field).await?));
            } else {
                return Err(ApiError::bad(format!("Additional properties are not allowed ('{name}' was unexpected)")));
            }
        }
        Ok(form)
    }
}

async fn text(mut field: Field<'_>) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_FIELD {
            return Err(ApiError::bad("A field of the form is too long."));
        }
    }
    String::from_utf8(bytes).map_err(|_| ApiError::bad("A field of the form is not UTF-8."))
}

async fn save(store: &Shared, mut field: Field<'_>) -> Result<Upload, ApiError> {
    let failed = |_| ApiError::new(500, "The file cannot be stored.");
    let path = lock(store).new_path();
    let mut upload = Upload { name: field.file_name().unwrap_or("upload").to_owned(), bytes: 0, path: Some(path.clone()) };
    let mut file = tokio::fs::File::create_new(&path).await.map_err(failed)?;
    while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
        upload.bytes += chunk.len() as u64;
        if upload.bytes > MAX_FILE {
            return Err(ApiError::new(413, "File is too large. The limit is 512 MB."));
        }
        file.write_all(&chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(upload)
}

fn malformed(error: &axum::extract::multipart::MultipartError) -> ApiError {
    ApiError::bad(format!("The multipart body cannot be read: {}", error.status()))
}
