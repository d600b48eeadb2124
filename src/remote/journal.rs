//! The journal of a loan: what is about to be lent, what is, and what is gone, on the disk before the step that it announces.
//!
//! One file a run, append-only, a JSON object a line, each line synced before the run goes on. The file is locked while its run lives, so
//! that a sweep knows which runs are over, and removed once everything is gone. It holds ids, times, the endpoint, host and
//! process; no value, no secret, no path of an input.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::thing::{Thing, Within};
use crate::error::{Error, Result};

/// Version of the lines' form.
const VERSION: u32 = 1;
/// What the file of a run is called: this, its task id, and the ending.
const PREFIX: &str = "hmask-";
const ENDING: &str = ".jsonl";
/// Bytes that a journal may have: a run writes some tens of lines.
const MAX_BYTES: u64 = 16 << 20;

/// Called before and after each line, so that a test can end the process there.
pub type Step = Box<dyn Fn() + Send + Sync>;

/// The run that a journal belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the form in which it was written.
    pub version: u32,
    /// The run's `UUIDv7`: all that the remote names hold.
    pub task: String,
    /// A hash of the task, the access token and the account's headers: what another account does not see is not gone.
    pub account: String,
    /// Base URL of the endpoint, without user and password.
    pub base_url: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When it began, in seconds since 1970.
    pub time: u64,
}

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Begin(Run),
    /// A request is about to be sent that makes something whose id is not known yet.
    Intent {
        time: u64,
    },
    /// That request is through, and made nothing but what is listed as live.
    Settled {
        time: u64,
    },
    /// A thing of ours is on the other side.
    Live {
        time: u64,
        thing: Thing,
    },
    /// It was deleted, looked for, and not found.
    Gone {
        time: u64,
        thing: Thing,
    },
    /// A folder of this machine that goes with the run.
    Folder {
        time: u64,
        path: PathBuf,
    },
    /// Something is about to be put into a container that is the user's.
    Within {
        time: u64,
        #[serde(flatten)]
        within: Within,
    },
    /// A question is about to be put whose answer is stored over there under an id that no list shows.
    Asked {
        time: u64,
    },
    /// Nothing was stored. If something was, its line as live says so.
    Heard {
        time: u64,
    },
}

/// The journal of a run that lives.
pub struct Journal {
    file: File,
    path: PathBuf,
    clock: fn() -> u64,
    step: Step,
}

/// A journal whose run is over, taken for a sweep.
#[derive(Debug)]
pub struct Left {
    /// The run's id, from the file's name.
    pub task: String,
    /// The run, unless its first line was lost.
    pub run: Option<Run>,
    /// What was live at the end.
    pub live: Vec<Thing>,
    /// Whether a request may have made something whose id was not written down.
    pub doubt: bool,
    /// Folders of this machine that the run used.
    pub folders: Vec<PathBuf>,
    /// Containers of the user that the run put something into.
    pub within: Vec<Within>,
    /// Whether an answer may be stored under an id that was not written down.
    pub unheard: bool,
    file: File,
    path: PathBuf,
}

/// A journal of a run as a sweep finds it.
#[derive(Debug)]
pub enum Found {
    /// Its run is over.
    Left(Box<Left>),
    /// Its run lives, or another sweep has it.
    Alive(String),
    /// It cannot be read, so what it lists is not known.
    Unreadable(Error),
}

impl Run {
    /// A run of this version.
    pub fn new(task: &str, account: &str, base_url: &str, host: &str, pid: u32, time: u64) -> Self {
        Self {
            version: VERSION,
            task: task.into(),
            account: account.into(),
            base_url: base_url.into(),
            host: host.into(),
            pid,
            time,
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal({})", self.path.display())
    }
}

impl Journal {
    /// Begins the journal of a run in `folder`, which is made if need be, for its owner alone. `clock` gives seconds since 1970.
    ///
    /// # Errors
    /// Those of the disk: then nothing may be lent.
    pub fn create(folder: &Path, run: Run, clock: fn() -> u64, step: Step) -> Result<Self> {
        let path = folder.join(format!("{PREFIX}{}{ENDING}", run.task));
        // Under another name until it is locked and begun: a sweep would take it for that of a dead run.
        let begun = folder.join(format!(".{PREFIX}{}{ENDING}", run.task));
        let failed = |e| Error::io(format!("cannot keep a journal in {}", folder.display()), e);
        make_folder(folder).map_err(failed)?;
        let mut options = File::options();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&begun).map_err(failed)?;
        file.try_lock().map_err(|e| failed(e.into()))?;
        let mut journal = Self { file, path, clock, step };
        journal.write(&Line::Begin(run))?;
        fs::rename(&begun, &journal.path).and_then(|()| sync_folder(folder)).map_err(failed)?;
        Ok(journal)
    }

    /// Something is about to be made.
    ///
    /// # Errors
    /// Those of the disk: then the request must not be sent.
    pub fn intend(&mut self) -> Result<()> {
        self.write(&Line::Intent { time: (self.clock)() })
    }

    /// The request is through.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn settle(&mut self) -> Result<()> {
        self.write(&Line::Settled { time: (self.clock)() })
    }

    /// A thing is on the other side.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn live(&mut self, thing: &Thing) -> Result<()> {
        self.write(&Line::Live { time: (self.clock)(), thing: thing.clone() })
    }

    /// A thing is gone for certain.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn gone(&mut self, thing: &Thing) -> Result<()> {
        self.write(&Line::Gone { time: (self.clock)(), thing: thing.clone() })
    }

    /// A folder of this machine goes with the run.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn folder(&mut self, path: &Path) -> Result<()> {
        self.write(&Line::Folder { time: (self.clock)(), path: path.to_owned() })
    }

    /// Something is about to be put into a container of the user.
    ///
    /// # Errors
    /// Those of the disk: then it must not be.
    pub fn within(&mut self, within: &Within) -> Result<()> {
        self.write(&Line::Within { time: (self.clock)(), within: within.clone() })
    }

    /// A question is about to be put whose answer is stored.
    ///
    /// # Errors
    /// Those of the disk: then it must not be.
    pub fn ask(&mut self) -> Result<()> {
        self.write(&Line::Asked { time: (self.clock)() })
    }

    /// Nothing was stored.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn hear(&mut self) -> Result<()> {
        self.write(&Line::Heard { time: (self.clock)() })
    }

    /// Everything is gone: so is the journal.
    ///
    /// # Errors
    /// Those of the disk. A journal that stays makes a sweep look once more.
    pub fn close(self) -> Result<()> {
        (self.step)();
        remove(&self.path)?;
        (self.step)();
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let failed = |e: std::io::Error| Error::io("cannot write the journal", e);
        let mut text = serde_json::to_vec(line).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        (self.step)();
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)?;
        (self.step)();
        Ok(())
    }
}

impl Left {
    /// Everything is gone: so is the journal.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn close(self) -> Result<()> {
        remove(&self.path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Seconds since 1970 of the run's beginning, or of the last change of its journal.
    pub fn time(&self) -> u64 {
        let changed = || self.file.metadata().and_then(|m| m.modified()).ok();
        let seconds = |t: std::time::SystemTime| t.duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        self.run.as_ref().map_or_else(|| changed().map_or(0, seconds), |r| r.time)
    }
}

/// All journals in a folder, in order of their runs.
///
/// # Errors
/// A folder that cannot be read; one that is not there has none.
pub fn all(folder: &Path) -> Result<Vec<Found>> {
    let failed = |e| Error::io(format!("cannot read the journals in {}", folder.display()), e);
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    paths.sort();
    paths.iter().for_each(|path| remove_if_never_begun(path));
    let task = |path: &Path| Some(path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(ENDING)?.to_owned());
    let tasks = paths.into_iter().filter_map(|path| Some((task(&path)?, path)));
    // One that does not read must not hide the others.
    Ok(tasks.filter_map(|(task, path)| open(task, path).unwrap_or_else(|e| Some(Found::Unreadable(e)))).collect())
}

/// Removes the journal of a run that died before it had begun: nothing can have been sent.
fn remove_if_never_begun(path: &Path) {
    let is_such = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&format!(".{PREFIX}")));
    if is_such && File::open(path).is_ok_and(|file| file.try_lock().is_ok()) {
        // If its run is just about to lock it, that run finds it gone and sends nothing.
        let _ = fs::remove_file(path);
    }
}

fn open(task: String, path: PathBuf) -> Result<Option<Found>> {
    let failed = |e| Error::io(format!("cannot read the journal {}", path.display()), e);
    let file = match File::open(&path) {
        // Its run came to its end in the meantime.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return Ok(Some(Found::Alive(task))),
        locked => locked.map_err(|e| failed(e.into()))?,
    }
    let mut bytes = Vec::new();
    (&file).take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let (live, folders, within) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = Left { task, run: None, live, doubt: false, folders, within, unheard: false, file, path };
    left.replay(&text);
    Ok(Some(Found::Left(Box::new(left))))
}

impl Left {
    fn replay(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            // A line that was cut when the power went, or that a later version wrote: whatever it said, there is doubt.
            let Some(line) = line.strip_suffix('\n').and_then(|l| serde_json::from_str(l).ok()) else {
                self.doubt = true;
                continue;
            };
            match line {
                Line::Begin(run) => self.run = Some(run),
                Line::Intent { .. } => self.doubt = true,
                Line::Settled { .. } => self.doubt = false,
                Line::Live { thing, .. } => {
                    self.unheard &= !matches!(thing, Thing::Response(_));
                    self.live.push(thing);
                }
                Line::Gone { thing, .. } => self.live.retain(|t| *t != thing),
                Line::Folder { path, .. } => self.folders.push(path),
                Line::Within { within, .. } => self.within.push(within),
                Line::Asked { .. } => self.unheard = true,
                Line::Heard { .. } => self.unheard = false,
            }
        }
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn remove(path: &Path) -> Result<()> {
    let failed = |e| Error::io("cannot remove the journal", e);
    fs::remove_file(path).map_err(failed)?;
    path.parent().map_or(Ok(()), sync_folder).map_err(failed)
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(folder: &Path) -> Journal {
        let run = Run::new("0193", "", "http://127.0.0.1:1/v1/", "machine", 7, 1_800_000_000);
        Journal::create(folder, run, || 1_800_000_001, Box::new(|| {})).unwrap()
    }

    fn left(folder: &Path) -> Box<Left> {
        match all(folder).unwrap().pop() {
            Some(Found::Left(left)) => left,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_that_lives_is_left_alone_and_one_that_died_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(all(&folder.path().join("none")).unwrap().is_empty());
        let mut journal = begin(&folder.path().join("runs"));
        let runs = folder.path().join("runs");
        journal.intend().unwrap();
        assert!(matches!(&all(&runs).unwrap()[..], [Found::Alive(task)] if task == "0193"));
        journal.live(&Thing::File("file-1".into())).unwrap();
        journal.live(&Thing::Container("cntr_2".into())).unwrap();
        journal.gone(&Thing::Container("cntr_2".into())).unwrap();
        drop(journal);
        let found = left(&runs);
        assert_eq!((found.live.as_slice(), found.doubt), (&[Thing::File("file-1".into())][..], true));
        assert_eq!((found.run.as_ref().unwrap().pid, found.time()), (7, 1_800_000_000));
        found.close().unwrap();
        assert!(all(&runs).unwrap().is_empty());
    }

    #[test]
    fn a_journal_that_was_cut_anywhere_is_one_in_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begin(folder.path());
        journal.intend().unwrap();
        journal.live(&Thing::File("file-1".into())).unwrap();
        journal.settle().unwrap();
        let path = journal.path.clone();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..=whole.len()).filter(|n| *n == 0 || whole[n - 1] == b'\n').collect();
        for n in 0..whole.len() {
            fs::write(&path, &whole[..n]).unwrap();
            let found = left(folder.path());
            assert_eq!(found.task, "0193");
            let within_a_line = !ends.contains(&n);
            assert_eq!(found.doubt, within_a_line || n == ends[2] || n == ends[3], "{n} bytes");
            assert_eq!(found.run.is_some(), n >= ends[1], "{n} bytes");
            assert_eq!(found.live.len(), usize::from(n >= ends[3]), "{n} bytes");
        }
    }

    #[test]
    fn a_journal_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = begin(&folder.path().join("a/b"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| p.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&journal.path), mode(journal.path.parent().unwrap())), (0o600, 0o700));
        }
        journal.close().unwrap();
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 0);
    }
}
