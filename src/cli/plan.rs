//! Everything that masking needs, from arguments, policy and environment.

use std::io::Write;
use std::path::{Path, PathBuf};

use hmask::mask::{Kernel, Treatment, Witness};
use hmask::policy::{NAME, Policy, Rule, Unlisted};
use hmask::report::PolicyFacts;
use hmask::table::compress::Compression;
use hmask::table::csv::CsvOptions;
use hmask::table::{self, Job, TableReport};
use hmask::{Columns, Error, Form, Pseudonymiser, Result, Rules, Scope, pipeline};

use super::args::{EmptyArg, FormArgs, KeyArgs, RunArgs, TableArgs};
use super::io::{Source, is_dash, progress};
use super::key;
use super::print::Printer;

/// Everything that masking needs.
pub(super) struct Plan {
    pub rules: Rules,
    pub options: CsvOptions,
    pub scope: Scope,
    pub key_id: String,
    pub workers: usize,
    /// The policy that the rules are of, with its name.
    pub policy: Option<(PathBuf, Policy)>,
    /// The condition that rows must meet.
    pub filter: Option<String>,
    /// Whether rows of binary formats are left out when they are written as CSV.
    pub filters_later: bool,
}

impl Plan {
    /// Checks the arguments, reads the policy and the key, which is dropped once the hashes are keyed. `input` is where a policy is
    /// looked for from.
    ///
    /// # Errors
    /// Arguments or a policy that do not fit, or no key.
    pub(super) fn new(
        table: &TableArgs,
        form: &FormArgs,
        key: &KeyArgs,
        run: &RunArgs,
        input: &Path,
        printer: &Printer,
    ) -> Result<Self> {
        let (columns, options) = (table.columns()?, table.csv_options()?);
        let kept = table.keep.as_deref().map(Columns::parse).transpose()?;
        let policy = policy(table, input)?;
        choose_kernel(run, printer)?;
        let said = policy.as_ref().map(|(_, policy)| policy);
        let scope = form.scope.as_deref().or(said.and_then(|p| p.scope.as_deref())).unwrap_or("stable");
        let scope = Scope::parse(scope, printer.task())?;
        let form_of = |length: Option<usize>, prefix: Option<&str>| form.form(length, prefix, said);
        form_of(None, None)?; // before a key is asked for
        let held = key::read(key, printer)?;
        let mut rules = Vec::new();
        if let Some(columns) = columns {
            let overridden: Vec<String> = columns.names().into_iter().filter(|c| said.is_some_and(|p| p.is_listed(c))).collect();
            if !overridden.is_empty() {
                printer.info(&format!("-c overrides the policy for {}", overridden.join(", ")));
            }
            let mask = Pseudonymiser::new(held.key(), &scope, "", form_of(None, None)?);
            rules.push(Rule { columns, treatment: Treatment::Pseudonym(Box::new(mask)), overrides: policy.is_some() });
        }
        let mut unlisted = Unlisted::Keep;
        if let Some((name, policy)) = &policy {
            printer.info(&format!("policy: {}", name.display()));
            for (flag, given, listed) in [
                ("--length", form.length.is_some(), policy.pseudonym.length.is_some()),
                ("--prefix", form.prefix.is_some(), policy.pseudonym.prefix.is_some()),
                ("--scope", form.scope.is_some(), policy.scope.is_some()),
                ("--empty", form.empty.is_some(), policy.pseudonym.hash_empty),
            ] {
                if given && listed {
                    printer.info(&format!("{flag} overrides the policy"));
                }
            }
            rules.extend(policy.rules(held.key(), &scope, &form_of).map_err(|e| e.in_file(name))?);
            unlisted = policy.unlisted;
        }
        Ok(Self {
            rules: Rules::new(rules, unlisted).only(kept),
            options,
            key_id: held.key().id().to_string(),
            scope,
            workers: pipeline::workers(run.threads.map(usize::from)),
            policy,
            #[cfg(feature = "analyse")]
            filter: table.filter.clone(),
            #[cfg(not(feature = "analyse"))]
            filter: None,
            filters_later: false,
        })
    }

    /// Has the originals of masked columns told.
    pub(super) fn witness(&mut self, witness: &Witness) {
        self.rules.all_mut().iter_mut().for_each(|rule| rule.treatment.witness(witness));
    }

    /// The policy, as a manifest names it.
    pub(super) fn policy_facts(&self) -> Option<PolicyFacts> {
        let fact = |(name, policy): &(PathBuf, Policy)| PolicyFacts { name: name.display().to_string(), sha256: policy.sha256() };
        self.policy.as_ref().map(fact)
    }

    /// Masks one table into `output`, compressed as `packing` says.
    ///
    /// # Errors
    /// Whatever makes the table uncertain or cannot be read or written, with the file's name.
    pub(super) fn mask(
        &self,
        mut source: Source,
        packing: Compression,
        output: &mut (dyn Write + Send),
        run: &RunArgs,
    ) -> Result<TableReport> {
        if source.format.is_text()
            && let Some(keep) = self.chosen(&source)?
        {
            source.input = source.input.chosen(keep, source.format, &self.options)?;
            source.size = None;
        } else if self.filter.is_some() && !source.format.is_text() && !self.filters_later {
            return Err(Error::unsupported("rows of a Parquet or Arrow file cannot be left out yet").in_file(&source.name));
        }
        let bar = progress(run.progress, source.size);
        let advance = |n| bar.inc(n);
        let job = Job { rules: &self.rules, workers: self.workers, progress: &advance };
        let name = source.name;
        let report = table::mask(source.input, output, source.format, packing, &job, &self.options);
        bar.finish_and_clear();
        report.map_err(|e| e.in_file(&name))
    }
}

impl Plan {
    /// For each row of the table whether it meets the condition, if there is one. The table is read for it, once more than for masking.
    ///
    /// # Errors
    /// A pipe, or a condition that does not fit.
    #[cfg(feature = "analyse")]
    pub(super) fn chosen(&self, source: &Source) -> Result<Option<Vec<bool>>> {
        let Some(sql) = &self.filter else { return Ok(None) };
        let table::Input::File(_) = &source.input else {
            return Err(Error::usage("--where reads the table twice, and a pipe can be read once only"));
        };
        let failed = |e| Error::io(format!("cannot read {}", source.name.display()), e);
        let again = std::fs::File::open(&source.name).map_err(failed)?;
        let looking = table::rows::Looking { options: &self.options, workers: self.workers, progress: &|_| {} };
        let keep = hmask::analyse::choose(sql, table::Input::File(again), source.format, &looking);
        keep.map(Some).map_err(|e| e.in_file(&source.name))
    }

    /// No rows are left out without polars.
    #[cfg(not(feature = "analyse"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with polars")]
    pub(super) fn chosen(&self, _: &Source) -> Result<Option<Vec<bool>>> {
        Ok(None)
    }
}

/// The policy that was named; or, where no columns are, the one that is found from the input upwards.
fn policy(table: &TableArgs, input: &Path) -> Result<Option<(PathBuf, Policy)>> {
    let found = match &table.policy {
        Some(path) => path.clone(),
        None if table.columns.is_some() => return Ok(None),
        None => found(input).ok_or_else(|| {
            Error::usage(format!("no columns are named, and no {NAME} is found"))
                .hint("-c COLS")
                .hint(format!("hmask inspect FILE --write-policy {NAME}"))
        })?,
    };
    read(&found).map(|policy| Some((found, policy)))
}

/// Reads a policy.
///
/// # Errors
/// One that cannot be read or is none.
pub(super) fn read(path: &Path) -> Result<Policy> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Error::usage(format!("cannot read the policy {}: {e}", path.display())))?;
    Policy::parse(&text).map_err(|e| e.in_file(path))
}

/// The policy in the folder of the input or in one above it.
pub(super) fn found(input: &Path) -> Option<PathBuf> {
    let folder = if is_dash(input) { Path::new(".") } else { input };
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().map(|f| f.join(NAME)).find(|p| p.is_file())
}

/// Takes the kernel that was asked for, and says so if a faster one gives wrong answers.
fn choose_kernel(run: &RunArgs, printer: &Printer) -> Result<()> {
    if let Some(name) = &run.kernel {
        let kernel = Kernel::ALL.into_iter().find(|k| k.name() == name);
        if !kernel.is_some_and(Kernel::force) {
            return Err(Error::usage(format!("this machine has no kernel {name}")));
        }
    } else if let Some(kernel) = Kernel::passed_over() {
        printer.warn(&format!("the kernel {} gives wrong answers on this machine and is not used", kernel.name()));
    }
    Ok(())
}

impl FormArgs {
    /// The form of pseudonyms: as a flag says, else as the column does, else as the policy does.
    ///
    /// # Errors
    /// A form that pseudonyms cannot have.
    pub(super) fn form(&self, length: Option<usize>, prefix: Option<&str>, policy: Option<&Policy>) -> Result<Form> {
        const LENGTH: usize = 16;
        let defaults = policy.map(|p| &p.pseudonym);
        let length = self.length.or(length).or(defaults.and_then(|d| d.length)).unwrap_or(LENGTH);
        let prefix = self.prefix.as_deref().or(prefix).or(defaults.and_then(|d| d.prefix.as_deref())).unwrap_or("");
        let hash_empty = self.empty.map_or(defaults.is_some_and(|d| d.hash_empty), |empty| empty == EmptyArg::Hash);
        Form::new(length, prefix, hash_empty)
    }
}
