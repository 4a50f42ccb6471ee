//! Answers: JSON, errors in a sentence, and the headers that every answer has.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Scripts and styles of our own only, in no frame, and nothing of us in others' pages.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Gives an answer the headers that all have.
pub(crate) fn harden(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// The question makes no sense.
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// What is asked for is not there.
    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }
}

/// The session does not answer: it may be about to end.
impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("The session does not answer: {error}"))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        json_reply(self.status, &json!({ "error": self.why }))
    }
}

pub(crate) fn json_reply(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, value.to_string()).into_response()
}

/// A page that is nothing but a heading and a sentence of ours.
pub(crate) fn plain_page(status: StatusCode, heading: &str, sentence: &str) -> Response {
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Oxiray</title><h1>{heading}</h1>\
         <p>{sentence}</p>"
    );
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}
