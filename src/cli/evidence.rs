//! What a run leaves as proof: the manifest, its signature, and the report for the data protection officer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cardinality_estimator::CardinalityEstimator;
use hmask::mask::Tag;
use hmask::output::{Existing, Staged};
use hmask::report::sign::SigningKey;
use hmask::report::{Manifest, render};
use hmask::{Error, Result, Rules};

use super::args::EvidenceArgs;
use super::io::{apart, same_file};
use super::print::Printer;

/// Files that are ready to be written: that they cannot is known before anything is sent.
pub(super) struct Evidence {
    manifest: Option<(PathBuf, Staged)>,
    /// Where the manifest goes otherwise; made at the end, so that a run that is killed leaves nothing there.
    default: Option<PathBuf>,
    signature: Option<(Staged, SigningKey)>,
    report: Option<(PathBuf, Staged)>,
    lang: hmask::report::Lang,
}

impl Evidence {
    /// Stages the files. `default` is where the manifest goes if nobody says where; none if there is to be none then. Of several tables in
    /// one run the second has `m-2.json` where the first has `m.json`.
    ///
    /// # Errors
    /// Files that are there, or the input; a key that cannot be read.
    pub(super) fn stage(
        args: &EvidenceArgs,
        force: bool,
        input: &Path,
        default: Option<PathBuf>,
        number: usize,
        others: &[&Path],
    ) -> Result<Self> {
        let named = |path: &Path| if number == 0 { path.to_owned() } else { numbered(path, number) };
        let sig = args.manifest.as_deref().filter(|_| args.sign_key.is_some()).map(signature_of);
        let written: Vec<&Path> =
            [args.manifest.as_deref(), args.page.report.as_deref(), sig.as_deref()].into_iter().flatten().collect();
        if let Some(path) = written.iter().find(|p| same_file(p, input)) {
            return Err(Error::usage(format!("{} is the input", path.display())).hint("--manifest OTHER"));
        }
        apart(&written, others)?;
        let existing = if force { Existing::Replace } else { Existing::Refuse };
        let stage = |path: &Path| Staged::create(path, existing);
        let key = args.sign_key.as_deref().map(read_key).transpose()?;
        let path = args.manifest.as_deref().map(named);
        let path = path.as_deref();
        if path.is_none() && key.is_some() {
            return Err(Error::usage("there is no manifest to be signed").hint("--manifest FILE"));
        }
        let signature = path.zip(key).map(|(path, key)| Ok((stage(&signature_of(path))?, key))).transpose()?;
        Ok(Self {
            signature,
            manifest: path.map(|path| stage(path).map(|staged| (path.to_owned(), staged))).transpose()?,
            default: default.filter(|_| path.is_none()).map(|p| named(&p)),
            report: args.page.report.as_deref().map(named).map(|path| stage(&path).map(|staged| (path, staged))).transpose()?,
            lang: args.page.lang.into(),
        })
    }

    /// Whether anything is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.manifest.is_some() || self.report.is_some()
    }

    /// Writes all of them, and says where.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn write(self, manifest: &Manifest, printer: &Printer) -> Result<()> {
        let bytes = manifest.to_bytes()?;
        let failed = |e| Error::io("cannot write the manifest", e);
        if let Some((mut staged, key)) = self.signature {
            staged.write_all(&key.sign(&bytes)).map_err(failed)?;
            staged.persist()?;
        }
        let default = |path: PathBuf| {
            let folder = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|e| Error::io(format!("cannot make {}", folder.display()), e))?;
            Staged::create(&path, Existing::Refuse).map(|staged| (path, staged))
        };
        let staged = self.manifest.map_or_else(|| self.default.map(default).transpose(), |m| Ok(Some(m)))?;
        if let Some((path, mut staged)) = staged {
            staged.write_all(&bytes).map_err(failed)?;
            staged.persist()?;
            printer.info(&format!("manifest: {}", path.display()));
        }
        if let Some((path, mut staged)) = self.report {
            let value = serde_json::to_value(manifest).map_err(|e| failed(e.into()))?;
            staged.write_all(render(&value, self.lang).as_bytes()).map_err(|e| Error::io("cannot write the report", e))?;
            staged.persist()?;
            printer.info(&format!("report: {}", path.display()));
        }
        Ok(())
    }
}

/// `m-2.json` for `m.json` and the second table.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{}{ending}", number + 1))
}

/// `MANIFEST.sig` beside it.
pub(super) fn signature_of(manifest: &Path) -> PathBuf {
    let mut name = manifest.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

fn read_key(path: &Path) -> Result<SigningKey> {
    let bytes = std::fs::read(path).map(zeroize::Zeroizing::new);
    SigningKey::from_pem(&bytes.map_err(|e| Error::io(format!("cannot read {}", path.display()), e))?)
}

/// Counts the different pseudonyms of each rule: as good as the different values, and none of them is held.
#[derive(Default)]
pub(super) struct Distinct(Vec<Arc<Mutex<CardinalityEstimator<u64>>>>);

impl Distinct {
    /// Counts what these rules make from now on.
    pub(super) fn of(rules: &mut Rules) -> Self {
        let mut all = Self::default();
        for rule in rules.all_mut() {
            let counter = Arc::new(Mutex::new(CardinalityEstimator::new()));
            all.0.push(counter.clone());
            rule.treatment.observe(Arc::new(move |tags: &[Tag]| {
                let mut counter = counter.lock().unwrap_or_else(PoisonError::into_inner);
                for tag in tags {
                    if let Some(head) = tag.first_chunk() {
                        counter.insert_hash(u64::from_le_bytes(*head));
                    }
                }
            }));
        }
        all
    }

    /// The different values that a rule has seen.
    pub(super) fn count(&self, rule: usize) -> Option<u64> {
        let counter = self.0.get(rule)?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(counter.estimate() as u64)
    }
}
