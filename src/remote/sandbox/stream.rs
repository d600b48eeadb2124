//! A finished response as the events that a model would have sent on its way there.

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Letters of a delta.
const DELTA: usize = 24;

/// The response as `text/event-stream`, from `response.created` to `response.completed` or `response.failed`.
pub(super) fn events(response: &Value) -> Response {
    let mut stream = Stream::default();
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    (begun["error"], begun["completed_at"], begun["usage"]) = (Value::Null, Value::Null, Value::Null);
    stream.send(json!({"type": "response.created", "response": begun}));
    stream.send(json!({"type": "response.in_progress", "response": begun}));
    for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        match item["type"].as_str() {
            Some("code_interpreter_call") => stream.call(index, item),
            _ => stream.message(index, item),
        }
    }
    let status = response["status"].as_str().unwrap_or("completed");
    stream.send(json!({"type": format!("response.{status}"), "response": response}));
    ([("content-type", "text/event-stream; charset=utf-8")], stream.text).into_response()
}

#[derive(Default)]
struct Stream {
    text: String,
    number: u64,
}

impl Stream {
    fn send(&mut self, mut event: Value) {
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        self.text += &format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    }

    fn call(&mut self, index: usize, item: &Value) {
        let id = &item["id"];
        let mut begun = item.clone();
        (begun["status"], begun["code"], begun["outputs"]) = (json!("in_progress"), json!(""), Value::Null);
        self.send(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        let step =
            |name: &str| json!({"type": format!("response.code_interpreter_call{name}"), "output_index": index, "item_id": id});
        self.send(step(".in_progress"));
        let code = item["code"].as_str().unwrap_or_default();
        for delta in pieces(code) {
            let mut event = step("_code.delta");
            event["delta"] = json!(delta);
            self.send(event);
        }
        let mut done = step("_code.done");
        done["code"] = json!(code);
        self.send(done);
        self.send(step(".interpreting"));
        self.send(step(".completed"));
        self.send(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }

    fn message(&mut self, index: usize, item: &Value) {
        let id = &item["id"];
        let part = &item["content"][0];
        let text = part["text"].as_str().unwrap_or_default();
        let mut begun = item.clone();
        (begun["status"], begun["content"]) = (json!("in_progress"), json!([]));
        self.send(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        let at = |kind: &str, more: Value| {
            let mut event = json!({"type": format!("response.{kind}"), "item_id": id, "output_index": index, "content_index": 0});
            more.as_object().into_iter().flatten().for_each(|(k, v)| event[k] = v.clone());
            event
        };
        let empty = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
        self.send(at("content_part.added", json!({"part": empty})));
        for delta in pieces(text) {
            self.send(at("output_text.delta", json!({"delta": delta, "logprobs": []})));
        }
        for (i, annotation) in part["annotations"].as_array().into_iter().flatten().enumerate() {
            self.send(at("output_text.annotation.added", json!({"annotation_index": i, "annotation": annotation})));
        }
        self.send(at("output_text.done", json!({"text": text, "logprobs": []})));
        self.send(at("content_part.done", json!({"part": part})));
        self.send(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
}

/// A text in pieces of whole letters.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(DELTA).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}
