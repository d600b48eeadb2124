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

/// The name of a run's upload: neutral, and how its orphan is found.
pub fn file_name(task: &str) -> String {
    format!("hmask-{task}.csv")
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
