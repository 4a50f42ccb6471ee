//! Spilling to URLs: over the S3 protocol, and to nobody.
#![cfg(feature = "url")]

mod s3_server;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use oxiray_spill::{Place, SpillError, Spillway, Target, Usage};
use s3_server::Server;

fn open(server: &Server) -> Result<Spillway, SpillError> {
    let target = Target::parse(&["s3://bucket/some/prefix".to_owned()])?;
    Spillway::open_with_options(&target, "session", &server.options())
}

fn read(spillway: &Spillway, place: &Place) -> Result<Vec<u8>, SpillError> {
    let mut bytes = vec![0; place.len as usize];
    spillway.read(place, &mut bytes).map(|()| bytes)
}

const NAME: &str = "/bucket/some/prefix/oxiray-spill-session/00000001";

#[test]
fn objects_go_to_a_bucket_and_come_back() {
    let server = Server::start();
    server.objects.lock().unwrap().insert("/bucket/some/prefix/other".to_owned(), vec![1]);
    let spillway = open(&server).expect("a bucket");
    let objects: [&[u8]; 3] = [b"first", &[2; 300_000], b""];
    let places = spillway.write(&objects).expect("written");
    for (place, object) in places.iter().zip(objects) {
        assert_eq!(read(&spillway, place).as_deref(), Ok(object));
    }
    assert_eq!(server.objects.lock().unwrap().len(), 2, "fused into one");
    spillway.delete(&places[0]);
    spillway.delete(&places[2]);
    assert!(server.objects.lock().unwrap().contains_key(NAME));
    spillway.delete(&places[1]);
    assert!(!server.objects.lock().unwrap().contains_key(NAME));
    assert_eq!(spillway.usage(), Usage::default());

    spillway.write(&objects).expect("written");
    drop(spillway);
    let left: Vec<_> = server.objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["/bucket/some/prefix/other"], "what is not ours stays");
}

#[test]
fn a_large_file_is_sent_in_parts() {
    let server = Server::start();
    let spillway = open(&server).expect("a bucket");
    let large: Vec<u8> = (0..40u32 << 20).map(|index| (index >> 8) as u8).collect();
    let places = spillway.write(&[&large, b"small"]).expect("written");
    assert_eq!(server.objects.lock().unwrap().len(), 1, "the parts were joined");
    assert!(read(&spillway, &places[0]).as_deref() == Ok(&large[..]));
    assert_eq!(read(&spillway, &places[1]).as_deref(), Ok(&b"small"[..]));
}

#[test]
fn damage_is_noticed() {
    let server = Server::start();
    let spillway = open(&server).expect("a bucket");
    let places = spillway.write(&[&[1; 100], &[2; 100]]).expect("written");
    let good = server.objects.lock().unwrap()[NAME].clone();
    let lost_with = |file: Vec<u8>, part: &str| {
        server.objects.lock().unwrap().insert(NAME.to_owned(), file);
        match read(&spillway, &places[1]) {
            Err(error @ SpillError::Lost { .. }) => {
                assert!(error.to_string().contains(part), "{error}");
            }
            other => panic!("not lost: {other:?}"),
        }
    };
    for at in [140, 240, 250, 260] {
        let mut changed = good.clone();
        changed[at] ^= 1;
        lost_with(changed, NAME.strip_prefix("/bucket/").unwrap());
    }
    for len in [0, 100, 132, 150, 263] {
        lost_with(good[..len].to_vec(), "truncated");
    }
    server.objects.lock().unwrap().insert(NAME.to_owned(), good);
    assert_eq!(read(&spillway, &places[1]), Ok(vec![2; 100]));
    server.objects.lock().unwrap().clear();
    match read(&spillway, &places[0]) {
        Err(SpillError::Lost { reason }) => assert!(reason.contains("removed"), "{reason}"),
        other => panic!("not lost: {other:?}"),
    }
}

/// Two threads at once, as the clerk's.
#[test]
fn reads_and_writes_go_on_at_the_same_time() {
    let server = Server::start();
    let spillway = open(&server).expect("a bucket");
    let place = spillway.write(&[&[1; 100_000]]).expect("written")[0];
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    spillway.write(&[&[2; 100_000]]).expect("written");
                }
            });
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(read(&spillway, &place), Ok(vec![1; 100_000]));
                }
            });
        }
    });
    assert_eq!(spillway.usage().objects, 41);
}

#[test]
fn an_endpoint_that_is_not_there_is_told_in_time() {
    // One refuses connections, the other takes them and says nothing.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for port in [gone, silent.local_addr().unwrap().port()] {
        let server = Server { port, objects: Default::default() };
        let begun = Instant::now();
        let error = open(&server).expect_err("nobody is there");
        assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
        assert!(matches!(error, SpillError::Url { .. }));
        assert!(error.to_string().contains("s3://bucket/some/prefix"), "{error}");
        eprintln!("after {:?}: {error}", begun.elapsed());
    }
}

#[test]
fn a_server_that_goes_away_loses_nothing() {
    let server = Server::start();
    let spillway = open(&server).expect("a bucket");
    let place = spillway.write(&[b"object"]).expect("written")[0];
    let kept = std::mem::take(&mut *server.objects.lock().unwrap());
    // Poisoned: every connection breaks without an answer.
    let objects = server.objects.clone();
    let _ = std::thread::spawn(move || {
        let _guard = objects.lock().unwrap();
        panic!("on purpose");
    })
    .join();
    match read(&spillway, &place) {
        Err(error @ SpillError::NotRead { .. }) => assert!(error.is_retryable(), "{error}"),
        other => panic!("it may still be there: {other:?}"),
    }
    let written = spillway.write(&[b"object"]);
    assert!(matches!(written, Err(SpillError::NotWritten { .. })), "{written:?}");
    server.objects.clear_poison();
    *server.objects.lock().unwrap() = kept;
    assert_eq!(read(&spillway, &place).as_deref(), Ok(&b"object"[..]));
}

#[test]
fn one_file_of_a_bucket_is_brought_here_or_nothing_is() {
    let server = Server::start();
    let package: Vec<u8> = (0..3_000_000u32).map(|index| index as u8).collect();
    server.objects.lock().unwrap().insert("/bucket/p/a.zip".to_owned(), package.clone());
    let folder = std::env::temp_dir().join(format!("oxiray-download-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let to = folder.join("a.zip");
    oxiray_spill::download("s3://bucket/p/a.zip", &to, &server.options()).expect("it is there");
    assert!(std::fs::read(&to).expect("a file") == package);
    let missing = folder.join("b.zip");
    let error = oxiray_spill::download("s3://bucket/p/b.zip", &missing, &server.options());
    assert!(error.expect_err("it is not there").contains("p/b.zip"));
    assert!(!missing.exists());
    std::fs::remove_dir_all(folder).expect("it is ours");
}
