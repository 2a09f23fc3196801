//! What a search knows about its runs, each of which is only read again when it was trained.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::plan::{Plan, RunPlan, TrialResult};
use runner_core::record::{ExperimentFolder, Index, RunEntry, RunRecord, State};
use runner_core::spec::constraint::total;
use runner_core::spec::search::Suggestion;

/// The runs of a search, without those that confirm trials.
pub(super) struct Results {
    /// By trial, in the order of the plan.
    runs: BTreeMap<String, Vec<RunEntry>>,
    /// In a search that prunes, the best values so far after each epoch, by run; in one that trains a population, the
    /// values of the epochs, since its members are copied as they are then.
    curves: BTreeMap<String, Vec<f64>>,
    /// In a search that prunes and has constraints, how far trials are from meeting them after each epoch.
    violations: BTreeMap<String, Vec<f64>>,
}

impl Results {
    /// Those of an index of the plan.
    pub(super) fn of(plan: &Plan, index: Index, folder: &ExperimentFolder) -> Self {
        let mut results = Self {
            runs: BTreeMap::new(),
            curves: BTreeMap::new(),
            violations: BTreeMap::new(),
        };
        let mut entries: BTreeMap<String, RunEntry> = BTreeMap::new();
        entries.extend(index.runs.into_iter().map(|run| (run.id.clone(), run)));
        results.take(plan, folder, |id| entries.remove(id));
        results
    }

    /// Reads runs again.
    pub(super) fn update(
        &mut self,
        plan: &Plan,
        folder: &ExperimentFolder,
        ids: &BTreeSet<String>,
    ) {
        let runs = plan.runs.iter().filter(|run| ids.contains(&run.id));
        let read = runs.map(|run| (run.id.clone(), RunEntry::read(run, &folder.run(&run.id))));
        let mut read: BTreeMap<String, RunEntry> = read.collect();
        self.take(plan, folder, |id| read.remove(id));
    }

    fn take(
        &mut self,
        plan: &Plan,
        folder: &ExperimentFolder,
        mut entry: impl FnMut(&str) -> Option<RunEntry>,
    ) {
        let prune = plan
            .search
            .as_ref()
            .and_then(|search| search.prune.as_ref());
        let has_curves = prune.is_some();
        let is_population = prune.is_some_and(|prune| prune.population.is_some());
        let mut changed: BTreeSet<&str> = BTreeSet::new();
        for run in plan.runs.iter().filter(|run| !plan.confirms(run.seed)) {
            let Some(entry) = entry(&run.id) else {
                continue;
            };
            changed.insert(&run.trial);
            if has_curves {
                // Without a record that can be read, it has no value.
                let record = RunRecord::read_for(&folder.run(&run.id), run).unwrap_or_default();
                let curve = if is_population {
                    record.objective_by_epoch(run)
                } else {
                    record.best_so_far(run)
                };
                self.curves.insert(run.id.clone(), curve);
            }
            let runs = self.runs.entry(run.trial.clone()).or_default();
            match runs.iter_mut().find(|known| known.id == run.id) {
                Some(known) => *known = entry,
                None => runs.push(entry),
            }
        }
        if has_curves {
            self.take_violations(plan, folder, &changed);
        }
    }

    /// Computes how far trials are from meeting the constraints after each epoch.
    fn take_violations(&mut self, plan: &Plan, folder: &ExperimentFolder, trials: &BTreeSet<&str>) {
        let search = plan.search.as_ref();
        let constraints = search.map_or(&[][..], |search| &search.constraints);
        if constraints.is_empty() {
            return;
        }
        for runs in plan.runs.chunk_by(|a, b| a.trial == b.trial) {
            if !trials.contains(runs[0].trial.as_str()) {
                continue;
            }
            let runs = runs.iter().filter(|run| !plan.confirms(run.seed));
            let read = runs.map(|run| {
                let record = RunRecord::read_for(&folder.run(&run.id), run);
                (run, record.unwrap_or_default())
            });
            let read: Vec<(&RunPlan, RunRecord)> = read.collect();
            let runs: Vec<(&RunPlan, &RunRecord)> =
                read.iter().map(|(run, record)| (*run, record)).collect();
            let violations = RunRecord::violations_by_epoch(constraints, &runs);
            if let Some((run, _)) = runs.first() {
                self.violations.insert(run.trial.clone(), violations);
            }
        }
    }

    /// All runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.runs.values().flatten()
    }

    /// The mean of a trial's runs; none if not all of them have a finite value.
    pub(super) fn mean(&self, plan: &Plan, trial: &str) -> Option<f64> {
        let name = plan.objective.name();
        let value = |run: &RunEntry| match run.state {
            State::Completed => run.metrics.get(&name).copied(),
            _ => None,
        };
        let values: Option<Vec<f64>> = self.runs.get(trial)?.iter().map(value).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(mean).filter(|mean| mean.is_finite())
    }

    /// What a trial reached in the further objectives, lower is better; none if not all of it is known.
    fn others(&self, plan: &Plan, trial: &str) -> Option<Vec<f64>> {
        let search = plan.search.as_ref()?;
        let runs: Vec<&RunEntry> = self.runs.get(trial).into_iter().flatten().collect();
        RunEntry::costs_reached(search.objectives.iter().copied(), &runs)
    }

    /// How far a trial is from meeting the constraints: 0 if it does, infinite if that is not known.
    pub(super) fn violation(&self, plan: &Plan, trial: &str) -> f64 {
        let constraints = plan.search.iter().flat_map(|search| &search.constraints);
        let runs: Vec<&RunEntry> = self.runs.get(trial).into_iter().flatten().collect();
        total(&RunEntry::violations(constraints, &runs))
    }

    /// The mean of a trial that meets the constraints; none if not all of its runs have a value.
    pub(super) fn feasible_mean(&self, plan: &Plan, trial: &str) -> Option<f64> {
        let mean = self.mean(plan, trial)?;
        (self.violation(plan, trial) == 0.0).then_some(mean)
    }

    /// The results of the suggestions, as the search is shown them: lower values are better.
    pub(super) fn shown(&self, plan: &Plan) -> Vec<TrialResult> {
        let Some(search) = &plan.search else {
            return Vec::new();
        };
        let sign = if plan.objective.is_better(1.0, 0.0) {
            -1.0
        } else {
            1.0
        };
        let whole = |known: &Suggestion| {
            let mean = self.mean(plan, &known.trial);
            mean.map_or(TrialResult::failed(), |mean| TrialResult {
                others: self.others(plan, &known.trial).unwrap_or_default(),
                violation: self.violation(plan, &known.trial),
                ..TrialResult::of(sign * mean)
            })
        };
        let by_epoch = |known: &Suggestion| {
            let runs = self.runs.get(&known.trial).map_or(&[][..], Vec::as_slice);
            let curve = |run: &RunEntry| {
                let curve = self.curves.get(&run.id).map_or(&[][..], Vec::as_slice);
                (curve, run.state == State::Completed)
            };
            TrialResult {
                violations: self
                    .violations
                    .get(&known.trial)
                    .cloned()
                    .unwrap_or_default(),
                ..mean_curve(&runs.iter().map(curve).collect::<Vec<_>>(), sign)
            }
        };
        let known = search.suggestions.iter();
        if search.prune.is_some() {
            known.map(by_epoch).collect()
        } else {
            known.map(whole).collect()
        }
    }
}

/// The mean of curves, as far as all of them go; those that are final keep their last value.
fn mean_curve(curves: &[(&[f64], bool)], sign: f64) -> TrialResult {
    let is_final = !curves.is_empty() && curves.iter().all(|(_, is_final)| *is_final);
    let ends = curves.iter().map(|(curve, _)| curve.len());
    let open = curves.iter().filter(|(_, is_final)| !is_final);
    let end = open.map(|(curve, _)| curve.len()).min();
    let end = end.or(ends.max()).unwrap_or(0);
    let at = |epoch: usize| {
        let values = curves
            .iter()
            .map(|(curve, _)| curve.get(epoch).or(curve.last()));
        let sum: f64 = values.map(|value| value.copied().unwrap_or(f64::NAN)).sum();
        sign * sum / curves.len() as f64
    };
    TrialResult {
        values: (0..end).map(at).collect(),
        is_final,
        ..TrialResult::default()
    }
}
