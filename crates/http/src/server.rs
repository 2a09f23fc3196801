//! The server: accepts connections, reads requests within limits, and asks a service.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;

use crate::body::{Room, Taken, Unread};
use crate::connections::{Connections, Slot};
use crate::{Access, Answer, Request};

/// The maximum size of a request header in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The maximum number of headers.
const MAX_HEADERS: usize = 64;
/// The minimum reading speed of a client, in bytes per second, after the time that every answer has.
const SLOWEST: u64 = 64 << 10;
/// How long a stopping server waits for open requests.
const FAREWELL: Duration = Duration::from_secs(10);

/// What clients may ask of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent connections. Beyond it, a new one closes the oldest idle one.
    pub connections: usize,
    /// The maximum size of a request's body in bytes; with 0, only GET and HEAD are supported.
    pub body: usize,
    /// The maximum size of the bodies of all open requests in bytes, not counting small ones.
    pub bodies: usize,
    /// Time limit for a request's headers, for its body, and for sending an empty answer.
    pub time: Duration,
    /// Time limit for computing an answer.
    pub work: Duration,
    /// How long a connection may stay idle between requests; with none, it is closed after one request.
    pub idle: Option<Duration>,
}

impl Default for Limits {
    /// For pages: 64 connections, each for one request without a body.
    fn default() -> Self {
        Self {
            connections: 64,
            body: 0,
            bodies: 0,
            time: Duration::from_secs(5),
            work: Duration::from_secs(60),
            idle: None,
        }
    }
}

/// Computes answers.
pub trait Service: Send + Sync + 'static {
    /// The answer to an accepted request.
    fn answer(self: Arc<Self>, request: Request) -> impl Future<Output = Answer> + Send;

    /// The answer to a refused request.
    fn refuse(&self, status: u16, words: &str) -> Answer {
        Answer::words(status, words)
    }
}

/// A server, bound to its address.
pub struct Server {
    listener: TcpListener,
    access: Access,
    limits: Limits,
    stop: Stop,
}

/// Stops a server from any thread: it accepts no new connections, and answers open requests.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Stops it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens at an address; port 0 is any free port. An address that others can reach needs a token, without which
    /// every request is refused.
    pub fn bind(
        address: IpAddr,
        port: u16,
        token: Option<&str>,
        limits: Limits,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(address, port))?;
        listener.set_nonblocking(true)?;
        let access = Access::new(address.is_loopback(), listener.local_addr()?.port(), token);
        Ok(Self {
            listener,
            access,
            limits,
            stop: Stop(watch::Sender::new(false)),
        })
    }

    /// The listening address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Its stop switch.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until it is stopped. Blocks the calling thread.
    ///
    /// # Errors
    /// When the threads that serve cannot be started.
    pub fn serve<S: Service>(self, service: S) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(self.limits.connections)
            .thread_name("serve")
            .enable_all()
            .build()?;
        let served = Arc::new(Served {
            service: Arc::new(service),
            access: self.access,
            limits: self.limits,
            room: Room::new(self.limits.bodies),
        });
        runtime.block_on(accept(self.listener, served, self.stop.0.subscribe()))?;
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(())
    }
}

struct Served<S> {
    service: Arc<S>,
    access: Access,
    limits: Limits,
    room: Room,
}

async fn accept<S: Service>(
    listener: TcpListener,
    served: Arc<Served<S>>,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let connections = Connections::new(served.limits.connections);
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            // Too many open files, or a connection that was already closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        // Without a slot the connection is closed, and the client retries.
        let Some(slot) = connections.admit() else {
            continue;
        };
        let number = slot.number();
        let task = converse(served.clone(), stream, slot, stopped.clone());
        connections.serve(number, tasks.spawn(task));
    }
    drop(listener);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, all).await;
    Ok(())
}

/// State shared by a connection and its requests.
struct Conversation {
    slot: Slot,
    /// When the connection is closed, whatever its state.
    deadline: Mutex<Instant>,
}

impl Conversation {
    fn give(&self, time: Duration) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + time;
    }

    fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves one connection until it is closed, is too slow, or the server stops.
async fn converse<S: Service>(
    served: Arc<Served<S>>,
    stream: tokio::net::TcpStream,
    slot: Slot,
    mut stopped: watch::Receiver<bool>,
) {
    let limits = served.limits;
    let conversation = Arc::new(Conversation {
        slot,
        deadline: Mutex::new(Instant::now() + limits.time * 2),
    });
    let talk = conversation.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (served, talk) = (served.clone(), talk.clone());
        async move { Ok::<_, Infallible>(served.respond(request, talk).await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.idle.unwrap_or(limits.time))
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_HEADERS)
            .keep_alive(limits.idle.is_some())
            .title_case_headers(true)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut is_stopping = false;
    loop {
        let deadline = conversation.deadline();
        tokio::select! {
            _ = &mut connection => return,
            () = tokio::time::sleep_until(deadline.into()) => {
                if conversation.deadline() <= Instant::now() {
                    return;
                }
            }
            _ = stopped.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

impl<S: Service> Served<S> {
    async fn respond(
        &self,
        request: hyper::Request<Incoming>,
        talk: Arc<Conversation>,
    ) -> hyper::Response<Answered> {
        talk.give(self.limits.time + self.limits.work);
        let (head, body) = request.into_parts();
        let read = self.read(&head, body).await;
        // Until here the connection may be closed for others: its body may never arrive.
        talk.slot.is_answered.store(true, Ordering::Release);
        let answer = match read {
            Ok((request, _taken)) => {
                let tag = request.if_none_match.clone();
                let work = self.service.clone().answer(request);
                match tokio::time::timeout(self.limits.work, work).await {
                    Ok(answer) => answer.known(tag.as_deref()),
                    Err(_) => self.service.refuse(503, "the response took too long"),
                }
            }
            Err(answer) => answer,
        };
        let is_served = !(400..500).contains(&answer.status());
        let send = self.limits.time + Duration::from_secs(answer.size() / SLOWEST);
        talk.give(send.max(self.limits.idle.unwrap_or_default()));
        answer.into_response().map(|body| Answered {
            body,
            talk,
            is_served,
        })
    }

    /// The request with its body, or the answer to a refused one.
    async fn read(
        &self,
        head: &hyper::http::request::Parts,
        body: Incoming,
    ) -> Result<(Request, Option<Taken>), Answer> {
        let takes_posts = self.limits.body > 0;
        let refuse = |status, words: &str| {
            let answer = self.service.refuse(status, words);
            match status {
                401 => answer.header("WWW-Authenticate", "Bearer realm=\"runner\"".into()),
                405 if takes_posts => answer.header("Allow", "GET, HEAD, POST".into()),
                405 => answer.header("Allow", "GET, HEAD".into()),
                _ => answer,
            }
        };
        let mut request =
            Request::of(head, takes_posts).map_err(|(status, words)| refuse(status, words))?;
        match self.access.check(&request) {
            Ok(None) => {}
            // Removes the token from the address, where it would be visible and saved.
            Ok(Some(cookie)) => {
                return Err(Answer::redirect(&request.path).header("Set-Cookie", cookie));
            }
            Err((status, words)) => return Err(refuse(status, words)),
        }
        if !request.is_post {
            return Ok((request, None));
        }
        let body = self.room.read(body, self.limits.body);
        match tokio::time::timeout(self.limits.time, body).await {
            Ok(Ok((body, taken))) => {
                request.body = body;
                Ok((request, Some(taken)))
            }
            Ok(Err(Unread::TooLarge)) => {
                let words = format!("a request may have at most {} bytes", self.limits.body);
                Err(refuse(413, &words))
            }
            Ok(Err(Unread::Full)) => {
                let answer = refuse(503, "too many large requests are open");
                Err(answer.header("Retry-After", "1".to_owned()))
            }
            Ok(Err(Unread::Incomplete)) => Err(refuse(400, "the request's body is incomplete")),
            Err(_) => Err(refuse(408, "the request timed out")),
        }
    }
}

/// A body that reports when it has been sent: its connection is then idle, and may be closed for another.
struct Answered {
    body: Full<Bytes>,
    talk: Arc<Conversation>,
    /// Whether the request was good, by its status. A client that sends only others gives way like one that sends nothing.
    is_served: bool,
}

impl Drop for Answered {
    fn drop(&mut self) {
        if self.is_served {
            self.talk.slot.was_served.store(true, Ordering::Release);
        }
        self.talk.slot.is_answered.store(false, Ordering::Release);
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
