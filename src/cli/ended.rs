//! The end of a loan: what is said, the manifest, the exit code.

use std::process::ExitCode;

use hmask::remote::loan::Outcome;
use hmask::remote::target::Life;
use hmask::remote::thing::file_name;
use hmask::report::{FileFacts, LoanFacts, Manifest, VERSION, unicode};
use hmask::{Error, ErrorKind, Result};

use super::endpoint::Other;
use super::evidence::Evidence;
use super::lending::{Lending, Masked};

/// A loan that is over, one way or another.
pub(super) struct Ended<'a, T> {
    pub lending: Lending<'a>,
    pub outcome: Outcome<T>,
    pub other: Other,
}

impl<T> Ended<'_, T> {
    /// Says what came of it, writes the manifest and finds the exit code. What may be live outweighs every other failure.
    ///
    /// `show` shows the answer, or what was said instead; `code` is the exit code where all went well.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn finish(
        mut self,
        show: impl FnOnce(&Result<T>) -> Result<()>,
        code: impl FnOnce(&T) -> Result<ExitCode>,
    ) -> Result<ExitCode> {
        let printer = self.lending.printer;
        let live = (!self.outcome.returned.is_complete()).then(|| self.live());
        if let Some(live) = &live {
            // Before anything that could wait for a reader.
            printer.error(live);
        }
        let shown = show(&self.outcome.answer);
        for thing in &self.outcome.returned.gone {
            printer.info(&format!("deleted, and confirmed gone: {thing}"));
        }
        if let Some(error) = &self.outcome.returned.unwritten {
            printer.error(error);
        }
        let evidence = std::mem::take(&mut self.lending.evidence);
        let write = |(number, evidence): (usize, Evidence)| evidence.write(&self.manifest(printer.task(), number), printer);
        let written = evidence.into_iter().enumerate().try_for_each(write);
        let answered = self.outcome.answer.as_ref().map_err(|e| (e, super::exit_code(e))).map(code);
        let done = match answered {
            Ok(code) => shown.and(written).and(code),
            Err((error, code)) => {
                printer.error(error);
                [shown, written].into_iter().filter_map(Result::err).for_each(|e| printer.error(&e));
                Ok(code)
            }
        };
        match live {
            None => done,
            Some(live) => {
                done.err().into_iter().for_each(|e| printer.error(&e));
                Ok(super::exit_code(&live))
            }
        }
    }

    /// The manifest of the table of this number.
    fn manifest(&self, task: &str, number: usize) -> Manifest {
        let Masked { cleared, input, report, columns, key_id, scope, policy, filter, recipient, purpose, .. } =
            &self.lending.masked[number];
        let Outcome { answer, returned, lives, keeps } = &self.outcome;
        let (asked, granted, address_until) = match lives.get(number) {
            Some(Life::Expiring { asked, granted, .. }) => (Some(*asked), *granted, None),
            Some(Life::Address(at)) => (None, None, Some(*at)),
            Some(Life::Forever) => (None, None, None),
            None => (self.lending.idle_life(), None, None),
        };
        let target = self.other.target();
        let not_deletable = std::iter::once(target.not_deletable()).chain(keeps.clone()).collect::<Vec<_>>().join("; ");
        let left = returned.left.iter().map(|(thing, why)| format!("{thing} ({why})"));
        Manifest {
            version: VERSION,
            task: task.into(),
            tool: concat!("hmask ", env!("CARGO_PKG_VERSION")).into(),
            started: self.lending.started.to_string(),
            ended: jiff::Timestamp::now().to_string(),
            input: input.clone(),
            output: FileFacts { name: None, bytes: cleared.bytes(), sha256: cleared.sha256() },
            rows: report.rows,
            columns: columns.clone(),
            dropped: report.dropped.clone(),
            kept: report.kept.clone(),
            unicode: unicode(),
            key_id: key_id.clone(),
            scope: scope.clone(),
            filter: filter.clone(),
            policy: policy.clone(),
            recipient: recipient.clone(),
            purpose: purpose.clone(),
            gate: Some(cleared.checked().facts()),
            loan: Some(LoanFacts {
                recipient: target.place(),
                remote_name: file_name(task, number, cleared.ending()),
                expiry_asked: asked,
                expiry_granted: granted,
                address_until,
                answered: answer.is_ok(),
                confirmed_gone: returned.gone.iter().map(ToString::to_string).collect(),
                may_be_live: left.chain(returned.unknown.clone()).collect(),
                not_deletable,
            }),
        }
    }

    /// The error that names what may be live, and how to delete it by hand.
    fn live(&self) -> Error {
        let returned = &self.outcome.returned;
        let mut what: Vec<String> = returned.left.iter().map(|(thing, why)| format!("{thing} ({why})")).collect();
        what.extend(returned.unknown.iter().map(|what| format!("perhaps {what}")));
        let error =
            Error::new(ErrorKind::Live(format!("may still be live at {}: {}", self.other.target().place(), what.join(", "))));
        let error = error.hint("hmask sweep");
        returned.left.iter().fold(error, |error, (thing, _)| error.hint(self.other.target().by_hand(thing)))
    }
}
