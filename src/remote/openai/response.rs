//! A response taken apart: its text, its containers, its files; unknown parts are passed over.

use serde_json::Value;

/// How a response ended. HTTP 200 says nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// With a message.
    Completed,
    /// It says that it is completed, but there is no text.
    Empty,
    /// With the code or reason that the service gives.
    Failed(String),
}

/// What matters of a response.
#[derive(Clone, Debug)]
pub struct Response {
    /// How it ended.
    pub status: Status,
    /// All texts of its messages, the commentary too, a line feed between two.
    pub text: String,
    /// The service's words on a failure. They can hold cells of the table.
    pub message: Option<String>,
    /// All containers that it names, once each.
    pub containers: Vec<String>,
    /// Its id.
    pub id: Option<String>,
    /// Whether the service says that it was stored.
    pub stored: Option<bool>,
    /// Cited files: container and file id.
    pub citations: Vec<(String, String)>,
    /// The code that ran, in order.
    pub code: Vec<String>,
}

impl Response {
    /// What an error came to that the service says in the middle of an answer.
    pub(super) fn failed(code: &str, message: Option<&str>) -> Self {
        let response = Self::new(&serde_json::json!({"status": "failed", "error": {"code": code, "message": message}}));
        // It may have been stored all the same.
        Self { stored: None, ..response }
    }

    /// Takes a response apart.
    pub fn new(response: &Value) -> Self {
        let (mut texts, mut containers, mut citations) = (Vec::new(), Vec::new(), Vec::new());
        let code = |item: &Value| item["code"].as_str().filter(|c| !c.is_empty()).map(str::to_owned);
        let code = list(&response["output"]).iter().filter_map(code).collect();
        let mut note = |id: &Value| {
            let id = id.as_str().filter(|id| !id.is_empty())?.to_owned();
            if !containers.contains(&id) {
                containers.push(id.clone());
            }
            Some(id)
        };
        for item in list(&response["output"]) {
            note(&item["container_id"]);
            for part in list(&item["content"]) {
                let text = part["text"].as_str().or(part["refusal"].as_str());
                texts.extend(text.filter(|t| !t.is_empty()).map(str::to_owned));
                for annotation in list(&part["annotations"]) {
                    let container = note(&annotation["container_id"]);
                    citations.extend(container.zip(annotation["file_id"].as_str().map(str::to_owned)));
                }
            }
        }
        let text = texts.join("\n");
        let status = match response["status"].as_str() {
            // A careless gateway may leave it out.
            Some("completed") | None if response["error"].is_null() => {
                if text.is_empty() {
                    Status::Empty
                } else {
                    Status::Completed
                }
            }
            status => {
                let reason = response["error"]["code"].as_str().or(response["incomplete_details"]["reason"].as_str());
                Status::Failed(plain(reason.or(status).unwrap_or("unknown")))
            }
        };
        Self {
            id: response["id"].as_str().map(str::to_owned),
            stored: response["store"].as_bool(),
            status,
            text,
            message: response["error"]["message"].as_str().map(str::to_owned),
            containers,
            citations,
            code,
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A code as one prints it: the set is open, but it is a word.
fn plain(code: &str) -> String {
    code.chars().filter(|c| c.is_ascii_alphanumeric() || "_-. ".contains(*c)).take(60).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_containers_and_citations() {
        let r = Response::new(&json!({
        "status": "completed", "error": null,
        "output": [
            {"type": "reasoning"},
            {"type": "code_interpreter_call", "container_id": "cntr_1", "outputs": null},
            {"type": "code_interpreter_call", "container_id": "cntr_1"},
            {"type": "message", "content": [
                {"type": "output_text", "text": "one", "annotations": [
                    {"type": "container_file_citation", "container_id": "cntr_2", "file_id": "cfile_1", "start_index": 0},
                    {"type": "something_new"}]},
                {"type": "something_new"},
                {"type": "output_text", "text": "two"}]},
        ]}));
        assert_eq!((r.status, r.text.as_str()), (Status::Completed, "one\ntwo"));
        assert_eq!(r.containers, ["cntr_1", "cntr_2"]);
        assert_eq!(r.citations, [("cntr_2".to_owned(), "cfile_1".to_owned())]);
    }

    #[test]
    fn ends_that_are_no_success() {
        let status = |v: Value| Response::new(&v).status;
        assert_eq!(status(json!({"status": "completed", "output": []})), Status::Empty);
        assert_eq!(status(json!({})), Status::Empty);
        assert_eq!(
            status(json!({"status": "failed", "error": {"code": "server_error", "message": "x"}})),
            Status::Failed("server_error".into())
        );
        assert_eq!(
            status(json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})),
            Status::Failed("max_output_tokens".into())
        );
        assert_eq!(status(json!({"status": "in_progress"})), Status::Failed("in_progress".into()));
        let failed = Response::new(
            &json!({"status": "failed", "error": {}, "output": [{"type": "code_interpreter_call", "container_id": "c"}]}),
        );
        assert_eq!(failed.containers, ["c"]);
    }
}
