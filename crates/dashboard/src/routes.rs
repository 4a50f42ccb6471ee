//! What there is to ask: each route with its parameters, its answer and its handler. The router and
//! the OpenAPI document are both made of this table, so they cannot disagree.

use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use serde_json::Value;

use crate::app::Tools;
use crate::reply::Fault;
use crate::{api, openapi};

/// Where a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Path,
    Query,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    /// Hexadecimal.
    Id,
    /// From, to.
    Integer(i64, i64),
    Milliseconds,
    OneOf(&'static [&'static str]),
    /// A condition on a column of the resource that is listed.
    Filter,
    /// A column of the resource that is listed.
    Sort,
}

/// What a route takes.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    pub(crate) is_repeated: bool,
    pub(crate) about: &'static str,
}

/// How an answer looks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// JSON of this schema.
    Json(fn() -> Value),
    /// Another type.
    Other(&'static str),
}

/// What can be asked.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [&'static Parameter],
    pub(crate) answer: Answer,
    /// Only by `POST`.
    pub(crate) is_change: bool,
    handler: fn() -> MethodRouter<Tools>,
}

impl Route {
    pub(crate) fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().copied().find(|parameter| parameter.name == name)
    }
}

const fn in_path(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, kind, is_repeated: false, about }
}

const fn in_query(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind, is_repeated: false, about }
}

const MOST_ROWS: i64 = 10_000;
const ANY: i64 = i64::MAX;

static RESOURCE: Parameter = in_path(
    "resource",
    Kind::OneOf(&["tasks", "actors", "objects", "nodes", "workers", "jobs", "placement-groups"]),
    "Of what.",
);
static SUMMARIZED: Parameter =
    in_path("resource", Kind::OneOf(&["tasks", "actors", "objects"]), "Of what.");
static ID: Parameter = in_path("id", Kind::Id, "Its id.");
static TASK: Parameter = in_path("task_id", Kind::Id, "The task.");
static ACTOR: Parameter = in_path("actor_id", Kind::Id, "The actor.");
static FORCE: Parameter = in_query(
    "force",
    Kind::OneOf(&["true", "false"]),
    "Ends the process that runs it; false. Not of calls of actors.",
);
static WORKER: Parameter = in_path("worker_id", Kind::Id, "The worker.");
static NODE: Parameter = in_path("node_id", Kind::Id, "The node whose file it is.");
static FILE: Parameter = in_path("file", Kind::Text, "Name of the file, as /api/logs has it.");
static FILTER: Parameter = Parameter {
    is_repeated: true,
    ..in_query(
        "filter",
        Kind::Filter,
        "`key=value` or `key!=value`; rows match all that are given.",
    )
};
static LIMIT: Parameter = in_query("limit", Kind::Integer(1, MOST_ROWS), "How many rows; 100.");
static OFFSET: Parameter = in_query("offset", Kind::Integer(0, ANY), "How many rows to leave out.");
static SORT: Parameter =
    in_query("sort", Kind::Sort, "A key; with `-` before it the largest comes first.");
static SEARCH: Parameter = in_query("q", Kind::Text, "Text that a row, or a task's name, has.");
static FROM: Parameter =
    in_query("from", Kind::Milliseconds, "Milliseconds since 1970; the first.");
static TO: Parameter = in_query("to", Kind::Milliseconds, "Milliseconds since 1970; now.");
static WIDTH: Parameter = in_query(
    "width",
    Kind::Integer(1, 20_000),
    "Pixels that it is drawn in, 1000: what is narrower than one is put together.",
);
static LOG_OFFSET: Parameter =
    in_query("offset", Kind::Integer(-ANY, ANY), "First byte; negative: so far before the end.");
static PART: Parameter = in_query(
    "part",
    Kind::Id,
    "The file that `offset` is in, as an earlier answer said: it is found whatever it is called by \
     now, and what follows it too.",
);
static MOST: Parameter = in_query("most", Kind::Integer(1, 1 << 20), "How many bytes; 65536.");
static SECONDS: Parameter = in_query("seconds", Kind::Integer(1, 60), "How long; 5.");

static ROUTES: &[Route] = &[
    Route {
        path: "/api/cluster",
        about: "The session or cluster as a whole.",
        parameters: &[],
        answer: Answer::Json(openapi::cluster),
        is_change: false,
        handler: || get(api::cluster),
    },
    Route {
        path: "/api/{resource}",
        about: "A list. Rows have the keys that `oxiray list` shows.",
        parameters: &[&RESOURCE, &FILTER, &SEARCH, &SORT, &LIMIT, &OFFSET],
        answer: Answer::Json(openapi::page),
        is_change: false,
        handler: || get(api::list),
    },
    Route {
        path: "/api/{resource}/{id}",
        about: "One of a list, with all there is to say of it.",
        parameters: &[&RESOURCE, &ID],
        answer: Answer::Json(openapi::row),
        is_change: false,
        handler: || get(api::one),
    },
    Route {
        path: "/api/tasks/{task_id}/why",
        about: "Why a task is not done, in words.",
        parameters: &[&TASK],
        answer: Answer::Json(openapi::text),
        is_change: false,
        handler: || get(api::why),
    },
    Route {
        path: "/api/tasks/{task_id}/log",
        about: "What a task printed.",
        parameters: &[&TASK],
        answer: Answer::Json(openapi::task_log),
        is_change: false,
        handler: || get(api::task_log),
    },
    Route {
        path: "/api/summary/{resource}",
        about: "How many there are of each name, by state.",
        parameters: &[&SUMMARIZED],
        answer: Answer::Json(openapi::summary),
        is_change: false,
        handler: || get(api::summary),
    },
    Route {
        path: "/api/timeline",
        about: "Which process ran what when, as detailed as can be drawn.",
        parameters: &[&FROM, &TO, &WIDTH, &SEARCH],
        answer: Answer::Json(openapi::timeline),
        is_change: false,
        handler: || get(api::timeline),
    },
    Route {
        path: "/api/timeline.json",
        about: "The whole timeline as a file for Perfetto or chrome://tracing.",
        parameters: &[],
        answer: Answer::Json(openapi::anything),
        is_change: false,
        handler: || get(api::trace),
    },
    Route {
        path: "/api/logs",
        about: "The log files of all nodes.",
        parameters: &[],
        answer: Answer::Json(openapi::log_files),
        is_change: false,
        handler: || get(api::log_files),
    },
    Route {
        path: "/api/logs/{node_id}/{file}",
        about: "A part of a log file.",
        parameters: &[&NODE, &FILE, &PART, &LOG_OFFSET, &MOST],
        answer: Answer::Json(openapi::piece),
        is_change: false,
        handler: || get(api::log),
    },
    Route {
        path: "/api/logs/{node_id}/{file}/stream",
        about: "A log as it grows, also when its file is renamed and another begun: events `text`, \
                each with a part of it as above.",
        parameters: &[&NODE, &FILE, &PART, &LOG_OFFSET],
        answer: Answer::Other("text/event-stream"),
        is_change: false,
        handler: || get(api::log_stream),
    },
    Route {
        path: "/api/stream",
        about: "Changes as they happen: events `cluster` with what /api/cluster answers, `tasks` \
                with what /api/summary/tasks answers, and `ping`.",
        parameters: &[],
        answer: Answer::Other("text/event-stream"),
        is_change: false,
        handler: || get(api::stream),
    },
    Route {
        path: "/api/workers/{worker_id}/stack",
        about: "What a worker does at this moment, by py-spy.",
        parameters: &[&WORKER],
        answer: Answer::Json(openapi::text),
        is_change: true,
        handler: || post(api::stack),
    },
    Route {
        path: "/api/workers/{worker_id}/profile",
        about: "A flame graph of a worker, by py-spy.",
        parameters: &[&WORKER, &SECONDS],
        answer: Answer::Json(openapi::svg),
        is_change: true,
        handler: || post(api::profile),
    },
    Route {
        path: "/api/tasks/{task_id}/cancel",
        about: "Cancels a task and what it has submitted, as `cancel` does.",
        parameters: &[&TASK, &FORCE],
        answer: Answer::Json(openapi::text),
        is_change: true,
        handler: || post(api::cancel),
    },
    Route {
        path: "/api/actors/{actor_id}/kill",
        about: "Ends an actor at once and for good, as `kill` does.",
        parameters: &[&ACTOR],
        answer: Answer::Json(openapi::text),
        is_change: true,
        handler: || post(api::kill),
    },
    Route {
        path: "/metrics",
        about: "Figures for Prometheus.",
        parameters: &[],
        answer: Answer::Other("text/plain"),
        is_change: false,
        handler: || get(api::metrics),
    },
    Route {
        path: "/api/openapi.json",
        about: "This document.",
        parameters: &[],
        answer: Answer::Json(openapi::anything),
        is_change: false,
        handler: || get(api::openapi),
    },
];

pub(crate) fn all() -> &'static [Route] {
    ROUTES
}

pub(crate) fn router() -> Router<Tools> {
    let wrong_method = || async {
        Fault::new(
            axum::http::StatusCode::METHOD_NOT_ALLOWED,
            "Not by this method; /docs says which.",
        )
    };
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        router.route(route.path, (route.handler)().layer(Extension(route)))
    });
    router.method_not_allowed_fallback(wrong_method)
}
