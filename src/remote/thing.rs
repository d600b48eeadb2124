//! What a run makes on the other side: its names, its paths, and how an answer says that it is gone.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::client::Answer;
use super::openai::{container_path, file_path, response_path};

/// Something of ours on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thing {
    /// An upload.
    File(String),
    /// A container and all that is in it.
    Container(String),
    /// A stored response.
    Response(String),
}

/// The name of a run's upload of this number, from 0: neutral, and how its orphan is found.
pub fn file_name(task: &str, number: usize) -> String {
    if number == 0 { format!("hmask-{task}.csv") } else { format!("hmask-{task}-{}.csv", number + 1) }
}

/// Whether an upload of this name is one of a run. Some servers keep only letters, digits and dots of a name.
pub fn is_file_of(task: &str, name: &str) -> bool {
    let plain =
        |name: &str| name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect::<String>();
    let name = plain(name);
    let rest = name.strip_prefix(&plain(&container_name(task))).and_then(|rest| rest.strip_suffix(".csv"));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 1)))
}

/// The name of a run's container.
pub fn container_name(task: &str) -> String {
    format!("hmask-{task}")
}

impl Thing {
    /// Where it stands, below the base URL.
    pub fn path(&self) -> String {
        match self {
            Self::File(id) => file_path(id),
            Self::Container(id) => container_path(id),
            Self::Response(id) => response_path(id),
        }
    }

    /// Whether its id can be one: a path of its own, and not that of a list.
    pub fn is_named(&self) -> bool {
        let (Self::File(id) | Self::Container(id) | Self::Response(id)) = self;
        !id.is_empty() && !id.starts_with('.')
    }

    /// Whether an answer says that the thing does not exist: 404; for a container also that it is expired or deleted.
    pub(super) fn is_gone(&self, answer: &Answer) -> bool {
        if answer.status == 404 {
            return true;
        }
        let Self::Container(_) = self else { return false };
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let expired = body["error"]["message"].as_str().is_some_and(|m| m.contains("Container is expired"));
        let over = matches!(body["status"].as_str(), Some("expired" | "deleted"));
        answer.status == 400 && expired || answer.is_success() && over
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(id) => write!(f, "upload {id}"),
            Self::Container(id) => write!(f, "container {id}"),
            Self::Response(id) => write!(f, "response {id}"),
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
            ("hmask-0193-b1e2-2.csv", true),
            ("hmask_0193_b1e2_17.csv", true),
            ("hmask-0193-b1e2-1.csv", false),
            ("hmask-0193-b1e23.csv", false),
            ("hmask-0193-b1e2-x.csv", false),
            ("hmask-0193-b1e3.csv", false),
        ] {
            assert_eq!(is_file_of("0193-b1e2", name), ours, "{name}");
        }
        assert!((0..20).all(|n| is_file_of("t", &file_name("t", n))));
    }
}
