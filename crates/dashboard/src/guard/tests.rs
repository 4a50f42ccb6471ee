//! The rules of the guard, as an attacker would try them.

use axum::http::Request;

use super::*;

const TOKEN: &str = "5ecret";
const HOST: &str = "127.0.0.1:8265";

fn judge(method: Method, path: &str, headers: &[(&'static str, &str)]) -> Verdict {
    let hosts = Hosts::new("127.0.0.1".parse().unwrap(), "", "machine");
    let guard = Guard::new(TOKEN.into(), 8265, hosts);
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    guard.judge(&request.body(()).unwrap().into_parts().0)
}

fn status(verdict: Verdict) -> u16 {
    match verdict {
        Verdict::Refuse(status, _) => status.as_u16(),
        _ => 200,
    }
}

const COOKIE: (&str, &str) = ("cookie", "a=b; oxiray-8265=5ecret");
const BEARER: (&str, &str) = ("authorization", "Bearer 5ecret");

#[test]
fn the_token_lets_in() {
    for proof in [COOKIE, BEARER, ("authorization", "bearer 5ecret")] {
        assert_eq!(judge(Method::GET, "/api/tasks", &[("host", HOST), proof]), Verdict::Enter);
    }
    let welcome = judge(Method::GET, "/?token=5ecret", &[("host", HOST)]);
    assert_eq!(welcome, Verdict::Welcome { by_link: false });
}

#[test]
fn without_the_token_nothing_is_had() {
    let tries: &[&[(&str, &str)]] = &[
        &[],
        &[("authorization", "Bearer wrong!")],
        &[("authorization", "Bearer 5ecre")],
        &[("authorization", "Bearer 5ecret5")],
        &[("authorization", "Basic 5ecret")],
        &[("authorization", "Bearer")],
        &[("cookie", "oxiray-8265=wrong")],
        &[("cookie", "oxiray-9000=5ecret")],
        &[("cookie", "oxiray-8265")],
    ];
    for headers in tries {
        for path in ["/", "/?token=", "/?token=5ecre", "/assets/x.js", "/metrics", "/api/cluster"] {
            let headers = [&[("host", HOST)], *headers].concat();
            assert_eq!(status(judge(Method::GET, path, &headers)), 401, "{path} {headers:?}");
        }
    }
    // An address with a token opens the first page only.
    assert_eq!(status(judge(Method::GET, "/api/tasks?token=5ecret", &[("host", HOST)])), 401);
}

#[test]
fn another_name_gets_nothing_though_it_has_the_cookie() {
    for host in ["evil.example:8265", "evil.example", "127.0.0.1:8265.evil.example", ""] {
        assert_eq!(status(judge(Method::GET, "/", &[("host", host), COOKIE])), 403, "{host}");
    }
    assert_eq!(status(judge(Method::GET, "/", &[COOKIE])), 403);
    assert_eq!(status(judge(Method::GET, "/", &[("host", HOST), ("host", HOST), COOKIE])), 403);
    let absolute = judge(Method::GET, "http://evil.example/", &[("host", HOST), COOKIE]);
    assert_eq!(status(absolute), 403);
}

#[test]
fn another_page_gets_nothing_though_the_browser_has_the_cookie() {
    for origin in ["http://evil.example", "http://127.0.0.1:3000", "null", "", "file://"] {
        let headers = [("host", HOST), ("origin", origin), COOKIE];
        assert_eq!(status(judge(Method::GET, "/api/tasks", &headers)), 403, "{origin}");
        assert_eq!(status(judge(Method::POST, "/api/x", &headers)), 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let headers = [("host", HOST), ("sec-fetch-site", site), COOKIE];
        assert_eq!(status(judge(Method::GET, "/api/tasks", &headers)), 403);
        // Not within a frame either, where `dest` is not `document`.
        let framed = [("sec-fetch-dest", "iframe"), headers[0], headers[1], headers[2]];
        assert_eq!(status(judge(Method::GET, "/", &framed)), 403);
    }
}

#[test]
fn a_link_opens_the_first_page() {
    let headers =
        [("host", HOST), ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")];
    let verdict = judge(Method::GET, "/?token=5ecret", &headers);
    assert_eq!(verdict, Verdict::Welcome { by_link: true });
    assert_eq!(status(judge(Method::GET, "/?token=wrong", &headers)), 401);
    assert_eq!(status(judge(Method::POST, "/", &headers)), 403);
}

#[test]
fn a_change_comes_from_our_page_or_with_the_token_itself() {
    let post = |headers: &[(&'static str, &str)]| {
        status(judge(Method::POST, "/api/workers/1/stack", headers))
    };
    let ours = ("origin", "http://127.0.0.1:8265");
    assert_eq!(post(&[("host", HOST), COOKIE, ours]), 200);
    assert_eq!(post(&[("host", HOST), BEARER]), 200);
    assert_eq!(post(&[("host", HOST), COOKIE]), 403);
    assert_eq!(post(&[("host", HOST), ours]), 401);
    assert_eq!(post(&[("host", HOST), BEARER, ("origin", "http://evil.example")]), 403);
    // The token in an address changes nothing.
    let headers = [("host", HOST), ours];
    assert_eq!(status(judge(Method::POST, "/?token=5ecret", &headers)), 401);
}
