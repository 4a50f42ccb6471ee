//! One file of a bucket, brought to this machine: packages of runtime environments come so.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use futures_util::StreamExt;
use object_store::{ObjectStoreExt, ObjectStoreScheme};
use tokio::runtime::Builder;
use url::Url;

use crate::bucket::{client, told};

/// Writes what is at a URL of a bucket into a file; or says why that cannot be. What could not be
/// written whole is no file.
pub fn download(url: &str, to: &Path, options: &[(String, String)]) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    let (scheme, path) = ObjectStoreScheme::parse(&parsed).map_err(|error| error.to_string())?;
    // See `bucket`.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = client(scheme, &parsed, options).map_err(|error| told(&error))?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let written = runtime.block_on(async {
        let mut pieces = store.get(&path).await.map_err(|error| told(&error))?.into_stream();
        let mut file = File::create(to).map_err(|error| error.to_string())?;
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| told(&error))?;
            file.write_all(&piece).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
    written.inspect_err(|_: &String| {
        let _ = std::fs::remove_file(to);
    })
}
