//! The file that keeps the secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use oxiray_net::{Keyring, NetError, Secret};

/// A directory that is gone at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxiray-net-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("keys")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn it_is_kept_and_rotated() {
    let directory = Directory::new("rotate");
    let mut keyring = Keyring::new(Secret::generate());
    let first = keyring.current.clone();
    keyring.save(&directory.file()).unwrap();
    assert_eq!(Keyring::load(&directory.file()).unwrap(), keyring);
    keyring.rotate();
    assert_ne!(keyring.current, first);
    assert_eq!(keyring.previous, [first]);
    keyring.save(&directory.file()).unwrap();
    assert_eq!(Keyring::load(&directory.file()).unwrap(), keyring);
    keyring.drop_previous();
    assert!(keyring.previous.is_empty());
    assert_eq!(mode(&directory.file()), 0o600);
    // No draft is left.
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let directory = Directory::new("modes");
    let file = directory.file();
    Keyring::new(Secret::generate()).save(&file).unwrap();
    for bits in [0o640, 0o604, 0o620, 0o644, 0o601] {
        fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
        let error = Keyring::load(&file).unwrap_err();
        assert!(matches!(error, NetError::KeyFileExposed { mode, .. } if mode == bits));
        assert!(error.to_string().contains(&format!("chmod 600 {}", file.display())));
    }
    fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
    Keyring::load(&file).unwrap();
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    let directory = Directory::new("owner");
    let file = directory.file();
    Keyring::new(Secret::generate()).save(&file).unwrap();
    if std::os::unix::fs::chown(&file, Some(12345), None).is_err() {
        return; // Only the superuser can give a file away.
    }
    let error = Keyring::load(&file).unwrap_err();
    assert!(matches!(error, NetError::KeyFileOwner { owner: 12345, .. }), "{error}");
}

#[test]
fn what_is_wrong_in_it_is_told() {
    let directory = Directory::new("lines");
    let file = directory.file();
    assert!(matches!(Keyring::load(&file), Err(NetError::KeyFile { .. })));
    let keyring = Keyring::new(Secret::generate());
    keyring.save(&file).unwrap();
    let token = keyring.current.to_string();
    fs::write(&file, format!("\n{token}\n\n{}\n", &token[..70])).unwrap();
    let error = Keyring::load(&file).unwrap_err();
    assert!(matches!(error, NetError::KeyFileLine { line: 4, .. }), "{error}");
    assert!(!error.to_string().contains(&token[7..20]));
    fs::write(&file, "\n").unwrap();
    assert!(matches!(Keyring::load(&file), Err(NetError::KeyFileEmpty { .. })));
    let nowhere = directory.0.join("no/such/place");
    assert!(matches!(keyring.save(&nowhere), Err(NetError::KeyFile { .. })));
}
