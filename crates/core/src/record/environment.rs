//! `environment.json`: what a run's numbers may depend on in addition to its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sysinfo::System;

use super::build::this_build;
use super::git;
use crate::event::{Build, Kernels, Started};
use crate::plan::RunPlan;
use crate::plan::inventory::Inventory;

/// The version of Burn that this build is pinned to.
const BURN_VERSION: &str = "0.22.1";

/// The environment of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// When the record was made, RFC 3339.
    pub recorded_at: String,
    /// Version of this program.
    pub runner_version: String,
    /// Version of Burn.
    pub burn_version: String,
    /// Backends of this build.
    pub backends: Vec<String>,
    /// Commit of the git checkout around the experiment file, if there is one.
    pub git_commit: Option<String>,
    /// Whether that checkout had uncommitted changes.
    pub git_dirty: Option<bool>,
    /// Name of the machine.
    pub host: String,
    /// Name and version of its operating system.
    pub os: String,
    /// Name of its processor.
    pub cpu: String,
    /// Cores of its processor.
    pub cores: usize,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// The drivers of devices, by device; for a run, that of its device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drivers: BTreeMap<String, String>,
    /// What replaces the requested data, and why.
    pub data_notice: Option<String>,
    /// The build that trained it; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// What the worker reported: device, data digests, threads.
    pub worker: Option<Worker>,
    /// The environment of earlier attempts that it was resumed from, if different.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Environment>,
}

/// The label of the operating system.
pub const OPERATING_SYSTEM: &str = "operating system";
/// The label of the processor.
pub const PROCESSOR: &str = "processor";
/// The label of the vector instructions.
pub const INSTRUCTIONS: &str = "instructions";
/// The label of the selected kernels.
pub const KERNELS: &str = "kernels chosen";

/// The label of the device.
const DEVICE: &str = "device";

/// What the worker reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The device's own name.
    pub device_name: String,
    /// Threads that the worker may use.
    pub threads: usize,
    /// sha256 of each split's items.
    pub data_digests: BTreeMap<String, String>,
    /// The vector instructions of runner's kernels: `baseline`, `avx2` or `avx512`; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whose kernels computed each layer, `runner` or `burn`, by its name; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layers: BTreeMap<String, String>,
    /// The kernels that were selected by timing, once the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Kernels>,
}

impl Worker {
    /// Whose kernels computed its layers, in words; `None` where the record does not say.
    fn computed_by(&self) -> Option<String> {
        let whose: BTreeSet<&str> = self.layers.values().map(String::as_str).collect();
        let whose: Vec<_> = whose.into_iter().rev().collect();
        (!whose.is_empty()).then(|| whose.join(" and "))
    }
}

/// Bytes of this machine's memory; 0 if unknown.
pub fn total_memory() -> u64 {
    let Ok(mut system) = System::new() else {
        return 0;
    };
    system.refresh_memory();
    system.total_memory()
}

/// Free bytes of this machine's memory; 0 if unknown.
pub fn available_memory() -> u64 {
    let Ok(mut system) = System::new() else {
        return 0;
    };
    system.refresh_memory();
    system.available_memory()
}

impl Environment {
    /// Describes this machine and the git checkout around `folder`.
    pub fn here(folder: &Path, data_notice: Option<String>) -> Self {
        let mut system = System::new().ok();
        if let Some(system) = &mut system {
            system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
        }
        let cpu = system
            .as_ref()
            .and_then(|s| Some(s.cpus().first()?.brand().to_owned()));
        let (git_commit, git_dirty) = git::state(folder);
        let backends = crate::spec::backend::compiled();
        Self {
            recorded_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            runner_version: env!("CARGO_PKG_VERSION").into(),
            burn_version: BURN_VERSION.into(),
            backends: backends.iter().map(|name| (*name).to_owned()).collect(),
            git_commit,
            git_dirty,
            host: System::host_name().unwrap_or_default(),
            os: System::long_os_version().unwrap_or_default(),
            cpu: cpu.unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            memory_bytes: total_memory(),
            drivers: BTreeMap::new(),
            data_notice,
            build: this_build(),
            worker: None,
            earlier: Vec::new(),
        }
    }

    /// Describes a program in WebAssembly, which knows nothing of its machine, at a time in RFC 3339.
    pub fn webassembly(recorded_at: String) -> Self {
        let backends = crate::spec::backend::compiled();
        Self {
            recorded_at,
            runner_version: env!("CARGO_PKG_VERSION").into(),
            burn_version: BURN_VERSION.into(),
            backends: backends.iter().map(|name| (*name).to_owned()).collect(),
            git_commit: None,
            git_dirty: None,
            host: String::new(),
            os: "WebAssembly".into(),
            cpu: "WebAssembly".into(),
            cores: 1,
            memory_bytes: 0,
            drivers: BTreeMap::new(),
            data_notice: None,
            build: None,
            worker: None,
            earlier: Vec::new(),
        }
    }

    /// The same with the drivers of these devices.
    pub fn with_drivers(mut self, inventory: &Inventory) -> Self {
        let drivers = inventory.found();
        let drivers = drivers.filter_map(|(device, found)| Some((device, found.driver.as_ref()?)));
        self.drivers
            .extend(drivers.map(|(device, driver)| (device.to_string(), driver.clone())));
        self
    }

    /// The same for one run, with what its worker reported.
    pub fn of_run(&self, plan: &RunPlan, started: &Started) -> Self {
        let stands_in = plan.data.stands_in_for.is_some();
        let mut drivers = self.drivers.clone();
        drivers.retain(|device, _| *device == started.device);
        // The worker may be another build than the runner, if the file was replaced.
        let build = started.build.clone();
        Self {
            drivers,
            data_notice: self.data_notice.clone().filter(|_| stands_in),
            runner_version: match &build {
                Some(build) => build.version.clone(),
                None => self.runner_version.clone(),
            },
            build,
            worker: Some(Worker {
                device_name: started.device_name.clone(),
                threads: started.threads,
                data_digests: started.data_digests.clone(),
                layers: started.layers.clone(),
                instructions: started.instructions.clone(),
                kernels: None,
            }),
            ..self.clone()
        }
    }

    /// The same for a resumed run: with the environment of its earlier attempts, if it differs in what numbers may
    /// depend on.
    pub fn resumed_from(mut self, before: Environment) -> Self {
        let Environment { earlier, .. } = &before;
        let mut all = earlier.clone();
        all.push(Environment {
            earlier: Vec::new(),
            ..before
        });
        all.retain(|other| other.facts() != self.facts());
        self.earlier = all;
        self
    }

    /// Without what differs for each run: the clock, and the digests of the data, which are stored elsewhere.
    pub(super) fn forget_occasion(&mut self) {
        self.recorded_at.clear();
        if let Some(worker) = &mut self.worker {
            worker.data_digests.clear();
        }
    }

    /// What numbers may depend on, by name, without the selected kernels: [`Kernels::differing`] compares those key by
    /// key. Threads are excluded, since no sum depends on them.
    pub fn facts(&self) -> Vec<(&'static str, Option<String>)> {
        let worker = self.worker.as_ref();
        let build = match &self.build {
            Some(build) => build.to_string(),
            None => self.runner_version.clone(),
        };
        vec![
            ("runner", Some(build)),
            ("burn", Some(self.burn_version.clone())),
            ("backends", Some(self.backends.join(" "))),
            (OPERATING_SYSTEM, Some(self.os.clone())),
            (PROCESSOR, Some(self.cpu.clone())),
            (DEVICE, worker.map(|w| w.device_name.clone())),
            ("driver", self.drivers.values().next().cloned()),
            (INSTRUCTIONS, worker.and_then(|w| w.instructions.clone())),
            ("layers by", worker.and_then(Worker::computed_by)),
        ]
    }

    /// The selected kernels, if any.
    pub fn kernels(&self) -> Option<&Kernels> {
        self.worker.as_ref()?.kernels.as_ref()
    }
}
