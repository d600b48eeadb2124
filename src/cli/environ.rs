//! Secrets out of the environment: taken once, then overwritten where the system keeps it, so that neither `/proc/PID/environ` nor a memory
//! image has them.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use zeroize::Zeroizing;

/// What was taken, by the names of the variables.
static TAKEN: OnceLock<Mutex<HashMap<String, Zeroizing<Vec<u8>>>>> = OnceLock::new();

/// Takes the values of these variables and overwrites them. To be called before the process closes itself to others: by then its own
/// memory cannot be opened any more.
pub(super) fn take(names: &[&str]) {
    for name in names {
        if let Some(value) = std::env::var_os(name) {
            let taken = TAKEN.get_or_init(Mutex::default);
            let value = Zeroizing::new(value.into_encoded_bytes());
            taken.lock().unwrap_or_else(PoisonError::into_inner).insert((*name).to_owned(), value);
        }
    }
    block::open();
    names.iter().for_each(|name| block::overwrite(name));
}

/// The value of a variable, taken before or now; then it is overwritten.
pub(super) fn secret(name: &str) -> Option<Zeroizing<Vec<u8>>> {
    let taken = TAKEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = taken.get(name) {
        return Some(value.clone());
    }
    drop(taken);
    let value = std::env::var_os(name).map(|value| Zeroizing::new(value.into_encoded_bytes()));
    block::overwrite(name);
    value
}

/// The same as text; none if it is no UTF-8.
pub(super) fn secret_text(name: &str) -> Option<Zeroizing<String>> {
    secret(name).and_then(|bytes| std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.to_owned())))
}

/// All variables whose names begin so, with what was taken of them.
#[cfg(feature = "objects")]
pub(super) fn named(prefixes: &[&str]) -> Vec<(String, String)> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let wanted = names.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let value = |name: &String| {
        let secret = TAKEN.get().and_then(|taken| taken.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned());
        secret.map_or_else(|| std::env::var(name).ok(), |bytes| String::from_utf8(bytes.to_vec()).ok())
    };
    wanted.filter_map(|name| value(&name).map(|value| (name, value))).collect()
}

/// Forgets what was taken: it is not needed any more.
pub(super) fn forget(name: &str) {
    if let Some(taken) = TAKEN.get() {
        taken.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// The block that the kernel has made of the environment, written through `/proc/self/mem`: the same bytes that `getenv` reads.
#[cfg(target_os = "linux")]
mod block {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    use zeroize::Zeroizing;

    /// The process's own memory, and where the block lies in it.
    static MEMORY: OnceLock<Option<(File, u64, usize)>> = OnceLock::new();

    pub(super) fn open() {
        MEMORY.get_or_init(|| {
            let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
            // Fields 50 and 51 (proc_pid_stat(5)), counted from the state, which is the third.
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
            let (start, end): (u64, u64) = (fields.get(47)?.parse().ok()?, fields.get(48)?.parse().ok()?);
            let memory = File::options().read(true).write(true).open("/proc/self/mem").ok()?;
            Some((memory, start, usize::try_from(end.checked_sub(start)?).ok()?))
        });
    }

    pub(super) fn overwrite(name: &str) {
        let Some(Some((memory, start, length))) = MEMORY.get() else { return };
        let mut bytes = Zeroizing::new(vec![0; *length]);
        if memory.read_exact_at(&mut bytes, *start).is_err() {
            return;
        }
        let mut at = 0;
        for entry in bytes.split(|b| *b == 0) {
            let value = entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            if let Some(value) = value.filter(|v| !v.is_empty()) {
                let place = *start + (at + name.len() + 1) as u64;
                // A failure leaves the value where it was, as on other systems.
                let _ = memory.write_all_at(&vec![0; value.len()], place);
            }
            at += entry.len() + 1;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod block {
    pub(super) fn open() {}

    pub(super) fn overwrite(_: &str) {}
}
