//! Directories and files that their owner alone can use.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a directory, and sees that it is ours alone.
pub fn make_private(path: &Path) -> io::Result<()> {
    let cannot = |error| io::Error::other(format!("cannot make {}: {error}", path.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot)?;
    let about = fs::symlink_metadata(path)?;
    if about.uid() != rustix::process::getuid().as_raw() || !about.is_dir() {
        return Err(io::Error::other(format!(
            "{} belongs to another user; remove it, or set OXIRAY_TMPDIR to a directory of your \
             own",
            path.display()
        )));
    }
    if about.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Writes a new file that its owner alone can read from the first moment.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that a crashed process of the same number left.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
