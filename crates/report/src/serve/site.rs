//! The content of the server: a list of experiments, and each one's report in every form.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use runner_http::{Answer, encoded};

use super::explore::Explorer;
use super::page;
use crate::report::{self, Brief};
use runner_core::record::{ExperimentFolder, Index, sealed_json, unix_millis};

/// How often a tree is re-read.
const INTERVAL: Duration = Duration::from_secs(1);

const HTML: &str = "text/html; charset=utf-8";

/// A results folder.
pub struct Site {
    folder: PathBuf,
    /// Its real path: nothing from elsewhere is shown.
    real: PathBuf,
    /// The page that lists all experiments, and when it was made.
    listed: Mutex<Option<(Instant, Answer)>>,
    reports: Mutex<BTreeMap<String, Arc<Mutex<Kept>>>>,
    explorer: Explorer,
}

/// A generated report, in its forms.
#[derive(Default)]
struct Kept {
    looked_at: Option<Instant>,
    stamp: Vec<u8>,
    forms: Forms,
}

impl Site {
    /// The experiments of a results folder, or one experiment's folder.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            real: folder.canonicalize()?,
            listed: Mutex::default(),
            reports: Mutex::default(),
            explorer: Explorer::default(),
        })
    }

    /// The answer to a path. Names are only compared with existing ones.
    pub fn respond(&self, path: &str, query: &str) -> Answer {
        let experiments = self.experiments();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let unknown = || Answer::words(404, "this page does not exist; see / for a list");
        match parts[..] {
            [""] => match &experiments[..] {
                [(name, _)] => Answer::redirect(&format!("/{}/", encoded(name))),
                _ => self.list(&experiments),
            },
            [name] if find(&experiments, name).is_some() => Answer::redirect(&format!("/{name}/")),
            // No form of a report has such a name.
            ["-", part] => {
                let answer = self.explorer.respond(part, query, &experiments);
                answer.unwrap_or_else(unknown)
            }
            [name, form] => match find(&experiments, name) {
                Some((name, folder)) => self.report(name, folder, form).unwrap_or_else(unknown),
                None => unknown(),
            },
            _ => unknown(),
        }
    }

    /// The page that lists the content.
    fn list(&self, experiments: &[(String, ExperimentFolder)]) -> Answer {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, page)) = &*listed
            && at.elapsed() < INTERVAL
        {
            return page.clone();
        }
        let all = experiments.iter().map(|(name, folder)| {
            let index = Index::read(folder);
            let brief = index.map(|index| index.map(|it| Brief::of(&it, folder.is_in_use())));
            (name.as_str(), brief)
        });
        let page = tagged(HTML, page::list(all, unix_millis()));
        *listed = Some((Instant::now(), page.clone()));
        page
    }

    fn experiments(&self) -> Vec<(String, ExperimentFolder)> {
        let found = ExperimentFolder::all(&self.folder)
            .into_iter()
            .filter_map(|folder| {
                let real = folder.0.canonicalize().ok()?;
                let name = real.file_name()?.to_str()?.to_owned();
                // A link out of the tree is not followed.
                real.starts_with(&self.real).then_some((name, folder))
            });
        found.collect()
    }

    fn report(&self, name: &str, folder: &ExperimentFolder, form: &str) -> Option<Answer> {
        let kept = {
            let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            reports.entry(name.to_owned()).or_default().clone()
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |at: Instant| at.elapsed() >= INTERVAL;
        if kept.looked_at.is_none_or(is_old) {
            let stamp = stamp(folder);
            if stamp != kept.stamp {
                match make(folder) {
                    Ok(Some(forms)) => (kept.forms, kept.stamp) = (forms, stamp),
                    Ok(None) => return None,
                    Err(e) => {
                        // A file is being replaced: the previous content is still valid.
                        tracing::warn!("no report of `{}`: {e}", folder.0.display());
                        if kept.forms.is_empty() {
                            return Some(Answer::words(500, &format!("no report: {e}")));
                        }
                    }
                }
            }
            kept.looked_at = Some(Instant::now());
        }
        kept.forms.get(form).cloned()
    }
}

fn find<'a>(
    experiments: &'a [(String, ExperimentFolder)],
    asked: &str,
) -> Option<(&'a str, &'a ExperimentFolder)> {
    let found = experiments
        .iter()
        .find(|(name, _)| encoded(name) == asked || name == asked);
    found.map(|(name, folder)| (name.as_str(), folder))
}

/// The answers by the last part of their paths.
type Forms = BTreeMap<&'static str, Answer>;

/// The report in all its forms.
fn make(folder: &ExperimentFolder) -> io::Result<Option<Forms>> {
    let Some(report) = report::read(folder)? else {
        return Ok(None);
    };
    let json = serde_json::to_string_pretty(&report).map_err(io::Error::other)?;
    // As `runner report` writes it.
    let json = sealed_json(json + "\n");
    let plain = |kind, text: String| {
        let tag = page::tag(text.as_bytes());
        Answer::tagged(kind, text, tag)
    };
    let forms = [
        ("", tagged(HTML, page::report(&report))),
        ("report.json", plain("application/json", json)),
        (
            "report.csv",
            plain("text/csv; charset=utf-8", report::csv(&report)),
        ),
        (
            "report.md",
            plain("text/markdown; charset=utf-8", report::markdown(&report)),
        ),
    ];
    Ok(Some(forms.into()))
}

fn tagged(kind: &'static str, page: page::Page) -> Answer {
    Answer::tagged(kind, page.text, page.tag)
}

/// Changes whenever a source of the report does.
fn stamp(folder: &ExperimentFolder) -> Vec<u8> {
    let mut digest = Sha256::new();
    let mut add = |path: &Path| {
        let Ok(data) = path.metadata() else { return };
        digest.update(path.as_os_str().as_encoded_bytes());
        let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH);
        let nanos = data.modified().ok().and_then(|time| since(time).ok());
        digest.update(data.len().to_le_bytes());
        digest.update(nanos.map_or(0, |time| time.as_nanos()).to_le_bytes());
    };
    add(&folder.plan_json());
    for id in folder.run_ids() {
        let run = folder.run(&id);
        for path in [
            run.run_toml(),
            run.events_jsonl(),
            run.environment_json(),
            run.summary_json(),
        ] {
            add(&path);
        }
    }
    digest.finalize().to_vec()
}
