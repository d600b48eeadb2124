//! A loan from upload to deletion: upload → container → question → outputs → deletion → confirmation, in this order, whatever happens.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;

use super::lease::{Lease, Return, Thing};
use super::openai::{CallError, ContainerFile, ContainerOptions, EXPIRY, FileObject, OpenAi, Question, Response, Status};
use super::save::{Folder, Saved};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::Cleared;

/// How often a request is sent that did not get through.
const TRIES: u32 = 3;
/// The pause before the second try, if the server does not say.
const PAUSE: Duration = Duration::from_millis(500);

/// What is to be asked, of which file.
pub struct Loan<'a> {
    /// The other side.
    pub api: &'a OpenAi,
    /// What may leave.
    pub cleared: &'a Cleared,
    /// The run's id: all that the remote names hold.
    pub task: &'a str,
    /// What is asked.
    pub question: &'a Question,
    /// Where it is asked.
    pub container: &'a ContainerOptions,
    /// Where outputs go, if they are wanted.
    pub save: Option<PathBuf>,
    /// How long the deletion of one thing may be tried.
    pub patience: Duration,
    /// Told of each step.
    pub tell: &'a (dyn Fn(Event<'_>) + Sync),
}

/// A step of a loan, for the log.
#[derive(Debug)]
pub enum Event<'a> {
    /// The file is on the other side, until then at the latest (seconds since 1970).
    Lent(&'a FileObject),
    /// A container was made.
    Container(&'a str),
    /// The container does not say whether it can reach a network.
    NetworkUnproved,
    /// A request is sent again, for this reason.
    Again(&'a str),
    /// The question has been sent.
    Asked,
    /// A file of the assistant was saved.
    Saved(&'a Saved),
    /// A file of the assistant was not saved, for this reason.
    NotSaved(&'a str),
    /// Files of the assistant are there, but not wanted.
    NotWanted(usize),
}

/// What came of a loan.
#[derive(Debug)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub answer: Result<Answered>,
    /// What was lent and is gone, or not.
    pub returned: Return,
    /// Seconds of expiry that the service granted.
    pub granted: Option<u64>,
}

/// An answer.
#[derive(Debug)]
pub struct Answered {
    /// The assistant's text.
    pub text: String,
    /// What was saved.
    pub saved: Vec<Saved>,
    /// Whether every output that was wanted was saved.
    pub complete: bool,
}

impl Loan<'_> {
    /// Carries the loan out. When `interrupted` is ready first, what was lent is given back at once.
    pub async fn run(&self, interrupted: impl Future<Output = ()>) -> Outcome {
        let (file_name, container_name) = (format!("hmask-{}.csv", self.task), format!("hmask-{}", self.task));
        let mut lease = Lease::new(self.api, &file_name, &container_name, self.patience);
        let mut granted = None;
        // A panic here must not keep anything from being given back.
        let used = AssertUnwindSafe(self.use_it(&mut lease, &mut granted, &file_name, &container_name)).catch_unwind();
        let answer = tokio::select! {
            used = used => used.unwrap_or_else(|_| Err(Error::remote("hmask failed within the loan; please report this"))),
            () = interrupted => Err(Error::new(ErrorKind::Interrupted)),
        };
        Outcome { answer, returned: lease.give_back().await, granted }
    }

    async fn use_it(
        &self,
        lease: &mut Lease<'_>,
        granted: &mut Option<u64>,
        file_name: &str,
        container_name: &str,
    ) -> Result<Answered> {
        let upload = self.upload(lease, file_name).await?;
        (self.tell)(Event::Lent(&upload));
        *granted = Some(self.check_upload(&upload)?);
        let container = self.make_container(lease, container_name, &upload.id).await?;
        (self.tell)(Event::Asked);
        let response = self.ask(&container).await?;
        if let Some(id) = &response.stored {
            lease.note(Thing::Response(id.clone()));
        }
        for id in &response.containers {
            lease.note(Thing::Container(id.clone()));
        }
        let failed = |what: String| Err(Error::remote(what));
        match &response.status {
            Status::Completed => {}
            Status::Empty => return failed("the answer is empty".into()),
            Status::Failed(reason) => {
                let mut error = Error::remote(format!("the question failed: {reason}"));
                if reason == "server_error" {
                    error = error.hint("--memory 4g if the table is large");
                }
                return Err(error.with_answer(response.message));
            }
        }
        let (saved, complete) = self.outputs(&response, &container).await?;
        Ok(Answered { text: response.text, saved, complete })
    }

    /// Uploads, and sends again only what was not carried out for certain.
    async fn upload(&self, lease: &mut Lease<'_>, name: &str) -> Result<FileObject> {
        let call = async || self.api.upload(name, self.cleared).await;
        let made = |file: &FileObject| Thing::File(file.id.clone());
        self.make(lease, "the upload failed", call, made).await
    }

    async fn make_container(&self, lease: &mut Lease<'_>, name: &str, file: &str) -> Result<String> {
        let files = [file.to_owned()];
        let call = async || self.api.create_container(name, &files, self.container).await;
        let container = self.make(lease, "no container can be made", call, |c| Thing::Container(c.id.clone())).await?;
        (self.tell)(Event::Container(&container.id));
        match container.honours(self.container) {
            Some(true) => {}
            Some(false) => return Err(Error::remote("the container can reach other hosts than it should")),
            None => (self.tell)(Event::NetworkUnproved),
        }
        Ok(container.id)
    }

    async fn make<T>(
        &self,
        lease: &mut Lease<'_>,
        what: &str,
        call: impl AsyncFn() -> Result<T, CallError>,
        made: impl Fn(&T) -> Thing,
    ) -> Result<T> {
        for n in 1.. {
            lease.doubt();
            let error = match call().await {
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

    /// The expiry that was granted, if all is as it should be.
    fn check_upload(&self, upload: &FileObject) -> Result<u64> {
        if upload.bytes != Some(self.cleared.bytes()) {
            return Err(Error::remote("another number of bytes arrived than was sent"));
        }
        let granted = upload.expires_at.zip(upload.created_at).map(|(end, start)| end.checked_sub(start));
        match granted {
            Some(Some(seconds @ 1..=EXPIRY)) => Ok(seconds),
            Some(Some(seconds)) if seconds > EXPIRY => {
                Err(Error::remote(format!("the service would keep the file for {seconds} s, not {EXPIRY}")))
            }
            _ => Err(Error::remote("the service does not say when the file expires")),
        }
    }

    /// Asks. Only what was refused for the time being is asked again: a question costs, and may make something.
    async fn ask(&self, container: &str) -> Result<Response> {
        for n in 1.. {
            let error = match self.api.ask(self.question, container).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match &error {
                CallError::NotSent(_) if n < TRIES => tokio::time::sleep(pause(n, None)).await,
                CallError::Refused(answer) if answer.may_retry() && n < TRIES => {
                    tokio::time::sleep(pause(n, answer.retry_after)).await;
                }
                _ => {
                    // What is said about a question can quote the table: it goes where the answer would.
                    return Err(match &error {
                        CallError::Refused(answer) => {
                            let failed = Error::remote(format!("the question failed: {}", answer.code()));
                            let failed = if answer.status == 401 { failed.hint("export OPENAI_API_KEY=…") } else { failed };
                            failed.with_answer(Some(answer.reason()))
                        }
                        _ => Error::remote(format!("the question failed: {error}")),
                    });
                }
            }
            (self.tell)(Event::Again("the service is busy"));
        }
        unreachable!("the last try returns")
    }

    /// Saves what the assistant made: what it cites, and what else lies in the container.
    async fn outputs(&self, response: &Response, container: &str) -> Result<(Vec<Saved>, bool)> {
        let mut complete = true;
        let mut files: Vec<(String, ContainerFile)> = Vec::new();
        match self.api.made_by_assistant(container).await {
            Ok(listed) => files.extend(listed.into_iter().map(|f| (container.to_owned(), f))),
            Err(error) => {
                complete = false;
                (self.tell)(Event::NotSaved(&format!("the files of the container cannot be listed: {error}")));
            }
        }
        for (container, id) in &response.citations {
            if files.iter().any(|(_, f)| f.id == *id) {
                continue;
            }
            match self.api.container_file(container, id).await {
                Ok(file) => files.push((container.clone(), file)),
                Err(error) => {
                    complete = false;
                    (self.tell)(Event::NotSaved(&format!("a cited file cannot be found: {error}")));
                }
            }
        }
        let Some(folder) = &self.save else {
            if !files.is_empty() {
                (self.tell)(Event::NotWanted(files.len()));
            }
            return Ok((Vec::new(), true));
        };
        let mut folder = Folder::new(folder)?;
        let mut saved = Vec::new();
        for (container, file) in &files {
            match folder.save(self.api, container, file).await {
                Ok(one) => {
                    (self.tell)(Event::Saved(&one));
                    saved.push(one);
                }
                Err(why) => {
                    complete = false;
                    (self.tell)(Event::NotSaved(&why));
                }
            }
        }
        Ok((saved, complete))
    }
}

fn pause(n: u32, asked: Option<Duration>) -> Duration {
    asked.unwrap_or(PAUSE * 2u32.pow(n.saturating_sub(1)))
}
