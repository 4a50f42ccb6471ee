//! One session's directory: the names of what is in it, its socket, and its end.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oxiray_sys::packet;
use oxiray_wire::control::from_node::Body;

use crate::directory::{Directory, refused};
use crate::folder::Folder;
use crate::hold::{Hold, LOCK};
use crate::record::Record;
use crate::service::Service;

/// Where the node service listens.
pub(crate) const SOCKET: &str = "node.sock";
const LOGS: &str = "logs";
/// Where control services are, a line for each.
pub(crate) const HEADS: &str = "heads";

/// A session's directory.
#[derive(Clone, Debug)]
pub struct Session {
    directory: Arc<Directory>,
    /// It lives as long as one of us does; none: this only looks at it.
    _hold: Option<Arc<Hold>>,
}

impl Session {
    /// A directory that was just made, and is held.
    pub(crate) fn made(directory: Directory, hold: Hold) -> io::Result<Self> {
        directory.make(LOGS)?;
        Ok(Self { directory: directory.into(), _hold: Some(hold.into()) })
    }

    /// Looks at the session in that directory, which must be ours.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::seen(Directory::at(path)?))
    }

    pub(crate) fn seen(directory: Directory) -> Self {
        Self { directory: directory.into(), _hold: None }
    }

    /// Looks at it and keeps it there meanwhile; none: it is being removed.
    pub fn hold(&self) -> io::Result<Option<Self>> {
        let hold = Hold::shared(&self.directory)?;
        Ok(hold.map(|hold| Self { directory: self.directory.clone(), _hold: Some(hold.into()) }))
    }

    /// Takes a directory over, which others made for this. It must be ours alone and empty but for
    /// logs, because all the rest of it is removed in the end.
    pub fn take(path: &str) -> io::Result<Self> {
        Self::take_over(path, false)
    }

    /// Takes over a directory that was cleared. Programs that were there may have written since, and
    /// that goes, too.
    pub fn take_again(path: &str) -> io::Result<Self> {
        Self::take_over(path, true)
    }

    fn take_over(path: &str, was_ours: bool) -> io::Result<Self> {
        let path = Path::new(path);
        let refuse = |why: &str| Err(io::Error::other(format!("{}: {why}", path.display())));
        if !path.is_absolute() {
            return refuse("is not the absolute path of a directory");
        }
        let directory = Directory::at(path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => error,
            _ => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        })?;
        if was_ours {
            clear(&directory);
        } else if directory.names().iter().any(|name| is_of_one_life(name)) {
            return refuse("is not empty");
        }
        let Some(hold) = Hold::shared(&directory)? else {
            return refuse("somebody is removing it");
        };
        directory.open_or_make(LOGS)?;
        Ok(Self { directory: directory.into(), _hold: Some(hold.into()) })
    }

    /// Where the directory is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What the session is called.
    pub fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where the services' and workers' logs are.
    pub fn logs(&self) -> PathBuf {
        self.path().join(LOGS)
    }

    /// Listens for workers, drivers and observers.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        packet::listen_at(&*self.directory, SOCKET)
    }

    /// Connects to its node service, which must be of our user and on this machine, or in this
    /// container (F-3).
    pub fn connect(&self) -> io::Result<OwnedFd> {
        let socket = packet::connect_at(&*self.directory, SOCKET)?;
        if packet::peer(&socket)?.pid.is_none() {
            return Err(refused("its node service runs in another container".into()));
        }
        Ok(socket)
    }

    /// Whether its node service is there: it need not say a word, which one that hangs never does.
    pub fn is_there(&self) -> bool {
        matches!(Service::at(&self.directory, SOCKET), Ok(Some(_)))
    }

    /// Whether its node service will be there again: nobody listens, because that has cleared its
    /// directory, and yet somebody lives in it.
    pub fn begins_again(&self) -> bool {
        self.directory.about(SOCKET).is_err() && !self.has_ended()
    }

    /// Whether nobody lives in it any more.
    pub fn has_ended(&self) -> bool {
        matches!(Hold::alone(&self.directory), Ok(Some(_)))
    }

    /// Leaves where the dashboard is reached, and the token without which it answers nobody.
    pub fn write_dashboard(&self, address: &str, token: &str) -> io::Result<()> {
        self.directory.write("dashboard.token", token.as_bytes())?;
        self.directory.write("dashboard.address", address.as_bytes())
    }

    /// Leaves what the dashboard shows where TLS is spoken with it: a certificate and its key.
    pub fn write_dashboard_tls(&self, certificate: &str, key: &str) -> io::Result<()> {
        self.directory.write("dashboard.key", key.as_bytes())?;
        self.directory.write("dashboard.pem", certificate.as_bytes())
    }

    /// That certificate and its key; none: it is served on loopback alone.
    pub fn dashboard_tls(&self) -> io::Result<Option<(String, String)>> {
        match self.directory.read("dashboard.pem") {
            Ok(certificate) => Ok(Some((certificate, self.directory.read("dashboard.key")?))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The token without which the dashboard answers nobody.
    pub fn dashboard_token(&self) -> io::Result<String> {
        self.directory.read("dashboard.token")
    }

    /// The address of its dashboard, token included, for a browser; none: it has no dashboard.
    pub fn dashboard_url(&self) -> Option<String> {
        let address = reachable(&self.directory.read("dashboard.address").ok()?);
        let has_tls = self.dashboard_tls().ok()?.is_some();
        let is_here = address.parse().is_ok_and(|at: SocketAddr| at.ip().is_loopback());
        let scheme = if has_tls && !is_here { "https" } else { "http" };
        Some(format!("{scheme}://{address}/?token={}", self.dashboard_token().ok()?))
    }

    /// Leaves what is to be known of it when it has ended, if it is kept.
    pub fn record(&self, said: Vec<Body>) -> io::Result<()> {
        match crate::kept::how_many() {
            0 => Ok(()),
            _ => Record::write(&self.directory, said),
        }
    }

    /// Ends what is left of it, if nobody lives in it.
    pub fn end_if_left(self) {
        if let Ok(folder) = Folder::around(&self.directory) {
            folder.end_left(&self.name());
        }
    }

    /// The session was never one: all of it goes.
    pub fn discard(self) {
        if let Ok(folder) = Folder::around(&self.directory) {
            folder.remove(&self.name());
        }
    }

    /// The lock that is held of it.
    pub fn lock(&self) -> Option<BorrowedFd<'_>> {
        self._hold.as_deref().map(AsFd::as_fd)
    }

    /// Whoever looks for the node that was started here is to find it as the one that it is now.
    pub fn began_again(&self, node_id: &str, address: &str) -> io::Result<()> {
        Folder::around(&self.directory)?.began_again(&self.name(), node_id, address)
    }

    /// These are the control services of its node's cluster, the one that reigns first: whoever
    /// looks for it is to find it there.
    pub fn know_heads(&self, heads: &[String]) -> io::Result<()> {
        self.directory.write(HEADS, heads.join("\n").as_bytes())
    }

    /// All of it goes but its logs, and where control services are: it begins anew.
    pub fn clear(&self) {
        clear(&self.directory);
    }

    /// The session is over, and who calls this was the last to use it. Only what is to be looked at
    /// later stays, and not too much of the earlier ones.
    pub fn end(self) {
        let folder = Folder::around(&self.directory);
        crate::kept::strip(&self.directory);
        if let Ok(folder) = folder {
            if crate::kept::how_many() == 0 {
                folder.remove(&self.name());
            }
            drop(self);
            folder.tidy();
        }
    }
}

/// Whether a file of a session is none of those that are there before it begins and stay after it.
fn is_of_one_life(name: &str) -> bool {
    ![LOGS, LOCK, HEADS].contains(&name)
}

fn clear(directory: &Directory) {
    for name in directory.names().iter().filter(|name| is_of_one_life(name)) {
        directory.remove(name);
    }
}

/// What is bound at every address of the machine is reached at each; a browser needs one.
fn reachable(address: &str) -> String {
    match address.rsplit_once(':') {
        Some(("0.0.0.0", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]", port)) => format!("[::1]:{port}"),
        _ => address.to_owned(),
    }
}

/// The end of a file, as text, for messages.
pub fn tail(path: &Path, most: u64) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_one_that_a_browser_can_open() {
        assert_eq!(reachable("0.0.0.0:8265"), "127.0.0.1:8265");
        assert_eq!(reachable("[::]:8265"), "[::1]:8265");
        assert_eq!(reachable("10.0.0.1:8265"), "10.0.0.1:8265");
    }
}
