//! A trained network as an HTTP service: the Open Inference Protocol (version 2, REST) and a plain JSON form.
//!
//! | request | response |
//! | --- | --- |
//! | `GET /v2` | the server's name, version and extensions |
//! | `GET /v2/health/live`, `/v2/health/ready`, `/v2/models/NAME/ready` | 200 |
//! | `GET /v2/models/NAME` | inputs and outputs, with types and shapes |
//! | `POST /v2/models/NAME/infer` | predictions for tensors, one per column of the data (`protocol`) |
//! | `POST /predict` | predictions for rows as JSON objects |
//! | `GET /metrics` | counters and latencies for Prometheus (`gauges`) |
//!
//! Requests wait in one bounded queue (`queue`); the network computes everything that waits, up to a maximum batch size,
//! at once. A full queue answers 503 with `Retry-After`.

mod gauges;
mod protocol;
mod queue;

use std::sync::Arc;
use std::time::Instant;

use runner_core::diagnostic::Reason;
use runner_http::{Answer, Bytes, Request, Service, decoded, encoded};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::model::Model;
use gauges::Gauges;
use protocol::Metadata;
use queue::{Outcome, Queue};

/// The maximum size of a request's body in bytes.
pub const MAX_BODY: usize = 64 << 20;
/// A body above this many bytes is parsed while others are answered.
const LARGE_BODY: usize = 128 << 10;

/// Options of a prediction service.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the model in addresses; the experiment's name by default.
    pub name: Option<String>,
    /// The maximum number of items in a batch.
    pub max_batch: usize,
    /// The maximum number of waiting items.
    pub max_waiting: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: None,
            max_batch: 64,
            max_waiting: 1024,
        }
    }
}

/// The predictions of a trained network as a service.
pub struct Predictions {
    name: String,
    metadata: Arc<Metadata>,
    /// Taken by the large body that is being parsed: as JSON it takes many times its size.
    parsing: Semaphore,
    queue: Queue,
    gauges: Arc<Gauges>,
}

impl Predictions {
    /// Starts the thread that computes.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn of(model: Model, options: &Options) -> std::io::Result<Self> {
        let name = options.name.clone();
        let gauges = Arc::new(Gauges::default());
        Ok(Self {
            name: name.unwrap_or_else(|| model.plan().experiment.clone()),
            metadata: Arc::new(Metadata::of(&model)),
            parsing: Semaphore::new(1),
            queue: Queue::start(model, options, gauges.clone())?,
            gauges,
        })
    }

    /// The name of the model in addresses.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses a body; large ones in a separate thread, one at a time.
    async fn parsed<T: Send + 'static>(
        &self,
        body: &Bytes,
        parse: impl FnOnce(&[u8]) -> Result<T, Reason> + Send + 'static,
    ) -> Result<T, Reason> {
        if body.len() <= LARGE_BODY {
            return parse(body);
        }
        let _one = self.parsing.acquire().await;
        let body = body.clone();
        let parsed = tokio::task::spawn_blocking(move || parse(&body)).await;
        parsed.unwrap_or_else(|_| Err("the body cannot be parsed".into()))
    }

    async fn route(&self, request: &Request) -> Answer {
        let path = request.path.trim_start_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let is_ours = |name: &str| decoded(name) == self.name;
        match (request.is_post, &parts[..]) {
            (false, [""]) => Answer::words(200, &self.usage()),
            (false, ["v2"]) => answer(&json!({
                "name": "runner",
                "version": env!("CARGO_PKG_VERSION"),
                "extensions": [],
            })),
            (false, ["v2", "health", "live"]) => answer(&json!({ "live": true })),
            (false, ["v2", "health", "ready"]) => answer(&json!({ "ready": true })),
            (false, ["v2", "models", name, "ready"]) if is_ours(name) => {
                answer(&json!({ "name": self.name, "ready": true }))
            }
            (false, ["v2", "models", name]) if is_ours(name) => {
                answer(&self.metadata.json(&self.name))
            }
            (true, ["v2", "models", name, "infer"]) if is_ours(name) => {
                self.infer(&request.body).await
            }
            (true, ["predict"]) => self.predict(&request.body).await,
            (false, ["metrics"]) => Answer::text(
                200,
                "text/plain; version=0.0.4; charset=utf-8",
                self.gauges.text(self.queue.num_waiting()),
            ),
            (_, ["v2", "models", name, ..]) if !is_ours(name) => wrong(
                404,
                &format!(
                    "there is no model `{}`; this is `{}`",
                    decoded(name),
                    self.name
                ),
            ),
            (true, ["" | "v2" | "metrics", ..]) => {
                wrong(405, "this address only supports GET").header("Allow", "GET, HEAD".into())
            }
            (false, ["predict"] | ["v2", "models", _, "infer"]) => {
                wrong(405, "send the items with POST").header("Allow", "POST".into())
            }
            _ => wrong(404, "this address does not exist; see / for a list"),
        }
    }

    fn usage(&self) -> String {
        let name = encoded(&self.name);
        let infer = format!("/v2/models/{name}/infer");
        let model = format!("/v2/models/{name}");
        let addresses = [
            (
                "POST",
                "/predict",
                "rows as JSON objects: {\"rows\": [{…}, {…}]}",
            ),
            ("POST", &infer, "Open Inference Protocol, version 2"),
            ("GET", &model, "inputs and outputs"),
            ("GET", "/v2/health/ready", "200 while the server is running"),
            ("GET", "/metrics", "for Prometheus"),
        ];
        let width = infer.len().max("/v2/health/ready".len());
        let lines = addresses
            .map(|(method, address, words)| format!("{method:<4} {address:<width$}  {words}"));
        format!(
            "runner serves the model `{}`\n\n{}",
            self.name,
            lines.join("\n")
        )
    }

    /// Rows as JSON objects in, predictions out.
    async fn predict(&self, body: &Bytes) -> Answer {
        let rows = match self.parsed(body, protocol::rows).await {
            Ok(rows) => rows,
            Err(reason) => return wrong(400, &reason.0),
        };
        match self.queue.ask(rows).await {
            Outcome::Done(predictions) => Answer::json(200, protocol::plain(&predictions)),
            other => failed(&other),
        }
    }

    /// Tensors in, tensors out.
    async fn infer(&self, body: &Bytes) -> Answer {
        let metadata = self.metadata.clone();
        let parse = move |body: &[u8]| protocol::Call::parse(body, &metadata);
        let (call, rows) = match self.parsed(body, parse).await {
            Ok(parsed) => parsed,
            Err(reason) => return wrong(400, &reason.0),
        };
        match self.queue.ask(rows).await {
            Outcome::Done(predictions) => {
                let text = call.answer(&self.name, &self.metadata, &predictions);
                Answer::json(200, text)
            }
            other => failed(&other),
        }
    }
}

impl Service for Predictions {
    async fn answer(self: Arc<Self>, request: Request) -> Answer {
        let started = Instant::now();
        let answer = self.route(&request).await;
        if request.is_post {
            self.gauges.answered(answer.status(), started.elapsed());
        }
        answer
    }

    fn refuse(&self, status: u16, words: &str) -> Answer {
        self.gauges.counted(status);
        wrong(status, words)
    }
}

fn answer(json: &Value) -> Answer {
    Answer::json(200, json.to_string())
}

fn wrong(status: u16, words: &str) -> Answer {
    Answer::json(status, json!({ "error": words }).to_string())
}

fn failed(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Refused(reason) => wrong(400, reason),
        Outcome::Full => {
            wrong(503, "too many items are waiting").header("Retry-After", "1".to_owned())
        }
        Outcome::TooMany(most) => wrong(
            413,
            &format!("a request may contain at most {most} items; send several requests"),
        ),
        Outcome::Failed | Outcome::Done(_) => {
            wrong(500, "the prediction failed; see the server's log")
        }
    }
}
