//! The other side of a loan: what every recipient must be able to do, whatever it speaks.

use async_trait::async_trait;

use super::client::{Answer, Failure};
use super::thing::Thing;
pub use super::thing::Within;
use crate::error::Result;
use crate::gate::Cleared;

/// The life that is asked for what is lent, in seconds: the least that the Files API takes.
pub const EXPIRY: u64 = 3600;

/// Somebody that a table can be lent to. All go the same way, [`super::loan`], and run the same contract in the tests.
#[async_trait]
pub trait Target: Send + Sync {
    /// Where it is, for messages and the manifest: scheme, host and port, and the bucket where there is one.
    fn place(&self) -> String;

    /// What tells this place and account from others of the same name, for this task alone: to another one what was lent is invisible,
    /// not gone. Nothing secret can be read from it.
    fn account(&self, task: &str) -> String;

    /// How a thing can be deleted by hand: a command.
    fn by_hand(&self, thing: &Thing) -> String;

    /// What no deletion of ours reaches there, in words for the manifest.
    fn not_deletable(&self) -> String;

    /// Whether what is deleted will be gone, as far as the other side can be asked beforehand; words for a warning.
    ///
    /// # Errors
    /// A place that keeps what is deleted.
    async fn prepare(&self) -> Result<Option<String>>;

    /// Uploads what may leave under this name, to live for [`EXPIRY`]. `note` is told of whatever exists before the upload does.
    ///
    /// # Errors
    /// See [`CallError`].
    async fn upload(&self, name: &str, cleared: &Cleared, note: &mut Note<'_>) -> Result<Upload, CallError>;

    /// All things that bear the names of this task, and what came into containers of the user by it: its tables, and what was made of
    /// them there.
    ///
    /// # Errors
    /// See [`CallError`].
    async fn named(&self, task: &str, within: &[Within]) -> Result<Vec<Thing>, CallError>;

    /// Deletes.
    ///
    /// # Errors
    /// No answer.
    async fn delete(&self, thing: &Thing) -> Result<Seen, Failure>;

    /// Looks for it.
    ///
    /// # Errors
    /// No answer.
    async fn look(&self, thing: &Thing) -> Result<Seen, Failure>;
}

/// Is told of the steps of an upload.
pub type Note<'n> = dyn for<'t> FnMut(Step<'t>) + Send + 'n;

/// A step of an upload that has several.
pub enum Step<'t> {
    /// This exists from now on.
    Made(&'t Thing),
    /// This has become another thing, or is gone.
    Over(&'t Thing),
}

/// How a thing stands after a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It does not exist.
    Gone,
    /// It does, or its deletion was taken on.
    There,
    /// The other side says something else.
    Unclear(String),
}

/// What is lent, once it is there.
#[derive(Clone, Debug)]
pub struct Upload {
    /// To be deleted.
    pub thing: Thing,
    /// As the recipient calls it.
    pub id: String,
    /// What arrived, if that is said.
    pub bytes: Option<u64>,
    /// How long it stays if nobody deletes it.
    pub life: Life,
    /// An address that it can be read by: a signed one, which is good for a time, or the path of a file.
    pub url: Option<String>,
}

/// How long what is lent stays if nobody deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It expires by itself.
    Expiring {
        /// Seconds that were asked for.
        asked: u64,
        /// Seconds from its creation, if that is said.
        granted: Option<u64>,
        /// When it ends, in seconds since 1970, if that is said.
        at: Option<u64>,
    },
    /// For ever; but the address by which others read it ends at this time, in seconds since 1970.
    Address(u64),
    /// For ever.
    Forever,
}

impl Upload {
    /// When it, or the address that others read it by, ends: in seconds since 1970.
    pub fn ends_at(&self) -> Option<u64> {
        match self.life {
            Life::Expiring { at, .. } => at,
            Life::Address(at) => Some(at),
            Life::Forever => None,
        }
    }
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

/// A name that nobody guesses, for places where a name is all that is needed: 128 random bits before the ending.
pub(super) fn hidden_name(name: &str) -> Result<String, String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "csv"));
    Ok(format!("{stem}-{}.{ending}", crate::mask::hex(&random)))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
