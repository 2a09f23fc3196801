//! A trained run as a capsule, from which `runner reproduce` trains it again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use runner_core::record::capsule;
use wasm_bindgen::prelude::*;

use crate::recorded::{About, Files};

/// A capsule that is put together.
#[wasm_bindgen]
pub struct Capsule {
    about: About,
    files: Files,
    data: BTreeMap<PathBuf, Vec<u8>>,
}

#[wasm_bindgen]
impl Capsule {
    /// From what `Recorded.about` of the other module says.
    ///
    /// # Errors
    /// If it is from another version.
    #[wasm_bindgen(constructor)]
    pub fn new(about: &str) -> Result<Capsule, String> {
        Ok(Self {
            about: About::read(about)?,
            files: Files::new(),
            data: BTreeMap::new(),
        })
    }

    /// Adds a file of the run by its path in the run's folder.
    pub fn add(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    /// Adds a file of the data by its path.
    pub fn add_data(&mut self, path: &str, bytes: Vec<u8>) {
        self.data.insert(path.into(), bytes);
    }

    /// The name of its file.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        capsule::default_name(&self.about.run)
    }

    /// Its bytes, written at a time in milliseconds since 1970 and in RFC 3339.
    ///
    /// # Errors
    /// If a file is missing.
    pub fn pack(self, time_ms: f64, recorded_at: &str) -> Result<Vec<u8>, String> {
        let Self { about, files, data } = self;
        let made = about.files(files, time_ms, recorded_at);
        let (record, files) = made.map_err(|e| e.to_string())?;
        let read = |path: &Path| match data.get(path) {
            Some(bytes) => Ok(bytes.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        capsule::pack_in_memory(&about.run, &record, files, about.roots.clone(), &read)
            .map_err(|e| e.to_string())
    }
}
