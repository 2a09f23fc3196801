//! A small web server that only shows the reports of a results tree.
//!
//! Every answer is generated in memory from records (`site`, `explore`); no file is ever sent, so a path can only name
//! an experiment and a form of its report, and a query runs and what is asked of them. Access control and limits on requests are those of `runner_http`.

mod explore;
mod page;
mod site;

use std::io;
use std::path::Path;
use std::sync::Arc;

use runner_http::{Answer, Request, Service};
use site::Site;

/// The reports of a results folder, or of one experiment's folder, as a service.
pub struct Reports(Site);

impl Reports {
    /// # Errors
    /// When the folder does not exist.
    pub fn of(results: &Path) -> io::Result<Self> {
        Site::new(results).map(Self)
    }
}

impl Service for Reports {
    /// Reports are built on a thread of their own: one of 10,000 runs takes a second.
    async fn answer(self: Arc<Self>, request: Request) -> Answer {
        let built =
            tokio::task::spawn_blocking(move || self.0.respond(&request.path, &request.query))
                .await;
        built.unwrap_or_else(|_| Answer::words(500, "the page cannot be built; see the log"))
    }
}
