//! From a request to its answer: the guard first, then the routes, then what every answer has.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;

use crate::crowd::Known;
use crate::desk::Desk;
use crate::door::{self, Spoken};
use crate::guard::{Guard, Verdict};
use crate::jobs::{self, Jobs};
use crate::live::Live;
use crate::py_spy::PySpy;
use crate::reply::{Fault, harden, plain_page};
use crate::tails::Tails;
use crate::{pages, routes};

/// What all answers are made with.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) desk: Desk,
    pub(crate) live: Live,
    pub(crate) tails: Tails,
    pub(crate) py_spy: PySpy,
    pub(crate) jobs: Jobs,
}

/// The whole of it.
#[derive(Clone)]
pub(crate) struct App {
    guard: Arc<Guard>,
    router: axum::Router,
}

impl App {
    pub(crate) fn new(guard: Guard, desk: Desk, jobs: Jobs) -> Self {
        let tools = Tools {
            live: Live::new(desk.clone()),
            tails: Tails::new(desk.clone()),
            py_spy: PySpy::new(),
            jobs,
            desk,
        };
        let router = routes::router().merge(jobs::router()).fallback(page).with_state(tools);
        Self { guard: Arc::new(guard), router: router.layer(CompressionLayer::new()) }
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let spoken = parts.extensions.get::<Spoken>().copied().unwrap_or(Spoken::Plain);
        let verdict = match spoken {
            Spoken::Bare => door::BARE,
            Spoken::Plain | Spoken::Tls => self.guard.judge(&parts),
        };
        let mut response = match verdict {
            Verdict::Enter => {
                if let Some(known) = parts.extensions.get::<Known>() {
                    known.set();
                }
                let request = Request::from_parts(parts, body);
                let answered = self.router.clone().oneshot(request).await;
                answered.unwrap_or_else(|never| match never {})
            }
            Verdict::Welcome { by_link } => self.welcome(by_link, spoken == Spoken::Tls),
            Verdict::Refuse(status, why) => refuse(parts.uri.path(), status, why),
        };
        harden(response.headers_mut());
        response
    }

    fn welcome(&self, by_link: bool, is_tls: bool) -> Response {
        let cookie = (header::SET_COOKIE, self.guard.cookie(is_tls));
        if by_link {
            // The browser would keep the cookie back from where a link of elsewhere leads, even
            // after a redirection; from a page of ours it does not.
            let page = "<!doctype html><meta charset=\"utf-8\"><title>Oxiray</title>\
                        <meta http-equiv=\"refresh\" content=\"0; url=/\">";
            let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned());
            return ([cookie, kind], page).into_response();
        }
        (StatusCode::SEE_OTHER, [cookie, (header::LOCATION, "/".to_owned())]).into_response()
    }
}

/// Nothing of what was asked is in the answer.
fn refuse(path: &str, status: StatusCode, why: &'static str) -> Response {
    let mut response = match path.starts_with("/api") || path == "/metrics" {
        true => Fault::new(status, why).into_response(),
        false => plain_page(status, "No entry", why),
    };
    if status == StatusCode::UNAUTHORIZED {
        let scheme = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// Whatever is not a route is a file, if it is anything.
async fn page(request: Request<Body>) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api") || request.method() == axum::http::Method::POST {
        return Fault::unknown("There is no such route; /docs shows all.").into_response();
    }
    pages::file(path, request.headers())
}
