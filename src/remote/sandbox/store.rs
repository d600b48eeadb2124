//! What the endpoint holds: files, containers and responses in memory, their bytes in a private folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::answer::ApiError;
use crate::error::{Error, Result};
use crate::mask::hex;

/// All that was uploaded and made, by the order of its creation.
pub(super) struct Store {
    /// Readable by its owner alone; goes when this is dropped.
    folder: Option<TempDir>,
    path: PathBuf,
    next: u64,
    pub files: BTreeMap<u64, StoredFile>,
    pub containers: BTreeMap<u64, Container>,
    pub responses: BTreeMap<u64, Stored>,
    /// Uploads in parts, whatever became of them.
    pub pending: BTreeMap<u64, Pending>,
}

/// An upload in parts.
pub(super) struct Pending {
    pub id: String,
    pub name: String,
    pub purpose: String,
    pub bytes: u64,
    pub created_at: u64,
    /// Seconds that the file is to live.
    pub expiry: Option<u64>,
    /// `pending`, `completed` or `cancelled`.
    pub status: &'static str,
    /// Ids and bytes of the parts, in the order of their arrival.
    pub parts: Vec<(String, u64, PathBuf)>,
}

/// An object of the Files API.
pub(super) struct StoredFile {
    pub id: String,
    pub name: String,
    pub purpose: String,
    pub created_at: u64,
    pub expires_at: Option<u64>,
    pub bytes: u64,
    pub path: PathBuf,
}

/// A container and what is in it.
pub(super) struct Container {
    pub id: String,
    pub name: String,
    pub created_at: u64,
    pub last_active_at: u64,
    pub minutes: u64,
    pub memory_limit: String,
    pub network_policy: Value,
    pub expired: bool,
    pub files: Vec<ContainerFile>,
}

/// A file within a container.
pub(super) struct ContainerFile {
    pub id: String,
    pub created_at: u64,
    /// As the code inside sees it.
    pub path: String,
    /// `user` or `assistant`.
    pub source: &'static str,
    pub bytes: u64,
    pub disk: PathBuf,
}

/// A response that was kept.
pub(super) struct Stored {
    pub id: String,
    /// Where it was asked, if code ran.
    pub container: Option<String>,
    /// Uploads that stood in the question.
    pub files: Vec<String>,
    pub body: Value,
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Random hex digits, two a byte.
pub(super) fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    // Without a generator ids would repeat, and the token be guessed.
    getrandom::fill(&mut random).unwrap_or_else(|_| std::process::abort());
    hex(&random)
}

impl Store {
    /// An empty store with a folder of its own, for its owner alone.
    ///
    /// # Errors
    /// A folder that cannot be made, or is there already.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let failed = |e| Error::io("cannot make a private folder", e);
        let name = path.file_name().ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let above = path.parent().unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(above).map_err(failed)?;
        let path = folder.path().to_owned();
        Ok(Self {
            folder: Some(folder),
            path,
            next: 0,
            files: BTreeMap::new(),
            containers: BTreeMap::new(),
            responses: BTreeMap::new(),
            pending: BTreeMap::new(),
        })
    }

    /// The number of the next object, by which lists are ordered.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A path for the bytes of a new file.
    pub(super) fn new_path(&self) -> PathBuf {
        self.path.join(random_hex(16))
    }

    /// Removes everything, the folder too.
    pub(super) fn clear(&mut self) {
        self.files.clear();
        self.containers.clear();
        self.responses.clear();
        self.pending.clear();
        self.folder.take();
    }

    /// Removes what has expired by now.
    pub(super) fn expire(&mut self) {
        let now = now();
        self.files.retain(|_, file| {
            let keep = file.expires_at.is_none_or(|at| at > now);
            if !keep {
                remove(&file.path);
            }
            keep
        });
        self.pending.values_mut().for_each(|pending| pending.expire(now));
        for container in self.containers.values_mut() {
            if container.last_active_at + container.minutes * 60 <= now {
                container.expired = true;
                container.files.drain(..).for_each(|f| remove(&f.disk));
            }
        }
    }

    /// The file of this id.
    pub(super) fn file(&mut self, id: &str) -> Result<&StoredFile, ApiError> {
        self.expire();
        self.files
            .values()
            .find(|f| f.id == id)
            .ok_or_else(|| ApiError::not_found(format!("No such File object: {id}")).param("id"))
    }

    /// The container of this id, if it can be used; this counts as use.
    pub(super) fn container(&mut self, id: &str) -> Result<&mut Container, ApiError> {
        let container = self.any_container(id)?;
        if container.expired {
            return Err(ApiError::bad("Container is expired."));
        }
        container.last_active_at = now();
        Ok(container)
    }

    /// The container of this id, expired or not.
    pub(super) fn any_container(&mut self, id: &str) -> Result<&mut Container, ApiError> {
        self.expire();
        let found = self.containers.values_mut().find(|c| c.id == id);
        found.ok_or_else(|| ApiError::not_found(format!("Container with id '{id}' not found.")))
    }

    /// Copies an upload into a new file of a container.
    pub(super) fn copy_of(&mut self, file_id: &str) -> Result<ContainerFile, ApiError> {
        let disk = self.new_path();
        let file = self.file(file_id)?;
        fs::copy(&file.path, &disk).map_err(|_| ApiError::new(500, "The file cannot be copied."))?;
        let path = format!("/mnt/data/{}-{}", random_hex(16), file.name);
        Ok(ContainerFile { id: container_file_id(), created_at: now(), path, source: "user", bytes: file.bytes, disk })
    }
}

/// A new id of a container's file.
pub(super) fn container_file_id() -> String {
    format!("cfile_{}", random_hex(16))
}

/// Removes the bytes of a file. They are in a folder of ours, so it only fails if they are gone.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

impl StoredFile {
    pub(super) fn json(&self) -> Value {
        let mut body = json!({
            "id": self.id, "object": "file", "bytes": self.bytes, "created_at": self.created_at,
            "filename": self.name, "purpose": self.purpose, "status": "processed",
        });
        if let Some(at) = self.expires_at {
            body["expires_at"] = json!(at);
        }
        body
    }
}

impl Container {
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id, "object": "container", "created_at": self.created_at,
            "status": if self.expired { "expired" } else { "running" },
            "expires_after": {"anchor": "last_active_at", "minutes": self.minutes},
            "last_active_at": self.last_active_at, "memory_limit": self.memory_limit,
            "name": self.name, "network_policy": self.network_policy,
        })
    }

    /// The file of this id.
    pub(super) fn file(&self, id: &str) -> Result<&ContainerFile, ApiError> {
        let found = self.files.iter().find(|f| f.id == id);
        found.ok_or_else(|| ApiError::not_found(format!("File {id} not found on container {}.", self.id)))
    }
}

impl ContainerFile {
    pub(super) fn json(&self, container: &str) -> Value {
        json!({
            "id": self.id, "object": "container.file", "created_at": self.created_at, "bytes": self.bytes,
            "container_id": container, "path": self.path, "source": self.source,
        })
    }

    /// The last part of its path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}
