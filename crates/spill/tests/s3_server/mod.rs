//! As much of the S3 protocol as spilling uses, in memory, on a port of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

pub(crate) struct Server {
    pub(crate) port: u16,
    /// By path: `/bucket/key`. Parts of an upload under way are `/bucket/key?number`.
    pub(crate) objects: Objects,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let objects = Objects::default();
        let shared = objects.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let objects = shared.clone();
                std::thread::spawn(move || serve(&stream, &objects));
            }
        });
        Self { port, objects }
    }

    pub(crate) fn options(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("aws_endpoint", endpoint.as_str()),
            ("aws_allow_http", "true"),
            ("aws_region", "us-east-1"),
            ("aws_access_key_id", "id"),
            ("aws_secret_access_key", "secret"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec()
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    range: Option<(usize, usize)>,
    body: Vec<u8>,
}

fn serve(stream: &TcpStream, objects: &Objects) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = receive(&mut reader) {
        let (status, headers, body) = answer(&request, objects);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"tag\"\r\n\
             Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{headers}\r\n"
        );
        let body = if request.method == "HEAD" { &[][..] } else { &body };
        let mut stream = stream;
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
            return;
        }
    }
}

fn receive(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (mut length, mut range) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "range" => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()?));
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), range, body })
}

type Answer = (&'static str, String, Vec<u8>);

fn answer(request: &Request, objects: &Objects) -> Answer {
    let mut objects = objects.lock().expect("not poisoned");
    let path = request.path.clone();
    let argument = |name: &str| {
        let mut pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.replace("%2F", "/"))
    };
    let plain = |body: String| ("200 OK", String::new(), body.into_bytes());
    match request.method.as_str() {
        "PUT" => {
            let part = argument("partNumber").map(|number| format!("?{number:0>5}"));
            objects.insert(path + &part.unwrap_or_default(), request.body.clone());
            plain(String::new())
        }
        "POST" if request.query.starts_with("uploads") => plain(
            "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
                .to_owned(),
        ),
        "POST" => {
            let parts: Vec<String> = objects
                .keys()
                .filter(|key| key.starts_with(&format!("{path}?")))
                .cloned()
                .collect();
            let whole = parts.iter().flat_map(|part| objects.remove(part).expect("listed"));
            let whole = whole.collect();
            objects.insert(path, whole);
            plain(
                "<CompleteMultipartUploadResult><ETag>tag</ETag></CompleteMultipartUploadResult>"
                    .to_owned(),
            )
        }
        "DELETE" => {
            objects.remove(&path);
            ("204 No Content", String::new(), Vec::new())
        }
        "GET" if argument("list-type").is_some() => {
            let bucket = format!("{}/", path.trim_end_matches('/'));
            let prefix = bucket.clone() + &argument("prefix").unwrap_or_default();
            let listed = objects.iter().filter(|(key, _)| key.starts_with(&prefix));
            let contents: String = listed
                .map(|(key, value)| {
                    format!(
                        "<Contents><Key>{}</Key><Size>{}</Size><ETag>tag</ETag>\
                         <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                        &key[bucket.len()..],
                        value.len()
                    )
                })
                .collect();
            plain(format!("<ListBucketResult>{contents}</ListBucketResult>"))
        }
        _ => match objects.get(&path) {
            None => ("404 Not Found", String::new(), b"<Error/>".to_vec()),
            Some(found) => match request.range {
                Some((first, _)) if first >= found.len() => {
                    ("416 Range Not Satisfiable", String::new(), Vec::new())
                }
                Some((first, last)) => {
                    let last = last.min(found.len() - 1);
                    let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", found.len());
                    ("206 Partial Content", range, found[first..=last].to_vec())
                }
                None => ("200 OK", String::new(), found.clone()),
            },
        },
    }
}
