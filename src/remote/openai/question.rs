//! A question, as the Responses API takes it.

use serde_json::{Value, json};

/// A question and how it is put.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// The model's name.
    pub model: String,
    /// What the model is told beforehand.
    pub instructions: String,
    /// What was asked and answered before. It is sent along, so that nothing has to be stored over there.
    pub before: Vec<(String, String)>,
    /// Whether the answer comes as a stream.
    pub stream: bool,
    /// Whether the service is to store the response, so that the next question can follow it by its id.
    pub store: bool,
    /// The stored response that this question follows.
    pub previous: Option<String>,
}

/// Where a question finds the tables.
#[derive(Clone, Copy, Debug)]
pub enum Place<'p> {
    /// In this container, for code to read.
    Container(&'p str),
    /// These uploads in the question itself, for the model to read.
    Message(&'p [String]),
}

impl Question {
    /// The body of the request.
    pub(super) fn body(&self, place: Place<'_>) -> Value {
        let mut body =
            json!({"model": self.model, "instructions": self.instructions, "input": self.input(place), "store": self.store});
        if let Place::Container(container) = place {
            body["tools"] = json!([{"type": "code_interpreter", "container": container}]);
            body["include"] = json!(["code_interpreter_call.outputs"]);
            body["tool_choice"] = json!("required");
        }
        if self.stream {
            body["stream"] = json!(true);
        }
        if let Some(id) = &self.previous {
            body["previous_response_id"] = json!(id);
        }
        body
    }

    fn input(&self, place: Place<'_>) -> Value {
        // A response that is stored over there has the files, too.
        let files = match place {
            Place::Message(files) if self.previous.is_none() => files,
            _ => &[],
        };
        if self.before.is_empty() && files.is_empty() {
            return json!(self.text);
        }
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let before = self.before.iter().flat_map(|(asked, said)| [message("user", asked), message("assistant", said)]);
        let mut messages: Vec<Value> = before.chain([message("user", &self.text)]).collect();
        if !files.is_empty() {
            let mut content: Vec<Value> = files.iter().map(|id| json!({"type": "input_file", "file_id": id})).collect();
            content.push(json!({"type": "input_text", "text": messages[0]["content"]}));
            messages[0]["content"] = content.into();
        }
        messages.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_go_with_the_first_message_or_into_a_container() {
        let mut question = Question {
            text: "how many?".into(),
            model: "m".into(),
            instructions: String::new(),
            before: vec![],
            stream: false,
            store: false,
            previous: None,
        };
        let body = question.body(Place::Container("cntr_1"));
        assert_eq!((&body["input"], &body["tools"][0]["container"]), (&json!("how many?"), &json!("cntr_1")));
        question.before.push(("first?".into(), "7".into()));
        let body = question.body(Place::Message(&["file-1".into()]));
        assert!(body["tools"].is_null() && body["tool_choice"].is_null());
        assert_eq!(
            body["input"],
            json!([
                {"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}, {"type": "input_text", "text": "first?"}]},
                {"role": "assistant", "content": "7"},
                {"role": "user", "content": "how many?"},
            ])
        );
        (question.before, question.previous) = (vec![], Some("resp_1".into()));
        let body = question.body(Place::Message(&["file-1".into()]));
        assert_eq!((&body["input"], &body["previous_response_id"]), (&json!("how many?"), &json!("resp_1")));
    }
}
