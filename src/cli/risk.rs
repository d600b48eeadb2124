//! `hmask risk`, and the thresholds of the gate: how well rows hide among others, and what masked columns still give away.

use hmask::gate::Measure;
use hmask::policy::Policy;
use hmask::table::TextLayout;
use hmask::{Columns, Result};

/// What measures a finished CSV for the gate.
///
/// # Errors
/// A build without polars.
#[cfg(not(feature = "analyse"))]
pub(super) fn measure(_: &Policy, _: (Columns, Option<Columns>), _: TextLayout, _: usize) -> Result<Box<Measure<'static>>> {
    Err(hmask::Error::unsupported("the policy has thresholds of risk, and this build has no feature `analyse` to measure it"))
}

#[cfg(feature = "analyse")]
pub(super) use full::{measure, run};

#[cfg(feature = "analyse")]
mod full {
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::process::ExitCode;

    use hmask::analyse::Risk;
    use hmask::gate::broken;
    use hmask::gate::inspect::{Counts, Inspection, Profile};
    use hmask::report::{RiskFacts, Thresholds};
    use hmask::table::csv::{CsvOptions, Ragged};
    use hmask::table::rows::Looking;
    use hmask::table::{Format, Input};
    use hmask::{Error, Form, Missing, pipeline};

    use super::super::args::RiskArgs;
    use super::super::inspect::look;
    use super::super::io::Source;
    use super::super::plan;
    use super::{Columns, Measure, Policy, Result, TextLayout};

    /// Exit code if a threshold does not hold.
    const FOUND: u8 = 1;
    /// The share of one value from which on its frequency gives it away.
    const DOMINANT: f64 = 0.05;
    /// Values that a holder of the key has tried within a second.
    const SMALL: f64 = 1e6;

    /// What measures a finished CSV for the gate.
    #[expect(clippy::unnecessary_wraps, reason = "a build without polars cannot")]
    pub(in crate::cli) fn measure(
        policy: &Policy,
        (quasi, sensitive): (Columns, Option<Columns>),
        layout: TextLayout,
        workers: usize,
    ) -> Result<Box<Measure<'static>>> {
        let thresholds = thresholds(policy);
        Ok(Box::new(move |file: &File| {
            let options = CsvOptions {
                delimiter: Some(layout.delimiter),
                encoding: layout.encoding,
                ragged: Ragged::Keep,
                ..CsvOptions::default()
            };
            let looking = Looking { options: &options, workers, progress: &|_| {} };
            let risk = Risk { quasi: &quasi, sensitive: sensitive.as_ref(), groups: None };
            let mut open = || {
                let mut file = file.try_clone().map_err(|e| Error::io("cannot read the masked file", e))?;
                file.rewind().map_err(|e| Error::io("cannot read the masked file", e))?;
                Ok((Input::File(file), Format::Csv))
            };
            let facts = risk.measure(&looking, &mut open)?;
            Ok(RiskFacts { thresholds: thresholds.clone(), ..facts })
        }))
    }

    fn thresholds(policy: &Policy) -> Thresholds {
        let gate = &policy.gate;
        Thresholds { min_k: gate.min_k, max_unique_share: gate.max_unique_share, min_l: gate.min_l }
    }

    /// Runs the command.
    pub(in crate::cli) fn run(args: &RiskArgs) -> Result<ExitCode> {
        let policy = args.policy.as_deref().map(plan::read).transpose()?;
        let listed = policy.as_ref().map(Policy::quasi).transpose()?.flatten();
        let (listed_quasi, listed_sensitive) = listed.map_or((None, None), |(q, s)| (Some(q), s));
        let parse = |text: &Option<String>| text.as_deref().map(Columns::parse).transpose();
        let (quasi, sensitive, masked) = (parse(&args.quasi)?, parse(&args.sensitive)?, parse(&args.columns)?);
        let (quasi, sensitive) = (quasi.or(listed_quasi), sensitive.or(listed_sensitive));
        if args.max_unique_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(Error::usage("a share is between 0 and 1"));
        }
        if quasi.is_none() && masked.is_none() {
            return Err(Error::usage("nothing is named that could be measured").hint("--quasi COLS").hint("-c COLS"));
        }
        let set = policy.as_ref().map(thresholds).unwrap_or_default();
        let thresholds = Thresholds {
            min_k: args.min_k.or(set.min_k),
            max_unique_share: args.max_unique_share.or(set.max_unique_share),
            min_l: args.min_l.or(set.min_l),
        };
        let facts = quasi.map(|quasi| rows(args, &quasi, sensitive.as_ref(), thresholds)).transpose()?;
        let columns = masked.map(|masked| columns(args, &masked)).transpose()?;
        let form = Form::new(args.length, "", false)?;
        let told: Vec<Told> = columns.iter().flatten().flat_map(|(rows, p)| of_column(*rows, p, &form)).collect();
        let broken = facts.as_ref().map(broken).unwrap_or_default();
        let text = if args.json {
            let columns: Vec<_> =
                told.iter().map(|t| serde_json::json!({"column": t.column, "what": t.what, "do": t.act})).collect();
            format!("{:#}\n", serde_json::json!({"risk": facts, "columns": columns, "broken": broken}))
        } else {
            let mut text = facts.as_ref().map(of_rows).unwrap_or_default();
            told.iter().for_each(|t| text += &format!("{}: {}\n    {}\n", t.column, t.what, t.act));
            broken.iter().for_each(|b| text += &format!("does not hold: {b}\n"));
            text
        };
        std::io::stdout().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", e))?;
        Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
    }

    fn rows(args: &RiskArgs, quasi: &Columns, sensitive: Option<&Columns>, thresholds: Thresholds) -> Result<RiskFacts> {
        let options = CsvOptions { ragged: Ragged::Refuse, ..args.reading.csv_options()? };
        let workers = pipeline::workers(args.run.threads.map(usize::from));
        let looking = Looking { options: &options, workers, progress: &|_| {} };
        let mut first = true;
        let mut open = || {
            let source = Source::open(&args.file, args.reading.format.as_deref())?;
            if !std::mem::take(&mut first) && matches!(source.input, Input::Stream(_)) {
                return Err(Error::unsupported("the table has more groups than memory holds, and a pipe cannot be read again"));
            }
            Ok((source.input, source.format))
        };
        let risk = Risk { quasi, sensitive, groups: None };
        let facts = risk.measure(&looking, &mut open).map_err(|e| e.in_file(&args.file))?;
        Ok(RiskFacts { thresholds, ..facts })
    }

    /// The columns that are masked, with the number of rows of the table.
    fn columns(args: &RiskArgs, masked: &Columns) -> Result<Vec<(u64, Profile)>> {
        let source = Source::open(&args.file, args.reading.format.as_deref())?;
        let inspection = Inspection::default();
        let mut counts = Counts::default();
        let columns = look(
            source,
            &args.reading,
            &args.run,
            |_| Ok(()),
            |rows| inspection.rows(rows),
            |some, _, _| {
                counts.add(some);
                Ok(())
            },
        )?;
        let found = masked.resolve(&columns.candidates, Missing::Error)?.found;
        let rows = counts.rows();
        let profiles = counts.profiles(&columns, u32::from(jiff::Zoned::now().year().unsigned_abs()));
        let wanted = profiles.into_iter().enumerate().filter(|(i, _)| found.contains(i));
        Ok(wanted.map(|(_, profile)| (rows, profile)).collect())
    }

    /// What is told of a column, and what to do about it.
    struct Told {
        column: String,
        what: String,
        act: String,
    }

    fn of_column(rows: u64, p: &Profile, form: &Form) -> Vec<Told> {
        let mut told = Vec::new();
        let mut tell = |what: String, act: &str| told.push(Told { column: p.name.clone(), what, act: act.into() });
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        if p.most_frequent >= DOMINANT && p.distinct > 1 {
            tell(
                format!(
                    "one value stands in {} of the rows that have one: who knows how often it occurs knows its pseudonym",
                    percent(p.most_frequent)
                ),
                "drop the column, or accept that this value is as good as in clear",
            );
        }
        let bits = if p.most_frequent > 0.0 { -p.most_frequent.log2() } else { (rows.max(1) as f64).log2() };
        tell(
            format!("{} different values, at least {:.1} bits to guess one (min-entropy)", p.distinct, bits.max(0.0)),
            "below about 10 bits frequencies alone give many values away: --scope upload keeps runs from being compared",
        );
        if let Some((space, what)) = space(p) {
            tell(
                format!("there are only about {space:.0e} {what}: a leaked key reverses all of them at once"),
                "keep the key apart and change it; or year, month, truncate in place of a pseudonym",
            );
        }
        if p.placeholders >= 0.005 {
            tell(
                format!(
                    "{} of the values stand for none (0, N/A, unknown …): their pseudonym is seen at a glance",
                    percent(p.placeholders)
                ),
                "empty these cells before, so that they stay empty",
            );
        }
        tell(
            format!(
                "two of {} values share a pseudonym of {} digits with a chance of {:.1e}",
                p.distinct,
                form.digits(),
                form.collision_chance(p.distinct)
            ),
            "--length 20 makes it 65,536 times smaller",
        );
        told
    }

    /// How many values there can be at all, where these are few.
    fn space(p: &Profile) -> Option<(f64, &'static str)> {
        let digits = p.shapes.iter().map(|s| s.chars().filter(|c| *c == '9').count()).max().unwrap_or(0);
        let only =
            |marks: &str| !p.shapes.is_empty() && p.shapes.iter().all(|s| s.chars().all(|c| c == '9' || marks.contains(c)));
        if p.kind == "date" || p.kind.starts_with("Date") {
            return Some((110.0 * 366.0, "days on which a person who lives can be born"));
        }
        let size = 10f64.powi(digits as i32);
        (only(" .-/+()") && digits > 0 && size <= SMALL * 1e4).then_some((size, "numbers of so many digits"))
    }

    fn of_rows(f: &RiskFacts) -> String {
        let share = |rows: u64| 100.0 * rows as f64 / f.rows.max(1) as f64;
        let mut text = format!(
            "{} rows in {} groups that are alike in {}\n\
             k = {}: the least group has so many rows\n    below 5 a person who is known to be in the table can often be told: year, truncate, bucket, --keep\n\
             {} rows ({:.2} %) are like no other\n    each of them is one person for who knows these values\n",
            f.rows,
            f.groups,
            f.quasi.join(", "),
            f.k_min,
            f.unique_rows,
            share(f.unique_rows)
        );
        for bin in &f.distribution {
            let size = match bin.to {
                Some(to) if to == bin.k => bin.k.to_string(),
                Some(to) => format!("{} to {to}", bin.k),
                None => format!("{} and more", bin.k),
            };
            text += &format!("  groups of {size:<12} {:>12} rows {:>6.2} %\n", bin.rows, share(bin.rows));
        }
        if let (Some(l), Some(sensitive)) = (f.l_min, &f.sensitive) {
            text += &format!("l = {l}: the least group has so many different values of {sensitive}\n");
            text += "    with 1, who is known to be in such a group is known to have that value\n";
        }
        text
    }
}
