//! The use of a loan: a question in a container of its own, its answer, and what the answer made.

use std::path::PathBuf;

use super::lease::Lease;
use super::loan::{Event, Loan, TRIES, pause};
use super::openai::{ContainerFile, ContainerOptions, OpenAi, Place, Progress, Question, Response, Status};
use super::save::{Folder, Saved};
use super::target::{CallError, Upload, Within};
use super::thing::{Thing, container_name};
use crate::error::{Error, Result};

/// What is to be asked about what is lent.
pub struct Asking<'a> {
    /// Who is asked: the target of the loan.
    pub api: &'a OpenAi,
    /// The loan that it uses.
    pub loan: &'a Loan<'a>,
    /// What is asked.
    pub question: &'a Question,
    /// Where it is asked.
    pub venue: &'a Venue,
    /// What is asked after it, one after the other, in the same place.
    pub steps: &'a [String],
    /// Whether the text is told as it comes.
    pub show: bool,
    /// Where outputs go, if they are wanted.
    pub save: Option<PathBuf>,
}

/// Where a question finds the tables.
#[derive(Clone, Debug)]
pub enum Venue {
    /// In a container of the run's own.
    Fresh(ContainerOptions),
    /// In this container of the user, which stays; with the hosts that it may reach.
    Container(String, ContainerOptions),
    /// In the question itself.
    Message,
}

/// The same, once it is there.
enum Found {
    /// Whether it is the run's own, and the files that were in it before.
    Container {
        id: String,
        ours: bool,
        before: Vec<String>,
    },
    Message(Vec<String>),
}

/// An answer.
#[derive(Debug)]
pub struct Answered {
    /// The assistant's text, one for each question.
    pub texts: Vec<String>,
    /// The code that ran for each question.
    pub code: Vec<Vec<String>>,
    /// Whether the texts were told as they came.
    pub streamed: bool,
    /// What was saved.
    pub saved: Vec<Saved>,
    /// Whether every output that was wanted was saved.
    pub complete: bool,
}

impl Asking<'_> {
    /// Asks about what is lent, and saves what the answer made.
    ///
    /// # Errors
    /// What the service says, or why the question failed.
    pub async fn ask(&self, lease: &mut Lease<'_>, uploads: &[Upload]) -> Result<Answered> {
        let found = self.find(lease, uploads).await?;
        let mut question = self.question.clone();
        let mut answered = Answered { texts: Vec::new(), code: Vec::new(), streamed: false, saved: Vec::new(), complete: true };
        let mut citations = Vec::new();
        let mut steps = self.steps.iter();
        loop {
            let response = self.one(lease, &question, &found, &mut answered).await?;
            citations.extend(response.citations);
            answered.code.push(response.code);
            let Some(next) = steps.next() else {
                answered.texts.push(response.text);
                break;
            };
            if answered.streamed {
                (self.loan.tell)(Event::Text("\n\n"));
            }
            let asked = std::mem::replace(&mut question.text, next.clone());
            if question.store {
                let lost = || Error::remote("the service has not stored the answer, so nothing can follow it");
                question.previous = Some(stored(&question, response.id.as_deref(), response.stored).ok_or_else(lost)?.to_owned());
            } else {
                question.before.push((asked, response.text.clone()));
            }
            answered.texts.push(response.text);
        }
        if let Found::Container { id, before, .. } = &found {
            (answered.saved, answered.complete) = self.outputs(&citations, id, before).await?;
        }
        Ok(answered)
    }

    /// Asks one question. What was answered before goes along with an error.
    async fn one(&self, lease: &mut Lease<'_>, question: &Question, found: &Found, answered: &mut Answered) -> Result<Response> {
        (self.loan.tell)(Event::Asked);
        let response = self.put(lease, question, found, &mut answered.streamed).await;
        let with_answers = |error: Error| {
            let words = answered.texts.iter().cloned().chain(error.answer().map(str::to_owned)).collect::<Vec<_>>();
            if words.is_empty() { error } else { error.with_answer(Some(words.join("\n\n"))) }
        };
        let response = response.map_err(with_answers)?;
        if !found.is_of_user() {
            response.containers.iter().for_each(|id| lease.note(Thing::Container(id.clone())));
        }
        match &response.status {
            Status::Completed => Ok(response),
            Status::Empty => Err(with_answers(Error::remote("the answer is empty"))),
            Status::Failed(reason) => {
                let error = Error::remote(format!("the question failed: {reason}"));
                let what = if reason == "server_error" { KILLED } else { response.message.as_deref().unwrap_or_default() };
                Err(with_answers(explained(error, what).with_answer(response.message)))
            }
        }
    }

    /// Finds the place for the question, and puts the tables there.
    async fn find(&self, lease: &mut Lease<'_>, uploads: &[Upload]) -> Result<Found> {
        let ids: Vec<String> = uploads.iter().map(|u| u.id.clone()).collect();
        let (id, options, ours) = match self.venue {
            Venue::Message => return Ok(Found::Message(ids)),
            Venue::Fresh(options) => {
                let name = container_name(self.loan.task);
                let call = async |_: &mut Lease<'_>| self.api.create_container(&name, &ids, options).await;
                let made = |c: &super::openai::ContainerObject| Thing::Container(c.id.clone());
                let container = self.loan.make(lease, "no container can be made", call, made).await?;
                (self.loan.tell)(Event::Container(&container.id));
                self.check_network(&container, options)?;
                (container.id, options, true)
            }
            Venue::Container(id, options) => (id.clone(), options, false),
        };
        let mut before = Vec::new();
        if !ours {
            let failed = |e: CallError| Error::remote(format!("the container cannot be used: {e}")).hint(CONTAINERS);
            let container = self.api.container(&id).await.map_err(failed)?;
            if container.is_over() {
                return Err(Error::remote("the container is expired").hint(CONTAINERS));
            }
            self.check_network(&container, options)?;
            before = self.api.container_files(&id).await.map_err(failed)?.into_iter().map(|f| f.id).collect();
            lease.within(Within { container: id.clone(), before: before.clone() })?;
            for file in &ids {
                let call = async |_: &mut Lease<'_>| self.api.add_to(&id, file).await;
                self.put_into(lease, &id, ours, call).await?;
            }
        }
        if !self.loan.upload_first {
            for (number, cleared) in self.loan.cleared.iter().enumerate() {
                let name = self.loan.file_name(number);
                let call = async |_: &mut Lease<'_>| {
                    let file = self.api.upload_into(&id, &name, cleared).await?;
                    match file.bytes {
                        Some(bytes) if bytes != cleared.bytes() => {
                            Err(CallError::Unknown("another number of bytes arrived than was sent".into()))
                        }
                        _ => Ok(file),
                    }
                };
                self.put_into(lease, &id, ours, call).await?;
            }
        }
        Ok(Found::Container { id, ours, before })
    }

    /// Puts something into a container, and notes it to be deleted, unless the container is ours and goes with all that is in it.
    async fn put_into(
        &self,
        lease: &mut Lease<'_>,
        container: &str,
        ours: bool,
        call: impl AsyncFn(&mut Lease<'_>) -> Result<ContainerFile, CallError>,
    ) -> Result<()> {
        let made = |file: &ContainerFile| Thing::ContainerFile(container.to_owned(), file.id.clone());
        let file = self.loan.make(lease, "the table cannot be put into the container", call, made).await?;
        if ours {
            lease.over(&made(&file));
        }
        Ok(())
    }

    fn check_network(&self, container: &super::openai::ContainerObject, options: &ContainerOptions) -> Result<()> {
        match container.honours(options) {
            Some(true) => {}
            Some(false) => return Err(Error::remote("the container can reach other hosts than it should")),
            None => (self.loan.tell)(Event::NetworkUnproved),
        }
        Ok(())
    }

    /// Asks. Only what was refused for the time being is asked again: a question costs, and may make something.
    async fn put(&self, lease: &mut Lease<'_>, question: &Question, found: &Found, streamed: &mut bool) -> Result<Response> {
        let place = match found {
            Found::Container { id, .. } => Place::Container(id),
            Found::Message(files) => Place::Message(files),
        };
        for n in 1.. {
            if question.store {
                lease.ask()?;
            }
            let asked = if question.stream {
                let mut tell = |progress: Progress<'_>| match progress {
                    // At once: the connection may break, and this is what has to be deleted.
                    Progress::Container(_) if found.is_of_user() => {}
                    Progress::Container(id) => lease.note(Thing::Container(id.to_owned())),
                    Progress::Begun(id, says) => note_stored(lease, question, Some(id), says),
                    Progress::Text(_) if !self.show => {}
                    Progress::Interpreting => (self.loan.tell)(Event::Interpreting),
                    Progress::Text(text) => {
                        *streamed = true;
                        (self.loan.tell)(Event::Text(text));
                    }
                };
                self.api.ask_streaming(question, place, &mut tell).await
            } else {
                self.api.ask(question, place).await
            };
            let error = match asked {
                Ok(response) => {
                    note_stored(lease, question, response.id.as_deref(), response.stored);
                    return Ok(response);
                }
                Err(error) => error,
            };
            if !matches!(error, CallError::Unknown(_)) {
                lease.hear(None);
            }
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
                            let failed = if answer.status == 401 {
                                failed.hint(format!("export {}=…", self.api.token_variable()))
                            } else {
                                failed
                            };
                            explained(failed, &answer.reason()).with_answer(Some(answer.reason()))
                        }
                        _ => Error::remote(format!("the question failed: {error}")),
                    });
                }
            }
            (self.loan.tell)(Event::Again("the service is busy"));
        }
        unreachable!("the last try returns")
    }

    /// Saves what the assistant made: what it cites, and what else lies in the container and did not before.
    async fn outputs(&self, citations: &[(String, String)], container: &str, before: &[String]) -> Result<(Vec<Saved>, bool)> {
        let mut complete = true;
        let mut files: Vec<(String, ContainerFile)> = Vec::new();
        match self.api.container_files(container).await {
            Ok(listed) => {
                let made = listed.into_iter().filter(|f| f.is_made() && !before.contains(&f.id));
                files.extend(made.map(|f| (container.to_owned(), f)));
            }
            Err(error) => {
                complete = false;
                (self.loan.tell)(Event::NotSaved(&format!("the files of the container cannot be listed: {error}")));
            }
        }
        for (container, id) in citations {
            if files.iter().any(|(_, f)| f.id == *id) {
                continue;
            }
            match self.api.container_file(container, id).await {
                Ok(file) => files.push((container.clone(), file)),
                Err(error) => {
                    complete = false;
                    (self.loan.tell)(Event::NotSaved(&format!("a cited file cannot be found: {error}")));
                }
            }
        }
        let Some(folder) = &self.save else {
            if !files.is_empty() {
                (self.loan.tell)(Event::NotWanted(files.len()));
            }
            return Ok((Vec::new(), true));
        };
        let mut folder = Folder::new(folder)?;
        let mut saved = Vec::new();
        for (container, file) in &files {
            match folder.save(self.api, container, file).await {
                Ok(one) => {
                    (self.loan.tell)(Event::Saved(&one));
                    saved.push(one);
                }
                Err(why) => {
                    complete = false;
                    (self.loan.tell)(Event::NotSaved(&why));
                }
            }
        }
        Ok((saved, complete))
    }
}

/// What there is to know of a container that does not answer.
const CONTAINERS: &str =
    "containers end after 20 idle minutes, or when their memory is full (--memory 4g); without --container a fresh one is made";
/// What the service says of a container that is over.
const EXPIRED: &str = "Container is expired";
/// What it says, of all things, when the code in a container has used up the memory.
const KILLED: &str = "There was an issue with your request";

/// The error, with what the service's words mean where they do not say it.
fn explained(error: Error, words: &str) -> Error {
    if words.contains(EXPIRED) {
        error.hint(CONTAINERS)
    } else if words.contains(KILLED) {
        error.hint("the code may have run out of memory: --memory 4g, 16g or 64g")
    } else {
        error
    }
}

/// The id under which a response is stored, if it is: one that was to be, unless the service denies it, and any that it says is.
fn stored<'r>(question: &Question, id: Option<&'r str>, says: Option<bool>) -> Option<&'r str> {
    id.filter(|_| says.unwrap_or(question.store))
}

/// Notes a response to be deleted, if it is stored.
fn note_stored(lease: &mut Lease<'_>, question: &Question, id: Option<&str>, says: Option<bool>) {
    if let Some(id) = stored(question, id, says) {
        lease.hear(Some(Thing::Response(id.to_owned())));
    } else if id.is_some() {
        lease.hear(None);
    }
}

impl Found {
    /// Whether the container is the user's, and stays: by whatever id an answer calls it, since a gateway may have names of its own.
    fn is_of_user(&self) -> bool {
        matches!(self, Self::Container { ours: false, .. })
    }
}
