//! What is lent, and its return: everything that a run makes remotely is noted here, deleted, and looked for again.

use std::time::{Duration, Instant};

use super::client::Failure;
use super::journal::{Journal, Left};
use super::target::{CallError, Seen, Target, now};
use super::thing::{Thing, Within};
use crate::error::Error;

/// All that a run has lent.
pub struct Lease<'a> {
    target: &'a dyn Target,
    task: String,
    things: Vec<Thing>,
    /// Containers of the user that something was put into.
    within: Vec<Within>,
    /// Whether a request may have made something whose id we never saw.
    doubt: bool,
    /// Whether there ever was such a request: what it made may show only later.
    doubted: bool,
    /// Whether an answer may be stored over there under an id that we never saw, and that no list shows.
    unheard: bool,
    /// How long the return may be tried.
    patience: Duration,
    /// What is written down of all this; none in a sweep, whose journal is written already.
    journal: Option<Journal>,
    /// Why the journal does not hold what it should.
    unwritten: Option<Error>,
}

/// How the return went.
#[derive(Debug, Default)]
pub struct Return {
    /// What is gone; each was looked for after its deletion and not found.
    pub gone: Vec<Thing>,
    /// What may still be there, and why that is not known.
    pub left: Vec<(Thing, String)>,
    /// What else of ours may be there, and why that is not known.
    pub unknown: Vec<String>,
    /// Why the journal does not hold what it should, or is still there.
    pub unwritten: Option<Error>,
    /// The journal, until [`Return::close`].
    journal: Option<Journal>,
}

/// The pauses before each look for what a request of unknown outcome may have made.
const LOOKS: [u64; 3] = [0, 500, 1500];
/// Seconds for which a response is stored (`OpenAI`, "Data controls in the platform").
const STORED_FOR: u64 = 30 * 24 * 3600;
/// How long the list is asked for before a request of unknown outcome is given up.
const RECONCILIATION: Duration = Duration::from_secs(5);
/// The pauses between two tries, the last one again and again.
const PAUSES: [u64; 6] = [100, 300, 1000, 2000, 4000, 8000];

impl<'a> Lease<'a> {
    /// A lease of things under the names of this task, whose return may take `patience` for each.
    pub fn new(target: &'a dyn Target, task: &str, patience: Duration, journal: Journal) -> Self {
        Self {
            target,
            task: task.to_owned(),
            things: Vec::new(),
            within: Vec::new(),
            doubt: false,
            doubted: false,
            unheard: false,
            patience,
            journal: Some(journal),
            unwritten: None,
        }
    }

    /// The lease of a run that is over: what its journal knows, and whatever else bears its names.
    pub fn resume(target: &'a dyn Target, left: &Left, patience: Duration) -> Self {
        Self {
            target,
            task: left.task.clone(),
            things: left.live.clone(),
            within: left.within.clone(),
            doubt: left.doubt,
            doubted: left.doubt,
            unheard: left.unheard && now().saturating_sub(left.time()) < STORED_FOR,
            patience,
            journal: None,
            unwritten: None,
        }
    }

    /// To be called before a request that makes something: if the run ends within it, there may be something that we do not know.
    ///
    /// # Errors
    /// A journal that cannot be written: then nothing may be made.
    pub fn doubt(&mut self) -> Result<(), Error> {
        self.journal.as_mut().map_or(Ok(()), Journal::intend)?;
        self.doubt = true;
        Ok(())
    }

    /// The request is through, and it is known what it made.
    pub fn settle(&mut self, made: Option<Thing>) {
        made.into_iter().for_each(|thing| self.note(thing));
        self.doubt = false;
        self.write(Journal::settle);
    }

    /// Notes something to be deleted.
    pub fn note(&mut self, thing: Thing) {
        if !self.things.contains(&thing) {
            self.write(|journal| journal.live(&thing));
            self.things.push(thing);
        }
    }

    /// A thing has become another one, or is gone without our doing.
    pub fn over(&mut self, thing: &Thing) {
        self.write(|journal| journal.gone(thing));
        self.things.retain(|t| t != thing);
    }

    /// Something is about to be put into a container that is the user's.
    ///
    /// # Errors
    /// A journal that cannot be written: then nothing may be put there.
    pub fn within(&mut self, within: Within) -> Result<(), Error> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.within(&within))?;
        self.within.push(within);
        Ok(())
    }

    /// To be called before a question whose answer is stored.
    ///
    /// # Errors
    /// A journal that cannot be written: then it may not be put.
    pub fn ask(&mut self) -> Result<(), Error> {
        self.journal.as_mut().map_or(Ok(()), Journal::ask)?;
        self.unheard = true;
        Ok(())
    }

    /// It is known under which id the answer is stored, or that it is not.
    pub fn hear(&mut self, stored: Option<Thing>) {
        match stored {
            Some(thing) => self.note(thing),
            None if self.unheard => self.write(Journal::hear),
            None => {}
        }
        self.unheard = false;
    }

    /// A failure to write does not keep anything from being given back: it is told at the end.
    fn write(&mut self, line: impl FnOnce(&mut Journal) -> Result<(), Error>) {
        if let Some(Err(error)) = self.journal.as_mut().map(line) {
            self.unwritten.get_or_insert(error);
        }
    }

    /// What is noted.
    pub fn things(&self) -> &[Thing] {
        &self.things
    }

    /// Clears up after a request of unknown outcome: deletes what bears the run's names and is not noted.
    ///
    /// # Errors
    /// What stands between us and certainty.
    pub async fn reconcile(&mut self) -> Result<(), String> {
        self.doubted = true;
        let orphans = self.orphans_patiently(self.patience.min(RECONCILIATION)).await?;
        for thing in orphans {
            self.delete(&thing).await?;
        }
        self.doubt = false;
        self.write(Journal::settle);
        Ok(())
    }

    async fn orphans(&self) -> Result<Vec<Thing>, String> {
        let unlisted = |e: CallError| format!("the list cannot be read: {e}");
        let named = self.target.named(&self.task, &self.within).await.map_err(unlisted)?;
        Ok(named.into_iter().filter(|t| !self.things.contains(t)).collect())
    }

    /// Deletes everything and makes sure that it is gone. Never fails: what could not be done is in the result.
    pub async fn give_back(mut self) -> Return {
        let mut result = Return::default();
        // One list that does not have it is no proof yet. A sweep looks in any case: the end of a journal can be lost without a trace. And
        // what code has made in a container of the user is known by a list alone.
        let once = self.journal.is_none() || !self.within.is_empty();
        let looks = if self.doubt || self.doubted { &LOOKS[..] } else { &LOOKS[..usize::from(once)] };
        if !looks.is_empty() {
            for pause in looks.iter().copied().map(Duration::from_millis) {
                tokio::time::sleep(pause).await;
                match self.orphans_patiently(self.patience).await {
                    Ok(orphans) => orphans.into_iter().for_each(|t| self.note(t)),
                    Err(why) => {
                        result.unknown.push(format!("something named hmask-{} ({why})", self.task));
                        break;
                    }
                }
            }
        }
        if self.unheard {
            result.unknown.push("an answer that was stored under an id that was not seen; it goes within 30 days".into());
        }
        // Containers first: the code in them may still be at work on the file.
        let rank = |t: &Thing| match t {
            Thing::Container(_) | Thing::ContainerFile(..) => 0,
            Thing::Response(_) => 1,
            Thing::File(_) | Thing::Parts(_) | Thing::Object(..) => 2,
        };
        let mut things = self.things.clone();
        things.sort_by_key(rank);
        for thing in things {
            match self.delete(&thing).await {
                Ok(()) => {
                    self.write(|journal| journal.gone(&thing));
                    result.gone.push(thing);
                }
                Err(why) => result.left.push((thing, why)),
            }
        }
        result.journal = self.journal;
        result.unwritten = self.unwritten;
        result
    }

    async fn orphans_patiently(&self, patience: Duration) -> Result<Vec<Thing>, String> {
        let start = Instant::now();
        for pause in pauses() {
            let late = |_| Err("the list does not end in time".into());
            match tokio::time::timeout(patience, self.orphans()).await.unwrap_or_else(late) {
                Ok(orphans) => return Ok(orphans),
                Err(why) if start.elapsed() + pause > patience => return Err(why),
                Err(_) => tokio::time::sleep(pause).await,
            }
        }
        Err("the pauses never end".into())
    }

    /// Deletes one thing and looks for it until it is not there.
    async fn delete(&self, thing: &Thing) -> Result<(), String> {
        let start = Instant::now();
        let mut state = Deletion::NotYet;
        for pause in pauses() {
            let why = match self.try_once(thing, &mut state).await {
                Ok(None) => return Ok(()),
                Ok(Some(why)) => why,
                Err(failure) => failure.to_string(),
            };
            if start.elapsed() + pause > self.patience {
                return Err(why);
            }
            tokio::time::sleep(pause).await;
        }
        Err("the pauses never end".into())
    }

    /// Nothing if the thing is gone for certain, else why not. `state` is what the tries before have shown.
    async fn try_once(&self, thing: &Thing, state: &mut Deletion) -> Result<Option<String>, Failure> {
        if *state != Deletion::Answered {
            let why = match self.target.delete(thing).await {
                Ok(Seen::Gone | Seen::There) => None,
                Ok(Seen::Unclear(why)) => Some(why),
                Err(failure) => Some(failure.to_string()),
            };
            if let Some(why) = why {
                // It may have been carried out all the same.
                return Ok(if self.target.look(thing).await? == Seen::Gone { None } else { Some(why) });
            }
            *state = Deletion::Answered;
        }
        Ok(match self.target.look(thing).await? {
            Seen::Gone => None,
            Seen::Unclear(why) => Some(why),
            Seen::There => {
                *state = Deletion::SeenAfterwards;
                Some("it is still there after its deletion".into())
            }
        })
    }
}

/// How far the deletion of a thing has come.
#[derive(Clone, Copy, PartialEq)]
enum Deletion {
    /// Nothing has been answered.
    NotYet,
    /// It is said to be deleted; now to be looked for.
    Answered,
    /// It is said to be deleted, and was still there.
    SeenAfterwards,
}

impl Return {
    /// Whether everything is gone for certain.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.unknown.is_empty()
    }

    /// Removes the journal if everything is gone, also what the run had on this machine. It stays otherwise, for a sweep.
    pub fn close(&mut self) {
        let complete = self.is_complete();
        if let Some(Err(error)) = self.journal.take().filter(|_| complete).map(Journal::close) {
            self.unwritten.get_or_insert(error);
        }
    }
}

fn pauses() -> impl Iterator<Item = Duration> {
    let last = PAUSES[PAUSES.len() - 1];
    PAUSES.into_iter().chain(std::iter::repeat(last)).map(Duration::from_millis)
}
