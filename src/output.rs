//! Staged files: there as a whole, or not at all.
//!
//! A file is written without a name where the system can do that (`O_TMPFILE` on Linux), else under a temporary one beside its target.
//! Only when its bytes are on the disk does it get its name. What ends the process before that, kill -9 and power loss included, leaves
//! nothing in the first case; in the second [`remove_staged`] cleans up at a signal.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// Files under a temporary name at this moment.
static STAGED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that has no name yet. Dropped before [`Staged::persist`], it is gone.
pub struct Staged {
    file: File,
    target: PathBuf,
    /// Its temporary name, if it has one.
    name: Option<PathBuf>,
    replace: bool,
    /// Bytes written since the disk was last asked to take them.
    behind: usize,
    writeback: Option<Writeback>,
}

/// Bytes after which the disk is asked to take what has been written, so that the end does not wait for all of it.
const WRITEBACK: usize = 4 << 20;

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and that is an error.
    Refuse,
    /// It is replaced in one step.
    Replace,
}

impl Staged {
    /// Begins a file that is to be `target`, readable by its owner alone.
    ///
    /// # Errors
    /// A target that exists and is to stay, or a folder that cannot be written.
    pub fn create(target: &Path, existing: Existing) -> Result<Self> {
        let replace = existing == Existing::Replace;
        if !replace && target.symlink_metadata().is_ok() {
            return Err(Error::usage(format!("{} exists", target.display())).hint("--force to replace it"));
        }
        if target.metadata().is_ok_and(|m| !m.is_file()) {
            return Err(Error::usage(format!("{} is no file", target.display())));
        }
        let folder = folder(target);
        let failed = |e| Error::io(format!("cannot write in {}", folder.display()), e);
        let (file, name) = if let Some(file) = unnamed(folder) {
            (file, None)
        } else {
            let name = temporary_name(target);
            let file = create_new(&name).map_err(failed)?;
            staged().push(name.clone());
            (file, Some(name))
        };
        Ok(Self { file, target: target.to_owned(), name, replace, behind: 0, writeback: None })
    }

    /// Gives the file its name, once its bytes are on the disk.
    ///
    /// # Errors
    /// Those of the disk, or a target that came to be in the meantime; nothing is left then.
    pub fn persist(mut self) -> Result<()> {
        let failed = |target: &Path| format!("cannot write {}", target.display());
        // The system tells a failed write once: whoever asked first has to pass it on.
        self.writeback.take().map_or(Ok(()), Writeback::end).map_err(|e| Error::io(failed(&self.target), e))?;
        self.file.sync_all().map_err(|e| Error::io(failed(&self.target), e))?;
        let target = self.target.clone();
        let named = match self.name.clone() {
            None if !self.replace => link(&self.file, &target),
            None => {
                let name = temporary_name(&target);
                staged().push(name.clone());
                self.name = Some(name.clone());
                link(&self.file, &name).and_then(|()| fs::rename(&name, &target))
            }
            Some(name) if self.replace => fs::rename(&name, &target),
            Some(name) => fs::hard_link(&name, &target).and_then(|()| fs::remove_file(&name)),
        };
        named.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::usage(format!("{} exists", target.display())).hint("--force to replace it"),
            _ => Error::io(failed(&target), e),
        })?;
        self.forget_name();
        // The name itself is on the disk only when its folder is.
        File::open(folder(&target)).and_then(|f| f.sync_all()).map_err(|e| Error::io(failed(&target), e))
    }

    fn forget_name(&mut self) {
        if let Some(name) = self.name.take() {
            staged().retain(|n| *n != name);
        }
    }
}

/// Asks the disk to take what has been written, beside the run: it would idle until the end otherwise.
struct Writeback {
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Writeback {
    fn of(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let (ask, asked) = sync_channel(1);
        let work = move || {
            while asked.recv().is_ok() {
                file.sync_data()?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("hmask-writeback".into()).spawn(work)?;
        Ok(Self { ask: Some(ask), thread: Some(thread) })
    }

    fn ask(&self) {
        // One that is waiting already is enough.
        let _ = self.ask.as_ref().map(|ask| ask.try_send(()));
    }

    /// Waits until it is through.
    fn end(mut self) -> io::Result<()> {
        self.ask.take();
        self.thread.take().map_or(Ok(()), |t| t.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed"))))
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.behind += n;
        if self.behind >= WRITEBACK {
            self.behind = 0;
            if self.writeback.is_none() {
                self.writeback = Writeback::of(&self.file).ok();
            }
            self.writeback.as_ref().into_iter().for_each(Writeback::ask);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It may have been renamed already.
            let _ = fs::remove_file(name);
        }
        self.forget_name();
    }
}

/// A folder that is there as a whole, or not at all. Dropped before [`StagedFolder::persist`], or at a signal, it is gone; `kill -9` leaves
/// it under its temporary name, with masked files alone in it.
pub struct StagedFolder {
    /// Beside the target, under a temporary name.
    name: PathBuf,
    target: PathBuf,
    existing: Existing,
    done: bool,
}

impl StagedFolder {
    /// Begins a folder that is to be `target`, or to be merged into it.
    ///
    /// # Errors
    /// A folder beside it that cannot be written.
    pub fn create(target: &Path, existing: Existing) -> Result<Self> {
        if target.metadata().is_ok_and(|m| !m.is_dir()) {
            return Err(Error::usage(format!("{} is no folder", target.display())));
        }
        // Within a target that is there: it can be on a disk of its own.
        let name = if target.is_dir() { temporary_name(&target.join("new")) } else { temporary_name(target) };
        fs::create_dir(&name).map_err(|e| Error::io(format!("cannot write in {}", folder(target).display()), e))?;
        staged().push(name.clone());
        Ok(Self { name, target: target.to_owned(), existing, done: false })
    }

    /// Where the file of this relative path is to be written; the folders above it are made.
    ///
    /// # Errors
    /// Those of the disk, or a file that exists in the target and is to stay.
    pub fn path(&self, file: &Path) -> Result<PathBuf> {
        self.refuse_existing(file)?;
        let path = self.name.join(file);
        fs::create_dir_all(folder(&path)).map_err(|e| Error::io(format!("cannot write in {}", self.target.display()), e))?;
        Ok(path)
    }

    fn refuse_existing(&self, file: &Path) -> Result<()> {
        let there = self.target.join(file);
        if self.existing == Existing::Refuse && there.symlink_metadata().is_ok() {
            return Err(Error::usage(format!("{} exists", there.display())).hint("--force to replace it"));
        }
        Ok(())
    }

    /// Gives the folder its name; into a folder that is there, its files are moved one by one.
    ///
    /// # Errors
    /// Those of the disk, or files that came to be in the meantime.
    pub fn persist(mut self) -> Result<()> {
        let failed = |e| Error::io(format!("cannot write {}", self.target.display()), e);
        if self.target.exists() {
            self.merge(Path::new(""), false)?;
            self.merge(Path::new(""), true)?;
            fs::remove_dir_all(&self.name).map_err(failed)?;
        } else {
            fs::rename(&self.name, &self.target).map_err(failed)?;
        }
        File::open(folder(&self.target)).and_then(|f| f.sync_all()).map_err(failed)?;
        self.done = true;
        Ok(())
    }

    /// Moves the files, or only looks whether all of them can be moved.
    fn merge(&self, below: &Path, really: bool) -> Result<()> {
        let failed = |e| Error::io(format!("cannot write in {}", self.target.display()), e);
        for entry in fs::read_dir(self.name.join(below)).map_err(failed)? {
            let path = below.join(entry.map_err(failed)?.file_name());
            let (from, to) = (self.name.join(&path), self.target.join(&path));
            if to.exists() && from.is_dir() != to.is_dir() {
                return Err(Error::usage(format!("{} is in the way", to.display())));
            }
            if from.is_dir() {
                if really {
                    fs::create_dir_all(&to).map_err(failed)?;
                }
                self.merge(&path, really)?;
            } else {
                self.refuse_existing(&path)?;
                if really {
                    fs::rename(from, to).map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.name);
        }
        staged().retain(|n| *n != self.name);
    }
}

/// Removes what is staged under a name, when the process is about to end.
pub fn remove_staged() {
    for name in staged().drain(..) {
        let _ = if name.is_dir() { fs::remove_dir_all(name) } else { fs::remove_file(name) };
    }
}

fn staged() -> MutexGuard<'static, Vec<PathBuf>> {
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Beside the target, so that renaming is one step; with random letters, so that nobody can have put something there.
fn temporary_name(target: &Path) -> PathBuf {
    let random = uuid::Uuid::now_v7().simple().to_string();
    let name = target.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    folder(target).join(format!(".{name}.hmask-{random}.tmp"))
}

fn create_new(name: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(name)
}

/// A file without a name, where the system has such.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

/// Gives a name to a file without one; fails if the name is taken.
#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_there_before_and_all_is_there_after() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.csv");
        let mut staged = Staged::create(&target, Existing::Refuse).unwrap();
        staged.write_all(b"text").unwrap();
        assert!(!target.exists());
        staged.persist().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"text");
        assert_eq!(names(folder.path()), ["out.csv"]);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&target.metadata().unwrap().permissions()) & 0o777, 0o600);
    }

    #[test]
    fn a_dropped_file_leaves_nothing_and_an_existing_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.csv");
        drop(Staged::create(&target, Existing::Refuse).unwrap());
        assert!(names(folder.path()).is_empty());
        let late = Staged::create(&target, Existing::Refuse).unwrap();
        fs::write(&target, "mine").unwrap();
        assert!(Staged::create(&target, Existing::Refuse).is_err());
        assert!(late.persist().unwrap_err().is_usage());
        assert_eq!(fs::read(&target).unwrap(), b"mine");
        let mut staged = Staged::create(&target, Existing::Replace).unwrap();
        staged.write_all(b"theirs").unwrap();
        staged.persist().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn named_files_go_too() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.csv");
        for replace in [false, true] {
            let name = temporary_name(&target);
            let mut file = create_new(&name).unwrap();
            file.write_all(b"x").unwrap();
            staged().push(name.clone());
            Staged { file, target: target.clone(), name: Some(name), replace, behind: 0, writeback: None }.persist().unwrap();
            assert_eq!(names(folder.path()), ["out.csv"]);
        }
        let name = temporary_name(&target);
        let file = create_new(&name).unwrap();
        drop(Staged { file, target, name: Some(name), replace: false, behind: 0, writeback: None });
        assert_eq!(names(folder.path()), ["out.csv"]);
    }
}
