//! Answers in the service's shapes: errors, lists, deletions.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

/// `{"error": {"message", "type", "param", "code"}}` with a status.
#[derive(Debug)]
pub(super) struct ApiError {
    status: u16,
    message: String,
    param: Option<String>,
    code: Option<&'static str>,
}

/// Query parameters of a list.
#[derive(Default, Deserialize)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
}

impl ApiError {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }

    /// The error for a parameter that the service does not know.
    pub(super) fn unknown(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::bad(format!("Unknown parameter: '{param}'.")).param(param).code("unknown_parameter")
    }

    /// The error for a parameter that must be there.
    pub(super) fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::bad(format!("Missing required parameter: '{param}'.")).param(param).code("missing_required_parameter")
    }

    /// The error for a value that a parameter cannot have.
    pub(super) fn invalid(param: impl Into<String>, expected: &str) -> Self {
        let param = param.into();
        Self::bad(format!("Invalid value for '{param}': expected {expected}.")).param(param).code("invalid_value")
    }

    #[must_use]
    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    #[must_use]
    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = if self.status >= 500 { "server_error" } else { "invalid_request_error" };
        let body = json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}});
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(body)).into_response()
    }
}

impl Page {
    /// A page of `all`, which are in the order of their creation; at most `greatest` of them.
    ///
    /// # Errors
    /// A limit or an order that the service does not have, or an `after` that is not there.
    pub(super) fn of(&self, mut all: Vec<Value>, default: usize, greatest: usize) -> Result<Json<Value>, ApiError> {
        match self.order.as_deref() {
            None | Some("desc") => all.reverse(),
            Some("asc") => {}
            Some(_) => return Err(ApiError::invalid("order", "one of 'asc' and 'desc'")),
        }
        let limit = self.limit.unwrap_or(default);
        if !(1..=greatest).contains(&limit) {
            return Err(ApiError::invalid("limit", &format!("an integer from 1 to {greatest}")));
        }
        if let Some(after) = &self.after {
            let at = all.iter().position(|v| v["id"] == after.as_str());
            let at = at.ok_or_else(|| ApiError::invalid("after", "the id of an object of this list"))?;
            all.drain(..=at);
        }
        let has_more = all.len() > limit;
        all.truncate(limit);
        let id = |v: Option<&Value>| v.map_or(json!(""), |v| v["id"].clone());
        let (first, last) = (id(all.first()), id(all.last()));
        Ok(Json(json!({"object": "list", "data": all, "first_id": first, "last_id": last, "has_more": has_more})))
    }
}

/// `{"id", "object", "deleted": true}`.
pub(super) fn deleted(id: &str, object: &str) -> Json<Value> {
    Json(json!({"id": id, "object": object, "deleted": true}))
}
