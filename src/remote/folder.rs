//! A folder as somebody to lend to: a share, or a disk that is carried away.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::client::Failure;
use super::target::{CallError, Life, Note, Seen, Step, Target, Upload, Within, hidden_name};
use super::thing::{Thing, container_name};
use crate::error::{Error, Result};
use crate::gate::Cleared;

/// A folder. Nothing but the loan's end removes what is in it: a disk knows no expiry.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of `file://PATH`.
    ///
    /// # Errors
    /// One that is not there, or named by a path that is not whole.
    pub fn new(url: &str) -> Result<Self> {
        let path = url::Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
        let path = path.ok_or_else(|| Error::usage(format!("{url} names no folder")).hint("--to file:///path/to/folder"))?;
        if !path.is_dir() {
            return Err(Error::usage(format!("{} is no folder", path.display())));
        }
        Ok(Self { path })
    }

    fn of(&self, thing: &Thing) -> PathBuf {
        match thing {
            Thing::Object(name, _) => self.path.join(Path::new(name).file_name().unwrap_or_default()),
            _ => self.path.join(".none"),
        }
    }

    fn write(&self, name: &str, cleared: &Cleared) -> std::io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.path.join(name))?;
        let mut from = cleared.reader().map_err(std::io::Error::other)?;
        std::io::copy(&mut from, &mut file)?;
        file.sync_all()?;
        self.sync()
    }

    fn sync(&self) -> std::io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

#[async_trait]
impl Target for Folder {
    fn place(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// Which folder of which disk it is: where another one is mounted, or none, what was lent is not to be seen, and not gone.
    fn account(&self, _: &str) -> String {
        #[cfg(unix)]
        {
            let inode = fs::metadata(&self.path).map(|m| std::os::unix::fs::MetadataExt::ino(&m)).unwrap_or_default();
            let disk = rustix::fs::statvfs(&self.path).map(|s| s.f_fsid).unwrap_or_default();
            format!("{disk:x}-{inode:x}")
        }
        #[cfg(not(unix))]
        String::new()
    }

    fn by_hand(&self, thing: &Thing) -> String {
        format!("rm '{}'", self.of(thing).display().to_string().replace('\'', "'\\''"))
    }

    fn not_deletable(&self) -> String {
        "whoever read it while it was lent has it; a disk can keep what is deleted: snapshots, backups, blocks that are free"
            .into()
    }

    async fn prepare(&self) -> Result<Option<String>> {
        Ok(Some("a disk can keep what is deleted: snapshots, backups, and until they are overwritten its blocks".into()))
    }

    async fn upload(&self, name: &str, cleared: &Cleared, note: &mut Note<'_>) -> Result<Upload, CallError> {
        let name = hidden_name(name).map_err(CallError::NotSent)?;
        let thing = Thing::Object(name.clone(), None);
        // Its name is known beforehand: what a full disk leaves half written is found by it.
        note(Step::Made(&thing));
        self.write(&name, cleared).map_err(|e| CallError::Unknown(format!("it cannot be written: {e}")))?;
        let path = self.path.join(&name);
        let bytes = fs::metadata(&path).map_err(|e| CallError::Unknown(e.to_string()))?.len();
        let url = url::Url::from_file_path(&path).map(String::from).ok();
        Ok(Upload { id: name, thing, bytes: Some(bytes), life: Life::Forever, url })
    }

    async fn named(&self, task: &str, _: &[Within]) -> Result<Vec<Thing>, CallError> {
        let failed = |e: std::io::Error| CallError::Unknown(e.to_string());
        let prefix = container_name(task);
        let names = fs::read_dir(&self.path).map_err(failed)?.map(|e| e.map(|e| e.file_name()));
        let names = names.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        let ours = names.iter().filter_map(|n| n.to_str()).filter(|n| n.starts_with(&prefix));
        Ok(ours.map(|n| Thing::Object(n.to_owned(), None)).collect())
    }

    async fn delete(&self, thing: &Thing) -> Result<Seen, Failure> {
        match fs::remove_file(self.of(thing)) {
            Ok(()) => self.sync().map(|()| Seen::There).map_err(|e| Failure::Unknown(e.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Seen::Gone),
            Err(e) => Ok(Seen::Unclear(e.to_string())),
        }
    }

    async fn look(&self, thing: &Thing) -> Result<Seen, Failure> {
        match fs::symlink_metadata(self.of(thing)) {
            Ok(_) => Ok(Seen::There),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Seen::Gone),
            Err(e) => Ok(Seen::Unclear(e.to_string())),
        }
    }
}
