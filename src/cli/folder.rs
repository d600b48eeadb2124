//! `hmask mask` on a folder: a data set of many files, laid out as it was, Hive partitions included.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use hmask::mask::Treatment;
use hmask::output::{Existing, Staged, StagedFolder};
use hmask::table::{ColumnReport, Format, TableReport};
use hmask::{Error, Result, Rules};

use super::args::{MaskArgs, OthersArg};
use super::io::{Source, same_file};
use super::mask::say;
use super::plan::Plan;
use super::print::Printer;

/// The partition of rows without a value.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Statistics and schemas of a whole data set, which would still hold originals.
const SUMMARIES: [&str; 2] = ["_metadata", "_common_metadata"];

/// What becomes of a file.
enum Fate {
    Mask,
    Copy,
}

/// Runs the command on a folder.
pub(super) fn run(folder: &Path, args: &MaskArgs, printer: &Printer) -> Result<ExitCode> {
    let Some(target) = &args.output else {
        return Err(Error::usage(format!("{} is a folder", folder.display())).hint("-o FOLDER"));
    };
    if args.evidence.manifest.is_some() || args.evidence.page.report.is_some() {
        return Err(Error::usage("a manifest is of one table, and a folder has many"));
    }
    if args.files.len() > 1 {
        return Err(Error::usage("a folder is masked on its own, not among other files"));
    }
    if same_file(target, folder) || lies_within(target, folder) {
        return Err(Error::usage("the output lies within the input").hint("-o OTHER"));
    }
    let mut plan = Plan::new(&args.table, &args.form, &args.key, &args.run, folder, printer)?;
    let mut files = Vec::new();
    walk(folder, Path::new(""), &mut files)?;
    files.sort();
    let partitions = Partitions::of(&files, &plan.rules, args.mask_partitions)?;
    let work = sort_out(&files, args, printer)?;
    if work.is_empty() {
        return Err(Error::usage(format!("{} holds no table", folder.display())));
    }
    // A partition's column is in the files of some writers, too. Where it is not, there is one column less to mask.
    plan.rules = plan.rules.optional(&partitions.masked);
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let staged = StagedFolder::create(target, existing)?;
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    let (mut rows, mut masked) = (0, 0);
    for (number, (file, fate)) in work.iter().enumerate() {
        if args.shard.is_some_and(|s| number % s.of != s.index) {
            continue;
        }
        let input = folder.join(file);
        let renamed = partitions.renamed(file, &plan)?;
        if lies_within(&target.join(&renamed), folder) {
            return Err(Error::usage("the output lies within the input").hint("-o OTHER"));
        }
        let output = staged.path(&renamed)?;
        let report = match fate {
            Fate::Copy => None,
            Fate::Mask => Some(write(&input, &output, &plan, args)?),
        };
        let Some(report) = report else {
            let failed = |e| Error::io(format!("cannot copy {}", input.display()), e);
            let mut out = Staged::create(&output, Existing::Refuse)?;
            std::io::copy(&mut File::open(&input).map_err(failed)?, &mut out).map_err(failed)?;
            out.persist()?;
            continue;
        };
        say(&report, &input, printer);
        rows += report.rows;
        masked += 1;
        for ColumnReport { name, masked, .. } in report.columns {
            *totals.entry(name).or_default() += masked;
        }
    }
    staged.persist()?;
    let columns: Vec<String> = totals.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let partitions = partitions.masked.iter().map(|p| format!("; partitions of {p}")).collect::<String>();
    printer.info(&format!(
        "{}: {masked} tables, {rows} rows, masked: {}{partitions} (key {})",
        target.display(),
        columns.join(", "),
        plan.key_id
    ));
    Ok(ExitCode::SUCCESS)
}

/// Masks a file into another one.
fn write(input: &Path, output: &Path, plan: &Plan, args: &MaskArgs) -> Result<TableReport> {
    let mut out = Staged::create(output, Existing::Refuse)?;
    let source = Source::open(input, args.table.reading.format.as_deref())?;
    let packing = source.packing(Some(output));
    let report = plan.mask(source, packing, &mut out, &args.run)?;
    out.flush().map_err(|e| Error::io("cannot write", e))?;
    out.persist()?;
    Ok(report)
}

/// Whether a file that is, or is to be, lies within a folder, as far as its folders are there.
fn lies_within(file: &Path, folder: &Path) -> bool {
    let there =
        file.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p }).find_map(|p| p.canonicalize().ok());
    there.zip(folder.canonicalize().ok()).is_some_and(|(there, folder)| there.starts_with(folder))
}

/// All files below a folder, by their paths from there.
fn walk(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let folder = root.join(below);
    let failed = |e| Error::io(format!("cannot read {}", folder.display()), e);
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else if kind.is_file() || kind.is_symlink() && root.join(&path).is_file() {
            files.push(path);
        } else {
            return Err(Error::unsupported("a link to a folder, or something that is no file").in_file(&root.join(path)));
        }
    }
    Ok(())
}

/// What becomes of each file; what is left out is said.
fn sort_out<'f>(files: &'f [PathBuf], args: &MaskArgs, printer: &Printer) -> Result<Vec<(&'f Path, Fate)>> {
    let mut work = Vec::new();
    for file in files {
        let name = file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let is_checksum = name.starts_with('.') && file.extension().is_some_and(|e| e == "crc");
        if SUMMARIES.contains(&name.as_str()) || is_checksum {
            printer.info(&format!("{} is left out: it describes the files as they were", file.display()));
        } else if Format::from_name(file).is_some() {
            work.push((file.as_path(), Fate::Mask));
        } else {
            match args.others {
                OthersArg::Copy => {
                    printer.info(&format!("{} is copied as it is: it is no table", file.display()));
                    work.push((file.as_path(), Fate::Copy));
                }
                OthersArg::Skip => printer.info(&format!("{} is left out: it is no table", file.display())),
                OthersArg::Error => {
                    return Err(Error::unsupported("no table").in_file(file).hint("--others skip").hint("--others copy"));
                }
            }
        }
    }
    Ok(work)
}

/// The columns that are names of folders.
struct Partitions {
    masked: Vec<String>,
}

impl Partitions {
    /// # Errors
    /// A wanted column whose values are names of folders, unless these may be renamed.
    fn of(files: &[PathBuf], rules: &Rules, rename: bool) -> Result<Self> {
        let mut keys: Vec<String> = files.iter().flat_map(|f| f.parent().into_iter().flat_map(steps)).map(|(k, _)| k).collect();
        keys.sort();
        keys.dedup();
        let is_kept = |rule: usize| matches!(rules.treatment(rule), Treatment::Keep);
        let masked: Vec<String> = keys.into_iter().filter(|k| rules.naming(k).is_some_and(|rule| !is_kept(rule))).collect();
        for key in &masked {
            if !rules.naming(key).is_some_and(|rule| matches!(rules.treatment(rule), Treatment::Pseudonym(_))) {
                return Err(Error::unsupported(format!("folders of column {key} can bear pseudonyms, and nothing else")));
            }
        }
        match masked.first().filter(|_| !rename) {
            None => Ok(Self { masked }),
            Some(key) => {
                Err(Error::usage(format!("the values of column {key} are names of folders ({key}=…), which are not touched"))
                    .hint("--mask-partitions renames them"))
            }
        }
    }

    fn renamed(&self, file: &Path, plan: &Plan) -> Result<PathBuf> {
        let rename = |component: Component<'_>| {
            let text = component.as_os_str();
            let found = text.to_str().and_then(step).filter(|(key, value)| self.masked.contains(key) && value != HIVE_NULL);
            let Some((key, value)) = found else { return Ok(text.to_owned()) };
            let rule = plan.rules.naming(&key).map(|rule| plan.rules.treatment(rule));
            let Some(Treatment::Pseudonym(mask)) = rule else { return Ok(text.to_owned()) };
            let token = mask.try_pseudonym(value.as_bytes()).map_err(|unfit| Error::malformed(unfit.why))?;
            Ok(format!("{key}={token}").into())
        };
        let Some((folder, name)) = file.parent().zip(file.file_name()) else { return Ok(file.to_owned()) };
        Ok(folder.components().map(rename).collect::<Result<PathBuf>>()?.join(name))
    }
}

fn steps(folder: &Path) -> Vec<(String, String)> {
    folder.components().filter_map(|c| step(c.as_os_str().to_str()?)).collect()
}

/// `key=value`, with the characters that Hive escapes as `%XX`.
fn step(name: &str) -> Option<(String, String)> {
    let (key, value) = name.split_once('=')?;
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(key), plain(value)))
}
