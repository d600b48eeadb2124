//! A loan from upload to deletion: journal → upload → journal → use → deletion → confirmation → journal, in this order, whatever happens.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;

use super::journal::Journal;
use super::lease::{Lease, Return};
use super::save::Saved;
use super::target::{CallError, EXPIRY, Life, Step, Target, Upload};
use super::thing::{Thing, file_name};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::Cleared;

/// How often a request is sent that did not get through.
pub(super) const TRIES: u32 = 3;
/// The pause before the second try, if the server does not say.
const PAUSE: Duration = Duration::from_millis(500);

/// What is to be lent, to whom, and on which terms.
pub struct Loan<'a> {
    /// The other side.
    pub target: &'a dyn Target,
    /// What may leave.
    pub cleared: &'a [&'a Cleared],
    /// Whether it is uploaded before it is used, or by its use.
    pub upload_first: bool,
    /// Whether an expiry that is longer than was asked for, or not said, is accepted.
    pub accept_expiry: bool,
    /// The run's id: all that the remote names hold.
    pub task: &'a str,
    /// How long the deletion of one thing may be tried.
    pub patience: Duration,
    /// Told of each step.
    pub tell: &'a (dyn Fn(Event<'_>) + Sync),
}

/// A step of a loan, for the log.
#[derive(Debug)]
pub enum Event<'a> {
    /// The file is on the other side, until then at the latest (seconds since 1970).
    Lent(&'a Upload),
    /// The other side keeps it longer than was asked for, or does not say how long: so many seconds.
    LongExpiry(Option<u64>),
    /// What the other side may keep all the same.
    Keeps(&'a str),
    /// A container was made.
    Container(&'a str),
    /// The container does not say whether it can reach a network.
    NetworkUnproved,
    /// A request is sent again, for this reason.
    Again(&'a str),
    /// The question has been sent.
    Asked,
    /// The interpreter runs code.
    Interpreting,
    /// A piece of the answer, as it comes.
    Text(&'a str),
    /// A file of the assistant was saved.
    Saved(&'a Saved),
    /// A file of the assistant was not saved, for this reason.
    NotSaved(&'a str),
    /// Files of the assistant are there, but not wanted.
    NotWanted(usize),
}

/// What came of a loan.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What the use of it gave, or why it gave nothing.
    pub answer: Result<T>,
    /// What was lent and is gone, or not.
    pub returned: Return,
    /// How long each table stays if nobody deletes it, in their order, as far as they were uploaded.
    pub lives: Vec<Life>,
    /// What the other side may keep of what is deleted.
    pub keeps: Option<String>,
}

impl Loan<'_> {
    /// Carries the loan out. When `interrupted` is ready first, what was lent is given back at once.
    pub async fn run<T>(
        &self,
        journal: Journal,
        interrupted: impl Future<Output = ()>,
        use_it: impl AsyncFnOnce(&mut Lease<'_>, &[Upload]) -> Result<T>,
    ) -> Outcome<T> {
        let mut lease = Lease::new(self.target, self.task, self.patience, journal);
        let (mut lives, mut kept) = (Vec::new(), None);
        let lent = async {
            if let Some(keeps) = self.target.prepare().await? {
                (self.tell)(Event::Keeps(&keeps));
                kept = Some(keeps);
            }
            let mut uploads = Vec::new();
            for (number, cleared) in self.cleared.iter().enumerate().filter(|_| self.upload_first) {
                let upload = self.upload(&mut lease, number, cleared).await?;
                (self.tell)(Event::Lent(&upload));
                lives.push(upload.life);
                self.check_upload(cleared, &upload)?;
                uploads.push(upload);
            }
            use_it(&mut lease, &uploads).await
        };
        // A panic here must not keep anything from being given back.
        let used = AssertUnwindSafe(lent).catch_unwind();
        let answer = tokio::select! {
            used = used => used.unwrap_or_else(|_| Err(Error::remote("hmask failed within the loan; please report this"))),
            () = interrupted => Err(Error::new(ErrorKind::Interrupted)),
        };
        Outcome { answer, returned: lease.give_back().await, lives, keeps: kept }
    }

    /// Uploads, and sends again only what was not carried out for certain.
    async fn upload(&self, lease: &mut Lease<'_>, number: usize, cleared: &Cleared) -> Result<Upload> {
        let name = self.file_name(number);
        let call = async |lease: &mut Lease<'_>| {
            let mut note = |step: Step<'_>| match step {
                Step::Made(thing) => lease.note(thing.clone()),
                Step::Over(thing) => lease.over(thing),
            };
            self.target.upload(&name, cleared, &mut note).await
        };
        self.make(lease, "the upload failed", call, |upload: &Upload| upload.thing.clone()).await
    }

    /// The name of the table of this number over there.
    pub(super) fn file_name(&self, number: usize) -> String {
        file_name(self.task, number, self.cleared.get(number).map_or("csv", |c| c.ending()))
    }

    /// Makes something, and sends again only what was not carried out for certain.
    ///
    /// # Errors
    /// What the service says, or a journal that cannot be written.
    pub(super) async fn make<T>(
        &self,
        lease: &mut Lease<'_>,
        what: &str,
        call: impl AsyncFn(&mut Lease<'_>) -> Result<T, CallError>,
        made: impl Fn(&T) -> Thing,
    ) -> Result<T> {
        for n in 1.. {
            lease.doubt()?;
            let error = match call(lease).await {
                Ok(object) if made(&object).is_named() => {
                    lease.settle(Some(made(&object)));
                    return Ok(object);
                }
                Ok(_) => CallError::Unknown("an answer with an id that is none".into()),
                Err(error) => error,
            };
            let again = match &error {
                CallError::Refused(answer) => {
                    lease.settle(None);
                    answer.may_retry().then(|| pause(n, answer.retry_after))
                }
                CallError::NotSent(_) => {
                    lease.settle(None);
                    Some(pause(n, None))
                }
                // Perhaps it is there, under our name. Before that is cleared up nothing is sent again; the doubt stays otherwise.
                CallError::Unknown(_) => lease.reconcile().await.is_ok().then(|| pause(n, None)),
            };
            match again {
                Some(pause) if n < TRIES => {
                    (self.tell)(Event::Again(&error.to_string()));
                    tokio::time::sleep(pause).await;
                }
                _ => return Err(Error::remote(format!("{what}: {error}"))),
            }
        }
        unreachable!("the last try returns")
    }

    /// Whether all arrived, and stays no longer than it should.
    fn check_upload(&self, cleared: &Cleared, upload: &Upload) -> Result<()> {
        if upload.bytes != Some(cleared.bytes()) {
            return Err(Error::remote("another number of bytes arrived than was sent"));
        }
        let Life::Expiring { granted, .. } = upload.life else { return Ok(()) };
        match granted {
            Some(1..=EXPIRY) => Ok(()),
            granted if self.accept_expiry => {
                (self.tell)(Event::LongExpiry(granted));
                Ok(())
            }
            Some(seconds) if seconds > EXPIRY => {
                let error = Error::remote(format!("the service would keep the file for {seconds} s, not {EXPIRY}"));
                Err(error.hint("--accept-expiry relies on the deletion alone"))
            }
            _ => {
                let error = Error::remote("the service does not say when the file expires");
                Err(error.hint("--accept-expiry relies on the deletion alone"))
            }
        }
    }
}

/// The pause before the next try.
pub(super) fn pause(n: u32, asked: Option<Duration>) -> Duration {
    asked.unwrap_or(PAUSE * 2u32.pow(n.saturating_sub(1)))
}
