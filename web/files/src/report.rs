//! The report of trainings, as `runner report` writes it.

use std::path::PathBuf;

use runner_core::disk::memory;
use runner_core::plan::Plan;
use runner_core::record::{ExperimentFolder, sealed};
use runner_report::report::{html, in_memory};
use wasm_bindgen::prelude::*;

use crate::recorded::{About, Files};

/// Where runs are while a report is made.
const RESULTS: &str = "/results";

/// A report that is put together.
#[wasm_bindgen]
pub struct Report {
    folder: ExperimentFolder,
    /// The files of the next run.
    files: Files,
}

#[wasm_bindgen]
impl Report {
    /// Of the runs of a plan, as `plan_json` of the other module writes it.
    ///
    /// # Errors
    /// If it is from another version.
    #[wasm_bindgen(constructor)]
    pub fn new(plan: &str) -> Result<Report, String> {
        let plan: Plan = serde_json::from_str(plan).map_err(|e| e.to_string())?;
        let folder = ExperimentFolder(PathBuf::from(RESULTS).join(&plan.experiment));
        memory::remove(folder.0.as_path());
        let text = sealed(&plan).map_err(|e| e.to_string())?;
        memory::put(&folder.plan_json(), text);
        let files = Files::new();
        Ok(Self { folder, files })
    }

    /// Adds a file of the next run by its path in the run's folder.
    pub fn add(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    /// Adds a run that has ended, written at a time in milliseconds since 1970 and in RFC 3339.
    ///
    /// # Errors
    /// If it is from another version.
    pub fn add_run(&mut self, about: &str, time_ms: f64, recorded_at: &str) -> Result<(), String> {
        let about = About::read(about)?;
        let given = std::mem::take(&mut self.files);
        let made = about.files(given, time_ms, recorded_at);
        let (_, files) = made.map_err(|e| e.to_string())?;
        let run = self.folder.run(&about.run.id);
        for (path, bytes) in files {
            memory::put(&run.0.join(path), bytes);
        }
        Ok(())
    }

    /// The page.
    ///
    /// # Errors
    /// If a run is not of the plan.
    pub fn html(self) -> Result<String, String> {
        let made = in_memory(&self.folder).map_err(|e| e.to_string());
        memory::remove(self.folder.0.as_path());
        let report = made?.ok_or("the plan cannot be read")?;
        html(&report, None).map_err(|e| e.to_string())
    }
}
