//! Reports of a results folder, or predictions of a trained network, over HTTP.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Sink, quiet, refresh_jobs};
use crate::error::Error;
use crate::model::{self, Model, refusal};
use crate::service::{self, Predictions};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::ExperimentFolder;
use runner_core::show::plain_io_error;
pub use runner_http::Stop;
use runner_http::{Limits, Server, check_token};
use runner_report::serve::Reports;

/// How often clusters are asked for the state of jobs.
const JOBS: Duration = Duration::from_secs(5);

/// Interval between looks at whether the server was stopped.
const TICK: Duration = Duration::from_millis(100);

/// The content and the address of a server.
#[derive(Clone, Debug)]
pub struct Serve {
    /// A results folder or the folder of an experiment; for predictions a run, an experiment or a capsule.
    pub folder: PathBuf,
    /// The content.
    pub content: Content,
    /// The address to listen on; any address except a local one needs a token.
    pub listen: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
    /// The token that every request needs.
    pub token: Option<String>,
}

/// The content that a server provides.
#[derive(Clone, Debug)]
pub enum Content {
    /// Reports, updated while runs continue.
    Reports,
    /// Predictions of a trained network.
    Predictions {
        /// The options for opening the run.
        model: model::Options,
        /// The name of the model, and limits.
        service: service::Options,
    },
}

impl Serve {
    /// Reports, to this machine only, at any free port.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            content: Content::Reports,
            listen: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            token: None,
        }
    }
}

/// A server that is bound to its address.
pub struct Serving {
    server: Server,
    address: SocketAddr,
    what: String,
    answers: Answers,
    folder: PathBuf,
}

enum Answers {
    Reports(Box<Reports>),
    Predictions(Box<Predictions>),
}

/// Opens what is served, and binds a server to its address; [`Serving::run`] serves.
///
/// # Errors
///
/// [`Error::Refused`] if the folder or the run cannot be opened, the address is not available, or other machines can
/// reach it and there is no token.
///
/// ```
/// use burn_runner::ops::{self, Serve};
///
/// let folder = tempfile::tempdir().unwrap();
/// let mut options = Serve::new(folder.path());
/// let serving = ops::serve(&options, &ops::quiet)?;
/// assert!(serving.address().ip().is_loopback());
/// serving.stop().stop();
/// serving.run()?;
///
/// options.listen = "0.0.0.0".parse().unwrap();
/// let error = ops::serve(&options, &ops::quiet).err().unwrap();
/// assert_eq!(error.to_string(), "other machines can reach 0.0.0.0, but there is no token");
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn serve(options: &Serve, _: &Sink<'_>) -> Result<Serving, Error> {
    refuse_misuse(options)?;
    match &options.content {
        Content::Reports => reports(options),
        Content::Predictions { model, service } => predictions(options, model, service),
    }
}

fn reports(options: &Serve) -> Result<Serving, Error> {
    let bound = Reports::of(&options.folder).and_then(|reports| {
        let server = bind(options, Limits::default())?;
        Ok(Serving {
            address: server.address()?,
            server,
            what: format!("the reports of {}", options.folder.display()),
            answers: Answers::Reports(Box::new(reports)),
            folder: options.folder.clone(),
        })
    });
    bound.map_err(|e| not_bound(options, &e))
}

fn predictions(
    options: &Serve,
    model: &model::Options,
    service: &service::Options,
) -> Result<Serving, Error> {
    let model = Model::open(&options.folder, model).and_then(Model::predicting);
    let model = model.map_err(Error::Refused)?;
    let requests = model.incoming(Path::new("the request")).check();
    requests.map_err(|e| Error::Refused(refusal(&e)))?;
    let run = model.plan().id.clone();
    let limits = Limits {
        connections: 256,
        body: service::MAX_BODY,
        bodies: 4 * service::MAX_BODY,
        time: Duration::from_secs(10),
        work: Duration::from_secs(60),
        idle: Some(Duration::from_secs(75)),
    };
    let bound = bind(options, limits).and_then(|server| {
        let predictions = Predictions::of(model, service)?;
        Ok(Serving {
            address: server.address()?,
            server,
            what: format!("predictions of {run} as the model `{}`", predictions.name()),
            answers: Answers::Predictions(Box::new(predictions)),
            folder: options.folder.clone(),
        })
    });
    bound.map_err(|e| not_bound(options, &e))
}

impl Serving {
    /// The address, with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is served, as a phrase.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The switch that ends [`Serving::run`] from another thread.
    pub fn stop(&self) -> Stop {
        self.server.stop()
    }

    /// Serves until it is stopped. Blocks the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the threads that serve cannot be started.
    pub fn run(self) -> Result<(), Error> {
        let served = match self.answers {
            Answers::Reports(reports) => {
                let is_over = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| keep_jobs_fresh(&self.folder, &is_over));
                    let served = self.server.serve(*reports);
                    is_over.store(true, Ordering::Release);
                    served
                })
            }
            Answers::Predictions(predictions) => self.server.serve(*predictions),
        };
        served.map_err(|e| {
            let message = format!("cannot serve: {}", plain_io_error(&e));
            Error::failed(Diagnostic::error("results", message))
        })
    }
}

/// Asks clusters for the state of jobs, which readers of the folder show.
fn keep_jobs_fresh(folder: &Path, is_over: &AtomicBool) {
    let mut next = Instant::now();
    while !is_over.load(Ordering::Acquire) {
        if Instant::now() >= next {
            for experiment in ExperimentFolder::all(folder) {
                refresh_jobs(&experiment, &quiet);
            }
            next = Instant::now() + JOBS;
        }
        std::thread::sleep(TICK);
    }
}

fn bind(options: &Serve, limits: Limits) -> io::Result<Server> {
    let token = options.token.as_deref();
    Server::bind(options.listen, options.port, token, limits)
}

/// Refuses a server that could be misused.
fn refuse_misuse(options: &Serve) -> Result<(), Error> {
    let wrong = |message: String| Diagnostic::error("usage", message);
    if let Some(token) = &options.token
        && let Err(reason) = check_token(token)
    {
        let diagnostic = wrong(format!("invalid `--token`: {reason}"));
        let help = "`openssl rand -hex 16` generates one";
        return Err(Error::refused(diagnostic.help(help)));
    }
    if !options.listen.is_loopback() && options.token.is_none() {
        let message = format!(
            "other machines can reach {}, but there is no token",
            options.listen
        );
        let diagnostic = wrong(message)
            .help("set `--token TOKEN`; `openssl rand -hex 16` generates one")
            .help("or remove `--listen`, and connect through `ssh -L`, which also encrypts");
        return Err(Error::refused(diagnostic));
    }
    Ok(())
}

/// A server cannot listen.
fn not_bound(options: &Serve, e: &io::Error) -> Error {
    let address = SocketAddr::new(options.listen, options.port);
    let (reason, help) = match e.kind() {
        ErrorKind::AddrInUse => (
            format!("another program is using the port {}", options.port),
            "choose another with `--port`, or remove it for any free port",
        ),
        ErrorKind::AddrNotAvailable => (
            format!("this machine does not have the address {}", options.listen),
            "use one of its addresses with `--listen`; 0.0.0.0 means all of them",
        ),
        ErrorKind::PermissionDenied if options.port > 0 => (
            format!("the port {} needs special permissions", options.port),
            "choose one above 1023 with `--port`",
        ),
        ErrorKind::NotFound => (
            "the folder does not exist".to_owned(),
            "use a results folder, or create one with `runner run`",
        ),
        _ => (
            plain_io_error(e),
            "use a results folder, and a free port (`--port 0` finds one)",
        ),
    };
    let message = format!(
        "cannot serve `{}` at {address}: {reason}",
        options.folder.display()
    );
    Error::refused(Diagnostic::error("results", message).help(help))
}
