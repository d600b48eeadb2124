//! What a run makes on the other side, and the names that it gives.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something of ours on the other side. Ids are opaque.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thing {
    /// An upload.
    File(String),
    /// An upload in parts that has not become a file.
    Parts(String),
    /// A container and all that is in it.
    Container(String),
    /// A file in a container that is the user's: the container, the file.
    ContainerFile(String, String),
    /// A stored response.
    Response(String),
    /// An object of a store: its key, and its version where the store keeps several.
    Object(String, Option<String>),
}

/// A container of the user that a run puts something into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Within {
    /// Its id.
    pub container: String,
    /// Ids of the files that were in it before: not ours, whatever they are called.
    pub before: Vec<String>,
}

/// Endings that an upload may have.
const ENDINGS: [&str; 5] = ["csv", "json", "ndjson", "parquet", "arrow"];

/// The name of a run's upload of this number, from 0: neutral, and how its orphan is found.
pub fn file_name(task: &str, number: usize, ending: &str) -> String {
    let task = container_name(task);
    if number == 0 { format!("{task}.{ending}") } else { format!("{task}-{}.{ending}", number + 1) }
}

/// Whether an upload of this name is one of a run. Some servers keep only letters, digits and dots of a name.
pub fn is_file_of(task: &str, name: &str) -> bool {
    let plain =
        |name: &str| name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect::<String>();
    let name = plain(name);
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let rest = stem.strip_prefix(&plain(&container_name(task))).filter(|_| ENDINGS.contains(&ending));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 1)))
}

/// Whether a path within a container is that of a file of a run: something of the service's own may stand before the name.
pub(super) fn is_path_of(task: &str, path: &str) -> bool {
    let plain = |name: &str| name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    plain(path).contains(&plain(&container_name(task)))
}

/// The name of a run's container.
pub fn container_name(task: &str) -> String {
    format!("hmask-{task}")
}

impl Thing {
    /// Whether its ids can be some: each a path of its own, and not that of a list.
    pub fn is_named(&self) -> bool {
        let is_one = |id: &String| !id.is_empty() && !id.starts_with('.');
        match self {
            Self::File(id) | Self::Parts(id) | Self::Container(id) | Self::Response(id) | Self::Object(id, _) => is_one(id),
            Self::ContainerFile(container, id) => is_one(container) && is_one(id),
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(id) => write!(f, "upload {id}"),
            Self::Parts(id) => write!(f, "upload in parts {id}"),
            Self::Container(id) => write!(f, "container {id}"),
            Self::ContainerFile(container, id) => write!(f, "file {id} of container {container}"),
            Self::Response(id) => write!(f, "response {id}"),
            Self::Object(key, None) => write!(f, "object {key}"),
            Self::Object(key, Some(version)) => write!(f, "object {key}, version {version}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_are_known_by_their_names_though_a_server_changed_them() {
        for (name, ours) in [
            ("hmask-0193-b1e2.csv", true),
            ("hmask_0193_b1e2.csv", true),
            ("hmask-0193-b1e2.parquet", true),
            ("hmask-0193-b1e2-2.csv", true),
            ("hmask_0193_b1e2_17.json", true),
            ("hmask-0193-b1e2-1.csv", false),
            ("hmask-0193-b1e23.csv", false),
            ("hmask-0193-b1e2-x.csv", false),
            ("hmask-0193-b1e2.exe", false),
            ("hmask-0193-b1e3.csv", false),
        ] {
            assert_eq!(is_file_of("0193-b1e2", name), ours, "{name}");
        }
        assert!((0..20).all(|n| ENDINGS.iter().all(|e| is_file_of("t", &file_name("t", n, e)))));
    }
}
