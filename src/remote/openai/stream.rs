//! Server-sent events (WHATWG HTML, "Server-sent events"), and what those of a response say.
//!
//! Events are told apart by the `type` in their data: some gateways send no `event:` lines. A stream that ends without its last event is a
//! failure, whatever the connection says.

use serde_json::Value;

use super::response::Response;
use crate::remote::target::CallError;

/// Bytes that an event may have: a whole response with its outputs is one.
const MAX_EVENT: usize = 64 << 20;

/// What a response tells on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'e> {
    /// It runs in this container.
    Container(&'e str),
    /// It has this id, and the service says whether it is stored.
    Begun(&'e str, Option<bool>),
    /// The interpreter runs code.
    Interpreting,
    /// A piece of the answer.
    Text(&'e str),
}

/// A response while its events come in.
#[derive(Default)]
pub(super) struct Incoming {
    /// Bytes of lines that have not ended.
    line: Vec<u8>,
    /// The data of the event at hand.
    data: String,
    /// Whether the byte before was a CR.
    after_cr: bool,
    begun: bool,
    /// All bytes, as long as they are no stream but a plain answer.
    plain: Option<Vec<u8>>,
    end: Option<Box<Response>>,
}

impl Incoming {
    /// Takes the next bytes; `tell` is told of what they say.
    ///
    /// # Errors
    /// An event that is longer than any.
    pub(super) fn push(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Progress<'_>)) -> Result<(), String> {
        let mut bytes = bytes;
        if !self.begun {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            let Some(first) = bytes.iter().find(|b| !b.is_ascii_whitespace()) else { return Ok(()) };
            self.begun = true;
            // A server that does not stream answers with the whole object, or an error with its body.
            self.plain = matches!(first, b'{' | b'<').then(Vec::new);
        }
        if let Some(plain) = &mut self.plain {
            plain.extend_from_slice(bytes);
            return if plain.len() > MAX_EVENT { Err("the answer is too long".into()) } else { Ok(()) };
        }
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => {
                    // The LF of a CR LF ends no line of its own.
                    if !(*byte == b'\n' && std::mem::take(&mut self.after_cr)) {
                        let line = std::mem::take(&mut self.line);
                        self.line(&line, tell);
                    }
                    self.after_cr = *byte == b'\r';
                }
                byte => {
                    self.after_cr = false;
                    self.line.push(*byte);
                }
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err("an event is too long".into());
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], tell: &mut dyn FnMut(Progress<'_>)) {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if let Ok(event) = serde_json::from_str::<Value>(&data) {
                self.event(&event, tell);
            }
            return;
        }
        let line = String::from_utf8_lossy(line);
        if let Some(data) = line.trim_start_matches('\u{feff}').strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data);
        }
    }

    fn event(&mut self, event: &Value, tell: &mut dyn FnMut(Progress<'_>)) {
        let kind = event["type"].as_str().unwrap_or_default();
        for container in [&event["item"]["container_id"], &event["annotation"]["container_id"], &event["container_id"]] {
            if let Some(id) = container.as_str().filter(|id| !id.is_empty()) {
                tell(Progress::Container(id));
            }
        }
        if let Some(id) = event["response"]["id"].as_str() {
            tell(Progress::Begun(id, event["response"]["store"].as_bool()));
        }
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                event["delta"].as_str().into_iter().for_each(|text| tell(Progress::Text(text)));
            }
            "response.code_interpreter_call.interpreting" => tell(Progress::Interpreting),
            "response.completed" | "response.failed" | "response.incomplete" | "response.cancelled" => {
                self.end = Some(Box::new(Response::new(&event["response"])));
            }
            "error" => {
                let error = if event["error"].is_object() { &event["error"] } else { event };
                let code = error["code"].as_str().or(error["type"].as_str()).unwrap_or("error");
                self.end = Some(Box::new(Response::failed(code, error["message"].as_str())));
            }
            _ => {}
        }
    }

    /// The body of a plain answer, such as an error has.
    pub(super) fn body(&mut self) -> Vec<u8> {
        self.plain.take().unwrap_or_default()
    }

    /// What the whole stream came to.
    ///
    /// # Errors
    /// A stream that was cut. An error that the service says is a response that failed.
    pub(super) fn finish(mut self) -> Result<Response, CallError> {
        if let Some(plain) = self.plain.take() {
            let value: Value = serde_json::from_slice(&plain)
                .map_err(|e| CallError::Unknown(format!("an answer that is not understood, at column {}", e.column())))?;
            return Ok(Response::new(&value));
        }
        // An event whose empty line was lost is none; but some servers end without it.
        self.line(&[], &mut |_| {});
        self.end.map(|response| *response).ok_or_else(|| CallError::Unknown("the answer was cut before its end".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn run(text: &str, step: usize) -> (Result<Response, CallError>, Vec<String>) {
        let (mut incoming, mut told) = (Incoming::default(), Vec::new());
        for piece in text.as_bytes().chunks(step) {
            incoming.push(piece, &mut |p| told.push(format!("{p:?}"))).unwrap();
        }
        (incoming.finish(), told)
    }

    const DONE: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"42"}]}]}}"#;

    #[test]
    fn events_in_any_form_of_lines() {
        let events = format!(
            "\u{feff}: hello\nevent: response.created\ndata: {{\"type\":\"response.created\"}}\nid: 7\nretry: 10\n\n\
             data: {{\"type\":\"response.output_item.added\",\"item\":{{\"type\":\"code_interpreter_call\",\"container_id\":\"cntr_1\"}}}}\n\n\
             data: {{\"type\":\"response.code_interpreter_call.interpreting\"}}\n\ndata:{{\"type\":\n\
             data: \"response.output_text.delta\",\"delta\":\"4é\"}}\n\ndata: {{\"type\":\"of tomorrow\"}}\n\ndata: {DONE}\n\ndata: [DONE]\n\n"
        );
        let want = ["Container(\"cntr_1\")", "Interpreting", "Text(\"4é\")"];
        for text in [events.clone(), events.replace('\n', "\r\n"), events.replace('\n', "\r")] {
            for step in [1, 2, 3, 7, 10_000] {
                let (response, told) = run(&text, step);
                let response = response.unwrap();
                assert_eq!(
                    (response.status, response.text.as_str(), &told[..]),
                    (Status::Completed, "42", &want.map(String::from)[..]),
                    "{step}"
                );
            }
        }
    }

    #[test]
    fn ends_that_are_none() {
        let code = |text: &str| run(text, 10).0.unwrap_err().to_string();
        assert!(code("data: {\"type\":\"response.created\"}\n\n").contains("cut"));
        assert!(code(&format!("data: {}", &DONE[..40])).contains("cut"));
        let said = run("data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"cells\"}\n\n", 10).0.unwrap();
        assert_eq!((said.status, said.message.as_deref()), (Status::Failed("server_error".into()), Some("cells")));
        let said = run("data: {\"type\":\"error\",\"error\":{\"code\":\"rate_limit\"}}\n\n", 10).0.unwrap();
        assert_eq!(said.status, Status::Failed("rate_limit".into()));
        let failed =
            run("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"x\"}}}\n\n", 9)
                .0
                .unwrap();
        assert_eq!(failed.status, Status::Failed("x".into()));
        // A server that does not stream.
        let plain = run(r#"{"status":"completed","output":[{"content":[{"text":"7"}]}]}"#, 9).0.unwrap();
        assert_eq!(plain.text, "7");
    }
}
