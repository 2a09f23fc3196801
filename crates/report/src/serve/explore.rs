//! The table of all runs: a page, and what its script asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};

use runner_http::{Answer, decoded};

use super::page;
use crate::report::list::{Form, Query, everything, list, names};
use runner_core::diagnostic::Wrong;
use runner_core::record::{ExperimentFolder, Index, RunEntry, RunFolder, RunRecord, unix_millis};

/// How often records are re-read at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reading takes at most one part in so many of the time.
const PATIENCE: u32 = 4;

/// More rows than this are not sent at once.
const MOST_ROWS: usize = 500;

/// The curves of more runs than this are not sent at once.
const MOST_CURVES: usize = 16;

/// What was last read of all experiments.
#[derive(Default)]
pub struct Explorer(Mutex<Option<Kept>>);

struct Kept {
    looked_at: Instant,
    took: Duration,
    all: Arc<All>,
}

/// All experiments that can be read, with the folder of each.
struct All {
    indexes: Vec<Index>,
    folders: Vec<ExperimentFolder>,
}

impl All {
    /// A run by its experiment and its id.
    fn find(&self, wanted: &str) -> Option<(&Index, &RunEntry, RunFolder)> {
        let (experiment, id) = wanted.split_once('/')?;
        let mut both = self.indexes.iter().zip(&self.folders);
        let (index, folder) = both.find(|(index, _)| index.plan.experiment == experiment)?;
        let run = index.runs.iter().find(|run| run.id == id)?;
        Some((index, run, folder.run(id)))
    }
}

/// The parts of a query by name, in order.
struct Asked(Vec<(String, String)>);

impl Asked {
    fn of(query: &str) -> Self {
        let parts = query.split('&').filter_map(|part| part.split_once('='));
        let plain = |text: &str| decoded(&text.replace('+', " "));
        Self(
            parts
                .map(|(name, value)| (plain(name), plain(value)))
                .collect(),
        )
    }

    /// What is said under a name, unless it is nothing.
    fn get(&self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        all.next()
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, default: usize) -> usize {
        let number = self.get(name).and_then(|value| value.parse().ok());
        number.unwrap_or(default)
    }
}

impl Explorer {
    /// The answer to a part of the page, or `None` if it does not exist.
    pub fn respond(
        &self,
        part: &str,
        query: &str,
        experiments: &[(String, ExperimentFolder)],
    ) -> Option<Answer> {
        let asked = Asked::of(query);
        Some(match part {
            "runs" => page::explorer(),
            "runs.json" => self.rows(&asked, experiments),
            "names.json" => self.names(experiments),
            "run.json" => self.run(&asked, experiments),
            "curves.json" => self.curves(&asked, experiments),
            _ => return None,
        })
    }

    /// The experiments as they were a moment ago. Those that cannot be read are left out; the list of experiments says
    /// why.
    fn all(&self, experiments: &[(String, ExperimentFolder)]) -> Arc<All> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |kept: &Kept| kept.looked_at.elapsed() < INTERVAL.max(PATIENCE * kept.took);
        if let Some(kept) = kept.as_ref().filter(|kept| is_new(kept)) {
            return kept.all.clone();
        }
        let began = Instant::now();
        let read = experiments.iter().filter_map(|(_, folder)| {
            let index = Index::read(folder).ok().flatten()?;
            Some((index, folder.clone()))
        });
        let (indexes, folders) = read.unzip();
        let all = Arc::new(All { indexes, folders });
        *kept = Some(Kept {
            looked_at: Instant::now(),
            took: began.elapsed(),
            all: all.clone(),
        });
        all
    }

    fn rows(&self, asked: &Asked, experiments: &[(String, ExperimentFolder)]) -> Answer {
        let all = self.all(experiments);
        let indexes = &all.indexes;
        let columns = asked
            .get("columns")
            .unwrap_or_else(|| "experiment run".into());
        let query = Query {
            filter: asked.get("filter"),
            sort: asked.get("sort"),
            group: asked.get("group"),
            columns: columns.split(' ').map(str::to_owned).collect(),
            offset: asked.number("offset", 0),
            limit: Some(asked.number("limit", 100).min(MOST_ROWS)),
            ..Query::default()
        };
        match list(indexes, &query, Form::Json, unix_millis()) {
            Ok(listed) => {
                let rows: Vec<&str> = listed.text.lines().collect();
                let all: usize = indexes.iter().map(|index| index.runs.len()).sum();
                let (num, rows) = (listed.num, rows.join(","));
                Answer::json(
                    200,
                    format!("{{\"total\":{num},\"all\":{all},\"rows\":[{rows}]}}"),
                )
            }
            Err(wrong) => refused(&wrong),
        }
    }

    fn names(&self, experiments: &[(String, ExperimentFolder)]) -> Answer {
        let all = self.all(experiments);
        let indexes = &all.indexes;
        let (own, shared) = names(indexes);
        let mut axes: Vec<&String> = Vec::new();
        for key in indexes.iter().flat_map(|index| &index.plan.axes) {
            if !axes.contains(&key) && own.contains(key) {
                axes.push(key);
            }
        }
        let found =
            json!({"own": own, "shared": shared, "axes": axes, "experiments": indexes.len()});
        Answer::json(200, found.to_string())
    }

    fn run(&self, asked: &Asked, experiments: &[(String, ExperimentFolder)]) -> Answer {
        let wanted = asked.get("run").unwrap_or_default();
        match self.all(experiments).find(&wanted) {
            Some((index, run, _)) => {
                let found = everything(index, run, unix_millis());
                Answer::json(200, found.to_string())
            }
            None => unknown(&wanted),
        }
    }

    /// The finite metrics of each epoch of some runs.
    fn curves(&self, asked: &Asked, experiments: &[(String, ExperimentFolder)]) -> Answer {
        let all = self.all(experiments);
        let mut found = Map::new();
        for wanted in asked.all("run").take(MOST_CURVES) {
            let Some((_, _, folder)) = all.find(wanted) else {
                return unknown(wanted);
            };
            let plan = folder.read_plan().ok().flatten();
            let record = plan.map(|run| RunRecord::read_for(&folder, &run));
            if let Some(Ok(record)) = record {
                found.insert(wanted.to_owned(), json!(curves_of(&record)));
            }
        }
        Answer::json(200, Json::Object(found).to_string())
    }
}

/// The finite values of each metric with their epochs.
fn curves_of(record: &RunRecord) -> BTreeMap<&String, Vec<(usize, f64)>> {
    let mut curves: BTreeMap<&String, Vec<(usize, f64)>> = BTreeMap::new();
    for epoch in &record.epochs {
        let finite = epoch.metrics.iter().filter(|(_, value)| value.is_finite());
        for (name, value) in finite {
            curves.entry(name).or_default().push((epoch.epoch, *value));
        }
    }
    curves
}

fn unknown(run: &str) -> Answer {
    let found = json!({"error": format!("there is no run `{run}`")});
    Answer::json(404, found.to_string())
}

fn refused(wrong: &Wrong) -> Answer {
    let found = json!({"error": wrong.message, "help": wrong.help});
    Answer::json(400, found.to_string())
}
