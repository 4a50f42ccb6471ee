//! The directory of a cluster on this machine: its keyring and, on the head, its state.
//!
//! In the sessions' folder: `clusters/PORT` on the head, `clusters/HOST-PORT` elsewhere. It outlives
//! services that crash, so that they are started again with the state and the token they had.
//! `oxiray stop` removes it, unless the cluster's state is where the user wanted it: then the
//! cluster is meant to come back, and its members know it by its token.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use oxiray_net::{Identity, Keyring, Secret, Security};

use crate::commands::refuse;
use oxiray_session::Folder;

/// How the cluster's secret is told.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct Token {
    /// The cluster's token, as `oxiray token` says it on the head machine. Others can see it in
    /// `ps`: OXIRAY_TOKEN and --token-file keep it from them.
    #[arg(long, conflicts_with = "insecure")]
    token: Option<String>,
    /// A file with the token, that its owner alone can read. On the head it is made if it is not
    /// there.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "insecure"])]
    token_file: Option<PathBuf>,
    /// No encryption and no token: whoever reaches the ports can run programs as you.
    #[arg(long)]
    pub(super) insecure: bool,
}

impl Token {
    /// Of the arguments, else of the environment.
    fn told(&self) -> io::Result<Option<Secret>> {
        let from_environment = oxiray_settings::TOKEN.text();
        let text = match (&self.token, &self.token_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(_)) => None,
            (None, None) => from_environment,
        };
        text.map(|text| Secret::parse(&text).map_err(io::Error::other)).transpose()
    }
}

/// The directory of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// Among the clusters of this machine.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// In the directory of a head whose state is elsewhere.
const COMES_BACK: &str = "comes-back";

/// Removes what the clusters had on this machine that have no node here any more, unless they are
/// to be found again.
pub(super) fn forget_unused(folder: &Folder) {
    for name in folder.unused_clusters() {
        if folder.cluster(&name).is_ok_and(|home| home.about(COMES_BACK).is_err()) {
            folder.remove_cluster(&name);
        }
    }
}

impl Home {
    /// The one of that name in the folder.
    pub(super) fn make(folder: &Folder, name: &str) -> io::Result<Self> {
        let path = folder.make_cluster(name)?.path().to_owned();
        Ok(Self { name: name.to_owned(), path })
    }

    /// The state is where the user wants it: it outlives `oxiray stop`, and the token with it.
    pub(super) fn comes_back(folder: &Folder, name: &str) -> io::Result<()> {
        folder.cluster(name)?.write(COMES_BACK, b"")
    }

    pub(super) fn store(&self) -> PathBuf {
        self.path.join("state")
    }

    /// The head's keyring, made if there is none; empty: an insecure cluster.
    pub(super) fn keyring_of_head(&self, token: &Token) -> io::Result<PathBuf> {
        if token.insecure {
            return Ok(PathBuf::new());
        }
        let path = match &token.token_file {
            Some(path) => std::path::absolute(path)?,
            None => self.path.join("keyring"),
        };
        let existing = if path.exists() { Some(load(&path)?) } else { None };
        let keyring = match (token.told()?, existing) {
            (Some(secret), existing) => {
                let same = existing.filter(|keyring| keyring.current == secret);
                same.unwrap_or_else(|| Keyring::new(secret))
            }
            (None, Some(existing)) => existing,
            (None, None) => Keyring::new(Secret::generate()),
        };
        keyring.save(&path).map_err(io::Error::other)?;
        Ok(path)
    }

    /// The keyring of a node that joins: a copy of what it was told, since tokens may change.
    pub(super) fn keyring_of_member(&self, token: &Token) -> io::Result<PathBuf> {
        if token.insecure {
            return Ok(PathBuf::new());
        }
        let path = self.path.join("keyring");
        let told = match (token.told()?, &token.token_file) {
            (Some(secret), _) => Some(Keyring::new(secret)),
            (None, Some(file)) => Some(load(file)?),
            (None, None) => None,
        };
        match told {
            Some(keyring) => keyring.save(&path).map_err(io::Error::other)?,
            None if path.exists() => {}
            None => {
                return refuse(
                    "a token is needed to join: run `oxiray token` on the head machine, and give \
                     what it says with --token, --token-file or OXIRAY_TOKEN",
                );
            }
        }
        Ok(path)
    }
}

pub(crate) fn load(path: &Path) -> io::Result<Keyring> {
    Keyring::load(path).map_err(io::Error::other)
}

/// How connections are protected, by a keyring's file; empty: not at all.
pub(crate) fn security(keyring: &Path) -> io::Result<Security> {
    if keyring.as_os_str().is_empty() {
        return Ok(Security::Insecure);
    }
    Ok(Security::Tls(Identity::new(&load(keyring)?).map_err(io::Error::other)?))
}
