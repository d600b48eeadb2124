//! The use of a loan: a question in a container of its own, its answer, and what the answer made.

use std::path::PathBuf;

use super::lease::Lease;
use super::loan::{Event, Loan, TRIES, pause};
use super::openai::{CallError, ContainerFile, ContainerOptions, FileObject, Progress, Question, Response, Status};
use super::save::{Folder, Saved};
use super::thing::{Thing, container_name};
use crate::error::{Error, Result};

/// What is to be asked about what is lent.
pub struct Asking<'a> {
    /// The loan that it uses.
    pub loan: &'a Loan<'a>,
    /// What is asked.
    pub question: &'a Question,
    /// Where it is asked.
    pub container: &'a ContainerOptions,
    /// What is asked after it, one after the other, in the same container.
    pub steps: &'a [String],
    /// Where outputs go, if they are wanted.
    pub save: Option<PathBuf>,
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
    pub async fn ask(&self, lease: &mut Lease<'_>, uploads: &[FileObject]) -> Result<Answered> {
        let container = self.make_container(lease, uploads).await?;
        let mut question = self.question.clone();
        let mut answered = Answered { texts: Vec::new(), code: Vec::new(), streamed: false, saved: Vec::new(), complete: true };
        let mut citations = Vec::new();
        let mut steps = self.steps.iter();
        loop {
            let response = self.one(lease, &question, &container, &mut answered).await?;
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
            question.before.push((asked, response.text.clone()));
            answered.texts.push(response.text);
        }
        (answered.saved, answered.complete) = self.outputs(&citations, &container).await?;
        Ok(answered)
    }

    /// Asks one question. What was answered before goes along with an error.
    async fn one(
        &self,
        lease: &mut Lease<'_>,
        question: &Question,
        container: &str,
        answered: &mut Answered,
    ) -> Result<Response> {
        (self.loan.tell)(Event::Asked);
        let response = self.put(lease, question, container, &mut answered.streamed).await;
        let with_answers = |error: Error| {
            let words = answered.texts.iter().cloned().chain(error.answer().map(str::to_owned)).collect::<Vec<_>>();
            if words.is_empty() { error } else { error.with_answer(Some(words.join("\n\n"))) }
        };
        let response = response.map_err(with_answers)?;
        if let Some(id) = &response.stored {
            lease.note(Thing::Response(id.clone()));
        }
        for id in &response.containers {
            lease.note(Thing::Container(id.clone()));
        }
        match &response.status {
            Status::Completed => Ok(response),
            Status::Empty => Err(with_answers(Error::remote("the answer is empty"))),
            Status::Failed(reason) => {
                let mut error = Error::remote(format!("the question failed: {reason}"));
                if reason == "server_error" {
                    error = error.hint("--memory 4g if the table is large");
                }
                Err(with_answers(error.with_answer(response.message)))
            }
        }
    }

    async fn make_container(&self, lease: &mut Lease<'_>, uploads: &[FileObject]) -> Result<String> {
        let name = container_name(self.loan.task);
        let files: Vec<String> = uploads.iter().map(|u| u.id.clone()).collect();
        let call = async || self.loan.api.create_container(&name, &files, self.container).await;
        let container = self.loan.make(lease, "no container can be made", call, |c| Thing::Container(c.id.clone())).await?;
        (self.loan.tell)(Event::Container(&container.id));
        match container.honours(self.container) {
            Some(true) => {}
            Some(false) => return Err(Error::remote("the container can reach other hosts than it should")),
            None => (self.loan.tell)(Event::NetworkUnproved),
        }
        Ok(container.id)
    }

    /// Asks. Only what was refused for the time being is asked again: a question costs, and may make something.
    async fn put(&self, lease: &mut Lease<'_>, question: &Question, container: &str, streamed: &mut bool) -> Result<Response> {
        for n in 1.. {
            let asked = if question.stream {
                let mut tell = |progress: Progress<'_>| match progress {
                    // At once: the connection may break, and this is what has to be deleted.
                    Progress::Container(id) => lease.note(Thing::Container(id.to_owned())),
                    Progress::Interpreting => (self.loan.tell)(Event::Interpreting),
                    Progress::Text(text) => {
                        *streamed = true;
                        (self.loan.tell)(Event::Text(text));
                    }
                };
                self.loan.api.ask_streaming(question, container, &mut tell).await
            } else {
                self.loan.api.ask(question, container).await
            };
            let error = match asked {
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
            (self.loan.tell)(Event::Again("the service is busy"));
        }
        unreachable!("the last try returns")
    }

    /// Saves what the assistant made: what it cites, and what else lies in the container.
    async fn outputs(&self, citations: &[(String, String)], container: &str) -> Result<(Vec<Saved>, bool)> {
        let mut complete = true;
        let mut files: Vec<(String, ContainerFile)> = Vec::new();
        match self.loan.api.made_by_assistant(container).await {
            Ok(listed) => files.extend(listed.into_iter().map(|f| (container.to_owned(), f))),
            Err(error) => {
                complete = false;
                (self.loan.tell)(Event::NotSaved(&format!("the files of the container cannot be listed: {error}")));
            }
        }
        for (container, id) in citations {
            if files.iter().any(|(_, f)| f.id == *id) {
                continue;
            }
            match self.loan.api.container_file(container, id).await {
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
            match folder.save(self.loan.api, container, file).await {
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
