//! Which file is read and which is written.

use std::fs::File;
use std::io::{Cursor, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use hmask::output::{Existing, Staged};
use hmask::table::compress::{Compression, LOOK};
use hmask::table::{Format, Input};
use hmask::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use super::args::ProgressArg;

/// A table that is there to be read.
pub(super) struct Source {
    /// As it was named.
    pub name: PathBuf,
    pub input: Input,
    pub format: Format,
    /// As its first bytes tell.
    pub compression: Compression,
    /// Bytes, if it is a file.
    pub size: Option<u64>,
}

/// Where a masked table goes.
pub(super) enum Sink {
    Stdout,
    /// A device or pipe, which is written to and not replaced.
    Stream(File),
    File(Box<Staged>),
}

/// A sink that knows the length and SHA-256 of what was written, if that is wanted.
pub(super) struct Hashing {
    sink: Sink,
    hash: Option<(u64, Sha256)>,
}

impl Hashing {
    pub(super) fn new(sink: Sink, wanted: bool) -> Self {
        Self { sink, hash: wanted.then(|| (0, Sha256::new())) }
    }

    /// The sink, and bytes and hash in hex digits.
    pub(super) fn finish(self) -> (Sink, Option<(u64, String)>) {
        let hex = |hash: Sha256| hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        (self.sink, self.hash.map(|(bytes, hash)| (bytes, hex(hash))))
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.sink.write(bytes)?;
        if let Some((length, hash)) = &mut self.hash {
            hash.update(&bytes[..n]);
            *length += n as u64;
        }
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// Refuses a file that would be written in place of one of the others, or of an earlier one of its own kind.
///
/// # Errors
/// Two that are the same.
pub(super) fn apart(written: &[&Path], others: &[&Path]) -> Result<()> {
    for (i, one) in written.iter().enumerate().filter(|(_, p)| !is_dash(p)) {
        let same = |other: &&Path| same_file(one, other) || *one == *other;
        if others.iter().any(same) || written[..i].iter().any(same) {
            return Err(Error::usage(format!("{} would be written in place of another file of this run", one.display())));
        }
    }
    Ok(())
}

/// Whether a name means stdin or stdout.
pub(super) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

impl Source {
    /// Opens a file, or stdin, and finds out what it is.
    ///
    /// # Errors
    /// One that cannot be read.
    pub(super) fn open(path: &Path, format: Option<&str>) -> Result<Self> {
        let format = format.map(Format::parse).transpose()?;
        if is_dash(path) {
            return Self::stdin(format);
        }
        let failed = |e| Error::io(format!("cannot open {}", path.display()), e);
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(
                Error::usage(format!("{} is a folder", path.display())).hint(format!("hmask mask {}/*.csv", path.display()))
            );
        }
        if !metadata.is_file() {
            let mut source = Self::stream(Box::new(file), format.or_else(|| Format::from_name(path)))?;
            path.clone_into(&mut source.name);
            return Ok(source);
        }
        let mut start = [0; LOOK];
        let n = file.read(&mut start).map_err(failed)?;
        std::io::Seek::rewind(&mut file).map_err(failed)?;
        Format::refuse_foreign(&start[..n]).map_err(|e| e.in_file(path))?;
        let by_content = Format::from_magic(&start[..n]);
        if let Some(named) = Format::from_name(path).filter(|f| format.is_none() && f.is_text() && !by_content.is_text()) {
            let what = format!("the name says {}, but the content is {}", named.extension(), by_content.extension());
            return Err(Error::malformed(what).hint(format!("--format {}", by_content.extension())).in_file(path));
        }
        let format = format.or_else(|| Format::from_name(path)).unwrap_or(by_content);
        let compression = Compression::from_magic(&start[..n]);
        Ok(Self { name: path.to_owned(), input: Input::File(file), format, compression, size: Some(metadata.len()) })
    }

    fn stdin(format: Option<Format>) -> Result<Self> {
        Self::stream(Box::new(std::io::stdin()), format)
    }

    fn stream(mut stream: Box<dyn Read + Send>, format: Option<Format>) -> Result<Self> {
        let mut start = Vec::new();
        stream.by_ref().take(LOOK as u64).read_to_end(&mut start).map_err(|e| Error::io("cannot read", e))?;
        let format = format.unwrap_or_else(|| Format::from_magic(&start));
        let compression = Compression::from_magic(&start);
        let input = Input::Stream(Box::new(Cursor::new(start).chain(stream)));
        Ok(Self { name: PathBuf::from("-"), input, format, compression, size: None })
    }

    /// How the output is compressed: as its name says; with the same ending as the input, or none, as the input was.
    pub(super) fn packing(&self, output: Option<&Path>) -> Compression {
        let by_name = |p: &Path| Compression::from_name(&p.to_string_lossy());
        match output.map(by_name) {
            Some(Compression::None) if output.and_then(Path::extension) == self.name.extension() => self.compression,
            Some(named) => named,
            None => self.compression,
        }
    }
}

/// `NAME.masked.EXT` beside the input, before the ending of a compression.
pub(super) fn default_output(input: &Path) -> PathBuf {
    let name = input.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let plain = Compression::strip(&name);
    let packed = &name[plain.len()..];
    let masked = match plain.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}.masked.{ending}{packed}"),
        _ => format!("{plain}.masked{packed}"),
    };
    input.with_file_name(masked)
}

/// Whether data goes to stdout when no output is named: into a pipe or a file, but not to a terminal or device.
pub(super) fn stdout_takes_data() -> bool {
    if std::io::stdout().is_terminal() {
        return false;
    }
    #[cfg(unix)]
    {
        use rustix::fs::{FileType, fstat};
        let kind = fstat(rustix::stdio::stdout()).map(|s| FileType::from_raw_mode(s.st_mode));
        kind.is_ok_and(|k| matches!(k, FileType::Fifo | FileType::RegularFile | FileType::Socket))
    }
    #[cfg(not(unix))]
    true
}

/// Begins the output of `source`.
///
/// # Errors
/// A target that is the input, or exists and is to stay.
pub(super) fn create(target: &Path, source: &Source, force: bool) -> Result<Sink> {
    if is_dash(target) {
        #[cfg(unix)]
        if source.size.is_some() && stdout_is(&source.name) {
            return Err(Error::usage("stdout is the input").hint("-o OTHER"));
        }
        return Ok(Sink::Stdout);
    }
    if target.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        let stream = File::options().write(true).open(target);
        return stream.map(Sink::Stream).map_err(|e| Error::io(format!("cannot write {}", target.display()), e));
    }
    if same_file(target, &source.name) {
        return Err(Error::usage(format!("{} is the input", target.display())).hint("-o OTHER"));
    }
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    Staged::create(target, existing).map(|s| Sink::File(Box::new(s)))
}

/// Whether stdout goes into this file.
#[cfg(unix)]
fn stdout_is(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let out = rustix::fs::fstat(rustix::stdio::stdout()).ok().map(|s| (s.st_dev, s.st_ino));
    out.is_some() && out == path.metadata().ok().map(|m| (m.dev(), m.ino()))
}

/// Whether two names mean one file.
pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(x), Ok(y)) if x == y => true,
        #[cfg(unix)]
        _ => {
            use std::os::unix::fs::MetadataExt;
            let id = |p: &Path| p.metadata().ok().map(|m| (m.dev(), m.ino()));
            id(a).is_some() && id(a) == id(b)
        }
        #[cfg(not(unix))]
        _ => false,
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout => std::io::stdout().write(bytes),
            Self::Stream(stream) => stream.write(bytes),
            Self::File(staged) => staged.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout => std::io::stdout().flush(),
            Self::Stream(stream) => stream.flush(),
            Self::File(staged) => staged.flush(),
        }
    }
}

/// A bar for `size` bytes, or a count where the size is not known; hidden unless it is wanted.
pub(super) fn progress(when: ProgressArg, size: Option<u64>) -> ProgressBar {
    let shown = match when {
        ProgressArg::Auto => std::io::stderr().is_terminal(),
        ProgressArg::Always => true,
        ProgressArg::Never => false,
    };
    if !shown {
        return ProgressBar::hidden();
    }
    let (bar, form) = match size {
        Some(size) => (ProgressBar::new(size), "{bar:30} {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}  {eta}"),
        None => (ProgressBar::no_length(), "{spinner} {bytes}  {bytes_per_sec}"),
    };
    if when == ProgressArg::Always {
        bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
    }
    bar.with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names() {
        for (input, want) in [
            ("a/clients.csv", "a/clients.masked.csv"),
            ("clients.csv.gz", "clients.masked.csv.gz"),
            ("clients", "clients.masked"),
            (".hidden", ".hidden.masked"),
            ("a.b.parquet", "a.b.masked.parquet"),
        ] {
            assert_eq!(default_output(Path::new(input)), Path::new(want));
        }
    }
}
