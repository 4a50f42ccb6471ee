//! A place by its URL.

use std::path::PathBuf;

use url::Url;

use crate::{File, Memory, Persist, PersistError, Redis};

/// Opens `memory:`, a directory (`/var/lib/oxiray`, `file:/var/lib/oxiray`), or
/// `redis://…` and `rediss://…`. Fails at once if it cannot be used.
pub fn open(url: &str) -> Result<Box<dyn Persist>, PersistError> {
    if url == "memory:" || url == "memory" {
        return Ok(Box::new(Memory::forgetful()));
    }
    if url.starts_with("redis://") || url.starts_with("rediss://") {
        return Ok(Box::new(Redis::open(url)?));
    }
    if let Some(path) = url.strip_prefix("file:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return Ok(Box::new(File::open(PathBuf::from(path))?));
    }
    match url.split_once(':') {
        Some((scheme, _)) if !url.starts_with(['/', '.']) && !scheme.contains('/') => {
            let why = format!("`{scheme}:` is not a kind of store");
            Err(PersistError::Url { url: without_password(url), why })
        }
        _ if url.is_empty() => {
            Err(PersistError::Url { url: "\"\"".into(), why: "it is empty".into() })
        }
        _ => Ok(Box::new(File::open(PathBuf::from(url))?)),
    }
}

/// The URL as people may see it.
pub(crate) fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            if url.password().is_some() {
                let _ = url.set_password(Some("…"));
            }
            url.to_string().replace("%E2%80%A6", "…")
        }
        // Whatever it is, it might contain one.
        Err(_) => {
            url.split_once("://").map_or("(…)".into(), |(scheme, _)| format!("{scheme}://…"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        open(url).err().expect("an error").to_string()
    }

    #[test]
    fn what_is_not_understood_is_said_with_the_remedy() {
        let text = error("postgres://u:secret@h/db");
        assert!(text.contains("`postgres:` is not a kind of store") && !text.contains("secret"));
        assert!(text.contains("Use `memory:`"));
        assert!(error("").contains("it is empty"));
        let text = error("redis://:secret@host:99999999");
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn memory_is_a_place() {
        assert_eq!(open("memory:").unwrap().describe(), "memory");
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("redis://:secret@h:1/0"), "redis://:…@h:1/0");
        assert_eq!(without_password("redis://u:secret@h"), "redis://u:…@h");
        assert_eq!(without_password("redis://:a b@[h"), "redis://…");
    }
}
