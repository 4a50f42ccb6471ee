//! The files of the user interface, which the build has put into this program.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::reply::{Fault, plain_page};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page about the REST API is part of this crate, not of `ui/`.
const DOCS: [(&str, &str); 3] = [
    ("docs", include_str!("docs/index.html")),
    ("docs/docs.js", include_str!("docs/docs.js")),
    ("docs/docs.css", include_str!("docs/docs.css")),
];

/// Names of vite's files change with their content.
const FOR_EVER: &str = "private, max-age=31536000, immutable";

/// The file at `path`; `/` is the first page.
pub(crate) fn file(path: &str, headers: &HeaderMap) -> Response {
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let kind = [(header::CONTENT_TYPE, kind_of(name))];
    if let Some((_, text)) = DOCS.iter().find(|(docs, _)| *docs == name) {
        return (kind, *text).into_response();
    }
    if FILES.is_empty() && name == "index.html" {
        return plain_page(
            StatusCode::OK,
            "The pages are not built",
            "This program was built without them: <code>make build</code> with Node installed \
             builds them into it. The <a href=\"/docs\">REST API</a> is there.",
        );
    }
    let Ok(index) = FILES.binary_search_by(|(file, _)| (*file).cmp(name)) else {
        return Fault::unknown("There is no such page.").into_response();
    };
    let packed = FILES[index].1;
    let cache = match name.starts_with("assets/") {
        true => FOR_EVER,
        false => "no-store",
    };
    let cache = [(header::CACHE_CONTROL, cache)];
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("gzip")) {
        return (kind, cache, [(header::CONTENT_ENCODING, "gzip")], packed).into_response();
    }
    (kind, cache, unpack(packed)).into_response()
}

/// For the few that cannot read what browsers can.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes)
        .expect("the build packed it");
    bytes
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map") => "application/json",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}
