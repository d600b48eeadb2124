//! Files of the assistant, saved under names that stay in their folder.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::openai::{ContainerFile, OpenAi};
use crate::error::{Error, Result};
use crate::output::{Existing, Staged};

/// Letters of a name; what follows is cut.
const MAX_NAME: usize = 100;

/// Where outputs go.
pub struct Folder {
    path: PathBuf,
    /// Names that are taken, in lower case, as some file systems know no other.
    taken: HashSet<String>,
}

/// A file that was saved.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

impl Folder {
    /// Takes a folder, which is made if it is not there.
    ///
    /// # Errors
    /// One that cannot be made or read.
    pub fn new(path: &Path) -> Result<Self> {
        let failed = |e| Error::io(format!("cannot use the folder {}", path.display()), e);
        fs::create_dir_all(path).map_err(failed)?;
        let names = fs::read_dir(path).map_err(failed)?;
        let taken = names.filter_map(|e| Some(e.ok()?.file_name().to_str()?.to_lowercase())).collect();
        Ok(Self { path: path.to_owned(), taken })
    }

    /// Downloads a file whole, or not at all.
    ///
    /// # Errors
    /// Why it is not there; names no content.
    pub async fn save(&mut self, api: &OpenAi, container: &str, file: &ContainerFile) -> Result<Saved, String> {
        let name = self.fresh(file.path.as_deref().unwrap_or_default());
        let path = self.path.join(&name);
        let mut staged = Staged::create(&path, Existing::Refuse).map_err(|e| e.to_string())?;
        let bytes =
            api.download(container, &file.id, |b| staged.write_all(b)).await.map_err(|e| format!("{name} was not saved: {e}"))?;
        if file.bytes.is_some_and(|n| n != bytes) {
            return Err(format!("{name} was not saved: it has another length than the service says"));
        }
        staged.persist().map_err(|e| e.to_string())?;
        Ok(Saved { path, bytes })
    }

    /// A name of its own for a path that the model made up.
    fn fresh(&mut self, path: &str) -> String {
        let name = plain_name(path);
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending)) if !stem.is_empty() => (stem.to_owned(), format!(".{ending}")),
            _ => (name.clone(), String::new()),
        };
        let numbered = (2..).map(|n| format!("{stem}-{n}{ending}"));
        let fresh = std::iter::once(name.clone()).chain(numbered).find(|n| !self.taken.contains(&n.to_lowercase()));
        let fresh = fresh.unwrap_or(name);
        self.taken.insert(fresh.to_lowercase());
        fresh
    }
}

/// The last part of a path, with nothing in it that a file system or a terminal could take amiss.
fn plain_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let odd = |c: char| {
        c.is_control()
            || "<>:\"|?*".contains(c)
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let name: String = last.chars().map(|c| if odd(c) { '_' } else { c }).take(MAX_NAME).collect();
    let name = name.trim_matches([' ', '.']);
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || stem.len() == 4
            && (stem.starts_with("COM") || stem.starts_with("LPT"))
            && stem.ends_with(|c: char| c.is_ascii_digit());
    match name {
        "" => "output".into(),
        name if device => format!("_{name}"),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        for (path, want) in [
            ("/mnt/data/report.csv", "report.csv"),
            ("/mnt/data/../../etc/passwd", "passwd"),
            ("..\\..\\x.txt", "x.txt"),
            ("/mnt/data/..", "output"),
            ("", "output"),
            ("/mnt/data/.bashrc", "bashrc"),
            ("/mnt/data/NUL.csv", "_NUL.csv"),
            ("/mnt/data/com1", "_com1"),
            ("/mnt/data/a\0b\u{202e}c\n.csv", "a_b_c_.csv"),
            ("/mnt/data/été 2024.csv", "été 2024.csv"),
        ] {
            assert_eq!(plain_name(path), want, "{path:?}");
        }
        assert_eq!(plain_name(&"x".repeat(300)).len(), MAX_NAME);
    }

    #[test]
    fn no_file_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("Result.csv"), "mine").unwrap();
        let mut folder = Folder::new(dir.path()).unwrap();
        assert_eq!(folder.fresh("/mnt/data/result.csv"), "result-2.csv");
        assert_eq!(folder.fresh("/other/RESULT.csv"), "RESULT-3.csv");
        assert_eq!(folder.fresh("plain"), "plain");
    }
}
