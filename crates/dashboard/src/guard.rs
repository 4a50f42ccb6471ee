//! Who is answered.
//!
//! Everything needs the token: by `Authorization: Bearer`, or by the cookie that `/?token=…` sets.
//! A cookie is sent by the browser whoever's page asks, so more is looked at:
//!
//! 1. `Host` is a name of ours ([`Hosts`]): else another's name leads here.
//! 2. `Origin`, if there is one, is ours: else another's page asks.
//! 3. `Sec-Fetch-Site`, if there is one, says so, too; only to open the first page may a link
//!    lead here from elsewhere.
//! 4. What changes something is a `POST`, and comes with the token itself or from a page of ours.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};

use crate::hosts::Hosts;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// What is to be done with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is answered.
    Enter,
    /// It brought the token in its address: the browser is given the cookie, and sent to `/`.
    Welcome {
        /// A page of elsewhere has the link: the browser keeps the cookie to itself until a page
        /// of ours asks.
        by_link: bool,
    },
    /// Why not.
    Refuse(StatusCode, &'static str),
}

/// What a request is measured by.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    token: String,
    cookie: String,
    hosts: Hosts,
}

const NO_TOKEN: Verdict = Verdict::Refuse(
    StatusCode::UNAUTHORIZED,
    "The token is missing or wrong. `oxiray dashboard` prints the address that has it; programs \
     send it as `Authorization: Bearer TOKEN`.",
);
const NOT_OUR_NAME: Verdict = Verdict::Refuse(
    StatusCode::FORBIDDEN,
    "This is not a name of the dashboard. Use the address that `oxiray dashboard` prints.",
);
const NOT_OUR_PAGE: Verdict =
    Verdict::Refuse(StatusCode::FORBIDDEN, "Pages of other servers are not answered.");

impl Guard {
    /// Cookies do not tell ports apart, so the port is in the name.
    pub(crate) fn new(token: String, port: u16, hosts: Hosts) -> Self {
        Self { token, cookie: format!("oxiray-{port}"), hosts }
    }

    /// The cookie that lets a browser in. One that came by TLS goes by nothing else.
    pub(crate) fn cookie(&self, is_tls: bool) -> String {
        let more = if is_tls { "; Secure" } else { "" };
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict{more}", self.cookie, self.token)
    }

    pub(crate) fn judge(&self, request: &Parts) -> Verdict {
        let headers = &request.headers;
        let Some(host) = only(headers, header::HOST) else {
            return NOT_OUR_NAME;
        };
        let named = request.uri.authority().map_or(host, |authority| authority.as_str());
        if named != host || !self.hosts.allow(host) {
            return NOT_OUR_NAME;
        }
        let origin = headers.contains_key(header::ORIGIN);
        if origin && !only(headers, header::ORIGIN).is_some_and(|origin| is_ours(origin, host)) {
            return NOT_OUR_PAGE;
        }
        let by_link = match only(headers, FETCH_SITE) {
            None if headers.contains_key(FETCH_SITE) => return NOT_OUR_PAGE,
            None | Some("none" | "same-origin") => false,
            Some(_) if opens_first_page(request) => true,
            Some(_) => return NOT_OUR_PAGE,
        };
        let is_safe = matches!(request.method, Method::GET | Method::HEAD);
        if is_safe
            && request.uri.path() == "/"
            && let Some(token) = request.uri.query().and_then(token_in)
        {
            return match is_same(token, &self.token) {
                true => Verdict::Welcome { by_link },
                false => NO_TOKEN,
            };
        }
        if self.is_bearer(headers) {
            return Verdict::Enter;
        }
        match self.has_cookie(headers) {
            false => NO_TOKEN,
            true if is_safe || origin => Verdict::Enter,
            true => NOT_OUR_PAGE,
        }
    }

    fn is_bearer(&self, headers: &HeaderMap) -> bool {
        let value = only(headers, header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        value.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && is_same(token.trim(), &self.token)
        })
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.trim(), value.trim()))
        });
        pairs.any(|(name, value)| name == self.cookie && is_same(value, &self.token))
    }
}

/// The value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_ours(origin: &str, host: &str) -> bool {
    let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    name.is_some_and(|name| name.eq_ignore_ascii_case(host))
}

/// Somebody follows a link to the dashboard, as in a notebook.
fn opens_first_page(request: &Parts) -> bool {
    request.method == Method::GET
        && request.uri.path() == "/"
        && only(&request.headers, FETCH_DEST) == Some("document")
}

fn token_in(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Takes as long for a wrong token whose beginning is right as for any other of that length.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests;
