//! Ways to places outside that were declared on the command line, and to no others.
//!
//! Bytes are passed on as they come: what is said there is between the agent and that place, and Lodestar sees
//! none of it.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Most connections at once on one listener.
const MAX_CONNECTIONS: usize = 128;

/// How long a request for a way may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest request for a way.
const MAX_HEAD: usize = 8 << 10;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    host: String,
    port: u16,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no `HOST:PORT`");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: port.parse().map_err(|_| wrong())?,
        })
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Destination {
    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::other("no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(problem) => last = problem,
            }
        }
        Err(last)
    }
}

/// A port of the agent's loopback that leads to one place.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    pub(super) port: u16,
    to: Destination,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no `PORT=HOST:PORT`");
        let (port, to) = text.split_once('=').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port != 0);
        Ok(Self {
            port: port.ok_or_else(wrong)?,
            to: to.parse()?,
        })
    }
}

impl Forward {
    pub(super) fn shown(&self) -> String {
        format!("{} (as 127.0.0.1:{})", self.to, self.port)
    }

    pub(super) fn serve(&self, inside: TcpStream) {
        if let Ok(outside) = self.to.connect() {
            join(inside, outside);
        }
    }
}

/// The hosts that were declared.
#[derive(Debug)]
pub(super) struct Outlets(Vec<Destination>);

impl Outlets {
    pub(super) fn new(declared: Vec<Destination>) -> Self {
        Self(declared)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(Destination::to_string)
    }

    /// Answers one `CONNECT`, as clients ask a proxy; everything else is refused.
    pub(super) fn serve(&self, mut inside: TcpStream) {
        let answer = |stream: &mut TcpStream, line: &str| {
            let _ = stream.write_all(format!("HTTP/1.1 {line}\r\n\r\n").as_bytes());
        };
        let Some(to) = head(&mut inside).as_deref().and_then(asked_for) else {
            return answer(&mut inside, "405 Method Not Allowed");
        };
        if !self.0.contains(&to) {
            return answer(&mut inside, "403 Forbidden");
        }
        match to.connect() {
            Err(_) => answer(&mut inside, "502 Bad Gateway"),
            Ok(outside) => {
                answer(&mut inside, "200 Connection Established");
                join(inside, outside);
            }
        }
    }
}

/// A request to its empty line, and not a byte more.
fn head(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD || stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    stream.set_read_timeout(None).ok()?;
    String::from_utf8(head).ok()
}

fn asked_for(head: &str) -> Option<Destination> {
    let line = head.lines().next()?;
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("CONNECT"), Some(to), Some("HTTP/1.1" | "HTTP/1.0"), None) => to.parse().ok(),
        _ => None,
    }
}

/// Serves each connection on a thread of its own.
pub(super) fn each(listener: TcpListener, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let (serve, open) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().filter_map(Result::ok) {
            if open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
                open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (serve, open) = (Arc::clone(&serve), Arc::clone(&open));
            std::thread::spawn(move || {
                serve(stream);
                open.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
}

/// Passes bytes on in both directions until both have ended.
fn join(one: TcpStream, other: TcpStream) {
    let (Ok(one_again), Ok(other_again)) = (one.try_clone(), other.try_clone()) else {
        return;
    };
    let back = std::thread::spawn(move || pass(other_again, one_again));
    pass(one, other);
    let _ = back.join();
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_asked_for_by_connect_and_nothing_else() {
        let to = |host: &str, port| {
            Some(Destination {
                host: host.to_owned(),
                port,
            })
        };
        for (head, found) in [
            (
                "CONNECT a.example:443 HTTP/1.1\r\n\r\n",
                to("a.example", 443),
            ),
            (
                "CONNECT A.Example:443 HTTP/1.1\r\nHost: b\r\n\r\n",
                to("a.example", 443),
            ),
            ("CONNECT [::1]:8 HTTP/1.1\r\n\r\n", to("::1", 8)),
            ("GET http://a.example/ HTTP/1.1\r\n\r\n", None),
            ("CONNECT a.example HTTP/1.1\r\n\r\n", None),
            ("CONNECT a.example:99999 HTTP/1.1\r\n\r\n", None),
            ("CONNECT a.example:443 HTTP/1.1 x\r\n\r\n", None),
            ("CONNECT a@b.example:443 HTTP/1.1\r\n\r\n", None),
            ("", None),
        ] {
            assert_eq!(asked_for(head), found, "{head:?}");
        }
    }

    #[test]
    fn a_forward_names_both_ends() {
        assert!("8080=127.0.0.1:9".parse::<Forward>().is_ok());
        for wrong in ["8080", "0=a:1", "x=a:1", "8080=a", "8080=:1", "70000=a:1"] {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
    }
}
