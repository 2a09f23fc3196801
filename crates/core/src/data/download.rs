//! Files from a web server, checked by their digest.

use crate::diagnostic::Reason;
use std::path::Path;

/// A server that sends nothing for this long is abandoned.
#[cfg(feature = "native")]
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// A download that takes longer is abandoned.
#[cfg(feature = "native")]
const TOTAL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Downloads `url` to `path`, which appears only when it is complete and its sha256 is `sha256`.
#[cfg(feature = "native")]
pub(super) fn download(
    url: &str,
    path: &Path,
    sha256: &str,
    progress: &mut dyn FnMut(&str, u64, Option<u64>),
) -> Result<(), Reason> {
    use std::io::{Read, Write};

    use sha2::{Digest, Sha256};

    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(TOTAL_TIMEOUT))
        .build()
        .into();
    let mut response = agent.get(url).call().map_err(|e| e.to_string())?;
    let total = response.body().content_length();
    let mut reader = response.body_mut().as_reader();
    let mut partial = tempfile::Builder::new()
        .prefix(".partial-")
        .tempfile_in(path.parent().unwrap_or(Path::new(".")))
        .map_err(|e| e.to_string())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        let n = reader.read(&mut buffer).map_err(|e| e.to_string())?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
        partial.write_all(&buffer[..n]).map_err(|e| e.to_string())?;
        received += n as u64;
        progress(&name, received, total);
    }
    if super::hex(&hasher.finalize()) != sha256 {
        return Err(Reason(format!("{name} has the wrong sha256 sum")));
    }
    partial.persist(path).map_err(|e| e.error.to_string())?;
    Ok(())
}

/// Without the feature `native` nothing is downloaded.
#[cfg(not(feature = "native"))]
pub(super) fn download(
    _url: &str,
    _path: &Path,
    _sha256: &str,
    _progress: &mut dyn FnMut(&str, u64, Option<u64>),
) -> Result<(), Reason> {
    Err("this build cannot download files".into())
}

#[cfg(all(test, feature = "native"))]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request on loopback with `head` and `body`, and closes.
    fn serve(head: String, body: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = BufReader::new(stream.try_clone().unwrap()).lines();
            request.map_while(Result::ok).find(String::is_empty);
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body).unwrap();
        });
        format!("http://{address}/")
    }

    fn download_from(url: &str) -> (Result<(), Reason>, Vec<String>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let path = folder.path().join("file.gz");
        let mut seen = 0;
        let result = download(url, &path, sha256, &mut |_, received, _| seen = received);
        let names = fs::read_dir(folder.path()).unwrap().flatten();
        let names = names
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        (result, names, seen)
    }

    fn ok(length: usize) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    }

    #[test]
    fn a_whole_download_gets_its_name() {
        let (result, names, seen) = download_from(&serve(ok(5), b"hello"));
        assert_eq!(
            (result, names, seen),
            (Ok(()), vec!["file.gz".to_owned()], 5)
        );
    }

    #[test]
    fn a_partial_or_wrong_download_leaves_nothing() {
        let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        for (head, body) in [(ok(9), &b"hello"[..]), (ok(5), b"jello"), (missing, b"")] {
            let (result, names, _) = download_from(&serve(head, body));
            assert!(result.is_err());
            assert!(names.is_empty(), "{names:?}");
        }
    }
}
