//! What a request gave, checked by what its route says it takes.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::reply::Fault;
use crate::routes::{Kind, Parameter, Place, Route};

/// Arguments of a route, each as it was given, and right.
#[derive(Debug)]
pub(crate) struct Arguments {
    route: &'static Route,
    given: Vec<(&'static str, String)>,
}

impl Arguments {
    /// Empty if it was not given.
    pub(crate) fn text(&self, name: &str) -> String {
        self.all(name).next().unwrap_or_default().to_owned()
    }

    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        debug_assert!(self.route.parameters.iter().any(|known| known.name == name), "{name}");
        self.given.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Parsed; none: it was not given.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.all(name).next().and_then(|value| value.parse().ok())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Arguments {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let route = *parts.extensions.get::<&'static Route>().expect("every route has itself");
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|_| Fault::unknown("The path is not readable text."))?;
        let mut given = Vec::new();
        for (name, value) in &path {
            let parameter = route.parameter(name).expect("a route names what is in its path");
            if let Err(why) = parameter.check(value) {
                return Err(Fault::unknown(why));
            }
            given.push((parameter.name, value.to_owned()));
        }
        let query = parts.uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let known = route.parameter(&name).filter(|known| known.place == Place::Query);
            let Some(parameter) = known else {
                return Err(Fault::bad(unknown(route)));
            };
            if !parameter.is_repeated && given.iter().any(|(given, _)| *given == parameter.name) {
                return Err(Fault::bad(format!("{} can be given once.", parameter.name)));
            }
            parameter.check(&value).map_err(Fault::bad)?;
            given.push((parameter.name, value.into_owned()));
        }
        Ok(Self { route, given })
    }
}

fn unknown(route: &Route) -> String {
    let in_query = route.parameters.iter().filter(|known| known.place == Place::Query);
    let names: Vec<&str> = in_query.map(|known| known.name).collect();
    match names.is_empty() {
        true => "This route takes no parameters.".into(),
        false => format!("This route takes {} and nothing else.", names.join(", ")),
    }
}

impl Parameter {
    /// Says what is wrong with a value, without repeating it.
    fn check(&self, value: &str) -> Result<(), String> {
        let name = self.name;
        match self.kind {
            // What columns there are is known to those who list them.
            Kind::Filter | Kind::Sort => Ok(()),
            Kind::Text if value.contains('\0') => Err(format!("{name} has a zero byte.")),
            Kind::Text => Ok(()),
            Kind::Id if !value.is_empty() && value.len() <= 64 && is_hex(value) => Ok(()),
            Kind::Id => Err(format!("{name} must be up to 64 digits of 0-9a-f.")),
            Kind::Integer(least, most) => match value.parse::<i64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("{name} must be a whole number from {least} to {most}.")),
            },
            Kind::Milliseconds => match value.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(()),
                _ => Err(format!("{name} must be a number of milliseconds since 1970.")),
            },
            Kind::OneOf(names) if names.contains(&value) => Ok(()),
            Kind::OneOf(names) => Err(format!("{name} must be one of {}.", names.join(", "))),
        }
    }
}

fn is_hex(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
