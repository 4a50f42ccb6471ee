//! Where to spill to, as the user says it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::SpillError;

/// The kinds of URL that objects can be spilled to.
const SCHEMES: [&str; 11] =
    ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https", "memory"];

/// Where to spill to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Directories, used in turn: one on each disk adds their speeds up.
    Directories(Vec<PathBuf>),
    /// A bucket, or a prefix in one.
    Url(String),
}

impl Target {
    /// Understands several directories or exactly one URL; `file:///path` is a directory.
    pub fn parse(entries: &[String]) -> Result<Self, SpillError> {
        let bad = |entry: &str, reason: &str| SpillError::BadTarget {
            entry: without_credentials(entry),
            reason: reason.to_owned(),
        };
        let mut directories: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let directory = match entry.split_once("://") {
                None if entry.is_empty() => return Err(bad(entry, "the name is empty")),
                None => PathBuf::from(entry),
                Some(("file", path)) if path.starts_with('/') => decoded(path)
                    .ok_or_else(|| bad(entry, "its %-escapes are not two hexadecimal digits"))?,
                Some(("file", _)) => {
                    return Err(bad(entry, "a file URL is file:/// and an absolute path"));
                }
                Some((scheme, _)) if !SCHEMES.contains(&scheme) => {
                    return Err(bad(entry, &format!("{scheme}:// is not supported")));
                }
                Some(_) if !cfg!(feature = "url") => {
                    return Err(bad(entry, "this build can spill to directories only"));
                }
                Some(_) if entries.len() > 1 => {
                    return Err(bad(entry, "a URL cannot be combined with other targets"));
                }
                Some(_) => return Ok(Self::Url(entry.clone())),
            };
            // Messages shall say where it is, wherever they are read.
            let directory = std::path::absolute(&directory).unwrap_or(directory);
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        if directories.is_empty() {
            return Err(bad("", "no target is given"));
        }
        Ok(Self::Directories(directories))
    }
}

/// A URL's path without its escapes.
fn decoded(path: &str) -> Option<PathBuf> {
    let mut rest = path.bytes();
    let mut bytes = Vec::with_capacity(path.len());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(Path::new(&OsString::from_vec(bytes)).to_owned())
}

/// A URL as it may stand in a message: user, password and query are left out.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let rest = rest.split('?').next().unwrap_or_default();
    let (host, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    // In abfs://container@account the part before the @ is no secret, and needed to understand it.
    let host = match host.rsplit_once('@') {
        Some((user, host)) if user.contains(':') || scheme.starts_with("http") => host,
        _ => host,
    };
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[&str]) -> Result<Target, SpillError> {
        Target::parse(&entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>())
    }

    fn directories(paths: &[&str]) -> Target {
        Target::Directories(paths.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn directories_and_file_urls_are_directories() {
        assert_eq!(parse(&["/a", "/b"]), Ok(directories(&["/a", "/b"])));
        assert_eq!(parse(&["file:///a%20b/c"]), Ok(directories(&["/a b/c"])));
        assert_eq!(parse(&["/a", "/a", "/b"]), Ok(directories(&["/a", "/b"])), "named twice");
        let Ok(Target::Directories(relative)) = parse(&["spill"]) else {
            panic!("a relative path is a directory");
        };
        assert!(relative[0].is_absolute());
    }

    #[test]
    fn what_cannot_be_a_target_is_told() {
        for (entries, part) in [
            (&[][..], "no target is given"),
            (&[""], "empty"),
            (&["ftp://host/x"], "ftp:// is not supported"),
            (&["file://host/x"], "absolute path"),
            (&["file:///x%2"], "escapes"),
        ] {
            let error = parse(entries).expect_err("not a target").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[cfg(feature = "url")]
    #[test]
    fn a_url_stands_alone() {
        assert_eq!(parse(&["s3://b/p"]), Ok(Target::Url("s3://b/p".to_owned())));
        for entries in [["s3://b/p", "/a"], ["/a", "s3://b/p"], ["s3://b/p", "gs://b"]] {
            let error = parse(&entries).expect_err("a URL and more").to_string();
            assert!(error.contains("cannot be combined"), "{error}");
        }
    }

    #[test]
    fn messages_have_no_passwords() {
        assert_eq!(without_credentials("https://me:word@host/p?sig=x"), "https://host/p");
        assert_eq!(without_credentials("abfs://box@account/p"), "abfs://box@account/p");
        assert_eq!(without_credentials("/plain"), "/plain");
    }
}
