//! What runs left behind that ended before their loan did: given back from their journals.

use std::time::Duration;

use super::journal::Left;
use super::lease::{Lease, Return};
use super::target::Target;
use crate::error::Result;

/// Gives back what a run left, here and there, and closes its journal if everything is gone.
///
/// # Errors
/// Those of the disk. What is still live on the other side is in the result.
pub async fn sweep(target: &dyn Target, left: Left, patience: Duration) -> Result<Return> {
    let returned = Lease::resume(target, &left, patience).give_back().await;
    if returned.is_complete() {
        clear(left)?;
    }
    Ok(returned)
}

/// Removes what a run left on this machine, and its journal.
///
/// # Errors
/// Those of the disk; the journal stays then.
pub fn clear(left: Left) -> Result<()> {
    // A journal is a file that anybody of this user can write: only folders that bear the run's name are taken for its own.
    let name = format!("hmask-sandbox-{}", left.task);
    for folder in left.folders.iter().filter(|f| f.file_name().is_some_and(|n| n == name.as_str())) {
        match std::fs::remove_dir_all(folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(crate::Error::io(format!("cannot remove {}", folder.display()), e));
            }
            _ => {}
        }
    }
    left.close()
}
