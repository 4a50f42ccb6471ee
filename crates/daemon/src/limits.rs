//! What the operating system allows this service: as much as it may have, and every limit that is
//! met is named with its number.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use oxiray_sys::control_group::{USUAL_ROOT, limits_of_processes};
use oxiray_sys::process::{FileSize, ignore_file_size_signal};
use oxiray_words::show_bytes;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors for everything but workers: memory, listeners, logs, disk, other nodes, tools.
const FOR_THE_SERVICE: usize = 64;
/// Descriptors for a worker: its socket, its process, two pipes and two logs.
const FOR_A_WORKER: usize = 6;
/// Fewer workers than this are no service.
const LEAST_WORKERS: usize = 4;

/// How large files might be before this service allowed itself more.
static FILE_SIZE: OnceLock<FileSize> = OnceLock::new();

/// Raises what may be raised: the usual limit of 1024 descriptors would end at 160 workers.
/// A file that grows too large is an error afterwards, and not the end of this process.
pub(crate) fn raise() {
    ignore_file_size_signal();
    FILE_SIZE.get_or_init(|| FileSize(getrlimit(Resource::Fsize)));
    for resource in [Resource::Nofile, Resource::Fsize] {
        let mut limit = getrlimit(resource);
        limit.current = limit.maximum;
        let _ = setrlimit(resource, limit);
    }
}

/// What workers may do, as whoever started this had it.
pub(crate) fn file_size_of_workers() -> Option<FileSize> {
    FILE_SIZE.get().copied()
}

/// How many processes the node can serve, and what keeps them from being more.
pub(crate) fn processes(most: usize) -> io::Result<(usize, String)> {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return Ok((most, String::new()));
    };
    let room = (descriptors as usize).saturating_sub(FOR_THE_SERVICE) / FOR_A_WORKER;
    if room < LEAST_WORKERS {
        let least = FOR_THE_SERVICE + LEAST_WORKERS * FOR_A_WORKER;
        return Err(io::Error::other(format!(
            "this process may have {descriptors} open files (ulimit -n), and the node service \
             needs {least} at least: raise the limit, `ulimit -n 4096`"
        )));
    }
    match room < most {
        true => Ok((room, format!(" with {descriptors} open files (ulimit -n)"))),
        false => Ok((most, String::new())),
    }
}

/// Why the kernel refuses another process, with the numbers that it may be about.
pub(crate) fn of_processes(error: Errno) -> String {
    let root = oxiray_settings::CGROUP_ROOT.path().unwrap_or_else(|| USUAL_ROOT.into());
    let limits = limits_of_processes(Path::new(&root));
    format!("the kernel refuses another process ({}): {limits}", io::Error::from(error))
}

/// An error, with the limit that was met if it is one.
pub(crate) fn named(what: &str, error: &io::Error) -> io::Error {
    let number = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    let limit = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            format!(": the limit of open files (ulimit -n) is {}", number(Resource::Nofile))
        }
        Some(Errno::NFILE) => ": all of this machine's open files (fs.file-max) are used".into(),
        Some(Errno::FBIG) => {
            let most = show_bytes(number(Resource::Fsize));
            format!(": the limit of a file's size (ulimit -f) is {most}; raise it, or ask for less")
        }
        Some(Errno::NOMEM) if getrlimit(Resource::As).current.is_some() => {
            let most = show_bytes(number(Resource::As));
            format!(": the limit of address space (ulimit -v) is {most}; raise it, or ask for less")
        }
        Some(Errno::AGAIN) => format!(": {}", of_processes(Errno::AGAIN)),
        _ => String::new(),
    };
    io::Error::other(format!("{what}: {error}{limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_with_their_numbers() {
        raise();
        let (most, why) = processes(usize::MAX).unwrap();
        let descriptors = getrlimit(Resource::Nofile).current.map(|number| number.to_string());
        assert!(most >= LEAST_WORKERS && why.contains(&descriptors.unwrap_or_default()), "{why}");
        let many = named("a log", &io::Error::from(Errno::MFILE)).to_string();
        assert!(many.starts_with("a log: ") && many.contains("ulimit -n"), "{many}");
        let large = named("the store", &io::Error::from(Errno::FBIG)).to_string();
        assert!(large.contains("ulimit -f"), "{large}");
        let fork = of_processes(Errno::AGAIN);
        assert!(fork.starts_with("the kernel refuses another process"), "{fork}");
        let other = named("it", &io::Error::from(Errno::NOENT)).to_string();
        assert!(!other.contains("ulimit"), "{other}");
    }
}
