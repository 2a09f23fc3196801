//! Requests to an MLflow server's REST API, version 2.0, and their errors.

use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that writes a thousand numbers to a slow disk needs some time.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum size of an answer; a page of runs with all their metrics is some MiB.
const MAX_ANSWER: u64 = 256 << 20;

/// Who asks.
#[derive(Clone, Default, PartialEq)]
pub enum Credentials {
    /// No authentication.
    #[default]
    None,
    /// A bearer token.
    Token(String),
    /// A user name and password.
    Password(String, String),
}

/// A tracking server.
pub struct Server {
    url: String,
    agent: ureq::Agent,
    authorization: Option<String>,
}

/// Why a request to a server failed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerError {
    /// The address is invalid.
    Address {
        /// The problem.
        reason: String,
    },
    /// Nothing listens there.
    NotThere {
        /// The server.
        url: String,
    },
    /// There was no complete answer.
    Unreachable {
        /// The server.
        url: String,
        /// Why.
        reason: String,
    },
    /// The answer is not from MLflow.
    NotMlflow {
        /// The server.
        url: String,
        /// The answer.
        answer: String,
    },
    /// It gives out no address for artifacts that can be written through it.
    NoArtifacts {
        /// The address that it gives out.
        uri: String,
    },
    /// A file to upload cannot be read.
    Unreadable {
        /// The file, and why.
        reason: String,
    },
    /// It refused.
    Refused {
        /// The request, such as `runs/create`.
        request: String,
        /// The status of the answer.
        status: u16,
        /// MLflow's error code, such as `RESOURCE_DOES_NOT_EXIST`.
        code: String,
        /// In words.
        message: String,
    },
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Address { reason } => write!(f, "{reason}"),
            ServerError::NotThere { url } => {
                write!(f, "no server responds at {url}: the connection was refused")
            }
            ServerError::Unreachable { url, reason } => {
                write!(f, "no complete response from {url}: {reason}")
            }
            ServerError::NotMlflow { url, answer } => {
                write!(f, "{url} is not an MLflow server: {answer}")
            }
            ServerError::NoArtifacts { uri } => write!(
                f,
                "the server keeps artifacts in `{uri}` and does not accept them itself"
            ),
            ServerError::Unreadable { reason } => write!(f, "{reason}"),
            ServerError::Refused {
                request,
                status,
                code,
                message,
            } => {
                write!(f, "the server refused `{request}` with status {status}")?;
                match (code.as_str(), message.as_str()) {
                    ("", "") => Ok(()),
                    ("", message) | (message, "") => write!(f, ": {message}"),
                    (code, message) => write!(f, " ({code}): {message}"),
                }
            }
        }
    }
}

impl ServerError {
    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            ServerError::Address { .. } => {
                "use the address of a tracking server, such as `http://127.0.0.1:5000`"
            }
            ServerError::NotThere { .. } => {
                "start it, for example with `mlflow server --host 127.0.0.1 --port 5000`, or pass the address of a running server with `--to`"
            }
            ServerError::Unreachable { .. } => {
                "check that it is running and reachable from here; the next export sends the rest"
            }
            ServerError::NotMlflow { .. } => {
                "use the address that MLflow's own clients take, without `/api` or `/#/…` after it"
            }
            ServerError::NoArtifacts { .. } => {
                "start it without `--no-serve-artifacts`, or omit `--artifacts`"
            }
            ServerError::Unreadable { .. } => "make the file readable, or omit `--artifacts`",
            ServerError::Refused {
                status: 401 | 403, ..
            } => {
                "set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
            }
            ServerError::Refused { status: 500.., .. } => {
                "see the log of the server; the next export sends the rest"
            }
            ServerError::Refused { .. } => {
                "data that was already sent is kept; the next export sends the rest"
            }
        }
    }
}

impl Server {
    /// A server by its address, not contacted yet.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, ServerError> {
        let wrong = |reason: &str| {
            Err(ServerError::Address {
                reason: reason.into(),
            })
        };
        let url = url.trim_end_matches('/');
        let rest = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"));
        let host = rest.map_or("", |rest| rest.split('/').next().unwrap_or_default());
        match host {
            "" if rest.is_none() => {
                let reason = format!(
                    "`{url}` is not the address of a server: it begins with neither `http://` nor `https://`"
                );
                return wrong(&reason);
            }
            "" => return wrong(&format!("`{url}` contains no server name")),
            _ if host.contains('@') => {
                return wrong(
                    "remove the user and password from the address: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead",
                );
            }
            _ if url.contains(['?', '#', ' ']) => {
                return wrong(&format!("`{url}` contains more than a server and a path"));
            }
            _ => {}
        }
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TOTAL_TIMEOUT))
            .http_status_as_error(false)
            // A redirect would turn a POST into a GET, and send the token elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("burn-runner/", env!("CARGO_PKG_VERSION")))
            .build();
        let authorization = match credentials {
            Credentials::None => None,
            Credentials::Token(token) => Some(format!("Bearer {token}")),
            Credentials::Password(user, password) => {
                let both = STANDARD.encode(format!("{user}:{password}"));
                Some(format!("Basic {both}"))
            }
        };
        if authorization
            .as_ref()
            .is_some_and(|a| a.contains(['\r', '\n']))
        {
            return wrong("the token contains a line break");
        }
        Ok(Self {
            url: url.to_owned(),
            agent: agent.into(),
            authorization,
        })
    }

    /// Gets something by one key.
    pub fn get(&self, request: &str, key: &str, value: &str) -> Result<Json, ServerError> {
        let asked = self.agent.get(self.at(request)).query(key, value);
        let asked = match &self.authorization {
            Some(authorization) => asked.header("authorization", authorization),
            None => asked,
        };
        self.answer(request, asked.call())
    }

    /// Posts a request.
    pub fn post(&self, request: &str, body: &Json) -> Result<Json, ServerError> {
        let asked = self.agent.post(self.at(request));
        let asked = asked.header("content-type", "application/json");
        let asked = match &self.authorization {
            Some(authorization) => asked.header("authorization", authorization),
            None => asked,
        };
        self.answer(request, asked.send(body.to_string()))
    }

    /// Uploads a file as an artifact; `path` is what the server gave out as the address of the run's artifacts, with
    /// the name of this one.
    pub fn put(&self, path: &str, file: std::fs::File) -> Result<(), ServerError> {
        // Without a length, the body would come in chunks, which not every server of Python's takes.
        let length = file.metadata().map_or(0, |data| data.len());
        let request = format!("mlflow-artifacts/artifacts/{path}");
        let asked = self
            .agent
            .put(format!("{}/api/2.0/{request}", self.url))
            .header("content-type", "application/octet-stream")
            .header("content-length", length);
        let asked = match &self.authorization {
            Some(authorization) => asked.header("authorization", authorization),
            None => asked,
        };
        // Weights may take longer than numbers.
        let asked = asked.config().timeout_global(None).build();
        self.answer(&request, asked.send(file)).map(|_| ())
    }

    fn at(&self, request: &str) -> String {
        format!("{}/api/2.0/mlflow/{request}", self.url)
    }

    fn answer(
        &self,
        request: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Json, ServerError> {
        let unreachable = |e: ureq::Error| {
            let url = self.url.clone();
            match &e {
                ureq::Error::Io(e) if e.kind() == ErrorKind::ConnectionRefused => {
                    ServerError::NotThere { url }
                }
                e if matches!(e, ureq::Error::HostNotFound)
                    || e.to_string().contains("failed to lookup address") =>
                {
                    ServerError::Unreachable {
                        url,
                        reason: "the host name cannot be resolved".into(),
                    }
                }
                e => ServerError::Unreachable {
                    url,
                    reason: e.to_string(),
                },
            }
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER);
        let text = body.read_to_string().map_err(unreachable)?;
        let json: Option<Json> = serde_json::from_str(&text).ok().filter(Json::is_object);
        let not_mlflow = |answer: String| ServerError::NotMlflow {
            url: self.url.clone(),
            answer,
        };
        match (status, json) {
            (200, Some(json)) => Ok(json),
            // As after an upload.
            (200, None) if text.is_empty() && request.starts_with("mlflow-artifacts/") => {
                Ok(Json::Null)
            }
            (200, None) => Err(not_mlflow("its response is not a JSON object".into())),
            (300..400, _) => {
                let to = answer.headers().get("location");
                let to = to.and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
                Err(not_mlflow(format!("it redirects to {to}")))
            }
            (404, None) => Err(not_mlflow("the page does not exist (status 404)".into())),
            (status, json) => {
                let field = |name: &str| {
                    let text = json.as_ref()?.get(name)?.as_str()?;
                    Some(text.to_owned())
                };
                Err(ServerError::Refused {
                    request: request.to_owned(),
                    status,
                    code: field("error_code").unwrap_or_default(),
                    message: field("message").unwrap_or_default(),
                })
            }
        }
    }
}
