//! `/v1/responses`: a question that is SQL, answered over the tables of a container.

use std::fs;
use std::path::PathBuf;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::answer::{ApiError, deleted};
use super::containers::{MAX_MINUTES, copies, file_ids, known_keys, memory_limit, network_policy, new_container, object};
use super::store::{Container, ContainerFile, Stored, container_file_id, now, random_hex};
use super::{Shared, lock};
use crate::analyse::{Answer, QueryError, Table, query};
use crate::table::Format;

/// What a request may have (the service's own list).
const KNOWN: [&str; 28] = [
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
    "user",
];
const INCLUDES: [&str; 8] = [
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];
/// The name by which a query can call the newest table, whatever its file is called.
const TABLE: &str = "data";
/// The file that holds a whole result.
const RESULT: &str = "result.csv";
/// The code of an error that the question is to blame for.
const BAD_QUESTION: &str = "invalid_prompt";

/// What is asked, checked.
struct Asked {
    body: Map<String, Value>,
    question: String,
    outputs: bool,
    store: bool,
    container: Wanted,
}

/// The container to ask in.
enum Wanted {
    /// None: these uploads stand in the question.
    Message(Vec<String>),
    Id(String),
    /// A new one, or that of the response before.
    Auto {
        memory_limit: String,
        network_policy: Value,
        file_ids: Vec<String>,
    },
}

pub(super) async fn create(State(store): State<Shared>, body: Result<Json<Value>, JsonRejection>) -> Result<Response, ApiError> {
    let asked = Asked::read(object(body)?)?;
    let (container, tables) = place(&store, &asked)?;
    let container = container.as_deref();
    let question = asked.question.clone();
    let answer = tokio::task::spawn_blocking(move || query(&tables, &question)).await;
    let answer = answer.unwrap_or_else(|_| Err(QueryError("the query cannot be carried out".into())));
    let response = asked.respond(&store, container, answer)?;
    if asked.store {
        let mut store = lock(&store);
        let number = store.number();
        let id = response["id"].as_str().unwrap_or_default().to_owned();
        let files = asked.container.files().to_vec();
        store.responses.insert(number, Stored { id, container: container.map(str::to_owned), files, body: response.clone() });
    }
    if asked.body.get("stream") == Some(&json!(true)) {
        return Ok(super::stream::events(&response));
    }
    Ok(Json(response).into_response())
}

pub(super) async fn retrieve(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let store = lock(&store);
    store.responses.values().find(|r| r.id == id).map(|r| Json(r.body.clone())).ok_or_else(|| not_found(&id))
}

pub(super) async fn delete(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let mut store = lock(&store);
    let before = store.responses.len();
    store.responses.retain(|_, r| r.id != id);
    if store.responses.len() == before { Err(not_found(&id)) } else { Ok(deleted(&id, "response")) }
}

pub(super) async fn cancel(State(store): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let found = lock(&store).responses.values().any(|r| r.id == id);
    Err(if found { ApiError::bad("Cannot cancel a synchronous response.") } else { not_found(&id) })
}

fn not_found(id: &str) -> ApiError {
    ApiError::not_found(format!("Response with id '{id}' not found."))
}

impl Asked {
    fn read(body: Map<String, Value>) -> Result<Self, ApiError> {
        known_keys(&body, "", &KNOWN)?;
        if !body.get("model").is_some_and(Value::is_string) {
            return Err(ApiError::missing("model"));
        }
        let flag = |name: &str, default| match body.get(name).unwrap_or(&Value::Null) {
            Value::Null => Ok(default),
            Value::Bool(b) => Ok(*b),
            _ => Err(ApiError::invalid(name, "a boolean")),
        };
        if flag("background", false)? {
            return Err(ApiError::bad("Background responses are not supported here.").param("background"));
        }
        flag("stream", false)?;
        let store = flag("store", true)?;
        let question = question(body.get("input").ok_or_else(|| ApiError::missing("input"))?)?;
        let outputs = includes(body.get("include"))?;
        let files = input_files(body.get("input").unwrap_or(&Value::Null));
        let follows = body.get("previous_response_id").is_some_and(Value::is_string);
        let container = match body.get("tools") {
            None if !files.is_empty() || follows => Wanted::Message(files),
            tools => tool(tools)?,
        };
        Ok(Self { body, question, outputs, store, container })
    }

    /// The response to the question; its result becomes a file of the container.
    fn respond(&self, store: &Shared, container: Option<&str>, answer: Result<Answer, QueryError>) -> Result<Value, ApiError> {
        let created_at = now();
        let mut store = lock(store);
        let Some(container) = container else {
            let (output, error) = match answer {
                Ok(answer) => (json!([said(&answer.text, &json!([]))]), Value::Null),
                Err(QueryError(why)) => (json!([]), json!({"code": BAD_QUESTION, "message": why})),
            };
            return Ok(self.envelope(created_at, &output, &error));
        };
        let disk = store.new_path();
        let container = store.container(container)?;
        let call = |status: &str, logs: &str| {
            let outputs = if self.outputs { json!([{"type": "logs", "logs": logs}]) } else { Value::Null };
            json!({
                "id": format!("ci_{}", random_hex(16)), "type": "code_interpreter_call", "status": status,
                "container_id": container.id, "code": self.question, "outputs": outputs,
            })
        };
        let (output, error) = match answer {
            Ok(answer) => {
                let call = call("completed", &answer.text);
                fs::write(&disk, &answer.csv).map_err(|_| ApiError::new(500, "The result cannot be stored."))?;
                let file = result_file(container, &disk, answer.csv.len() as u64);
                let message = message(&answer, &file, &container.id);
                container.files.push(file);
                (json!([call, message]), Value::Null)
            }
            Err(QueryError(why)) => (json!([call("failed", &why)]), json!({"code": BAD_QUESTION, "message": why})),
        };
        Ok(self.envelope(created_at, &output, &error))
    }

    fn envelope(&self, created_at: u64, output: &Value, error: &Value) -> Value {
        let given = |name: &str, default: Value| self.body.get(name).filter(|v| !v.is_null()).cloned().unwrap_or(default);
        // There is no model, so there are no tokens; words are what comes nearest.
        let words = |text: &str| text.split_whitespace().count();
        let (input, out) = (words(&self.question), words(&output.to_string()));
        json!({
            "id": format!("resp_{}", random_hex(24)), "object": "response", "created_at": created_at,
            "status": if error.is_null() { "completed" } else { "failed" }, "completed_at": now(), "background": false,
            "error": error, "incomplete_details": null, "instructions": given("instructions", Value::Null),
            "max_output_tokens": given("max_output_tokens", Value::Null), "max_tool_calls": given("max_tool_calls", Value::Null),
            "model": given("model", Value::Null), "output": output, "parallel_tool_calls": given("parallel_tool_calls", json!(true)),
            "previous_response_id": given("previous_response_id", Value::Null), "reasoning": {"effort": null, "summary": null},
            "service_tier": "default", "store": self.store, "temperature": given("temperature", json!(1.0)),
            "text": {"format": {"type": "text"}}, "tool_choice": given("tool_choice", json!("auto")), "tools": given("tools", json!([])),
            "top_p": given("top_p", json!(1.0)), "truncation": "disabled",
            "usage": {
                "input_tokens": input, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": out, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + out,
            },
            "metadata": given("metadata", json!({})),
        })
    }
}

/// A model: whatever it is called, polars answers.
pub(super) async fn model(Path(model): Path<String>) -> Json<Value> {
    Json(json!({"id": model, "object": "model", "created": 0, "owned_by": "hmask"}))
}

/// The last text that the user says.
fn question(input: &Value) -> Result<String, ApiError> {
    if let Value::String(text) = input {
        return Ok(text.clone());
    }
    let texts = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        _ => String::new(),
    };
    let messages = input.as_array().ok_or_else(|| ApiError::invalid("input", "a string or a list of items"))?;
    let last = messages.iter().rev().find(|m| m["role"] == "user").map(texts).filter(|t| !t.is_empty());
    last.ok_or_else(|| ApiError::invalid("input", "a message of the user with a text"))
}

/// Whether the outputs of calls are wanted.
fn includes(include: Option<&Value>) -> Result<bool, ApiError> {
    let Some(include) = include.filter(|v| !v.is_null()) else { return Ok(false) };
    let all = include.as_array().ok_or_else(|| ApiError::invalid("include", "a list"))?;
    match all.iter().position(|v| !v.as_str().is_some_and(|v| INCLUDES.contains(&v))) {
        Some(i) => Err(ApiError::invalid(format!("include[{i}]"), "one of the outputs that can be included")),
        None => Ok(all.iter().any(|v| v == "code_interpreter_call.outputs")),
    }
}

/// The container of the one tool that there is here.
fn tool(tools: Option<&Value>) -> Result<Wanted, ApiError> {
    let tool = tools.and_then(|t| t.get(0)).and_then(Value::as_object);
    let tool = tool.ok_or_else(|| ApiError::bad("Questions are answered with the tool code_interpreter.").param("tools"))?;
    if tool.get("type").and_then(Value::as_str) != Some("code_interpreter") {
        return Err(ApiError::invalid("tools[0].type", "'code_interpreter'"));
    }
    known_keys(tool, "tools[0].", &["type", "container", "allowed_callers"])?;
    match tool.get("container") {
        Some(Value::String(id)) => Ok(Wanted::Id(id.clone())),
        Some(Value::Object(auto)) => {
            let path = "tools[0].container.";
            known_keys(auto, path, &["type", "file_ids", "memory_limit", "network_policy"])?;
            if auto.get("type").and_then(Value::as_str) != Some("auto") {
                return Err(ApiError::invalid("tools[0].container.type", "'auto'"));
            }
            Ok(Wanted::Auto {
                memory_limit: memory_limit(auto, path)?,
                network_policy: network_policy(auto, path)?,
                file_ids: file_ids(auto, path)?,
            })
        }
        Some(_) => Err(ApiError::invalid("tools[0].container", "an id or an object")),
        None => Err(ApiError::missing("tools[0].container")),
    }
}

/// The container to ask in, with the uploads in it, and its tables.
fn place(store: &Shared, asked: &Asked) -> Result<(Option<String>, Vec<Table>), ApiError> {
    let mut store = lock(store);
    let previous = asked.body.get("previous_response_id").and_then(Value::as_str);
    let before = match previous {
        Some(id) => {
            let found = store.responses.values().find(|r| r.id == id).map(|r| (r.container.clone(), r.files.clone()));
            Some(found.ok_or_else(|| {
                ApiError::bad(format!("Previous response with id '{id}' not found."))
                    .param("previous_response_id")
                    .code("previous_response_not_found")
            })?)
        }
        None => None,
    };
    let (before, files) = before.unwrap_or_default();
    let id = match &asked.container {
        Wanted::Message(ids) => {
            let ids = if ids.is_empty() { &files } else { ids };
            let mut sent = Vec::new();
            for id in ids {
                let file = store.file(id)?;
                sent.push((file.name.clone(), file.path.clone()));
            }
            return Ok((None, tables(&sent)));
        }
        Wanted::Id(id) => id.clone(),
        Wanted::Auto { memory_limit, network_policy, file_ids } => {
            let mut files = copies(&mut store, file_ids)?;
            let before = before.filter(|id| store.container(id).is_ok());
            if let Some(id) = before {
                store.container(&id)?.files.append(&mut files);
                id
            } else {
                let container = new_container("auto".into(), MAX_MINUTES, memory_limit.clone(), network_policy.clone(), files);
                let (id, number) = (container.id.clone(), store.number());
                store.containers.insert(number, container);
                id
            }
        }
    };
    let container = store.container(&id)?;
    // Behind the hash that the service puts before a name.
    let plain = |name: &str| name.split_once('-').map_or(name, |(_, name)| name).to_owned();
    let sent = container.files.iter().filter(|f| f.source == "user").map(|f| (plain(f.name()), f.disk.clone()));
    let tables = tables(&sent.collect::<Vec<_>>());
    Ok((Some(id), tables))
}

/// What was sent: by its stem and its number, and the newest of all as `data`.
fn tables(sent: &[(String, PathBuf)]) -> Vec<Table> {
    let newest = sent.len().saturating_sub(1);
    let table = |(i, (name, path)): (usize, &(String, PathBuf))| {
        let (stem, ending) = name.split_once('.').unwrap_or((name, "csv"));
        let numbered = format!("{TABLE}_{}", i + 1);
        let names = if i == newest { vec![TABLE.into(), numbered, stem.into()] } else { vec![numbered, stem.into()] };
        let format = match ending {
            "json" | "ndjson" | "jsonl" => Format::Ndjson,
            "parquet" => Format::Parquet,
            "arrow" | "feather" => Format::Ipc,
            _ => Format::Csv,
        };
        Table { names, path: path.clone(), format }
    };
    sent.iter().enumerate().map(table).collect()
}

/// Ids of the uploads that stand in the question.
fn input_files(input: &Value) -> Vec<String> {
    let parts = input.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array()).flatten();
    parts.filter(|part| part["type"] == "input_file").filter_map(|part| part["file_id"].as_str().map(str::to_owned)).collect()
}

impl Wanted {
    /// The uploads that stand in the question.
    fn files(&self) -> &[String] {
        match self {
            Self::Message(files) => files,
            _ => &[],
        }
    }
}

/// A file for a result, under a name that the container does not have yet.
fn result_file(container: &Container, disk: &std::path::Path, bytes: u64) -> ContainerFile {
    let path = |n: usize| if n == 1 { format!("/mnt/data/{RESULT}") } else { format!("/mnt/data/result-{n}.csv") };
    let fresh = (1..=container.files.len() + 1).map(path).find(|p| container.files.iter().all(|f| f.path != *p));
    ContainerFile {
        id: container_file_id(),
        created_at: now(),
        path: fresh.unwrap_or_else(|| path(1)),
        source: "assistant",
        bytes,
        disk: disk.to_owned(),
    }
}

fn message(answer: &Answer, file: &ContainerFile, container: &str) -> Value {
    let rows = if answer.rows == 1 { "1 row".into() } else { format!("{} rows", answer.rows) };
    let before = format!("{}\n", answer.text);
    let text = format!("{before}{} ({rows})", file.name());
    // Indices count characters.
    let start = before.chars().count();
    let citation = json!({
        "type": "container_file_citation", "container_id": container, "file_id": file.id, "filename": file.name(),
        "start_index": start, "end_index": start + file.name().chars().count(),
    });
    said(&text, &json!([citation]))
}

/// A message of the assistant.
fn said(text: &str, annotations: &Value) -> Value {
    json!({
        "id": format!("msg_{}", random_hex(16)), "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "logprobs": [], "annotations": annotations}],
    })
}
