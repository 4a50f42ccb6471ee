//! Spilling to an object store behind a URL: a file is an object of it.
//!
//! The client is asynchronous and everybody here waits: it gets a small runtime that runs only
//! while somebody does. Several threads may wait at once.
//!
//! Nothing waits for ever: connecting, silence and retries are bounded, so that an endpoint that
//! does not answer is told within a minute.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig,
};
use oxiray_sys::process::block_signals_in_this_thread;
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::record::{Check, Records, SEAL, file_len};
use crate::target::without_credentials;
use crate::{Place, SpillError};

const CONNECT: Duration = Duration::from_secs(5);
/// How long a server may be silent. Sending a part falls under it as well.
const SILENCE: Duration = Duration::from_secs(40);
/// No new attempt after this time.
const RETRY: Duration = Duration::from_secs(15);
const RETRIES: usize = 3;
/// For what is not worth waiting for long: the first look, and tidying up after a failure.
const BRIEFLY: Duration = Duration::from_secs(10);
/// For removing everything at the end.
const AT_THE_END: Duration = Duration::from_secs(60);

/// Bytes sent at a time. Larger files are sent in parts of this size, [`PARTS`] at once, which is
/// also what bounds the memory for copies.
const PART: usize = 16 << 20;
const PARTS: usize = 4;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// For messages.
    url: String,
    store: Box<dyn ObjectStore>,
    /// What all names of this session begin with.
    prefix: Path,
    /// Whether it can take a file in parts, and list what it has. Plain web servers cannot.
    is_full_store: bool,
    runtime: Runtime,
}

impl Bucket {
    pub(crate) fn open(
        url: &str,
        session: &str,
        options: &[(String, String)],
    ) -> Result<Self, SpillError> {
        let shown = without_credentials(url);
        let unusable = |reason: String| SpillError::Url { url: without_credentials(url), reason };
        let parsed = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
        let (scheme, path) =
            ObjectStoreScheme::parse(&parsed).map_err(|error| unusable(error.to_string()))?;
        let is_full_store = scheme != ObjectStoreScheme::Http;
        // Several may be linked in, and then none is chosen by itself. Fails if one was chosen.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = client(scheme, &parsed, options).map_err(|error| unusable(told(&error)))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            // Names are looked up on threads of its own.
            .max_blocking_threads(2)
            .on_thread_start(block_signals_in_this_thread)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let prefix = path.join(format!("oxiray-spill-{session}"));
        let bucket = Self { url: shown, store, prefix, is_full_store, runtime };
        bucket.probe().map_err(unusable)?;
        Ok(bucket)
    }

    /// Whether an object can be made and removed.
    fn probe(&self) -> Result<(), String> {
        let name = self.prefix.clone().join("probe");
        let tried = self.within(BRIEFLY, async {
            self.store.put(&name, Bytes::from_static(b"oxiray").into()).await?;
            self.store.delete(&name).await
        });
        match tried {
            Some(result) => result.map_err(|error| told(&error)),
            None => Err(format!("no answer within {} seconds", BRIEFLY.as_secs())),
        }
    }

    /// Writes a file, all or nothing.
    pub(crate) fn write(&self, file: u64, objects: &[&[u8]]) -> Result<Vec<Place>, SpillError> {
        let name = self.name(file);
        let len = file_len(objects);
        let mut records = Records::new(file, objects);
        let written = if self.is_full_store && len > 2 * PART as u64 {
            self.runtime.block_on(self.upload(&name, &mut records))
        } else {
            // All of it is in memory already, so its length fits.
            let whole = next_part(&mut records, len as usize).unwrap_or_default();
            self.runtime.block_on(self.store.put(&name, whole.into())).map(drop)
        };
        written.map(|()| records.into_places()).map_err(|error| SpillError::NotWritten {
            bytes: len,
            reason: format!("{}: {}", self.url, told(&error)),
        })
    }

    async fn upload(&self, name: &Path, records: &mut Records<'_>) -> Result<(), Error> {
        let mut upload = self.store.put_multipart(name).await?;
        let sent = async {
            loop {
                let mut parts = Vec::new();
                while parts.len() < PARTS
                    && let Some(part) = next_part(records, PART)
                {
                    parts.push(upload.put_part(part.into()));
                }
                if parts.is_empty() {
                    return upload.complete().await.map(drop);
                }
                try_join_all(parts).await?;
            }
        }
        .await;
        if sent.is_err() {
            // Parts of a file that is never completed are kept, and billed, until told otherwise.
            let _ = tokio::time::timeout(BRIEFLY, upload.abort()).await;
        }
        sent
    }

    /// Reads an object back, and checks it.
    pub(crate) fn read(&self, place: &Place, into: &mut [u8]) -> Result<(), SpillError> {
        let name = self.name(place.file);
        let lost =
            |what: &str| SpillError::Lost { reason: format!("{name} at {} {what}", self.url) };
        let mut check = Check::new(place);
        let mut seal = [0; SEAL];
        let end = place.offset + place.len + SEAL as u64;
        let received = self.runtime.block_on(async {
            let options = GetOptions::new().with_range(Some(place.offset..end));
            let mut body = self.store.get_opts(&name, options).await?.into_stream();
            let mut filled = 0;
            while let Some(mut bytes) = body.try_next().await? {
                let payload = bytes.split_to(bytes.len().min(into.len().saturating_sub(filled)));
                if !payload.is_empty() {
                    into[filled..filled + payload.len()].copy_from_slice(&payload);
                    check.update(&payload);
                    filled += payload.len();
                }
                if !bytes.is_empty() {
                    let at = filled - into.len();
                    // A server that sends more than asked for does not overrun anything.
                    let sealing = bytes.len().min(SEAL - at.min(SEAL));
                    seal[at..at + sealing].copy_from_slice(&bytes[..sealing]);
                    filled += sealing;
                }
            }
            Ok(filled)
        });
        match received {
            Ok(filled) if filled < into.len() + SEAL => Err(lost("was truncated")),
            Ok(_) => {
                check.seal(&seal).map_err(lost)?;
                check.finish().map_err(lost)
            }
            Err(Error::NotFound { .. }) => Err(lost("was removed")),
            // Asking for more than there is fails as well: only the length tells.
            Err(error) => match self.within(BRIEFLY, self.store.head(&name)) {
                Some(Err(Error::NotFound { .. })) => Err(lost("was removed")),
                Some(Ok(found)) if found.size < end => Err(lost("was truncated")),
                _ => Err(SpillError::NotRead { reason: format!("{}: {}", self.url, told(&error)) }),
            },
        }
    }

    /// Removes a file. If that fails it goes at the end of the session.
    pub(crate) fn remove(&self, file: u64) {
        let name = self.name(file);
        match self.within(BRIEFLY, self.store.delete(&name)) {
            Some(Ok(()) | Err(Error::NotFound { .. })) => {}
            Some(Err(error)) => {
                tracing::warn!("cannot remove {name} at {}: {}", self.url, told(&error));
            }
            None => tracing::warn!("cannot remove {name} at {}: no answer", self.url),
        }
    }

    /// Removes all that this session made: the `files` known, and what a failed write or removal
    /// may have left.
    pub(crate) fn clear(&self, files: &[u64]) {
        let tidied = self.within(AT_THE_END, async {
            let mut names: Vec<Path> = files.iter().map(|&file| self.name(file)).collect();
            if self.is_full_store {
                let listed = self.store.list(Some(&self.prefix)).map_ok(|found| found.location);
                names.extend(listed.try_collect::<Vec<_>>().await?);
                names.sort_unstable();
                names.dedup();
            }
            let names = stream::iter(names).map(Ok).boxed();
            let mut removed = self.store.delete_stream(names);
            while let Some(result) = removed.next().await {
                match result {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        let reason = match tidied {
            Some(Ok(())) => return,
            Some(Err(error)) => told(&error),
            None => format!("it took more than {} seconds", AT_THE_END.as_secs()),
        };
        tracing::warn!("cannot remove all of {} at {}: {reason}", self.prefix, self.url);
    }

    fn name(&self, file: u64) -> Path {
        self.prefix.clone().join(format!("{file:08}"))
    }

    /// Waits for `future`, but not longer than `limit`.
    fn within<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { tokio::time::timeout(limit, future).await.ok() })
    }
}

/// A copy of the next `limit` bytes or a little more, if any are left.
fn next_part(records: &mut Records<'_>, limit: usize) -> Option<Bytes> {
    let mut part = BytesMut::new();
    while part.len() < limit
        && let Some(piece) = records.next()
    {
        if part.is_empty() {
            part.reserve(limit + crate::record::CHUNK);
        }
        part.extend_from_slice(piece.bytes());
    }
    (!part.is_empty()).then(|| part.freeze())
}

/// The client for `url`, set up by environment variables of the usual names and then `options`.
pub(crate) fn client(
    scheme: ObjectStoreScheme,
    url: &Url,
    options: &[(String, String)],
) -> Result<Box<dyn ObjectStore>, Error> {
    let limits = ClientOptions::new()
        .with_connect_timeout(CONNECT)
        // A large object may take as long as it needs, if only it moves.
        .with_timeout_disabled()
        .with_read_timeout(SILENCE)
        .with_allow_http(url.scheme() == "http");
    let retry =
        RetryConfig { max_retries: RETRIES, retry_timeout: RETRY, ..RetryConfig::default() };
    macro_rules! set_up {
        ($builder:expr, $variables:expr) => {{
            let mut builder = $builder.with_client_options(limits).with_retry(retry);
            let variables = std::env::vars_os()
                .filter_map(|(key, value)| {
                    Some((key.into_string().ok()?, value.into_string().ok()?))
                })
                // A web server has no variables of its own.
                .filter(|(key, _)| !$variables.is_empty() && key.starts_with($variables));
            for (key, value) in variables.chain(options.iter().cloned()) {
                if let Ok(key) = key.to_ascii_lowercase().parse() {
                    builder = builder.with_config(key, value);
                }
            }
            Box::new(builder.build()?)
        }};
    }
    Ok(match scheme {
        ObjectStoreScheme::Memory => Box::new(InMemory::new()),
        ObjectStoreScheme::AmazonS3 => {
            // Removing one at a time is understood by all that call themselves compatible.
            let builder = AmazonS3Builder::new().with_disable_bulk_delete(true);
            set_up!(builder.with_url(url.as_str()), "AWS_")
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            set_up!(GoogleCloudStorageBuilder::new().with_url(url.as_str()), "GOOGLE_")
        }
        ObjectStoreScheme::MicrosoftAzure => {
            set_up!(MicrosoftAzureBuilder::new().with_url(url.as_str()), "AZURE_")
        }
        ObjectStoreScheme::Http => {
            let root = &url[..url::Position::BeforePath];
            set_up!(HttpBuilder::new().with_url(root), "")
        }
        other => {
            return Err(Error::NotSupported {
                source: format!("{other:?} is not supported").into(),
            });
        }
    })
}

/// An error with its causes, on one line.
pub(crate) fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        // Many repeat their cause.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
