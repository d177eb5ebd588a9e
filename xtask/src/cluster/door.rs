//! The door between the host and the cluster's network: the one program of the cluster that stands in both.
//!
//! Inward it carries connections to the API server: the same port on the host's loopback as inside. Outward it is the
//! proxy (HTTP CONNECT on a unix socket) through which the API server calls webhooks that are named by URL, so that a
//! webhook may listen on the loopback of either side.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use super::network;

/// Loopback answers at once or not at all.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the API server may take to send its request, on a busy machine.
const REQUEST: Duration = Duration::from_secs(60);
/// A CONNECT request is two short lines; more is not one.
const REQUEST_CAP: u64 = 4096;

#[derive(Args)]
pub(crate) struct Door {
    /// The port of the API server, inside and on the host
    #[arg(long)]
    port: u16,
    /// The file that holds the cluster's network namespace
    #[arg(long)]
    network: PathBuf,
    /// The socket on which the API server asks for webhooks
    #[arg(long)]
    webhooks: PathBuf,
}

impl Door {
    /// Serves until it is killed.
    pub(super) fn serve(&self) -> Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let inward = TcpListener::bind(address).with_context(|| format!("failed to listen on {address}"))?;
        let _ = std::fs::remove_file(&self.webhooks);
        let outward = UnixListener::bind(&self.webhooks)
            .with_context(|| format!("failed to listen on `{}`", self.webhooks.display()))?;
        thread::scope(|scope| {
            scope.spawn(|| {
                for stream in outward.incoming() {
                    let network = self.network.clone();
                    accepted(stream, move |stream| to_webhook(stream, &network));
                }
            });
            for stream in inward.incoming() {
                let network = self.network.clone();
                accepted(stream, move |stream| to_api_server(stream, &network, address));
            }
        });
        Ok(())
    }
}

/// Serves one connection on a thread of its own; what goes wrong with it is said in the log and harms only itself.
fn accepted<S: Send + 'static>(stream: io::Result<S>, serve: impl FnOnce(S) -> Result<()> + Send + 'static) {
    let served = move || {
        if let Err(error) = stream.context("failed to accept a connection").and_then(serve) {
            eprintln!("{error:#}");
        }
    };
    if let Err(error) = thread::Builder::new().spawn(served) {
        eprintln!("failed to serve a connection: {error}");
    }
}

fn to_api_server(client: TcpStream, network: &Path, address: SocketAddr) -> Result<()> {
    let server = network::inside(network, || TcpStream::connect_timeout(&address, CONNECT))?
        .with_context(|| format!("failed to reach the API server at {address}"))?;
    client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).context("failed to set up a connection")?;
    carry(&client, &server);
    Ok(())
}

/// Answers one CONNECT: the cluster's own loopback is tried first, then the host's.
fn to_webhook(mut client: UnixStream, network: &Path) -> Result<()> {
    client.set_read_timeout(Some(REQUEST)).context("failed to set up a connection")?;
    let target = read_target(&client)?;
    client.set_read_timeout(None).context("failed to set up a connection")?;
    let connect = || TcpStream::connect_timeout(&target, CONNECT);
    let found = match target.ip().is_loopback() {
        true => network::inside(network, connect)?.or_else(|_| connect()),
        // Pods and Services: only the cluster's network knows them, and nothing else is ever called from the host.
        false => network::inside(network, connect)?,
    };
    let webhook = match found {
        Ok(webhook) => webhook,
        Err(error) => {
            let answer = format!("HTTP/1.1 502 Bad Gateway\r\n\r\nnothing listens on {target}: {error}\r\n");
            client.write_all(answer.as_bytes()).context("failed to refuse a connection")?;
            anyhow::bail!("nothing listens on {target}, neither in the cluster's network nor on the host: {error}");
        }
    };
    webhook.set_nodelay(true).context("failed to set up a connection")?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").context("failed to answer a CONNECT")?;
    carry(&client, &webhook);
    Ok(())
}

/// The address that a CONNECT request names. Nothing follows the request before it is answered, so buffering loses
/// nothing.
fn read_target(client: &UnixStream) -> Result<SocketAddr> {
    let mut lines = BufReader::new(client.take(REQUEST_CAP)).lines();
    let mut next = || lines.next().context("the request is cut off")?.context("failed to read a request");
    let request = next()?;
    while !next()?.is_empty() {}
    let target = request.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    let target = target.with_context(|| format!("not a CONNECT: {request:?}"))?;
    target.parse().with_context(|| format!("{target:?} is not an address with a port"))
}

/// A connection of either kind.
trait Side: Sync {
    /// Nothing more will be written; what comes back is still read.
    fn end(&self) -> io::Result<()>;
}

impl Side for TcpStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Side for UnixStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Carries bytes both ways until both sides have ended.
fn carry<A: Side, B: Side>(a: &A, b: &B)
where
    for<'s> &'s A: Read + Write,
    for<'s> &'s B: Read + Write,
{
    thread::scope(|scope| {
        scope.spawn(|| pump(a, b));
        pump(b, a);
    });
}

fn pump<A: Side, B: Side>(from: &A, to: &B)
where
    for<'s> &'s A: Read,
    for<'s> &'s B: Write,
{
    // A broken connection ends like one that was closed: the other side is told either way.
    let _ = io::copy(&mut &*from, &mut &*to);
    let _ = to.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(request: &[u8]) -> Result<SocketAddr> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(request).unwrap();
        ours.end().unwrap();
        read_target(&theirs)
    }

    #[test]
    fn a_connect_names_its_target() {
        let target = target_of(b"CONNECT 127.0.0.1:9443 HTTP/1.1\r\nHost: 127.0.0.1:9443\r\n\r\n").unwrap();
        assert_eq!(target, SocketAddr::from(([127, 0, 0, 1], 9443)));
    }

    #[test]
    fn anything_else_is_refused_with_what_it_was() {
        let said = |request: &[u8]| format!("{:#}", target_of(request).unwrap_err());
        assert_eq!(said(b"GET / HTTP/1.1\r\n\r\n"), "not a CONNECT: \"GET / HTTP/1.1\"");
        assert!(said(b"CONNECT somewhere HTTP/1.1\r\n\r\n").starts_with("\"somewhere\" is not an address"));
        assert_eq!(said(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n"), "the request is cut off");
    }

    #[test]
    fn bytes_go_both_ways_and_an_end_is_passed_on() {
        let (client, near) = UnixStream::pair().unwrap();
        let (far, server) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| carry(&near, &far));
            (&client).write_all(b"question").unwrap();
            client.end().unwrap();
            assert_eq!(io::read_to_string(&server).unwrap(), "question");
            (&server).write_all(b"answer").unwrap();
            server.end().unwrap();
            assert_eq!(io::read_to_string(&client).unwrap(), "answer");
        });
    }
}
